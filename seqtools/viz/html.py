"""Heat maps of many records as one HTML page that needs nothing else.

The page is written from top to bottom, a record at a time: first its style and script, then the
list of records, in which each entry carries its matrices as JSON. A page that was cut short (or is
still being written) therefore shows what it has. The script draws a record when it is chosen; it
fetches nothing, and the page's own policy forbids it to.
"""

from __future__ import annotations

import html
import pkgutil
from typing import Any

from seqtools.streams.records import dumps
from seqtools.viz.heatmap import Attention, Heatmap, odd_rows, visible, visible_line

UNIT = 10_000
"""Weights are embedded as whole numbers of 1/UNIT, which is what the page can show."""


def start(title: str = "Attention") -> str:
    """Everything before the first record."""
    page = _asset("page.html")
    for name, text in (
        ("title", html.escape(title)),
        ("style", _asset("page.css")),
        ("script", _asset("page.js")),
    ):
        page = page.replace(f"<!--{name}-->", text)
    return page


def entry(number: int, attention: Attention | Heatmap, *, name: str = "") -> str:
    """One record: a line of the list, and its matrices.

    Args:
        number: of the record in its input.
        attention: all layers and heads, between which the page then chooses, or one matrix.
        name: the record's id, where it has one.
    """
    source = html.escape(" ".join(map(visible, attention.columns)))
    output = html.escape(" ".join(map(visible, attention.rows)))
    label = f"<b>{number}</b>" + (f" <i>{html.escape(visible_line(name))}</i>" if name else "")
    return (
        f'<li><a href="#{number}"><span>{label}</span>'
        f"<bdi>{source}</bdi><bdi>{output}</bdi></a>"
        f'<script type="application/json">{_embed(_data(attention))}</script></li>\n'
    )


def end() -> str:
    """Everything after the last record."""
    return "</ol></nav></body></html>\n"


def _data(attention: Attention | Heatmap) -> dict[str, Any]:
    """What the script needs: labels, and per layer and head the weights row by row."""
    if isinstance(attention, Heatmap):
        kind, weights = attention.caption, [[attention.values]]
    else:
        kind, weights = attention.kind, attention.weights
    return {
        "kind": kind,
        "rows": [visible(token) for token in attention.rows],
        "columns": [visible(token) for token in attention.columns],
        "weights": [
            [[round(UNIT * value) for row in matrix for value in row] for matrix in heads]
            for heads in weights
        ],
        # Sums cannot be told from rounded weights.
        "odd": [
            [
                {str(row): f"{total:.4g}" for row, total in odd_rows(matrix).items()}
                for matrix in heads
            ]
            for heads in weights
        ],
    }


def _embed(value: Any) -> str:
    """JSON that can stand inside a script element: no `<` that could end it or open a comment."""
    return dumps(value).decode("utf-8").replace("<", "\\u003c")


def _asset(name: str) -> str:
    data = pkgutil.get_data(__package__, name)
    assert data is not None
    return data.decode("utf-8")
