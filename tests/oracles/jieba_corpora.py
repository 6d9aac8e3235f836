"""Are the words of engine `auto` those of jieba, on whole corpora? Too long for `make test`.

    python -m tests.oracles.jieba_corpora FILE...    files of UTF-8 lines, .gz or not

Writes a row for each file, mode and setting of the HMM: lines, tokens, and how many lines differ,
in their tokens or in their offsets, from what jieba's own functions give; the first is shown. The
status is 1 where there is one.
"""

from __future__ import annotations

import gzip
import itertools
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from seqtools.text.tokenizers import jieba_dictionary
from seqtools.text.tokenizers.jieba import JiebaTokenizer, Mode

MODES: tuple[Mode, ...] = ("precise", "search")
TOGETHER = 2000  # lines cut in one call, beside one by one


def main(paths: Sequence[str]) -> int:
    """Compare all of them; the status."""
    jieba = jieba_dictionary.load()
    jieba.initialize()
    differing = 0
    for path, mode, hmm in itertools.product(paths, MODES, (True, False)):
        tokenizer = JiebaTokenizer(mode=mode, hmm=hmm, keep_space=True)
        lines = _lines(path)
        tokens = wrong = 0
        for start in range(0, len(lines), TOGETHER):
            some = lines[start : start + TOGETHER]
            for line, (found, offsets) in zip(some, tokenizer.spans_all(some), strict=True):
                expected = _reference(jieba, line, mode, hmm=hmm)
                spans = [(token, *span) for token, span in zip(found, offsets, strict=True)]
                tokens += len(expected)
                if spans == expected and tokenizer.tokenize(line) == found:
                    continue
                wrong += 1
                if wrong == 1:
                    print(f"{path}: {line!r}\n  jieba {expected}\n  auto  {spans}")
        counts = f"{len(lines)} lines\t{tokens} tokens\t{wrong} differ"
        print(path, mode, "HMM" if hmm else "no HMM", counts, sep="\t", flush=True)
        differing += wrong
    return int(differing > 0)


def _lines(path: str) -> list[str]:
    data = pathlib.Path(path).read_bytes()
    text = gzip.decompress(data) if path.endswith(".gz") else data
    return text.decode("utf-8").split("\n")


def _reference(jieba: Any, text: str, mode: Mode, *, hmm: bool) -> list[tuple[str, int, int]]:
    return list(jieba.tokenize(text, mode="default" if mode == "precise" else mode, HMM=hmm))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
