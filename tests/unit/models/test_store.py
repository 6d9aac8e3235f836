import pytest
import torch

from seqtools.errors import ConfigError, FormatError
from seqtools.models import architectures
from seqtools.models.protocols import TensorBatch
from seqtools.models.store import (
    SavedModel,
    build_model,
    load_model,
    model_config,
    save_model,
    summary,
)
from seqtools.text.vocab import Vocabulary


def _vocabulary(*tokens):
    return Vocabulary.build({token: 10 - i for i, token in enumerate(tokens)})


def _saved(task="lm", **config):
    names = ("tokens",) if task == "lm" else ("source", "target")
    vocabularies = {name: _vocabulary("a", "𠮷", "\u2028", name) for name in names}
    model = build_model("gru", task, {"hidden": 4, **config}, vocabularies, seed=1)
    return SavedModel(
        model, "gru", task, model_config(model), vocabularies, {"steps": 3}, {"targets": 7}
    )


@pytest.mark.parametrize("task", ["lm", "seq2seq"])
@pytest.mark.parametrize("tied", [False, True])
def test_round_trip(tmp_path, task, tied):
    path = str(tmp_path / "model.safetensors")
    saved = _saved(task, tied=tied)
    save_model(path, saved)
    loaded = load_model(path)
    for name in ("architecture", "task", "config", "vocabularies", "batching", "training"):
        assert getattr(loaded, name) == getattr(saved, name)
    assert loaded.vocabularies.popitem()[1].counts == saved.vocabularies.popitem()[1].counts
    ids = torch.tensor([[2, 4, 5]])
    source = None if task == "lm" else (ids, torch.tensor([3]))
    batch = TensorBatch(ids, ids, torch.tensor([3]), *(source or ()))
    saved.model.eval()
    assert torch.equal(loaded.model.token_logprobs(batch), saved.model.token_logprobs(batch))
    assert not loaded.model.training
    again = str(tmp_path / "again.safetensors")
    loaded = load_model(path)
    save_model(again, loaded)
    with open(path, "rb") as one, open(again, "rb") as other:
        assert one.read() == other.read()


def test_building_leaves_torchs_seed_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one, other = _saved().model, _saved().model
    assert torch.equal(before, torch.get_rng_state())
    assert all(map(torch.equal, one.parameters(), other.parameters()))


def test_options_that_are_none_take_their_defaults():
    vocabularies = {"tokens": _vocabulary("a")}
    model = build_model("lstm", "lm", {"hidden": 8, "embedding": None}, vocabularies)
    assert model_config(model) | {"embedding": 8, "layers": 1} == model_config(model)
    with pytest.raises(ConfigError, match="lstm for lm has no option 'wiring'"):
        build_model("lstm", "lm", {"wiring": "luong"}, vocabularies)


def test_models_that_do_not_exist():
    assert architectures("lm") == ["rnn", "lstm", "gru", "transformer"]
    assert architectures("mlm") == ["transformer"]
    assert architectures("nothing") == []
    with pytest.raises(
        ConfigError, match="crf does not serve lm: choose from rnn, lstm, gru, transformer"
    ):
        build_model("crf", "lm", {}, {})
    with pytest.raises(
        ConfigError, match="no model serves the task 'tag'; there are models for lm"
    ):
        build_model("gru", "tag", {}, {})


def test_summary_counts_shared_weights_once():
    rows = summary(_saved(tied=True, embedding=4).model)
    assert ("embedding.weight", (8, 4), 32) in rows
    assert ("output.bias", (8,), 8) in rows
    assert not any(name == "output.weight" for name, _, _ in rows)


def _damaged(path, tmp_path, change):
    from seqtools import artifact

    found = artifact.load(path, "model", newest=1)
    change(found)
    bad = str(tmp_path / "bad.safetensors")
    with open(bad, "wb") as handle:
        handle.write(artifact.pack("model", found))
    return bad


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.arrays.pop("weight.output.bias"), "weight output.bias is missing"),
        (lambda f: f.arrays.update({"weight.x": f.arrays["weight.output.bias"]}), "x belongs to"),
        (lambda f: f.metadata.pop("config"), "cannot be made"),
        (lambda f: f.metadata.update(architecture="crf"), "crf does not serve lm"),
        (lambda f: f.metadata["config"].update(hidden=5), "weight"),
        (lambda f: f.metadata["config"].update(hidden="x"), "hidden must be at least 1"),
        (lambda f: f.metadata.update(specials=3), "cannot be made"),
        (lambda f: f.strings["vocabulary.tokens"].append("a"), "damaged"),
    ],
)
def test_damaged_files(tmp_path, change, message):
    path = str(tmp_path / "model.safetensors")
    save_model(path, _saved())
    bad = _damaged(path, tmp_path, change)
    with pytest.raises(FormatError, match=message) as caught:
        load_model(bad)
    assert str(caught.value).startswith(bad)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"text\n", b"PK\x03\x04 a zip", b"\x80\x02}q\x00."])
def test_other_files(tmp_path, content):
    path = tmp_path / "model.pt"
    path.write_bytes(content)
    with pytest.raises(FormatError, match="not a seqtools model file"):
        load_model(str(path))
    with pytest.raises(ConfigError):
        load_model(str(tmp_path / "absent"))
