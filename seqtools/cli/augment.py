"""seq-augment: more records out of those there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from seqtools.cli import _run
from seqtools.cli._augment_options import Plan, plan_options
from seqtools.cli._augment_pipe import Pipe, pipe_options, pipe_records
from seqtools.cli._options import POSITIVE, Streams, example, filter_options, group, stream_options
from seqtools.errors import FormatError, InputError

if TYPE_CHECKING:
    from seqtools.text.augment.edits import Source


@group(
    "augment",
    "Copies of records with some tokens changed; a copy has no id, but augmented_from.",
)
def cli() -> None:
    """The kinds are below."""


@cli.command(
    epilog=example(
        """$ echo '{"id":4,"tokens":["to","be","or","not"]}' | seq-augment swap --keep""",
        '{"id":4,"tokens":["to","be","or","not"]}',
        '{"tokens":["to","be","not","or"],"augmented_from":4}',
    )
)
@click.option(
    "--distance", type=POSITIVE, metavar="K",
    help="Instead of some swaps, shuffle all, but move none by more than K places.",
)  # fmt: skip
@plan_options
@filter_options
def swap(streams: Streams, plan: Plan, distance: int | None) -> None:
    """Exchange tokens, or shuffle them a little.

    Of n tokens, RATE n times (at least once) two change places. Spans that tags mark are moved as a
    whole, and count as one.
    """
    from seqtools.text.augment.edits import Edit, Shuffle, Swap

    if distance is not None and plan.rate is not None:
        raise click.UsageError("--distance shuffles all tokens, so --rate makes no sense with it.")
    amount = plan.amount()
    edit: Edit = Swap(amount) if distance is None else Shuffle(amount, distance)
    plan.run(streams, "swap", edit)


@cli.command(
    epilog=example(
        """$ echo '{"id":4,"tokens":["to","be","or","not"]}' \\""",
        "  | seq-augment delete --rate 0.3 --copies 2",
        '{"tokens":["be"],"augmented_from":4}',
        '{"tokens":["to","be"],"augmented_from":4}',
    )
)
@plan_options
@filter_options
def delete(streams: Streams, plan: Plan) -> None:
    """Leave tokens out, each with probability RATE, but never all.

    Spans that tags mark are left out as a whole.
    """
    from seqtools.text.augment.edits import Delete

    plan.run(streams, "delete", Delete(plan.amount()))


@cli.command(
    epilog=example(
        r"""$ printf 'quick\tfast speedy\n' > quick.tsv""",
        """$ echo '{"id":3,"tokens":["a","quick","dog"]}' \\""",
        "  | seq-augment insert --synonyms quick.tsv",
        '{"tokens":["a","quick","fast","dog"],"augmented_from":3}',
    )
)
@click.option(
    "--synonyms", metavar="FILE", help="Put in synonyms of the record's tokens; see synonym."
)
@click.option(
    "--vocab", metavar="FILE", help="Put in tokens of this vocabulary, drawn by their counts."
)
@plan_options
@filter_options
def insert(streams: Streams, plan: Plan, synonyms: str | None, vocab: str | None) -> None:
    """Put in tokens: copies of the record's own, their synonyms, or some of a vocabulary.

    Of n tokens, RATE n (at least one), each at any place outside the spans that tags mark. A token
    brings the tags of that which it was made of; one of a vocabulary is outside of all spans.
    """
    from seqtools.text.augment.edits import Insert

    if synonyms is not None and vocab is not None:
        raise click.UsageError("--synonyms and --vocab exclude each other.")
    plan.run(streams, "insert", Insert(plan.amount(), _source(synonyms, vocab)))


@cli.command(
    epilog=example(
        r"""$ printf 'quick\tfast speedy\ndog hound\n' > words.tsv""",
        """$ echo '{"tokens":["Quick","dogs","!"]}' | seq-augment synonym --synonyms words.tsv""",
        '{"tokens":["Speedy","dogs","!"],"augmented_from":1}',
    )
)
@click.option(
    "--synonyms", metavar="FILE", required=True,
    help="Lines WORD<TAB>SYNONYM SYNONYM, or without a tab, of words that mean the same;"
    " a_b is two tokens. Cilin is read as it is.",
)  # fmt: skip
@plan_options
@filter_options
def synonym(streams: Streams, plan: Plan, synonyms: str) -> None:
    """Put synonyms in the place of tokens, of RATE n of n tokens (at least one).

    Each token that has synonyms may be chosen. Case is kept: Quick becomes Fast. The tags of a
    synonym of several tokens go on as the scheme has it: B-X becomes B-X I-X.
    """
    from seqtools.text.augment.edits import Replace
    from seqtools.text.augment.synonyms import Synonyms

    plan.run(streams, "synonym", Replace(plan.amount(), Synonyms.read(synonyms)))


@cli.command(
    epilog=example(
        """$ echo '{"id":7,"text":"a b"}' | seq-augment pipe --lines --command 'tr a-z A-Z'""",
        '{"text":"A B","augmented_from":7}',
        """$ echo '{"id":7,"text":"a b"}' | seq-augment pipe --command 'seq-tokenize char'""",
        '{"text":"a b","tokens":["a","b"],"augmented_from":7}',
    )
)
@pipe_options
@stream_options()
def pipe(streams: Streams, plan: Pipe) -> None:
    """Have the copies made by any program, which gives back a record for each, in order.

    Its ids must be those it was sent, and so must be their number; where it fails, so does this.
    With --lines it sees the text alone, and what was made of the old text (tokens, ids, tags, …)
    leaves the copy, as do other lists as long as the tokens.
    """
    pipe_records(streams, plan)


def _source(synonyms: str | None, vocab: str | None) -> Source:
    """Where the tokens that are put in come from."""
    from seqtools.text.augment.edits import FromSynonyms, FromVocabulary, from_sentence
    from seqtools.text.augment.synonyms import Synonyms
    from seqtools.text.vocab import Vocabulary

    if synonyms is not None:
        return FromSynonyms(Synonyms.read(synonyms))
    if vocab is None:
        return from_sentence
    try:
        vocabulary = Vocabulary.read(vocab)
    except InputError as error:
        raise FormatError(f"{error} (a file of seq-vocab build is wanted for --vocab)") from None
    try:
        return FromVocabulary(vocabulary)
    except FormatError as error:
        raise FormatError(f"{vocab}: {error}") from None


def main() -> None:
    """Run from the shell."""
    _run.main(cli)
