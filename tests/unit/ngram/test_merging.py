"""Tables added up, against a dictionary that adds."""

import json
import tempfile
from collections import Counter as Tally

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import ConfigError, InputError, RecordError, SeqtoolsError
from seqtools.ngram import merging
from seqtools.ngram.merging import merge, read_count
from seqtools.streams.records import dumps

TOKENS = ["a", "b", "ab", "a!", "", '"', "\\", '","', "]", "\n", "\t", "\x00", "a\x00", "\x1f"]
TOKENS += ["\x7f", "é", "𠮷", "\uffff", "/"]
GRAMS = st.lists(st.sampled_from(TOKENS), min_size=1, max_size=3).map(tuple)
TABLES = st.lists(st.dictionaries(GRAMS, st.integers(0, 3) | st.just(10**15 - 1)), max_size=5)


def canonical(gram, count):
    return dumps({"ngram": list(gram), "count": count}) + b"\n"


# Ways in which other tools write the same.
WAYS = [
    canonical,
    lambda gram, count: json.dumps({"count": count, "ngram": gram}).encode() + b"\r\n",
    lambda gram, count: b'  {"ngram": %s, "x": 1, "count":%d}\n \n' % (dumps(list(gram)), count),
    lambda gram, count: (
        json.dumps({"ngram": gram, "count": count}, separators=(",", ":")).encode() + b"\n"
    ),
    lambda gram, count: canonical(gram, count).replace(b"/", b"\\/"),
]


def write(folder, tables, ways):
    paths = []
    for number, table in enumerate(tables):
        path = f"{folder}/{number}"
        with open(path, "wb") as file:
            for index, gram in enumerate(sorted(table)):
                file.write(ways[(number + index) % len(ways)](gram, table[gram]))
        paths.append(path)
    return paths


@given(TABLES, st.integers(0, 3), st.lists(st.sampled_from(WAYS), min_size=1), st.data())
def test_the_same_as_a_dictionary(tables, min_count, ways, data):
    total = Tally()
    for table in tables:
        total.update(table)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(merging, "_BLOCK", data.draw(st.sampled_from([16, 100, 1 << 18])))
        patch.setattr(merging, "TOGETHER", data.draw(st.sampled_from([2, 3, 64])))
        found = b"".join(merge(write(folder, tables, ways), min_count=min_count))
    counts = sorted(total.items())
    assert found == b"".join(canonical(*each) for each in counts if each[1] >= min_count)


def test_many_files(tmp_path):
    tables = [{("a",): 1, (f"w{number:03}",): number} for number in range(200)]
    paths = write(tmp_path, tables, [canonical])
    lines = b"".join(merge(paths, folder=str(tmp_path))).splitlines()
    assert json.loads(lines[0]) == {"ngram": ["a"], "count": 200}
    assert [json.loads(line)["count"] for line in lines[1:]] == [*range(1, 200)]
    assert len(list(tmp_path.iterdir())) == 200
    with pytest.raises(SeqtoolsError, match="missing: temporary file: No such file"):
        list(merge(paths, folder=str(tmp_path / "missing")))


def test_the_same_n_gram_twice_in_a_file_and_a_long_one(tmp_path):
    long = "x" * 3_000_000
    (tmp_path / "a").write_bytes(canonical(["a"], 1) * 2 + canonical([long], 3))
    (tmp_path / "b").write_bytes(canonical([long], 4).removesuffix(b"\n"))
    found = b"".join(merge([str(tmp_path / "a"), str(tmp_path / "b")]))
    assert found == canonical(["a"], 2) + canonical([long], 7)


@pytest.mark.parametrize(
    ("lines", "line", "reason"),
    [
        ([canonical(["a"], 1), canonical(["b"], 1), b"\n", canonical(["a", "b"], 1)], 4, "sorted"),
        ([canonical(["a", "b"], 1), canonical(["a"], 1)], 2, "not sorted"),
        ([canonical(["a!"], 1), canonical(["a", "b"], 1)], 2, "not sorted"),
        ([b'{"count":1, "ngram":["b"]}\n\n', canonical(["a"], 1)], 3, "not sorted"),
        ([canonical(["a"], 1), b'{"ngram":["b"],"count":1.0}\n'], 2, '"count" must be a whole'),
        ([canonical(["a"], 1), b'{"ngram":["b"],"count":01}\n'], 2, "not JSON"),
        ([canonical(["a"], 1), b'{"ngram":["b\xe9"],"count":1}\n'], 2, "not UTF-8"),
        ([canonical(["a"], 1), b'{"ngram":["\\ud800"],"count":1}\n'], 2, "not JSON"),
        ([canonical(["a"], 1), b'{"ngram":["b'], 2, "not JSON"),
        ([canonical(["a"], 1), b'{"ngram":["b\\'], 2, "not JSON"),
        ([b'{"ngram":'], 1, "not JSON"),
    ],
)
def test_bad_lines_are_named(tmp_path, monkeypatch, lines, line, reason):
    path = tmp_path / "counts"
    path.write_bytes(b"".join(lines))
    for size in (10, 1 << 18):
        monkeypatch.setattr(merging, "_BLOCK", size)
        with pytest.raises(InputError, match=f"^{path}:{line}: .*{reason}"):
            list(merge([str(path)]))


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"count": 1}, '"ngram" is missing'),
        ({"ngram": "a", "count": 1}, "list of strings, got string"),
        ({"ngram": [], "count": 1}, "got an empty one"),
        ({"ngram": ["a"]}, '"count" is missing'),
        ({"ngram": ["a"], "count": -1}, "must be at least 0, got -1"),
        ({"ngram": ["a"], "count": True}, "got boolean"),
        ({"ngram": ["a"], "count": 10**15}, "must be below"),
    ],
)
def test_what_is_no_count(record, reason):
    with pytest.raises(RecordError, match=reason):
        read_count(record)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        list(merge([str(tmp_path / "missing")]))
