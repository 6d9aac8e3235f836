"""The kind coverage of seq-vocab."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from seqtools.cli import _run
from seqtools.cli._io import Session
from seqtools.cli._options import FiniteFloat, ListOption, Streams, example, refuse, stream_options
from seqtools.cli._vocab_options import (
    field_option,
    roles,
    specials_option,
    warn_of_spelled,
)
from seqtools.errors import ConfigError
from seqtools.streams.files import STDIN

if TYPE_CHECKING:
    from seqtools.text.coverage import Coverage
    from seqtools.text.vocab import Vocabulary


class SizesType(click.ParamType[tuple[int, ...]]):
    """Sizes separated by commas."""

    name = "N,N,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Parse and check."""
        if isinstance(value, tuple):
            return value
        parts = str(value).split(",")
        if not all(re.fullmatch("[1-9][0-9]{0,17}", part) for part in parts):
            self.fail(f"{value!r} is not a list of sizes such as 1000,8000", param, ctx)
        return tuple(sorted({int(part) for part in parts}))


class SharesType(click.ParamType[tuple[float, ...]]):
    """Shares, above 0 and at most 1, separated by commas."""

    name = "SHARE,..."
    _each = FiniteFloat(0, 1, low_open=True)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        """Parse and check."""
        if isinstance(value, tuple):
            return value
        return tuple(self._each.convert(part, param, ctx) for part in str(value).split(","))


@click.command(
    epilog=example(
        """$ printf '{"tokens":["a","b","a"]}\\n{"tokens":["a"]}\\n' | seq-vocab coverage""",
        '{"size":1,"min_count":3,"tokens":3,"token_coverage":0.75,"records":1,'
        '"record_coverage":0.5}',
        '{"size":2,"min_count":1,"tokens":4,"token_coverage":1.0,"records":2,'
        '"record_coverage":1.0}',
    )
)
@field_option
@click.option(
    "--sizes", cls=ListOption, type=SizesType(),
    help="Sizes to look at; default: 1,2,5,10,... and all types.",
)  # fmt: skip
@click.option(
    "--target", cls=ListOption, type=SharesType(), default=(),
    help="Look, too, at the smallest size that covers this share of the tokens (0.95).",
)  # fmt: skip
@specials_option
@click.option("--vocab", metavar="FILE", help="Measure the records against this one, in its order.")
@click.option(
    "--counts", is_flag=True,
    help="With --vocab: measure its own counts, and read no records. What a --max-size or"
    " --min-count cut off is not counted.",
)  # fmt: skip
@stream_options()
def coverage(
    streams: Streams,
    field: tuple[str, ...],
    sizes: tuple[int, ...] | None,
    target: tuple[float, ...],
    specials: tuple[str, ...],
    vocab: str | None,
    *,
    counts: bool,
) -> None:
    """See how much of a text the N most frequent types cover, to choose a --max-size.

    For each N the share of the tokens, and of the records that have no other token (those without
    tokens left out); min_count is the --min-count that lets as many in, ties aside. A token that is
    spelled like a special is covered by no size.

    Tokens are held as numbers, 4 bytes each, beyond 64 MiB of them in a temporary file; with
    --vocab none are held.
    """
    from seqtools.text.coverage import Learned, Measured, ladder
    from seqtools.text.specials import SPECIALS
    from seqtools.text.vocab import Vocabulary

    _refuse(streams, vocab, counts=counts)
    reserved = [SPECIALS[role] for role in roles(specials)]
    vocabulary = None if vocab is None else Vocabulary.read(vocab)
    with Session(streams) as session:
        if vocabulary is not None and counts:
            found = _of_counts(vocabulary, vocab)
        elif vocabulary is not None:
            measured = Measured(vocabulary)
            _read(session, field, measured.add)
            found = measured.result()
        else:
            with Learned(reserved) as learned:
                _read(session, field, learned.add)
                found = learned.result()
                warn_of_spelled(learned.spelled())
        rungs = ladder(found.types) if sizes is None else sizes
        for row in found.rows(sorted({*rungs, *_sizes_for(found, target)})):
            session.write(row)
        if not sum(found.tokens.values()):
            _run.warn("no tokens, so there is nothing to cover")
        elif not found.types:
            _run.warn("no types but specials, which cover nothing")


def _sizes_for(found: Coverage, shares: Sequence[float]) -> Iterator[int]:
    """The size for each share of the tokens, with a warning where there is none."""
    for share in shares if sum(found.tokens.values()) else ():
        size = found.size_for(share)
        if size is None:
            _run.warn(f"no size covers {share:g} of the tokens")
        else:
            yield size


def _refuse(streams: Streams, vocab: str | None, *, counts: bool) -> None:
    """See that nothing was asked for that goes unheard."""
    if counts and vocab is None:
        raise click.UsageError("--counts needs --vocab FILE.")
    if counts and streams.files != (STDIN,):
        raise click.UsageError("--counts reads no records: no FILE, please.")
    if counts:
        refuse(("field", "specials", "rejects", "shard", "first_record"), "--counts")
    elif vocab is not None:
        refuse(("specials",), "--vocab")


def _of_counts(vocabulary: Vocabulary, path: str | None) -> Coverage:
    from seqtools.text.coverage import Coverage

    if vocabulary.counts is None:
        raise ConfigError(f"--counts: the vocabulary {path} has no counts")
    return Coverage.of_vocabulary(vocabulary, vocabulary.counts)


def _read(session: Session, fields: Sequence[str], add: Callable[[list[str]], None]) -> None:
    """Put the tokens of each record, of all fields together, through `add`."""
    from seqtools.text.fields import get_all_tokens

    def transform(record: dict[str, Any], number: int) -> bytes:
        add([*chain.from_iterable(get_all_tokens(record, name) for name in fields)])
        return b""

    session.filter(lambda counts: transform)
