import math

import torch

from seqtools.nn.masks import causal_bias, length_mask, padding_bias, reversal


def test_length_mask():
    mask = length_mask(torch.tensor([2, 0, 3]), 3)
    assert mask.tolist() == [[True, True, False], [False] * 3, [True] * 3]


def test_reversal_turns_real_tokens_round_and_undoes_itself():
    positions = reversal(torch.tensor([2, 0, 4]), 4)
    assert positions.tolist() == [[1, 0, 2, 3], [0, 1, 2, 3], [3, 2, 1, 0]]
    assert torch.equal(positions.gather(1, positions), torch.arange(4).expand(3, 4))


def test_causal_bias_closes_what_stands_behind():
    bias = causal_bias(4)
    for query in range(4):
        assert bias[query].tolist() == [0.0 if key <= query else -math.inf for key in range(4)]


def test_padding_bias_closes_padding_and_leaves_a_row_of_nothing_else_open():
    mask = torch.tensor([[True, True, False], [False] * 3])
    bias = padding_bias(mask)
    assert bias.shape == (2, 1, 1, 3)
    assert bias[:, 0, 0].tolist() == [[0.0, 0.0, -math.inf], [0.0] * 3]
