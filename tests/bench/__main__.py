"""`make bench`: every figure is a ratio of two things measured in turn in this run.

    python -m tests.bench            all of it
    python -m tests.bench text       one part: start text train decode ngram

The part `ngram` measures against KenLM where `--lmplz` and `--query` name its commands, and on the
text that `--corpus` and `--test` name; tests/bench/corpus.py makes one. The part `text` takes
`--corpus`, too, for English, `--chinese`, and `--spm-encode` for sentencepiece's command.

Writes a table to stdout, one row a figure.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import tempfile
import time

from tests.bench import decoding, ngram, text
from tests.bench.measure import PYTHON, ROOT, compare, row, seconds, tool

TEXT_COMMANDS = [
    ("seq-convert", "text"),
    ("seq-tokenize", "whitespace"),
    ("seq-vocab", "build"),
    ("seq-batch", "lm", "--vocab", "{vocab}"),
    ("seq-eval", "perplexity", "{scored}"),
    ("seq-attnviz", "terminal"),
]
PASSIVE = dict(os.environ, OMP_WAIT_POLICY="PASSIVE", GOMP_SPINCOUNT="0")


def start_up(folder: pathlib.Path) -> None:
    vocab = folder / "tiny.vocab"
    vocab.write_bytes(
        subprocess.run(
            [tool("seq-vocab"), "build", "--quiet"],
            input=b'{"tokens":["a","b"]}\n',
            capture_output=True,
            check=True,
        ).stdout
    )

    scored = folder / "scored.jsonl"
    scored.write_bytes(b'{"logprob":-1.0,"n_tokens":1}\n')

    def imports() -> float:
        return seconds([PYTHON, "-c", "import click, orjson"])

    for command in TEXT_COMMANDS:
        arguments = [part.format(vocab=vocab, scored=scored) for part in command[1:]]
        result = compare(lambda c=command[0], a=arguments: seconds([tool(c), *a]), imports, 15)
        row(f"start-up of `{' '.join(command[:2])}` / `import click, orjson`", "≤ 1.5", result, "s")


def write_batches(folder: pathlib.Path, vocabulary: int, steps: int, batches: int) -> pathlib.Path:
    """A batch stream of 64 rows a batch over random words of a vocabulary of this size."""
    chance = random.Random(2)
    names = [f"w{number}" for number in range(vocabulary - 4)]
    tokens = folder / f"tokens{vocabulary}.jsonl"
    needed = 64 * steps * batches
    with tokens.open("w") as file:
        file.write(json.dumps({"tokens": names}) + "\n")
        for _ in range(max(needed - len(names), 0) // 20 + 1):
            file.write(json.dumps({"tokens": chance.choices(names, k=19)}) + "\n")
    vocab, stream = folder / f"{vocabulary}.vocab", folder / f"{vocabulary}.batches"
    subprocess.run([tool("seq-vocab"), "build", "--quiet", "-o", vocab, tokens], check=True)
    subprocess.run(
        [tool("seq-batch"), "lm", "--quiet", "--sampling", "sequential", "--vocab", vocab,
         "--batch-size", "64", "--steps", str(steps), "-o", stream, tokens],
        check=True,
    )  # fmt: skip
    return stream


def seq_train(stream: pathlib.Path, steps: int, batches: int, folder: pathlib.Path) -> float:
    """Tokens a second from the second step on, as the clock outside sees it."""
    command = [
        tool("seq-train"), "lstm", "--layers", "2", "--hidden", "256", "--embedding", "256",
        "--dropout", "0", "--lr", "0.001", "--clip", "1", "--threads", "2", "--log-every", "1",
        "--max-steps", str(batches + 2), "--quiet", "-o", str(folder / "bench.safetensors"),
        str(stream),
    ]  # fmt: skip
    stamps = []
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if b'"event":"train"' in line:
                stamps.append(time.perf_counter())
    if process.returncode:
        raise SystemExit(f"seq-train ended with {process.returncode}")
    return batches * 64 * steps / (stamps[batches + 1] - stamps[1])


def bare(vocabulary: int, steps: int, batches: int) -> float:
    command = [
        PYTHON, str(ROOT / "tests/bench/bare_lstm.py"), "--vocabulary", str(vocabulary),
        "--steps", str(steps), "--batches", str(batches), "--threads", "2",
    ]  # fmt: skip
    return float(subprocess.run(command, env=PASSIVE, capture_output=True, check=True).stdout)


def first_step(stream: pathlib.Path, folder: pathlib.Path) -> float:
    command = [
        tool("seq-train"), "lstm", "--hidden", "32", "--embedding", "32", "--log-every", "1",
        "--quiet", "-o", str(folder / "first.safetensors"), str(stream),
    ]  # fmt: skip
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if b'"event":"train"' in line:
                taken = time.perf_counter() - start
                process.kill()
                return taken
    raise SystemExit("seq-train made no step")


def train(folder: pathlib.Path) -> None:
    for vocabulary, steps, batches, aim in ((100, 64, 40, "≥ 0.95"), (10_000, 35, 20, "≥ 1.1")):
        stream = write_batches(folder, vocabulary, steps, batches + 10)
        result = compare(
            lambda s=stream, t=steps, b=batches: seq_train(s, t, b, folder),
            lambda v=vocabulary, t=steps, b=batches: bare(v, t, b),
            5,
        )
        name = f"`seq-train lstm` 2 x 256, vocabulary {vocabulary:,} / bare torch loop"
        row(name, aim, result, "tokens/s")
    stream = folder / "100.batches"
    result = compare(
        lambda: first_step(stream, folder), lambda: seconds([PYTHON, "-c", "import torch"]), 7
    )
    row("start of `seq-train` to its first step / `import torch`", "-", result, "s")


PARTS = {"start": start_up, "train": train, "decode": decoding.measure}


def main() -> None:
    # As users have it: modules are compiled once, not at every start.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    parser = argparse.ArgumentParser(description="Benchmarks of seqtools.")
    parser.add_argument(
        "parts", nargs="*", choices=[[], *PARTS, "text", "ngram"], help="all when none is named"
    )
    ngram.add_options(parser)
    text.add_options(parser)
    options = parser.parse_args()
    measures = PARTS | {
        "text": lambda folder: text.measure(folder, options),
        "ngram": lambda folder: ngram.measure(folder, options),
    }
    print("| what | ours | theirs | ratio | aim | rounds |\n| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        for part in options.parts or measures:
            measures[part](pathlib.Path(name))


if __name__ == "__main__":
    main()
