import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seqtools.text.normalize import FORMS, Normalizer

# Letters that grow in lower case, marks that reorder, Hangul that composes, forms that fold.
TRICKY = st.text(
    st.sampled_from("aéÅİΣσß e\u0301\u0323\u0307ﬁＡ①㌀\u1100\u1161\u11a8각\u09c7\u09be한ｶﾞ")
)


@pytest.mark.parametrize(
    ("form", "lowercase", "text", "result"),
    [
        ("none", False, "Ａﬁ e\u0301", "Ａﬁ e\u0301"),
        ("nfc", False, "Ａﬁ e\u0301", "Ａﬁ é"),
        ("nfkc", False, "Ａﬁ e\u0301", "Afi é"),
        ("none", True, "ΟΔΟΣ İ", "οδος i̇"),
        ("nfkc", True, "ＡE\u0301", "aé"),
    ],
)
def test_forms(form, lowercase, text, result) -> None:
    assert Normalizer(form, lowercase)(text) == result


def test_changes_says_whether_there_is_anything_to_do() -> None:
    assert not Normalizer().changes
    assert Normalizer("nfc").changes
    assert Normalizer(lowercase=True).changes


@pytest.mark.parametrize(
    ("normalizer", "text", "found", "source"),
    [
        (Normalizer("nfc"), "le cafe\u0301 noir", "café", "cafe\u0301"),
        (Normalizer("nfkc"), "der ﬁnale Ton", "finale", "ﬁnale"),
        (Normalizer("nfkc"), "Ｕ＄５", "U", "Ｕ"),
        (Normalizer(lowercase=True), "in İzmir da", "i̇zmir", "İzmir"),
        (Normalizer("nfkc"), "ｶﾞﾗｽ", "ガ", "ｶﾞ"),
    ],
)
def test_trace_leads_back(normalizer, text, found, source) -> None:
    start = normalizer(text).index(found)
    ((first, last),) = normalizer.trace(text, [(start, start + len(found))])
    assert text[first:last] == source


@example("a\uff9e\u0301", "nfkc", False)
@given(TRICKY, st.sampled_from(FORMS), st.booleans())
def test_traces_cover_what_they_stand_for(text: str, form: str, lowercase: bool) -> None:
    normalizer = Normalizer(form, lowercase)
    normal = normalizer(text)
    spans = normalizer.trace(text, [(place, place + 1) for place in range(len(normal))])
    assert len(spans) == len(normal)
    for char, (start, end) in zip(normal, spans, strict=True):
        assert 0 <= start < end <= len(text)
        assert char in Normalizer(form, lowercase)(text[start:end]) or char in "ςσ"
    assert [start for start, _ in spans] == sorted(start for start, _ in spans)
    assert spans == [] or (spans[0][0], spans[-1][1]) == (0, len(text))


@given(TRICKY, st.characters(max_codepoint=0x2FF))
def test_what_comes_before_the_marks_never_joins(before: str, char: str) -> None:
    for form in ("NFC", "NFKC"):
        parts = unicodedata.normalize(form, before) + unicodedata.normalize(form, char)
        assert unicodedata.normalize(form, before + char) == parts


@given(st.text())
def test_the_form_is_the_one_of_the_standard(text: str) -> None:
    assert Normalizer("nfkc")(text) == unicodedata.normalize("NFKC", text)
