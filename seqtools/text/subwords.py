"""Learning a sentencepiece model from texts: BPE or unigram."""

from __future__ import annotations

import io
import random
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from seqtools.errors import ConfigError, FormatError
from seqtools.text.subword_library import explain, library
from seqtools.text.subword_model import SubwordModel

Kind = Literal["bpe", "unigram"]
Normalization = Literal["nmt_nfkc", "nmt_nfkc_cf", "nfkc", "nfkc_cf", "identity"]

SMALLEST = 4  # the model's own three symbols, and one piece
_LONGEST = 1 << 30  # the longest text the library can be told to take, in bytes
_RESERVED = "\u2585"  # stands for rare characters inside the library, which skips texts with it
_OWN = ("<unk>", "<s>", "</s>")
_BYTES = 256  # pieces

_TOO_LARGE = re.compile(r"Vocabulary size too high \(\d+\)\D+(\d+)")
_TOO_SMALL = re.compile(r"Vocabulary size is smaller than required_chars\. \d+ vs (\d+)")
_NO_TEXT = ("!sentences_.empty()", "(all_chars_count) > (0)")


@dataclass(frozen=True)
class Recipe:
    """What is to be learned, and how.

    Attributes:
        kind: `bpe` merges the most frequent pair again and again (Sennrich et al. 2016); `unigram`
            prunes a large set of pieces to those under which the text is likeliest (Kudo 2018).
        size: how many pieces, the model's `<unk>`, `<s>` and `</s>` counted.
        soft_size: fewer where the texts do not yield so many.
        normalization: of all text, when learning as when splitting; `_cf` folds case as well.
        keep_space: blanks at the ends and in a row stay.
        prefix: a text begins with a blank, so that its first word is cut as any other.
        byte_fallback: unknown characters become the bytes of their UTF-8.
        coverage: share of all characters that get a piece; the rarest of the rest stay unknown.
        symbols: pieces that are never cut nor merged; a blank in one is written `▁`.
        threads: more are faster; the result is the same for the same number.

    Raises:
        ConfigError: a symbol is empty, stands twice, or is one of the model's own; the size leaves
            no room for what every text needs.
    """

    kind: Kind
    size: int
    soft_size: bool = False
    normalization: Normalization = "nmt_nfkc"
    keep_space: bool = False
    prefix: bool = True
    byte_fallback: bool = False
    coverage: float = 0.9995
    symbols: Sequence[str] = ()
    threads: int = 1

    def __post_init__(self) -> None:
        for number, symbol in enumerate(self.symbols):
            if not symbol:
                raise ConfigError("a symbol cannot be empty")
            if symbol in _OWN:
                raise ConfigError(f"{symbol!r} is a symbol that every model has for itself")
            if symbol in self.symbols[:number]:
                raise ConfigError(f"symbol {symbol!r} stands twice")
        least = len(_OWN) + len(self.symbols) + (_BYTES if self.byte_fallback else 0)
        if self.size < least:
            raise ConfigError(
                f"size {self.size} is too small: symbols and bytes alone are {least} pieces"
            )


@dataclass(frozen=True)
class Learned:
    """What came out.

    Attributes:
        data: the model's file.
        size: pieces in it.
        skipped: texts that were not learned from: they hold U+2585, which the library uses itself.
    """

    data: bytes
    size: int
    skipped: int


class Sample:
    """The texts of records as they pass by: of all, or of so many drawn evenly (Vitter 1985, R).

    Args:
        limit: how many records to hold, or None for all.
        seed: of the draws.
    """

    def __init__(self, limit: int | None = None, seed: int = 0) -> None:
        self._limit = limit
        self._random = random.Random(seed)
        self._held: list[Sequence[str]] = []
        self.seen = 0

    def add(self, texts: Sequence[str]) -> None:
        """See one more record."""
        self.seen += 1
        if self._limit is None or len(self._held) < self._limit:
            self._held.append(texts)
            return
        place = self._random.randrange(self.seen)
        if place < self._limit:
            self._held[place] = texts

    def __len__(self) -> int:
        """How many records are held."""
        return len(self._held)

    def drain(self) -> Iterator[str]:
        """The texts, given away as they are read."""
        self._held.reverse()
        while self._held:
            yield from self._held.pop()


def learn(texts: Iterator[str], recipe: Recipe) -> Learned:
    """Learn a model; the same texts in the same order give the same bytes.

    Raises:
        ConfigError: the texts yield fewer pieces than asked for, or need more.
        FormatError: there is no text to learn from, or the library failed.
    """
    skipped = 0

    def usable() -> Iterator[str]:
        nonlocal skipped
        for text in texts:
            if _RESERVED in text:
                skipped += 1
            else:
                yield text

    sentencepiece = library()
    target = io.BytesIO()

    def train() -> None:
        sentencepiece.SentencePieceTrainer.Train(
            sentence_iterator=usable(),
            model_writer=target,
            model_type=recipe.kind,
            vocab_size=recipe.size,
            hard_vocab_limit=not recipe.soft_size,
            normalization_rule_name=recipe.normalization,
            remove_extra_whitespaces=not recipe.keep_space,
            add_dummy_prefix=recipe.prefix,
            byte_fallback=recipe.byte_fallback,
            character_coverage=recipe.coverage,
            user_defined_symbols=[symbol.replace(" ", "▁") for symbol in recipe.symbols],
            num_threads=recipe.threads,
            max_sentence_length=_LONGEST,
            shuffle_input_sentence=False,
        )

    try:
        _beside(train)
    except RuntimeError as error:
        raise _translate(str(error), error, recipe.size, skipped) from None
    data = target.getvalue()
    return Learned(data, len(SubwordModel.parse(data).pieces), skipped)


def _beside(work: Callable[[], None]) -> None:
    """Do it in another thread: this one answers signals, which the library would keep waiting."""
    errors: list[Exception] = []

    def run() -> None:
        try:
            work()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def _translate(text: str, error: Exception, size: int, skipped: int) -> Exception:
    """The library's complaint in words of ours."""
    if found := _TOO_LARGE.search(text):
        return ConfigError(
            f"size {size} is too large, these texts yield at most {found[1]} pieces"
            " (--soft-size takes fewer)"
        )
    if found := _TOO_SMALL.search(text):
        return ConfigError(
            f"size {size} is too small, these texts need at least {found[1]}: a piece for each"
            " character, and the symbols"
        )
    if any(part in text for part in _NO_TEXT):
        why = f": those with U+2585 (▅), which the library keeps for itself, are {skipped}"
        return FormatError(f"no text to learn from{why if skipped else ''}")
    return FormatError(f"sentencepiece: {explain(error)}")
