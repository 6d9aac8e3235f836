"""The text stage against jq, jieba's and sentencepiece's command lines, and `sort | uniq -c`.

    python -m tests.bench text --corpus FILE --chinese FILE --spm-encode PATH

The options may stand in the environment, as CORPUS, CHINESE and SPM_ENCODE. Of each text the first
--size megabytes are taken, over and over if there are not so many; without a file it is made up.
Without `spm_encode` its Python library is called with lists. Tokens are seen to be equal before a
time is taken. What is not installed is left out, and that is said.
"""

import argparse
import functools
import gzip
import itertools
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.bench.measure import PYTHON, compare, row, seconds, tool

DELIMITER = "\x1f"  # between jieba's tokens: no text has it
PIECES = 8000
LEARN_FROM = "20000"  # records
TIMES = 5  # how often the text is repeated for a large file
# What a script of one's own would be: lists of lines into the library, tokens out as plain text.
LIBRARY = """
import itertools, sys
import sentencepiece
model = sentencepiece.SentencePieceProcessor(model_file=sys.argv[1])
with open(sys.argv[2], encoding="utf-8", newline="\\n") as lines:
    while chunk := [line.rstrip("\\n") for line in itertools.islice(lines, 10000)]:
        for pieces in model.encode(chunk, out_type=str, num_threads=1):
            print(*pieces)
"""


@dataclass(frozen=True)
class Text:
    """One text, as plain lines and as records, and their sizes in 10^6 bytes."""

    lines: pathlib.Path
    records: pathlib.Path

    @functools.cached_property
    def megabytes(self) -> float:
        return self.lines.stat().st_size / 1e6

    @functools.cached_property
    def record_megabytes(self) -> float:
        return self.records.stat().st_size / 1e6


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this part; --corpus, --folder and --rounds are those of the part ngram."""
    given = parser.add_argument_group("text")
    given.add_argument("--chinese", default=os.environ.get("CHINESE"), help="Chinese text")
    given.add_argument(
        "--spm-encode", default=os.environ.get("SPM_ENCODE"), help="sentencepiece's command"
    )
    given.add_argument("--size", type=float, default=10, help="MB of each text (default 10)")


def measure(folder: pathlib.Path, options: argparse.Namespace) -> None:
    """All rows of the table."""
    english = prepare(folder, "english", options.corpus, made_up_english(), options.size)
    chinese = prepare(folder, "chinese", options.chinese, made_up_chinese(), options.size)
    against_jq(english, options.rounds)
    against_jq_long(english, options.rounds)
    against_jieba(chinese, options.rounds)
    for kind in ("bpe", "unigram"):
        against_sentencepiece(folder, english, kind, options)
    for times in (1, TIMES):
        against_sort(folder, english, times, options.rounds)


def prepare(
    folder: pathlib.Path, name: str, source: str | None, made_up: Iterator[str], size: float
) -> Text:
    """A text of about this many megabytes, in the folder."""
    text = Text(folder / f"{name}.txt", folder / f"{name}.jsonl")
    if source is None:
        print(f"no {name} text given: one is made up", file=sys.stderr)
    lines = made_up if source is None else itertools.cycle(read(pathlib.Path(source)))
    written = number = 0
    with (
        text.lines.open("w", encoding="utf-8") as plain,
        text.records.open("w", encoding="utf-8") as records,
    ):
        while written < size * 1e6:
            line = next(lines)
            plain.write(line + "\n")
            record = {"id": number, "text": line}
            records.write(json.dumps(record, ensure_ascii=False) + "\n")
            written, number = written + len(line.encode()) + 1, number + 1
    return text


def read(path: pathlib.Path) -> list[str]:
    """The lines of a file that have words."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = data.decode("utf-8").replace("\r", "").replace(DELIMITER, "").split("\n")
    return [line for line in lines if line.strip()]


