import numpy as np
import pytest
import torch

from seqtools.decoding.vectors import vectors
from seqtools.errors import RecordError
from seqtools.models.transformer_lm import TransformerLm, TransformerLmConfig
from seqtools.models.transformer_mlm import TransformerMlm, TransformerMlmConfig

ROWS = [[5, 1, 7, 2], [3], [6, 4]]


class Squares:
    """A vector of the id, its square and the segment; garbage past a row's length."""

    def encode(self, batch, *, attention=False):
        ids = batch.inputs.float()
        segments = torch.zeros_like(ids) if batch.segments is None else batch.segments.float()
        past = torch.arange(ids.shape[1]) >= batch.lengths[:, None]
        states = torch.stack([ids, ids**2, segments], dim=2)
        weights = {"encoder": torch.ones(len(ids), 1, 1, *[ids.shape[1]] * 2)} if attention else {}
        return states.masked_fill(past[..., None], torch.nan).double(), weights


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        ("mean", [[3.75, 19.75], [3, 9], [5, 26]]),
        ("cls", [[5, 25], [3, 9], [6, 36]]),
        ("last", [[2, 4], [3, 9], [4, 16]]),
    ],
)
def test_a_vector_a_row(pool, expected):
    found = vectors(Squares(), ROWS, pool=pool)
    assert [one.values[:2].tolist() for one in found] == expected
    assert {one.values.dtype for one in found} == {np.dtype(np.float32)}
    assert found[0].attention is None


def test_a_vector_a_place():
    found = vectors(Squares(), ROWS, pool="none")
    assert [one.values[:, 0].tolist() for one in found] == ROWS


def test_places_say_what_counts():
    places = [[1, 2], [0], [0]]

    def firsts(pool):
        return [
            one.values[..., 0].tolist()
            for one in vectors(Squares(), ROWS, pool=pool, places=places)
        ]

    assert firsts("mean") == [4, 3, 6]
    assert firsts("last") == [7, 3, 6]
    assert firsts("cls") == [5, 3, 6]
    assert firsts("none") == [[1, 7], [3], [6]]
    [one] = vectors(Squares(), [[1, 2]], pool="none", places=[[]])
    assert one.values.shape == (0, 3)


def test_segments_and_attention():
    found = vectors(
        Squares(), ROWS, pool="last", segments=[[0, 0, 1, 1], [0], [0, 0]], attention=True
    )
    assert [one.values[2] for one in found] == [1, 0, 0]
    assert [one.attention["encoder"].shape[2:] for one in found] == [(4, 4), (1, 1), (2, 2)]


def test_nothing_has_no_vector():
    with pytest.raises(RecordError, match="nothing to make a vector of"):
        vectors(Squares(), [[1], []])
    with pytest.raises(RecordError, match="no token to make a vector of"):
        vectors(Squares(), [[1]], places=[[]])
    with pytest.raises(ValueError, match="pool must be one of"):
        vectors(Squares(), [[1]], pool="max")


@pytest.mark.parametrize("pool", ["mean", "cls", "last", "none"])
def test_records_do_not_depend_on_their_neighbours(pool):
    model = TransformerMlm(TransformerMlmConfig(hidden=16, heads=2, layers=2), 12, seed=1).eval()
    for row, found in zip(ROWS, vectors(model, ROWS, pool=pool), strict=True):
        [alone] = vectors(model, [row], pool=pool)
        np.testing.assert_allclose(found.values, alone.values, atol=1e-5)


def test_attention_of_a_language_model_is_that_of_its_inputs():
    model = TransformerLm(TransformerLmConfig(hidden=16, heads=2, layers=2), 12, seed=1).eval()
    for row, one in zip(ROWS, vectors(model, ROWS, attention=True), strict=True):
        [alone] = vectors(model, [row], attention=True)
        assert list(one.attention) == ["decoder"]
        weights = one.attention["decoder"]
        assert weights.shape == (2, 2, len(row), len(row))
        np.testing.assert_allclose(weights, alone.attention["decoder"], atol=1e-5)
        np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
        assert (np.triu(weights, 1) == 0).all()
