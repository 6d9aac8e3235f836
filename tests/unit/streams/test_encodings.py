"""Text in other encodings than UTF-8."""

import codecs
import contextlib
import encodings.aliases
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import ConfigError, FormatError, RecordError
from seqtools.streams.encodings import UTF_8, encoding
from seqtools.streams.files import WHOLE, read_blocks

TEXT = "北京 a\nok\n"
NAMES = [
    "utf-8", "utf-8-sig", "gb18030", "gbk", "big5", "shift_jis", "utf-16", "utf-16-le", "utf-16-be",
    "utf-32", "utf-7", "hz", "iso2022_jp",
]  # fmt: skip


def read(tmp_path, data, coding):
    """The lines of a file, each as text or as the reason why it is none."""
    path = tmp_path / "f"
    path.write_bytes(data)
    found = []
    for block in read_blocks([str(path)], keep_blank=True, encoding=coding):
        for line in block.lines(WHOLE, 1):
            try:
                found.append(coding.decode(line.raw))
            except RecordError as error:
                found.append(str(error))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_lines_of_a_file(tmp_path, name: str) -> None:
    assert read(tmp_path, TEXT.encode(name), encoding(name)) == ["北京 a", "ok"]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_written_is_what_python_writes(name: str) -> None:
    coding = encoding(name)
    lines = [coding.encode(line + "\n") for line in TEXT.split("\n")[:-1]]
    assert (coding.start + b"".join(lines)).decode(name) == TEXT
    if name not in ("hz", "iso2022_jp", "utf-7"):  # which may change their mode sooner or later
        assert coding.start + b"".join(lines) == TEXT.encode(name)


@pytest.mark.parametrize("name", ["utf-16-le", "utf-16-be", "gb18030", "utf-8", "utf-32-le"])
def test_a_mark_at_the_start_of_a_file_alone_is_dropped(tmp_path, name: str) -> None:
    data = "\ufeffa\n\ufeffb".encode(name)
    assert read(tmp_path, data, encoding(name)) == ["a", "\ufeffb"]


@given(st.text(st.sampled_from("\n\r文ĊċĀ𠮷a"), max_size=12), st.integers(1, 5))
def test_utf_16_in_pieces(text: str, size: int) -> None:
    data = text.encode("utf-16")
    chunks = iter([data[at : at + size] for at in range(0, len(data), size)])
    assert b"".join(encoding("utf-16").recode(chunks, "f")).decode() == text


@pytest.mark.parametrize(
    ("name", "data", "found"),
    [
        ("gb18030", b"a\n\xb1\xb1\xff\nb\n", "not gb18030: byte 0xff at byte 3 of the line"),
        ("gb18030", b"a\n\xb1\nb\n", "not gb18030: byte 0xb1 at byte 1 of the line"),
        ("ascii", b"a\nx\xe9\nb", "not ascii: byte 0xe9 at byte 2 of the line"),
        ("utf-8", b"a\n\xed\xa0\x80\nb", "not UTF-8: byte 0xed at byte 1 of the line"),
        (
            "utf-16-le",
            "a\n文".encode("utf-16-le") + b"\x00\xd8" + "\nb".encode("utf-16-le"),
            "not utf-16-le: byte 0x00 at character 2 of the line",
        ),
        (
            "utf-16-be",
            "a\nx".encode("utf-16-be") + b"\xdc\x01" + "\nb".encode("utf-16-be"),
            "not utf-16-be: byte 0xdc at character 2 of the line",
        ),
        ("iso2022_jp", b"a\nx\x80\nb", "not iso2022_jp: byte 0x80 at character 2 of the line"),
        ("utf-7", b"a\n+2AA-\nb", "not utf-7: U+D800 at character 1 of the line"),
    ],
)
def test_bad_bytes_spoil_their_line_alone(tmp_path, name: str, data: bytes, found: str) -> None:
    assert read(tmp_path, data, encoding(name)) == ["a", found, "b"]


@pytest.mark.parametrize("name", ["utf-16", "utf-32"])
def test_a_file_without_its_mark(tmp_path, name: str) -> None:
    with pytest.raises(FormatError, match=f"f: not {name}: no byte-order mark, try {name}-le"):
        read(tmp_path, TEXT.encode(f"{name}-le"), encoding(name))
    assert read(tmp_path, b"", encoding(name)) == []


def test_half_a_character_at_the_end(tmp_path) -> None:
    data = "a\nb".encode("utf-16-le") + b"\x00"
    assert read(tmp_path, data, encoding("utf-16-le")) == [
        "a",
        "not utf-16-le: byte 0x00 at character 2 of the line",
    ]


def test_the_line_of_bad_bytes_in_several() -> None:
    with pytest.raises(RecordError, match="byte 0xff at byte 2 of the line") as caught:
        UTF_8.decode(b"ab\nc\xff\n")
    assert caught.value.line == 1


def test_characters_that_an_encoding_lacks() -> None:
    with pytest.raises(RecordError, match=r"big5 has no U\+20BB7 \(𠮷\)"):
        encoding("big5").encode("a𠮷")
    with pytest.raises(RecordError, match=r"U\+D800 is no character"):
        UTF_8.encode("\ud800")


@pytest.mark.parametrize("name", ["klingon", "rot13", "base64", "undefined", "", "a\0b"])
def test_what_is_no_encoding(name: str) -> None:
    with pytest.raises(ConfigError, match="no encoding is called"):
        encoding(name)


@pytest.mark.parametrize("name", ["idna", "Punycode", "unicode_escape", "raw_unicode_escape"])
def test_what_is_no_encoding_of_files(name: str) -> None:
    with pytest.raises(ConfigError, match=f"'{name}' is no encoding of files"):
        encoding(name)


def test_no_character_of_several_bytes_has_a_line_end_in_it() -> None:
    """Of all encodings whose lines are found in the bytes, the line ends are line ends."""
    seen = 0
    for name in sorted({*encodings.aliases.aliases.values()}):
        try:
            coding = encoding(name)
        except ConfigError:
            continue
        if coding.recoded:
            continue
        seen += 1
        low = b'\t\n\r ",#-'
        for lead, trail in itertools.product(range(0x80, 0x100), low):
            with contextlib.suppress(UnicodeDecodeError):
                text = bytes([lead, trail]).decode(name)
                assert text[1:] == chr(trail), (name, lead, trail)
    assert seen > 60


def test_encodings_that_look_like_ascii_and_are_not() -> None:
    assert not any(encoding(name).recoded for name in ("latin-1", "gb18030", "big5", "euc_kr"))
    assert all(encoding(name).recoded for name in ("utf-16", "utf-32", "utf-7", "hz", "cp037"))
    assert codecs.lookup("hz").decode(b"~{<:Ky~}")[0] == "己所"  # whose bytes are letters of ASCII
