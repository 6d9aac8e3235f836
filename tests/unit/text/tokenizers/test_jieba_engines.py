"""The engine `auto` against jieba's own functions."""

import contextlib
import functools
import random
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seqtools.text.tokenizers import jieba_dictionary, jieba_native
from seqtools.text.tokenizers.jieba import JiebaTokenizer
from seqtools.text.tokenizers.jieba_hmm import UnknownWords
from seqtools.text.tokenizers.jieba_native import SYMBOL, NativeCutter, is_proved

JIEBA = jieba_dictionary.load()
make = functools.cache(functools.partial(JiebaTokenizer, keep_space=True))

SETTINGS = [(mode, hmm) for mode in ("precise", "search") for hmm in (True, False)]

# rjieba's own model gives another segmentation: its probabilities are rounded to six places.
ROUNDED = ["杯梧缳", "杯梧飣", "杯梧荦", "杯梧澗", "杯梧巋"]
# Of two ways that are equally probable the rounding of the sums decides.
TIES = ["丁税政", "上划上", "上变上", "上垒上", "一一一", "万万万"]
# Dictionary words with letters; letters and digits next to symbols; white space.
MIXED = [
    "我QQ号5：QQ号。AT&T和T恤，4S店的IP地址",
    "小S和大S去1号店C++c#A.B-c",
    "12.5kg 3.14% 1+1 v1.0.3",
    "a\r\nb\r\r\n\n\x1c\x1f\x85\u2028\u3000好\u200b",
    "node.js_v-2%的+86-10",
    "...---中.文-％＋ＡＢ１２",
]
# Han characters to rjieba, symbols to jieba; unknown to the model; no text that Rust could hold.
RARE = [
    "㐂欢䶿𠀀字",
    "\u9fd6鿿龥鿕\u9fd5\u9fd5",
    "\uf900車\ufaff\ufaff中",
    "好\U0002fa1f𠀀𠀀\U0002ebef\U0002ffff\U00030000\U00030000",
    "龦龧龨龩",
    "中\ud800\udfff文",
    SYMBOL,
    "",
]
# Words of the dictionary that do not pay: characters, unless a letter stands next to them.
UNPAID = ["一七", "一丸A", "A一久", "一义-一乡", "一亮，一停B，一划"]
# Ties that are decided by what stands behind, which for jieba is nothing: a symbol parts them.
PARTED = [
    "辨论辨\uf900翻手",
    "众数众\ufaff橡胶雨衣",
    "恋恋恋\u3400市场原油",
    "紧缚紧\u4dbf腰际",
    "惯纵惯\u9fd6百色市",
    "让售让\u9fff茫然失措",
    "辱国辱\U00020000商情报",
    "棺盖棺\U0002a6df组态王",
    "遍吻遍\U0002ebef红星区",
    "新妆新\U0002fa1f时移世变",
    "统统统\U0002f800陈大民",
]

HAN = st.characters(min_codepoint=0x4E00, max_codepoint=0x9FD5)
TEXTS = st.text(
    st.one_of(
        st.sampled_from("南京航空天大学研究生的人民中国一了不在T恤QC"),
        st.sampled_from("+#&._%-+#&._%-aZ09 \r\n\u3000，。Ａ１％é٣👍𠀀㐂鿿" + SYMBOL),
        HAN,
        st.characters(),
    ),
    max_size=24,
)


@functools.cache
def jieba():
    """jieba's own tokenizer."""
    cutter = JIEBA.Tokenizer()
    cutter.FREQ, cutter.total = jieba_dictionary.words(JIEBA)
    cutter.initialized = True
    return cutter


def reference(text: str, mode: str, *, hmm: bool) -> list[tuple[str, int, int]]:
    """By jieba's own functions."""
    return list(jieba().tokenize(text, mode="default" if mode == "precise" else mode, HMM=hmm))


def spans(tokens: list[str], offsets: list[tuple[int, int]]) -> list[tuple[str, int, int]]:
    return [(token, *span) for token, span in zip(tokens, offsets, strict=True)]


