"""What models made of records, as the fields that are written.

Legend: L layers, H heads, T tokens produced, S source positions, I inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from seqtools.cli._attention_options import AttentionChoice
from seqtools.cli._decode_items import Item, Symbols
from seqtools.cli._encoding import Encoder
from seqtools.errors import ConfigError

if TYPE_CHECKING:
    from seqtools.decoding.hypothesis import Array, Hypothesis

    Weights = Mapping[str, Array]  # kind to (L, H, rows, columns), see models.protocols.Attention

Fields = dict[str, Any]
_MEANS = {"layers": (0,), "heads": (1,), "all": (0, 1)}


class Writer:
    """Makes fields of what a model found.

    Args:
        encoder: what the model's file says about records.
        attended: what is written of the attention.
    """

    def __init__(self, encoder: Encoder, attended: AttentionChoice) -> None:
        self.encoder = encoder
        self.attended = attended

    def hypotheses(self, item: Item, found: Sequence[Hypothesis], name: str) -> Fields:
        """The best tokens, and all hypotheses."""
        output = "tokens" if name == "text" else f"{name}_tokens"
        listed = []
        for one in found:
            value = {
                "tokens": self.encoder.vocabulary.decode(one.ids),
                "ids": one.ids,
                "logprob": np.float32(one.logprob),
                "score": np.float32(one.score),
                "token_logprobs": one.token_logprobs,
                "finished": one.finished,
            }
            value |= self.attention(item, one.ids, one.attention, ended=one.finished)
            listed.append(value)
        return {output: listed[0]["tokens"], "hypotheses": listed}

    def attention(
        self, item: Item, ids: list[int], weights: Weights | None, *, ended: bool = False
    ) -> Fields:
        """The fields of the attention and of the alignment, as far as they are asked for.

        Args:
            item: the record.
            ids: what was produced.
            weights: "cross" (L, H, T, S), "encoder" (L, H, S, S), "decoder" (L, H, I, I), with a
                row of "cross" for each of `ids` and for the end; those that there are.
            ended: the end was produced after `ids`.
        """
        encoder, fields = self.encoder, Fields()
        if self.attended.attention:
            end = [encoder.vocabulary.eos] if ended and encoder.vocabulary.eos is not None else []
            rows = ids + end
            value: Fields = {
                "rows": encoder.vocabulary.decode(rows),
                "inputs": encoder.vocabulary.decode(item.prefix + rows[:-1]),
            }
            if encoder.source_vocabulary is not None and item.source is not None:
                value["columns"] = encoder.source_vocabulary.decode(item.source)
            if weights:
                value |= select(weights, self.attended)
            elif rows:
                encoder.counts["without attention"] += 1
            fields["attention"] = value
        if self.attended.align:
            fields["alignment"] = self._alignment(item, ids, weights)
        return fields

    def text(self, item: Item, weights: Weights | None) -> Fields:
        """The attention of a text that is looked at as a whole, if it is asked for.

        Args:
            item: the record.
            weights: "encoder" or, of an lm, "decoder", each (L, H, I, I).
        """
        if not self.attended.attention:
            return {}
        inputs = "inputs" if self.encoder.task == "lm" else "columns"
        value: Fields = {inputs: self.encoder.vocabulary.decode(item.prefix)}
        if weights:
            value |= select(weights, self.attended)
        else:
            self.encoder.counts["without attention"] += 1
        return {"attention": value}

    def _alignment(self, item: Item, ids: list[int], weights: Weights | None) -> list[list[int]]:
        size = self.encoder.source_length(item)
        if not (ids and size):
            return []
        if weights is None or "cross" not in weights:
            raise ConfigError("--align needs a model that attends to a source")
        return align(
            weights["cross"][:, :, : len(ids), :size], self.attended, first=item.source_cut
        )


def select(weights: Weights, attended: AttentionChoice) -> Weights:
    """The layers and heads that are wanted of each kind, or their mean, which keeps all axes.

    A kind that has none of the layers wanted is left out.

    Raises:
        ConfigError: no kind has one of the layers or heads.
    """
    found: dict[str, Array] = {}
    for axis, name in enumerate(("layers", "heads")):
        wanted = getattr(attended, f"attention_{name}") or ()
        size = max(array.shape[axis] for array in weights.values())
        if max(wanted, default=0) >= size:
            raise ConfigError(f"--attention-{name}: the model has {size}, counted from 0")
    for kind, array in weights.items():
        array = _take(array, attended.attention_layers, attended.attention_heads)
        if attended.attention_mean is not None and array.size:
            array = array.mean(axis=_MEANS[attended.attention_mean], keepdims=True)
        if array.shape[0] and array.shape[1]:
            found[kind] = np.ascontiguousarray(array, dtype=np.float32)
    return found


def align(cross: Array, attended: AttentionChoice, *, first: int = 0) -> list[list[int]]:
    """Pairs [token, source token]: for each token, where the weight is highest.

    Args:
        cross: (L, H, T, S); the source's end is not among the columns.
        attended: which layers and heads count, as a mean; all heads of the last layer otherwise.
        first: number of the first source token.

    >>> align(np.array([[[[0.1, 0.9], [0.5, 0.5]]]]), AttentionChoice(align=True))
    [[0, 1], [1, 0]]
    """
    layers = attended.attention_layers or (cross.shape[0] - 1,)
    mean = select({"cross": cross}, AttentionChoice(True, layers, attended.attention_heads, "all"))[
        "cross"
    ]
    columns = mean[0, 0].argmax(axis=1) + first
    return [[row, column] for row, column in enumerate(columns.tolist())]


def listed(pairs: Sequence[tuple[int, float]], vocabulary: Symbols) -> list[Fields]:
    """Ids with their log P as a list of objects."""
    tokens = vocabulary.decode(number for number, _ in pairs)
    return [
        {"token": token, "id": number, "logprob": np.float32(logprob)}
        for token, (number, logprob) in zip(tokens, pairs, strict=True)
    ]


def _take(array: Array, *choices: tuple[int, ...] | None) -> Array:
    """Those of the first axes that are chosen and there."""
    for axis, chosen in enumerate(choices):
        if chosen is not None:
            array = array.take([one for one in chosen if one < array.shape[axis]], axis=axis)
    return array
