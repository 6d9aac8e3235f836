"""What seq-decode makes of records before the model sees them."""

from typing import Any

import pytest

from seqtools.cli._decode_items import Item
from seqtools.cli._encoding import Encoder
from seqtools.errors import ConfigError, RecordError
from seqtools.models.description import Description
from seqtools.streams.files import Place
from seqtools.text.vocab import Vocabulary

PAD, UNK, BOS, EOS, A, B, C = range(7)
VOCABULARY = Vocabulary.build({"a": 3, "b": 2, "c": 1})
BARE = Vocabulary.build({"a": 3, "b": 2, "c": 1}, specials=[])


def encoder(
    task: str,
    vocabulary: Vocabulary = VOCABULARY,
    config: dict[str, Any] | None = None,
    **batching: Any,
) -> Encoder:
    names = ["tokens"] if task == "lm" else ["source", "target"]
    vocabularies = dict.fromkeys(names, vocabulary)
    return Encoder(Description("gru", task, config or {}, vocabularies, batching, {}))


def prompt(made: Encoder, **record: Any) -> Item:
    return made.prompt(Place("data", 7, 5), b"", record)


def pair(made: Encoder, **record: Any) -> Item:
    return made.pair(Place("data", 7, 5), b"", record)


@pytest.mark.parametrize(
    ("sampling", "start"), [("random", EOS), ("sequential", EOS), ("records", BOS)]
)
def test_a_language_model_starts_as_its_batches_did(sampling: str, start: int) -> None:
    made = encoder("lm", sampling=sampling)
    assert prompt(made, tokens=["a", "b"]).prefix == [start, A, B]
    assert prompt(made, tokens=[]).prefix == [start]
    assert made.empty(3).prefix == [start]
    scored = pair(made, tokens=["a", "b"])
    assert (scored.prefix, scored.targets) == ([start], [A, B, EOS])


def test_a_source_ends_with_eos_and_its_output_starts_from_bos() -> None:
    item = prompt(encoder("seq2seq"), src_tokens=["a", "q"])
    assert (item.source, item.prefix) == ([A, UNK, EOS], [BOS])
    item = pair(encoder("seq2seq"), src_tokens=[], tgt_tokens=["c"])
    assert (item.source, item.prefix, item.targets) == ([EOS], [BOS], [C, EOS])


@pytest.mark.parametrize(
    ("truncate", "source"),
    [("right", [A, B, EOS]), ("left", [B, C, EOS]), ("drop", [A, B, C, EOS])],
)
def test_long_sources_are_cut_as_in_training(truncate: str, source: list[int]) -> None:
    made = encoder("seq2seq", max_length=3, truncate=truncate)
    assert prompt(made, src_tokens=["a", "b", "c"]).source == source
    assert prompt(made, src_tokens=["a", "b"]).source == [A, B, EOS]
    assert made.counts["truncated"] == (truncate != "drop")


def test_long_sources_are_refused_where_training_refused_them() -> None:
    made = encoder("seq2seq", max_length=3, truncate="error")
    with pytest.raises(RecordError, match="the source has length 4, more than 3"):
        prompt(made, src_tokens=["a", "b", "c"])


def test_sources_past_the_reach_of_location_attention_are_refused() -> None:
    config = {"attention": "location", "max_source": 3}
    assert prompt(encoder("seq2seq", config=config), src_tokens=["a", "b"]).source == [A, B, EOS]
    with pytest.raises(RecordError, match=r"the source has length 4, .* reaches 3"):
        prompt(encoder("seq2seq", config=config), src_tokens=["a", "b", "c"])


def test_ids_are_taken_as_they_are() -> None:
    made = encoder("lm", ids=True, sampling="records")
    assert prompt(made, ids=[A, B]).prefix == [A, B]
    assert prompt(made, ids=[]).prefix == [BOS]
    scored = pair(made, ids=[A, B, C])
    assert (scored.prefix, scored.targets) == ([A], [B, C])
    item = prompt(encoder("seq2seq", ids=True), src_ids=[A, EOS])
    assert (item.source, item.prefix) == ([A, EOS], [BOS])
    with pytest.raises(RecordError, match='"ids" has id 7, but the vocabulary has 7 entries'):
        prompt(made, ids=[7])
    with pytest.raises(RecordError, match="the source is empty"):
        prompt(encoder("seq2seq", ids=True), src_ids=[])


