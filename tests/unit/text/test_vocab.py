import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import ConfigError, FormatError, InputError, RecordError
from seqtools.text.specials import SPECIALS, ordered
from seqtools.text.vocab import Vocabulary

ODD = ["New York", "a\tb", "a\nb", "", "\u00a0", "\u2028", "#", '"', "\\", "a\r", ",", "3.14", "𠮷"]


def written(vocabulary: Vocabulary) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in vocabulary.entries())


def test_build_orders_by_count_then_code_point() -> None:
    counts = dict.fromkeys(["b", "a", "c", "é", "Z", "中"], 2)
    for order in itertools.permutations(counts.items()):
        vocabulary = Vocabulary.build(dict(order))
        assert vocabulary.tokens[4:] == ["Z", "a", "b", "c", "é", "中"]
    assert Vocabulary.build(counts, max_size=2).tokens == [
        "<pad>",
        "<unk>",
        "<s>",
        "</s>",
        "Z",
        "a",
    ]
    assert Vocabulary.build({"rare": 1, "often": 3}, specials=()).tokens == ["often", "rare"]


def test_build_cuts_by_count_and_size() -> None:
    counts = {"a": 5, "b": 3, "c": 1}
    assert Vocabulary.build(counts, min_count=3).tokens[4:] == ["a", "b"]
    assert Vocabulary.build(counts, min_count=9).tokens == ["<pad>", "<unk>", "<s>", "</s>"]
    assert Vocabulary.build(counts, max_size=0).tokens == ["<pad>", "<unk>", "<s>", "</s>"]
    assert Vocabulary.build(counts).counts == [0, 0, 0, 0, 5, 3, 1]


def test_specials_have_a_fixed_order() -> None:
    assert ordered(["sep", "pad", "unk", "mask"]) == ("pad", "unk", "mask", "sep")
    assert Vocabulary.build({}, specials=["cls", "pad"]).specials == {"pad": 0, "cls": 1}
    with pytest.raises(ConfigError, match="unknown special 'ukn': did you mean unk"):
        ordered(["ukn"])


def test_text_that_spells_a_special_gets_no_entry_and_becomes_unknown() -> None:
    vocabulary = Vocabulary.build({"<pad>": 9, "<UNK>": 1, "<mask>": 1, "a": 2})
    assert vocabulary.tokens == ["<pad>", "<unk>", "<s>", "</s>", "a", "<UNK>", "<mask>"]
    assert vocabulary.encode(["<pad>", "a", "</s>", "<UNK>", "<mask>"]) == [1, 4, 1, 5, 6]
    assert vocabulary.spellings() == {"<pad>", "<unk>", "<s>", "</s>"}
    plain = Vocabulary.build({"<pad>": 9, "a": 2}, specials=())
    assert plain.encode(["<pad>"]) == [0]


def test_roles_have_ids() -> None:
    vocabulary = Vocabulary.build({"a": 1})
    assert (vocabulary.pad, vocabulary.unk, vocabulary.bos, vocabulary.eos) == (0, 1, 2, 3)
    bare = Vocabulary.build({"a": 1}, specials=())
    assert (bare.pad, bare.unk, bare.bos, bare.eos) == (None, None, None, None)


def test_encode_and_decode_name_what_they_cannot_do() -> None:
    vocabulary = Vocabulary.build({"y": 1}, specials=())
    with pytest.raises(RecordError, match="token 'q' is not in the vocabulary"):
        vocabulary.encode(["y", "q"])
    for number in (-1, 1):
        with pytest.raises(RecordError, match=f"id {number} is not in the vocabulary of 1 entries"):
            vocabulary.decode([0, number])


@given(st.dictionaries(st.one_of(st.text(), st.sampled_from(ODD)), st.integers(1, 9)))
def test_every_form_gives_the_same_vocabulary_back(counts: dict[str, int]) -> None:
    vocabulary = Vocabulary.build(counts)
    header = json.loads(json.dumps(vocabulary.to_header()))
    entries = [json.loads(line) for line in written(vocabulary).splitlines()]
    for again in (Vocabulary.from_header(header), Vocabulary.from_entries(reversed(entries))):
        assert again == vocabulary
        assert again.counts == vocabulary.counts
    known = [token for token in counts if token not in SPECIALS.values()]
    assert vocabulary.decode(vocabulary.encode(known)) == known


def test_odd_tokens_survive_a_file(tmp_path) -> None:
    path = tmp_path / "v"
    vocabulary = Vocabulary.build(dict.fromkeys(ODD, 1))
    path.write_bytes(b"\xef\xbb\xbf" + written(vocabulary).replace("\n", "\r\n").encode() + b"\n")
    again = Vocabulary.read(str(path))
    assert again == vocabulary
    assert again.unk not in again.encode(ODD)


def test_entries_have_the_documented_form() -> None:
    first, *_, last = Vocabulary.build({"the": 1061}).entries()
    assert first == {"id": 0, "token": "<pad>", "special": "pad"}
    assert last == {"id": 4, "token": "the", "count": 1061}


