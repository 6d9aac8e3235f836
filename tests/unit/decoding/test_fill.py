import math

import numpy as np
import pytest
import torch

from seqtools.decoding.fill import fill, likeliest
from seqtools.errors import RecordError
from seqtools.models.transformer_mlm import TransformerMlm, TransformerMlmConfig

MASK = 4


class Filler:
    """Likes the id that is the place's column plus the row's first id; attends to columns."""

    def fill_logprobs(self, batch, places, *, attention=False):
        self.batch = batch
        rows, columns = places // batch.inputs.shape[1], places % batch.inputs.shape[1]
        wanted = batch.inputs[rows, 0] + columns
        logprobs = torch.full((len(places), 9), 0.05).log()
        logprobs[torch.arange(len(places)), wanted] = math.log(0.6)
        width = batch.inputs.shape[1]
        table = torch.arange(width).float().expand(len(batch.inputs), 1, 2, width, width)
        return logprobs, {"encoder": table} if attention else {}


def test_each_gap_has_its_likeliest_tokens_in_order():
    model = Filler()
    found = fill(model, [[1, MASK, 5, MASK], [3, 2], [2, MASK]], [[1, 3], [], [1]], 3)
    assert [len(one.candidates) for one in found] == [2, 0, 1]
    first, second = found[0].candidates
    assert first == [(2, pytest.approx(math.log(0.6))), *second_best(first, [0, 1])]
    assert second[0][0] == 4
    assert found[2].candidates[0][0][0] == 3
    assert found[0].attention is None
    assert model.batch.inputs.tolist() == [[1, 4, 5, 4], [3, 2, 0, 0], [2, 4, 0, 0]]
    assert model.batch.lengths.tolist() == [4, 2, 2]
    assert model.batch.segments is None


def second_best(pairs, ids):
    assert [number for number, _ in pairs[1:]] == ids
    return [(number, pytest.approx(math.log(0.05))) for number in ids]


def test_segments_and_attention():
    model = Filler()
    rows, segments = [[1, MASK, 5], [2, MASK]], [[0, 0, 1], [0, 1]]
    found = fill(model, rows, [[1], [1]], 1, segments=segments, attention=True)
    assert model.batch.segments.tolist() == [[0, 0, 1], [0, 1, 0]]
    assert [one.attention["encoder"].shape for one in found] == [(1, 2, 3, 3), (1, 2, 2, 2)]
    assert (found[1].attention["encoder"] == np.arange(2)).all()


def test_what_is_banned_is_left_out_and_nothing_is_renormalised():
    [found] = fill(Filler(), [[1, MASK]], [[1]], 2, banned=[2, 0])
    assert [number for number, _ in found.candidates[0]] == [1, 3]
    assert math.exp(found.candidates[0][0][1]) == pytest.approx(0.05)


def test_no_more_than_is_possible():
    row = torch.tensor([[-math.inf, -1.0, -math.inf, -0.5]])
    assert [number for number, _ in likeliest(row, 9)[0]] == [3, 1]
    assert likeliest(row[:0], 3) == []


@pytest.mark.parametrize("value", [-math.inf, math.nan])
def test_no_probability_at_all_is_an_error(value):
    with pytest.raises(RecordError, match="no finite log-probability"):
        likeliest(torch.full((1, 4), value), 2)


def test_records_do_not_depend_on_their_neighbours():
    model = TransformerMlm(TransformerMlmConfig(hidden=16, heads=2, layers=2), 12, seed=1).eval()
    rows, gaps = [[5, MASK, 7, MASK, 9], [MASK], [6, MASK, MASK]], [[1, 3], [0], [1, 2]]
    together = fill(model, rows, gaps, 4, attention=True)
    for row, own, found in zip(rows, gaps, together, strict=True):
        [alone] = fill(model, [row], [own], 4, attention=True)
        for ours, theirs in zip(found.candidates, alone.candidates, strict=True):
            assert [number for number, _ in ours] == [number for number, _ in theirs]
            assert [p for _, p in ours] == pytest.approx([p for _, p in theirs], abs=1e-5)
        weights = found.attention["encoder"]
        assert weights.shape == (2, 2, len(row), len(row))
        np.testing.assert_allclose(weights, alone.attention["encoder"], atol=1e-5)
        np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
