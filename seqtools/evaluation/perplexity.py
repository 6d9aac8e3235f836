"""Perplexity of a corpus from the log-probabilities of its records."""

from __future__ import annotations

import math
from typing import Any

from seqtools.errors import RecordError
from seqtools.streams.records import Record, get, name_of

# Sums of float32 log-probabilities of certain tokens may come out a little above 0.
_ROUNDING = 1e-4
_LOWEST = -1e300  # below it an integer need not fit a float


class Perplexity:
    """exp(-sum of log P / number of tokens), over all records together.

    It is the weighted mean over tokens that counts, not a mean of the records' perplexities.
    """

    def __init__(self) -> None:
        self._logprob = 0.0
        self._tokens = 0
        self._records = 0

    def add(self, logprob: float, n_tokens: int) -> None:
        """Count one record.

        Args:
            logprob: natural logarithm of the probability of all its tokens; may be -inf.
            n_tokens: how many they are.
        """
        self._logprob += logprob
        self._tokens += n_tokens
        self._records += 1

    def result(self) -> dict[str, Any]:
        """The corpus' numbers; infinities are the strings `"inf"` and `"-inf"`.

        `loss` is in nats and `bits` in bits per token, `logprob` is the sum in nats.

        Raises:
            RecordError: not a single token was counted, so there is no mean.
        """
        if not self._tokens:
            raise RecordError("no record has a token, so there is no perplexity")
        loss = -self._logprob / self._tokens
        try:
            perplexity = math.exp(loss)
        except OverflowError:
            perplexity = math.inf
        return {
            "metric": "perplexity",
            "perplexity": _plain(perplexity),
            "loss": _plain(loss),
            "bits": _plain(loss / math.log(2)),
            "logprob": _plain(self._logprob),
            "n_tokens": self._tokens,
            "records": self._records,
        }


def read_logprob(record: Record) -> tuple[float, int]:
    """The `logprob` (a number up to 0, or the string "-inf") and `n_tokens` of a scored record.

    Raises:
        RecordError: one is missing or not such a number.
    """
    logprob, n_tokens = get(record, "logprob"), get(record, "n_tokens")
    if logprob == "-inf":
        logprob = -math.inf
    if type(logprob) not in (int, float):
        raise RecordError(f'"logprob" must be a number or "-inf", got {name_of(logprob)}')
    if not _LOWEST < logprob <= _ROUNDING and logprob != -math.inf:
        raise RecordError(f'"logprob" must be a log-probability, up to 0, got {logprob}')
    if type(n_tokens) is not int or n_tokens < 0:
        shown = n_tokens if type(n_tokens) in (int, float) else name_of(n_tokens)
        raise RecordError(f'"n_tokens" must be a whole number from 0, got {shown}')
    if logprob < -_ROUNDING and not n_tokens:
        raise RecordError(f'"logprob" is {logprob}, but "n_tokens" is 0')
    return float(logprob), n_tokens


def _plain(value: float) -> float | str:
    """The number, or its name where JSON has no number for it."""
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value + 0.0  # no minus zero
