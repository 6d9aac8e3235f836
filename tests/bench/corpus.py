"""A corpus of plain English for the benchmarks, out of whatever text and HTML is at hand.

    python -m tests.bench.corpus -o FOLDER SOURCE...

A source is a file or a folder, searched to its depths; gzip (and dictd's .dz) is unpacked, HTML
stripped of its tags, anything that is no text left out. Sentences are lower-cased, cut into words,
numbers and signs with blanks between, and kept once each, in an order that the seed decides. Into
FOLDER go

    corpus.tok     the first --size megabytes (10^6 bytes)
    test.tok       --test lines that are not in it
    corpus.jsonl   corpus.tok as records with `tokens`
"""

import argparse
import gzip
import html
import json
import pathlib
import random
import re
import sys
from collections.abc import Iterator

TEXT = {"", ".txt", ".rst", ".md", ".html", ".htm", ".en", ".dict", ".tokens", ".gz", ".dz"}
UNSEEN = re.compile(r"<(script|style|head)\b.*?</\1>|<!--.*?-->", re.DOTALL | re.IGNORECASE)
BLOCK = re.compile(r"</?(p|div|li|tr|h\d|br|dt|dd|pre|table|ul|ol|section)\b[^>]*>", re.IGNORECASE)
TAG = re.compile(r"<[^>]*>")
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n\s*\n")
TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+|[^\w\s]|_")
LENGTHS = range(3, 201)  # shorter is no sentence, longer is a table


def files(sources: list[pathlib.Path]) -> Iterator[pathlib.Path]:
    """The files named and those in the folders named, in sorted order."""
    for source in sources:
        if not source.exists():
            raise SystemExit(f"no such file or folder: {source}")
        found = sorted(source.rglob("*")) if source.is_dir() else [source]
        for path in found:
            if path.is_file() and not path.is_symlink() and path.suffix in TEXT:
                yield path


def text_of(path: pathlib.Path) -> str:
    """What a file says; nothing where it holds no text."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if b"\0" in data[:4096]:
        return ""
    text = data.decode("utf-8", "replace")
    if "<html" in text[:2000].lower():
        text = UNSEEN.sub(" ", text)
        text = html.unescape(TAG.sub("", BLOCK.sub("\n\n", text)))
    return text


def sentences(sources: list[pathlib.Path]) -> Iterator[str]:
    """Tokenised sentences of a length in `LENGTHS`, one by one, repetitions and all."""
    for path in files(sources):
        for sentence in SENTENCE.split(text_of(path).lower()):
            words = TOKEN.findall(sentence)
            if len(words) in LENGTHS:
                yield " ".join(words)


def main() -> None:
    parser = argparse.ArgumentParser(description="A corpus of plain text for the benchmarks.")
    parser.add_argument("sources", nargs="+", type=pathlib.Path, metavar="SOURCE")
    parser.add_argument("--size", type=float, default=100, help="megabytes (default 100)")
    parser.add_argument("--test", type=int, default=20_000, help="lines held out (default 20000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, metavar="FOLDER")
    options = parser.parse_args()

    lines = list(dict.fromkeys(sentences(options.sources)))
    random.Random(options.seed).shuffle(lines)
    test, wanted, size = lines[: options.test], round(1e6 * options.size), 0
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "test.tok").write_text("".join(f"{line}\n" for line in test), "utf-8")
    number, tokens = 0, 0
    with (
        (options.output / "corpus.tok").open("wb") as plain,
        (options.output / "corpus.jsonl").open("w", encoding="utf-8") as records,
    ):
        for line in lines[options.test :]:
            data = f"{line}\n".encode()
            if size + len(data) > wanted:
                break
            plain.write(data)
            words = line.split(" ")
            record = json.dumps({"tokens": words}, ensure_ascii=False, separators=(",", ":"))
            records.write(f"{record}\n")
            size, number, tokens = size + len(data), number + 1, tokens + len(words)
    print(f"{size / 1e6:.1f} MB, {number:,} lines, {tokens:,} tokens", file=sys.stderr)
    if size < 0.99 * wanted:
        print(f"the sources have no {options.size:g} MB of sentences", file=sys.stderr)


if __name__ == "__main__":
    main()
