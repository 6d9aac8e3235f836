import pytest

from seqtools.errors import RecordError
from seqtools.text.convert.columns import conllu_layout
from seqtools.text.convert.conllu import Conllu
from seqtools.text.tags import Retag, Scheme

ALL = Conllu(conllu_layout(None))
SOME = Conllu(conllu_layout(["form", "upos"]))

# Sentences of the page on the format, universaldependencies.org/format.html: "vámonos al mar" with
# its ranges, and "Sue likes coffee and Bill tea" with its empty node.
SEA = """\
# sent_id = es
# newpar
# text = vámonos al mar
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\t_\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\t_\t_\t5\tcase\t_\t_
4\tel\tel\tDET\t_\t_\t5\tdet\t_\t_
5\tmar\tmar\tNOUN\t_\t_\t1\tobl\t_\tSpaceAfter=No
"""
TEA = """\
1\tSue\tSue\t_\t_\t_\t_\t_\t_\t_
2\tlikes\tlike\t_\t_\t_\t_\t_\t_\t_
3\tcoffee\tcoffee\t_\t_\t_\t_\t_\t_\t_
4\tand\tand\t_\t_\t_\t_\t_\t_\t_
5\tBill\tBill\t_\t_\t_\t_\t_\t_\t_
5.1\tlikes\tlike\t_\t_\t_\t_\t_\t_\t_
6\ttea\ttea\t_\t_\t_\t_\t_\t_\t_
"""
ODD = "".join(
    f"{name}\tx\t_\t_\t_\t_\t_\t_\t_\t_\n"
    for name in ("0.1", "0.2", "1", "1.1", "2-3", "2", "2.1", "3", "3.1", "3.2")
)


def test_ranges_are_kept_beside_the_words() -> None:
    record = ALL.read(SEA.encode())
    assert list(record)[:4] == ["sent_id", "newpar", "text", "tokens"]
    assert record["newpar"] is True
    assert record["tokens"] == ["vamos", "nos", "a", "el", "mar"]
    assert record["head"] == ["0", "1", "5", "5", "1"]
    assert record["misc"] == ["_", "_", "_", "_", "SpaceAfter=No"]
    assert record["ranges"] == [{"id": "1-2", "tokens": "vámonos"}, {"id": "3-4", "tokens": "al"}]
    assert "empty_nodes" not in record


def test_empty_nodes_are_kept_beside_the_words() -> None:
    record = ALL.read(TEA.encode())
    assert record["tokens"] == ["Sue", "likes", "coffee", "and", "Bill", "tea"]
    assert record["empty_nodes"] == [{"id": "5.1", "tokens": "likes", "lemma": "like"}]


@pytest.mark.parametrize("text", [SEA, TEA, ODD, "#\n# a  b\n" + TEA, "# text = \n" + TEA])
def test_a_file_comes_back(text: str) -> None:
    assert ALL.write(ALL.read(text.encode())) == text


def test_some_columns() -> None:
    record = SOME.read(SEA.encode())
    assert list(record) == ["sent_id", "newpar", "text", "tokens", "upos", "ranges"]
    assert SOME.write({"tokens": ["a"], "upos": ["DET"], "lemma": ["b"], "id": 7, "x": "y"}) == (
        "# x = y\n1\ta\t_\tDET\t_\t_\t_\t_\t_\t_\n"
    )
    assert ALL.write({"tokens": ["New York"]}) == "1\tNew York" + "\t_" * 8 + "\n"


@pytest.mark.parametrize(
    ("lines", "line", "reason"),
    [
        ("1 3", 1, "word 2 expected, got '3'"),
        ("2", 0, "word 1 expected, got '2'"),
        ("1 2-3 2", 0, "a range goes to word 3, but there are 2"),
        ("1-1 1", 0, "the range 1-1 has no two words"),
        ("1 3-4 2", 1, "word 2 expected, got '3-4'"),
        ("1-3 1 2-3 2 3", 2, "word 2 expected, got '2-3'"),
        ("1 1.2", 1, "word 2 expected, got '1.2'"),
        ("1-2 0.1 1 2", 1, "word 1 expected, got '0.1'"),
        ("1 x", 1, "word 2 expected, got 'x'"),
        ("0.1", 0, "a sentence without words"),
    ],
)
def test_lines_that_are_not_counted(lines: str, line: int, reason: str) -> None:
    raw = "".join(f"{name}\tx" + "\t_" * 8 + "\n" for name in lines.split())
    with pytest.raises(RecordError, match=reason) as caught:
        ALL.read(raw.encode())
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("ranges", "1-2", "must be a list of objects, got string"),
        ("ranges", [{"tokens": "x"}], 'each with an "id"'),
        ("ranges", [{"id": "1.1"}], "has the id '1.1'"),
        ("ranges", [{"id": "1-9"}], "has the id '1-9', which has no place"),
        ("ranges", [{"id": "1-2"}, {"id": "1-2"}], "which has no place"),
        ("ranges", [{"id": "1-2", "tokens": "a\tb"}], "a column cannot hold it"),
        ("empty_nodes", [{"id": "3.1"}], "which has no place"),
    ],
)
def test_ranges_and_empty_nodes_that_have_no_place(field: str, value, reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        ALL.write({"tokens": ["a", "b"], field: value})


def test_what_has_to_be_there() -> None:
    tags = Conllu(
        conllu_layout(["form", "tags=xpos", "lemma"]),
        change_tags=Retag(Scheme("iob1"), Scheme("iob2")),
    )
    assert tags.write({"tokens": ["a"], "tags": ["I-X"]}).startswith("1\ta\t_\t_\tB-X")
    lemma = Conllu(conllu_layout(["lemma"]))
    for conllu, record, name in (
        (tags, {"tokens": ["a"], "lemma": ["b"]}, "tags"),
        (tags, {"tags": ["O"]}, "tokens"),
        (lemma, {"tokens": ["a"]}, "lemma"),
    ):
        with pytest.raises(RecordError, match=f'"{name}" is missing'):
            conllu.write(record)


def test_a_comment_that_is_none() -> None:
    for key in ("a\nb", " a", "a = b", ""):
        with pytest.raises(RecordError, match="would not be read as this comment"):
            ALL.write({"tokens": ["a"], key: "x"})
    assert ALL.write({"tokens": ["a"], "": True, "b": True}).startswith("#\n# b\n1\ta")
