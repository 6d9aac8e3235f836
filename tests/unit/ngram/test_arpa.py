"""ARPA against plain Python that writes and scores n-grams one by one."""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import math
import pathlib
import random
import tempfile
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import ConfigError, FormatError, InputError, SeqtoolsError
from seqtools.ngram import arpa, arpa_reading
from seqtools.ngram.listing import list_ngrams
from seqtools.ngram.model import Level, Model
from seqtools.ngram.scoring import Scorer
from seqtools.ngram.sorting import HIGHEST
from seqtools.ngram.storage import Store
from seqtools.ngram.words import SPECIALS, Words
from seqtools.streams.outputs import open_output
from seqtools.streams.records import loads

Gram = tuple[int, ...]
Values = dict[Gram, tuple[float, float]]  # log10 of the probability and of the weight

TOY = r"""
\data\
ngram 1=5
ngram 2=4

\1-grams:
-99	<s>	-0.3010300
-0.6989700	</s>
-1.3010300	<unk>
-0.3010300	a	-0.4393327
-0.6020600	b	-0.2041200

\2-grams:
-0.1249387	<s> a
-0.3010300	a b
-0.5228787	a </s>
-0.3010300	b </s>

\end\
"""


def f32(value: float) -> float:
    return float(np.float32(value))


logs = st.one_of(
    st.floats(-9.5, 0, width=32), st.floats(-98, 0, width=32), st.sampled_from([0.0, -math.inf]),
    st.integers(-40, 0).map(lambda number: f32(number / 8)),
)  # fmt: skip
weights = st.one_of(logs, st.floats(0, 12, width=32)).map(
    lambda value: value if abs(value) > 1e-6 else 0.0
)
words = st.text(
    st.characters(exclude_characters="\t\n\v\f\r ", exclude_categories=["Cs"]),
    min_size=1, max_size=6,
).map(str.encode)  # fmt: skip


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[bytes], int, Values]:
    """Words, an order, and n-grams that hold the suffixes of each other."""
    known = {*SPECIALS, b"<UNK>"}
    ordinary = draw(st.lists(words.filter(lambda word: word not in known), max_size=5, unique=True))
    strings = [*SPECIALS, *ordinary]
    order = draw(st.integers(1, 5))
    ids = st.integers(0, len(strings) - 1)
    grams = {(number,) for number in range(len(strings))}
    for gram in draw(st.lists(st.lists(ids, min_size=1, max_size=order), max_size=30)):
        grams |= {tuple(gram[start:]) for start in range(len(gram))}
    return strings, order, {gram: (draw(logs), draw(weights)) for gram in sorted(grams)}


def model_of(strings: list[bytes], order: int, values: Values) -> Model:
    """The arrays, from sorting in Python."""
    grams = [
        sorted((g for g in values if len(g) == k), key=suffix_key) for k in range(1, order + 1)
    ]
    levels = []
    for here, above in itertools.zip_longest(grams, grams[1:], fillvalue=[]):
        rows = {gram: row for row, gram in enumerate(here)}
        highest = here is grams[-1]
        begins = np.zeros(0 if highest else len(here) + 1, dtype=np.uint32)
        if not highest:
            for gram in above:
                begins[rows[gram[1:]] + 1] += 1
            begins = np.cumsum(begins, dtype=np.uint32)
        levels.append(
            Level(
                np.array([gram[0] for gram in here], dtype=np.uint32),
                begins,
                np.array([values[gram][0] for gram in here], dtype=np.float32),
                np.array([values[g][1] for g in ([] if highest else here)], dtype=np.float32),
            )
        )
    return Model(Words.from_strings(strings), levels)


def suffix_key(gram: Gram) -> Gram:
    return gram[::-1]


def plain(value: float) -> str:
    """A number as it should be written."""
    if value <= -99:
        return "-99"
    text = f"{value:.7f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def plain_lines(strings: list[bytes], order: int, values: Values) -> list[list[bytes]]:
    """The lines of each order."""
    everything = {word for gram in values if len(gram) > 1 for word in gram}
    unk = values[0,][0] > -math.inf or (order > 1 and (values[0,][1] != 0 or 0 in everything))
    sections = []
    for length in range(1, order + 1):
        lines = []
        for gram in sorted((gram for gram in values if len(gram) == length), key=suffix_key):
            if gram == (0,) and not unk:
                continue
            text = b" ".join(strings[word] for word in gram)
            line = plain(values[gram][0]).encode() + b"\t" + text
            lines.append(
                line if length == order else line + b"\t" + plain(values[gram][1]).encode()
            )
        sections.append(lines)
    return sections


