"""Labelled lines of fastText, `__label__X text`, to records and back.

As in fastText's `Dictionary::getLine`, words stand between ASCII white space, and each word that
begins with the prefix is a label, wherever it stands.
"""

from __future__ import annotations

import re

from seqtools.errors import ConfigError, RecordError
from seqtools.streams.encodings import UTF_8, Encoding
from seqtools.streams.records import Record, get_text, get_tokens
from seqtools.text.convert.lines import check_end

PREFIX = "__label__"
_SPACE = " \t\v\f\r\n\0"


class Labelled:
    """What labels look like, and which fields they and the text become.

    Args:
        prefix: what labels begin with.
        multi: each record has a list of labels, which may be empty; otherwise one label.
        field: of the text.
        label_field: of the label or the labels.
        encoding: of the lines.

    Raises:
        ConfigError: the prefix is empty or has white space in it, or both fields have one name.
    """

    def __init__(
        self,
        prefix: str = PREFIX,
        *,
        multi: bool = False,
        field: str = "text",
        label_field: str = "label",
        encoding: Encoding = UTF_8,
    ) -> None:
        if not prefix or not {*_SPACE}.isdisjoint(prefix):
            raise ConfigError(f"labels cannot begin with {prefix!r}")
        if field == label_field:
            raise ConfigError(f"label and text cannot both be {field!r}")
        self._prefix = prefix
        self._multi = multi
        self._field = field
        self._label_field = label_field
        self._encoding = encoding
        # Each label with the white space after it.
        self._label = re.compile(
            rf"(?:(?<=[{_SPACE}])|\A){re.escape(prefix)}([^{_SPACE}]*)(?:[{_SPACE}]|\Z)"
        )

    def read(self, line: bytes) -> Record:
        """`__label__X a b` to `{"label": "X", "text": "a b"}`.

        With each label goes the character of white space after it, or before it where it ends the
        line; the text is all the rest.

        Raises:
            RecordError: not in the encoding; no label, or several, where one is wanted; a label
                that is nothing but the prefix.
        """
        text = self._encoding.decode(line)
        labels = self._label.findall(text)
        if "" in labels:
            raise RecordError(f"a label is nothing but {self._prefix}")
        if self._multi:
            label: list[str] | str = labels
        elif len(labels) == 1:
            label = labels[0]
        else:
            how_many = "no label" if not labels else f"{len(labels)} labels"
            raise RecordError(f"one label expected, got {how_many}")
        rest = self._label.sub("", text)
        if labels and rest[-1:] in {*_SPACE} and text.endswith(self._prefix + labels[-1]):
            rest = rest[:-1]
        return {self._label_field: label, self._field: rest}

    def write(self, record: Record) -> str:
        """`{"label": "X", "text": "a b"}` to `__label__X a b`.

        Raises:
            RecordError: a field is missing or of another type, a label is empty or has white space
                in it, or the text has a line end or a word that would be a label.
        """
        if self._multi:
            labels = get_tokens(record, self._label_field)
        else:
            labels = [get_text(record, self._label_field)]
        for label in labels:
            if not label or not {*_SPACE}.isdisjoint(label):
                what = "has white space" if label else "is empty"
                raise RecordError(f'a label of "{self._label_field}" {what}: {label!r}')
        text = get_text(record, self._field)
        if "\n" in text:
            raise RecordError(f'"{self._field}" has a newline, a line cannot hold it')
        if self._label.search(text):
            raise RecordError(
                f'"{self._field}" has a word that begins with {self._prefix} as labels do'
            )
        words = [self._prefix + label for label in labels]
        line = " ".join([*words, text] if text else words)
        if not line.strip(" \t\r"):
            raise RecordError("neither label nor text, and an empty line is no record")
        return check_end(line, self._field)