@pytest.mark.parametrize(
    ("lines", "line", "reason"),
    [
        (['{"id":0,"token":"a"}', "", "{bad"], 3, "not JSON"),
        (["[1]"], 1, "object"),
        (['{"id":true,"token":"a"}'], 1, "not a vocabulary entry"),
        (['{"id":0,"token":1}'], 1, "not a vocabulary entry"),
        (['{"id":0,"token":"a"}', '{"id":0,"token":"b"}'], 2, "id 0 stands twice"),
        (['{"id":0,"token":"a","special":"nil"}'], 1, "unknown special 'nil'"),
        (['{"id":0,"token":"a","special":"unused01"}'], 1, "unknown special 'unused01'"),
        (['{"id":0,"token":"a","special":null}'], 1, "unknown special None"),
        (
            ['{"id":1,"token":"a"}', '{"id":0,"token":"b"}', '{"id":1,"token":"c"}'],
            3,
            "id 1 stands",
        ),
        (['{"id":0,"token":"a","count":true}'], 1, '"count" must be'),
        (
            ['{"id":0,"token":"a","special":"unk"}', '{"id":1,"token":"b","special":"unk"}'],
            2,
            "special 'unk' stands twice",
        ),
        (['{"id":0,"token":"a","count":"2"}'], 1, '"count" must be'),
    ],
)
def test_a_bad_line_is_named(tmp_path, lines: list[str], line: int, reason: str) -> None:
    path = tmp_path / "v"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InputError, match=reason) as caught:
        Vocabulary.read(str(path))
    assert (caught.value.source, caught.value.line) == (str(path), line)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (['{"id":0,"token":"a"}', '{"id":2,"token":"b"}'], "2 entries, but none with id 1"),
        (['{"id":0,"token":"a"}', '{"id":1,"token":"a"}'], "token 'a' stands twice"),
    ],
)
def test_a_bad_whole_is_named(tmp_path, lines: list[str], reason: str) -> None:
    path = tmp_path / "v"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(FormatError, match=f"{path}: .*{reason}"):
        Vocabulary.read(str(path))


def test_an_absent_file_is_a_usage_error(tmp_path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        Vocabulary.read(str(tmp_path / "absent"))


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"tokens": "ab", "specials": {}},
        {"tokens": ["a", 1], "specials": {}},
        {"tokens": ["a"], "specials": []},
        {"tokens": ["a"], "specials": {"pad": 1}},
        {"tokens": ["a"], "specials": {"pad": True}},
        {"tokens": ["a"], "specials": {"nil": 0}},
        {"tokens": ["a"], "specials": {"pad": 0, "unk": 0}},
        {"tokens": ["a", "a"], "specials": {}},
        {"tokens": ["a"], "specials": {}, "counts": [1, 2]},
        {"tokens": ["a"], "specials": {}, "counts": [None]},
    ],
)
def test_a_header_is_checked(value: object) -> None:
    with pytest.raises(FormatError):
        Vocabulary.from_header(value)


def test_counts_are_no_part_of_identity() -> None:
    one, two = (Vocabulary(["a"], {}, counts) for counts in ([1], None))
    assert one == two
    assert one != Vocabulary(["b"], {})
    assert one != Vocabulary(["a"], {"unk": 0})
    assert one != "a"


def test_pieces_keep_their_order_and_have_no_counts() -> None:
    vocabulary = Vocabulary.of_pieces(["▁b", "<unk>", "a", "<mask>", "<0x0A>"])
    assert vocabulary.tokens == ["<pad>", "<unk>", "<s>", "</s>", "▁b", "a", "<mask>", "<0x0A>"]
    assert vocabulary.counts is None
    assert list(vocabulary.entries())[3:5] == [
        {"id": 3, "token": "</s>", "special": "eos"},
        {"id": 4, "token": "▁b"},
    ]
    masked = Vocabulary.of_pieces(["a", "<mask>"], specials=["mask"])
    assert (masked.tokens, masked.specials) == (["<mask>", "a"], {"mask": 0})
    with pytest.raises(FormatError, match="'a' stands twice"):
        Vocabulary.of_pieces(["a", "a"])


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "<unused0>", "<unused2>", "<s>"]), st.integers(1, 3)
    ),
    st.integers(1, 9),
)
def test_unused_entries_fill_up_the_end(counts: dict[str, int], multiple: int) -> None:
    plain = Vocabulary.build(counts)
    padded = Vocabulary.build(counts, multiple=multiple)
    assert len(padded) % multiple == 0
    assert 0 <= len(padded) - len(plain) < multiple
    assert padded.tokens[: len(plain)] == plain.tokens
    added = padded.tokens[len(plain) :]
    assert all(token.startswith("<unused") for token in added)
    assert padded.encode([*plain.tokens, *added]) == plain.encode(plain.tokens) + [1] * len(added)
    again = Vocabulary.from_entries(json.loads(line) for line in written(padded).splitlines())
    assert (again, again.counts) == (padded, padded.counts)
    assert Vocabulary.from_header(padded.to_header()) == padded


def test_pieces_are_filled_up_and_cut() -> None:
    vocabulary = Vocabulary.of_pieces(
        ["<s>", "b", "<unused0>", "a"], max_size=2, specials=["bos"], multiple=5
    )
    assert list(vocabulary.entries()) == [
        {"id": 0, "token": "<s>", "special": "bos"},
        {"id": 1, "token": "b"},
        {"id": 2, "token": "<unused0>"},
        {"id": 3, "token": "<unused1>", "special": "unused1"},
        {"id": 4, "token": "<unused2>", "special": "unused2"},
    ]
