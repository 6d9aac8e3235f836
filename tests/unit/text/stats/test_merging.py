"""Statistics of pieces, through JSON, are those of the whole."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.text.stats.labels import Labels
from seqtools.text.stats.lengths import Lengths
from seqtools.text.stats.tokens import Tokens

words = st.lists(st.sampled_from(["a", "b", "é", "中", "𠮷", ""]), max_size=6)
corpora = st.lists(words, max_size=12)

MAKE = {
    "lengths": lambda: Lengths(["text", "tokens"], limits=[2], bins=3),
    "tokens": lambda: Tokens(["tokens", "labels"]),
    "labels": lambda: Labels(["labels", "tags"], entities=True),
}


def records(corpus):
    for tokens in corpus:
        tags = [f"{'BIES'[len(token) % 4]}-{token or 'x'}" for token in tokens]
        yield {"text": "".join(tokens), "tokens": tokens, "labels": tags, "tags": tags}


def gather(make, corpus):
    statistic = make()
    for number, record in enumerate(records(corpus), 1):
        statistic.add(record, number)
    return statistic


@pytest.mark.parametrize("kind", MAKE)
@given(pieces=st.lists(corpora, max_size=4))
def test_pieces_in_order_merge_to_the_whole(kind, pieces):
    make = MAKE[kind]
    merged = make()
    for piece in pieces:
        for part in gather(make, piece).dump():
            merged.merge(json.loads(json.dumps(part)))
    whole = gather(make, [tokens for piece in pieces for tokens in piece])
    assert [*merged.report()] == [*whole.report()]
    assert merged.kind == kind
    assert merged.options == whole.options
    # What was merged can be merged again.
    again = make()
    for part in merged.dump():
        again.merge(json.loads(json.dumps(part)))
    assert [*again.report()] == [*whole.report()]


def test_more_types_than_one_record_of_the_state_holds():
    corpus = [[f"w{number}" for number in range(2500)], ["w1", "x"]]
    whole = gather(lambda: Tokens(["tokens"]), corpus)
    parts = [*whole.dump()]
    assert [len(part["types"]) for part in parts if "types" in part] == [1000, 1000, 501]
    merged = Tokens(["tokens"])
    for part in parts:
        merged.merge(json.loads(json.dumps(part)))
    assert [*merged.report()] == [*whole.report()]
