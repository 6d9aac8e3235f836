"""What seq-decode fill and encode make of records before the model sees them."""

from typing import Any

import pytest

from seqtools.batching.corpus import Options
from seqtools.batching.mlm import Masking, MlmCorpus
from seqtools.cli._text_encoding import Text, TextEncoder, filled
from seqtools.errors import ConfigError, RecordError
from seqtools.models.description import Description
from seqtools.streams.files import Place
from seqtools.text.vocab import Vocabulary

PLAIN = ["pad", "unk", "bos", "eos"]
VOCABULARY = Vocabulary.build({"a": 3, "b": 2, "c": 1}, specials=[*PLAIN, "mask", "cls", "sep"])
UNK, BOS, MASK, CLS, SEP, A, B, C = 1, 2, 4, 5, 6, 7, 8, 9
BARE = Vocabulary.build({"a": 3, "b": 2, "c": 1}, specials=[*PLAIN, "mask"])
PLACE = Place("data", 7, 5)


def encoder(
    vocabulary: Vocabulary = VOCABULARY, config: dict[str, Any] | None = None, **batching: Any
) -> TextEncoder:
    names = {"tokens": vocabulary}
    return TextEncoder(Description("transformer", "mlm", config or {}, names, batching, {}))


def text(made: TextEncoder, **record: Any) -> Text:
    return made.text(PLACE, b"", record)


def gapped(made: TextEncoder, **record: Any) -> Text:
    return made.gapped(PLACE, b"", record)


def test_one_text_and_two() -> None:
    one = text(encoder(), tokens=["a", "q", "b"])
    assert one.prefix == [CLS, A, UNK, B, SEP]
    assert one.segments == [0, 0, 0, 0, 0]
    assert one.places == [1, 2, 3]
    two = text(encoder(), tokens=["a"], text_pair_tokens=["b", "c"])
    assert two.prefix == [CLS, A, SEP, B, C, SEP]
    assert two.segments == [0, 0, 0, 1, 1, 1]
    assert two.places == [1, 3, 4]
    assert text(encoder(), tokens=["a"], text_pair_tokens=[]).prefix == [CLS, A, SEP]
    assert text(encoder(), tokens=[]).prefix == [CLS, SEP]


@pytest.mark.parametrize(
    ("options", "record"),
    [
        ({}, {"tokens": ["a", "b"]}),
        ({}, {"tokens": ["a", "b"], "text_pair_tokens": ["c"]}),
        ({"max_length": 5}, {"tokens": ["a", "b", "c", "a", "b"]}),
        ({"max_length": 5, "truncate": "left"}, {"tokens": ["a", "b", "c", "a", "b"]}),
        ({"max_length": 7}, {"tokens": list("abcabc"), "text_pair_tokens": ["c"]}),
        ({"max_length": 7, "truncate": "left"}, {"tokens": ["a"], "text_pair_tokens": [*"abca"]}),
        ({"max_length": 6}, {"tokens": list("abcb"), "text_pair_tokens": list("cba")}),
    ],
)  # fmt: skip
def test_rows_are_those_of_the_batches(options: dict[str, Any], record: dict[str, Any]) -> None:
    corpus = MlmCorpus(VOCABULARY, Options(batch_size=1, **options), Masking(rate=1e-9))
    corpus.append(corpus.encode(record), 1)
    corpus.freeze()
    [cut] = corpus.cuts(1)
    batch = corpus.batch(1, 1, cut)
    item = text(encoder(**{"truncate": "right", **options}), **record)
    assert item.prefix == batch.inputs[0].tolist()
    assert batch.segments is not None
    assert item.segments == batch.segments[0].tolist()


def test_without_symbols_texts_stand_bare() -> None:
    item = text(encoder(BARE), tokens=["a", "b"])
    assert (item.prefix, item.places) == ([5, 6], [0, 1])
    with pytest.raises(RecordError, match="no <cls> and <sep>, which pairs of texts need"):
        text(encoder(BARE), tokens=["a"], text_pair_tokens=["b"])
    with pytest.raises(RecordError, match="there are no tokens"):
        text(encoder(BARE), tokens=[])


