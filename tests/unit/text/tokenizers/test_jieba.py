import functools
import marshal
import os
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtools.errors import ConfigError, FormatError
from seqtools.text.tokenizers import jieba_dictionary
from seqtools.text.tokenizers.jieba import JiebaTokenizer

make = functools.cache(JiebaTokenizer)

# What jieba 0.42.1 gives with its own dictionary: precise, precise without HMM, full, search.
TEXTS = {
    "mix1": "我用C++写node.js程序，圆周率是3.14，占比23.4%。",
    "mix2": "iPhone15比iPad便宜20%，买2.5kg苹果",
    "mix3": "用Go和C#各写100行，速度v1.0.3快3.5倍",
    "mix4": "女性员工23,876人",
    "fw": "ＵＴＦ－８编码",
    "sp": "上海  自来水",
    "nl": "北京 大学\t生活\n好",
    "hmm": "王晓帅在苏电产业园上班",
    "srch": "南京航空航天大学的研究生",
    "empty": "",
    "ext": "㐂欢𠀀字",
}
PRECISE = {
    "mix1": "我用/C++/写/node/./js/程序/，/圆周率/是/3.14/，/占/比/23.4%/。",
    "mix2": "iPhone15/比/iPad/便宜/20%/，/买/2.5/kg/苹果",
    "mix3": "用/Go/和/C#/各写/100/行/，/速度/v1.0/./3/快/3.5/倍",
    "mix4": "女性/员工/23/,/876/人",
    "fw": "Ｕ/Ｔ/Ｆ/－/８/编码",
    "sp": "上海/自来水",
    "nl": "北京/大学/生活/好",
    "hmm": "王晓帅/在/苏电/产业园/上班",
    "srch": "南京航空航天大学/的/研究生",
    "empty": "",
    "ext": "㐂/欢/𠀀/字",
}
WITHOUT_HMM = {
    "mix1": "我/用/C++/写/node/./js/程序/，/圆周率/是/3/./14/，/占/比/23/./4/%/。",
    "mix2": "iPhone15/比/iPad/便宜/20/%/，/买/2/./5kg/苹果",
    "hmm": "王/晓/帅/在/苏/电/产业园/上班",
    "ext": "㐂/欢/𠀀/字",
}
FULL = {
    "sp": "上海/自来/自来水",
    "hmm": "王/晓/帅/在/苏/电/产业/产业园/上班",
    "srch": "南京/南京航空航天大学/航空/航空航天/空航/航天/天大/大学/的/研究/研究生",
    "empty": "",
}
SEARCH = {"srch": "南京/航空/空航/航天/天大/大学/南京航空航天大学/的/研究/研究生", "empty": ""}

DRAWN = st.text(
    st.one_of(st.sampled_from("南京航空天大学研究生的人民中国C++3.14%-# \n，。a"), st.characters())
)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, PRECISE),
        ({"hmm": False}, WITHOUT_HMM),
        ({"mode": "full"}, FULL),
        ({"mode": "search"}, SEARCH),
    ],
    ids=["precise", "no-hmm", "full", "search"],
)
def test_modes(options: dict[str, object], expected: dict[str, str]) -> None:
    tokenizer = make(**options)
    for name, tokens in expected.items():
        assert "/".join(tokenizer.tokenize(TEXTS[name])) == tokens, name


def test_white_space_is_kept_where_it_is_asked_for() -> None:
    assert make(keep_space=True).tokenize(TEXTS["sp"]) == ["上海", " ", " ", "自来水"]
    kept = make(keep_space=True).tokenize(TEXTS["nl"])
    assert kept == ["北京", " ", "大学", "\t", "生活", "\n", "好"]
    assert make(mode="full", keep_space=True).tokenize(TEXTS["sp"]).count(" ") == 2


def test_offsets_of_search_overlap() -> None:
    tokens, spans = make(mode="search").spans(TEXTS["srch"])
    assert tokens == SEARCH["srch"].split("/")
    assert [f"{start}-{end}" for start, end in spans] == (
        ["0-2", "2-4", "3-5", "4-6", "5-7", "6-8", "0-8", "8-9", "9-11", "9-12"]
    )


@pytest.mark.parametrize("mode", ["full", "search"])
@given(text=DRAWN)
@settings(deadline=None)
def test_offsets_agree_with_the_tokens(mode: str, text: str) -> None:
    tokens, spans = make(mode=mode).spans(text)
    assert tokens == make(mode=mode).tokenize(text)
    assert [text[start:end] for start, end in spans] == tokens


