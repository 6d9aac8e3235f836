"""What the options of decoding take, and what they refuse."""

from typing import Any

import click
import pytest

from seqtools.cli._attention_options import AttentionChoice, IndicesType
from seqtools.cli._decode_length import Length, LengthType
from seqtools.cli._decode_options import Ranking, Search


@pytest.mark.parametrize(
    ("text", "length", "of_seven"),
    [
        ("50", Length(0, 50), 50),
        ("2x", Length(2, 0), 14),
        ("1.5x", Length(1.5, 0), 10),
        ("2x+10", Length(2, 10), 24),
        ("0.1x", Length(0.1, 0), 1),
    ],
)
def test_lengths(text: str, length: Length, of_seven: int) -> None:
    found = LengthType().convert(text, None, None)
    assert found == length
    assert found.of(7) == of_seven
    assert str(found) == text


def test_a_length_is_the_multiple_that_was_typed() -> None:
    assert 1.15 * 100 < 115  # in floating point
    assert LengthType().convert("1.15x", None, None).of(100) == 115


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "x", "2x+", "+5", "2x10", "x+5", "0x", "1e3", "nan", "2x+-1", "10x10"]
)
def test_no_lengths(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no length, such as 50, 2x or"):
        LengthType().convert(text, None, None)


def test_indices() -> None:
    def read(text: str) -> tuple[int, ...]:
        return IndicesType().convert(text, None, None)

    assert read("0") == (0,)
    assert read("5,0-2,1") == (0, 1, 2, 5)
    for wrong in ("", "a", "1,", "-1", "3-1", "1-", "1.5"):
        with pytest.raises(click.BadParameter, match="is no list such as 0,2-5"):
            read(wrong)


def search(**options: Any) -> Search:
    return Search(**{"output_field": "output", "max_length": None, **options})


def ranking(**options: Any) -> Ranking:
    usual = {
        "beam": 4,
        "nbest": 1,
        "length_penalty": 0.0,
        "length_penalty_form": "power",
        "coverage_penalty": 0.0,
        "diverse_groups": 1,
        "diversity": None,
    }
    return Ranking(**{**usual, **options})


def test_what_does_not_go_together() -> None:
    assert search(min_length=5, max_length=Length(0, 5)).min_length == 5
    assert search(min_length=5, max_length=Length(1, 1)).min_length == 5
    with pytest.raises(click.UsageError, match="--min-length 6 is above --max-length"):
        search(min_length=6, max_length=Length(0, 5))
    for one in ({"lm": "file"}, {"lm_weight": 0.5}):
        with pytest.raises(click.UsageError, match="--lm and --lm-weight need one another"):
            search(**one)
    assert ranking(diverse_groups=2, diversity=0.2).diverse_groups == 2
    with pytest.raises(click.UsageError, match="--nbest 5 is more than --beam 4"):
        ranking(nbest=5)
    with pytest.raises(click.UsageError, match="--beam 4 cannot be split into 3 groups"):
        ranking(diverse_groups=3)
    with pytest.raises(click.UsageError, match="--diversity needs --diverse-groups"):
        ranking(diversity=0.2)


def test_what_attention_needs() -> None:
    assert not AttentionChoice()
    assert AttentionChoice(attention=True, attention_layers=(0,), attention_mean="all")
    assert AttentionChoice(align=True, attention_heads=(1,))
    with pytest.raises(
        click.UsageError, match=r"--attention-layers needs --attention \(or --align"
    ):
        AttentionChoice(attention_layers=(0,))
    with pytest.raises(click.UsageError, match=r"--attention-heads needs --attention \(or --align"):
        AttentionChoice(attention_heads=(0,))
    with pytest.raises(click.UsageError, match="--attention-mean needs --attention"):
        AttentionChoice(align=True, attention_mean="all")