def test_second_texts_are_told_of_where_training_had_none(
    capfd: pytest.CaptureFixture[str],
) -> None:
    pair = {"tokens": ["a"], "text_pair_tokens": ["b"]}
    for made in (encoder(), encoder(pairs=True), encoder(pairs=False)):
        text(made, **pair)
        text(made, tokens=["a"], text_pair_tokens=[])
        gapped(made, **pair | {"tokens": ["<mask>"]})
        assert capfd.readouterr().err == ""
        made.report()
    warning = "second texts, of which training had none: 2"
    assert warning in capfd.readouterr().err


def test_ids_are_taken_as_they_are() -> None:
    item = gapped(encoder(ids=True), ids=[A, MASK], text_pair_ids=[MASK, C])
    assert item.prefix == [A, MASK, MASK, C]
    assert item.segments == [0, 0, 1, 1]
    assert item.gaps == [1, 2]


def test_gaps_are_where_the_mask_is_spelled() -> None:
    made = encoder()
    item = gapped(made, tokens=["a", "<mask>", "<sep>"], text_pair_tokens=["<mask>"])
    assert item.prefix == [CLS, A, MASK, UNK, SEP, MASK, SEP]
    assert item.gaps == [2, 5]
    assert made.counts["reserved"] == 1
    assert gapped(made, tokens=["a"]).gaps == []
    # nowhere but there
    assert text(made, tokens=["<mask>"]).prefix == [CLS, UNK, SEP]
    nothing = Vocabulary.build({"a": 1})
    with pytest.raises(ConfigError, match="the model's vocabulary has no <mask>"):
        gapped(encoder(nothing), tokens=["a"])


@pytest.mark.parametrize(
    ("token", "said"),
    [("<mask>", ""), ("c", "the token <mask>"), ("[MASK]", "the token <mask>; [MASK] is text")],
)
def test_records_without_a_gap_are_told_of_once(
    token: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    made = encoder()
    gapped(made, tokens=["a", token])
    gapped(made, tokens=["<mask>"])
    gapped(made, tokens=["b"], text_pair_tokens=[token])
    made.report()
    told = [line for line in capfd.readouterr().err.splitlines() if "gap" in line]
    assert [line.partition("warning: ")[2] for line in told] == (
        [f"records without a gap: 2; a gap is {said}"] if said else []
    )


def test_gaps_of_ids_are_named_by_the_id(capfd: pytest.CaptureFixture[str]) -> None:
    made = encoder(ids=True)
    gapped(made, ids=[A])
    made.report()
    assert f"records without a gap: 1; a gap is the id {MASK}\n" in capfd.readouterr().err


def test_gaps_that_are_cut_off_are_an_error() -> None:
    made = encoder(max_length=5, truncate="right")
    assert gapped(made, tokens=["<mask>", "a", "b", "c"]).gaps == [1]
    assert made.counts["truncated"] == 1
    with pytest.raises(RecordError, match="a <mask> stands in the part that is too long"):
        gapped(made, tokens=["a", "a", "b", "<mask>"])
    made = encoder(max_length=5, truncate="error")
    with pytest.raises(RecordError, match="the text takes 6 inputs, more than 5"):
        text(made, tokens=["a", "a", "b", "c"])
    learned = {"position": "learned", "max_positions": 5}
    with pytest.raises(RecordError, match=r"6 inputs, .* than the model's 5 positions"):
        text(encoder(config=learned), tokens=["a", "a", "b", "c"])


def test_a_language_model_is_fed_a_prompt() -> None:
    names = {"tokens": VOCABULARY}
    made = TextEncoder(Description("gru", "lm", {}, names, {"sampling": "records"}, {}))
    item = text(made, tokens=["a", "b"])
    assert (item.prefix, item.places) == ([BOS, A, B], [1, 2])
    # each token is looked at once, and no output is to begin with anything
    item = text(made, tokens=["a", "<sep>"], prefix_tokens="odd")
    assert (item.prefix, item.places) == ([BOS, A, UNK], [1, 2])
    assert made.counts["reserved"] == 1


def test_gaps_are_filled_in_order() -> None:
    assert filled(["<mask>", "a", "<mask>"], "<mask>", ["x", "y"]) == ["x", "a", "y"]
    assert filled([A, MASK], MASK, [B]) == [A, B]