def document(sections: list[list[bytes]]) -> bytes:
    """An ARPA file."""
    lines = [b"\\data\\"]
    lines += [b"ngram %d=%d" % (order, len(each)) for order, each in enumerate(sections, 1)]
    for order, each in enumerate(sections, 1):
        lines += [b"", b"\\%d-grams:" % order, *each]
    return b"\n".join([*lines, b"", b"\\end\\", b""])


def written(model: Model) -> bytes:
    parts: list[bytes] = []
    arpa.write(model.words, model.levels, lambda data: parts.append(bytes(data)))
    return b"".join(parts)


def parse(data: bytes, name: str = "x.arpa") -> Model:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, name)
        path.write_bytes(data)
        try:
            return arpa.read(str(path))
        except SeqtoolsError as error:
            error.args = (str(error).replace(f"{folder}/", ""),)
            raise


def contents(model: Model) -> Values:
    """The n-grams of a model, by walking over its arrays."""
    found: Values = {}
    suffixes: list[Gram] = [()]
    begins: Any = [0, len(model.words)]
    for level in model.levels:
        rows = [
            (int(level.words[row : row + 1][0]), *suffix)
            for number, suffix in enumerate(suffixes)
            for row in range(begins[number], begins[number + 1])
        ]
        for row, gram in enumerate(rows):
            below = len(level.log10backoffs) > 0
            backoff = float(level.log10backoffs[row : row + 1][0]) if below else 0.0
            found[gram] = float(level.log10probs[row : row + 1][0]), backoff
        suffixes, begins = rows, level.begins
    return found


def same(one: Model, other: Model) -> bool:
    arrays = [
        [each.words, each.begins, each.log10probs, each.log10backoffs]
        for model in (one, other)
        for each in model.levels
    ]
    half = len(arrays) // 2
    return one.words.strings() == other.words.strings() and all(
        np.array_equal(left, right)
        for some, others in zip(arrays[:half], arrays[half:], strict=True)
        for left, right in zip(some, others, strict=True)
    )


@contextlib.contextmanager
def small_pieces() -> Iterator[None]:
    """Everything in pieces that are too small."""
    with (
        mock.patch.multiple(arpa, _ROWS=3, _WINDOW=2, _PIECE=1, _FEW=7),
        mock.patch.multiple(arpa_reading, _BLOCK=16, _FIRST_ROWS=1),
    ):
        yield


@given(tables())
def test_written_as_plain_python_does(table: tuple[list[bytes], int, Values]) -> None:
    model = model_of(*table)
    expected = document(plain_lines(*table))
    assert written(model) == expected
    with small_pieces():
        assert written(model) == expected


@given(tables())
def test_columns_that_are_on_disk(table: tuple[list[bytes], int, Values]) -> None:
    model = model_of(*table)
    expected = written(model)
    with Store(0) as store, small_pieces():
        for level in model.levels:
            for name in ("words", "begins", "log10probs", "log10backoffs"):
                array = getattr(level, name)
                column = store.column(array.dtype, len(array))
                column.append(array)
                setattr(level, name, column)
        assert written(model) == expected


@given(tables(), st.randoms(use_true_random=False), st.booleans())
def test_read_in_any_order(
    table: tuple[list[bytes], int, Values], rng: random.Random, shuffled: bool
) -> None:
    sections = plain_lines(*table)
    for lines in sections[1:] if shuffled else []:
        rng.shuffle(lines)
    with small_pieces():
        model = parse(document(sections))
    strings, order, values = table
    assert model.words.strings() == strings
    assert model.metadata["order"] == model.order == order
    assert contents(model).keys() == values.keys()
    for gram, (log, weight) in contents(model).items():
        assert log == pytest.approx(values[gram][0], abs=6e-8, rel=1e-7)
        expected = values[gram][1] if len(gram) < order else 0
        assert weight == pytest.approx(expected, abs=6e-8, rel=1e-7)
    assert same(model, parse(document(plain_lines(*table))))
    assert written(model) == document(plain_lines(*table))


