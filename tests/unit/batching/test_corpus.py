import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtools.batching.corpus import Column, Names, Options, Sequences
from seqtools.errors import ConfigError, RecordError
from seqtools.text.vocab import Vocabulary


@given(st.lists(st.lists(st.integers(0, 2**31 - 1))))
def test_sequences_stand_back_to_back(lists):
    sequences = Sequences()
    for ids in lists:
        sequences.append(ids)
    sequences.freeze()
    assert sequences.flat.dtype == np.int32  # 4 bytes an id
    found = zip(sequences.starts.tolist(), sequences.lengths.tolist(), strict=True)
    assert [sequences.flat[s : s + n].tolist() for s, n in found] == lists


@given(st.lists(st.text() | st.integers()), st.data())
def test_names_come_back_as_they_were(added, data):
    names = Names()
    for name in added:
        names.append(name)
    places = data.draw(st.lists(st.sampled_from(range(len(added))))) if added else []
    assert names.take(np.array(places, np.int64)) == [added[place] for place in places]


def test_a_column_counts_what_is_unknown_and_what_is_reserved():
    vocabulary = Vocabulary.build({"a": 1})
    column = Column("tokens", vocabulary, bos=[], eos=[])
    assert column.unknown_share == 0
    for tokens in (["a", "b", "<s>"], ["a", "</s>", "<unk>"], []):
        column.count(tokens, vocabulary.encode(tokens))
    assert (column.tokens, column.unknown, column.reserved) == (6, 4, 3)
    assert column.unknown_share == pytest.approx(4 / 6)


def test_a_column_of_ids_knows_its_vocabulary():
    column = Column("ids", Vocabulary.build({"a": 1}), bos=[], eos=[])
    assert column.read({"ids": [4, 1]}, ids=True) == [4, 1]
    column.count([4, 1], [4, 1])
    assert (column.tokens, column.unknown, column.reserved) == (2, 1, 0)
    with pytest.raises(RecordError, match='"ids" has id 5, but the vocabulary has 5 entries'):
        column.read({"ids": [5]}, ids=True)


def test_an_unknown_way_to_truncate_is_refused():
    with pytest.raises(ConfigError, match="unknown way to truncate 'rihgt': did you mean right"):
        Options(truncate="rihgt")
