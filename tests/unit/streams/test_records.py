"""Records: bytes to a dict and back, nothing lost, nothing guessed."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import RecordError
from seqtools.streams.records import (
    dumps,
    get,
    get_ids,
    get_text,
    get_tokens,
    has_long_number,
    loads,
    name_of,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**40), max_value=10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"))
    | st.just("null"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), JSON, max_size=4))
def test_what_is_written_reads_back_the_same_in_the_same_order(record):
    line = dumps(record)
    assert b"\n" not in line
    assert loads(line) == record
    assert list(loads(line)) == list(record)
    assert json.loads(line) == record


@pytest.mark.parametrize(
    "digits",
    [
        "0",
        "-1",
        "9007199254740993",
        "1000000000000000000",
        "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809",
        "18446744073709551615",
        "18446744073709551616",
        "12345678901234567890123",
        "-12345678901234567890123",
        "9" * 400,
    ],
)
@pytest.mark.parametrize("form", ['{"id":%s}', '{"id":[%s]}', '{"a":{"id":%s},"t":"1.5"}'])
def test_integers_keep_their_digits(digits, form):
    line = (form % digits).encode()
    assert dumps(loads(line)) == line


@pytest.mark.parametrize("text", ["1234567890123456789012", "0.12345678901234567890123", "1e300"])
def test_long_digits_in_strings_and_fractions_stay_what_they_are(text):
    line = b'{"a":"%s","b":0.5}' % text.encode()
    assert dumps(loads(line)) == line
    assert loads(b'{"a":%s}' % text.encode()) == {"a": json.loads(text)}


@pytest.mark.parametrize("form", [b'{"id":%s,"t":"a"}', b'{"id":[-%s],"t":"a"}'])
def test_a_million_digits_pass_in_no_time(form):
    line = form % (b"123456789" * 111_111)
    record = loads(line)
    assert name_of(loads(form % (b"1" * 5000))["t"]) == "string"
    assert dumps({**record, "more": np.float32(0.1)}) == line[:-1] + b',"more":0.1}'
    with pytest.raises(RecordError, match='"id" must be a string, got'):
        get_text(record, "id")
    with pytest.raises(RecordError, match="more than 4300 digits beside other long ones"):
        dumps({**record, "more": 2**64})


@pytest.mark.parametrize("before", range(8))
def test_long_digits_are_seen_wherever_they_stand(before):
    line = b" " * before + b'{"n":%s}' % (b"9" * 19)
    assert has_long_number(line)
    assert not has_long_number(line.replace(b"9" * 19, b"9" * 18))


def test_an_escape_may_stand_before_long_digits():
    assert loads(b'{"a":"\\u00e91234567890123456789"}') == {"a": "\u00e91234567890123456789"}


def test_the_last_of_duplicate_keys_counts_also_beside_a_long_integer():
    assert loads(b'{"a":"x","b":1,"a":"y"}') == {"a": "y", "b": 1}
    assert loads(b'{"a":"x","b":18446744073709551616,"a":"y"}') == {"a": "y", "b": 2**64}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'["text"]', "a record must be an object, got list"),
        (b'"text"', "a record must be an object, got string"),
        (b"3", "a record must be an object, got number"),
        (b"true", "a record must be an object, got boolean"),
        (b"null", "a record must be an object, got null"),
        (b"18446744073709551616", "a record must be an object, got number"),
        (b'{"text": "a', "not JSON: "),
        (b"{} {}", "not JSON: "),
        (b'{"text":"a\tb"}', "not JSON: "),
        (b'{"text":"a"}\0', "not JSON: "),
        (b'{"text":NaN}', "not JSON: "),
        (b'{"text":-Infinity}', "not JSON: "),
        (b'{"text":1e999}', "not JSON: "),
        (b'{"text":"\\ud800"}', "not JSON: "),
        (b'{"text":"\\udc00 x"}', "not JSON: "),
        (b"{'text':'a'}", "not JSON: "),
        (b'{"n":12345678901234567890,"t":"\\ud800"}', "not JSON: "),
        (b'{"n":12345678901234567890,"t":NaN}', "not JSON: "),
        (b'{"n":012345678901234567890}', "not JSON: "),
        (b'{"text":"a\xe9b"}', "not UTF-8: byte 0xe9 at byte 11 of the line"),
        (b'{"text":"\xed\xa0\x80"}', "not UTF-8: byte 0xed at byte 10 of the line"),
        (b'{"text":"\xc0\x80"}', "not UTF-8: byte 0xc0 at byte 10 of the line"),
        (b"[" * 2000, "nested too deeply"),
        (b'{"a":' * 2000 + b"1" + b"}" * 2000, "nested too deeply"),
        (b'{"n":12345678901234567890,"a":' + b"[" * 1000 + b"]" * 1000 + b"}", "nested too deeply"),
    ],
)
def test_bad_lines_are_refused_with_a_reason(line, reason):
    with pytest.raises(RecordError) as caught:
        loads(line)
    assert str(caught.value).startswith(reason)
    assert "line 1" not in str(caught.value)  # the parser sees one line; where it stands we know


def test_control_characters_and_pairs_of_surrogates_are_text():
    assert loads(b'{"text":"a\\u0000b"}') == {"text": "a\0b"}
    assert dumps({"text": "a\0b"}) == b'{"text":"a\\u0000b"}'
    assert loads(b'{"text":"\\ud83d\\ude00"}') == {"text": "\N{GRINNING FACE}"}
    assert (
        dumps({"t": "\u2028\u0085\x1c\ufeff𠮷"}) == '{"t":"\u2028\u0085\\u001c\ufeff𠮷"}'.encode()
    )


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, np.float32("nan"), np.float64("inf"), np.array([1, np.nan])],
    ids=repr,
)
@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: [1, v], lambda v: {"x": (v,)}])
@pytest.mark.parametrize("other", [1, 2**70])
def test_what_is_not_finite_is_never_null(value, wrap, other):
    with pytest.raises(RecordError, match="not finite"):
        dumps({"other": other, "a": wrap(value)})


def test_null_itself_passes():
    assert dumps({"a": None, "b": ["null", 1.5]}) == b'{"a":null,"b":["null",1.5]}'


@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.sampled_from([1, 2**70]))
def test_float32_is_written_with_the_fewest_digits(value, other):
    single = np.float32(value)
    for written in (single, np.array([single]), np.array([single, single])[::2]):
        digits = dumps({"other": other, "a": written}).partition(b'"a":')[2].strip(b"[]}")
        assert np.float32(digits.decode()) == single
        shortest = np.format_float_scientific(single, unique=True, trim="-").partition("e")[0]
        mantissa = digits.decode().lower().partition("e")[0]
        assert significant(mantissa) == significant(shortest)


def significant(text):
    return text.replace("-", "").replace(".", "").strip("0")


def test_arrays_of_integers_and_of_more_dimensions():
    ids = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert dumps({"a": ids}) == b'{"a":[[0,1,2],[3,4,5]]}'
    assert dumps({"a": ids.T, "b": 2**64}) == b'{"a":[[0,3],[1,4],[2,5]],"b":18446744073709551616}'
    assert dumps({"a": ids.T}) == b'{"a":[[0,3],[1,4],[2,5]]}'


def test_what_cannot_be_written_is_a_bad_record():
    with pytest.raises(RecordError, match="not Unicode"):
        dumps({"a": "\ud800"})
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RecordError, match="nested too deeply"):
        dumps({"a": deep})


def test_a_record_nested_more_deeply_than_the_fast_writer_goes_is_still_written():
    line = b'{"a":' + b"[" * 500 + b"]" * 500 + b"}"
    assert dumps(loads(line)) == line


def test_an_object_that_is_no_json_is_a_bug_and_raises_as_one():
    with pytest.raises((TypeError, AttributeError)):
        dumps({"a": object()})


# Each value of a field in turn: what a string, tokens and ids say to it.
VALUES = [
    ("x", "string"),
    (5, "number"),
    (1.5, "number"),
    (True, "boolean"),
    (None, "null"),
    ({"a": 1}, "object"),
    (["x"], "list"),
]


@pytest.mark.parametrize(("value", "name"), VALUES)
def test_fields_of_a_wrong_type_are_named(value, name):
    assert name_of(value) == name
    for getter, wants, good in (
        (get_text, "a string", {"string"}),
        (get_tokens, "a list of strings", {"list"}),
        (get_ids, "a list of ids", set()),
    ):
        if name in good:
            assert getter({"f": value}, "f") == value
            continue
        with pytest.raises(RecordError) as caught:
            getter({"f": value}, "f")
        assert str(caught.value).startswith(f'"f" must be {wants}')
        assert name in str(caught.value)


@pytest.mark.parametrize("getter", [get, get_text, get_tokens, get_ids])
def test_a_missing_field_is_named(getter):
    with pytest.raises(RecordError) as caught:
        getter({"g": 1}, "f")
    assert str(caught.value) == '"f" is missing'


@pytest.mark.parametrize("bad", [[1], ["a", 1], ["a", None], ["a", ["b"]], [True]])
def test_tokens_are_strings(bad):
    with pytest.raises(RecordError, match=r'"f" must be a list of strings, got .* among them'):
        get_tokens({"f": bad}, "f")
    assert get_tokens({"f": []}, "f") == []


@pytest.mark.parametrize("bad", [True, 1.0, -1, "3", None, [1], 1e300])
def test_ids_are_integers_from_zero(bad):
    with pytest.raises(RecordError, match='"f" must be a list of ids'):
        get_ids({"f": [0, bad]}, "f")


def test_ids_lie_within_the_vocabulary():
    assert get_ids({"f": [0, 4]}, "f", 5) == [0, 4]
    assert get_ids({"f": [0, 2**70]}, "f") == [0, 2**70]
    with pytest.raises(RecordError, match='"f" has id 5, but the vocabulary has 5 entries'):
        get_ids({"f": [0, 5]}, "f", 5)
