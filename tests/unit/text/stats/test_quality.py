import math
import random
from collections import Counter

import pytest

from seqtools.errors import FormatError, RecordError
from seqtools.streams.files import Block
from seqtools.streams.records import dumps, loads
from seqtools.text.stats.quality import Limits, Quality


def gather(records, fields=("text",), first=1, step=1, **limits):
    quality = Quality(fields, Limits(**limits))
    for place, record in enumerate(records):
        quality.add(record, first + step * place)
    return quality


def faults(quality):
    """Of each fault that is there, its count and the records of its examples."""
    rows = [row for row in quality.report() if row.get("count")]
    return {
        (row["fault"], row.get("field")): (row["count"], [e["record"] for e in row["examples"]])
        for row in rows
    }


def texts(*texts):
    return [{"text": text} for text in texts]


def test_faults_are_counted_by_record_with_the_first_as_examples():
    found = gather(texts("a\x00\x01", "b", "", "c\x02", "b", "d\x03"), examples=2)
    assert faults(found) == {
        ("control", "text"): (3, [1, 4]),
        ("empty", "text"): (1, [3]),
        ("duplicate", None): (1, [5]),
    }
    rows = [*found.report()]
    assert rows[0] == {"statistic": "quality", "records": 6}
    control = next(row for row in rows if row.get("fault") == "control")
    assert control["share"] == 3 / 6


def test_an_example_says_where_it_is():
    text = "x" * 50 + "\u200b" + "y" * 50
    (row,) = [row for row in gather([{"id": "q7", "text": text}]).report() if row.get("count")]
    assert row["examples"] == [
        {"record": 1, "id": "q7", "at": 50, "found": "U+200B", "text": text[30:71]}
    ]


def test_an_example_says_in_which_file_and_line_it_is():
    quality = Quality(("text",), Limits(listing=True))
    data = b'{"text":"a"}\n\n{"text":""}\n{"text":"a"}\n'
    for _ in quality.places.watch(iter([Block("x.jsonl", data, 8, 5, False, False)])):
        for number, text in enumerate(("a", "", "a"), 5):
            quality.add({"text": text}, number)
    assert [*quality.report()] == [
        {"record": 6, "file": "x.jsonl", "line": 10, "faults": ["empty"]},
        {
            "record": 7, "file": "x.jsonl", "line": 11, "faults": ["duplicate"],
            "like": {"record": 5, "file": "x.jsonl", "line": 8},
        },
    ]  # fmt: skip


@pytest.mark.parametrize("text", [" " * 99999, "Ð°" * 99999, "a" + "а" * 99999, "x" * 99999 + "  "])
def test_an_example_is_short_however_long_the_text(text):
    (row,) = [row for row in gather(texts(text)).report() if row.get("count")]
    (shown,) = row["examples"]
    assert len(shown["found"]) <= 60
    assert len(shown["text"]) <= 100


@pytest.mark.parametrize("listing", [False, True])
def test_parts_with_the_same_numbers_are_refused(listing):
    merged = Quality(("text",), Limits(listing=listing))
    for _ in range(2):
        for part in gather(texts("a", "b"), listing=listing).dump():
            merged.merge(loads(dumps(part)))
    with pytest.raises(FormatError, match="two records 1: parts of a corpus need its numbers"):
        [*merged.report()]


def test_the_widest_fence_and_the_most_different_lengths():
    pairs = [("x" * n, "y") for n in (1, 1, 10**6, 10**6)]
    found = gather([{"src": s, "tgt": t} for s, t in pairs], ("src", "tgt"), fence=10.0)
    rows = {
        row["fault"]: row for row in found.report() if row.get("field") != "tgt" and "fault" in row
    }
    assert rows["long"]["above"] == pytest.approx(1e6 * ((1e6 + 0.5) / 0.5) ** 10)
    assert rows["ratio-high"]["above"] == pytest.approx(1e66, rel=0.2)
    assert rows["ratio-low"]["below"] == pytest.approx(1e-60, rel=0.2)


def test_unusual_lengths_are_beyond_the_fences_of_tukey():
    rng = random.Random(1)
    lengths = [rng.randrange(20, 41) for _ in range(100)] + [1, 900, 3000]
    found = gather([{"text": chr(0x4E00 + i) * n} for i, n in enumerate(lengths)], fence=2.0)
    ordered = sorted(lengths)
    low, high = ordered[math.ceil(103 / 4) - 1], ordered[math.ceil(3 * 103 / 4) - 1]
    rows = {row["fault"]: row for row in found.report() if "fault" in row}
    assert rows["short"]["below"] == pytest.approx(low * ((low - 0.5) / (high + 0.5)) ** 2)
    assert rows["long"]["above"] == pytest.approx(high * ((high + 0.5) / (low - 0.5)) ** 2)
    assert rows["short"]["count"] == 1
    assert [shown["length"] for shown in rows["long"]["examples"]] == [3000, 900]
    assert [shown["record"] for shown in rows["long"]["examples"]] == [103, 102]


