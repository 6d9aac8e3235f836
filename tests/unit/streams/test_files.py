"""Files as blocks of raw lines."""

import bz2
import contextlib
import gzip
import lzma
import os
import threading
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import ConfigError, FormatError
from seqtools.streams.files import (
    STDIN,
    WHOLE,
    Block,
    Meter,
    Shard,
    check_inputs,
    chomp,
    read_blocks,
)
from seqtools.streams.outputs import replace_file

BOM = b"\xef\xbb\xbf"
COMPRESS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}
SOUP = st.lists(
    st.sampled_from([b"\n", b"{", b"\r", b" ", b"\t", b"a", b"\x0b\x0c", b"\xe2\x80\xa8"])
)


def write(tmp_path, data, name="f.jsonl"):
    path = tmp_path / name
    path.write_bytes(data)
    return str(path)


def read(path):
    with open(path, "rb") as handle:
        return handle.read()


def until_error(blocks, error, match):
    """The raw lines before the error."""
    lines = []

    def take():
        for block in blocks:
            lines.extend(line.raw for line in block.lines(WHOLE, 1))

    with pytest.raises(error, match=match):
        take()
    return lines


def raws(blocks, shard=WHOLE, first=1):
    return [line.raw for block in blocks for line in block.lines(shard, first)]


def places(blocks, shard=WHOLE, first=1):
    return [tuple(line.place)[1:] for block in blocks for line in block.lines(shard, first)]


# Lines


@given(SOUP, st.booleans())
def test_the_records_counted_are_the_lines_given(parts, keep_blank):
    data = b"".join(parts)
    block = Block("f", data, 1, 1, False, keep_blank)
    lines = list(block.lines(WHOLE, 1))
    assert block.size[1] == len(lines)
    # The plain definition: every newline ends a line, and what follows the last one is one.
    physical = data.split(b"\n")
    if not physical[-1]:
        physical.pop()
    wanted = [raw for raw in physical if keep_blank or raw.strip(b" \t\r")]
    assert [line.raw for line in lines] == wanted
    assert [line.place.number for line in lines] == list(range(1, len(wanted) + 1))
    assert all(physical[line.place.line - 1] == line.raw for line in lines)


@given(SOUP, st.integers(1, 9), st.booleans(), st.integers(1, 4), st.integers(0, 3))
def test_blocks_of_any_size_give_the_same_lines(tmp_path_factory, parts, size, keep, count, first):
    path = tmp_path_factory.getbasetemp() / "soup"
    path.write_bytes(b"".join(parts))
    options = {"first_record": first, "keep_blank": keep}
    small = list(read_blocks([str(path)], block_size=size, **options))
    large = list(read_blocks([str(path)], **options))
    assert len(large) <= 1
    assert raws(small, first=first) == raws(large, first=first)
    assert places(small, first=first) == places(large, first=first)
    # The shards are every count-th line, and together all of them.
    shards = [places(small, Shard(i, count), first) for i in range(1, count + 1)]
    assert shards == [places(large, first=first)[i::count] for i in range(count)]


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085", "\x1c", "\x0b", "\x0c", "\r"])
def test_only_the_newline_byte_ends_a_line(tmp_path, mark):
    data = f"a{mark}b\nc{mark}d".encode()
    assert raws(read_blocks([write(tmp_path, data)])) == data.split(b"\n")


def test_a_return_before_the_newline_is_no_text():
    assert chomp(b"a\r") == b"a"
    assert chomp(b"a\rb") == b"a\rb"
    assert chomp(b"a") == b"a"
    assert chomp(b"a\r\r") == b"a\r"


def test_lines_and_records_are_counted_on_through_blank_lines_and_files(tmp_path):
    one = write(tmp_path, b"a\n\n \t\r\nb", "one")
    two = write(tmp_path, b"\nc\n", "two")
    blocks = list(read_blocks([one, two], first_record=7))
    assert places(blocks, first=7) == [(1, 7), (4, 8), (2, 9)]
    assert [block.source for block in blocks] == [one, two]
    kept = list(read_blocks([one, two], keep_blank=True))
    assert places(kept) == [(1, 1), (2, 2), (3, 3), (4, 4), (1, 5), (2, 6)]


def test_a_long_line_is_one_line(tmp_path):
    data = b"x" * 3_000_000 + b"\n" + b"y" * 10
    assert [len(raw) for raw in raws(read_blocks([write(tmp_path, data)]))] == [3_000_000, 10]


