"""Precision, recall and F1 of words, and recall of unknown ones."""

import gzip
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import ConfigError, FormatError, InputError, RecordError
from seqtools.evaluation.segmentation import Segmentation, get_words, read_words

Words = list[str]


def score(
    *pairs: tuple[Words, Words], words: set[str] | None = None, lowercase: bool = False
) -> dict[str, Any]:
    known = None if words is None else frozenset(words)
    segmentation = Segmentation(known, lowercase=lowercase)
    for hypothesis, reference in pairs:
        segmentation.add(hypothesis, [reference])
    return segmentation.result()


def cut(text: str, borders: set[int]) -> Words:
    """The text cut before the characters of these numbers."""
    ends = [0, *sorted(borders), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(ends)]


def test_words_of_one_text() -> None:
    # Right: 研究 and 起源; the reference's 生命 is in neither word that crosses it.
    found = score((["研究", "生", "命", "起源"], ["研究", "生命", "起源"]), words={"研究", "生命"})
    assert found == {
        "metric": "segmentation", "score": 4 / 7, "precision": 2 / 4, "recall": 2 / 3,
        "correct": 2, "guessed": 4, "total": 3, "records": 1,
        "oov": 1, "oov_rate": 1 / 3, "oov_recall": 1.0, "iv_recall": 1 / 2,
    }  # fmt: skip


def test_equal_words_of_different_places_are_not_right() -> None:
    found = score((["a", "aa"], ["aa", "a"]))
    assert (found["correct"], found["score"]) == (0, 0.0)


def test_words_are_counted_over_all_texts() -> None:
    found = score((["ab"], ["ab"]), (["a", "b", "c"], ["abc"]), ([], []))
    assert (found["correct"], found["guessed"], found["total"]) == (1, 4, 2)
    assert (found["precision"], found["recall"], found["score"]) == (1 / 4, 1 / 2, 1 / 3)
    assert found["records"] == 3


def test_a_share_of_no_words_is_left_out() -> None:
    pair = (["a", "b"], ["a", "b"])
    none, every = score(pair, words=set()), score(pair, words={"a", "b"})
    assert (none["oov"], none["oov_recall"], "iv_recall" in none) == (2, 1.0, False)
    assert (every["oov"], every["iv_recall"], "oov_recall" in every) == (0, 1.0, False)
    assert not {"oov", "oov_rate", "oov_recall", "iv_recall"} & score(pair).keys()


def test_every_segmentation_against_every_other() -> None:
    """A word is right if both its borders stand on both sides, and none between them on either."""
    for text in ("aaaa", "abab", "𠮷ab野", "x"):
        inner = range(1, len(text))
        every = [set(c) for n in range(len(text)) for c in itertools.combinations(inner, n)]
        for guessed, meant in itertools.product(every, every):
            right = [
                text[start:end]
                for start, end in itertools.combinations(range(len(text) + 1), 2)
                if {start, end} <= (guessed & meant) | {0, len(text)}
                and not any(start < border < end for border in guessed | meant)
            ]
            words = {"a", "ab"}
            found = score((cut(text, guessed), cut(text, meant)), words=words)
            assert found["correct"] == len(right)
            assert found["precision"] == len(right) / (len(guessed) + 1)
            assert found["recall"] == len(right) / (len(meant) + 1)
            unknown = [word for word in cut(text, meant) if word not in words]
            assert found["oov"] == len(unknown)
            if unknown:
                hits = sum(word not in words for word in right)
                assert found["oov_recall"] == hits / len(unknown)


@st.composite
def two_segmentations(draw: st.DrawFn) -> tuple[Words, Words]:
    text = draw(st.text("ab 我ß", min_size=1, max_size=12))
    borders = st.sets(st.integers(1, len(text) - 1)) if len(text) > 1 else st.just(set())
    return cut(text, draw(borders)), cut(text, draw(borders))


@given(st.lists(two_segmentations(), min_size=1), st.sets(st.text("ab我", min_size=1, max_size=2)))
def test_sides_change_and_white_space_does_not_count(pairs: Any, words: set[str]) -> None:
    if not any("".join(reference).strip() for _, reference in pairs):
        with pytest.raises(RecordError, match="no reference has a word"):
            score(*pairs)
        return
    found = score(*pairs, words=words)
    turned = score(*((reference, hypothesis) for hypothesis, reference in pairs))
    assert (turned["precision"], turned["recall"]) == (found["recall"], found["precision"])
    assert turned["score"] == found["score"]
    bare = [tuple(["".join(w.split()) for w in side] for side in pair) for pair in pairs]
    assert score(*bare, words=words) == found
    whole = found["total"]
    hits = found.get("oov_recall", 0) * found["oov"]
    hits += found.get("iv_recall", 0) * (whole - found["oov"])
    assert hits == pytest.approx(found["correct"])
    assert score(*((reference, reference) for _, reference in pairs))["score"] == 1


def test_kept_blanks_are_no_words() -> None:
    spaced = (["New York", " ", "is", "\u3000", "大"], ["New", "York", "is", "大"])
    found = score(spaced)
    assert (found["correct"], found["guessed"], found["total"]) == (2, 3, 4)
    assert score(spaced, words={"NewYork", "is"})["oov"] == 3


