"""The kinds of seq-ngram: train."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from seqtools.cli import _run
from seqtools.cli._io import Session, hint_at_text
from seqtools.cli._ngram_input import read_heldout, read_packed, read_text
from seqtools.cli._ngram_options import (
    describe_output,
    field_option,
    memory_options,
    tell_of_compiling,
    text_option,
    warn_of_markers,
)
from seqtools.cli._options import (
    POSITIVE,
    FiniteFloat,
    Streams,
    collect,
    example,
    refuse_same_input,
    stream_options,
)

if TYPE_CHECKING:
    from seqtools.ngram.counts import Corpus, Reader
    from seqtools.ngram.estimate import Estimate, Settings
    from seqtools.ngram.words import Words
    from seqtools.streams.parallel import Transform
    from seqtools.streams.records import Record

METHODS = (  # those of ngram.smoothing, which is not to be loaded for a help text; a test compares
    "mle", "add-k", "jelinek-mercer", "witten-bell", "absolute", "kneser-ney",
    "modified-kneser-ney", "stupid-backoff",
)  # fmt: skip
_DISCOUNTED = ("absolute", "kneser-ney", "modified-kneser-ney")
_NOT_INTERPOLATED = ("add-k", "stupid-backoff")
_BINARY = ".safetensors"
_ARPA = (".arpa", ".arpa.gz", ".arpa.zst", ".arpa.xz", ".arpa.bz2")
_MANY = 10  # records, of which hardly each has one token by chance
_NUMBER = re.compile(r"\d*\.?\d+")
_SPACE = b"\t\n\v\f\r "


class NumbersType(click.ParamType[tuple[Any, ...]]):
    """Numbers separated by commas."""

    def __init__(self, kind: type[Any], name: str) -> None:
        self.kind, self.name = kind, name

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Any, ...]:
        """Parse and check."""
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(self.kind(part) for part in value.split(","))
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers such as {self.name}", param, ctx)
        if not all(0 <= number < float("inf") for number in numbers):
            self.fail(f"{value!r}: a number must be at least 0", param, ctx)
        return numbers


@dataclass(frozen=True)
class Choices:
    """The options that say what to estimate."""

    order: int
    smoothing: str = "modified-kneser-ney"
    discount: float | None = None
    discount_fallback: bool = False
    fallback_discounts: tuple[float, ...] | None = None
    add: float | None = None
    interpolate_unigrams: bool = True
    unk: bool = True
    prune: tuple[int, ...] = (0,)
    heldout: str | None = None
    vocab: str | None = None
    unk_as_word: bool = False

    def __post_init__(self) -> None:
        given = self.fallback_discounts
        if given is not None and len(given) != 3:
            raise click.UsageError("--fallback-discounts takes three numbers.")
        if (self.smoothing == "jelinek-mercer") != (self.heldout is not None):
            raise click.UsageError("--smoothing jelinek-mercer and --heldout FILE go together.")
        if self.unk_as_word and not self.unk:
            raise click.UsageError("--unk-as-word needs a model with an <unk> of its own.")
        self._refuse_idle()

    def _refuse_idle(self) -> None:
        """See that no option was given that the method does not look at."""
        fallback = self.discount_fallback or self.fallback_discounts is not None
        if fallback and self.smoothing not in _DISCOUNTED:
            raise click.UsageError(f"{self.smoothing} has no discounts that could have a fallback.")
        if fallback and self.discount is not None:
            raise click.UsageError("--discount leaves no discount that could need a fallback.")
        if self.add is not None and self.smoothing != "add-k":
            raise click.UsageError("--add is for --smoothing add-k.")
        if not self.interpolate_unigrams and self.smoothing in _NOT_INTERPOLATED:
            raise click.UsageError(f"{self.smoothing} does not mix unigrams with anything.")

    def settings(self) -> Settings:
        """As the library wants them."""
        from seqtools.ngram.estimate import Settings
        from seqtools.ngram.smoothing import FALLBACK, Smoothing

        fallback = FALLBACK if self.discount_fallback else None
        if self.fallback_discounts is not None:
            first, second, third = self.fallback_discounts
            fallback = (first, second, third)
        smoothing = Smoothing(
            self.smoothing, self.discount, fallback, 1.0 if self.add is None else self.add,
            self.interpolate_unigrams, self.unk,
        )  # fmt: skip
        return Settings(self.order, smoothing, self.prune)


_CHOICES = [
    click.option("--order", type=POSITIVE, required=True, help="Words of the longest n-grams."),
    click.option(
        "--smoothing", type=click.Choice(METHODS), default="modified-kneser-ney", show_default=True,
        help="How probability is kept for what was not seen.",
    ),
    click.option(
        "--discount", type=FiniteFloat(0, 1, low_open=True, high_open=True), metavar="D",
        help="absolute, kneser-ney: discount all counts of all orders by D, not by an estimate.",
    ),
    click.option(
        "--discount-fallback", is_flag=True,
        help="absolute, both kneser-ney: where discounts cannot be estimated from the data, take"
        " 0.5, 1 and 1.5.",
    ),
    click.option(
        "--fallback-discounts", type=NumbersType(float, "0.5,1,1.5"), metavar="D1,D2,D3",
        help="The same with other numbers, for counts of 1, 2, and 3 or more.",
    ),
    click.option(
        "--add", type=FiniteFloat(0, low_open=True), metavar="K",
        help="add-k: what is added to each count (default: 1).",
    ),
    click.option(
        "--interpolate-unigrams/--no-interpolate-unigrams", default=True,
        help="Mix unigrams with the uniform distribution (default), or leave their rest to <unk>.",
    ),
    click.option(
        "--unk/--no-unk", default=True,
        help="Unknown words have a probability (default), or none.",
    ),
    click.option(
        "--prune", type=NumbersType(int, "0,0,1"), default="0", metavar="N,N,...",
        help="Leave out n-grams seen N times or less, one N for each order from 1, the last for"
        " all beyond.",
    ),
    click.option(
        "--heldout", metavar="FILE", help="jelinek-mercer: text to find the weights by, like FILE."
    ),
    click.option(
        "--vocab", metavar="FILE",
        help="A closed vocabulary, as seq-vocab build writes it: all other words are <unk>.",
    ),
    click.option(
        "--unk-as-word", is_flag=True,
        help="Text that spells <unk> is a word of its own beside the model's <unk>.",
    ),
]  # fmt: skip


@click.command(
    epilog=example(
        r"""$ printf 'a b\na b\na c\nb a\n' | seq-ngram train --order 2 --text -o k.arpa --quiet""",
        """$ grep 'a b' k.arpa""",
        "-0.48993\ta b",
    )
)
@collect(Choices, "choices", _CHOICES)
@field_option
@text_option
@memory_options
@stream_options(jobs=True)
def train(
    streams: Streams,
    choices: Choices,
    field: str,
    memory: str,
    temp_dir: str | None,
    *,
    text: bool,
) -> None:
    """Estimate a language model.

    Reads tokens, or with --text plain lines of words separated by white space; -o names the model:
    FILE.arpa, compressed FILE.arpa.gz, or FILE.safetensors, which is smaller, opens at once and
    holds every kind of model. `-o -` writes ARPA to stdout.
    """
    arpa = _is_arpa(streams.output)
    refuse_same_input(streams, "--heldout", choices.heldout)
    refuse_same_input(streams, "--vocab", choices.vocab)
    if choices.discount_fallback:
        _refuse_numbers(streams.files)
    from seqtools.ngram.counts import Reader
    from seqtools.ngram.estimate import estimate
    from seqtools.ngram.storage import Store, parse_memory
    from seqtools.streams.files import check_inputs

    settings = choices.settings()
    limit = parse_memory(memory)
    if choices.heldout is not None:
        check_inputs([choices.heldout])
    known = None if choices.vocab is None else _read_vocabulary(choices.vocab, arpa=arpa)
    if arpa:
        _check_arpa(settings, unk_as_word=choices.unk_as_word)
    tell_of_compiling(streams)
    with Session(streams) as session, Store(limit * 6 // 10, temp_dir) as store:
        reader = Reader(store, vocabulary=known, unk_as_word=choices.unk_as_word)
        _read(session, reader, field, text=text, arpa=arpa)
        corpus = reader.finish()
        _check_corpus(corpus, settings, store)
        heldout = None
        if choices.heldout is not None:
            heldout = _read_heldout(choices.heldout, corpus.words, field, text=text)
        done = estimate(corpus, settings, store, limit // 4, heldout=heldout)
        _report(session, corpus, done)
        _write(session, done, arpa=arpa)


def _refuse_numbers(files: tuple[str, ...]) -> None:
    """See that no discount stands where an input should, as lmplz wants it after the option."""
    if any(_NUMBER.fullmatch(name) and not os.path.lexists(name) for name in files):
        raise click.UsageError("--discount-fallback takes no numbers; --fallback-discounts does.")


def _is_arpa(output: str | None) -> bool:
    """Whether the model is to be ARPA."""
    if output is None:
        raise click.UsageError("-o FILE is needed: the model (-o - writes ARPA to stdout).")
    if output == "-" or output.endswith(_ARPA):
        return True
    if output.endswith(_BINARY):
        return False
    raise click.UsageError(
        f"-o {output}: a model's name ends in .arpa, .arpa.gz (.zst, .xz, .bz2) or {_BINARY}."
    )


def _check_arpa(settings: Settings, *, unk_as_word: bool) -> None:
    method = settings.smoothing.method
    if method in ("add-k", "stupid-backoff") and settings.order > 1:
        raise click.UsageError(f"ARPA cannot express {method} above order 1; -o FILE{_BINARY} can.")
    if unk_as_word:
        raise click.UsageError(
            f"ARPA cannot hold a word <unk> beside the model's own; -o FILE{_BINARY} can."
        )


def _read_vocabulary(path: str, *, arpa: bool) -> list[bytes]:
    from seqtools.errors import FormatError
    from seqtools.text.vocab import Vocabulary

    vocabulary = Vocabulary.read(path)
    specials = set(vocabulary.specials.values())
    words = [
        token.encode() for number, token in enumerate(vocabulary.tokens) if number not in specials
    ]
    if arpa:
        for word in words:
            if not word or _has_space(word):
                raise FormatError(f"{path}: {_no_arpa_token(word)}")
    return words


def _has_space(word: bytes) -> bool:
    return len(word.translate(None, _SPACE)) < len(word)


def _no_arpa_token(word: bytes) -> str:
    what = "an empty token" if not word else f"token {word.decode()!r}, with white space in it,"
    return f"{what} cannot stand in ARPA"


def _read(session: Session, reader: Reader, field: str, *, text: bool, arpa: bool) -> None:
    """All records into the reader."""
    if text:
        read_text(session, reader.add_text)
        return
    with hint_at_text():
        transform = _packer(field, arpa=arpa)
        read_packed(session, transform, field, reader.add_packed, refuse_space=arpa)


def _packer(field: str, *, arpa: bool) -> Transform:
    from seqtools.errors import RecordError
    from seqtools.ngram.words import pack_record
    from seqtools.streams.records import get_tokens

    def transform(record: Record, number: int) -> bytes:
        tokens = get_tokens(record, field)
        data = pack_record(tokens)
        # Quicker than the pattern, where there is nothing to find.
        if arpa and (len(data.translate(None, _SPACE)) < len(data) or "" in tokens):
            bad = next(token for token in tokens if not token or _has_space(token.encode()))
            raise RecordError(f'"{field}": {_no_arpa_token(bad.encode())}')
        return data

    return transform


def _read_heldout(path: str, words: Words, field: str, *, text: bool) -> Any:
    """Ids (n,) of all held-out text, with that of `</s>` after each record."""
    import numpy as np

    encode = words.encode_text if text else words.encode_packed
    transform = None if text else _packer(field, arpa=False)
    found = [np.empty(0, dtype=np.int32)]
    read_heldout(path, transform, lambda data: found.append(encode(data, mark=True)[0]))
    return np.concatenate(found)


def _check_corpus(corpus: Corpus, settings: Settings, store: Any) -> None:
    """See what can be seen before the work, and say what the user may not have meant."""
    if corpus.spelled_unk:
        _run.warn(
            f"{corpus.spelled_unk} tokens are spelled <unk> and count as unknown words"
            " (--unk-as-word makes them a word)"
        )
    if corpus.spelled_marker:
        warn_of_markers(corpus.spelled_marker)
    each = corpus.events / max(1, corpus.records) - 1
    if settings.order > 1 and corpus.records >= _MANY and 0.5 < each < 1.2:
        _run.warn(f"about {each:.2g} tokens a record: is the text tokenised? (seq-tokenize)")
    # Each word of the text stands once in a column of each order, at some time all together.
    store.check_disk(4 * corpus.events * settings.order - store.memory)


def _report(session: Session, corpus: Corpus, done: Estimate) -> None:
    """What was estimated, on stderr."""
    from seqtools.ngram.arpa import count_ngrams

    sizes = count_ngrams(done.model.levels)
    session.summary(
        f"{corpus.records} records, {corpus.events - corpus.records} tokens, {sizes[0]} words"
    )
    for order in done.fallbacks:
        _run.warn(f"order {order}: discounts cannot be estimated, so they are those given")
    for order, size in enumerate(sizes, 1):
        discounts = ", ".join(f"{value:.6g}" for value in done.discounts[order - 1])
        shown = f", discounts {discounts}" if done.model.metadata["discounts"] else ""
        session.summary(f"order {order}: {size} n-grams{shown}")


def _write(session: Session, done: Estimate, *, arpa: bool) -> None:
    if arpa:
        from seqtools.ngram import arpa as arpa_format

        arpa_format.write(done.model.words, done.model.levels, session.output.write)
    else:
        from seqtools.ngram import model

        model.save(done.model, session.output.write)


describe_output(train, "The model, whole or not at all; its name says the format (- for stdout).")
kinds: tuple[click.Command, ...] = (train,)
