"""Share of equal outputs."""

from seqtools.evaluation.exact import Exact


def score(pairs: list[tuple[str, list[str]]], *, lowercase: bool = False) -> dict[str, object]:
    exact = Exact(lowercase=lowercase)
    for hypothesis, references in pairs:
        exact.add(hypothesis, references)
    return exact.result()


def test_counts_equal_texts() -> None:
    pairs = [("a", ["a"]), ("a", ["b"]), ("", [""]), ("b", ["a", "b"])]
    assert score(pairs) == {"metric": "exact", "score": 0.75, "equal": 3, "records": 4}


def test_every_character_counts() -> None:
    assert score([("a ", ["a"]), ("A", ["a"]), ("é", ["e\u0301"])])["equal"] == 0


def test_without_case() -> None:
    found = score([("ÄB", ["äb"])], lowercase=True)
    assert found == {"metric": "exact", "score": 1.0, "lowercase": True, "equal": 1, "records": 1}
