import subprocess
import sys

import pytest

from seqtools import artifact
from seqtools.artifact import Artifact
from seqtools.errors import ConfigError, FormatError
from seqtools.models.description import describe
from seqtools.models.store import SavedModel, build_model, load_model, model_config, save_model
from seqtools.text.vocab import Vocabulary


@pytest.fixture
def path(tmp_path):
    vocabularies = {"tokens": Vocabulary.build({"a": 2, "𠮷": 1})}
    model = build_model("gru", "lm", {"hidden": 3}, vocabularies)
    batching = {"sampling": "records"}
    saved = SavedModel(model, "gru", "lm", model_config(model), vocabularies, batching, {"n": 1})
    save_model(str(tmp_path / "model"), saved)
    return str(tmp_path / "model")


def test_says_the_same_as_the_whole_model(path):
    found, whole = describe(path), load_model(path)
    for name in ("architecture", "task", "config", "vocabularies", "batching", "training"):
        assert getattr(found, name) == getattr(whole, name)
    assert found.vocabularies["tokens"].counts == [0, 0, 0, 0, 2, 1]


def test_needs_no_torch(path):
    code = f"""
import sys
from seqtools.models.description import describe
assert describe({path!r}).task == "lm"
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_no_model_is_refused(tmp_path):
    path = tmp_path / "other"
    with pytest.raises(ConfigError, match="No such file"):
        describe(str(path))
    path.write_bytes(artifact.pack("vectors", Artifact(1, {})))
    with pytest.raises(FormatError, match="is a seqtools vectors file, not a model"):
        describe(str(path))
    path.write_bytes(artifact.pack("model", Artifact(1, {"task": "lm"})))
    with pytest.raises(FormatError, match="damaged"):
        describe(str(path))
    head = {"architecture": "gru", "task": "lm", "config": {}, "batching": {}, "training": {}}
    path.write_bytes(artifact.pack("model", Artifact(1, head | {"specials": {"tokens": {}}})))
    with pytest.raises(FormatError, match="damaged"):
        describe(str(path))
