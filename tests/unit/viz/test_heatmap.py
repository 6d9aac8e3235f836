"""Reading, checking and choosing attention matrices."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import RecordError
from seqtools.streams.records import Record
from seqtools.viz.heatmap import (
    Attention,
    Heatmap,
    doubt,
    odd_rows,
    read_attention,
    visible,
    visible_line,
)

ROWS, COLUMNS = ["x", "</s>"], ["a", "b", "</s>"]
MATRIX = [[0.5, 0.25, 0.25], [0.0, 1, 0.0]]


def record(**attention: object) -> Record:
    return {"hypotheses": [{"attention": {"rows": ROWS, "columns": COLUMNS, **attention}}]}


def test_of_the_best_hypothesis() -> None:
    read = read_attention(record(cross=[[MATRIX]]))
    assert read == Attention("cross", ROWS, COLUMNS, [[MATRIX]])
    assert read.pick(None, None) == Heatmap("cross", ROWS, COLUMNS, MATRIX)


def test_of_another_hypothesis() -> None:
    both = {"hypotheses": [{}, record(cross=[[MATRIX]])["hypotheses"][0]]}
    assert read_attention(both, hypothesis=2).weights == [[MATRIX]]
    with pytest.raises(RecordError, match="hypothesis 3 was asked for, but there are 2"):
        read_attention(both, hypothesis=3)
    with pytest.raises(RecordError, match=r'"hypotheses\[0\].attention" is missing: decode with'):
        read_attention(both)


def test_at_the_top_of_a_record() -> None:
    square = [[1.0, 0.0], [0.5, 0.5]]
    top = {"attention": {"inputs": ["<s>", "x"], "decoder": [[square]]}}
    read = read_attention(top)
    assert (read.kind, read.rows, read.columns) == ("decoder", ["<s>", "x"], ["<s>", "x"])


def test_the_kinds_come_in_an_order() -> None:
    square = [[1.0, 0.0, 0.0]] * 3
    both = record(encoder=[[square]], cross=[[MATRIX]])
    assert read_attention(both).kind == "cross"
    assert read_attention(both, kind="encoder").rows == COLUMNS
    with pytest.raises(RecordError, match="has no decoder attention, only: cross, encoder"):
        read_attention(both, kind="decoder")


def weights(layers: int, heads: int) -> list[list[list[list[float]]]]:
    """One row of two columns: the layer and the head, counted from 1."""
    return [[[[float(i), float(j)]] for j in range(1, heads + 1)] for i in range(1, layers + 1)]


@pytest.mark.parametrize(
    ("layer", "head", "mean", "caption", "values"),
    [
        (None, None, False, "cross, layer 2 of 2, mean of 3 heads", [2, 2]),
        (None, None, True, "cross, mean of 2 layers, mean of 3 heads", [1.5, 2]),
        (1, None, False, "cross, layer 1 of 2, mean of 3 heads", [1, 2]),
        (1, 3, False, "cross, layer 1 of 2, head 3 of 3", [1, 3]),
        (None, 3, False, "cross, layer 2 of 2, head 3 of 3", [2, 3]),
        (None, 3, True, "cross, mean of 2 layers, head 3 of 3", [1.5, 3]),
    ],
)
def test_picks(
    layer: int | None, head: int | None, mean: bool, caption: str, values: list[float]
) -> None:
    picked = Attention("cross", ["r"], ["l", "h"], weights(2, 3)).pick(layer, head, mean=mean)
    assert picked.caption == caption
    assert picked.values[0] == pytest.approx(values)


def test_there_is_no_such_layer_or_head() -> None:
    attention = Attention("cross", ["r"], ["l", "h"], weights(2, 3))
    with pytest.raises(RecordError, match="layer 3 was asked for, but there are 2"):
        attention.pick(3, None)
    with pytest.raises(RecordError, match="head 4 was asked for, but there are 3"):
        attention.pick(None, 4)


@pytest.mark.parametrize(
    ("attention", "message"),
    [
        (None, '"hypotheses[0].attention" must be an object, got null'),
        ({}, '"hypotheses[0].attention" has none of cross, encoder, decoder'),
        ({"cross": []}, '"rows" is missing'),
        ({"rows": ROWS, "columns": "ab", "cross": []}, '"columns" must be a list of strings'),
        ({"cross": 3}, '"hypotheses[0].attention.cross" must be a list of layers, got number'),
        ({"cross": []}, '"hypotheses[0].attention.cross" must be a list of layers, got 0'),
        ({"cross": [[]]}, '"hypotheses[0].attention.cross[0]" must be a list of heads, got 0'),
        (
            {"cross": [[MATRIX[:1]]]},
            '"hypotheses[0].attention.cross[0][0]" must have 2 rows, got 1',
        ),
        (
            {"cross": [[[[0.5, 0.5], MATRIX[1]]]]},
            '"hypotheses[0].attention.cross[0][0][0]" must have 3 columns, got 2',
        ),
        (
            {"cross": [[MATRIX], [[MATRIX[0], [True, 0, 0]]]]},
            '"hypotheses[0].attention.cross[1][0][1]" must hold weights',
        ),
        ({"cross": [[[MATRIX[0], [10**400, 0, 0]]]]}, "must hold weights, numbers from 0 to 1"),
        ({"cross": [[MATRIX, MATRIX], [MATRIX]]}, "has 2 heads in one layer, 1 in another"),
    ],
)
def test_refuses(attention: object, message: str) -> None:
    if isinstance(attention, dict) and attention and message != '"rows" is missing':
        attention = {"rows": ROWS, "columns": COLUMNS, **attention}
    with pytest.raises(RecordError) as caught:
        read_attention({"hypotheses": [{"attention": attention}]})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({}, 'no "hypotheses" and no "attention": decode with --attention'),
        ({"hypotheses": {}}, '"hypotheses" must be a list, got object'),
        ({"hypotheses": []}, "hypothesis 1 was asked for, but there are 0"),
        ({"hypotheses": [7]}, '"hypotheses[0]" must be an object, got number'),
    ],
)
def test_refuses_records(bad: Record, message: str) -> None:
    with pytest.raises(RecordError) as caught:
        read_attention(bad)
    assert str(caught.value).startswith(message)


def test_rows_that_are_no_distributions() -> None:
    assert odd_rows([[0.5, 0.5], [0.5, 0.4985], [0.5, 0.4995], [1.5, -0.5], []]) == {
        1: pytest.approx(0.9985),
        3: 1.0,
    }


def test_doubts_name_the_matrix_and_the_row() -> None:
    good, bad = [[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.1]]
    attention = Attention("cross", ["x", "y"], ["a", "b"], [[good, bad], [bad, good]])
    assert doubt(attention) == (
        "cross, layer 1 of 2, head 2 of 2, row 2 (y) sums to 0.6, not to 1 (and 1 more like it)"
    )
    assert doubt(attention.pick(1, 1)) is None
    assert doubt(attention.pick(2, 1)) == (
        "cross, layer 2 of 2, head 1 of 2, row 2 (y) sums to 0.6, not to 1"
    )


def test_a_negative_weight_is_a_doubt() -> None:
    assert doubt(Heatmap("cross", ["x"], ["a", "b"], [[1.5, -0.5]])) == (
        "cross, row 1 (x) sums to 1, with a weight below 0"
    )


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("the", "the"),
        ("中文", "中文"),
        ("▁the", "▁the"),
        ("", '""'),
        (" ", "␣"),
        ("a b", "a␣b"),
        ("\n", "\\n"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x9b", "\\x9b"),
        ("\u00a0", "\\xa0"),
        ("\u3000", "\\u3000"),
        ("\u202e", "\\u202e"),
        ("\u2028", "\\u2028"),
        ("\ufeff", "\\ufeff"),
        ("\u200d", "\\u200d"),
        ("cafe\u0301", "cafe\u0301"),
        ("\u0301", "◌\u0301"),
        ("👩‍💻", "👩‍💻"),
        ("𠮷", "𠮷"),
    ],
)
def test_visible(token: str, shown: str) -> None:
    assert visible(token) == shown


def test_visible_lines_keep_their_blanks() -> None:
    assert visible_line(" a  \tb\x1b") == " a  \\tb\\x1b"
    assert visible_line("") == ""


@given(st.text(max_size=5))
def test_visible_labels_steer_nothing(token: str) -> None:
    shown = visible(token)
    assert shown
    unseen = {"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"}
    seen = shown.replace("\u200c", "").replace("\u200d", "")
    assert not unseen & set(map(unicodedata.category, seen))
