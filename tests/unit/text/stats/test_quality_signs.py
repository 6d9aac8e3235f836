"""Texts with one fault each, made by hand or by the very mistake."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.text.stats.quality_signs import SIGNS, find_signs


def signs(text):
    return {name: text[start:end] for name, start, end in find_signs(text)}


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("", "empty", ""),
        (" \u3000\n", "empty", " \u3000\n"),
        ("a\x00b", "control", "\x00"),
        ("a\x7f\x07b", "control", "\x7f"),
        ("a\x85b", "control", "\x85"),
        ("caf\ufffd noir", "replacement", "\ufffd"),
        ("a\ue000b", "unassigned", "\ue000"),
        ("a\ufdd0b", "unassigned", "\ufdd0"),
        ("a\u200bb", "invisible", "\u200b"),
        ("\ufeffab", "invisible", "\ufeff"),
        ("ab\u202ecd\u202c", "invisible", "\u202e"),
        ("so\u00adft", "invisible", "\u00ad"),
        ("a\u200db", "invisible", "\u200d"),
        ("\u200ca", "invisible", "\u200c"),
        ("x\U000e0067\U000e007f", "invisible", "\U000e0067"),
        ("a pаypal bill", "mixed-script", "pаypal"),
        ("мocква", "mixed-script", "мocква"),
        ("гаλа", "mixed-script", "гаλа"),
        ("ΑTM here", "mixed-script", "ΑTM"),
        ("Αθήνa", "mixed-script", "Αθήνa"),
        (" a", "space", " "),
        ("a ", "space", " "),
        ("a\u3000 b", "space", "\u3000 "),
        ("a\tb", "space", "\t"),
        ("a\nb", "space", "\n"),
        ("a\u2028b", "space", "\u2028"),
        ("锟斤拷", "mojibake", "锟斤拷"),
    ],
)
def test_one_fault(text, name, found):
    assert signs(text) == {name: found}


@pytest.mark.parametrize("text", ["café", "naïve — “Größe”", "пример", "中文", "δοκιμή", "…", "😀"])
@pytest.mark.parametrize("wrong", ["cp1252", "latin-1"])
def test_utf8_read_as_something_else(text, wrong):
    try:
        read = text.encode().decode(wrong)
    except UnicodeDecodeError:  # five bytes that Windows-1252 has not
        pytest.skip("this could not have happened")
    assert "mojibake" in signs(read)
    assert "mojibake" not in signs(text)


GOOD = [
    "Its price is 5 €.",
    "„Größe“ — 20 °C, ½ ‰, naïve, à « bientôt »",
    "au café…” dit-il",
    "NÃO, IRMÃ” e ÂNGELA",
    "5 kΩ, 3 μm, TNFα, IFNγ, NFκB, 2πr, hν, β-carotene, ΔT",
    "Привет, world! IT-отдел, iPhone'ом",
    "用α和β表示，俄语Привет和English都有",
    "👨\u200d👩\u200d👧 and ❤\ufe0f\u200d🔥",
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "می\u200cخواهم क्\u200dष",
    "１２３　ＡＢＣ",
    "a\u00a0b",
    "𠮷野家",
    "\u0600١٢٣",
]


@pytest.mark.parametrize("text", GOOD)
def test_good_text_has_none(text):
    assert signs(text) == {}


def test_the_first_of_each_is_found():
    assert find_signs("ok\ue000\x01\ue001\x02  é\ufffd\ufffd") == [
        ("control", 3, 4),
        ("replacement", 9, 10),
        ("unassigned", 2, 3),
        ("space", 6, 8),
    ]


@given(st.text(st.characters(codec="utf-8")))
def test_places_are_within_the_text_and_names_once(text):
    found = find_signs(text)
    names = [name for name, _, _ in found]
    assert names == [name for name in SIGNS if name in names]
    assert all(0 <= start < end <= len(text) or name == "empty" for name, start, end in found)
