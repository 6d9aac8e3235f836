import pytest

from seqtools.errors import RecordError
from seqtools.text.convert import read_text, write_text


@pytest.mark.parametrize("text", ["", " a\tb ", "a\rb", "a\u2028b\x85\x1c\x0b", "𠮷\x00"])
def test_text_there_and_back(text: str) -> None:
    assert read_text(text.encode(), "src") == {"src": text}
    assert write_text({"src": text}, "src") == text


def test_text_that_no_line_holds() -> None:
    with pytest.raises(RecordError, match='"text" has a newline'):
        write_text({"text": "a\nb"})
    with pytest.raises(RecordError, match='"text" must be a string, got number'):
        write_text({"text": 1})
    with pytest.raises(RecordError, match="ends with a return"):
        write_text({"text": "a\r"})
    assert write_text({"text": "a\rb"}) == "a\rb"
