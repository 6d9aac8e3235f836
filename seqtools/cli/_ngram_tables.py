"""The kinds of seq-ngram: extract, count and merge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from seqtools.cli._io import Session, hint_at_text
from seqtools.cli._ngram_input import read_heldout, read_text
from seqtools.cli._ngram_options import (
    field_option,
    memory_options,
    refuse_same_output,
    side_output,
    tell_of_compiling,
    text_option,
)
from seqtools.cli._options import (
    POSITIVE,
    Streams,
    collect,
    example,
    filter_options,
    refuse_same_input,
    stream_options,
)

if TYPE_CHECKING:
    from seqtools.ngram.tables import Counter, Sparsity
    from seqtools.streams.outputs import Output
    from seqtools.streams.records import Record

HIGHEST = 99  # order; that of ngram.tables, which is not to be loaded for a help text


class OrdersType(click.ParamType[tuple[int, ...]]):
    """Orders: numbers and ranges, separated by commas."""

    name = "N,N,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Parse and check."""
        if isinstance(value, tuple):
            return value
        orders: set[int] = set()
        for part in str(value).split(","):
            first, dash, last = part.partition("-")
            if not all(end.isascii() and end.isdigit() for end in (first, last if dash else "1")):
                self.fail(f"{value!r} is not a list of orders such as 2 or 1,3 or 1-3", param, ctx)
            low, high = int(first), int(last or first)
            if not 1 <= low <= high <= HIGHEST:
                self.fail(f"{part} is not between 1 and {HIGHEST}, rising", param, ctx)
            orders.update(range(low, high + 1))
        return tuple(sorted(orders))


@dataclass(frozen=True)
class Windows:
    """The options that say which n-grams there are."""

    order: tuple[int, ...]
    markers: bool
    padding: str | None

    def __post_init__(self) -> None:
        if self.padding is not None and not self.markers:
            raise click.UsageError("--padding is about markers, and there are none.")

    @property
    def shape(self) -> str:
        """As the library calls it."""
        return (self.padding or "one") if self.markers else "none"


def _windows(*, markers: bool) -> Callable[[Any], Any]:
    return collect(
        Windows,
        "windows",
        [
            click.option(
                "--order", type=OrdersType(), required=True,
                help="Tokens of an n-gram: 2, several as in 1,3, or a range as in 1-3.",
            ),
            click.option(
                "--markers/--no-markers", default=markers, show_default=True,
                help="Put <s> before each record and </s> after it. A token that is spelled so"
                " then makes a bad record.",
            ),
            click.option(
                "--padding", type=click.Choice(("one", "full")),
                help="One marker at each end (default), or full: n - 1 of them for n-grams of n"
                " tokens.",
            ),
        ],
    )  # fmt: skip


@click.command(
    epilog=example(
        """$ echo '{"tokens":["to","be","or"]}' | seq-ngram extract --order 1-2""",
        '{"tokens":["to","be","or"],"ngrams":[["to"],["be"],["or"],["to","be"],["be","or"]]}',
    )
)
@click.option(
    "--field", multiple=True, default=("tokens",), show_default=True,
    help="F_tokens gets F_ngrams (tokens: ngrams); repeatable.",
)  # fmt: skip
@_windows(markers=False)
@filter_options
def extract(streams: Streams, windows: Windows, field: tuple[str, ...]) -> None:
    """Add the n-grams of each record.

    A list of lists of tokens in order of appearance: those of the lowest order from left to right,
    then those of the next.
    """
    from seqtools.ngram.extraction import ngrams, refuse_markers
    from seqtools.streams.records import get_tokens
    from seqtools.text.fields import base, derived

    names = [(name, derived(base(name, "tokens"), "ngrams")) for name in field]

    def transform(record: Record, number: int) -> Record:
        for name, target in names:
            tokens = get_tokens(record, name)
            if windows.markers:
                refuse_markers(tokens, f'"{name}"')
            record[target] = ngrams(tokens, windows.order, windows.shape)
        return record

    with Session(streams) as session:
        session.filter(lambda counts: transform)


