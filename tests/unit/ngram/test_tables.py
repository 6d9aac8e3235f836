"""Tables of counts, against a dictionary that counts what `extraction.ngrams` gives."""

import resource
from collections import Counter as Tally

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import ConfigError, SeqtoolsError
from seqtools.ngram import tables
from seqtools.ngram.extraction import ngrams
from seqtools.ngram.storage import Store
from seqtools.ngram.tables import Counter, Sparsity
from seqtools.ngram.words import pack_tokens
from seqtools.streams.records import dumps

LARGE = 1 << 26


def tally(records, orders, padding):
    return Tally(tuple(gram) for tokens in records for gram in ngrams(tokens, orders, padding))


def as_lines(counts, min_count=1):
    """What a table must be: sorted as Python sorts lists of strings."""
    return b"".join(
        dumps({"ngram": list(gram), "count": count}) + b"\n"
        for gram, count in sorted(counts.items())
        if count >= min_count
    )


def table(records, orders, padding, *, heldout=None, min_count=1, memory=LARGE):
    with Store(memory) as store:
        counter = Counter(orders, padding, store)
        counter.add_packed(pack_tokens(records))
        if heldout is not None:
            counter.hold_out()
            counter.add_packed(pack_tokens(heldout))
        return b"".join(counter.lines(min_count)), counter


WORDS = ["a", "b", "ab", "a!", "", " ", '"', "\\", "\n", "\x01", "<", "=", "é", "𠮷", "\uffff"]
WORDS += ["<unk>", "𠮷" * 30]
RECORDS = st.lists(st.lists(st.sampled_from(WORDS), max_size=12), max_size=12)
ORDERS = st.lists(st.sampled_from([1, 2, 3, 4, 7, 20]), min_size=1, max_size=3, unique=True)
PADDINGS = st.sampled_from(["none", "one", "full"])


@given(RECORDS, ORDERS, PADDINGS, st.integers(1, 2), st.sampled_from([LARGE, 1]), st.data())
def test_the_same_as_a_dictionary(records, orders, padding, min_count, memory, data):
    part = data.draw(st.sampled_from([1, 3, 10, 300_000]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_PART", part)
        patch.setattr(tables, "_BLOCK", data.draw(st.sampled_from([1, 5, 1 << 19])))
        patch.setattr(tables, "_SAMPLES", data.draw(st.sampled_from([2, 4096])))
        found, counter = table(records, orders, padding, min_count=min_count, memory=memory)
    assert found == as_lines(tally(records, orders, padding), min_count)
    assert (counter.records, counter.tokens) == (len(records), sum(map(len, records)))


@given(RECORDS, RECORDS, ORDERS, PADDINGS, st.sampled_from([1, 4, 300_000]))
def test_sparsity(records, heldout, orders, padding, part):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_PART", part)
        found, counter = table(records, orders, padding, heldout=heldout)
    assert found == as_lines(tally(records, orders, padding))
    words = {token for tokens in records for token in tokens}
    for order, sparsity in zip(sorted(set(orders)), counter.sparsity(), strict=True):
        counts, others = tally(records, [order], padding), tally(heldout, [order], padding)
        assert sparsity == Sparsity(
            order,
            len(words) + (0 if padding == "none" else 2),
            counts.total(),
            len(counts),
            sum(count == 1 for count in counts.values()),
            others.total(),
            sum(count for gram, count in others.items() if gram not in counts),
        )
        assert sparsity.possible == sparsity.vocabulary**order


def test_one_n_gram_in_many_parts(monkeypatch):
    """A word so frequent that its n-grams fill several parts is still one unigram."""
    monkeypatch.setattr(tables, "_PART", 20)
    words = [f"w{number:03}" for number in range(100)]
    records = [["a", word, other] for word in words for other in ("x", "y")]
    found, counter = table(records, [1, 2, 3], "none", heldout=[["a", "b"]] * 30)
    counts = tally(records, [1, 2, 3], "none")
    assert found == as_lines(counts)
    assert counts[("a",)] == 200
    first, second, _ = counter.sparsity()
    assert (first.types, first.tokens, first.heldout, first.unseen) == (103, 600, 60, 30)
    assert (second.types, second.heldout, second.unseen) == (300, 30, 30)


def test_plain_lines():
    with Store(LARGE) as store:
        counter = Counter([2], "one", store)
        counter.add_text(b"a  b\ta\r\n\n")
        counter.add_text(b"a b")
        counts = tally([["a", "b", "a"], [], ["a", "b"]], [2], "one")
        assert b"".join(counter.lines()) == as_lines(counts)
    assert (counter.records, counter.tokens) == (3, 5)


def test_words_that_are_spelled_like_specials_are_words():
    records = [["<s>", "<unk>", "</s>"], ["<s>"]]
    assert table(records, [1, 2], "none")[0] == as_lines(tally(records, [1, 2], "none"))


def test_orders_and_memory_that_will_not_do(monkeypatch):
    with Store(LARGE) as store:
        for orders in ([0], [1, 100]):
            with pytest.raises(ConfigError, match="from 1 to 99"):
                Counter(orders, "none", store)
        counter = Counter([2], "none", store)
        counter.add_text(b"a b\n" * 100)
        store.memory = 0
        monkeypatch.setattr(Store, "free_disk", lambda self: 1000)
        with pytest.raises(SeqtoolsError, match=r"MiB are needed .*-T .*-S"):
            list(counter.lines())


@pytest.mark.parametrize("files", [0, 105, 1024, resource.RLIM_INFINITY])
def test_no_more_files_than_there_may_be(monkeypatch, files):
    monkeypatch.setattr(tables, "_PART", 1)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (files, files))
    opened = 0

    def open_file(store):
        nonlocal opened
        opened += 1
        return original(store)

    original = Store._open
    monkeypatch.setattr(Store, "_open", open_file)
    records = [[f"w{number % 997}", f"w{number % 991}"] for number in range(2000)]
    found, _ = table(records, [2], "none", memory=1, heldout=records)
    assert found == as_lines(tally(records, [2], "none"))
    texts = 3  # and the trial whether the folder can be written
    assert opened - texts <= 2 * {0: 1, 105: 2, 1024: 400}.get(files, 400)
    assert (opened - texts > 100) == (files in (1024, resource.RLIM_INFINITY))
