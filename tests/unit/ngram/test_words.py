"""Text to ids, on bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import FormatError
from seqtools.ngram.words import SPECIALS, Learner, Words, pack_tokens

token = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
records = st.lists(st.lists(token, max_size=6), max_size=8)


def strings(*words: str) -> list[bytes]:
    return [*SPECIALS, *(word.encode() for word in words)]


@given(records)
def test_tokens_come_back_as_they_were(given_records: list[list[str]]) -> None:
    learner = Learner()
    ids = learner.learn_packed(pack_tokens(given_records)).tolist()
    words = learner.words().strings()
    back: list[list[str]] = [[]]
    for number in ids:
        if number == 2:
            back.append([])
        else:
            back[-1].append(words[number].decode())
    special = {"<s>", "</s>"}
    assert back[:-1] == [[t if t not in special else "<unk>" for t in r] for r in given_records]
    again, ends = learner.words().encode_tokens(given_records)
    assert again.tolist() == [number for number in ids if number != 2]
    assert ends.tolist() == [
        sum(map(len, given_records[: i + 1])) for i in range(len(given_records))
    ]


@given(st.lists(st.text("ab \t\r\x0b\x0cé中𠮷", max_size=12), max_size=8))
def test_plain_lines_are_split_as_bytes_are(lines: list[str]) -> None:
    data = "".join(line + "\n" for line in lines).encode()
    learner = Learner()
    ids = learner.learn_text(data)
    words = learner.words()
    split = [line.encode().split() for line in lines]
    expected = [words.find(word) for line in split for word in [*line, b"</s>"]]
    assert ids.tolist() == expected
    found, ends = words.encode_text(data, mark=True)
    assert found.tolist() == expected
    assert len(ends) == len(lines)


def test_a_last_line_without_newline_counts() -> None:
    assert Learner().learn_text(b"a\nb").tolist() == [3, 2, 4, 2]


def test_many_words_make_the_tables_grow() -> None:
    names = [f"word{number}" for number in range(200_000)]
    learner = Learner()
    ids = learner.learn_text(" ".join(names).encode())
    assert ids.tolist() == [*range(3, 200_003), 2]
    words = learner.words()
    assert words.encode_text(" ".join(names).encode())[0].tolist() == list(range(3, 200_003))
    assert words.string(3 + 777) == b"word777"


def test_specials_in_the_text_are_unknown_and_counted() -> None:
    learner = Learner()
    assert learner.learn_text(b"<s> a </s> <unk> <UNK>").tolist() == [0, 3, 0, 0, 4, 2]
    assert (learner.spelled_unk, learner.spelled_marker) == (1, 2)


@pytest.mark.parametrize("unk_as_word", [False, True])
def test_specials_are_counted_where_the_words_are_known(unk_as_word: bool) -> None:
    added = [b"<unk>"] if unk_as_word else []
    words = Words.from_strings([*strings("a"), *added], unk_as_word=unk_as_word)
    spelled = np.array([10, 20])
    line = "<s> a </s> <unk> <UNK> z"
    words.encode_text(line.encode(), spelled=spelled)
    assert spelled.tolist() == [10 + (not unk_as_word), 22]
    words.encode_packed(pack_tokens([line.split(), ["<s> a"]]), spelled=spelled)
    assert spelled.tolist() == [10 + 2 * (not unk_as_word), 24]


def test_unk_can_be_a_word() -> None:
    learner = Learner(unk_as_word=True)
    assert learner.learn_text(b"<unk> a <s>").tolist() == [3, 4, 0, 2]
    words = learner.words()
    assert words.strings()[3] == b"<unk>"
    assert words.encode_text(b"<unk> b")[0].tolist() == [3, 0]


def test_words_that_are_not_there() -> None:
    words = Words.from_strings(strings("a", "b", ""))
    assert words.find(b"c") == -1
    assert words.find(b"") == 5
    assert words.encode_tokens([["c", "a", ""]])[0].tolist() == [0, 3, 5]
    assert words.encode_text(b"")[0].tolist() == []


def test_a_word_twice_is_refused() -> None:
    with pytest.raises(FormatError, match="'a' is there twice"):
        Words.from_strings(strings("a", "b", "a"))