def test_many_words_in_any_order() -> None:
    rng = random.Random(3)
    strings = [*SPECIALS, *(b"w%d" % number for number in range(10_000))]
    grams = {(number,) for number in range(len(strings))}
    for _ in range(300):
        gram = tuple(rng.choice([5, rng.randrange(len(strings))]) for _ in range(6))
        grams |= {gram[start:] for start in range(6)}
    table = strings, 6, {gram: (-rng.randrange(80) / 8, 0.0) for gram in grams}
    sections = plain_lines(*table)
    for lines in sections[1:]:
        rng.shuffle(lines)
    assert same(parse(document(sections)), model_of(*table))


@given(st.lists(logs, min_size=1))
def test_what_is_read_is_written_the_same(values: list[float]) -> None:
    lines = [f"{plain(value)}\tw{row}".encode() for row, value in enumerate(values)]
    model = parse(document([lines]))
    assert written(model).splitlines()[4 + 2 :][: len(lines)] == lines


@given(st.decimals(-50, 0, allow_nan=False) | st.floats(-98, 0), st.sampled_from(["", "e", "E"]))
def test_numbers_are_parsed_as_float32(number: Any, exponent: str) -> None:
    text = f"{number:{exponent}}" if exponent else f"{number:f}"
    model = parse(document([[f"{text} a".encode()]]))
    assert model.levels[0].log10probs[3:][0] == np.float32(min(0.0, float(text)))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-.5", -0.5), ("-5.", -5), ("0", 0), ("-0", 0), ("+0", 0), ("-1e-2", -0.01), ("1e-5", 0),
        ("-99", -math.inf), ("-99.999", -math.inf), ("-inf", -math.inf), ("-INFINITY", -math.inf),
        ("-98.5", -98.5), ("-1.5E+1", -15), ("-0.00000000000000000000000000000000001", -1e-35),
        ("-1234567890123456789012345678901234567890e-39", -1.23456789), ("-1e-9999", 0),
    ],
)  # fmt: skip
def test_numbers(text: str, value: float) -> None:
    model = parse(document([[f"{text}\ta".encode()]]))
    assert model.levels[0].log10probs[3:][0] == np.float32(value)


@pytest.mark.parametrize(
    "text",
    ["-", "+", ".", "-.", "1e", "-1e+", "nan", "-nan", "-in", "-infin", "--1", "-1.2.3", "x",
     "-0x1", "-1,5", "-1_0", "inf"],
)  # fmt: skip
def test_no_numbers(text: str) -> None:
    with pytest.raises(InputError, match=r"^x.arpa:5: "):
        parse(document([[f"{text}\ta".encode()]]))


@pytest.fixture
def toy() -> Model:
    return parse(TOY.encode())


def test_values_of_the_toy(toy: Model) -> None:
    assert toy.words.strings() == [b"<unk>", b"<s>", b"</s>", b"a", b"b"]
    values = {gram: (log, weight) for gram, (log, weight) in contents(toy).items()}
    assert values == {
        (0,): (f32(-1.30103), 0), (1,): (-math.inf, f32(-0.30103)), (2,): (f32(-0.69897), 0),
        (3,): (f32(-0.30103), f32(-0.4393327)), (4,): (f32(-0.60206), f32(-0.20412)),
        (1, 3): (f32(-0.1249387), 0), (3, 4): (f32(-0.30103), 0), (3, 2): (f32(-0.5228787), 0),
        (4, 2): (f32(-0.30103), 0),
    }  # fmt: skip
    assert toy.metadata["has_unk"]


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("\t", " "),
        lambda text: text.replace("\t", "  ").replace("\n", " \t\n"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("ngram 1=5", "ngram  1=        5"),
        lambda text: text.replace("ngram 1=5", "ngram 1 = 5  "),
        lambda text: text.replace("\n\n", "\n"),
        lambda text: text.replace("\n\\", "\n\n  \n\\").replace("-grams:\n", "-grams:\n\n"),
        lambda text: text.replace("<unk>", "<UNK>"),
        lambda text: "made by hand\n\\ and more\n" + text,
        lambda text: "\ufeff" + text.lstrip(),
        lambda text: text.lstrip().rstrip(),
        lambda text: text + "\nwhat comes after\n",
        lambda text: text.replace("-99", "-99.9"),
    ],
    ids=["spaces", "more spaces", "crlf", "head", "equals", "no blanks", "blanks", "UNK", "comment",
         "mark", "stripped", "after", "less than -99"],
)  # fmt: skip
def test_harmless_variants(edit: Any, toy: Model) -> None:
    model = parse(edit(TOY).encode())
    assert same(model, toy)
    assert model.metadata == toy.metadata
    assert scores(model, [3, 4]) == pytest.approx([-0.1249387, -0.30103, -0.30103], abs=1e-6)


