import collections

import pytest

from seqtools.errors import ConfigError
from seqtools.lazy import load, lookup, unknown

TABLE = {"counter": "collections:Counter", "deque": "collections:deque"}


def test_an_object_by_its_name():
    assert load("collections:Counter") is collections.Counter
    assert lookup(TABLE, "deque", "container") is collections.deque


def test_an_unknown_name_is_answered_with_the_near_ones_or_all():
    with pytest.raises(ConfigError) as caught:
        lookup(TABLE, "counted", "container")
    assert str(caught.value) == "unknown container 'counted': did you mean counter?"
    assert unknown("xyz", TABLE, "container") == (
        "unknown container 'xyz': choose from counter, deque"
    )
    assert unknown("gr", ["gru", "gri"], "model").startswith("unknown model 'gr': did you mean gr")


def test_an_error_inside_a_module_is_not_taken_for_an_unknown_name():
    with pytest.raises(ModuleNotFoundError):
        load("seqtools.no_such_module:x")
    with pytest.raises(AttributeError):
        load("collections:NoSuchClass")