def test_full_offsets_where_a_token_comes_twice() -> None:
    tokens, spans = make(mode="full").spans("天天天 天天")
    assert tokens == make(mode="full").tokenize("天天天 天天")
    assert spans == sorted(spans)
    assert len(set(spans)) == len(spans)


def test_overlapping_tokens_have_no_way_back() -> None:
    assert make().join(["南京", "大学"]) == "南京大学"
    for mode in ("full", "search"):
        with pytest.raises(ConfigError, match=f"tokens of mode {mode} overlap"):
            make(mode=mode).join(["南京", "大学"])


def test_parts_of_speech_are_those_of_posseg() -> None:
    tokens, tags = make(pos=True).tag("他在 北京 工作。")
    assert tokens == ["他", "在", "北京", "工作", "。"]
    assert tags == ["r", "p", "ns", "vn", "x"]


def test_user_dictionaries(tmp_path) -> None:
    path = tmp_path / "words"
    lines = "Big Data平台 2000 n", "澜沁路 5", "", "李云青 3 nr", "《山海集》 10"
    path.write_text("\ufeff" + "\r\n".join(lines), encoding="utf-8")
    tokenizer = JiebaTokenizer(user_dict=[str(path)])
    assert tokenizer.unmatchable == {str(path): [(1, "Big Data平台"), (5, "《山海集》")]}
    assert tokenizer.tokenize("李云青去了澜沁路") == ["李云青", "去", "了", "澜沁路"]
    assert make().tokenize("李云青去了澜沁路") == ["李云青", "去", "了", "澜", "沁路"]
    assert tokenizer.tokenize("上线Big Data平台了") == ["上线", "Big", "Data", "平台", "了"]
    tagger = JiebaTokenizer(user_dict=[str(path)], pos=True)
    assert tagger.tag("李云青去了") == (["李云青", "去", "了"], ["nr", "v", "ul"])


def test_bad_user_dictionaries_are_named(tmp_path) -> None:
    path = tmp_path / "words"
    with pytest.raises(ConfigError, match="words: No such file"):
        JiebaTokenizer(user_dict=[str(path)])
    path.write_bytes("词 1\n".encode() + "词 1\n".encode("gbk"))
    with pytest.raises(FormatError, match="words:2: not UTF-8"):
        JiebaTokenizer(user_dict=[str(path)])


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and a short dictionary to put into it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    class Short:
        __version__ = "9"
        read = 0

        class Tokenizer:
            def get_dict_file(self):
                return None

            @staticmethod
            def gen_pfdict(file):
                Short.read += 1
                return {"词": 3}, 3

    return Short


def test_the_cache_is_private_and_used(cache, tmp_path) -> None:
    assert jieba_dictionary.words(cache) == ({"词": 3}, 3)
    assert jieba_dictionary.words(cache) == ({"词": 3}, 3)
    assert cache.read == 1
    folder = tmp_path / "cache" / "seqtools"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(list(folder.iterdir())) == 1


def test_a_damaged_cache_is_made_anew(cache, tmp_path) -> None:
    jieba_dictionary.words(cache)
    (path,) = (tmp_path / "cache" / "seqtools").iterdir()
    for content in (b"", path.read_bytes()[:-1], marshal.dumps(7)):
        path.write_bytes(content)
        assert jieba_dictionary.words(cache) == ({"词": 3}, 3)
    assert cache.read == 4


def test_a_cache_that_others_may_write_is_left_alone(cache, tmp_path) -> None:
    folder = tmp_path / "cache" / "seqtools"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert jieba_dictionary.words(cache) == ({"词": 3}, 3)
    assert list(folder.iterdir()) == []


def test_a_cache_of_somebody_else_is_left_alone(cache, tmp_path, monkeypatch) -> None:
    folder = tmp_path / "cache" / "seqtools"
    folder.mkdir(parents=True, mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    assert jieba_dictionary.words(cache) == ({"词": 3}, 3)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("base", ["/dev/null", "not/absolute"])
def test_no_place_for_a_cache_is_no_failure(cache, monkeypatch, base: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", base)
    assert jieba_dictionary.words(cache) == ({"词": 3}, 3)
    assert not os.path.exists("not")


def test_a_full_disk_is_no_failure(cache, tmp_path, monkeypatch) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    assert jieba_dictionary.words(cache) == ({"词": 3}, 3)
    assert list((tmp_path / "cache" / "seqtools").iterdir()) == []
