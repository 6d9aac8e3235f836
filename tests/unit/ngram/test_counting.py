"""Tokens counted by compiled code in lines of JSON, or left to the parser: never otherwise."""

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtools.errors import RecordError
from seqtools.ngram.counting import TokenCounter
from seqtools.streams.records import get_tokens, loads
from tests.unit.ngram.test_packing import OTHERS, PLAIN


def count(data: bytes) -> tuple[int, Counter[str], list[int]]:
    """How far it came, what it counted, lines and records passed."""
    counter = TokenCounter("tokens")
    counter.begin(data)
    end = counter.walk(0)
    return end, counter.counts(), [counter.lines, counter.records]


def plainly(line: bytes) -> Counter[str]:
    return Counter(get_tokens(loads(line.strip(b"\r")), "tokens"))


@pytest.mark.parametrize("line", PLAIN)
def test_plain_records(line: str) -> None:
    data = line.encode() + b"\n"
    counts = plainly(line.encode())
    assert count(data + b" \t\r\n" + data) == (2 * len(data) + 4, counts + counts, [3, 2])


@pytest.mark.parametrize("line", OTHERS)
def test_all_else_is_left_alone_and_counts_for_nothing(line: str) -> None:
    first = b'{"tokens":["a","b"]}\n'
    assert count(first + line.encode() + b"\n" + first) == (
        len(first), Counter("ab"), [1, 1],
    )  # fmt: skip


def test_a_label_is_one_token_where_it_may_be() -> None:
    data = b' {"id":1,"label" : "a\\tb" } \r\n{"label":["c"]}\n'
    for label, wanted in ((True, Counter(["a\tb", "c"])), (False, Counter())):
        counter = TokenCounter("label", label=label)
        counter.begin(data)
        assert counter.walk(0) == label * len(data)
        assert counter.counts() == wanted


def test_tokens_of_any_length_are_told_apart() -> None:
    # The first eight bytes, and the bytes behind them, are compared in different ways.
    tokens = ["", "\0", "\0\0"]
    tokens += ["x" * length + end for length in range(20) for end in ("", "y", "é", "\0", '"')]
    tokens = sorted(set(tokens))
    for turn in range(9):  # wherever the tokens stand in a word of eight bytes
        record = {"id": "i" * turn, "tokens": tokens}
        data = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        assert count(data) == (len(data), Counter(tokens), [1, 1])


def test_there_is_room_for_any_number_of_tokens() -> None:
    names = [f"a long name with the number {number}" for number in range(200_000)]
    lines = [json.dumps({"tokens": names[at : at + 50_000]}) for at in range(0, 200_000, 50_000)]
    data = "".join(f"{line}\n" for line in [*lines, *lines]).encode()
    counter = TokenCounter("tokens")
    for line in data.splitlines(keepends=True):
        counter.begin(line)
        assert counter.walk(0) == len(line)
    counter.add([names[0], "other"])
    counts = counter.counts()
    assert (counts.pop(names[0]), counts.pop("other")) == (3, 1)
    assert counts == dict.fromkeys(names[1:], 2)


def test_a_name_may_be_no_unicode() -> None:
    counter = TokenCounter("\udcff")
    counter.begin(b'{"tokens":["a"]}\n')
    assert counter.walk(0) == 0


values = st.none() | st.integers() | st.floats(allow_nan=False) | st.text()
tokens = st.lists(st.text(st.sampled_from('ab"\\\x1f\n é中𠮷'), max_size=20))
records = st.fixed_dictionaries(
    {"tokens": tokens | values}, optional={"id": values, "x": st.lists(values) | tokens}
)


@given(st.lists(records, max_size=4), st.booleans(), st.data())
@settings(deadline=None)  # the first call compiles
def test_what_is_counted_is_what_the_parser_would_give(
    given_records: list[dict[str, object]], ascii_only: bool, draw: st.DataObject
) -> None:
    try:
        data = b"".join(
            json.dumps(record, ensure_ascii=ascii_only, allow_nan=False).encode() + b"\n"
            for record in given_records
        )
    except (UnicodeEncodeError, ValueError):
        return
    if draw.draw(st.booleans()):  # damage
        at = draw.draw(st.integers(0, len(data)))
        inserted = draw.draw(st.sampled_from([b"", b'"', b",", b"}", b"]", b"\\", b"0", b" "]))
        data = data[:at] + inserted + data[at + 1 :]
        data = data if data.endswith(b"\n") else data + b"\n"
    if data != data.decode(errors="ignore").encode():  # which is seen before
        return
    end, counts, [lines, _] = count(data)
    wanted: Counter[str] = Counter()
    for line in data[:end].split(b"\n")[:-1]:
        try:
            wanted += plainly(line)
        except RecordError:
            assert not line.strip(b" \t\r")
    assert counts == wanted
    assert lines == data.count(b"\n", 0, end)
