"""Signs in a text that something went wrong on its way, each with where it stands."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

# What is looked for in a text, in the order of the report.
SIGNS = {
    "empty": "nothing, or white space alone",
    "control": "control characters, but for tab and line end (category Cc)",
    "replacement": "U+FFFD, where a decoder had given up",
    "mojibake": "UTF-8 that was read as Windows-1252 or Latin-1, and 锟斤拷, as GBK",
    "unassigned": "private use, or no character at all (Co, Cn)",
    "invisible": "zero width, directions and other format characters (Cf)",
    "mixed-script": "a word with Latin and Cyrillic, or Greek in disguise",
    "space": "white space at an end or twice in a row, tabs, line ends",
}

Sign = tuple[str, int, int]  # its name, start and end

_SPACE = re.compile(r"^\s|\s\Z|\s\s|[\t\n\r\u2028\u2029]")

# The bytes 0x80 to 0xBF as Windows-1252 shows them, and Latin-1 where that has none.
_TYPOGRAPHIC = "‘’“”…–—«»"  # in good texts they follow letters such as é, à, Ã, too
_OTHER = "\x80-\xaa\xac-\xba\xbc-\xbf€‚ƒ„†‡ˆ‰Š‹ŒŽ•˜™š›œžŸ"
_TAIL = _OTHER + _TYPOGRAPHIC
_MOJIBAKE = re.compile(
    f"Ã[{_OTHER}]|Â[{_OTHER}«»]"  # of Latin-1's upper half, the commonest by far
    f"|(?:[\xc2-\xdf][{_TAIL}]){{2,}}"  # of other alphabets, where one alone may be chance
    f"|[\xe0-\xef](?:[{_OTHER}][{_TAIL}]|[{_TAIL}][{_OTHER}])"
    f"|[\xf0-\xf4][{_TAIL}]{{3}}"
    "|锟斤拷"
)

# Letters of three scripts (Unicode's Scripts.txt), full width among the Latin ones.
_LATIN = "A-Za-z\xc0-\xd6\xd8-\xf6\xf8-\u02af\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a"
_GREEK = "\u0370-\u0373\u0376-\u037d\u0386-\u03ff\u1f00-\u1fff"
_CYRILLIC = "\u0400-\u052f\u1c80-\u1c8f\ua640-\ua69f"
_WORD = re.compile(f"[{_LATIN}{_GREEK}{_CYRILLIC}][{_LATIN}{_GREEK}{_CYRILLIC}\u0300-\u036f]+")
_HAS_LATIN, _HAS_GREEK, _HAS_CYRILLIC = (
    re.compile(f"[{letters}]") for letters in (_LATIN, _GREEK, _CYRILLIC)
)
_HAS_OTHER = re.compile(f"[{_GREEK}{_CYRILLIC}]")
# Greek letters that look like Latin ones; a lone other, as in kΩ or TNFα, is a symbol.
_DISGUISED = re.compile("[ΑΒΕΖΗΙΚΜΝΟΡΤΥΧο]")

# U+200C and U+200D belong to some scripts and to emoji; a flag may end in tags.
_JOINERS = "\u200c\u200d"
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f")
# Signs of Arabic and Syriac numbers and a Kaithi one: of category Cf, but seen.
_SEEN = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")  # fmt: skip # noqa: E501


def find_signs(text: str) -> list[Sign]:
    """The first of each sign in a text, in the order of `SIGNS`."""
    if not text or text.isspace():
        return [("empty", 0, len(text))]
    found: list[Sign] = []
    if not text.isprintable():
        found += _find_characters(text)
    if not text.isascii():
        found += _find_in_letters(text)
    if space := _SPACE.search(text):
        found.append(("space", *space.span()))
    if len(found) > 1:
        order = list(SIGNS)
        found.sort(key=lambda sign: order.index(sign[0]))
    return found


def _find_characters(text: str) -> Iterator[Sign]:
    """Characters that are wrong whatever stands beside them, or, of joiners, before them."""
    first: dict[str, int] = {}
    kinds = {char: kind for char in set(text) if (kind := _kind(char))}
    for char, kind in kinds.items():
        start = _find_joiner(text, char) if kind == "joiner" else text.find(char)
        if start >= 0:
            name = "invisible" if kind in ("joiner", "tag") else kind
            if kind == "tag":
                hidden = _FLAG.sub(lambda flag: "x" * len(flag[0]), text)
                start = hidden.find(char)
                if start < 0:
                    continue
            first[name] = min(start, first.get(name, start))
    for name, start in first.items():
        yield name, start, start + 1


def _find_joiner(text: str, char: str) -> int:
    """The first joiner that does not follow a script that has it, or an emoji; or -1."""
    for found in re.finditer(char, text):
        before = text[found.start() - 1] if found.start() else ""
        if not _joins(before):
            return found.start()
    return -1


@lru_cache(4096)
def _joins(before: str) -> bool:
    """Whether a joiner may follow: Arabic and all of India, and emoji with what modifies them."""
    return (
        "\u0590" <= before < "\u1e00"
        or "\ua800" <= before < "\uac00"
        or before == "\ufe0f"
        or (before > "\u2000" and unicodedata.category(before) in ("So", "Sk"))
    )


@lru_cache(1 << 16)
def _kind(char: str) -> str | None:
    """The sign that a character is, wherever it stands."""
    if char in "\t\n\r" or char in _SEEN:
        return None
    if char in _JOINERS:
        return "joiner"
    if "\U000e0020" <= char <= "\U000e007f":
        return "tag"
    category = unicodedata.category(char)
    if category == "Cc":
        return "control"
    if category == "Cf":
        return "invisible"
    return "unassigned" if category in ("Co", "Cn") else None


def _find_in_letters(text: str) -> Iterator[Sign]:
    if (start := text.find("\ufffd")) >= 0:
        yield "replacement", start, start + 1
    if mojibake := _MOJIBAKE.search(text):
        yield "mojibake", *mojibake.span()
    if _HAS_OTHER.search(text):
        for word in _WORD.finditer(text):
            if _is_mixed(word[0]):
                yield "mixed-script", *word.span()
                return


def _is_mixed(word: str) -> bool:
    latin, greek = _HAS_LATIN.search(word), _HAS_GREEK.findall(word)
    if _HAS_CYRILLIC.search(word):
        return bool(latin or greek)
    return bool(latin and greek and (len(greek) > 1 or _DISGUISED.search(word)))
