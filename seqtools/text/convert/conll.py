"""Sentences in columns, a token a line and a blank line after each sentence, to records and back.

As in the shared tasks of CoNLL since 2000. What `conllu` adds to it is in `conllu.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seqtools.errors import ConfigError, RecordError
from seqtools.streams.encodings import UTF_8, Encoding
from seqtools.streams.grouping import Group
from seqtools.streams.records import Record, get_text, get_tokens
from seqtools.text.convert.columns import RESERVED, Layout
from seqtools.text.tags import TagError

DOCSTART = "-DOCSTART-"
_BLANKS = " \t\r"

# The tags of a sentence to other tags; TagError where one is bad.
ChangeTags = Callable[[Sequence[str]], list[str]]
# A line to the key and the value of a comment, None where it is none.
ReadComment = Callable[[str], tuple[str, str | bool] | None]


class Sentences:
    """Lines to sentences, see `Grouping`: what stands between blank lines.

    The line that begins a document (CoNLL-2003), `-DOCSTART-` and more columns, goes with the
    sentence after it, and is left out where there is none before the next such line.
    """

    closing = re.compile(rb"(?:\A|\n)[ \t\r]*\n")
    _borders = re.compile(rb"(\n(?:[ \t\r]*\n)+)")
    _blank = re.compile(rb"(?:[ \t\r]*\n)+")

    def cut(self, data: bytes, /, *, last: bool) -> tuple[list[Group], int]:
        """Sentences, each with the ends of its lines."""
        begin = 0
        blank = self._blank.match(data)
        if blank:
            begin = blank.end()
        parts = self._borders.split(data[begin:])
        if last:
            parts[-1] = parts[-1].removesuffix(b"\n")
            parts.append(b"\n")
        groups: list[Group] = []
        above = data.count(b"\n", 0, begin)
        document = b""
        end = begin
        for lines, border in zip(parts[::2], parts[1::2], strict=False):
            if lines.startswith(DOCSTART.encode()) and b"\n" not in lines:
                above += document.count(b"\n")
                end += len(document)
                document = lines + border
                continue
            whole = document + lines
            if lines.strip(b" \t\r"):
                groups.append(Group(above, whole + b"\n"))
            above += whole.count(b"\n") + border.count(b"\n")
            end += len(whole) + len(border)
            document = b""
        return groups, len(data) if last else end


@dataclass(frozen=True, slots=True)
class Conll:
    """How sentences are read and written.

    Attributes:
        layout: which column is which field.
        separator: what stands between columns: a tab, a blank (on reading: any number of them), or
            None: on reading a tab where the line has one, else blanks; on writing a tab.
        comments: fields that are written as `# key = value`.
        change_tags: what to do to tags, on reading and on writing.
        tag_fields: which fields hold tags.
        encoding: of the files.
    """

    layout: Layout
    separator: str | None = None
    comments: tuple[str, ...] = ()
    change_tags: ChangeTags | None = None
    tag_fields: tuple[str, ...] = ("tags",)
    encoding: Encoding = UTF_8

    def __post_init__(self) -> None:
        names = [name for name, _ in self.layout.taken]
        for name in self.tag_fields if self.change_tags else ():
            if name not in names:
                raise ConfigError(f"no column becomes the field {name!r}: {', '.join(names)}")
        for name in self.comments:
            if name in names or name in RESERVED:
                raise ConfigError(f"the field {name!r} is no comment")

    def read(self, raw: bytes) -> Record:
        """A sentence, with the ends of its lines, to `{"tokens": […], "tags": […]}`.

        Fields stand in this order: `docstart`, comments, columns.

        Raises:
            RecordError: not in the encoding, a wrong number of columns, an empty one, a bad tag; it
                says in which line of the sentence.
        """
        lines = split_lines(raw, self.encoding)
        record, first = read_head(lines, read_comment)
        rows = [self._split(line) for line in lines[first:]]
        check_rows(rows, self.layout, first, hint=" (or some by number: tokens=1,tags=-1)")
        fill_columns(record, self.layout, rows)
        self.change(record, range(first, len(lines)))
        return record

    def write(self, record: Record) -> str:
        """A record to lines; the last one is blank and comes without its end.

        Raises:
            RecordError: a field is missing, no list of strings, longer than another; a column or a
                comment cannot hold what is in it; a bad tag.
        """
        columns = get_columns(record, [name for name, _ in self.layout.taken])
        self.change(columns, None)
        # Where there is but one column no line has a tab, so blanks would make several of it.
        only = (self.layout.size or self.layout.least) == 1
        separator = self.separator or (" " if only else "\t")
        for name, values in columns.items():
            check_values(values, name, separator)
        size = len(columns[self.layout.taken[0][0]])
        rows = [separator.join(row) for row in self.layout.rows(columns, size)]
        if rows[0].startswith(DOCSTART) or read_comment(rows[0]) is not None:
            raise RecordError(f"{rows[0]!r} would be read as no token")
        if not all(row.strip(_BLANKS) for row in rows):
            raise RecordError("a line of nothing but blanks would end the sentence")
        return "\n".join([*write_head(record, self.comments, read_comment), *rows, ""])

    def change(self, columns: Record, places: Sequence[int] | None) -> None:
        """Change the tags of a sentence.

        Args:
            columns: the fields.
            places: in which line of the record each token is, None where it is a single line.

        Raises:
            RecordError: a tag is bad.
        """
        if self.change_tags is None:
            return
        for name in self.tag_fields:
            try:
                columns[name] = self.change_tags(columns[name])
            except TagError as error:
                what = f'"{name}": tag {error.place + 1}, {error}'
                raise RecordError(what, 0 if places is None else places[error.place]) from None

    def _split(self, line: str) -> list[str]:
        if self.separator == "\t" or (self.separator is None and "\t" in line):
            return line.split("\t")
        return [column for column in line.split(" ") if column]


def split_lines(raw: bytes, encoding: Encoding) -> list[str]:
    """The lines of a sentence without their ends."""
    text = encoding.decode(raw)
    lines = text.split("\n")[:-1]
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def read_comment(line: str) -> tuple[str, str | bool] | None:
    """`# key = value` to its key and value, None for any other line.

    A line with a tab is none, so that the token # can begin a sentence.
    """
    if not line.startswith("#") or " = " not in line or "\t" in line:
        return None
    key, _, value = line[1:].partition(" = ")
    return (key.strip(), value) if key.strip() else None


def read_head(lines: Sequence[str], read: ReadComment) -> tuple[Record, int]:
    """The start of a document and the comments, and the number of the first line after them.

    A key that comes again has its values in one string, with newlines between.
    """
    record: Record = {}
    place = 0
    while place < len(lines) and (
        lines[place].startswith(DOCSTART) or not lines[place].strip(_BLANKS)
    ):
        if lines[place].strip(_BLANKS):
            record["docstart"] = lines[place]
        place += 1
    comments: dict[str, list[str]] = {}
    while place < len(lines) and (found := read(lines[place])) is not None:
        key, value = found
        if key in RESERVED:
            raise RecordError(f"a comment cannot be called {key!r}", place)
        values = comments.setdefault(key, [])
        if value is not True:
            values.append(str(value))
        place += 1
    for key, values in comments.items():
        record[key] = "\n".join(values) if values else True
    return record, place


def write_head(record: Record, comments: Sequence[str], read: ReadComment) -> list[str]:
    """The lines of a record before its tokens.

    Raises:
        RecordError: a line cannot hold a comment so that it is read as the same.
    """
    lines: list[str] = []
    if "docstart" in record:
        start = get_text(record, "docstart")
        if not start.startswith(DOCSTART) or "\n" in start or start.endswith("\r"):
            raise RecordError(f'"docstart" must be a line that begins with {DOCSTART}')
        lines += [start, ""]
    for key in comments:
        if key not in record:
            continue
        values = [True] if record[key] is True else get_text(record, key).split("\n")
        for value in values:
            line = f"# {key}".rstrip(" ") if value is True else f"# {key} = {value}"
            if "\n" in line or line.endswith("\r") or read(line) != (key, value):
                raise RecordError(f"{line!r} would not be read as this comment")
            lines.append(line)
    return lines


def check_rows(
    rows: Sequence[Sequence[str]], layout: Layout, first: int, *, hint: str = ""
) -> None:
    """See that all lines have as many columns as they should, and nothing is empty.

    Args:
        rows: the columns of each line.
        layout: which columns there are.
        first: in which line of the record they begin.
        hint: what to say where there are more columns than names.

    Raises:
        RecordError: it is otherwise.
    """
    if not rows:
        raise RecordError("comments without a sentence")
    size = layout.size
    if size is None:
        size = len(rows[0])
        if size < layout.least:
            raise RecordError(f"{layout.least} columns or more expected, got {size}", first)
    for place, row in enumerate(rows, first):
        if len(row) != size:
            many = "1 column" if size == 1 else f"{size} columns"
            more = hint if layout.size is not None and len(row) > size else ""
            raise RecordError(f"{many} expected, got {len(row)}{more}", place)
        if "" in row:
            raise RecordError(f"column {row.index('') + 1} is empty", place)


def fill_columns(record: Record, layout: Layout, rows: Sequence[Sequence[str]]) -> None:
    """Put the columns into the record, each a list.

    Raises:
        RecordError: the record has such a field.
    """
    columns = list(zip(*rows, strict=True))
    for name, place in layout.taken:
        if name in record:
            raise RecordError(f"a comment and a column are both called {name!r}")
        record[name] = list(columns[place])


def get_columns(record: Record, names: Sequence[str]) -> dict[str, list[str]]:
    """The lists of a record that are columns.

    Raises:
        RecordError: one is missing or no list of strings, or they differ in length, or are empty.
    """
    columns = {name: get_tokens(record, name) for name in names}
    first, *others = names
    size = len(columns[first])
    for name in others:
        if len(columns[name]) != size:
            raise RecordError(f'"{name}" has length {len(columns[name])}, but "{first}" {size}')
    if not size:
        raise RecordError(f'"{first}" is empty, and a sentence needs a line')
    return columns


def check_values(values: Sequence[str], name: str, separator: str) -> None:
    """See that a column can hold these.

    Raises:
        RecordError: one is empty, or has a separator or a line end in it.
    """
    bad = (separator, "\n", "\t") if separator == " " else (separator, "\n")
    for value in values:
        if not value:
            raise RecordError(f'"{name}" has an empty string, a column cannot hold it')
        if any(one in value for one in bad) or value.endswith("\r"):
            raise RecordError(f'"{name}" has {value!r}, a column cannot hold it')