@pytest.mark.parametrize("data", [b"", BOM, b"\n", BOM + b"\n"])
def test_a_file_without_records(tmp_path, data):
    assert raws(read_blocks([write(tmp_path, data)])) == []


@pytest.mark.parametrize(
    "data", [b"a\nb\n", b"a\nb", b"a", b"\nb\n", b"\xef\xbb", b"\xef", b"\xefa\n"]
)
def test_a_mark_is_dropped_at_the_start_of_each_file_and_only_there(tmp_path, data):
    marked = [write(tmp_path, BOM + data, "m"), write(tmp_path, BOM + data, "n")]
    plain = [write(tmp_path, data, "p"), write(tmp_path, data, "q")]
    assert raws(read_blocks(marked)) == raws(read_blocks(plain))
    twice = write(tmp_path, BOM + BOM + data)
    assert b"".join(raws(read_blocks([twice])))[:3] == BOM
    later = write(tmp_path, b"x\n" + BOM + b"y\n")
    assert raws(read_blocks([later])) == [b"x", BOM + b"y"]


# Waiting


@contextlib.contextmanager
def as_stdin(descriptor):
    saved = os.dup(0)
    os.dup2(descriptor, 0)
    try:
        yield
    finally:
        os.dup2(saved, 0)
        os.close(saved)


def test_before_a_wait_everything_whole_is_given():
    read_end, write_end = os.pipe()
    with as_stdin(read_end):
        blocks = read_blocks([STDIN])
        assert next(blocks).pause
        os.write(write_end, b"a\nb")
        block = next(blocks)
        assert (block.data, block.pause, block.line, block.record) == (b"a\n", True, 1, 1)
        os.write(write_end, b"c\n\nd\ne")
        block = next(blocks)
        assert (block.data, block.pause, block.line, block.record) == (b"bc\n\nd\n", True, 2, 2)
        os.close(write_end)
        block = next(blocks)
        assert (block.data, block.pause, block.line, block.record) == (b"e", False, 5, 4)
        assert next(blocks, None) is None
    os.close(read_end)


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
def test_a_mark_in_pieces(cut):
    read_end, write_end = os.pipe()
    data = BOM + b"a\n"
    with as_stdin(read_end):
        blocks = read_blocks([STDIN])
        next(blocks)
        os.write(write_end, data[:cut])
        assert next(blocks).data == b""
        os.write(write_end, data[cut:])
        os.close(write_end)
        assert b"".join(block.data for block in blocks) == b"a\n"
    os.close(read_end)


def test_a_compressed_pipe_waits_below_the_decompressor(tmp_path):
    fifo = tmp_path / "f.gz"
    os.mkfifo(fifo)
    blocks = read_blocks([str(fifo)])
    assert next(blocks).pause  # before it is opened, which waits for the writer
    packer = zlib.compressobj(wbits=31)
    writer = threading.Thread(target=lambda: handles.append(os.open(fifo, os.O_WRONLY)))
    handles: list[int] = []
    writer.start()
    assert next(blocks).pause
    writer.join()
    os.write(handles[0], packer.compress(b"a\n") + packer.flush(2))
    block = next(blocks)
    assert (block.data, block.pause) == (b"a\n", True)
    os.write(handles[0], packer.compress(b"b\n") + packer.flush())
    os.close(handles[0])
    assert raws(blocks) == [b"b"]


def test_a_descriptor_that_does_not_block_is_waited_for():
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    later = threading.Timer(0.1, lambda: (os.write(write_end, b"a\n"), os.close(write_end)))
    with as_stdin(read_end):
        later.start()
        assert raws(read_blocks([STDIN])) == [b"a"]
    later.join()
    os.close(read_end)


def test_the_meter_counts_bytes_of_the_files(tmp_path):
    paths = [write(tmp_path, b"abc\n", "a"), write(tmp_path, gzip.compress(b"x" * 1000), "b.gz")]
    meter = Meter(paths)
    list(read_blocks(paths, meter=meter))
    assert meter.total == meter.done == sum(os.path.getsize(path) for path in paths)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert Meter([*paths, str(fifo)]).total is None
    assert Meter([str(tmp_path / "none")]).total is None


# Inputs that are not there


