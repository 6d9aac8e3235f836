"""Heat maps as text."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from seqtools.viz.heatmap import Heatmap
from seqtools.viz.terminal import Colour, draw

SGR = re.compile(r"\x1b\[([\d;]*)m")


def test_shades() -> None:
    heatmap = Heatmap("cross", ["a", "bcd"], ["x", "yz", "w"], [[0.8, 0.2, 0.0], [0.4, 0.0, 0.6]])
    assert list(draw(heatmap)) == [
        "cross",
        "      y",
        "    x z w",
        "  a ██░░  ",
        "bcd ▒▒  ▓▓",
        "0   ░░▒▒▓▓██ 0.8",
    ]


def test_numbers() -> None:
    heatmap = Heatmap("cross", ["a"], ["x", "y", "z", "w"], [[1.0, 0.255, -0.07, 123.0]])
    assert list(draw(heatmap, numbers=True))[1:] == [
        "   x   y   z   w",
        "a!100  26  -7 ### ",
        "0   ░░▒▒▓▓██ 123",
        "! the row does not sum to 1",
    ]


def test_chinese_takes_two_cells() -> None:
    heatmap = Heatmap(
        "cross", ["中文", "a"], ["年", "月", "ab"], [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]
    )
    assert list(draw(heatmap))[1:-1] == [
        "         a",
        "     年月b",
        "中文 ██    ",
        "   a   ▒▒▒▒",
    ]


def test_marks_take_no_cell_and_emoji_two() -> None:
    heatmap = Heatmap("cross", ["e\u0301", "👩‍💻"], ["e\u0301", "👩‍💻"], [[1.0, 0.0], [0.0, 1.0]])
    assert list(draw(heatmap))[1:-1] == ["   e\u0301 👩‍💻", " e\u0301 ██  ", "👩‍💻   ██"]


def test_controls_are_escaped() -> None:
    heatmap = Heatmap("cross", ["\x1b[2J"], ["\n", "\u202e"], [[0.5, 0.5]])
    lines = list(draw(heatmap))
    assert all(line.isprintable() for line in lines)
    assert any("\\x1b[2J" in line for line in lines)


def test_columns_that_do_not_fit_go_on_below() -> None:
    columns = [f"c{i}" for i in range(70)]
    heatmap = Heatmap("cross", ["r"], columns, [[1 / 70] * 70])
    lines = list(draw(heatmap, width=80))
    assert [line for line in lines if line.startswith("columns")] == [
        "columns 1 to 39 of 70",
        "columns 40 to 70 of 70",
    ]
    assert [len(line) for line in lines if line.startswith("r ")] == [80, 2 + 2 * 31]


def test_long_labels_are_cut() -> None:
    heatmap = Heatmap("cross", ["r" * 50], ["c" * 50], [[1.0]])
    lines = list(draw(heatmap))
    assert "r" * 19 + "… ██" in lines
    assert len([line for line in lines if line.strip() == "c"]) == 11
    assert sum(line.strip() == "…" for line in lines) == 1


def test_nothing_to_draw() -> None:
    assert list(draw(Heatmap("cross", ["a"], [], [[]])))[1] == "(nothing to draw: no tokens)"
    assert list(draw(Heatmap("cross", [], ["a"], [])))[1] == "(nothing to draw: no tokens)"


def test_all_weights_zero() -> None:
    assert "a!    " in list(draw(Heatmap("cross", ["a"], ["x", "y"], [[0.0, 0.0]])))


@pytest.mark.parametrize("colour", ["truecolor", "256"])
def test_colours_end_where_they_begin(colour: Colour) -> None:
    heatmap = Heatmap("cross", ["a", "b"], ["x", "y"], [[1.0, 0.0], [0.5, 0.5]])
    for line in draw(heatmap, colour=colour):
        codes = SGR.findall(line)
        assert not codes or codes[-1] == "0"
    (first, second) = [line for line in draw(heatmap, colour=colour) if line[:2] in ("a ", "b ")]
    assert SGR.sub("", first) == "a     "
    # two colours and the end of colours; one colour for two equal weights
    assert (len(SGR.findall(first)), len(SGR.findall(second))) == (3, 2)


def test_colours_grow_lighter() -> None:
    values = [i / 20 for i in range(21)]
    heatmap = Heatmap("cross", ["r"], ["c"] * 21, [values])
    line = next(line for line in draw(heatmap, colour="truecolor") if line.startswith("r"))
    sums = [sum(map(int, code.split(";")[-3:])) for code in SGR.findall(line) if code != "0"]
    assert sums == sorted(set(sums))
    assert len(sums) == 21


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.text(max_size=6), min_size=1, max_size=3),
    columns=st.lists(st.text(max_size=6), min_size=1, max_size=30),
    width=st.integers(30, 60),
    numbers=st.booleans(),
)
def test_no_line_is_wider(rows: list[str], columns: list[str], width: int, numbers: bool) -> None:
    values = [[1 / len(columns)] * len(columns)] * len(rows)
    heatmap = Heatmap("cross", rows, columns, values)
    lines = list(draw(heatmap, width=width, numbers=numbers))
    assert max(map(cell_len, lines)) <= width
    assert not any("\x1b" in line or "\n" in line for line in lines)