def scores(model: Model, ids: list[int]) -> list[float]:
    """log10 of the probabilities of some words and the end of the record."""
    scored = Scorer(model).score(np.array(ids, dtype=np.int32), np.array([len(ids)]))
    return [float(value) for value in scored.log10probs]


def test_without_unk() -> None:
    text = TOY.replace("-1.3010300\t<unk>\n", "").replace("1=5", "1=4")
    model = parse(text.encode())
    assert contents(model)[0,] == (-math.inf, 0)
    assert scores(model, [3, 0])[:2] == [pytest.approx(-0.1249387), -math.inf]
    assert not model.metadata["has_unk"]
    assert b"<unk>" not in written(model)
    assert b"ngram 1=4\n" in written(model)


def test_unk_in_capitals_beside_unk_is_a_word() -> None:
    text = TOY.replace("<unk>\n", "<unk>\n-2\t<UNK>\n").replace("1=5", "1=6")
    assert parse(text.encode()).words.strings()[3:] == [b"<UNK>", b"a", b"b"]


def test_capital_unk_in_longer_ngrams() -> None:
    text = TOY.replace("<unk>", "<UNK>").replace("<s> a", "<UNK> a")
    assert (0, 3) in contents(parse(text.encode()))


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zst"])
def test_compressed(ending: str, toy: Model, tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / f"m.arpa{ending}")
    output = open_output(path)
    arpa.write(toy.words, toy.levels, output.write)
    output.commit()
    assert same(arpa.read(path), toy)


