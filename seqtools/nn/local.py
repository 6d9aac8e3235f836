"""Attention to a part of the source: a window around one place (`local`), or one place (`hard`).

Any score can be wrapped. Shapes as in `attention`; M sources, R queries of each, in all rows.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqtools.nn.attention import Attention, Score, masked_softmax


class LocalAttention(Attention):
    """Softmax over the positions within `window` D of a centre p_t.

    Luong et al. 2015, section 3.2. Positions count from 0, and what of the window lies outside the
    source is left out.
    """

    def __init__(self, score: Score, query_size: int, window: int) -> None:
        super().__init__(score)
        self.window = window

    def centres(self, query: Tensor, lengths: Tensor, steps: Tensor | None) -> Tensor:
        """Give p_t (M, R), for `query` (M, R, Q), `lengths` of sources (M, 1), `steps` (M, R)."""
        raise NotImplementedError

    def weigh(self, query: Tensor, scores: Tensor, mask: Tensor, steps: Tensor | None) -> Tensor:
        """See `Attention`; a source without tokens has no window, and weights 0."""
        centres = self.centres(query, mask.sum(1, keepdim=True), steps)
        offsets = torch.arange(mask.shape[1], device=mask.device) - centres.unsqueeze(2)
        inside = mask.unsqueeze(1) & (offsets.abs() <= self.window)
        return self.shape(masked_softmax(scores, inside), offsets)

    def shape(self, weights: Tensor, offsets: Tensor) -> Tensor:
        """Give the `weights` (M, R, S) as they are used, at `offsets` s - p_t from the centre."""
        return weights


class MonotonicAttention(LocalAttention):
    """`local-m`: p_t = t, the number of the step.

    Where the target is longer than its source, p_t stays at the source's last position: the paper
    leaves this open, and its window would run empty.
    """

    counts_steps = True

    def centres(self, query: Tensor, lengths: Tensor, steps: Tensor | None) -> Tensor:
        """Give the steps, up to the last position."""
        assert steps is not None
        return torch.minimum(steps, (lengths - 1).clamp(min=0))


class PredictiveAttention(LocalAttention):
    """`local-p`: p_t = S sigmoid(v . tanh(W q)), S the source's length (equation 9).

    The weights are multiplied by exp(-(s - p_t)^2 / (2 (D/2)^2)) (equation 10), as in the paper
    without being brought to a sum of 1 again: by this factor alone p_t is learned.
    """

    def __init__(self, score: Score, query_size: int, window: int) -> None:
        super().__init__(score, query_size, window)
        self.projection = nn.Linear(query_size, query_size, bias=False)
        self.place = nn.Parameter(torch.empty(query_size))

    def centres(self, query: Tensor, lengths: Tensor, steps: Tensor | None) -> Tensor:
        """Give what is predicted; in float32 or wider, as bfloat16 would miss the position."""
        hidden = torch.tanh(self.projection(query).to(self.place.dtype))
        return lengths * torch.sigmoid((hidden * self.place).sum(2))

    def shape(self, weights: Tensor, offsets: Tensor) -> Tensor:
        """Multiply by the Gaussian."""
        return weights * torch.exp(-2.0 * (offsets / self.window).square())


LOCAL: dict[str, type[LocalAttention]] = {
    "monotonic": MonotonicAttention,
    "predictive": PredictiveAttention,
}


class HardAttention(Attention):
    """`hard`: all weight on one position (Xu et al. 2015, section 4.1).

    In training it is drawn from the softmax of the scores, by torch's generator of their device; in
    decoding, and where a given target is scored, it is the most probable one.

    Gradients. The paper's is REINFORCE, log p(s_t) times the log likelihood of the target less a
    moving baseline, plus an entropy term, and half the time no draw at all: unbiased, but one
    number for all steps is credited to each, hence three constants against its variance. Here the
    draw is the greatest of scores + Gumbel noise, and the gradient that of the softmax of that sum
    at temperature 1 (straight-through Gumbel; Jang et al. 2017, section 2.2). What reaches the
    source vectors is the same in both, unbiased. What reaches the scores is biased, but is credited
    to its own step and source position, varies less, and needs no constant, no baseline and no
    second term in the loss.
    """

    def weigh(self, query: Tensor, scores: Tensor, mask: Tensor, steps: Tensor | None) -> Tensor:
        """See `Attention`; a source without tokens has weights 0."""
        wide = torch.promote_types(scores.dtype, torch.float32)
        scores = scores.to(wide)
        if self.training:
            scores = scores - torch.empty_like(scores).exponential_().log()
        soft = masked_softmax(scores, mask)
        if not soft.shape[2]:
            return soft
        best = soft.detach().argmax(2, keepdim=True)
        hard = torch.zeros_like(soft).scatter_(2, best, 1.0) * mask.unsqueeze(1)
        return hard + (soft - soft.detach()) if self.training else hard
