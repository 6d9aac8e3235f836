"""Attention of a decoded record as labelled matrices of floats: what the pictures draw.

rows: the tokens that attend, columns: the tokens attended to, values[row][column]: the weight
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from seqtools.errors import RecordError
from seqtools.streams.records import Record, get, get_tokens, name_of

# Kinds of attention in the order in which one is chosen, each with the fields that label its axes.
KINDS = {
    "cross": ("rows", "columns"),
    "encoder": ("columns", "columns"),
    "decoder": ("inputs", "inputs"),
}
TOLERANCE = 1e-3  # how far a row's sum may be from 1 without a warning
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"}  # categories of characters without a picture
_JOINERS = "\u200c\u200d"  # belong to the spelling of emoji, and of Indic and Persian words
_MOST = 1e6  # no weight, but still drawn; beyond it, a number is taken for a mistake

Matrix = list[list[float]]


@dataclass(frozen=True, slots=True)
class Heatmap:
    """One matrix to draw, with its axes.

    Attributes:
        caption: which attention it is, as in `cross, layer 2 of 6, mean of 8 heads`.
        rows, columns: the tokens along the axes, as they are.
        values: one list of weights per row, of `len(columns)` numbers.
    """

    caption: str
    rows: list[str]
    columns: list[str]
    values: Matrix


@dataclass(frozen=True, slots=True)
class Attention:
    """All matrices of one kind of attention of one hypothesis.

    Attributes:
        kind: `cross`, `encoder` or `decoder`.
        rows, columns: the tokens along the axes.
        weights: [layer][head][row][column].
    """

    kind: str
    rows: list[str]
    columns: list[str]
    weights: list[list[Matrix]]

    def pick(self, layer: int | None, head: int | None, *, mean: bool = False) -> Heatmap:
        """One matrix: of a layer and a head, both counted from 1, or a mean.

        Without `layer` it is the last one; without `head` it is the mean of the heads. With `mean`
        it is the mean of everything that `layer` and `head` leave open. The caption says which.

        Raises:
            RecordError: there is no such layer or head.
        """
        layers = len(self.weights)
        heads = len(self.weights[0])
        if layer is None and not mean:
            layer = layers
        chosen_layers = self.weights if layer is None else [_nth(self.weights, layer, "layer")]
        matrices = [
            matrix
            for matrices in chosen_layers
            for matrix in (matrices if head is None else [_nth(matrices, head, "head")])
        ]
        caption = [self.kind]
        if layers > 1:
            caption.append(_part("layer", layer, layers))
        if heads > 1:
            caption.append(_part("head", head, heads))
        return Heatmap(", ".join(caption), self.rows, self.columns, _mean(matrices))


def read_attention(record: Record, *, kind: str | None = None, hypothesis: int = 1) -> Attention:
    """The attention of a decoded record, checked.

    It is that of the given hypothesis, or the object at the record's top where there are none.

    Args:
        record: with `hypotheses` of which each has `attention`, or with `attention`.
        kind: one of `KINDS`; the first of them that is there when not given.
        hypothesis: which of the hypotheses, from 1.

    Raises:
        RecordError: there is none, or its matrices do not fit its tokens.
    """
    attention, place = _find(record, hypothesis)
    if type(attention) is not dict:
        raise RecordError(f'"{place}" must be an object, got {name_of(attention)}')
    if kind is None:
        kind = next((kind for kind in KINDS if kind in attention), None)
        if kind is None:
            raise RecordError(f'"{place}" has none of {", ".join(KINDS)}')
    elif kind not in attention:
        there = ", ".join(kind for kind in KINDS if kind in attention) or "none"
        raise RecordError(f'"{place}" has no {kind} attention, only: {there}')
    rows, columns = (get_tokens(attention, field) for field in KINDS[kind])
    weights = attention[kind]
    _check(weights, f"{place}.{kind}", len(rows), len(columns))
    return Attention(kind, rows, columns, weights)


def odd_rows(matrix: Matrix) -> dict[int, float]:
    """Index and sum of each row that is no distribution: sum not 1, or a weight below 0."""
    sums = ((index, row, sum(row)) for index, row in enumerate(matrix))
    return {
        index: total
        for index, row, total in sums
        if row and (abs(total - 1) > TOLERANCE or min(row) < 0)
    }


def doubt(picture: Attention | Heatmap) -> str | None:
    """One sentence about rows that are no distributions, if there are any."""
    odd = [
        (f"{caption}, row {index + 1} ({visible(picture.rows[index])})", total)
        for caption, matrix in _matrices(picture)
        for index, total in odd_rows(matrix).items()
    ]
    if not odd:
        return None
    where, total = odd[0]
    negative = ", with a weight below 0" if abs(total - 1) <= TOLERANCE else ", not to 1"
    more = f" (and {len(odd) - 1} more like it)" if len(odd) > 1 else ""
    return f"{where} sums to {total:.4g}{negative}{more}"


def _matrices(picture: Attention | Heatmap) -> Iterator[tuple[str, Matrix]]:
    if isinstance(picture, Heatmap):
        yield picture.caption, picture.values
        return
    for layer, heads in enumerate(picture.weights, 1):
        for head in range(1, len(heads) + 1):
            heatmap = picture.pick(layer, head)
            yield heatmap.caption, heatmap.values


def visible(token: str) -> str:
    """The token with everything that cannot be seen, or that steers a terminal, made visible.

    A blank is `␣`, an empty token `""`; controls, other blanks, direction marks and all format
    characters but joiners are escaped as in Python: `\\n`, `\\x1b`, `\\u202e`. A mark that would
    combine with what stands before the token gets a dotted circle.
    """
    if token.isalnum() and token.isascii():
        return token
    if not token:
        return '""'
    if not token.strip(_JOINERS):
        return _escaped(token)
    bare_mark = unicodedata.category(token[0]).startswith("M")
    return "◌" * bare_mark + "".join(map(_shown, token))


def visible_line(text: str) -> str:
    """The text as `visible` shows it, with its blanks as they are: an id, for a heading."""
    return " ".join(part and visible(part) for part in text.split(" "))


def _shown(character: str) -> str:
    if character == " ":
        return "␣"
    if unicodedata.category(character) in _UNSEEN and character not in _JOINERS:
        return _escaped(character)
    return character


def _escaped(text: str) -> str:
    return text.encode("unicode_escape").decode("ascii")


def _find(record: Record, hypothesis: int) -> tuple[Any, str]:
    """The attention object and how to name it in a message."""
    if "hypotheses" not in record:
        if "attention" in record:
            return record["attention"], "attention"
        raise RecordError('no "hypotheses" and no "attention": decode with --attention')
    hypotheses = get(record, "hypotheses")
    if type(hypotheses) is not list:
        raise RecordError(f'"hypotheses" must be a list, got {name_of(hypotheses)}')
    if len(hypotheses) < hypothesis:
        raise RecordError(f"hypothesis {hypothesis} was asked for, but there are {len(hypotheses)}")
    chosen = hypotheses[hypothesis - 1]
    place = f"hypotheses[{hypothesis - 1}]"
    if type(chosen) is not dict:
        raise RecordError(f'"{place}" must be an object, got {name_of(chosen)}')
    if "attention" not in chosen:
        raise RecordError(f'"{place}.attention" is missing: decode with --attention')
    return chosen["attention"], f"{place}.attention"


def _check(weights: Any, place: str, rows: int, columns: int) -> None:
    """See that `weights` is [layer][head][row][column] with the sizes of the axes."""
    for layer, heads in enumerate(_items(weights, place, "layers")):
        for head, matrix in enumerate(_items(heads, f"{place}[{layer}]", "heads")):
            here = f"{place}[{layer}][{head}]"
            if type(matrix) is not list or len(matrix) != rows:
                raise RecordError(f'"{here}" must have {rows} rows, got {_size(matrix)}')
            for index, row in enumerate(matrix):
                if type(row) is not list or len(row) != columns:
                    raise RecordError(
                        f'"{here}[{index}]" must have {columns} columns, got {_size(row)}'
                    )
                if not {*map(type, row)} <= {float, int} or max(map(abs, row), default=0) > _MOST:
                    raise RecordError(f'"{here}[{index}]" must hold weights, numbers from 0 to 1')
        if len(heads) != len(weights[0]):
            raise RecordError(
                f'"{place}" has {len(weights[0])} heads in one layer, {len(heads)} in another'
            )


def _items(value: Any, place: str, what: str) -> list[Any]:
    if type(value) is not list or not value:
        raise RecordError(f'"{place}" must be a list of {what}, got {_size(value)}')
    return value


def _size(value: Any) -> str:
    return str(len(value)) if type(value) is list else name_of(value)


def _nth(items: Sequence[Any], number: int, what: str) -> Any:
    if number > len(items):
        raise RecordError(f"{what} {number} was asked for, but there are {len(items)}")
    return items[number - 1]


def _part(what: str, number: int | None, count: int) -> str:
    return f"mean of {count} {what}s" if number is None else f"{what} {number} of {count}"


def _mean(matrices: Sequence[Matrix]) -> Matrix:
    """The mean of matrices of one shape; a single one as it is."""
    if len(matrices) == 1:
        return matrices[0]
    share = 1 / len(matrices)
    return [
        [sum(cells) * share for cells in zip(*rows, strict=True)]
        for rows in zip(*matrices, strict=True)
    ]
