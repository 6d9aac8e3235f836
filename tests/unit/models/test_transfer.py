import pytest
import torch

from seqtools.errors import ConfigError
from seqtools.models import architectures
from seqtools.models.store import SavedModel, build_model, model_config
from seqtools.models.transfer import TOKEN_TABLES, difference, freeze, transfer
from seqtools.text.vocab import Vocabulary

TASKS = ("lm", "seq2seq", "mlm")
SIZES = {"hidden": 8, "layers": 2}


def vocabulary(letters):
    return Vocabulary.build({letter: 99 - i for i, letter in enumerate(letters)})


def vocabularies(task, letters="abcdefghi", target_letters="rstuvwxyzab"):
    if task == "seq2seq":
        return {"source": vocabulary(letters), "target": vocabulary(target_letters)}
    return {"tokens": vocabulary(letters)}


def make(architecture, task, *, seed, words=None, **options):
    words = words or vocabularies(task)
    heads = {"heads": 2} if architecture == "transformer" else {}
    model = build_model(architecture, task, {**SIZES, **heads, **options}, words, seed=seed)
    with torch.no_grad():  # biases begin at 0 in any model
        for parameter in model.parameters():
            parameter += seed
    return SavedModel(model, architecture, task, model_config(model), words)


def parameters(saved):
    return dict(saved.model.named_parameters())


EVERY = [(architecture, task) for task in TASKS for architecture in architectures(task)]


@pytest.mark.parametrize(("architecture", "task"), EVERY)
def test_a_model_of_the_same_kind_is_taken_whole(architecture, task):
    old, new = make(architecture, task, seed=1), make(architecture, task, seed=2)
    found = transfer(new.model, new.vocabularies, old)
    assert found.taken == list(parameters(new))
    assert (found.rows, found.new, found.unused, found.share) == ({}, [], [], 1.0)
    for name, parameter in parameters(new).items():
        assert torch.equal(parameter, parameters(old)[name])


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("architecture", "task"), EVERY)
def test_tables_by_token_are_all_that_a_vocabulary_makes_longer(architecture, task, tied):
    """Of two models over vocabularies of other sizes, just these parameters differ in shape."""
    one = make(architecture, task, seed=1, tied=tied)
    longer = vocabularies(task, "abcdefghijklm", "abcdefghijklmnopqrs")
    other = parameters(make(architecture, task, seed=1, tied=tied, words=longer))
    differ = {n for n, p in parameters(one).items() if p.shape != other[n].shape}
    assert differ == TOKEN_TABLES.keys() & set(other)


def test_rows_go_by_their_tokens():
    old = make("gru", "lm", seed=1, words={"tokens": vocabulary("abcd")})
    new = make("gru", "lm", seed=2, words={"tokens": vocabulary("xdab")})
    before = {name: p.detach().clone() for name, p in parameters(new).items()}
    found = transfer(new.model, new.vocabularies, old)
    tables = ["embedding.weight", "output.weight", "output.bias"]
    numbers = sum(p.numel() for p in parameters(new).values())
    assert found.share == 1 - (8 + 8 + 1) / numbers  # but for a row of each table
    assert found.rows == dict.fromkeys(tables, (4 + 3, 8))
    assert (found.new, found.unused) == ([], [])
    for name in tables:
        mine, theirs = parameters(new)[name], parameters(old)[name]
        assert torch.equal(mine[:4], theirs[:4])  # pad, unk, bos, eos
        assert torch.equal(mine[4], before[name][4])  # x
        assert torch.equal(mine[5:], theirs[[7, 4, 5]])  # d a b


def test_why_weights_do_not_fit():
    new = make("transformer", "lm", seed=2)
    assert difference(new.model, make("transformer", "lm", seed=1, max_positions=9)) is None
    words = {"tokens": vocabulary("ab")}
    assert difference(new.model, make("transformer", "lm", seed=1, words=words)) is None
    wider = make("transformer", "lm", seed=1, hidden=16, words=words)
    said = difference(new.model, wider)
    name = next(iter(parameters(new)))
    shapes = [" x ".join(map(str, parameters(saved)[name].shape)) for saved in (wider, new)]
    assert said == f"{name} is {shapes[0]} there and {shapes[1]} here"
    deeper = make("transformer", "lm", seed=1, feedforward=16)
    assert "feedforward" in (difference(new.model, deeper) or "")