def test_damaged_compression(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "m.arpa.gz"
    path.write_bytes(gzip.compress(TOY.encode())[:-20])
    with pytest.raises(FormatError, match="ends too early"):
        arpa.read(str(path))


def test_empty_orders() -> None:
    model = parse(document([[b"-1\ta\t0"], [], []]))
    assert [len(level) for level in model.levels] == [4, 0, 0]
    assert written(model).endswith(b"\\3-grams:\n\n\\end\\\n")


@pytest.mark.parametrize(
    ("old", "new", "place", "reason"),
    [
        ("ngram 2=4", "ngram 2=5", "18", r"\2-grams: has 4 n-grams, not the 5 that \data\ says"),
        ("ngram 2=4", "ngram 2=3", "17", r"\2-grams: has more n-grams than the 3 that \data\ says"),
        ("ngram 1=5", "ngram 1=6", "12", r"\1-grams: has 5 n-grams, not the 6 that \data\ says"),
        ("ngram 1=5", "ngram 1=4", "11", r"\1-grams: has more n-grams than the 4 that \data\ says"),
        ("ngram 2=4", "ngram 3=4", "4", 'expected "ngram 2=" and a number, got \'ngram 3=4\''),
        ("ngram 2=4", "ngram 2=x", "4", 'expected "ngram 2=" and a number, got \'ngram 2=x\''),
        ("ngram 2=4", "ngram 2=99999999999", "4", "more than 4294967294 n-grams of order 2"),
        ("ngram 1=5\nngram 2=4\n", "", "4", r"\data\ does not say how many n-grams there are"),
        ("ngram 1=5", "ngram 1=0", "6", "a model without words"),
        ("\\1-grams:", "\\2-grams:", "6", r"expected \1-grams:, got '\\2-grams:'"),
        ("\\2-grams:", "\\3-grams:", "13", r"expected \2-grams:, got '\\3-grams:'"),
        ("\\end\\", "\\3-grams:", "19", r"expected \end\, got '\\3-grams:'"),
        ("\\end\\\n", "", "18", r"the file is cut short: it has no \end\ ".strip()),
        ("b </s>\n\n\\end\\\n", "", "17", "expected 2 words after the probability, got 0"),
        ("-0.3010300\tb </s>\n\n\\end\\\n", "", "16",
         r"the file is cut short: \2-grams: has 3 n-grams, not 4"),
        ("\\2-grams:", "", "14", r"\1-grams: has more n-grams than the 5 that \data\ says"),
        ("-0.1249387", "-0.12x", "14", "'-0.12x' is not the log10 of a probability"),
        ("-0.1249387", "nan", "14", "'nan' is not the log10 of a probability"),
        ("-0.1249387", "0.1249387", "14", "a probability above 1: '0.1249387' is its log10"),
        ("-0.4393327", "x", "10", "'x' is not the log10 of a backoff weight"),
        ("-0.4393327", "nan", "10", "'nan' is not the log10 of a backoff weight"),
        ("-0.4393327", "1e9", "10", "'1e9' is not the log10 of a backoff weight"),
        ("a\t-0.4393327", "a b -0.4393327", "10",
         "'b' is not the log10 of a backoff weight"),
        ("a\t-0.4393327", "a -0.4 -0.4393327", "10",
         "expected 1 word and no more after the probability, got 3"),
        ("<s> a", "<s>", "14", "expected 2 words after the probability, got 1"),
        ("<s> a", "<s> a b", "14", "expected 2 words and no more after the probability, got 3"),
        ("<s> a", "<s> z", "14", "'z' is not among the 1-grams"),
        ("\ta b", "\ta  \xa0", "15", "'\\xa0' is not among the 1-grams"),
        ("a </s>", "a b", "16", "the n-gram 'a b' is there twice"),
        ("b\t-0.2", "a\t-0.2", "11", "the word 'a' is there twice"),
        ("-1.3010300\t<unk>\n", "-1\ta\n", "10", "the word 'a' is there twice"),
        ("-1.3010300\t<unk>\n", "-1\t\\xff\n", "9", "the word '\\\\xff' is not UTF-8"),
    ],
)  # fmt: skip
def test_broken(old: str, new: str, place: str, reason: str) -> None:
    text = TOY.replace(old, new, 1)
    assert text != TOY
    data = text.encode().replace(b"\\xff", b"\xff")
    for name in (contextlib.nullcontext, small_pieces):
        with name(), pytest.raises(InputError) as caught:
            parse(data)
        assert str(caught.value) == f"x.arpa:{place}: {reason}"


def test_the_highest_order_and_none_beyond() -> None:
    section = [b"-1\ta\t0"]
    model = parse(document([section] + [[]] * (HIGHEST - 1)))
    assert model.order == HIGHEST
    with pytest.raises(InputError, match=r"x.arpa:101: n-grams of more than 99 words$"):
        parse(document([section] + [[]] * HIGHEST))


def test_special_words_that_are_no_unigrams() -> None:
    text = TOY.replace("-1.3010300\t<unk>\n", "-1\tc\n").replace("<s> a", "<unk> a")
    with pytest.raises(InputError, match=r"x.arpa:14: '<unk>' is not among the 1-grams"):
        parse(text.encode())


@pytest.mark.parametrize("data", [b"", b"a b c\n", b'{"tokens":[]}\n' * 3, bytes(1000)])
def test_something_else(data: bytes) -> None:
    with pytest.raises(FormatError, match=r"^x.arpa: not an ARPA file: it has no line \\data\\$"):
        parse(data)


def test_no_file() -> None:
    with pytest.raises(ConfigError, match="No such file"):
        arpa.read("/nowhere/x.arpa")


def back_off(values: Values, gram: Gram) -> float:
    """What a model of these n-grams gives, by the definition of ARPA."""
    if gram in values:
        return values[gram][0]
    return values.get(gram[:-1], (0, 0))[1] + back_off(values, gram[1:])


@given(tables(), st.randoms(use_true_random=False))
def test_missing_suffixes(table: tuple[list[bytes], int, Values], rng: random.Random) -> None:
    strings, order, values = table
    kept = {gram: value for gram, value in values.items() if len(gram) in (1, order)}
    kept |= {gram: value for gram, value in values.items() if rng.random() < 0.5}
    kept[0,] = (-1.0, -0.5)
    model = parse(document(plain_lines(strings, order, kept)))
    found = contents(model)
    assert found.keys() == {gram[start:] for gram in kept for start in range(len(gram))}
    for gram, (log, weight) in found.items():
        assert log == pytest.approx(back_off(kept, gram), abs=1e-5, rel=1e-6)
        if gram not in kept:
            assert weight == 0
    ids = [rng.choice([0, *range(3, len(strings))]) for _ in range(12)]
    text = (1, *ids, 2)
    wanted = [back_off(kept, text[max(0, end - order) : end]) for end in range(2, len(text) + 1)]
    assert scores(model, ids) == pytest.approx(wanted, abs=1e-4, rel=1e-6)


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        (b"", "an empty token cannot stand in ARPA"),
        (b"New York", "token 'New York', with white space in it, cannot stand in ARPA"),
        (b"a\tb", r"token 'a\\tb', with white space"),
        (b"\v", r"token '\\x0b', with white space"),
    ],
)
def test_words_that_cannot_stand_there(word: bytes, reason: str, toy: Model) -> None:
    toy.words = Words.from_strings([*SPECIALS, b"a", word])
    with pytest.raises(FormatError, match=reason):
        written(toy)
    with pytest.raises(FormatError, match=reason):
        arpa.check(toy)


