import json
from collections import Counter

import pytest
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st

from seqtools.cli import _vocab_count
from seqtools.cli._vocab_plain import PlainCounter
from seqtools.cli.vocab import cli

ODD = st.sampled_from(["", "<s>", "<unk>", "</s>", "New York", "a\tb", "\u2028", "é", "𠮷", '"\\'])
TOKENS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=4) | ODD)


@given(st.lists(st.lists(TOKENS), max_size=4), st.booleans(), st.booleans())
@example([[["<s>", "<unk>", "</s>", ""]]], False, False)
def test_plain_blocks_are_counted_as_they_are(blocks, escaped, ended) -> None:
    counter = PlainCounter("tokens")
    for block in blocks:
        lines = [json.dumps({"n": 1, "tokens": tokens}, ensure_ascii=escaped) for tokens in block]
        data = "\n".join(lines).encode() + b"\n" * ended
        # A pair of surrogates is left to others.
        plain = not (escaped and any(char > "\uffff" for row in block for t in row for char in t))
        assert counter.take(data) == (len(block) if plain else None)
        if not plain:
            return
    tokens = Counter(token for block in blocks for record in block for token in record)
    assert counter.counts() == tokens


@pytest.mark.parametrize(
    "line", ['{"tokens":["a",1]}', '{"tokens":"a"}', "{}", "[]", '{"tokens":["a"]', "\xff"]
)
def test_what_is_not_plain_counts_for_nothing(line: str) -> None:
    counter = PlainCounter("tokens")
    assert counter.take(b'{"tokens":["b"]}\n') == 1
    assert counter.take(b'{"tokens":["c"]}\n' + line.encode("latin-1")) is None
    assert counter.counts() == {"b": 1}


def test_more_types_than_there_was_room_for() -> None:
    counter = PlainCounter("tokens")
    expected = Counter()
    for start in (0, 50_000):
        tokens = [f"w{number}" for number in range(start, start + 100_000)]
        counter.take(json.dumps({"tokens": tokens}).encode())
        expected.update(tokens)
    assert counter.counts() == expected


BLOCK = b"".join(b'{"tokens":["a","w%d"]}\n' % number for number in range(20_000))
NESTED = b"".join(b'{"tokens":["b","<s>"],"ids":[%d]}\n' % number for number in range(20_000))
BAD = b'{"tokens":[1]}\n'


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("options", [[], ["--rejects", "bad"], ["--field", "tokens"]])
def test_large_files_give_the_same(options, jobs, monkeypatch, tmp_path) -> None:
    """Blocks that are plain, blocks that are not, and a bad line in either."""
    monkeypatch.chdir(tmp_path)
    data = BLOCK + NESTED + BLOCK + NESTED + BLOCK
    if "--rejects" in options:
        data = BLOCK + BAD + BLOCK + NESTED + BAD + NESTED + BLOCK
    (tmp_path / "in").write_bytes(data)

    def build(target: str) -> tuple[int, bytes]:
        arguments = ["build", "--quiet", "--jobs", jobs, *options, "-o", target, "in"]
        status = CliRunner().invoke(cli, arguments).exit_code
        return status, (tmp_path / target).read_bytes()

    small = build("small")
    monkeypatch.setattr(_vocab_count, "LARGE", 0)
    assert build("large") == small
    assert small[0] == (3 if "--rejects" in options else 0)
