"""The kinds of seq-ngram: sample and check."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from seqtools.cli._attention_options import AttentionChoice
from seqtools.cli._decode_options import (
    Drawing,
    Search,
    Setup,
    drawing_options,
    plain_search_options,
    setup_options,
)
from seqtools.cli._io import Session
from seqtools.cli._ngram_options import model_option, tell_of_compiling
from seqtools.cli._options import (
    POSITIVE,
    FiniteFloat,
    Streams,
    example,
    seed_option,
    stream_options,
)
from seqtools.streams.files import STDIN

if TYPE_CHECKING:
    from seqtools.ngram.checking import Check
    from seqtools.ngram.model import Model

_SPACE = re.compile(r"[\t\n\v\f\r ]+")  # what separates words in plain text
# What a model may know of how it was made; a model that was read from ARPA knows none of it.
_ORIGIN = (
    "smoothing", "additive", "discounts", "counts_of_counts", "fallbacks", "weights", "prune",
    "records", "tokens",
)  # fmt: skip

_TRAIN = r"$ printf 'a b\na b\na c\nb a\n' | seq-ngram train --order 2 --text -o k.arpa --quiet"


@click.command(
    epilog=example(
        _TRAIN,
        "$ seq-ngram sample --model k.arpa --prompt b --temperature 0.5 | jq -c .output_tokens",
        '["a"]',
    )
)
@model_option
@click.option("--count", type=POSITIVE, help="Read nothing and make N new records.")
@click.option(
    "--prompt", metavar="TEXT",
    help="Words, separated by white space, that new records begin with (one, without --count).",
)  # fmt: skip
@click.option("--no-unk", is_flag=True, help="Never draw <unk>.")
@drawing_options
@plain_search_options
@setup_options
@stream_options()
def sample(  # many parameters: one for each way of drawing
    streams: Streams, setup: Setup, search: Search, drawing: Drawing, model: str,
    count: int | None, prompt: str | None, *, no_unk: bool,
) -> None:  # fmt: skip
    """Draw sequences at random.

    Reads the prompt in tokens; adds output_tokens, which is what follows the prompt, and
    hypotheses, the likeliest first. What is drawn depends on the seed and the record's id, or its
    number if it has none. Words that the model does not know count as <unk>.
    """
    if prompt is not None and streams.files != (STDIN,):
        raise click.UsageError("--prompt makes new records and reads no FILE.")
    if count is None and prompt is None and model == STDIN in streams.files:
        raise click.UsageError("--model and the records cannot both come from stdin.")
    words = _words(prompt or "")
    from seqtools.cli import _decode_search
    from seqtools.cli._decoding import decode, invent
    from seqtools.cli._ngram_encoding import NgramEncoder

    tell_of_compiling(streams)
    opener = partial(NgramEncoder.open_ngrams, model, no_unk=no_unk)
    work = _decode_search.sample(search, drawing, AttentionChoice())
    if count is None and prompt is None:
        decode(streams, setup, work, opener=opener)
    else:
        invent(streams, setup, work, count or 1, prompt=words, opener=opener)


@click.command(
    epilog=example(
        _TRAIN, "$ seq-ngram check --model k.arpa | jq -c '[.ngrams, .deviation < 1e-6]'",
        "[[6,8],true]",
    )
)  # fmt: skip
@model_option
@click.option(
    "--contexts", type=POSITIVE, default=100, show_default=True,
    help="How many contexts are looked at, besides the empty one and <s>.",
)  # fmt: skip
@click.option(
    "--tolerance", type=FiniteFloat(0), default=1e-4, show_default=True, metavar="T",
    help="How far a sum may be from 1.",
)  # fmt: skip
@seed_option
@stream_options(rejects=False, shard=False, inputs=False)
def check(streams: Streams, model: str, contexts: int, tolerance: float, seed: int) -> None:
    """See whether the probabilities of a model sum to 1.

    Looks at contexts drawn from the n-grams of every order and at random ones, and writes one
    record: the largest deviation and after which context, the size of the model, and, where the
    model knows, how it was smoothed and with which discounts. The exit status is 1 where a sum is
    further from 1 than it may be; the scores of stupid backoff are no probabilities, so theirs may
    be anything.
    """
    from seqtools.errors import SeqtoolsError
    from seqtools.ngram import model as ngrams
    from seqtools.ngram.checking import check as look

    tell_of_compiling(streams)
    with Session(streams, "contexts") as session:
        opened = ngrams.load(model)
        found = look(opened, contexts, seed=seed)
        context = [opened.words.string(word).decode("utf-8", "replace") for word in found.worst]
        session.write(_report(opened, found, context))
        where = f"after {' '.join(context)!r}" if context else "without context"
        session.summary(
            f"{found.contexts} contexts, largest deviation {found.deviation:.2g} {where}"
        )
    if opened.metadata.get("smoothing") == "stupid-backoff":
        session.summary("stupid backoff gives scores, which do not sum to 1")
    elif not found.deviation <= tolerance:
        raise SeqtoolsError(
            f"{model}: the probabilities {where} sum to {found.total:.9g},"
            f" which is further from 1 than {tolerance:g}"
        )


def _report(model: Model, found: Check, context: list[str]) -> dict[str, Any]:
    """The record that is written."""
    from seqtools.ngram.arpa import count_ngrams

    sizes = count_ngrams(model.levels)
    known = {name: model.metadata.get(name) for name in _ORIGIN}
    rounded = float(f"{found.deviation:.2g}")  # the rest is rounding error of the machine
    return {
        "order": model.order,
        "words": sizes[0],
        "ngrams": sizes,
        **{name: value for name, value in known.items() if value is not None},
        "contexts": found.contexts,
        "deviation": rounded if math.isfinite(rounded) else "inf",
        "context": context,
        "probabilities_above_1": found.probabilities_above_1,
        "backoffs_above_1": found.backoffs_above_1,
    }


def _words(prompt: str) -> list[str]:
    try:
        prompt.encode()
    except UnicodeEncodeError:
        raise click.UsageError("--prompt is not UTF-8.") from None
    return [word for word in _SPACE.split(prompt) if word]


kinds: tuple[click.Command, ...] = (sample, check)
