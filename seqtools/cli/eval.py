"""seq-eval: scores of outputs against references, and perplexity."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from seqtools.cli import _run
from seqtools.cli._io import Session
from seqtools.cli._options import Streams, WholeNumber, example, group, stream_options
from seqtools.cli._pairing import Pairing, pair_options, read_pairs
from seqtools.errors import SeqtoolsError

if TYPE_CHECKING:
    from seqtools.evaluation.accuracy import Guess
    from seqtools.evaluation.corpus import Metric
    from seqtools.streams.records import Record

H = TypeVar("H")
R = TypeVar("R")

TOKENIZERS = ("13a", "zh", "char", "intl", "none")


@group(
    "eval",
    "Score outputs against references, or measure perplexity; writes one record.\n\n"
    "A field is a string, or a list of tokens, which are joined by blanks.",
)
def cli() -> None:
    """The kinds are below."""


@cli.command(
    epilog=example(
        """echo '{"output":"a black cat sat there","tgt":"a black cat sat here"}' \\""",
        "  | seq-eval bleu --hypothesis output --reference tgt",
    )
)
@click.option(
    "--tokenize",
    type=click.Choice(TOKENIZERS),
    default="13a",
    show_default=True,
    help="sacrebleu's tokenizer; zh for Chinese, none for text that is tokenized already.",
)
@pair_options
def bleu(streams: Streams, pairing: Pairing, tokenize: str, *, lowercase: bool) -> None:
    """BLEU in percent, by sacrebleu, with its signature.

    It compares between systems on detokenized text only.
    """
    from seqtools.evaluation.bleu import Bleu

    _score_texts(streams, pairing, Bleu(tokenize=tokenize, lowercase=lowercase))


@cli.command(
    epilog=example(
        """echo '{"output":"a black cat sat there","tgt":"a black cat sat here"}' \\""",
        "  | seq-eval chrf --hypothesis output --reference tgt --word-order 2",
    )
)
@click.option(
    "--word-order",
    type=WholeNumber(0, 2),
    default=0,
    show_default=True,
    help="Count word n-grams up to this order too; 2 is chrF++.",
)
@pair_options
def chrf(streams: Streams, pairing: Pairing, word_order: int, *, lowercase: bool) -> None:
    """chrF in percent, by sacrebleu, with its signature."""
    from seqtools.evaluation.chrf import Chrf

    _score_texts(streams, pairing, Chrf(word_order=word_order, lowercase=lowercase))


@cli.command(
    epilog=example(
        """echo '{"output":"2024-03-05","iso":"2024-03-05"}' \\""",
        "  | seq-eval exact --hypothesis output --reference iso",
    )
)
@pair_options
def exact(streams: Streams, pairing: Pairing, *, lowercase: bool) -> None:
    """Share of outputs that equal a reference, character for character."""
    from seqtools.evaluation.exact import Exact

    _score_texts(streams, pairing, Exact(lowercase=lowercase))


@cli.command(
    epilog=example(
        """$ echo '{"text":["to","<mask>"],"filled":["to","be"],"gold":["to","bee"]}' \\""",
        "  | seq-eval accuracy --hypothesis filled --reference gold --masked text",
        '{"metric":"accuracy","score":0.0,"correct":0,"total":1,"majority":1.0,'
        '"majority_value":"bee","records":1}',
    )
)
@click.option(
    "--masked", metavar="FIELD", help="Count only where the list FIELD has the token <mask>."
)
@click.option("--labels", is_flag=True, help="Add precision, recall and F1 of every value.")
@pair_options
def accuracy(
    streams: Streams, pairing: Pairing, masked: str | None, *, labels: bool, lowercase: bool
) -> None:
    """Share of values that equal the reference, beside always guessing the commonest.

    A string is one value (a label). Lists (tags, tokens) are compared item by item.
    """
    from seqtools.evaluation.accuracy import Accuracy, get_guesses
    from seqtools.evaluation.pairs import get_values
    from seqtools.text.specials import SPECIALS

    if len(pairing.reference) > 1 or len(pairing.reference_file) > 1:
        raise click.UsageError("accuracy compares with one reference only.")
    if masked and pairing.text:
        raise click.UsageError("--masked does not go with --text.")

    def guesses(record: Record, field: str) -> Guess:
        return get_guesses(record, field, masked, SPECIALS["mask"])

    _score(streams, pairing, Accuracy(lowercase=lowercase, labels=labels), guesses, get_values)


@cli.command(
    epilog=example("""echo '{"logprob":-4.1589,"n_tokens":3}' | seq-eval perplexity"""),
)
@stream_options(shard=False)
def perplexity(streams: Streams) -> None:
    """Perplexity, nats and bits per token of scored records.

    Reads `logprob` (natural, or "-inf") and `n_tokens`, as seq-decode score and seq-ngram score do.
    """
    from seqtools.evaluation.perplexity import Perplexity, read_logprob

    metric = Perplexity()
    with Session(streams) as session:
        for _, scored in session.read(read_logprob):
            metric.add(*scored)
        _write(session, metric.result)


def _score_texts(streams: Streams, pairing: Pairing, metric: Metric[str, str]) -> None:
    """A metric of texts, to which lists of tokens are joined."""
    from seqtools.evaluation.pairs import get_string

    _score(streams, pairing, metric, get_string, get_string)


def _score(
    streams: Streams,
    pairing: Pairing,
    metric: Metric[H, R],
    read_output: Callable[[Record, str], H],
    read_reference: Callable[[Record, str], R],
) -> None:
    """Feed a metric with every pair, and write what it finds."""
    with Session(streams) as session:
        read_pairs(session, pairing, metric.add, read_output, read_reference)
        _write(session, metric.result)
        if advice := metric.advice():  # within, for rejects end the session with their own status
            _run.warn(advice)


def _write(session: Session, result: Callable[[], dict[str, Any]]) -> None:
    if session.records == session.rejected:
        raise SeqtoolsError("no records, so there is no score")
    session.write(result())


def main() -> None:
    """Run from the shell."""
    _run.main(cli)
