import doctest

import pytest
import torch

from seqtools.decoding import hypothesis
from seqtools.decoding.hypothesis import Prompts, refuse_hopeless
from seqtools.errors import RecordError
from tests.unit.decoding.toy import BOS, A, B, toy2


def test_docstring_examples():
    assert doctest.testmod(hypothesis).failed == 0


def test_prompts_are_padded_on_the_right():
    prompts = Prompts.from_ids([[1], [2, 3]], [[4, 5], []])
    assert len(prompts) == 2
    assert prompts.prefix.tolist() == [[1, 0], [2, 3]]
    assert prompts.prefix_lengths.tolist() == [1, 2]
    assert prompts.source.tolist() == [[4, 5], [0, 0]]
    assert prompts.source_lengths.tolist() == [2, 0]


def test_the_last_token_of_each_prefix_is_stepped_on_first():
    last, _ = Prompts.from_ids([[BOS], [BOS, A, B]]).begin(toy2())
    assert last.tolist() == [BOS, B]


def test_wrong_prompts_are_refused():
    with pytest.raises(ValueError, match="each prefix needs at least one token"):
        Prompts.from_ids([[1], []])
    with pytest.raises(ValueError, match="1 sources for 2 prefixes"):
        Prompts.from_ids([[1], [1]], [[2]])


@pytest.mark.parametrize("bad", [float("nan"), -float("inf"), float("inf")])
def test_a_row_without_a_finite_best_is_refused(bad):
    refuse_hopeless(torch.tensor([-1.0, 0.0]))
    with pytest.raises(RecordError, match="no finite log-probability"):
        refuse_hopeless(torch.tensor([-1.0, bad]))
