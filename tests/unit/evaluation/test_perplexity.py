"""Perplexity of a corpus against its formula and worked values."""

import math

import pytest

from seqtools.errors import RecordError
from seqtools.evaluation.perplexity import Perplexity, read_logprob
from seqtools.streams.records import Record


def score(*records: tuple[float, int]) -> dict[str, object]:
    perplexity = Perplexity()
    for logprob, n_tokens in records:
        perplexity.add(logprob, n_tokens)
    return perplexity.result()


def test_a_uniform_model_over_four() -> None:
    result = score((-3 * math.log(4), 3), (-math.log(4), 1))
    assert result["perplexity"] == pytest.approx(4)
    assert result["bits"] == pytest.approx(2)
    assert result["loss"] == pytest.approx(math.log(4))
    assert (result["n_tokens"], result["records"]) == (4, 2)


def test_a_corpus_of_known_perplexity() -> None:
    # six sentences under a small back-off bigram model; KenLM's totals in log10, with </s>
    log10 = [-0.726999, -1.931119, -0.647817, -1.0, -2.768391, -1.204120]
    records = zip((x * math.log(10) for x in log10), [3, 3, 2, 1, 4, 2], strict=True)
    assert score(*records)["perplexity"] == pytest.approx(3.563661, abs=1e-5)


def test_probability_zero_is_a_string() -> None:
    result = score((-1.0, 2), (-math.inf, 1))
    assert result == {
        "metric": "perplexity", "perplexity": "inf", "loss": "inf", "bits": "inf",
        "logprob": "-inf", "n_tokens": 3, "records": 2,
    }  # fmt: skip


def test_too_large_for_a_float() -> None:
    result = score((-1000.0, 1))
    assert result["perplexity"] == "inf"
    assert result["loss"] == 1000.0


def test_certainty_is_one() -> None:
    assert score((0.0, 5), (0.0, 0))["perplexity"] == 1.0
    assert str(score((0.0, 5))["loss"]) == "0.0"


def test_no_token_at_all() -> None:
    with pytest.raises(RecordError, match="no record has a token"):
        score((0.0, 0))


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"logprob": -1.5, "n_tokens": 2}, (-1.5, 2)),
        ({"logprob": 0, "n_tokens": 0}, (0.0, 0)),
        ({"logprob": 1e-7, "n_tokens": 3}, (1e-7, 3)),
        ({"logprob": "-inf", "n_tokens": 3}, (-math.inf, 3)),
    ],
)
def test_reads(record: Record, expected: tuple[float, int]) -> None:
    assert read_logprob(record) == expected


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"n_tokens": 2}, '"logprob" is missing'),
        ({"logprob": -1.0}, '"n_tokens" is missing'),
        ({"logprob": "inf", "n_tokens": 2}, '"logprob" must be a number or "-inf", got string'),
        ({"logprob": True, "n_tokens": 2}, '"logprob" must be a number or "-inf", got boolean'),
        ({"logprob": 2.5, "n_tokens": 2}, '"logprob" must be a log-probability, up to 0, got 2.5'),
        ({"logprob": -(10**400), "n_tokens": 2}, '"logprob" must be a log-probability, up to 0'),
        ({"logprob": -1.0, "n_tokens": 2.0}, '"n_tokens" must be a whole number from 0, got 2.0'),
        ({"logprob": -1.0, "n_tokens": -2}, '"n_tokens" must be a whole number from 0, got -2'),
        ({"logprob": -1.0, "n_tokens": True}, '"n_tokens" must be a whole number from 0'),
        ({"logprob": -1.0, "n_tokens": 0}, '"logprob" is -1.0, but "n_tokens" is 0'),
    ],
)
def test_refuses(record: Record, message: str) -> None:
    with pytest.raises(RecordError) as caught:
        read_logprob(record)
    assert str(caught.value).startswith(message)