def test_a_vocabulary_without_specials() -> None:
    made = encoder("lm", BARE, ids=True)
    assert prompt(made, ids=[0, 1]).prefix == [0, 1]
    assert made.banned == []
    with pytest.raises(RecordError, match="knows no symbol to start from"):
        prompt(made, ids=[])
    with pytest.raises(RecordError, match="token 'q' is not in the vocabulary"):
        prompt(encoder("lm", BARE), tokens=["q"])


def test_what_is_never_proposed() -> None:
    specials = ["pad", "unk", "bos", "eos", "mask", "cls", "sep"]
    vocabulary = Vocabulary.build({"a": 1}, specials=specials)
    names = {vocabulary.tokens[number] for number in encoder("lm", vocabulary).banned}
    assert names == {"<pad>", "<s>", "<mask>", "<cls>", "<sep>"}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({}, '"src_tokens" is missing'),
        ({"src_tokens": "a b"}, '"src_tokens" must be a list of strings, got string'),
        ({"src_tokens": ["a", 1]}, '"src_tokens" must be a list of strings, got number among them'),
        ({"src_tokens": None}, '"src_tokens" must be a list of strings, got null'),
    ],
)
def test_bad_records_are_named(record: dict[str, Any], reason: str) -> None:
    with pytest.raises(RecordError, match=f"^{reason}$"):
        prompt(encoder("seq2seq"), **record)


def test_what_would_make_missing_tokens_is_said() -> None:
    def refused(task: str, **record: Any) -> str:
        with pytest.raises(RecordError) as caught:
            pair(encoder(task, sampling="records"), **record)
        return str(caught.value)

    makes = "(seq-tokenize --field {} makes it)"
    assert refused("seq2seq", src="a") == f'"src_tokens" is missing {makes.format("src")}'
    assert refused("seq2seq", src_tokens=["a"], tgt="b") == (
        f'"tgt_tokens" is missing {makes.format("tgt")}'
    )
    assert refused("lm", text="a") == f'"tokens" is missing {makes.format("text")}'
    assert refused("lm", text=["a"]) == '"tokens" is missing'
    assert refused("seq2seq", tokens=["a"]) == (
        '"src_tokens" is missing ("tokens" is for models of lm and mlm)'
    )
    assert refused("lm", src_tokens=["a"]) == (
        '"tokens" is missing ("src_tokens" is for models of seq2seq)'
    )
    assert refused("seq2seq", src_tokens=["a"], tokens=["b"]) == '"tgt_tokens" is missing'


def test_random_choices_hang_on_the_id_or_the_number() -> None:
    made = encoder("lm")
    assert prompt(made, tokens=[], id="x").name == "x"
    assert prompt(made, tokens=[], id=12).name == "12"
    assert prompt(made, tokens=[]).name == "5"
    assert prompt(made, tokens=[], id=[1]).name == "5"


def test_outputs_are_as_long_as_the_task_needs() -> None:
    translation = prompt(encoder("seq2seq"), src_tokens=["a", "b", "c"])
    assert encoder("seq2seq").max_length(translation, None) == 16
    assert encoder("lm").max_length(prompt(encoder("lm"), tokens=["a"]), None) == 100


@pytest.mark.parametrize(
    ("tokens", "share", "warns"),
    [
        (["q"], 0.0, True),
        (["q", "a", "a"], 0.0, False),
        (["q"] * 4 + ["a"] * 3, 0.05, False),
        (["q"] * 9 + ["a"] * 7, 0.05, True),
        (["q"] * 9 + ["a"] * 8, 0.4, False),
    ],
)
def test_many_unknown_tokens_are_said_once(
    tokens: list[str], share: float, warns: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    made = encoder("lm", unknown_share={"tokens": share})
    prompt(made, tokens=tokens)
    prompt(made, tokens=tokens)
    assert capfd.readouterr().err.count("unknown to the model") == warns


def test_what_was_changed_is_reported(capfd: pytest.CaptureFixture[str]) -> None:
    made = encoder("seq2seq", max_length=3, truncate="right")
    prompt(made, src_tokens=["a", "</s>", "b", "c"])
    made.report()
    said = capfd.readouterr().err
    assert "texts cut to the 3 tokens that the model was trained on: 1\n" in said
    assert "tokens spelled like special symbols, read as unknown: 1\n" in said


def test_other_tasks_are_refused() -> None:
    with pytest.raises(ConfigError, match="does not serve models for the task tag"):
        encoder("tag")
    with pytest.raises(ConfigError, match="for models of the task lm; this one is for seq2seq"):
        encoder("seq2seq").require(["lm"], "--count")
