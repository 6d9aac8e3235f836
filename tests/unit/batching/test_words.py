import pytest

from seqtools.batching.words import Words
from seqtools.text.tokenizers.jieba import JiebaTokenizer
from seqtools.text.vocab import Vocabulary

CHARACTERS = Vocabulary(list("我们"), {})
PIECES = Vocabulary(["▁the", "re", "▁"], {})


def words(vocabulary, tokens):
    """The tokens of each word, joined."""
    found = []
    for token, begins in zip(tokens, Words(vocabulary).begins(tokens), strict=True):
        if begins:
            found.append("")
        found[-1] += token
    return found


def test_characters_are_put_together_as_jieba_cuts_them():
    text = "我来到北京清华大学，今天天气很好。"
    assert words(CHARACTERS, list(text)) == JiebaTokenizer().tokenize(text)
    assert "清华大学" in words(CHARACTERS, list(text))


def test_words_of_jieba_stay_as_they_are():
    tokens = JiebaTokenizer().tokenize("他来到了网易杭研大厦")
    assert words(CHARACTERS, tokens) == tokens


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (["▁the", "▁walk", "ing", "▁", "dead", "."], [1, 1, 0, 1, 0, 0]),
        (["cut", "off", "▁here"], [0, 0, 1]),  # the first word begins before the text does
        ([], []),
    ],
)
def test_a_word_of_pieces_begins_at_the_mark(tokens, expected):
    assert Words(PIECES).begins(tokens) == expected


def test_chinese_pieces_are_cut_by_jieba_and_the_rest_by_marks():
    tokens = ["▁", "我", "来到", "北", "京", "▁by", "tra", "in"]
    assert words(PIECES, tokens) == ["▁", "我", "来到", "北京", "▁bytrain"]


def test_without_chinese_jieba_is_not_loaded():
    found = Words(PIECES)
    found.begins(["▁the", "re"])
    assert found._jieba is None