def test_source_and_target_go_by_their_own_vocabularies():
    old = make("lstm", "seq2seq", seed=1, words=vocabularies("seq2seq", "ab", "xy"))
    new = make("lstm", "seq2seq", seed=2, words=vocabularies("seq2seq", "ba", "xa"))
    found = transfer(new.model, new.vocabularies, old)
    mine, theirs = parameters(new), parameters(old)
    source = mine["source_embedding.weight"]
    assert torch.equal(source[4:], theirs["source_embedding.weight"][[5, 4]])
    assert "source_embedding.weight" in found.taken
    assert found.rows["target_embedding.weight"] == (5, 6)  # "a" is known of the source alone


def test_a_shape_that_differs_is_new_and_the_other_unused():
    old = make("gru", "lm", seed=1)
    new = make("gru", "lm", seed=2, layers=3, hidden=8, embedding=6)
    found = transfer(new.model, new.vocabularies, old)
    assert "stack.forward_layers.1.weight_ih_l0" in found.taken
    assert {"embedding.weight", "stack.forward_layers.2.weight_ih_l0"} <= set(found.new)
    assert "embedding.weight" in found.unused
    assert sorted([*found.taken, *found.rows, *found.new]) == sorted(parameters(new))


def test_learned_positions_are_taken_as_far_as_both_reach():
    name = "decoder.embedded.positions.embedding.weight"
    for length in (5, 12):
        old = make("transformer", "lm", seed=1, max_positions=8)
        new = make("transformer", "lm", seed=2, max_positions=length)
        found = transfer(new.model, new.vocabularies, old)
        common = min(length, 8)
        assert torch.equal(parameters(new)[name][:common], parameters(old)[name][:common])
        if length > 8:
            assert found.rows == {name: (8, 12)}
        else:
            assert name in found.taken


def test_a_language_model_becomes_a_decoder():
    old = make("transformer", "lm", seed=1, position="rotary")
    words = {"source": vocabulary("xyz"), "target": old.vocabularies["tokens"]}
    new = make("transformer", "seq2seq", seed=2, position="rotary", words=words)
    found = transfer(new.model, new.vocabularies, old)
    assert set(found.taken) == set(parameters(old))
    assert found.unused == []
    assert all("cross" in n or n.startswith(("encoder.", "source.")) for n in found.new)


def test_a_tied_table_serves_as_an_output_layer_of_its_own():
    old = make("gru", "lm", seed=1, tied=True)
    new = make("gru", "lm", seed=2)
    found = transfer(new.model, new.vocabularies, old)
    assert torch.equal(parameters(new)["output.weight"], parameters(old)["embedding.weight"])
    assert (found.new, found.unused) == ([], [])


def test_nothing_in_common_is_refused():
    old = make("gru", "lm", seed=1, words={"tokens": vocabulary("ab")})
    new = make("gru", "lm", seed=2, hidden=12, words={"tokens": Vocabulary(["x", "y"], {})})
    with pytest.raises(ConfigError, match="no part of the trained model"):
        transfer(new.model, new.vocabularies, old)


def test_patterns_freeze_what_they_match():
    saved = make("transformer", "lm", seed=1, tied=True)
    frozen = freeze(saved.model, ["decoder.stack.layers.0.*", "*embedding.weight"])
    trained = [name for name, p in parameters(saved).items() if p.requires_grad]
    assert sorted(frozen + trained) == sorted(parameters(saved))
    assert "decoder.embedded.embedding.weight" in frozen
    assert all(not name.startswith("decoder.stack.layers.0.") for name in trained)
    assert any(name.startswith("decoder.stack.layers.1.") for name in trained)


def test_any_name_of_a_tied_parameter_freezes_it():
    saved = make("gru", "lm", seed=1, tied=True)
    assert freeze(saved.model, ["output.weight"]) == ["embedding.weight"]


def test_a_pattern_without_a_match_is_refused():
    saved = make("gru", "lm", seed=1)
    with pytest.raises(ConfigError, match=r"called 'encoder\.\*': there are embedding\.\*, "):
        freeze(saved.model, ["output.*", "encoder.*"])
    with pytest.raises(ConfigError, match="nothing is left to train"):
        freeze(saved.model, ["*"])
