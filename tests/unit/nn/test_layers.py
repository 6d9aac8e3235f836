import pytest
import torch

from seqtools.nn.layers import Dropout, Embedding


def test_dropout_keeps_the_mean_and_drops_the_share():
    torch.manual_seed(1)
    inputs = torch.full((200, 200), 3.0)
    result = Dropout(0.4)(inputs)
    dropped = (result == 0).float().mean().item()
    assert dropped == pytest.approx(0.4, abs=0.01)
    torch.testing.assert_close(result[result != 0].unique(), torch.tensor([5.0]))


def test_dropout_drops_the_share_of_bfloat16_too():
    torch.manual_seed(1)
    inputs = torch.ones(1000, 1000, dtype=torch.bfloat16)
    result = Dropout(0.002)(inputs)
    assert result.dtype == torch.bfloat16
    assert (result == 0).float().mean().item() == pytest.approx(0.002, rel=0.1)


def test_dropout_outside_training_or_of_nothing_changes_nothing():
    inputs = torch.rand(3, 4)
    assert Dropout(0.4).eval()(inputs) is inputs
    assert Dropout(0.0)(inputs) is inputs
    with pytest.raises(ValueError, match="got 1"):
        Dropout(1.0)


def test_embedding_is_torchs_with_its_gradient():
    ours, theirs = Embedding(6, 3), torch.nn.Embedding(6, 3)
    theirs.load_state_dict(ours.state_dict())
    ids = torch.tensor([[0, 5, 5], [2, 0, 5]])
    torch.testing.assert_close(ours(ids), theirs(ids))
    for embedding in (ours, theirs):
        (embedding(ids) * torch.arange(18.0).view(2, 3, 3)).sum().backward()
    torch.testing.assert_close(ours.weight.grad, theirs.weight.grad)
    assert ours(torch.tensor(2)).shape == (3,)
    assert ours(ids[:0]).shape == (0, 3, 3)
