import pytest

from seqtools.errors import ConfigError
from seqtools.text.convert.columns import CONLLU, Layout, conllu_layout, plain_layout


@pytest.mark.parametrize(
    ("entries", "layout"),
    [
        ("tokens,pos,_,tags", Layout((("tokens", 0), ("pos", 1), ("tags", 3)), 4)),
        ("tokens,_,_", Layout((("tokens", 0),), 3)),
        ("tokens=2,tags=-1", Layout((("tokens", 1), ("tags", -1)), None)),
    ],
)
def test_columns_in_order_or_by_number(entries: str, layout: Layout) -> None:
    assert plain_layout(entries.split(",")) == layout


def test_how_many_columns_there_must_be() -> None:
    assert plain_layout(["a=2", "b=-4"]).least == 4
    assert plain_layout(["a=3", "b=-1"]).least == 3


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ("_,_", "no column becomes a field"),
        ("a,a", "names that differ: a,a"),
        ("a,", "names that differ"),
        ("a=1,b", "'b' is not FIELD=NUMBER"),
        ("a=0", "is not FIELD=NUMBER"),
        ("a=--1", "is not FIELD=NUMBER"),
        ("a=²", "is not FIELD=NUMBER"),
        ("=1", "names that differ"),
        ("docstart", "no column can be called 'docstart'"),
    ],
)
def test_columns_that_cannot_be(entries: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        plain_layout(entries.split(","))


def test_columns_of_conllu_by_name() -> None:
    assert conllu_layout(["form", "upos"]).taken == (("tokens", 1), ("upos", 3))
    assert conllu_layout(["tokens=form", "tags=upos"]).taken == (("tokens", 1), ("tags", 3))
    everything = conllu_layout(None)
    assert [place for _, place in everything.taken] == list(range(1, 10))
    assert [name for name, _ in everything.taken] == ["tokens", *CONLLU[2:]]
    with pytest.raises(ConfigError, match="no column of CoNLL-U is called 'pos'"):
        conllu_layout(["pos"])
    with pytest.raises(ConfigError, match="no column of CoNLL-U is called 'id'"):
        conllu_layout(["id"])


def test_columns_counted_from_the_last_cannot_be_written() -> None:
    with pytest.raises(ConfigError, match="count them from the first"):
        plain_layout(["a=1", "b=-1"]).check_writable()
