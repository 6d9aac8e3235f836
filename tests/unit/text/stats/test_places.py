"""Places against counting lines one by one."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.streams.files import read_blocks
from seqtools.streams.records import dumps, loads
from seqtools.text.stats.places import Places

LINES = st.lists(st.sampled_from([b'{"a":1}', b"{}", b" {}", b"", b" \t", b"\r"]), max_size=12)


def expected(files, first):
    """Of each record its number, its file and its line."""
    found = []
    for name, lines in files:
        for line, raw in enumerate(lines, 1):
            if raw.strip():
                found.append({"record": first + len(found), "file": name, "line": line})
    return found


def watched(paths, first=1, size=16):
    places = Places()
    blocks = places.watch(read_blocks(paths, first_record=first, block_size=size))
    return places, sum(block.size[1] for block in blocks)


def told(places, records):
    return [places.tell(record["record"]) for record in records]


@given(
    corpus=st.lists(LINES, min_size=1, max_size=4),
    first=st.integers(0, 3),
    size=st.sampled_from([1, 16, 1 << 18]),
    end=st.booleans(),
)
def test_lines_are_those_of_counting(corpus, first, size, end, tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    files = []
    for number, lines in enumerate(corpus):
        path = folder / f"é{number}"
        path.write_bytes(b"\n".join(lines) + b"\n" * end)
        files.append((str(path), lines))
    right = expected(files, first)
    paths = [name for name, _ in files]
    places, records = watched(paths, first, size)
    assert records == len(right)
    assert told(places, right) == right
    # Parts of the corpus, in any order, one of them twice, as shards have it.
    merged = Places()
    parts, begin = [], first
    for path in paths:
        part, count = watched([path], begin, size)
        parts.append(part)
        begin += count
    parts.append(parts[0])
    random.Random(len(right)).shuffle(parts)
    for part in parts:
        for state in part.dump():
            merged.merge(loads(dumps(state)))
    assert told(merged, right) == right


def test_one_stretch_for_lines_that_follow_one_another(tmp_path):
    (tmp_path / "a").write_bytes(b"{}\n" * 1000 + b"\n" + b"{}\n" * 1000)
    places, _ = watched([str(tmp_path / "a")])
    (state,) = places.dump()
    assert (state["numbers"], state["lines"]) == ([1, 1001], [1, 1002])


def test_what_is_not_known():
    assert Places().tell(3) == {"record": 3}
    assert [*Places().dump()] == []


def test_a_name_that_is_no_utf8(tmp_path):
    path = tmp_path / "caf\udce9"
    try:
        path.write_bytes(b"{}\n")
    except OSError:
        pytest.skip("the file system takes no such name")
    places, _ = watched([str(path)])
    assert places.tell(1)["file"].endswith("caf\ufffd")