def test_without_case() -> None:
    pair = (["ΑΣ", "B"], ["α", "σ", "b"])  # a sigma at a word's end is one inside it, too
    with pytest.raises(RecordError):
        score(pair)
    found = score(pair, words={"Σ"}, lowercase=True)
    assert (found["lowercase"], found["correct"], found["oov"]) == (True, 1, 2)


@pytest.mark.parametrize(
    ("hypothesis", "reference", "reason"),
    [
        (["ab", "d"], ["abc"], "character 3, without white space, it has 'd', the reference 'c'"),
        (["a", " ", "b"], ["abc"], "at character 3, .* it has nothing, the reference 'c'"),
        (["南京", "南京大学"], ["南京", "大学"], ".* 3, .* '南京大学', the reference '大学'"),
        ([], ["a"], "at character 1, .* it has nothing"),
        (["a" * 50], [], f"it has '{'a' * 10}', the reference nothing"),
    ],
)  # fmt: skip
def test_another_text_is_a_bad_record_that_counts_for_nothing(
    hypothesis: Words, reference: Words, reason: str
) -> None:
    segmentation = Segmentation()
    segmentation.add(["x"], [["x"]])
    before = segmentation.result()
    with pytest.raises(RecordError, match=reason):
        segmentation.add(hypothesis, [reference])
    assert segmentation.result() == before


def test_fields() -> None:
    record = {"tokens": ["a b", "c"], "text": "a b\u3000 c\n", "n": 1, "mixed": ["a", 1]}
    assert get_words(record, "tokens") == ["a b", "c"]
    assert get_words(record, "text") == ["a", "b", "c"]
    for field in ("n", "mixed", "none"):
        with pytest.raises(RecordError, match=f'"{field}"'):
            get_words(record, field)


def test_words_of_a_list(tmp_path: Any) -> None:
    path = tmp_path / "words.gz"
    path.write_bytes(gzip.compress("\ufeff大学\r\n\n New York \n{\n".encode()))
    assert read_words(str(path)) == {"大学", "NewYork", "{"}


@pytest.mark.parametrize("data", ["", "\n \n", '{"id":0,"token":"<unk>","special":"unk"}\n'])
def test_a_file_without_words(data: str, tmp_path: Any) -> None:
    (tmp_path / "none").write_text(data)
    with pytest.raises(FormatError, match="none: no words in it"):
        read_words(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("大学\t5\n北京\t1\n", {"大学", "北京"}),
        ("大学 5\n北京 1\r\n\n", {"大学", "北京"}),
        ("大学 5 n\n北京 1 ns\n", {"大学", "北京"}),
        ("New York\t5\nPort 80\t1\n", {"NewYork", "Port80"}),
        ("New York\nPort 80\n", {"NewYork", "Port80"}),
        ("1 2\n", {"1"}),
        ("Port 80\nword\n", {"Port80", "word"}),
    ],
)
def test_words_with_counts(data: str, words: set[str], tmp_path: Any) -> None:
    (tmp_path / "words").write_text(data, "utf-8")
    assert read_words(str(tmp_path / "words")) == words


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("word\tcount\nbig\t5\n", "words:1: a tab in a list of words"),
        ("big\nword\t5\n", "words:2: a tab in a list of words"),
        ('{"tokens":["a"]}\n', "words:1: no vocabulary entry"),
        ('{"id":0,"token":"a"}\n{"text":"a"}\n', "words:2: no vocabulary entry"),
    ],
)
def test_what_is_no_list_of_words(data: str, said: str, tmp_path: Any) -> None:
    (tmp_path / "words").write_text(data, "utf-8")
    with pytest.raises(InputError, match=said):
        read_words(str(tmp_path / "words"))


def test_advice_where_no_word_is_known() -> None:
    for words, advised in (({"x"}, True), ({"x", "a"}, False), (None, False)):
        known = None if words is None else frozenset(words)
        segmentation = Segmentation(known)
        assert segmentation.advice() is None
        segmentation.add(["a", "b"], [["a", "b"]])
        assert (segmentation.advice() is not None) == advised


def test_words_of_a_vocabulary(tmp_path: Any) -> None:
    path = tmp_path / "words.vocab"
    lines = ['{"id":0,"token":"<unk>","special":"unk"}', '{"id":1,"token":"New York","count":2}']
    path.write_text("\n".join(lines))
    assert read_words(str(path)) == {"NewYork"}
    path.write_text("\n".join([*lines, "word"]))
    with pytest.raises(InputError, match=r"words\.vocab:3: not JSON"):
        read_words(str(path))


def test_words_that_cannot_be_read(tmp_path: Any) -> None:
    with pytest.raises(ConfigError):
        read_words(str(tmp_path / "none"))
    (tmp_path / "latin").write_bytes(b"a\n\xe9\n")
    with pytest.raises(InputError, match="latin:2: not UTF-8"):
        read_words(str(tmp_path / "latin"))
