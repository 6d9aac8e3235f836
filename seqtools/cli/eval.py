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
from seqtools.streams.files import STDIN

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

    _one_reference("accuracy", pairing)
    if masked and pairing.text:
        raise click.UsageError("--masked does not go with --text.")

    def guesses(record: Record, field: str) -> Guess:
        return get_guesses(record, field, masked, SPECIALS["mask"])

    _score(streams, pairing, Accuracy(lowercase=lowercase, labels=labels), guesses, get_values)


@cli.command(
    epilog=example(
        """$ printf '北京\\n大学\\n' > words.txt""",
        """$ echo '{"tokens":["北京","大","学","生"],"gold":["北京","大学生"]}' \\""",
        "  | seq-eval segmentation --hypothesis tokens --reference gold --words words.txt",
        '{"metric":"segmentation","score":0.3333333333333333,"precision":0.25,"recall":0.5,'
        '"correct":1,"guessed":4,"total":2,"records":1,"oov":1,"oov_rate":0.5,"oov_recall":0.0,'
        '"iv_recall":1.0}',
    )
)
@click.option(
    "--words", metavar="FILE",
    help="Words of the training data, one a line (a count may follow), or a vocabulary: for recall"
    " of unknown words.",
)  # fmt: skip
@pair_options
def segmentation(streams: Streams, pairing: Pairing, words: str | None, *, lowercase: bool) -> None:
    """Precision, recall and F1 (the score) of words cut from a text.

    Fields are lists of tokens; a string is cut at white space. White space does not count, the rest
    must be the same text on both sides.
    """
    from seqtools.evaluation.segmentation import Segmentation, get_words, read_words

    _one_reference("segmentation", pairing)
    if words == STDIN:
        raise click.UsageError("--words must be a file.")
    known = None if words is None else read_words(words)
    _score(streams, pairing, Segmentation(known, lowercase=lowercase), get_words, get_words)


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


def _one_reference(kind: str, pairing: Pairing) -> None:
    if len(pairing.reference) > 1 or len(pairing.reference_file) > 1:
        raise click.UsageError(f"{kind} compares with one reference only.")


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