def test_pairs():
    pairs = [("a" * n, "b" * (n + n * (n % 7) // 3)) for n in range(20, 60)]
    pairs += [("same", " same "), ("x" * 500, "y"), ("z", "w" * 300), ("", "v"), ("u", " ")]
    found = gather([{"src": s, "tgt": t} for s, t in pairs], ("src", "tgt"))
    got = faults(found)
    assert got["identical", None] == (1, [41])
    assert got["ratio-high", None] == (1, [42])
    assert got["ratio-low", None] == (1, [43])
    assert got["empty", "src"] == (1, [44])
    assert got["empty", "tgt"] == (1, [45])
    bounds = {row["fault"]: row for row in found.report() if "fault" in row}
    # Quartiles of n / (n + n k / 3) for k from 0 to 6: of k = 5 and of k = 1, to a hundredth.
    low, high = 3 / 8, 3 / 4
    assert bounds["ratio-low"]["below"] == pytest.approx(low * (low / high) ** 3, rel=0.15)
    assert bounds["ratio-high"]["above"] == pytest.approx(high * (high / low) ** 3, rel=0.15)


def test_duplicates_are_so_in_all_fields_and_blank_ones_are_not():
    records = [("a", "b"), ("a", "c"), ("a", "b"), ("", ""), ("", ""), ("ab", ""), ("", "ab")]
    records = [{"src": s, "tgt": t} for s, t in records]
    assert faults(gather(records, ("src", "tgt")))["duplicate", None] == (1, [3])
    assert faults(gather(records, ("src",)))["duplicate", None] == (2, [2, 3])


def test_near_duplicates_are_no_duplicates():
    long = "the quick brown fox jumps over the lazy dog and runs away into the wood"
    found = gather(texts(long, long, long.upper(), "another", long + "!"), near=0.8)
    assert faults(found) == {
        ("duplicate", None): (1, [2]),
        ("near-duplicate", None): (2, [3, 5]),
    } | {key: value for key, value in faults(found).items() if key[0] in ("short", "long")}
    assert ("near-duplicate", None) not in faults(gather(texts(long, long.upper())))


def test_lists_are_joined_by_blanks():
    found = gather([{"tokens": ["a", "\x00"]}, {"tokens": []}], ("tokens",))
    assert faults(found) == {("control", "tokens"): (1, [1]), ("empty", "tokens"): (1, [2])}


def test_a_bad_record_counts_for_nothing():
    quality = gather(texts("a"), ("text",))
    pair = Quality(("src", "tgt"))
    for bad in ({}, {"src": "\x00"}, {"src": "\x00", "tgt": 5}):
        with pytest.raises(RecordError):
            pair.add(bad, 1)
    with pytest.raises(RecordError, match='"text" is missing'):
        quality.add({}, 2)
    assert next(pair.report())["records"] == 0
    assert faults(pair) == {}


@pytest.mark.parametrize("listing", [False, True])
@pytest.mark.parametrize("near", [None, 0.7])
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_shards_give_the_whole(parts, near, listing):
    rng = random.Random(parts)
    letters = ["a", "b", "\x00", " ", "é", "\ufffd", "中", "а"]
    records = [
        {"src": "".join(rng.choices(letters, k=rng.randrange(7))), "tgt": "ab" * rng.randrange(9)}
        for _ in range(60)
    ]  # fmt: skip
    fields, limits = ("src", "tgt"), {"near": near, "examples": 3, "listing": listing}
    whole = gather(records, fields, **limits)
    merged = Quality(fields, Limits(**limits))
    for start in reversed(range(parts)):
        part = gather(records[start::parts], fields, start + 1, parts, **limits)
        for state in part.dump():
            merged.merge(loads(dumps(state)))
    assert [*merged.report()] == [*whole.report()]
    assert merged.options == whole.options


def test_a_listing_tells_of_each_faulty_record():
    long = "the quick brown fox jumps over the lazy dog and runs away into the wood"
    lines = ["\x00 ", "good", "", "good", long, long.upper(), "x" * 99999, "fine", "well"]
    found = gather(texts(*lines), near=0.8, listing=True, fence=1.0)
    assert [*found.report()] == [
        {"record": 1, "faults": ["control", "space"]},
        {"record": 3, "faults": ["empty"]},
        {"record": 4, "faults": ["duplicate"], "like": {"record": 2}},
        {"record": 6, "faults": ["near-duplicate"], "like": {"record": 5}},
        {"record": 7, "faults": ["long"]},
    ]


def test_of_several_fields_a_listing_tells_which():
    found = Quality(("src", "tgt"), Limits(listing=True))
    for number, (source, target) in enumerate(
        [("a\x00", ""), ("b", "b"), ("b", "b "), ("c", "d")], 1
    ):
        found.add({"src": source, "tgt": target}, number)
    assert [*found.report()] == [
        {
            "record": 1, "faults": ["empty", "control"],
            "fields": {"src": ["control"], "tgt": ["empty"]},
        },
        {"record": 2, "faults": ["identical"], "fields": {"src": [], "tgt": []}},
        {"record": 3, "faults": ["space", "identical"], "fields": {"src": [], "tgt": ["space"]}},
    ]  # fmt: skip


def test_a_listing_agrees_with_the_counts():
    rng = random.Random(2)
    lengths = [round(rng.lognormvariate(3, 0.7)) + 1 for _ in range(300)]
    # One side varies, so that no fault is there in both.
    records = [{"src": "a" * length, "tgt": "b" * 20} for length in lengths]
    fields, limits = ("src", "tgt"), {"fence": 0.5}
    listed = gather(records, fields, listing=True, **limits).report()
    counted = {
        row[0]: count for row, (count, _) in faults(gather(records, fields, **limits)).items()
    }
    assert Counter(fault for row in listed for fault in row["faults"]) == counted
    assert {"short", "long", "ratio-low", "ratio-high", "duplicate"} == {*counted}


def test_nothing_at_all():
    rows = [*Quality(("src", "tgt"), Limits(near=0.8)).report()]
    assert rows[0]["records"] == 0
    assert all(row["count"] == 0 and row["share"] == 0 for row in rows[1:])
