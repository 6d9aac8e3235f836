import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.text.tokenizers import word
from seqtools.text.tokenizers.word import WordTokenizer


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("cafe\u0301 noir", ["cafe\u0301", "noir"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("ไทยแลนด์", ["ไทยแลนด์"]),
        ("👨\u200d👩\u200d👧 ok", ["👨\u200d👩\u200d👧", "ok"]),
        ("👍🏽", ["👍🏽"]),
        ("🇨🇳🇺🇸", ["🇨🇳", "🇺🇸"]),
        ("❤️❤ 3\ufe0f\u20e3", ["❤\ufe0f", "❤", "3\ufe0f\u20e3"]),
        ("👍👍👍🏽", ["👍👍", "👍🏽"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("don't O'Brien’s dogs'", ["don't", "O'Brien’s", "dogs", "'"]),
        ("T-shirt mother-in-law -", ["T-shirt", "mother-in-law", "-"]),
        ("3.14 1,000.50 12:30 5.", ["3.14", "1,000.50", "12:30", "5", "."]),
        ("-5 5-3 a -b -7", ["-5", "5-3", "a", "-", "b", "-7"]),
        ("U.S. z.B. e.g. end.Next", ["U.S", ".", "z.B", ".", "e.g", ".", "end", ".", "Next"]),
        ("node.js me@home.org Q&A R & D", ["node.js", "me@home.org", "Q&A", "R", "&", "D"]),
        ("snake_case __init__", ["snake_case", "__init__"]),
        ("wait... --no-- !? ((x))", ["wait", "...", "--", "no", "--", "!", "?", "((", "x", "))"]),
        ("我用C++写3.14。", ["我", "用", "C", "++", "写", "3.14", "。"]),
        ("人々と東京タワー", ["人", "々", "と", "東", "京", "タワー"]),
        ("𠮷野家", ["𠮷", "野", "家"]),
        ("葛\U000e0100城", ["葛\U000e0100", "城"]),
        ("한국어 텍스트", ["한국어", "텍스트"]),
        ("\ufeffx", ["\ufeff", "x"]),
        ("a\x00b", ["a", "\x00", "b"]),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert WordTokenizer().tokenize(text) == tokens


def test_marks_are_learnt_and_change_nothing_else() -> None:
    tokenizer = WordTokenizer()
    before = tokenizer.tokenize("naïve e\u0301t 👍!")
    assert tokenizer.tokenize("क\u094dष") == ["क\u094dष"]
    assert tokenizer.tokenize("naïve e\u0301t 👍!") == before


@given(st.text(st.one_of(st.sampled_from("ab1_.,:'&@-! \n\x1c"), st.characters(max_codepoint=127))))
def test_ascii_has_a_pattern_of_its_own_that_finds_the_same(text: str) -> None:
    pattern = word._pattern(word._OFTEN, "")
    assert WordTokenizer().tokenize(text) == [found[0] for found in pattern.findall(text)]


@given(st.text(st.sampled_from("ab1_.,'’@-−!😀🏽\u200d\ufe0f\u0301é中🇨 \n\u3000\x1c")))
def test_no_rule_looks_across_white_space(text: str) -> None:
    tokenizer = WordTokenizer()
    pattern = tokenizer._pattern_for(text)
    assert tokenizer.tokenize(text) == [found[0] for found in pattern.findall(text)]


def test_what_is_remembered_of_a_text_has_bounds() -> None:
    tokenizer = WordTokenizer()
    tokenizer.to_json("x" * 1000)
    assert not tokenizer._parts
    words = [f"{number}!" for number in range(word._MOST + 10)]
    for _ in range(2):
        assert json.loads(tokenizer.to_json(" ".join(words)))[-2:] == [str(word._MOST + 9), "!"]
        assert len(tokenizer._parts) == word._MOST


@pytest.mark.parametrize("text", ["a" * 200_000, "." * 200_000, ".,-" * 70_000, "é\u0301" * 70_000])
def test_long_runs_take_no_longer_than_they_are_long(text: str) -> None:
    assert "".join(WordTokenizer().tokenize(text)) == text
