"""The file of a sentencepiece model, against the library and models put together by hand."""

import pytest

from seqtools.errors import ConfigError, FormatError
from seqtools.text.subword_library import library
from seqtools.text.subword_model import Piece, PieceType, SubwordModel
from seqtools.text.subwords import Recipe, learn
from seqtools.text.tokenizers.sentencepiece import SentencePieceTokenizer

TEXTS = ["red fox ran home", "blue fox sat down", "red hen ran down"]


def varint(value: int) -> bytes:
    high, low = divmod(value, 128)
    return bytes([low | 128]) + varint(high) if high else bytes([low])


def message(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def piece(text: str, kind: int | None = None) -> bytes:
    score = b"\x15\0\0\x80\xbf"  # field 2, a float: -1
    return message(1, message(1, text.encode()) + score + (b"\x18%c" % kind if kind else b""))


TRAINING = message(2, b"\x18\x02")  # BPE


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("byte_fallback", [False, True])
def test_pieces_are_those_of_the_library(kind, byte_fallback):
    recipe = Recipe(
        kind, 400, soft_size=True, byte_fallback=byte_fallback, symbols=["<mask>", "fox"]
    )
    data = learn(iter(TEXTS), recipe).data
    model = SubwordModel.parse(data)
    processor = library().SentencePieceProcessor()
    processor.LoadFromSerializedProto(data)
    ids = list(range(len(processor)))
    assert model.kind == kind
    assert [piece.text for piece in model.pieces] == processor.IdToPiece(ids)
    assert [piece.score for piece in model.pieces] == processor.GetScore(ids)
    types = [piece.type for piece in model.pieces]
    assert [kind == PieceType.UNKNOWN for kind in types] == processor.IsUnknown(ids)
    assert [kind == PieceType.CONTROL for kind in types] == processor.IsControl(ids)
    assert [kind == PieceType.BYTE for kind in types] == processor.IsByte(ids)
    symbols = [piece.text for piece in model.pieces if piece.type == PieceType.USER_DEFINED]
    assert symbols == ["<mask>", "fox"]
    assert sum(each.of_text for each in model.pieces) == len(ids) - 3  # <unk>, <s>, </s>


def test_what_the_file_says_is_read():
    long = "x" * 200
    data = piece("<unk>", 2) + piece("a") + piece(long, 5) + TRAINING + message(9, b"?")
    model = SubwordModel.parse(data)
    assert model == SubwordModel(
        data, [Piece("<unk>", 2, -1), Piece("a", 1, -1), Piece(long, 5, -1)], "bpe"
    )
    # A type comes in place of the one that was there, or is added; all else stays.
    assert model.restricted({long}) == (
        piece("<unk>", 2) + piece("a", 1) + piece(long, 1) + TRAINING + message(9, b"?")
    )
    unigram = piece("a") + message(2, b"")
    assert SubwordModel.parse(unigram).kind == "unigram"  # what none is named stands for


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"xxx",
        b'{"text":"a"}\n',
        b"\x0a\x05",
        b"\x0b",
        b"\xff" * 12,
        piece("a"),
        TRAINING,
        piece("a") + message(2, b"\x18\x09"),
        (piece("a") + TRAINING)[:-1],
        message(1, b"\x0a\x01\xff") + TRAINING,
        message(1, b"\x0a\x01a\x10\x01") + TRAINING,
        b"\x08\x01" + TRAINING,
    ],
)
def test_what_is_no_model(data, tmp_path):
    with pytest.raises(FormatError, match=r"^not a sentencepiece model$"):
        SubwordModel.parse(data)
    (tmp_path / "m").write_bytes(data)
    with pytest.raises(FormatError, match=r"/m: not a sentencepiece model$"):
        SubwordModel.read(str(tmp_path / "m"))


def test_a_file_that_is_not_there():
    with pytest.raises(ConfigError, match=r"^absent: No such file or directory$"):
        SubwordModel.read("absent")


# What `SetVocabulary` of sentencepiece 0.2.0 leaves of the best segmentations.
RESTRICTED = [
    (
        "bpe",
        ["▁red", "▁r", "ed", "ran", "▁fo", "▁d", "ow"],
        {
            "red fox ran down": "▁red ▁ f o x ▁r a n ▁ d o w n",
            "blue hen sat home": "▁ b l u e ▁ h e n ▁ s a t ▁ h o m e",
            "fox zebra": "▁ f o x ▁ z e b r a",
        },
    ),
    (
        "unigram",
        ["▁", "▁r"],
        {
            "red fox ran down": "▁r e d ▁ f o x ▁r a n ▁ d o w n",
            "blue hen sat home": "▁ b l u e ▁ h e n ▁ s a t ▁ h o m e",
        },
    ),
    ("unigram", ["e", "o"], {"red fox ran down": "▁ r e d ▁ f o x ▁ r a n ▁ d o w n"}),
]


@pytest.mark.parametrize(("kind", "kept", "expected"), RESTRICTED)
def test_restricted_models_are_those_of_the_library_in_c(kind, kept, expected, tmp_path):
    path = tmp_path / "m"
    path.write_bytes(learn(iter(TEXTS), Recipe(kind, 200, soft_size=True)).data)
    tokenizer = SentencePieceTokenizer(str(path), restrict=set(kept))
    assert {text: " ".join(tokenizer.tokenize(text)) for text in expected} == expected