def made_up_english() -> Iterator[str]:
    """Lines of made-up words, each half as frequent as one of half its rank."""
    chance = random.Random(1)
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(20_000)]
    weights = list(itertools.accumulate(1 / rank for rank in range(1, len(words) + 1)))
    while True:
        yield " ".join(chance.choices(words, cum_weights=weights, k=chance.randint(5, 30))) + "."


def made_up_chinese() -> Iterator[str]:
    """Lines of jieba's words, as frequent as its dictionary says, with signs and Latin letters."""
    import jieba

    entries = [line.split() for line in jieba.get_dict_file().read().decode("utf-8").splitlines()]
    chance = random.Random(2)
    words = [entry[0] for entry in entries]
    weights = list(itertools.accumulate(int(entry[1]) for entry in entries))
    between = ["", "，", "、", "“", "”", " ", "2.5%", "C++", "v1.0"]
    share = [900, 60, 10, 5, 5, 10, 4, 3, 3]
    while True:
        chosen = chance.choices(words, cum_weights=weights, k=chance.randint(10, 60))
        signs = chance.choices(between, share, k=len(chosen))
        yield "".join(itertools.chain(*zip(chosen, signs, strict=True))) + "。"


def rate(megabytes: float, command: list[str]) -> Callable[[], float]:
    """A measurement: megabytes a second of a whole process."""
    return lambda: megabytes / seconds(command)


def outputs(command: list[str]) -> Iterator[str]:
    """The lines that a process writes."""
    done = subprocess.run(command, capture_output=True, check=True)
    return iter(done.stdout.decode("utf-8").split("\n")[:-1])


def count_unequal(ours: list[str], theirs: list[str], delimiter: str) -> int:
    """In how many lines our tokens are not theirs."""
    pairs = zip(outputs(ours), outputs(theirs), strict=True)
    return sum(delimiter.join(json.loads(record)["tokens"]) != line for record, line in pairs)


def see_equal(ours: list[str], theirs: list[str], delimiter: str) -> None:
    """End the run where our tokens are not theirs."""
    if unequal := count_unequal(ours, theirs, delimiter):
        raise SystemExit(f"{' '.join(ours)}: other tokens than {theirs[0]}'s in {unequal} lines")


def against_jq(text: Text, rounds: int) -> None:
    """Commands that hardly do more than parse and write, against one that does just that."""
    if shutil.which("jq") is None:
        print("jq is not installed: no figure against it", file=sys.stderr)
        return
    tokens = text.records.with_suffix(".tok.jsonl")
    subprocess.run(
        [tool("seq-tokenize"), "word", "--quiet", "-o", str(tokens), str(text.records)], check=True
    )
    aims = {
        ("seq-tokenize", "whitespace"): "≥ 2",
        ("seq-tokenize", "whitespace", "--jobs", "2"): "≥ 3",
        ("seq-tokenize", "word"): "-",
        ("seq-tokenize", "word", "--jobs", "2"): "-",
        ("seq-stats", "tokens"): "-",
        ("seq-augment", "delete"): "-",
    }
    for (program, *rest), aim in aims.items():
        if not pathlib.Path(tool(program)).exists():
            print(f"{program} is not installed: no figure for it", file=sys.stderr)
            continue
        path = text.records if program == "seq-tokenize" else tokens
        beside_jq([program, *rest], path, aim, rounds)


def beside_jq(
    command: list[str], path: pathlib.Path, aim: str, rounds: int, note: str = ""
) -> None:
    """One row: a command and jq on the same file."""
    program, *rest = command
    megabytes = path.stat().st_size / 1e6
    result = compare(
        rate(megabytes, [tool(program), *rest, str(path)]),
        rate(megabytes, ["jq", "-c", ".", str(path)]),
        rounds,
    )
    row(f"`{' '.join(command)}` / `jq -c .`{note}", aim, result, "MB/s")


def against_jq_long(text: Text, rounds: int) -> None:
    """The quickest of them on a file of several times the size, where the start counts for less."""
    if shutil.which("jq") is None:
        return
    path = repeated(text.records, TIMES)
    note = f", {path.stat().st_size / 1e6:.0f} MB"
    for jobs, aim in (("1", "≥ 2"), ("2", "≥ 3")):
        beside_jq(["seq-tokenize", "whitespace", "--jobs", jobs], path, aim, rounds, note)