def test_wide_space_can_stand_there(toy: Model) -> None:
    toy.words = Words.from_strings([*SPECIALS, b"a", "\u3000".encode()])
    assert parse(written(toy)).words.strings()[4] == "\u3000".encode()


def test_unk_as_a_word_cannot_stand_there(toy: Model) -> None:
    toy.words = Words.from_strings([*SPECIALS, b"<unk>", b"b"], unk_as_word=True)
    with pytest.raises(FormatError, match="a word <unk> beside the model's own cannot stand"):
        written(toy)


@pytest.mark.parametrize(
    ("entry", "method"),
    [({"additive": 0.5}, "add-k"), ({"unseen_backoff": -0.4}, "stupid-backoff")],
)
def test_methods_that_it_cannot_express(entry: dict[str, float], method: str, toy: Model) -> None:
    toy.metadata |= entry
    with pytest.raises(ConfigError, match=f"ARPA cannot express {method} above order 1"):
        arpa.check(toy)
    toy.levels = toy.levels[:1]
    arpa.check(toy)


def test_long_words() -> None:
    long = b"x" * 100_000
    sections = [[b"-1\ta\t-1", b"-2\t%b\t-1" % long], [b"-3\t%b %b" % (long, long)]]
    model = parse(document(sections))
    with mock.patch.object(arpa, "_PIECE", 1 << 10):
        assert b"\n-3\t%b %b\n" % (long, long) in written(model)


def test_pieces_stay_as_they_are() -> None:
    lines = [b"-%d.5\tw%d" % (number % 9, number) for number in range(20_000)]
    pieces: list[Any] = []
    model = parse(document([lines]))
    with mock.patch.multiple(arpa, _ROWS=1000, _PIECE=5000):
        arpa.write(model.words, model.levels, pieces.append)
    text = io.BytesIO()
    for piece in pieces:
        text.write(piece)
    assert text.getvalue().split(b"\n")[6:-3] == lines


@given(tables())
def test_listed_as_records(table: tuple[list[bytes], int, Values]) -> None:
    strings, order, values = table
    expected = [
        [strings[word].decode() for word in gram]
        for gram in sorted(values, key=lambda gram: (len(gram), suffix_key(gram)))
    ]
    with mock.patch("seqtools.ngram.listing._ROWS", 3):
        lines = b"".join(list_ngrams(model_of(*table))).splitlines()
    records = [loads(line) for line in lines]
    if len(records) < len(expected):
        assert expected.pop(0) == ["<unk>"]
        assert values[0,][0] == -math.inf
    assert [record["ngram"] for record in records] == expected
    ids = {string.decode(): number for number, string in enumerate(strings)}
    for record in records:
        gram = tuple(ids[word] for word in record["ngram"])
        assert natural(record["logprob"]) == f32(values[gram][0] * math.log(10))
        assert ("backoff" in record) == (len(gram) < order)
        if len(gram) < order:
            assert natural(record["backoff"]) == f32(values[gram][1] * math.log(10))


def natural(value: float | str) -> float:
    return f32(float(value))
