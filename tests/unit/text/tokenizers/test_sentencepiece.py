"""Pieces of words, against the library itself and against what segmentations there are."""

import collections
import io
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtools.errors import ConfigError, FormatError, RecordError
from seqtools.streams.records import loads
from seqtools.text.normalize import Normalizer
from seqtools.text.subword_library import library
from seqtools.text.subword_model import PieceType, SubwordModel, _fields, _retyped
from seqtools.text.subwords import Recipe, learn
from seqtools.text.tokenizers.blocks import Care, JoinBlock, SplitBlock, SplitDrawn, trace
from seqtools.text.tokenizers.drawing import Sampling
from seqtools.text.tokenizers.sentencepiece import SentencePieceTokenizer

TEXTS = ["red fox ran home", "blue fox sat down", "red hen ran down", "中文 字"]
RECIPES = {
    "plain": Recipe(
        "bpe", 200, soft_size=True, normalization="identity", keep_space=True, prefix=False
    ),
    "kept": Recipe("bpe", 200, soft_size=True, keep_space=True),
    "unled": Recipe("unigram", 200, soft_size=True, prefix=False, symbols=("<sep>", "▁▁x")),
    "bpe": Recipe("bpe", 200, soft_size=True),
    "unigram": Recipe("unigram", 200, soft_size=True),
    "bytes": Recipe("unigram", 400, soft_size=True, byte_fallback=True),
    "exact": Recipe(
        "bpe", 400, soft_size=True, byte_fallback=True, normalization="identity", keep_space=True,
        prefix=False,
    ),
}  # fmt: skip
OTHERS = {  # what we do not learn, but may be given
    "words": {"model_type": "word"},
    "chars": {"model_type": "char"},
    "suffix": {"model_type": "bpe", "treat_whitespace_as_suffix": True},
    "denormalized": {"model_type": "bpe"},
    "signs": {"control_symbols": ["▁ctl"], "unk_piece": "▁fo", "unk_surface": "?"},
    "unused": {"model_type": "bpe"},
    "gaps": {},
}
UNUSED = {"unused": ["▁red", "ran", "ow"], "gaps": ["d", "▁", "中"]}
MODELS = [*RECIPES, *OTHERS]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name, recipe in RECIPES.items():
        (folder / name).write_bytes(learn(iter(TEXTS), recipe).data)
    (folder / "rules").write_text("72\t52 52\n")  # r to RR
    for name, options in OTHERS.items():
        made = io.BytesIO()
        rules = {"denormalization_rule_tsv": str(folder / "rules")} if name[:2] == "de" else {}
        library().SentencePieceTrainer.train(
            sentence_iterator=iter(TEXTS), model_writer=made, vocab_size=60,
            hard_vocab_limit=False, minloglevel=3, **rules, **options,
        )  # fmt: skip
        (folder / name).write_bytes(without(made.getvalue(), UNUSED.get(name, ())))
    return {name: str(folder / name) for name in MODELS}


def without(data, unused):
    """A model in which some pieces are there, but not in use."""
    pieces = iter(SubwordModel.parse(data).pieces)
    return b"".join(
        _retyped(value, PieceType.UNUSED) if number == 1 and next(pieces).text in unused else raw
        for number, value, raw in _fields(data)
    )


def processor(path):
    return library().SentencePieceProcessor(model_file=path)


MIXED = st.text(
    st.one_of(st.sampled_from("redfoxran home▁<s/>中ﬁ１\n\t\0"), st.characters(codec="utf-8"))
)


@pytest.mark.parametrize("name", MODELS)
@given(texts=st.lists(MIXED, max_size=4))
@settings(deadline=None)
def test_any_texts_are_cut_and_joined_as_the_library_does(models, name, texts):
    tokenizer, reference = SentencePieceTokenizer(models[name]), processor(models[name])
    pieces = [reference.encode(text, out_type=str) for text in texts]
    assert tokenizer.tokenize_all(texts) == pieces
    assert [tokenizer.tokenize(text) for text in texts] == pieces
    assert tokenizer.join_all(pieces) == [reference.decode(each) for each in pieces]
    assert [tokenizer.join(each) for each in pieces] == tokenizer.join_all(pieces)
    for text, each, (tokens, offsets) in zip(
        texts, pieces, tokenizer.spans_all(texts), strict=True
    ):
        assert tokens == each
        assert (tokens, offsets) == tokenizer.spans(text)
        assert len(offsets) == len(tokens)
        assert all(0 <= start <= end <= len(text) for start, end in offsets)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(offsets))


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("unknown", [0, 3, 20, 37, 40])
def test_many_texts_are_cut_alike_however_much_is_unknown(models, name, unknown):
    texts = ["red fox ß ran é<s>"] * unknown + ["blue fox sat down"] * (40 - unknown)
    for turned in (texts, texts[::-1]):
        wanted = [processor(models[name]).encode(text, out_type=str) for text in turned]
        assert SentencePieceTokenizer(models[name]).tokenize_all(turned) == wanted


