"""References in a second file, by order and by key."""

import pathlib

import pytest

from seqtools.errors import InputError, RecordError
from seqtools.evaluation.pairs import ByKey, InOrder, get_key, get_string
from seqtools.streams.files import Place
from seqtools.streams.records import Record
from seqtools.text.convert import read_text


def place(number: int) -> Place:
    return Place("hyp", number + 10, number)


def text_of(record: Record) -> list[str]:
    return [get_string(record, "t")]


def keyed(record: Record) -> tuple[str | int, list[str]]:
    return get_key(record, "id"), text_of(record)


def file(tmp_path: pathlib.Path, text: str) -> str:
    path = tmp_path / "ref"
    path.write_text(text)
    return str(path)


def test_a_string_or_tokens() -> None:
    assert get_string({"t": "a  b"}, "t") == "a  b"
    assert get_string({"t": ["a", "b"]}, "t") == "a b"
    assert get_string({"t": []}, "t") == ""
    with pytest.raises(RecordError, match='"t" must be a string or a list of tokens, got number'):
        get_string({"t": 1}, "t")
    with pytest.raises(RecordError, match='"t" is missing'):
        get_string({}, "t")


def test_keys() -> None:
    assert get_key({"id": 10**30}, "id") == 10**30
    for bad in (True, 1.5, None, ["a"]):
        with pytest.raises(RecordError, match='"id" must be a string or a whole number'):
            get_key({"id": bad}, "id")


def test_in_order(tmp_path: pathlib.Path) -> None:
    references = InOrder(file(tmp_path, '{"t":"a"}\n\n{"t":"b"}\n{"t":"c"}'), text_of)
    assert references.find(place(1)) == ["a"]
    # the second hypothesis was rejected
    assert references.find(place(3)) == ["c"]
    references.finish(3)


def test_in_order_too_few(tmp_path: pathlib.Path) -> None:
    path = file(tmp_path, '{"t":"a"}\n')
    references = InOrder(path, text_of)
    references.find(place(1))
    with pytest.raises(InputError, match=f"hyp:12: no reference: {path} ends before it"):
        references.find(place(2))


def test_in_order_too_many(tmp_path: pathlib.Path) -> None:
    path = file(tmp_path, "a\n\n\n")
    references = InOrder(
        path, lambda record: [get_string(record, "text")], parse=read_text, keep_blank=True
    )
    assert references.find(place(1)) == ["a"]
    assert references.find(place(2)) == [""]
    with pytest.raises(InputError, match=f"{path}:3: no hypothesis: there are only 2"):
        references.finish(2)


def test_a_bad_reference(tmp_path: pathlib.Path) -> None:
    path = file(tmp_path, '\n{"t":5}\n')
    with pytest.raises(InputError, match=f'{path}:2: "t" must be a string or a list of tokens'):
        InOrder(path, text_of).find(place(1))


def test_by_key(tmp_path: pathlib.Path) -> None:
    path = file(tmp_path, '{"id":1,"t":"one"}\n{"id":"1","t":"uno"}\n{"id":2,"t":"two"}\n')
    references = ByKey(path, "id", keyed)
    assert references.find(place(1), "1") == ["uno"]
    assert references.find(place(2), 1) == ["one"]
    with pytest.raises(InputError, match=f'{path}:3: no hypothesis among 2 has "id" 2'):
        references.finish(2)
    with pytest.raises(InputError, match=f'hyp:13: no reference: "id" 3 is not in {path}'):
        references.find(place(3), 3)
    references.find(place(4), 2)
    references.finish(3)


def test_a_key_twice(tmp_path: pathlib.Path) -> None:
    path = file(tmp_path, '{"id":"a","t":"x"}\n{"id":"a","t":"y"}\n')
    with pytest.raises(InputError, match=f"{path}:2: \"id\" 'a' stands in line 1 as well"):
        ByKey(path, "id", keyed)
    references = ByKey(file(tmp_path, '{"id":"a","t":"x"}\n'), "id", keyed)
    references.find(place(1), "a")
    with pytest.raises(InputError, match="hyp:12: \"id\" 'a' stands in line 11 as well"):
        references.find(place(2), "a")