@click.command(
    epilog=example(
        """$ echo '{"tokens":["a","b","a"]}' | seq-ngram count --order 2 --quiet""",
        '{"ngram":["<s>","a"],"count":1}',
        '{"ngram":["a","</s>"],"count":1}',
        '{"ngram":["a","b"],"count":1}',
        '{"ngram":["b","a"],"count":1}',
    )
)
@field_option
@text_option
@_windows(markers=True)
@click.option(
    "--min-count", type=POSITIVE, default=1, show_default=True,
    help="Leave out n-grams seen less often (with --shard: leave that to merge).",
)  # fmt: skip
@click.option(
    "--report", metavar="FILE", help="Write a record for each order: how sparse its table is."
)
@click.option(
    "--heldout", metavar="FILE",
    help="Report as well which share of the n-grams in FILE, a text of the same kind, was never"
    " seen.",
)  # fmt: skip
@memory_options
@stream_options(jobs=True)
def count(
    streams: Streams,
    windows: Windows,
    field: str,
    min_count: int,
    report: str | None,
    heldout: str | None,
    memory: str,
    temp_dir: str | None,
    *,
    text: bool,
) -> None:
    """Count n-grams.

    Writes n-grams with their counts, sorted by tokens, by code point, a shorter one before those
    that go on. No n-gram reaches into another record; one without tokens has just its markers.

    The report has, for each order, how many n-grams there are (`tokens`) and how many different
    ones (`types`); `vocabulary`, the different tokens and markers; `possible`, that to the power
    of the order, and the `share` of it that was seen; `singletons`, seen once. A
    share of nothing is "nan".
    """
    from seqtools.ngram.storage import Store, parse_memory
    from seqtools.ngram.tables import Counter
    from seqtools.streams.files import check_inputs

    if heldout is not None and report is None:
        raise click.UsageError("--heldout FILE needs --report FILE.")
    refuse_same_input(streams, "--heldout", heldout)
    refuse_same_output(streams, "--report", report)
    if heldout is not None:
        check_inputs([heldout])
    limit = parse_memory(memory) * 2 // 3  # the rest is for words, and for reading
    reader = _Reader(field, text=text, markers=windows.markers)
    tell_of_compiling(streams)
    with (
        Session(streams) as session,
        side_output(report) as target,
        Store(limit, temp_dir) as store,
    ):
        counter = Counter(windows.order, windows.shape, store)
        reader.read(session, counter)
        if heldout is not None:
            counter.hold_out()
            reader.read_heldout(heldout, counter)
        for lines in counter.lines(min_count):
            session.output.write(lines)
        sparsity = counter.sparsity()
        if target is not None:
            _write_report(target, sparsity, heldout=heldout is not None)
        session.summary(f"{counter.records} records, {counter.tokens} tokens")
        for each in sparsity:
            session.summary(
                f"order {each.order}: {each.types} n-grams, {each.singletons} of them seen once"
            )


class _Reader:
    """Brings records, or plain lines, to a counter.

    Args:
        field: where records have their tokens.
        text: there are no records, but lines.
        markers: no token may be spelled like a marker.
    """

    def __init__(self, field: str, *, text: bool, markers: bool) -> None:
        self._field, self._text, self._markers = field, text, markers
        self._refused = (b"<s>", b"</s>") if markers else ()

    def read(self, session: Session, counter: Counter) -> None:
        """All that the command was given."""
        if not self._text:
            with hint_at_text():
                session.filter(lambda counts: self._pack, sink=counter.add_packed)
            return
        read_text(session, counter.add_text, refused=self._refused, check=self._check_line)

    def read_heldout(self, path: str, counter: Counter) -> None:
        """A file besides."""
        transform, take = (
            (None, counter.add_text) if self._text else (self._pack, counter.add_packed)
        )
        read_heldout(path, transform, take, refused=self._refused, check=self._check_line)

    def _pack(self, record: Record, number: int) -> bytes:
        from seqtools.ngram.extraction import refuse_markers
        from seqtools.ngram.words import pack_record
        from seqtools.streams.records import get_tokens

        tokens = get_tokens(record, self._field)
        if self._markers:
            refuse_markers(tokens, f'"{self._field}"')
        return pack_record(tokens)

    def _check_line(self, raw: bytes) -> None:
        from seqtools.ngram.extraction import refuse_markers

        if self._markers:
            refuse_markers([word.decode() for word in raw.split()], "the line")


def _write_report(output: Output, sparsity: list[Sparsity], *, heldout: bool) -> None:
    from seqtools.streams.records import to_line

    for each in sparsity:
        record: Record = {
            "order": each.order,
            "tokens": each.tokens,
            "types": each.types,
            "vocabulary": each.vocabulary,
            "possible": each.possible,
            "share": _share(each.types, each.possible),
            "singletons": each.singletons,
            "singleton_share": _share(each.singletons, each.types),
        }
        if heldout:
            record["heldout_tokens"] = each.heldout
            record["heldout_unseen"] = each.unseen
            record["heldout_unseen_share"] = _share(each.unseen, each.heldout)
        output.write(to_line(record))


def _share(part: int, whole: int) -> float | str:
    return part / whole if whole else "nan"


@click.command(
    epilog=example(
        "seq-ngram count --order 1-3 --shard 1/2 chars.jsonl > 1.counts",
        "seq-ngram count --order 1-3 --shard 2/2 chars.jsonl > 2.counts",
        "seq-ngram merge --min-count 2 1.counts 2.counts > all.counts",
    )
)
@click.option(
    "--min-count", type=POSITIVE, default=1, show_default=True,
    help="Leave out n-grams seen less often in all files together.",
)  # fmt: skip
@click.option(
    "-T", "--temp-dir", metavar="FOLDER",
    help="Where temporary files go; there are some with more than 64 files.",
)  # fmt: skip
@stream_options(rejects=False, shard=False)
def merge(streams: Streams, min_count: int, temp_dir: str | None) -> None:
    """Add up files of counts.

    Reads what count writes, any number of files, each sorted as there, and writes one such file.
    So the counts of shards become those of the whole.
    """
    from seqtools.ngram.merging import merge as merge_tables

    tell_of_compiling(streams)
    with Session(streams) as session:
        for lines in merge_tables(streams.files, min_count=min_count, folder=temp_dir):
            if lines:
                session.output.write(lines)
            else:  # it waits for input
                session.output.flush()


kinds: tuple[click.Command, ...] = (extract, count, merge)
