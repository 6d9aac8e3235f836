"""Keywords, held to what jieba.analyse gives for the same words."""

import copy
import importlib
import math
import random
import warnings
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import FormatError, RecordError
from seqtools.text.keywords import STOPWORDS, Wanted, best, read_stopwords
from seqtools.text.keywords.corpus import CorpusKeywords, Shape
from seqtools.text.keywords.idf import DocumentCounts, IdfTable, count_unknown
from seqtools.text.keywords.textrank import count_pairs, rank
from seqtools.text.keywords.tfidf import weigh

NOUNS = frozenset({"ns", "n", "vn", "v"})
# Some that are in jieba's table and some that are not, short ones and stop words.
WORDS = st.sampled_from(["故宫", "北京", "的", "The", "cat", "x", "梵葬", "大学", " 天", "生活"])


@pytest.fixture(scope="module")
def analyse():
    """jieba.analyse, which leaves its files open when it is loaded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("jieba.analyse")


@pytest.fixture(scope="module")
def table():
    return IdfTable.of_jieba()


def jieba_tags(analyse, tokens, path=None):
    """What `extract_tags` gives for a text that is cut into these tokens."""
    if path is None:
        made = copy.copy(analyse.default_tfidf)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = analyse.TFIDF(path)
    made.tokenizer = SimpleNamespace(cut=lambda text: tokens)
    return made.extract_tags("", topK=None, withWeight=True)


def jieba_ranks(analyse, tokens, pos):
    made = analyse.TextRank()
    pairs = [
        SimpleNamespace(word=token, flag=kind) for token, kind in zip(tokens, pos, strict=True)
    ]
    made.tokenizer = SimpleNamespace(cut=lambda text: pairs)
    return made.textrank("", topK=None, withWeight=True)


def test_the_stop_words_are_those_of_jieba(analyse):
    assert STOPWORDS == analyse.default_tfidf.STOP_WORDS


def test_the_table_is_that_of_jieba(analyse, table):
    values, median = analyse.default_tfidf.idf_loader.get_idf()
    assert table.values == values
    assert table.unknown == median


@given(tokens=st.lists(WORDS, max_size=30))
def test_tfidf_is_that_of_jieba(analyse, table, tokens):
    assert best(weigh(Wanted().choose(tokens), table), None) == jieba_tags(analyse, tokens)


@given(pairs=st.lists(st.tuples(WORDS, st.sampled_from(["n", "v", "uj"])), max_size=30))
def test_textrank_is_that_of_jieba(analyse, pairs):
    tokens, pos = [token for token, _ in pairs], [kind for _, kind in pairs]
    words = Wanted(pos=NOUNS).choose(tokens, pos)
    assert best(rank(count_pairs(words)), None) == jieba_ranks(analyse, tokens, pos)


def test_textrank_of_a_star_by_hand():
    # b is beside a and c, which are not beside each other; all weights are 1.
    a = b = c = 1 / 3
    for _ in range(10):
        a = 0.15 + 0.85 * b / 2
        b = 0.15 + 0.85 * (a + c)
        c = 0.15 + 0.85 * b / 2
    low, high = min(a, b, c) / 10, max(a, b, c)
    found = rank(count_pairs(["a", "b", "c"], span=2))
    assert found == pytest.approx(
        {word: (score - low) / (high - low) for word, score in zip("abc", (a, b, c), strict=True)}
    )


def test_words_that_are_not_keywords():
    wanted = Wanted(read_stopwords(["Cat\r", ""]), 3, frozenset({"n"}))
    tokens = ["cats", "CAT", "the", " ab ", "dogs"]
    assert wanted.choose(tokens, ["n", "n", "n", "n", "v"]) == ["cats", None, None, None, None]
    with pytest.raises(RecordError, match="5 tokens have 1 parts"):
        wanted.choose(tokens, ["n"])


def test_the_heaviest_come_first_and_ties_as_they_stand():
    assert best({"b": 1.0, "a": 1.0, "c": 2.0}, 2) == [("c", 2.0), ("b", 1.0)]


def records_of(corpus, **more):
    return [{"tokens": tokens, **more} for tokens in corpus]


CORPUS = [["a", "b", "a"], ["a", "c"], [], ["b", "d e"]]


def learn(records, **options):
    counts = DocumentCounts(**options)
    for number, record in enumerate(records, 1):
        counts.add(record, number)
    return counts


def test_idf_is_the_log_of_records_over_those_with_the_token():
    assert [*learn(records_of(CORPUS)).report()] == [
        {"token": "a", "documents": 2, "idf": math.log(4 / 2)},
        {"token": "b", "documents": 2, "idf": math.log(4 / 2)},
        {"token": "c", "documents": 1, "idf": math.log(4 / 1)},
        {"token": "d e", "documents": 1, "idf": math.log(4 / 1)},
    ]
    rare = learn(records_of(CORPUS), min_count=2)
    assert [entry["token"] for entry in rare.report()] == ["a", "b"]


@given(corpus=st.lists(st.lists(st.sampled_from("abcdef")), min_size=2), cut=st.integers(0, 9))
def test_idf_of_parts_is_idf_of_the_whole(corpus, cut):
    records = records_of(corpus)
    merged = DocumentCounts()
    for part in (records[:cut], records[cut:]):
        for state in learn(part).dump():
            merged.merge(state)
    assert [*merged.report()] == [*learn(records).report()]


def test_a_table_is_read_back_from_records_or_lines(tmp_path, analyse):
    from seqtools.streams.records import to_line

    entries = [*learn(records_of(CORPUS)).report()]
    (tmp_path / "ours").write_bytes(b"".join(map(to_line, entries)))
    ours = IdfTable.read(str(tmp_path / "ours"))
    assert ours.values == {entry["token"]: entry["idf"] for entry in entries}
    assert ours.unknown == math.log(4)

    lines = "故宫 2.5\n北京 1.5\n\n大学 4.25\n"
    (tmp_path / "jieba").write_text(lines.replace("\n\n", "\n"))
    (tmp_path / "lines").write_text(lines)
    tokens = ["故宫", "北京", "大学", "生活"]
    table = IdfTable.read(str(tmp_path / "lines"))
    expected = jieba_tags(analyse, tokens, str(tmp_path / "jieba"))
    assert best(weigh(tokens, table), None) == expected
    assert count_unknown([*tokens, None], table) == (4, 1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "no words"),
        ("a 1\nb\n", ":2: not a word"),
        ("a inf\n", ":1: the IDF is not finite"),
        ('{"token":"a"}\n', ":1: not a word"),
    ],
)
def test_what_is_no_table_is_named(tmp_path, data, message):
    path = tmp_path / "table"
    path.write_text(data)
    with pytest.raises(FormatError, match=message):
        IdfTable.read(str(path))


def gather(records, table, **options):
    whole = CorpusKeywords(Shape(), table, **options)
    for number, record in enumerate(records, 1):
        whole.add(record, number)
    return whole


LONGER = st.lists(
    st.lists(st.sampled_from(["故宫", "北京", "的", "cat", "梵葬", "大学"]), max_size=9),
    min_size=1,
    max_size=6,
)


@given(corpus=LONGER)
def test_tfidf_of_a_corpus_is_that_of_its_records_in_one(analyse, table, corpus):
    found = [*gather(records_of(corpus), table).report()]
    tokens = [token for tokens in corpus for token in tokens]
    counts = Counter(tokens)
    expected = sorted(jieba_tags(analyse, tokens), key=lambda pair: (-pair[1], pair[0]))
    assert [(row["token"], row["weight"]) for row in found] == expected
    assert all(row["count"] == counts[row["token"]] for row in found)


@given(corpus=LONGER)
def test_textrank_of_a_corpus_has_no_windows_across_records(analyse, corpus):
    found = {row["token"]: row["weight"] for row in gather(records_of(corpus), None).report()}
    tokens = [token for tokens in corpus for token in [*tokens, *["的"] * 5]]
    expected = jieba_ranks(analyse, tokens, ["n"] * len(tokens))
    assert found == pytest.approx(dict(expected), abs=1e-12)


@pytest.mark.parametrize("method", ["tfidf", "textrank"])
def test_classes_and_parts(table, method):
    rng = random.Random(1)
    words = ["故宫", "北京", "大学", "生活", "cat", "dog"]
    records = [
        {"tokens": rng.choices(words, k=6), "label": rng.choice("pq")} for _ in range(40)
    ]  # fmt: skip
    with_idf = table if method == "tfidf" else None
    whole = [*gather(records, with_idf, by="label", top=3).report()]
    alone = [
        {"label": label, **row}
        for label in "pq"
        for row in gather([r for r in records if r["label"] == label], with_idf, top=3).report()
    ]
    assert whole == alone
    assert len(whole) == 6
    merged = CorpusKeywords(Shape(), with_idf, by="label", top=3)
    for part in (records[1::2], records[::2]):
        for state in gather(part, with_idf, by="label").dump():
            merged.merge(state)
    assert [*merged.report()] == whole