PIECES = st.sampled_from(
    ["▁", "▁▁", "▁red", "red", "fox", "▁fox", "<unk>", "<s>", "</s>", "<0x41>", "<0xE4>", "", " ",
     "é", "▁é", "é▁", "x y", "▁▁red", "red▁", "▁ctl", "▁fo"]
)  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
@given(texts=st.lists(st.lists(PIECES | MIXED, max_size=5), max_size=4))
@settings(deadline=None)
def test_any_pieces_are_joined_as_the_library_does(models, name, texts):
    reference = processor(models[name])
    wanted = [reference.decode(pieces) if pieces else "" for pieces in texts]
    assert SentencePieceTokenizer(models[name]).join_all(texts) == wanted


@given(text=st.text(st.characters(codec="utf-8", exclude_characters="▁")))
@settings(deadline=None)
def test_a_model_that_changes_nothing_gives_every_text_back(models, text):
    tokenizer = SentencePieceTokenizer(models["exact"])
    tokens, offsets = tokenizer.spans(text)
    assert tokenizer.join(tokens) == text
    if tokens:
        assert offsets[-1][1] == len(text)


def test_unknown_stretches_come_out_as_they_are(models):
    tokenizer = SentencePieceTokenizer(models["bpe"])
    assert tokenizer.tokenize("red<s>fox") == ["▁red", "<", "s", ">", "fox"]
    assert "<" not in tokenizer.known
    assert {"▁red", "s", "fox"} < tokenizer.known
    assert not {"<unk>", "<s>", "</s>"} & tokenizer.known
    tokens, offsets = tokenizer.spans("  zebra 𠮷𠮷")
    assert tokens == ["▁", "z", "e", "b", "ra", "▁", "𠮷𠮷"]
    assert offsets == [(2, 2), (2, 3), (3, 4), (4, 5), (5, 7), (7, 8), (8, 10)]
    assert SentencePieceTokenizer(models["bytes"]).tokenize("é") == ["▁", "<0xC3>", "<0xA9>"]


# Drawn segmentations


@pytest.mark.parametrize("name", ["bpe", "unigram"])
def test_draws_depend_on_seed_record_and_field_alone(models, name):
    text = "red fox ran home " * 5
    tokenizers = [
        SentencePieceTokenizer(models[name], sampling=Sampling(0.3, seed=s)) for s in (0, 1)
    ]
    keys = [("a", "text"), ("b", "text"), (1, "text"), ("1", "text"), ("a", "src")]
    first = [t.draw(text, *key) for t in tokenizers for key in keys]
    again = [t.draw(text, *key) for t in reversed(tokenizers) for key in reversed(keys)]
    assert first == again[::-1]
    assert len({tuple(pieces) for pieces, _ in first}) == len(first)


def test_what_cannot_be_drawn(models):
    for sampling, problem in (
        (Sampling(1.5), "a probability, at most 1"),
        (Sampling(0.1, 5), "no list of best segmentations"),
    ):
        with pytest.raises(ConfigError, match=problem):
            SentencePieceTokenizer(models["bpe"], sampling=sampling)
        SentencePieceTokenizer(models["unigram"], sampling=sampling)


def test_a_vocabulary_without_pieces_is_not_one_of_the_model(models):
    with pytest.raises(ConfigError, match="none of its pieces is in the vocabulary"):
        SentencePieceTokenizer(models["bpe"], restrict={"words"})


def test_what_is_no_model(tmp_path):
    path = tmp_path / "m"
    for data in (b"", b"xxx", b'{"text":"a"}\n'):
        path.write_bytes(data)
        with pytest.raises(FormatError, match="not a sentencepiece model"):
            SentencePieceTokenizer(str(path))
    with pytest.raises(ConfigError, match="absent: No such file"):
        SentencePieceTokenizer("absent")


