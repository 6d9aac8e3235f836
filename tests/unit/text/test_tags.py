import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import ConfigError
from seqtools.text.tags import SCHEMES, Chunk, Retag, Scheme, TagError, guess_entities

# Each scheme as a regular language over the tags of the types X and Y, written out on its own.
CHUNK = {
    "iob2": "B{t}(I{t})*",
    "iobes": "(S{t}|B{t}(I{t})*E{t})",
    "bmes": "(S{t}|B{t}(M{t})*E{t})",
    "bilou": "(U{t}|B{t}(I{t})*L{t})",
}
LANGUAGES = {
    name: re.compile("(O.|" + "|".join(chunk.format(t=t) for t in "XY") + ")*")
    for name, chunk in CHUNK.items()
}
# In IOB1 a B comes only after a tag of its own type.
LANGUAGES["iob1"] = re.compile("(O.|I[XY]|(?<=X)BX|(?<=Y)BY)*")


def is_sound(name: str, tags: tuple[str, ...]) -> bool:
    letters = "".join(tag.replace("-", "") if tag != "O" else "O." for tag in tags)
    return LANGUAGES[name].fullmatch(letters) is not None


def sets_of_chunks(size: int):
    """All ways to place chunks of two types among so many tokens."""
    if size == 0:
        return [[]]
    found = [list(chunks) for chunks in sets_of_chunks(size - 1)]
    for start in range(size):
        for kind in "XY":
            found += [[*chunks, Chunk(start, size, kind)] for chunks in sets_of_chunks(start)]
    return found


@pytest.mark.parametrize("name", SCHEMES)
def test_sound_sequences_are_those_of_the_language(name: str) -> None:
    scheme = Scheme(name)
    alphabet = ["O", *(f"{letter}-{t}" for letter in sorted(scheme._known) for t in "XY")]
    for size in range(5):
        sound = 0
        for tags in itertools.product(alphabet, repeat=size):
            try:
                chunks = scheme.read(tags)
            except TagError:
                assert not is_sound(name, tags), tags
            else:
                assert is_sound(name, tags), tags
                assert scheme.write(chunks, size) == list(tags)
                sound += 1
        assert sound == len(sets_of_chunks(size))


@pytest.mark.parametrize(("old", "new"), [*itertools.permutations(SCHEMES, 2)])
def test_chunks_go_there_and_back(old: str, new: str) -> None:
    there, back = Retag(Scheme(old), Scheme(new)), Retag(Scheme(new), Scheme(old))
    for size in range(6):
        for chunks in sets_of_chunks(size):
            tags = Scheme(old).write(chunks, size)
            changed = there(tags)
            assert Scheme(new).read(changed) == chunks
            assert back(changed) == tags


@given(st.lists(st.tuples(st.integers(1, 5), st.sampled_from(["O", "", "A", "B-c", "人"]))))
def test_chunks_of_any_type_and_length(pieces) -> None:
    chunks, size = [], 0
    for length, kind in pieces:
        if kind != "O":
            chunks.append(Chunk(size, size + length, kind))
        size += length
    for name in SCHEMES:
        assert Scheme(name).read(Scheme(name).write(chunks, size)) == chunks


@pytest.mark.parametrize(
    ("name", "tags"), [("iob1", "I I B I O I"), ("bmes", "B M E S O"), ("iobes", "S S B E")]
)
def test_tags_without_a_type(name: str, tags: str) -> None:
    scheme = Scheme(name)
    assert scheme.write(scheme.read(tags.split()), len(tags.split())) == tags.split()


def test_two_neighbours_in_each_scheme() -> None:
    chunks = [Chunk(0, 2, "X"), Chunk(2, 3, "X"), Chunk(3, 6, "Y")]
    written = {name: " ".join(Scheme(name).write(chunks, 7)) for name in SCHEMES}
    assert written == {
        "iob1": "I-X I-X B-X I-Y I-Y I-Y O",
        "iob2": "B-X I-X B-X B-Y I-Y I-Y O",
        "iobes": "B-X E-X S-X B-Y I-Y E-Y O",
        "bmes": "B-X E-X S-X B-Y M-Y E-Y O",
        "bilou": "B-X L-X U-X B-Y I-Y L-Y O",
    }


@pytest.mark.parametrize(
    ("name", "tags", "place", "reason"),
    [
        ("iob2", "O I-X", 1, "'I-X' after 'O' and at the end is not iob2, which has 'B-X' there"),
        ("iob2", "B-X I-Y", 1, "'I-Y' after 'B-X'"),
        ("iob1", "O B-X", 1, "'B-X' after 'O' and at the end is not iob1, which has 'I-X' there"),
        ("iobes", "B-X I-X O", 1, "'I-X' after 'B-X' and before 'O' is not iobes, which has 'E-X'"),
        ("bmes", "M-X E-X", 0, "'M-X' at the beginning"),
        ("iob2", "O S-X", 1, "'S-X' is no tag of iob2"),
        ("iob2", "O -", 1, "'-' is no tag"),
        ("iob2", "B-", 0, "'B-' is no tag"),
        ("bmes", "X", 0, "'X' is no tag"),
    ],
)
def test_the_first_bad_tag_is_named(name: str, tags: str, place: int, reason: str) -> None:
    with pytest.raises(TagError, match=reason) as caught:
        Scheme(name).read(tags.split())
    assert caught.value.place == place


def test_repair_reads_as_conlleval_does() -> None:
    retag = Retag(Scheme("iob2"), Scheme("iob2"), repair=True)
    assert " ".join(retag(["O", "I-X", "I-X", "I-Y"])) == "O B-X I-X B-Y"
    retag = Retag(Scheme("bmes"), Scheme("iob2"), repair=True)
    tags = ["B-X", "M-X", "O", "M-X", "E-X", "E-X"]
    assert " ".join(retag(tags)) == "B-X I-X O B-X I-X B-X"
    with pytest.raises(TagError, match="no tag of bmes"):
        retag(["I-X"])


@pytest.mark.parametrize("name", SCHEMES)
def test_chunks_are_told_whatever_the_scheme(name: str) -> None:
    scheme = Scheme(name)
    for size in range(5):
        for chunks in sets_of_chunks(size):
            assert guess_entities(scheme.write(chunks, size)) == chunks
    with pytest.raises(TagError, match="'X' is no tag of entities"):
        guess_entities(["O", "X"])


def test_names_of_schemes() -> None:
    assert [Scheme(name).name for name in ("BIO", "bioes", "BMESO")] == ["iob2", "iobes", "bmes"]
    with pytest.raises(ConfigError, match="no scheme of tags is called 'iob'"):
        Scheme("iob")
