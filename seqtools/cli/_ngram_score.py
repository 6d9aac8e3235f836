"""The kinds of seq-ngram: score."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from seqtools.cli._io import Session, hint_at_text
from seqtools.cli._ngram_options import (
    field_option,
    model_option,
    refuse_same_output,
    side_output,
    tell_of_compiling,
    text_option,
    warn_of_markers,
)
from seqtools.cli._options import Streams, example, filter_options, refuse_same_input
from seqtools.errors import RecordError

if TYPE_CHECKING:
    from seqtools.ngram.model import Model
    from seqtools.ngram.scoring import Scorer, Scores
    from seqtools.streams.parallel import Counts
    from seqtools.streams.records import Record

    _Scored: TypeAlias = tuple[dict[str, Any], Scores, int]


@click.command(
    epilog=example(
        r"""$ printf 'a b\na b\na c\nb a\n' > k1.txt""",
        """$ seq-ngram train --order 2 --text -o k1.arpa --quiet k1.txt""",
        r"""$ printf 'a b\n' | seq-ngram score --model k1.arpa --text --quiet""",
        '{"text":"a b","logprob":-3.8304221064615294,"n_tokens":3,"n_oov":0}',
    )
)
@model_option
@field_option
@text_option
@click.option(
    "--bos/--no-bos",
    default=True,
    help="Put <s> before each record (default), or let its first word stand without context.",
)
@click.option(
    "--eos/--no-eos", default=True, help="Predict </s> after each record and count it (default)."
)
@click.option(
    "--details", is_flag=True,
    help="Add token_logprobs, and matched, the words of the longest n-gram known at each token.",
)  # fmt: skip
@click.option("--summary", metavar="FILE", help="Write the numbers of the whole corpus to FILE.")
@filter_options
def score(
    streams: Streams, model: str, field: str, summary: str | None,
    *, text: bool, bos: bool, eos: bool, details: bool,
) -> None:  # fmt: skip
    """Give the probability of records under a model.

    Reads tokens, or with --text plain lines; adds logprob (natural; "-inf" for a probability of 0),
    n_tokens (what was predicted: all tokens, and </s>), and n_oov, those of them that the model
    does not know. The perplexity of all records together goes to stderr, and to
    the FILE of --summary: "inf" where a probability is 0, "nan" where there are no tokens.
    """
    refuse_same_input(streams, "--model", model)
    refuse_same_output(streams, "--summary", summary)
    from seqtools.ngram import model as ngrams
    from seqtools.ngram.scoring import Scorer, summarise
    from seqtools.streams.records import loads, to_line
    from seqtools.text.convert import read_text

    tell_of_compiling(streams)
    with Session(streams) as session, side_output(summary) as target:
        opened = ngrams.load(model)
        scorer = Scorer(opened, eos=eos, bos=bos)
        with contextlib.nullcontext() if text else hint_at_text():
            counts = session.filter(
                lambda counts: Scoring(
                    opened, scorer, None if text else field, counts, details=details
                ),
                parse=read_text if text else loads,
                keep_blank=text,
            )
        if counts["markers"]:
            warn_of_markers(counts["markers"])
        result = summarise(counts, eos=eos, bos=bos)
        if target is not None:
            target.write(to_line(result))
        for line in _lines(result):
            session.summary(line)


class Scoring:
    """Scores the records of a block together; see `streams.parallel.Together`.

    Args:
        model: whose words turn tokens into ids.
        scorer: of that model.
        field: with the tokens; None for `text`, whose words are separated by white space.
        counts: where the sums go.
        details: write what is known of each token.
    """

    def __init__(
        self, model: Model, scorer: Scorer, field: str | None, counts: Counts, *, details: bool
    ) -> None:
        from seqtools.ngram.words import pack_tokens
        from seqtools.streams.records import get_tokens, to_line

        self._words, self._scorer = model.words, scorer
        self._field, self._counts, self._details = field, counts, details
        self._get, self._pack, self._to_line = get_tokens, pack_tokens, to_line

    def take(self, record: Record) -> Any:
        """The text, or the tokens."""
        return record["text"] if self._field is None else self._get(record, self._field)

    def work(self, taken: Sequence[Any]) -> Iterator[_Scored]:
        """The fields of each record."""
        import numpy as np

        from seqtools.ngram.scoring import LN10, add_up, plain

        spelled = np.zeros(2, dtype=np.int64)
        if self._field is None:
            lines = "".join([f"{text}\n" for text in taken])
            encoded = self._words.encode_text(lines.encode(), spelled=spelled)
        else:
            encoded = self._words.encode_packed(self._pack(taken), spelled=spelled)
        self._counts["markers"] += int(spelled[1])
        scores = self._scorer.score(*encoded)
        add_up(self._counts, scores)
        n_tokens, n_oov = scores.n_tokens.tolist(), scores.n_oov.tolist()
        for row, logprob in enumerate((scores.sums * LN10).tolist()):
            fields: dict[str, Any] = {
                "logprob": plain(logprob),
                "n_tokens": n_tokens[row],
                "n_oov": n_oov[row],
            }
            if self._details:
                fields |= _details(scores.one(row))
            yield fields, scores, row

    def write(self, record: Record, made: _Scored) -> bytes:
        """The record with its fields; what cannot be written does not count."""
        from seqtools.ngram.scoring import add_up

        fields, scores, row = made
        try:
            return self._to_line(record | fields)
        except RecordError:
            add_up(self._counts, scores.one(row), sign=-1)
            raise


def _details(scores: Scores) -> dict[str, Any]:
    """The fields that are of each token of a record."""
    from seqtools.ngram.scoring import LN10, plain

    logprobs: Any = (scores.log10probs.astype("float64") * LN10).astype("float32") + 0
    if logprobs.size and logprobs.min() == -math.inf:
        logprobs = [plain(value) if math.isinf(value) else value for value in logprobs]
    return {"token_logprobs": logprobs, "matched": scores.matched}


def _lines(result: dict[str, Any]) -> Iterator[str]:
    """The summary as people read it."""
    n_tokens, n_oov, records = result["n_tokens"], result["n_oov"], result["records"]
    counted = f"with a </s> for each of {records} records" if result["eos"] else "</s> not counted"
    if not result["bos"]:
        counted += ", no <s> before them"
    yield f"{n_tokens} tokens, {counted}; {n_oov} of them out of vocabulary"
    if not n_tokens:
        return
    for name, what in (("", "with"), ("_without_oov", "without")):
        perplexity, bits = result[f"perplexity{name}"], result[f"bits{name}"]
        yield (
            f"{what} words out of vocabulary: perplexity {_shown(perplexity)},"
            f" {_shown(bits)} bits per token"
        )


def _shown(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6f}"


kinds: tuple[click.Command, ...] = (score,)
