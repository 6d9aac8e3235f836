"""seq-eval: scores of outputs against references, and perplexity."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from seqtools.cli import _run
from seqtools.cli._io import Session
from seqtools.cli._options import Streams, WholeNumber, example, group, stream_options
from seqtools.cli._pairing import Pairing, pair_options, read_pairs
from seqtools.errors import SeqtoolsError

if TYPE_CHECKING:
    from seqtools.evaluation.corpus import Metric

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

    _score(streams, pairing, Bleu(tokenize=tokenize, lowercase=lowercase))


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

    _score(streams, pairing, Chrf(word_order=word_order, lowercase=lowercase))


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

    _score(streams, pairing, Exact(lowercase=lowercase))


@cli.command(
    epilog=example("""echo '{"logprob":-4.1589,"n_tokens":3}' | seq-eval perplexity"""),
)
@stream_options(shard=False)
def perplexity(streams: Streams) -> None:
    """Perplexity, nats and bits per token of scored records.

    Reads `logprob` (natural, or "-inf") and `n_tokens`, as seq-decode score writes them.
    """
    from seqtools.evaluation.perplexity import Perplexity, read_logprob

    metric = Perplexity()
    with Session(streams) as session:
        for _, scored in session.read(read_logprob):
            metric.add(*scored)
        _write(session, metric.result)


def _score(streams: Streams, pairing: Pairing, metric: Metric) -> None:
    """Feed a metric with every pair, and write what it finds."""
    with Session(streams) as session:
        for hypothesis, references in read_pairs(session, pairing):
            metric.add(hypothesis, references)
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
