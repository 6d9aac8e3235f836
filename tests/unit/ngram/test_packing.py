"""Lines of JSON, packed by compiled code or left to the parser: never otherwise than by it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import RecordError
from seqtools.ngram.packing import Packer
from seqtools.ngram.words import pack_record
from seqtools.streams.records import get_tokens, loads


def pack(data: bytes, *, refuse_space: bool = False) -> tuple[int, bytes, list[int]]:
    """How far it came, what it wrote, lines and records passed."""
    packer = Packer("tokens", refuse_space=refuse_space)
    packer.begin(data)
    end = packer.walk(0)
    return end, packer.take(), [packer.lines, packer.records]


PLAIN = [
    '{"tokens":["a","b"]}',
    ' { "tokens" : [ "a" , "b" ] } \r',
    '{"id":"x","n":-1.5e+10,"t":true,"f":false,"z":null,"l":["q"],"e":[],"tokens":["中","𠮷"]}',
    '{"tokens":[]}',
    r'{"id":"\\\"\u00e9","tokens":["\"","\\","\/","\b\f\n\r\t","\u0041\u00E9\u4e2d\u07ff\u0800\uffff\u0000"]}',
    '{"tokens":["New York",""],"id":0}',
    '{"id":12345678901234567890123,"tokens":["a"]}',
    f'{{"id":{"9" * 200}.{"9" * 400}e99,"n":0.0e-99,"tokens":["a"]}}',
]
OTHERS = [
    "{}", "[]", '"tokens"', "{", '{"tokens":["a"]', '{"tokens":["a"]}}', '{"tokens":["a",]}',
    '{"tokens":["\\ud83d\\ude00"]}', '{"tokens":["\\x"]}', '{"tokens":["\\u12g4"]}',
    '{"tokens":["\\u12"]}',
    '{"tok\\u0065ns":["a"]}', '{"tokens":["a"],"tokens":["b"]}',
    '{"tokens":"a"}', '{"tokens":[1]}', '{"tokens":[["a"]]}', '{"id":{"a":1},"tokens":["a"]}',
    '{"id":01,"tokens":["a"]}', '{"id":1.,"tokens":["a"]}', '{"id":.5,"tokens":["a"]}',
    '{"id":-,"tokens":["a"]}', '{"id":1e,"tokens":["a"]}', '{"id":nul,"tokens":["a"]}',
    '{"id":NaN,"tokens":["a"]}', '{"id":"a","text":["a"]}', '{"tokens":["\t"]}',
    '{"tokens":["a"]} x', '{"id" "a","tokens":["a"]}', '{"tokens":["a"]}\r\r', '{"a":nulL}',
    '{"id":1e999,"tokens":["a"]}', '{"id":-1E+309,"tokens":["a"]}',
    '{"id":%s,"tokens":["a"]}' % ("9" * 400), '{"id":%se99,"tokens":["a"]}' % ("9" * 210),
]  # fmt: skip


@pytest.mark.parametrize("line", PLAIN)
def test_plain_records(line: str) -> None:
    data = line.encode() + b"\n"
    tokens = get_tokens(loads(line.strip("\r").encode()), "tokens")
    assert pack(data + b" \t\r\n" + data) == (
        2 * len(data) + 4, 2 * pack_record(tokens), [3, 2],
    )  # fmt: skip


@pytest.mark.parametrize("line", OTHERS)
def test_all_else_is_left_alone(line: str) -> None:
    first = PLAIN[0].encode() + b"\n"
    assert pack(first + line.encode() + b"\n" + first) == (len(first), b"a\xffb\xff\xfe", [1, 1])


def test_tokens_that_arpa_cannot_hold_are_left_alone_if_asked() -> None:
    for token in ("New York", "", "a\n"):
        data = json.dumps({"id": "a b", "tokens": ["a", token]}).encode() + b"\n"
        assert pack(data)[0] == len(data)
        assert pack(data, refuse_space=True) == (0, b"", [0, 0])


def test_a_packer_takes_one_block_after_another() -> None:
    packer = Packer("tokens")
    for count in (1, 1000, 3):
        lines = [{"tokens": [f"é{number}", '"' * number]} for number in range(count)]
        data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        packer.begin(data)
        assert packer.walk(0) == len(data)
        assert packer.take() == b"".join(pack_record(line["tokens"]) for line in lines)
        assert (packer.take(), packer.lines, packer.records) == (b"", count, count)


values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
records = st.dictionaries(
    st.sampled_from(["id", "tokens", "x"]), st.lists(values) | values | st.lists(st.text())
)


@given(records, st.booleans(), st.data())
def test_what_is_packed_is_what_the_parser_would_give(
    record: dict[str, object], ascii_only: bool, data: st.DataObject
) -> None:
    try:
        line = json.dumps(record, ensure_ascii=ascii_only, allow_nan=False).encode()
    except (UnicodeEncodeError, ValueError):
        return
    if data.draw(st.booleans()):  # damage
        at = data.draw(st.integers(0, len(line)))
        line = line[:at] + data.draw(st.sampled_from([b"", b'"', b",", b"}", b"0", b" "])) + line[at + 1 :]  # fmt: skip # noqa: E501
    if line != line.decode(errors="ignore").encode():  # which is seen before
        return
    end, packed, _ = pack(line + b"\n")
    if end:
        try:
            assert packed == pack_record(get_tokens(loads(line), "tokens"))
        except RecordError:
            assert not line.strip()
