import pickle

import pytest

from seqtools.errors import ConfigError, FormatError, InputError, RecordError, SeqtoolsError


def test_an_input_error_has_its_place_in_its_text():
    error = InputError("corpus.jsonl", 17, '"text" is missing')
    assert str(error) == 'corpus.jsonl:17: "text" is missing'
    assert (error.source, error.line, error.reason) == ("corpus.jsonl", 17, '"text" is missing')


@pytest.mark.parametrize(
    "error", [InputError("f", 3, "why"), RecordError("r"), FormatError("f"), ConfigError("c")]
)
def test_errors_go_from_process_to_process(error):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
    assert isinstance(again, SeqtoolsError)
