"""Options that the kinds of seq-augment share, and what is said at the end of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from seqtools.cli._io import Session
from seqtools.cli._options import POSITIVE, FiniteFloat, Streams, collect, seed_option

if TYPE_CHECKING:
    from seqtools.streams.parallel import Counts
    from seqtools.text.augment.edits import Amount, Edit


@dataclass(frozen=True)
class Plan:
    """What all changes of tokens let one ask for; see the options of the same names."""

    field: str
    align: tuple[str, ...]
    scheme: str
    rate: float | None
    stopwords: str | None
    copies: int
    keep: bool
    drop_unchanged: bool
    seed: int

    def __post_init__(self) -> None:
        if self.field in self.align:
            raise click.UsageError(f"--align {self.field} is the --field itself.")
        if len(set(self.align)) < len(self.align):
            raise click.UsageError("--align names a field twice.")

    def amount(self) -> Amount:
        """How much is changed, and what is left alone."""
        from seqtools.text.augment.edits import Amount
        from seqtools.text.augment.synonyms import read_stopwords

        words = frozenset() if self.stopwords is None else read_stopwords(self.stopwords)
        return Amount(0.1 if self.rate is None else self.rate, words)

    def run(self, streams: Streams, kind: str, edit: Edit) -> None:
        """Write the copies."""
        from seqtools.text.augment.copies import Copier, Number, Tokens

        align = tuple(name for name in self.align if name != "none")
        tokens = Tokens(self.field, align, "none" not in self.align, self.scheme)
        number = Number(self.copies, self.keep, self.drop_unchanged)
        with Session(streams) as session:
            counts = session.filter(
                lambda counts: Copier(kind, edit, tokens, number, seed=self.seed, counts=counts)
            )
            tell(session, counts, dropped=self.drop_unchanged)
            tell_left(session, self.field, counts)


plan_options = collect(
    Plan,
    "plan",
    (
        click.option(
            "--field", default="tokens", show_default=True,
            help="The list of tokens; what is made of them (F, F_ids, F_offsets, …) leaves a copy.",
        ),
        click.option(
            "--align", metavar="FIELD", multiple=True,
            help="One more list that goes with the tokens, a value for each; repeatable. So do tags"
            " and pos of the field, where a record has them, unless one FIELD is none. Other lists"
            " as long as the tokens leave a copy with other tokens.",
        ),
        click.option(
            "--scheme", type=click.Choice(["auto", "iob2", "iobes", "bmes", "bilou", "none"]),
            default="auto", show_default=True,
            help="How tags mark spans, which stay whole; auto looks at the letters of a record's.",
        ),
        click.option(
            "--rate", type=FiniteFloat(0, 1, low_open=True),
            help="Share of the tokens that are changed.  [default: 0.1]",
        ),
        click.option(
            "--stopwords", metavar="FILE",
            help="Leave these tokens alone, in upper or lower case: one a line.",
        ),
        click.option(
            "--copies", type=POSITIVE, default=1, show_default=True, help="Copies of each record."
        ),
        click.option("--keep", is_flag=True, help="Write each record itself, too, before them."),
        click.option(
            "--drop-unchanged", is_flag=True,
            help="Leave out copies that came out as the record is.",
        ),
        seed_option,
    ),
)  # fmt: skip


def tell(session: Session, counts: Counts, *, dropped: bool) -> None:
    """How many copies are no other than their records."""
    if counts["unchanged"]:
        left = ", and are left out" if dropped else " (see --drop-unchanged)"
        session.summary(
            f"{counts['unchanged']} of {counts['copies']} copies came out as the record is{left}"
        )


def tell_left(session: Session, field: str, counts: Counts, hint: str = " (see --align)") -> None:
    """Which lists left how many copies, in one line."""
    left = [
        f'"{name.removeprefix("left ")}" ({count})'
        for name, count in sorted(counts.items())
        if name.startswith("left ")
    ]
    if left:
        session.summary(
            f'lists as long as "{field}" but not aligned are left out of copies:'
            f" {', '.join(left)}{hint}"
        )
