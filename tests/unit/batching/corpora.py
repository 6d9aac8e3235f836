"""What the tests of keyed corpora have in common: drawn ways to cut, and how one is filled."""

from hypothesis import strategies as st

from seqtools.batching.corpus import Options

CUTS = st.builds(
    Options,
    batch_size=st.none() | st.integers(1, 5),
    shuffle=st.booleans(),
    pad_left=st.booleans(),
    pad_to=st.integers(0, 8),
    seed=st.integers(0, 9),
)


def filled(corpus, records, names=None):
    """Put records into a corpus, with an id each where there are `names`, and end reading."""
    for number, record in enumerate(records, start=1):
        if names is not None:
            record["id"] = names[number - 1]
        encoded = corpus.encode(record)
        if encoded is not None:
            corpus.append(encoded, number)
    corpus.freeze()
    return corpus
