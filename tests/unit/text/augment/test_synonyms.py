import gzip

import pytest

from seqtools.errors import ConfigError, FormatError, InputError
from seqtools.text.augment.synonyms import Synonyms, match_case, read_stopwords


def words(found):
    return [" ".join(pieces) for pieces in found]


@pytest.fixture
def dictionary(tmp_path):
    path = tmp_path / "words.tsv.gz"
    lines = [
        "quick\tfast speedy",
        "",
        "fast rapid quick",
        "living_thing organism being\r",
        "NATO\tpact",
    ]
    path.write_bytes(gzip.compress("\n".join([*lines, "我\t吾 俺"]).encode()))
    return Synonyms.read(str(path))


def test_entries_go_one_way_and_groups_all_ways(dictionary):
    assert words(dictionary.of("quick")) == ["fast", "rapid", "speedy"]
    assert words(dictionary.of("fast")) == ["rapid", "quick"]
    assert dictionary.of("speedy") == dictionary.of("unknown") == []
    assert dictionary.of("organism") == [("living", "thing"), ("being",)]
    assert words(dictionary.of("我")) == ["吾", "俺"]


def test_cilin_as_it_is(tmp_path):
    path = tmp_path / "cilin.txt"
    path.write_text("Aa01A01= 人 士 人物\r\nAa01B03# 良民 顺民\nAa01C07@ 角色\nAa01 x\n", "utf-8")
    synonyms = Synonyms.read(str(path))
    assert words(synonyms.of("士")) == ["人", "人物"]
    assert synonyms.of("良民") == synonyms.of("Aa01A01=") == synonyms.of("角色") == []
    assert words(synonyms.of("x")) == ["Aa01"]
    path.write_text("Aa01B03# 良民 顺民\n", "utf-8")
    with pytest.raises(FormatError, match="no synonyms in it"):
        Synonyms.read(str(path))


def test_case_is_kept(dictionary):
    assert words(dictionary.of("Quick")) == ["Fast", "Rapid", "Speedy"]
    assert words(dictionary.of("QUICK")) == ["FAST", "RAPID", "SPEEDY"]
    assert dictionary.of("Being") == [("Living", "thing"), ("Organism",)]
    assert words(dictionary.of("NATO")) == ["pact"]
    assert dictionary.of("nato") == []


@pytest.mark.parametrize(
    ("token", "made"),
    [("Big", "Large"), ("BIG", "LARGE"), ("big", "large"), ("I", "Large"), ("iBig", "large")],
)
def test_case(token, made):
    assert match_case(token, ("large",)) == (made,)


def test_words_that_are_not_there_are_not_kept():
    synonyms = Synonyms(groups=[["big", "large"]])
    for token in ("Big", *map(str, range(100))):
        synonyms.of(token)
    assert set(synonyms._found) == {"Big"}


def test_underscores_alone_are_a_token():
    assert Synonyms(entries=[("a", ["_", "b_", "_c_d"])]).of("a") == [("_",), ("b",), ("c", "d")]


@pytest.mark.parametrize(
    ("data", "error", "said"),
    [
        (b"a b\na\tb\tc\n", InputError, "2: more than one tab"),
        (b"a\xff b\n", InputError, "1: not UTF-8"),
        (b"\nalone\na\t\n", FormatError, "no synonyms in it"),
        (b"", FormatError, "no synonyms in it"),
    ],
)
def test_files_that_are_no_dictionary(tmp_path, data, error, said):
    path = tmp_path / "d"
    path.write_bytes(data)
    with pytest.raises(error, match=said):
        Synonyms.read(str(path))


def test_a_file_that_is_not_there(tmp_path):
    for read in (Synonyms.read, read_stopwords):
        with pytest.raises(ConfigError, match="No such file"):
            read(str(tmp_path / "d"))


def test_stop_words(tmp_path):
    path = tmp_path / "d"
    path.write_text("The\r\n\n of \n的\n", "utf-8")
    assert read_stopwords(str(path)) == {"the", "of", "的"}
