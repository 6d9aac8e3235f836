"""N-grams and their counts against counting them one by one."""

import itertools
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.ngram import counts as module
from seqtools.ngram.counts import Corpus, Grams, Reader, count
from seqtools.ngram.storage import Store
from seqtools.ngram.words import pack_tokens

Gram = tuple[str, ...]
corpora = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=9), min_size=1, max_size=12)


def read(store: Store, records: list[list[str]], **options: Any) -> Corpus:
    reader = Reader(store, **options)
    reader.add_packed(pack_tokens(records))
    return reader.finish()


def one_by_one(records: list[list[str]], order: int) -> list[Counter[Gram]]:
    """Occurrences of the n-grams of each order, from index 1."""
    found: list[Counter[Gram]] = [Counter() for _ in range(order + 1)]
    for record in records:
        words = ["<s>", *record, "</s>"]
        for end, size in itertools.product(range(1, len(words)), range(1, order + 1)):
            if end + 1 >= size:
                found[size][tuple(words[end + 1 - size : end + 1])] += 1
    return found


def paths(grams: list[Grams], order: int) -> list[tuple[int, ...]]:
    """The words of each row of one order."""
    level = grams[order - 1]
    words = level.words[0 : len(level)].tolist()
    if order == 1:
        return [(word,) for word in words]
    shorter = paths(grams, order - 1)
    begins = grams[order - 2].begins[0 : len(shorter) + 1].tolist()
    return [
        (words[row], *suffix)
        for suffix, (begin, end) in zip(shorter, itertools.pairwise(begins), strict=True)
        for row in range(begin, end)
    ]


def check(records: list[list[str]], order: int, memory: int, *, adjusted: bool) -> None:
    with Store(memory) as store:
        corpus = read(store, records)
        grams = count(corpus, order, store, memory // 2, adjusted=adjusted, raws=True)
        names = [word.decode() for word in corpus.words.strings()]
        expected = one_by_one(records, order)
        for size in range(1, order + 1):
            ids, level = paths(grams, size), grams[size - 1]
            rows = [tuple(names[word] for word in path) for path in ids]
            assert ids == sorted(ids, key=lambda path: path[::-1])
            values = dict(zip(rows, level.counts[0 : len(rows)].tolist(), strict=True))
            wanted = dict(expected[size])
            if adjusted and size < order:
                left = Counter(gram[1:] for gram in one_by_one(records, size + 1)[size + 1])
                wanted = {g: n if g[0] == "<s>" else left[g] for g, n in wanted.items()}
            assert {gram: n for gram, n in values.items() if size > 1 or n} == wanted
            tally = Counter(n for n in wanted.values())
            assert level.of_counts[1:].tolist() == [tally[n] for n in (1, 2, 3, 4)]
            if adjusted and level.raws is not None:
                raws = dict(zip(rows, level.raws[0 : len(rows)].tolist(), strict=True))
                assert {gram: n for gram, n in raws.items() if size > 1 or n} == expected[size]
            if size > 2:
                assert level.contexts is not None
                before = paths(grams, size - 1)
                contexts = level.contexts[0 : len(rows)].tolist()
                assert [before[row] for row in contexts] == [path[:-1] for path in ids]


@given(corpora, st.integers(1, 7), st.sampled_from([0, 100, 1 << 24]), st.booleans())
def test_counts(records: list[list[str]], order: int, memory: int, adjusted: bool) -> None:
    check(records, order, memory, adjusted=adjusted)


@given(corpora, st.integers(2, 9), st.sampled_from([0, 1 << 24]), st.booleans())
def test_counts_in_many_small_parts(
    records: list[list[str]], order: int, memory: int, adjusted: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", 5)
        patch.setattr(module, "_LEAST_BLOCK", 2)  # there is memory for less or for more:
        patch.setattr(module, "_RUN_BLOCK", 3)
        patch.setattr(module._Counter, "_part_size", lambda self: 7)
        patch.setattr(module._Counter, "_group_size", lambda self: 9)
        check(records, order, memory, adjusted=adjusted)


@pytest.mark.parametrize(("most", "parts"), [(2, 2), (1 << 13, 10)])
def test_there_are_not_more_parts_than_can_be_numbered(
    monkeypatch: pytest.MonkeyPatch, most: int, parts: int
) -> None:
    monkeypatch.setattr(module, "_MOST_PARTS", most)
    with Store(0) as store:
        corpus = read(store, [[f"{number}" for number in range(39_999)]])
        counter = module._Counter(corpus, 2, store, 0, adjusted=False, raws=False)
        assert len(counter.parts) == parts


def test_words_by_frequency_then_code_point() -> None:
    with Store(1 << 20) as store:
        corpus = read(store, [["b", "中", "a"], ["Z", "b", "é"]])
        assert corpus.words.strings()[3:] == [b"b", b"Z", b"a", "é".encode(), "中".encode()]
        assert corpus.frequencies.tolist() == [0, 0, 2, 2, 1, 1, 1, 1]
        assert (corpus.records, corpus.events) == (2, 8)


def test_a_closed_vocabulary() -> None:
    with Store(1 << 20) as store:
        corpus = read(store, [["a", "b", "c"]], vocabulary=[b"c", b"x", b"a"])
        assert corpus.words.strings()[3:] == [b"a", b"c", b"x"]
        assert corpus.frequencies.tolist() == [1, 0, 1, 1, 1, 0]


@pytest.mark.parametrize("vocabulary", [[b"a"], [b"<unk>", b"a"]])
def test_a_closed_vocabulary_and_a_word_that_is_spelled_unk(vocabulary: list[bytes]) -> None:
    records = [["a", "<unk>", "b"], ["<unk>"]]
    with Store(1 << 20) as store:
        corpus = read(store, records, vocabulary=vocabulary, unk_as_word=True)
        assert corpus.words.strings()[3:] == [b"<unk>", b"a"]
        assert corpus.frequencies.tolist() == [1, 0, 2, 2, 1]