def repeated(path: pathlib.Path, times: int) -> pathlib.Path:
    """A file of the same lines, this often."""
    target = path.with_suffix(f".{times}{path.suffix}")
    with target.open("wb") as file:
        for _ in range(times):
            file.write(path.read_bytes())
    return target


def against_jieba(text: Text, rounds: int) -> None:
    """Chinese words: plain lines in; out come records, or jieba's lines."""
    ours = [tool("seq-tokenize"), "jieba", "--text", "--keep-space", str(text.lines)]
    theirs = [PYTHON, "-X", "utf8", "-m", "jieba", "-q", "-d", DELIMITER, str(text.lines)]
    see_equal(ours, theirs, DELIMITER)
    for jobs, aim in (("1", "≥ 8"), ("2", "-")):
        result = compare(
            rate(text.megabytes, [*ours, "--jobs", jobs]), rate(text.megabytes, theirs), rounds
        )
        row(f"`seq-tokenize jieba --jobs {jobs}` / `python -m jieba`", aim, result, "MB/s")


def against_sentencepiece(
    folder: pathlib.Path, text: Text, kind: str, options: argparse.Namespace
) -> None:
    """Pieces by a model learned from the text: plain lines in, records or plain pieces out."""
    model = str(folder / f"{kind}.model")
    subprocess.run(
        [tool("seq-vocab"), "subword", "--kind", kind, "--size", str(PIECES), "--soft-size",
         "--sample-records", LEARN_FROM, "--quiet", "-o", model, str(text.records)],
        check=True,
    )  # fmt: skip
    command = [
        tool("seq-tokenize"), "sentencepiece", "--text", "--subword-model", model, str(text.lines),
    ]  # fmt: skip
    name, theirs = "its Python library", [PYTHON, "-c", LIBRARY, model, str(text.lines)]
    see_equal(command, theirs, " ")
    if binary := options.spm_encode or shutil.which("spm_encode"):
        name, theirs = "spm_encode", [binary, f"--model={model}", str(text.lines)]
        if unequal := count_unequal(command, theirs, " "):
            print(f"spm_encode is another version: {unequal} lines differ", file=sys.stderr)
    else:
        print("no --spm-encode: compared with its Python library", file=sys.stderr)
    for jobs, aim in (("1", "≥ 1"), ("2", "-")):
        result = compare(
            rate(text.megabytes, [*command, "--jobs", jobs]),
            rate(text.megabytes, theirs),
            options.rounds,
        )
        row(f"`seq-tokenize sentencepiece --jobs {jobs}`, {kind} / `{name}`", aim, result, "MB/s")


def against_sort(folder: pathlib.Path, text: Text, times: int, rounds: int) -> None:
    """Counting: records of tokens, against the same tokens one a line."""
    records, lines = folder / "words.jsonl", folder / "words.txt"
    count = 0
    path = repeated(text.records, times)
    subprocess.run(
        [tool("seq-tokenize"), "word", "--quiet", "-o", str(records), str(path)], check=True
    )
    with records.open(encoding="utf-8") as file, lines.open("w", encoding="utf-8") as words:
        for line in file:
            tokens = json.loads(line)["tokens"]
            words.writelines(f"{token}\n" for token in tokens)
            count += len(tokens)
    theirs = ["env", "LC_ALL=C", "bash", "-c", f"sort '{lines}' | uniq -c"]
    for jobs, aim in (("1", "≥ 5"), ("2", "-")):
        ours = [tool("seq-vocab"), "build", "--quiet", "--jobs", jobs, str(records)]
        result = compare(rate(count / 1e6, ours), rate(count / 1e6, theirs), rounds)
        name = f"`seq-vocab build --jobs {jobs}` / `sort \\| uniq -c`, {count / 1e6:.1f} M tokens"
        row(name, aim, result, "M tokens/s")