# Blocks of records


def block(transform, *records):
    taken = [transform.take(record) for record in records]
    made = transform.work(taken)
    return [loads(transform.write(*pair)) for pair in zip(records, made, strict=True)]


def test_the_fields_of_a_block_go_together(models):
    tokenizer = SentencePieceTokenizer(models["bpe"])
    counts = collections.Counter()
    split = SplitBlock(["src", "text"], tokenizer, Normalizer(), Care(compare=True), counts)
    records = [{"text": "red fox", "src": "hen ", "id": 2**70}, {"src": "", "text": "zap"}]
    done = block(split, *records)
    assert done == [
        {"text": "red fox", "src": "hen ", "id": 2**70, "src_tokens": ["▁hen"],
         "tokens": ["▁red", "▁fox"]},
        {"src": "", "text": "zap", "src_tokens": [], "tokens": ["▁", "z", "a", "p"]},
    ]  # fmt: skip
    assert counts == {"texts": 4, "changed": 1, "tokens": 7, "unknown": 2}  # "hen "; z and p
    joined = block(JoinBlock(["src", "text"], tokenizer), *done)
    assert [(each["src"], each["text"]) for each in joined] == [("hen", "red fox"), ("", "zap")]
    assert list(split.work([])) == []
    with pytest.raises(RecordError, match='"text" is missing'):
        split.take({"src": "a"})
    with pytest.raises(RecordError, match='"src_tokens" must be a list'):
        JoinBlock(["src"], tokenizer).take({"src_tokens": "a"})


def test_what_would_not_come_back_is_a_bad_record_where_that_is_asked_for(models):
    tokenizer = SentencePieceTokenizer(models["bpe"])
    split = SplitBlock(
        ["text"], tokenizer, Normalizer(), Care(lossless=True), collections.Counter()
    )
    assert block(split, {"text": "red fox"}) == [{"text": "red fox", "tokens": ["▁red", "▁fox"]}]
    with pytest.raises(RecordError, match='"text" would not come back'):
        block(split, {"text": "red  fox"})


def test_offsets_lead_into_the_field_as_it_stands(models):
    tokenizer = SentencePieceTokenizer(models["bpe"])
    lower = Normalizer("none", lowercase=True)
    split = SplitBlock(["text"], tokenizer, lower, Care(offsets=True), collections.Counter())
    [done] = block(split, {"text": "İREd"})  # the first letter is two in lower case
    assert done["tokens"] == ["▁", "i̇", "r", "ed"]
    assert done["offsets"] == [[0, 0], [0, 1], [1, 2], [2, 4]]
    draw = SplitDrawn(
        ["text"],
        SentencePieceTokenizer(models["bpe"], sampling=Sampling(0.0)),
        lower,
        offsets=True,
    )
    assert loads(draw({"text": "İREd"}, 1)) == done


def test_empty_spans_stay_empty_and_in_their_place():
    lower = Normalizer("none", lowercase=True)
    text = "İaİ"  # i and a dot, a, i and a dot
    assert trace(lower, text, [(0, 0), (0, 2), (2, 2), (2, 3), (3, 5), (5, 5)]) == [
        (0, 0), (0, 1), (1, 1), (1, 2), (2, 3), (3, 3),
    ]  # fmt: skip
    assert trace(lower, "", [(0, 0)]) == [(0, 0)]
    assert trace(Normalizer(), "ab", [(1, 1)]) == [(1, 1)]


def test_draws_of_records_without_an_id_go_by_their_number(models):
    tokenizer = SentencePieceTokenizer(models["unigram"], sampling=Sampling(0.1))
    draw = SplitDrawn(["text"], tokenizer, Normalizer())
    text = "red fox ran home " * 5
    by_number = loads(draw({"text": text}, 7))["tokens"]
    assert by_number == tokenizer.draw(text, 7, "text")[0]
    assert by_number == loads(draw({"text": text, "id": 7}, 1))["tokens"]
    assert by_number != loads(draw({"text": text}, 8))["tokens"]


def test_whether_a_model_keeps_white_space_is_known(models):
    kept = {name for name in RECIPES if SentencePieceTokenizer(models[name]).keeps_space}
    assert kept == {"plain", "exact"}