def test_what_cannot_be_opened_is_said_before_any_work(tmp_path):
    good = write(tmp_path, b"a\n")
    check_inputs([good, STDIN])
    missing = str(tmp_path / "日本")
    for reader in (check_inputs, lambda paths: list(read_blocks(paths))):
        with pytest.raises(ConfigError, match="日本: No such file or directory"):
            reader([good, missing])
        with pytest.raises(ConfigError, match="is a directory"):
            reader([str(tmp_path)])


def test_names_that_are_no_unicode(tmp_path):
    path = os.fsencode(tmp_path) + b"/caf\xe9"
    with open(path, "wb") as handle:
        handle.write(b"a\n")
    assert raws(read_blocks([os.fsdecode(path)])) == [b"a"]
    replace_file(os.fsdecode(path), b"b\n")
    assert raws(read_blocks([os.fsdecode(path)])) == [b"b"]


# Compression


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize("between", [b"", bytes(512)], ids=["joined", "padded"])
def test_all_members_are_read(tmp_path, ending, between):
    members = [BOM + b"a\nb", b"c\n", b"", b"d\n" * 100_000]
    data = between.join(COMPRESS[ending](member) for member in members) + between
    path = write(tmp_path, data, f"f.{ending}")
    assert raws(read_blocks([path])) == [b"a", b"bc", *[b"d"] * 100_000]


@pytest.mark.parametrize("ending", COMPRESS)
def test_an_empty_compressed_file(tmp_path, ending):
    nothing = write(tmp_path, COMPRESS[ending](b""), f"nothing.{ending}")
    assert raws(read_blocks([nothing])) == []
    # A compressor that was killed leaves no byte at all; its own tools refuse such a file too.
    killed = write(tmp_path, b"", f"killed.{ending}")
    until_error(read_blocks([killed]), FormatError, "ends too early")


@pytest.mark.parametrize("ending", COMPRESS)
def test_a_cut_file_gives_its_whole_lines_and_then_an_error(tmp_path, ending):
    first, second = b"a\nb\n", b"".join(b"%d\n" % (n * n) for n in range(10_000))
    whole = COMPRESS[ending](first) + COMPRESS[ending](second)
    path = write(tmp_path, whole[:-20], f"cut.{ending}")
    blocks = read_blocks([path])
    given_lines = until_error(blocks, FormatError, rf"cut\.{ending}: .*compressed file")
    assert given_lines[:2] == [b"a", b"b"]
    assert given_lines == (first + second).split(b"\n")[: len(given_lines)]


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize("junk", [b"plain text\n", b"\0\1\2 junk", b"{}"])
def test_what_is_no_compressed_file_is_said_to_be_damaged(tmp_path, ending, junk):
    for data in (junk, COMPRESS[ending](b"a\n") + junk):
        blocks = read_blocks([write(tmp_path, data, f"j.{ending}")])
        given_lines = until_error(blocks, FormatError, "damaged compressed file")
        assert given_lines == ([] if data == junk else [b"a"])


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize("data", [b"", b"a\nb\n" * 200_000], ids=["empty", "long"])
def test_written_by_its_ending_and_the_same_bytes_each_time(tmp_path, ending, data):
    path = tmp_path / f"f.{ending}"
    seen = set()
    for _ in range(2):
        replace_file(str(path), data)
        seen.add(path.read_bytes())
    assert len(seen) == 1
    assert decompress(ending, path.read_bytes()) == data
    assert b"\n".join(raws(read_blocks([str(path)]))) == data.removesuffix(b"\n")


def decompress(ending, data):
    if ending == "zst":
        return zstandard.ZstdDecompressor().decompressobj().decompress(data)
    return {"gz": gzip, "bz2": bz2, "xz": lzma}[ending].decompress(data)


@pytest.mark.parametrize(
    ("tool", "pack"),
    [("gzip", gzip.compress), ("bzip2", bz2.compress), ("xz", lzma.compress),
     ("zstd", zstandard.ZstdCompressor().compress)],
)  # fmt: skip
def test_what_is_compressed_and_not_called_so_is_told_of(tmp_path, tool, pack):
    path = tmp_path / "lines"
    path.write_bytes(pack(b"{}\n"))
    with pytest.raises(FormatError, match=f"compressed, .*`{tool} -dc` first"):
        list(read_blocks([str(path)]))
    path.write_bytes(b"BZh9 is what such a file begins with\n")
    assert raws(read_blocks([str(path)])) == [b"BZh9 is what such a file begins with"]
