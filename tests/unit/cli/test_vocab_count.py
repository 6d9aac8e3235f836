"""Ways to count, for small files and for large ones, that never differ in anything."""

import gzip
import json
import os
import pathlib
import re
import tempfile

import pytest
from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seqtools.cli import _run, _vocab_count
from seqtools.cli.vocab import cli


def built(arguments: list[str], files: dict[str, bytes]) -> tuple[int, str, dict[str, bytes]]:
    """Exit status, messages, and every file that `build` leaves behind."""
    messages: list[str] = []
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(_run, "message", messages.append)
        for name, data in files.items():
            pathlib.Path(name).write_bytes(data)
        done = CliRunner().invoke(cli, ["build", "--quiet", *arguments, "-o", "out", *files])
        left = {name: pathlib.Path(name).read_bytes() for name in os.listdir()}
    if not isinstance(done.exception, SystemExit | None):
        # Where a line that ends too soon ends is seen before its return, or behind it.
        messages.append(re.sub(r" at column \d+$", "", str(done.exception)))
    reasons = left.pop("bad.reasons.jsonl", b"")
    left["reasons"] = re.sub(rb" at column \d+", b"", reasons)
    return done.exit_code, "\n".join(messages), left


def counted_all_ways(
    arguments: list[str], files: dict[str, bytes]
) -> tuple[int, str, dict[str, bytes]]:
    """What `built` gives, the same for any way."""
    small = built(arguments, files)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_vocab_count, "LARGE", 0)
        assert built(arguments, files) == small
        assert built([*arguments, "--jobs", "3"], files) == small
    return small


ODD = ["", "<s>", "<unk>", "</s>", "<pad>", "New York", "a\tb", "\u2028", "é", "𠮷", '"\\', "\0"]
TOKENS = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4) | st.sampled_from(ODD), max_size=6
)
VALUES = (
    st.none() | st.floats() | st.integers() | st.sampled_from([10**30, [[0, 1]], [1], {"a": 1}])
)
RECORDS = st.builds(
    lambda tokens, value, ascii_only: json.dumps(
        {"n": value, "tokens": tokens, "x": 1}, ensure_ascii=ascii_only
    ).encode(),
    TOKENS, VALUES, st.booleans(),
)  # fmt: skip
BAD = [
    b'{"tokens":["a"],"n":1e999}', b'{"tokens":["a",1]}', b'{"tokens":"a"}', b"{}", b"[]", b"\xff",
    b'{"tokens":["a"]', b'{"tokens":["\\ud800"]}', b'{"tokens":["\xed\xa0\x80"]}',
    b'\xef\xbb\xbf{"tokens":["a"]}',
]  # fmt: skip
GOOD = [
    b'{"tokens":["a"],"tokens":["b"]}', b'{"tok\\u0065ns":["a"]}', b" \t{ \"tokens\" : [ ] } ",
    b'{"tokens":["\\ud842\\udfb7","\\u00e9"]}', b"", b" \t", b'{"tokens":["a"],"n":-0.5e-300}',
]  # fmt: skip
LINES = st.lists(st.tuples(RECORDS | st.sampled_from([*BAD, *GOOD]), st.sampled_from([b"", b"\r"])))


@settings(max_examples=60)
@given(
    st.lists(st.tuples(LINES, st.booleans(), st.booleans()), min_size=1, max_size=3),
    st.sampled_from([[], ["--rejects", "bad"], ["--rejects", "bad", "--max-rejects", "1"]]),
    st.sampled_from([[], ["--min-count", "2"], ["--max-size", "3"], ["--first-record", "7"]]),
)
@example([([(line, b"") for line in BAD], False, True)], ["--rejects", "bad"], [])
@example([([(line, b"\r") for line in GOOD], True, False)], [], [])
def test_any_lines_are_counted_alike(parts, rejects, options) -> None:
    files = {}
    for number, (lines, marked, ended) in enumerate(parts):
        data = b"\n".join(raw + end for raw, end in lines) + b"\n" * ended
        data = b"\xef\xbb\xbf" * marked + data
        files[f"{number}.gz" if number == 2 else f"{number}"] = (
            gzip.compress(data) if number == 2 else data
        )
    counted_all_ways([*rejects, *options], files)


