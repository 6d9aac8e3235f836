"""Sources that several rows share: the hypotheses of a beam attend to one copy of their source."""

from __future__ import annotations

import torch
from torch import Tensor


def regroup(rows: Tensor, sources: int, share: int) -> tuple[Tensor | None, int]:
    """Find which sources rows picked from `sources` * `share` rows need, and how many share one.

    Row r belongs to source r // share. Gives the sources to keep (M,) in order, or None for all of
    them as they stand, and the new share: row i of the result belongs to source i // share. Rows
    that do not come in equal groups get a source each.

    Args:
        rows: (N,) int64, the rows picked.
        sources: how many sources there are.
        share: rows of each.
    """
    wanted = rows // share
    kept, counts = torch.unique_consecutive(wanted, return_counts=True)
    new = int(counts[0]) if len(counts) and bool((counts == counts[0]).all()) else 1
    if new == 1:
        kept = wanted
    if len(kept) == sources and bool((kept[1:] > kept[:-1]).all()):
        return None, new
    return kept, new
