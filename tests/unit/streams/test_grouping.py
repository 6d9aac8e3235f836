"""Records of several lines."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import InputError
from seqtools.streams.files import WHOLE, Block, Shard
from seqtools.streams.grouping import Group, group_lines


class Stops:
    """A record ends with a line `.`."""

    closing = re.compile(rb"(?m)^\.$")

    def cut(self, data, /, *, last):
        groups, above, begin = [], 0, 0
        lines = data.split(b"\n")[:-1]
        for number, line in enumerate(lines):
            if line == b"." or (last and number == len(lines) - 1):
                raw = b"\n".join(lines[above : number + 1])
                groups.append(Group(above, raw))
                above = number + 1
                begin += len(raw) + 1
        return groups, begin


def blocks(*pieces, source="f"):
    """Blocks of one file, each piece with whether a wait follows."""
    made, line = [], 1
    for data, pause in pieces:
        made.append(Block(source, data, line, 1, pause, keep_blank=True))
        line += data.count(b"\n")
    return made


def lines(grouped, shard=WHOLE):
    return [tuple(line) for block in grouped for line in block.lines(shard, 1)]


@given(st.lists(st.sampled_from([b"a", b"b", b"."]), max_size=12), st.data())
def test_records_do_not_depend_on_blocks(texts, data) -> None:
    whole = blocks((b"".join(text + b"\n" for text in texts), False))
    pieces, at = [], 0
    while at < len(texts):
        size = data.draw(st.integers(1, 4))
        part = b"".join(text + b"\n" for text in texts[at : at + size])
        pieces.append((part, data.draw(st.booleans())))
        at += size
    assert lines(group_lines(iter(blocks(*pieces)), Stops())) == lines(
        group_lines(iter(whole), Stops())
    )


def test_whole_records_are_given_before_a_wait() -> None:
    given_ = group_lines(
        iter(blocks((b"a\n.\nb\n", True), (b"c\n", True), (b".\n", False))), Stops()
    )
    seen = [([group.raw for group in block.groups], block.line, block.pause) for block in given_]
    assert seen == [([b"a\n."], 1, True), ([], 3, True), ([b"b\nc\n."], 3, False)]


def test_a_record_ends_with_its_file() -> None:
    two = [*blocks((b"", True), (b"a\n.\nb\n", False)), *blocks((b"c\n.\n", False), source="g")]
    found = lines(group_lines(iter(two), Stops()))
    assert found == [
        (("f", 1, 1), b"a\n."),
        (("f", 3, 2), b"b"),
        (("g", 1, 3), b"c\n."),
    ]


def test_records_of_a_shard() -> None:
    data = b"".join(b"%d\n.\n" % number for number in range(1, 6))
    found = lines(group_lines(iter(blocks((data, False))), Stops()), Shard(2, 2))
    assert [(place.line, place.number, raw) for place, raw in found] == [
        (3, 2, b"2\n."),
        (7, 4, b"4\n."),
    ]


def test_the_first_record_may_be_taken_away() -> None:
    (block,) = group_lines(iter(blocks((b"a\n.\nb\n.\n", False))), Stops())
    first, rest = block.behead()
    assert (first, lines([rest])) == (b"a\n.", [(("f", 3, 1), b"b\n.")])
    assert next(group_lines(iter(blocks((b"a\n", True))), Stops())).behead() is None


def test_a_record_that_does_not_end() -> None:
    endless = blocks((b".\na\n", False), *[(b"b" * 99 + b"\n", False)] * 50)
    with pytest.raises(InputError, match=r"^f:2: a record of more than 0 MiB$"):
        lines(group_lines(iter(endless), Stops(), longest=1000))