def test_what_all_ways_give() -> None:
    """Among bad and odd lines."""
    lines = [b'{"tokens":["b","<s>"]}', *BAD, *GOOD]
    status, messages, left = counted_all_ways(["--rejects", "bad"], {"in": b"\n".join(lines)})
    assert status == 3
    assert "<s> 1" in messages
    assert left["bad"].splitlines() == BAD
    found = {
        entry["token"]: entry.get("count") for entry in map(json.loads, left["out"].splitlines())
    }
    assert {token: count for token, count in found.items() if count} == {
        "a": 2, "b": 2, "é": 1, "𠮷": 1,
    }  # fmt: skip
    status, messages, left = counted_all_ways([], {"in": b"\n".join(lines)})
    assert (status, "out" in left) == (1, False)
    assert "number is infinity" in messages


def test_labels() -> None:
    data = b'{"label":"joy"}\n{"label":["joy","rage"]}\n{"label":""}\n'
    status, _, left = counted_all_ways(["--field", "label", "--specials", "none"], {"in": data})
    assert status == 0
    assert [json.loads(line)["token"] for line in left["out"].splitlines()] == ["joy", "", "rage"]


def test_a_field_whose_name_is_no_unicode_is_missing() -> None:
    status, messages, _ = counted_all_ways(["--field", "\udcff"], {"in": b'{"tokens":["a"]}\n'})
    assert status == 1
    assert "is missing" in messages


def test_more_types_than_there_was_room_for() -> None:
    """In several blocks, and many of them twice."""
    rows = [
        [f"w{number}" for number in range(start, start + 300)] for start in range(0, 90_000, 200)
    ]
    data = b"".join(json.dumps({"tokens": row}).encode() + b"\n" for row in rows)
    status, _, left = counted_all_ways([], {"in": data})
    assert status == 0
    assert left["out"].count(b"\n") == 4 + 90_100


def test_lines_keep_their_numbers_over_blocks_and_files() -> None:
    data = b"\n".join([*[b'{"tokens":["a","b"]}'] * 20_000, b" \t", b"", *BAD] * 3)
    status, _, left = counted_all_ways(["--rejects", "bad"], {"1": data, "2": data})
    assert status == 3
    size = 20_002 + len(BAD)
    assert [json.loads(line)["line"] for line in left["reasons"].splitlines()] == 2 * [
        turn * size + 20_003 + number for turn in range(3) for number in range(len(BAD))
    ]


@pytest.mark.parametrize("rejects", [[], ["--rejects", "bad"]])
def test_bad_records_before_a_damage_are_met_first(rejects) -> None:
    rows = [b'{"tokens":["%d"]}' % (number * 7919) for number in range(30_000)]
    rows[20_000] = b'{"tokens":1}'
    data = gzip.compress(b"\n".join(rows))[:-20]
    status, messages, left = counted_all_ways(rejects, {"in.gz": data})
    assert status == 1
    assert left.get("bad") == (b'{"tokens":1}\n' if rejects else None)
    assert ("in.gz:20001:" if not rejects else "ends too early") in messages


@pytest.mark.parametrize("option", [["--shard", "1/2"], ["--field", "tokens"] * 2])
def test_other_ways_to_read_stay_with_what_they_do(option, monkeypatch) -> None:
    monkeypatch.setattr(_vocab_count, "_count_compiled", None)
    monkeypatch.setattr(_vocab_count, "LARGE", 0)
    status, _, left = built(option, {"in": b'{"tokens":["a"]}\n' * 4})
    assert status == 0
    assert b'"count"' in left["out"]
