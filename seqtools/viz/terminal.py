"""Heat maps as lines of text, for a terminal of any width.

One cell of the map is two or more terminal cells wide. Without colour a weight is a shade,
` ░▒▓█`; with colour it is a background between two ends of one hue, dark for the lowest, so that
the picture reads the same on a dark and on a light terminal. Widths are those of the terminal: a
Chinese character or an emoji takes two cells, a combining mark none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from rich.cells import cell_len, split_graphemes

from seqtools.viz.heatmap import Heatmap, odd_rows, visible

Colour = Literal["truecolor", "256"]

_SHADES = " ░▒▓█"
_ROW_LABEL = 20  # cells at most for the tokens at the left
_COLUMN_LABEL = 12  # lines at most for the tokens on top
_NARROWEST = 30  # the scale needs as much
_RESET = "\x1b[0m"
# One hue, from dark to light in even steps of lightness (OKLab 0.24, 0.55, 0.92; 245 degrees).
_STOPS = ((19, 33, 45), (37, 118, 178), (206, 235, 255))
_PALETTE = (234, 236, 238, 24, 31, 38, 117, 195)  # the same among the 256 colours of xterm
_DARK_TEXT = 0.6  # from this share of the scale on, the background is light


def draw(
    heatmap: Heatmap, *, width: int = 80, colour: Colour | None = None, numbers: bool = False
) -> Iterator[str]:
    """The lines of one picture, without line ends, none wider than `width` cells.

    Columns that do not fit side by side go on below in further panels. Tokens along the top are
    written downwards. A label that is too long is cut and ends in `…`.

    Args:
        heatmap: what to draw.
        width: of the terminal, in cells; 30 at least.
        colour: escape sequences for so many colours; None for plain text.
        numbers: write each weight into its cell, in percent.
    """
    width = max(width, _NARROWEST)
    yield _cut(heatmap.caption, width)
    if not heatmap.rows or not heatmap.columns:
        yield "(nothing to draw: no tokens)"
        return
    rows = [visible(token) for token in heatmap.rows]
    columns = [visible(token) for token in heatmap.columns]
    label = min(max(map(cell_len, rows)), _ROW_LABEL, width // 3)
    cell = 4 if numbers else 2
    top = _scale_end(heatmap)
    odd = odd_rows(heatmap.values)
    names = [_right(_cut(name, label), label) for name in rows]
    per_panel = (width - label - 1) // cell
    for start in range(0, len(columns), per_panel):
        panel = slice(start, start + per_panel)
        if len(columns) > per_panel:
            yield f"columns {start + 1} to {min(start + per_panel, len(columns))} of {len(columns)}"
        for line in _column_labels(columns[panel], cell):
            yield " " * (label + 1) + line
        for index, (name, values) in enumerate(zip(names, heatmap.values, strict=True)):
            mark = "!" if index in odd else " "
            cells = _cells(values[panel], top, cell, colour, numbers=numbers)
            yield name + mark + cells
    yield _legend(top, colour)
    if odd:
        yield "! the row does not sum to 1"


def _scale_end(heatmap: Heatmap) -> float:
    """The weight at the strong end of the scale: the largest there is."""
    return max(0.0, *map(max, heatmap.values)) or 1.0


def _cells(
    values: Sequence[float], top: float, cell: int, colour: Colour | None, *, numbers: bool
) -> str:
    """One row of the map as text, `cell` terminal cells for each value."""
    parts, painted = [], ""
    for value in values:
        level = min(max(value / top, 0.0), 1.0)
        text = _percent(value, cell) if numbers else ""
        if colour is None:
            parts.append(text or _SHADES[round(level * (len(_SHADES) - 1))] * cell)
            continue
        paint = _paint(level, colour)
        parts.append(("" if paint == painted else paint) + (text or " " * cell))
        painted = paint
    return "".join(parts) + (_RESET if colour else "")


def _percent(value: float, cell: int) -> str:
    """The value in percent, right-aligned before a blank; `#` where it has too many digits."""
    text = f"{100 * value:.0f}"
    return (text if len(text) < cell else "#" * (cell - 1)).rjust(cell - 1) + " "


def _paint(level: float, colour: Colour) -> str:
    """The escape sequence for a cell's background, and for text that can be read on it."""
    text = "38;5;16" if level >= _DARK_TEXT else "38;5;255"
    if colour == "256":
        return f"\x1b[{text};48;5;{_PALETTE[round(level * (len(_PALETTE) - 1))]}m"
    half, share = divmod(level * (len(_STOPS) - 1), 1)
    low, high = _STOPS[int(half)], _STOPS[min(int(half) + 1, len(_STOPS) - 1)]
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(low, high, strict=True))
    return f"\x1b[{text};48;2;{red};{green};{blue}m"


def _column_labels(labels: Sequence[str], cell: int) -> list[str]:
    """The lines above a panel: each label written downwards, standing on the map."""
    stacks = [_stack(label) for label in labels]
    height = max(map(len, stacks))
    return [
        "".join(
            _centred(stack[line - height + len(stack)] if line >= height - len(stack) else "", cell)
            for stack in stacks
        ).rstrip()
        for line in range(height)
    ]


def _stack(label: str) -> list[str]:
    """The label's characters, with what combines with them, cut to the height there is."""
    spans, _ = split_graphemes(label)
    characters = [label[start:end] for start, end, _ in spans]
    if len(characters) > _COLUMN_LABEL:
        characters = [*characters[: _COLUMN_LABEL - 1], "…"]
    return characters


def _centred(character: str, cell: int) -> str:
    free = cell - cell_len(character)
    left = free // 2
    return " " * left + character + " " * (free - left)


def _right(text: str, width: int) -> str:
    return " " * (width - cell_len(text)) + text


def _cut(text: str, width: int) -> str:
    """The text in at most `width` cells, ending in `…` where it would be longer."""
    if cell_len(text) <= width:
        return text
    kept, used = 0, 0
    for _, end, size in split_graphemes(text)[0]:
        if used + size > width - 1:
            break
        kept, used = end, used + size
    return text[:kept] + "…"


def _legend(top: float, colour: Colour | None) -> str:
    """What the shades or colours stand for."""
    if colour is None:
        scale = "".join(shade * 2 for shade in _SHADES)
    else:
        scale = "".join(_paint(step / 8, colour) + "  " for step in range(9)) + _RESET
    return f"0 {scale} {top:.3g}"
