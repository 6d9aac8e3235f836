"""The models where batches are decoded, and what a kind does with a batch.

A kind makes a `Job` once the models' files are read: all that can be wrong with its options is said
then. Its work runs where the models are, which may be another process; torch is loaded there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seqtools.cli._decode_fields import Fields
from seqtools.cli._decode_items import Item
from seqtools.cli._decode_options import Setup
from seqtools.cli._device import start_torch
from seqtools.cli._encoding import Encoder
from seqtools.streams.files import Place
from seqtools.streams.records import Record

if TYPE_CHECKING:
    from seqtools.decoding.hypothesis import Prompts

SEQUENCES = ("lm", "seq2seq")  # tasks whose models make sequences

Prepare = Callable[[Place, bytes, Record], Item]
Work = Callable[["Engine", Sequence[Item]], list[Fields]]


@dataclass(frozen=True)
class Job:
    """What a kind does.

    Attributes:
        prepare: record to ids.
        work: what is done with a batch; gives the fields to add to each record.
    """

    prepare: Prepare
    work: Work


MakeJob = Callable[[Encoder], Job]


class Engine:
    """The models on their device.

    Args:
        setup: the options.
        encoder: what the models' files say about records.
        processes: how many of it there are.

    Raises:
        ConfigError: the device is not there.
        FormatError: a model cannot be loaded.
    """

    def __init__(self, setup: Setup, encoder: Encoder, *, processes: int = 1) -> None:
        self.batch_size = setup.batch_size
        self.device = start_torch(setup.compute, processes=processes)
        self.model: Any = encoder.load(self.device)
        self._half = setup.compute.precision == "bf16"

    def run(self, work: Work, items: Sequence[Item]) -> list[Fields]:
        """Do the work, in the precision asked for."""
        import torch

        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self._half):
            return work(self, items)

    def prompts(self, items: Sequence[Item]) -> Prompts:
        """What the searches start from."""
        from seqtools.decoding.hypothesis import Prompts

        return Prompts.from_ids([item.prefix for item in items], sources(items), device=self.device)


def sources(items: Sequence[Item]) -> list[list[int]] | None:
    """The sources of the records, None for an lm."""
    return [item.source for item in items if item.source is not None] or None
