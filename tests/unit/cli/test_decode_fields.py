"""Attention and alignments as they are written."""

import numpy as np
import pytest

from seqtools.cli._attention_options import AttentionChoice
from seqtools.cli._decode_fields import Writer, align, select
from seqtools.cli._decode_items import Item
from seqtools.cli._encoding import Encoder
from seqtools.errors import ConfigError
from seqtools.models.description import Description
from seqtools.streams.files import Place
from seqtools.text.vocab import Vocabulary

# cross[layer][head][row][column] and the source's own, of fewer layers
CROSS = np.random.default_rng(0).random((3, 2, 4, 5)).astype(np.float32)
OWN = np.random.default_rng(1).random((2, 2, 5, 5)).astype(np.float32)


@pytest.mark.parametrize(
    ("attended", "cross", "own"),
    [
        (AttentionChoice(attention=True), CROSS, OWN),
        (AttentionChoice(True, (1, 2)), CROSS[1:], OWN[1:]),
        (AttentionChoice(True, (2,)), CROSS[2:], None),
        (AttentionChoice(True, None, (1,)), CROSS[:, 1:], OWN[:, 1:]),
        (AttentionChoice(True, (0,), (0,)), CROSS[:1, :1], OWN[:1, :1]),
        (AttentionChoice(True, None, None, "layers"), CROSS.mean(0)[None], OWN.mean(0)[None]),
        (
            AttentionChoice(True, (0, 1), None, "heads"),
            CROSS[:2].mean(1)[:, None],
            OWN.mean(1)[:, None],
        ),
        (AttentionChoice(True, (2,), None, "all"), CROSS[2].mean(0)[None, None], None),
    ],
)
def test_what_is_chosen(
    attended: AttentionChoice, cross: np.ndarray, own: np.ndarray | None
) -> None:
    found = select({"cross": CROSS, "encoder": OWN}, attended)
    np.testing.assert_allclose(found["cross"], cross, rtol=1e-6)
    assert found["cross"].flags.c_contiguous
    assert ("encoder" in found) == (own is not None)
    if own is not None:
        np.testing.assert_allclose(found["encoder"], own, rtol=1e-6)


def test_layers_and_heads_that_no_kind_has() -> None:
    with pytest.raises(ConfigError, match=r"^--attention-layers: the model has 3, counted from 0$"):
        select({"cross": CROSS, "encoder": OWN}, AttentionChoice(True, (3,)))
    with pytest.raises(ConfigError, match=r"^--attention-heads: the model has 2, counted from 0$"):
        select({"cross": CROSS}, AttentionChoice(True, None, (0, 2)))


def test_alignment_by_the_mean_of_the_last_layer_or_what_is_chosen() -> None:
    def pairs(matrix: np.ndarray) -> list[list[int]]:
        return [[row, max(range(5), key=lambda c: matrix[row, c])] for row in range(4)]

    assert align(CROSS, AttentionChoice(align=True)) == pairs(CROSS[2].mean(0))
    assert align(CROSS, AttentionChoice(False, (0,), (1,), align=True)) == pairs(CROSS[0, 1])
    assert align(CROSS, AttentionChoice(False, (0, 1), align=True)) == pairs(CROSS[:2].mean((0, 1)))
    # of equals the first
    assert align(np.ones((1, 1, 2, 3)), AttentionChoice(align=True), first=7) == [[0, 7], [1, 7]]


VOCABULARY = Vocabulary.build({"a": 3, "b": 2, "c": 1})
A, B, C = 4, 5, 6


def encoder(**batching: object) -> Encoder:
    vocabularies = {"source": VOCABULARY, "target": VOCABULARY}
    return Encoder(Description("transformer", "seq2seq", {}, vocabularies, batching, {}))


def test_the_fields_of_a_record() -> None:
    made = encoder()
    item = made.prompt(Place("f", 1, 1), b"", {"src_tokens": ["a", "b"]})
    cross = np.zeros((1, 1, 3, 3))
    cross[0, 0] = [[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.0, 0.0, 1.0]]
    writer = Writer(made, AttentionChoice(attention=True, align=True))
    fields = writer.attention(item, [C, A], {"cross": cross}, ended=True)
    assert list(fields) == ["attention", "alignment"]
    attention = fields["attention"]
    assert attention["rows"] == ["c", "a", "</s>"]
    assert attention["inputs"] == ["<s>", "c", "a"]
    assert attention["columns"] == ["a", "b", "</s>"]
    # the ends, of the output and of the source, are in no pair
    assert fields["alignment"] == [[0, 1], [1, 0]]


def test_alignments_count_in_the_record_where_the_source_was_cut() -> None:
    made = encoder(max_length=3, truncate="left")
    item = made.prompt(Place("f", 1, 1), b"", {"src_tokens": ["a", "b", "c", "a"]})
    cross = np.array([[[[0.9, 0.1, 0.0]]]])
    fields = Writer(made, AttentionChoice(align=True)).attention(item, [A], {"cross": cross})
    assert fields == {"alignment": [[0, 2]]}


def test_nothing_to_align() -> None:
    made = encoder()
    writer = Writer(made, AttentionChoice(align=True))
    empty = made.prompt(Place("f", 1, 1), b"", {"src_tokens": []})
    some = made.prompt(Place("f", 1, 1), b"", {"src_tokens": ["a"]})
    cross = np.ones((1, 1, 1, 2))
    assert writer.attention(empty, [A], {"cross": cross[..., :1]}) == {"alignment": []}
    assert writer.attention(some, [], {"cross": cross}, ended=True) == {"alignment": []}
    with pytest.raises(ConfigError, match="--align needs a model that attends to a source"):
        writer.attention(some, [A], None)


def test_a_model_without_attention_is_counted() -> None:
    made = encoder()
    item = Item(Place("f", 1, 1), b"", {}, [2], [A, 3])
    fields = Writer(made, AttentionChoice(attention=True)).attention(item, [A], None)
    assert fields == {"attention": {"rows": ["a"], "inputs": ["<s>"], "columns": ["a", "</s>"]}}
    assert made.counts["without attention"] == 1
