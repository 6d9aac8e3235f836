"""seq-ngram against KenLM: estimating, scoring, opening, on a corpus of any size.

    python -m tests.bench ngram --lmplz PATH --query PATH --corpus FILE --test FILE

The options may stand in the environment, as LMPLZ, QUERY, CORPUS and TEST. Without a corpus a small
one is made up, which shows that everything runs and little else; without KenLM ours is measured
alone. `build_binary` is looked for beside `query`.
"""

import argparse
import itertools
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter

from tests.bench.measure import PYTHON, Ratio, Usage, row, tool, usage

# Loading alone, inside a process that has everything imported: the second time counts.
LOADING = """
import sys, time
from seqtools.ngram import model
model.load(sys.argv[1])
start = time.perf_counter()
model.load(sys.argv[1])
print(time.perf_counter() - start)
"""
SECONDS, MEGABYTES = attrgetter("seconds"), attrgetter("megabytes")


@dataclass(frozen=True)
class Bench:
    """What is measured with what, and where outputs go."""

    folder: pathlib.Path
    lmplz: str | None
    query: str | None
    builder: str | None
    corpus: pathlib.Path
    records: pathlib.Path
    test: pathlib.Path
    fallback: tuple[str, ...]
    rounds: int


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this part."""
    given = parser.add_argument_group("ngram")
    for name, meaning in (
        ("lmplz", "KenLM's estimator"), ("query", "KenLM's scorer"),
        ("corpus", "text, a sentence a line"), ("test", "text that is not in it"),
    ):  # fmt: skip
        given.add_argument(f"--{name}", default=os.environ.get(name.upper()), help=meaning)
    given.add_argument("--rounds", type=int, default=3, help="how often each is run (default 3)")
    given.add_argument("--folder", help="where outputs go; 6 GB for a corpus of 100 MB")


def prepare(folder: pathlib.Path, options: argparse.Namespace) -> Bench:
    """Look for the tools, and make what is not there, saying so."""
    found = {}
    for name, missing in (("lmplz", "estimation"), ("query", "scoring")):
        found[name] = getattr(options, name) or shutil.which(name)
        if found[name] is None:
            print(f"no --{name}: {missing} is not compared with anything", file=sys.stderr)
    builder = None
    if found["query"]:
        builder = shutil.which("build_binary", path=os.path.dirname(found["query"]) or None)
    corpus, test = folder / "made-up.tok", folder / "made-up.test.tok"
    if options.corpus:
        corpus = pathlib.Path(options.corpus)
        if options.test:
            test = pathlib.Path(options.test)
        else:
            raise SystemExit("--corpus needs --test: text that is not in it")
    else:
        print("no --corpus: 5,000 made-up sentences, too few to go by", file=sys.stderr)
        sentences = list(itertools.islice(made_up(), 6000))
        corpus.write_text("".join(sentences[:5000]), "utf-8")
        test.write_text("".join(sentences[5000:]), "utf-8")
    records = folder / "corpus.jsonl"
    with corpus.open("rb") as lines, records.open("w", encoding="utf-8") as file:
        for line in lines:  # bytes are split at ASCII white space alone, as with --text
            tokens = [token.decode() for token in line.split()]
            file.write(json.dumps({"tokens": tokens}, ensure_ascii=False) + "\n")
    fallback = () if options.corpus else ("--discount_fallback",)
    return Bench(
        folder, found["lmplz"], found["query"], builder, corpus, records, test, fallback,
        options.rounds,
    )  # fmt: skip


def made_up() -> Iterator[str]:
    """Sentences without end, of phrases that come again, the earlier ones more often."""
    chance = random.Random(3)
    words = [f"w{number}" for number in range(2000)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    phrases = [
        " ".join(chance.choices(words, weights, k=chance.randint(1, 7))) for _ in range(3000)
    ]
    ranks = [1 / rank for rank in range(1, len(phrases) + 1)]
    while True:
        yield " ".join(chance.choices(phrases, ranks, k=5)) + "\n"


def ratio(
    runs: Mapping[str, list[Usage]], ours: str, theirs: str, of: Callable[[Usage], float]
) -> Ratio:
    """Ours over theirs, round by round."""
    pairs = [(of(a), of(b)) for a, b in zip(runs[ours], runs[theirs], strict=True)]
    return Ratio(
        statistics.median(a for a, _ in pairs),
        statistics.median(b for _, b in pairs),
        statistics.median(a / b for a, b in pairs),
        len(pairs),
    )


def alone(name: str, aim: str, values: list[float], unit: str) -> None:
    """A line for what has nothing to be compared with."""
    middle = statistics.median(values)
    print(f"| {name} | {middle:.4g} {unit} | | | {aim} | {len(values)} |", flush=True)


def show(
    runs: Mapping[str, list[Usage]], ours: str, theirs: str, name: str, aims: tuple[str, str]
) -> None:
    """Time and memory of one of our commands, against another where it was run."""
    for of, aim, unit, what in ((SECONDS, aims[0], "s", ""), (MEGABYTES, aims[1], "MB", ", peak")):
        if theirs in runs:
            row(f"{name}{what}", aim, ratio(runs, ours, theirs, of), unit)
        else:
            alone(f"{name.split(' / ')[0]}{what}", aim, [of(run) for run in runs[ours]], unit)


def train_command(
    bench: Bench, order: int, ending: str, *options: str, records: bool = False
) -> list[str]:
    return [
        tool("seq-ngram"), "train", "--order", str(order), "--quiet",
        *(option.replace("_", "-") for option in bench.fallback), *options,
        "-o", str(bench.folder / f"ours{order}{ending}"),
        *((str(bench.records),) if records else ("--text", str(bench.corpus))),
    ]  # fmt: skip


def lmplz_command(bench: Bench, order: int, memory: str = "4G") -> list[str]:
    assert bench.lmplz is not None
    return [
        bench.lmplz, "-o", str(order), "-S", memory, "-T", f"{bench.folder}/", *bench.fallback,
        "--text", str(bench.corpus), "--arpa", str(bench.folder / f"theirs{order}.arpa"),
    ]  # fmt: skip


def estimation(bench: Bench, order: int) -> None:
    """All ways to estimate a model of this order, in turn."""
    commands = {
        "arpa": train_command(bench, order, ".arpa"),
        "binary": train_command(bench, order, ".safetensors"),
        "records": train_command(bench, order, ".arpa", records=True),
        "little": train_command(bench, order, ".arpa", "-S", "500M", "-T", str(bench.folder)),
    }
    for command in commands.values():  # kernels compiled, files read
        usage(command)
    if bench.lmplz:
        commands["lmplz"] = lmplz_command(bench, order)
        commands["lmplz-little"] = lmplz_command(bench, order, "500M")
    runs: dict[str, list[Usage]] = {name: [] for name in commands}
    for _ in range(bench.rounds):
        for name, command in commands.items():
            for made in bench.folder.glob(f"*{order}.arpa"):
                if made.name.startswith("theirs") == name.startswith("lmplz"):
                    made.unlink()
            runs[name].append(usage(command))
    train, theirs = f"`train --order {order}", f"` / `lmplz -o {order}"
    show(runs, "arpa", "lmplz", f"{train} --text -o .arpa{theirs} -S 4G`", ("≤ 0.6", "≤ 1.5"))
    show(
        runs, "binary", "lmplz", f"{train} --text -o .safetensors{theirs} -S 4G`",
        ("≤ 0.4", "≤ 1.5"),
    )  # fmt: skip
    show(runs, "records", "lmplz", f"{train} -o .arpa` from JSONL / `lmplz`", ("≤ 0.8", "≤ 1.5"))
    show(
        runs, "little", "lmplz-little", f"{train} -S 500M -o .arpa{theirs} -S 500M`",
        ("-", "< 700 MB"),
    )  # fmt: skip
    row(f"{train} -S 500M` / without `-S`", "≤ 2", ratio(runs, "little", "arpa", SECONDS), "s")


def scoring(bench: Bench) -> None:
    """Tokens a second on a loaded model: the time for much text less that for one line."""
    model = bench.folder / "ours5.safetensors"
    text, one = bench.folder / "long.tok", bench.folder / "one.tok"
    test = bench.test.read_bytes()
    copies = max(1, 20_000_000 // max(len(test), 1))
    text.write_bytes(test * copies)
    one.write_bytes(test[: test.index(b"\n") + 1])
    tokens = (len(test.split()) + test.count(b"\n")) * copies

    commands = {"ours": ([tool("seq-ngram"), "score", "--quiet", "--text", "--model", str(model)])}
    if bench.query and bench.builder and bench.lmplz:
        for kind in ("probing", "trie"):
            binary = str(bench.folder / kind)
            arpa = str(bench.folder / "theirs5.arpa")
            subprocess.run([bench.builder, kind, arpa, binary], capture_output=True, check=True)
            commands[kind] = [bench.query, "-v", "sentence", binary]
    else:
        print("no lmplz, query and build_binary: nothing to compare score with", file=sys.stderr)
    usage(commands["ours"], text)
    short: dict[str, list[Usage]] = {name: [] for name in commands}
    rates: dict[str, list[Usage]] = {name: [] for name in commands}
    for _ in range(bench.rounds):
        for name, command in commands.items():
            short[name].append(usage(command, one))
            whole = usage(command, text)
            rate = tokens / (whole.seconds - short[name][-1].seconds) / 1e6
            rates[name].append(Usage(rate, whole.megabytes))
    title = "`score --text`, model loaded"
    for name in commands if len(commands) == 1 else list(commands)[1:]:
        if name == "ours":
            alone(title, "≥ 1", [rate.seconds for rate in rates["ours"]], "M tokens/s")
        else:
            compared = ratio(rates, "ours", name, SECONDS)
            row(f"{title} / `query -v sentence` {name}", "ours ≥ 1 M", compared, "M tokens/s")
    size = model.stat().st_size / 1e6
    show(
        short, "ours", "trie", f"`score` of one line, {size:,.0f} MB model / `query` trie",
        ("-", "-"),
    )  # fmt: skip
    opened = subprocess.run(
        [PYTHON, "-c", LOADING, str(model)], capture_output=True, check=True, text=True
    )
    alone(f"opening a model of {size:,.0f} MB", "< 1 s", [float(opened.stdout)], "s")


def little(bench: Bench) -> None:
    """A thousand lines: with compiled functions in the cache, and with no cache yet."""
    part = bench.folder / "1000.tok"
    with bench.corpus.open("rb") as lines:
        part.write_bytes(b"".join(itertools.islice(lines, 1000)))
    few = Bench(**(vars(bench) | {"corpus": part, "fallback": ("--discount_fallback",)}))
    commands = {"warm": train_command(few, 5, ".arpa")}
    if bench.lmplz:
        commands["lmplz"] = lmplz_command(few, 5)
    runs: dict[str, list[Usage]] = {name: [] for name in commands}
    for _ in range(5):
        for name, command in commands.items():
            runs[name].append(usage(command))
    show(runs, "warm", "lmplz", "`train --order 5`, 1,000 lines / `lmplz`", ("ours < 2 s", "-"))
    first = []
    for number in range(bench.rounds):
        cache = bench.folder / f"cache{number}"
        environment = os.environ | {"XDG_CACHE_HOME": str(cache)}
        environment.pop("NUMBA_CACHE_DIR", None)
        first.append(usage(commands["warm"], environment=environment).seconds)
    alone("the same, the very first run, which compiles", "< 15 s", first, "s")


def measure(folder: pathlib.Path, options: argparse.Namespace) -> None:
    """All figures of this part."""
    bench = prepare(folder, options)
    for order in (3, 5):
        estimation(bench, order)
    scoring(bench)
    little(bench)
