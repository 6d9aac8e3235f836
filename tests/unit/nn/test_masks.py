import torch

from seqtools.nn.masks import length_mask, reversal


def test_length_mask():
    mask = length_mask(torch.tensor([2, 0, 3]), 3)
    assert mask.tolist() == [[True, True, False], [False] * 3, [True] * 3]


def test_reversal_turns_real_tokens_round_and_undoes_itself():
    positions = reversal(torch.tensor([2, 0, 4]), 4)
    assert positions.tolist() == [[1, 0, 2, 3], [0, 1, 2, 3], [3, 2, 1, 0]]
    assert torch.equal(positions.gather(1, positions), torch.arange(4).expand(3, 4))