@contextlib.contextmanager
def arrays() -> Iterator[None]:
    """Every text is enough to be cut on arrays."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jieba_native, "_MANY", 0)
        patch.setattr(jieba_native, "_SEVERAL", 0)
        yield


@pytest.mark.parametrize(("mode", "hmm"), SETTINGS)
@pytest.mark.parametrize("engine", ["auto", "jieba"])
@given(text=TEXTS)
@example("".join(MIXED))
@example("".join(RARE))
@settings(deadline=None, max_examples=60)
def test_the_words_are_those_of_jieba(mode: str, engine: str, text: str, *, hmm: bool) -> None:
    tokenizer = make(mode=mode, hmm=hmm, engine=engine)
    expected = reference(text, mode, hmm=hmm)
    assert spans(*tokenizer.spans(text)) == expected
    assert tokenizer.tokenize(text) == [token for token, _, _ in expected]


@pytest.mark.parametrize(("mode", "hmm"), SETTINGS)
def test_hard_texts(mode: str, *, hmm: bool) -> None:
    tokenizer = make(mode=mode, hmm=hmm)
    for text in [*ROUNDED, *TIES, *MIXED, *RARE, *UNPAID, *PARTED]:
        assert spans(*tokenizer.spans(text)) == reference(text, mode, hmm=hmm), text


@pytest.mark.parametrize(("mode", "hmm"), SETTINGS)
@given(texts=st.lists(TEXTS, max_size=5))
@example([*MIXED, "", *ROUNDED, *TIES, *UNPAID, *PARTED])
@example(RARE)
@settings(deadline=None, max_examples=60)
def test_texts_that_are_cut_together(mode: str, texts: list[str], *, hmm: bool) -> None:
    tokenizer = make(mode=mode, hmm=hmm)
    expected = [reference(text, mode, hmm=hmm) for text in texts]
    with arrays():
        assert [spans(*each) for each in tokenizer.spans_all(texts)] == expected
    tokens = [[token for token, _, _ in each] for each in expected]
    assert tokenizer.tokenize_all(texts) == tokens


def test_near_ties_are_what_rjieba_gets_wrong() -> None:
    import rjieba

    for text in ROUNDED:
        assert rjieba.cut(text, True) != make().tokenize(text) == jieba().lcut(text)


def test_the_dictionaries_are_the_same() -> None:
    import rjieba

    counts, _ = jieba_dictionary.words(JIEBA)
    assert all(rjieba.has_word(word) == (count > 0) for word, count in counts.items())


@given(run=st.text(HAN, min_size=1, max_size=12))
@settings(deadline=None)
def test_unknown_words_are_those_of_finalseg(run: str) -> None:
    assert UnknownWords(JIEBA.finalseg).cut(run) == list(JIEBA.finalseg.cut(run))


def test_long_runs_of_unknown_words() -> None:
    draw = random.Random(3)
    common = [word for word in list(JIEBA.finalseg.emit_P["B"])[:900] if "一" <= word <= "龥"]
    text = "，".join("".join(draw.choices(common, k=size)) for size in (2, 63, 64, 65, 66, 300))
    every = "".join(map(chr, range(0x4E00, 0x9FD6)))
    text += "，".join([every[::7], *(every[start : start + 40] for start in range(0, 20000, 50))])
    cutter = NativeCutter(JIEBA, hmm=True)
    expected = jieba().lcut(text)
    assert cutter.cut(text) == expected
    with arrays():
        assert cutter.cut(text) == expected


def test_jieba_reads_no_dictionary_where_it_is_not_needed() -> None:
    tokenizer = JiebaTokenizer(mode="search")
    tokenizer.tokenize_all([*MIXED, *RARE])
    assert "_cutter" not in vars(tokenizer)


def test_what_was_not_compared_is_done_by_jieba(monkeypatch) -> None:
    assert is_proved(JIEBA)
    monkeypatch.setattr(jieba_native, "_RJIEBA", "0.1")
    assert not is_proved(JIEBA)
    tokenizer = JiebaTokenizer()
    assert tokenizer._native is None
    assert tokenizer.tokenize("王晓帅在上班") == ["王晓帅", "在", "上班"]


def test_a_dictionary_of_the_users_is_for_jieba(tmp_path) -> None:
    path = tmp_path / "words"
    path.write_text("澜沁路 5\n", encoding="utf-8")
    tokenizer = JiebaTokenizer(user_dict=[str(path)])
    assert tokenizer._native is None
    assert tokenizer.tokenize_all(["去了澜沁路", ""]) == [["去", "了", "澜沁路"], []]
