import math
import re

import pytest
import torch

from seqtools.errors import ConfigError
from seqtools.models.protocols import TensorBatch
from seqtools.models.transformer_lm import TransformerLm, TransformerLmConfig
from seqtools.models.transformer_mlm import TransformerMlm, TransformerMlmConfig
from seqtools.models.transformer_seq2seq import TransformerSeq2Seq, TransformerSeq2SeqConfig
from seqtools.nn import multihead
from seqtools.nn.positions import POSITIONS
from seqtools.nn.transformer import Shape
from seqtools.text.vocab import Vocabulary

V, W = 9, 7  # target and source entries
SIZES = {"hidden": 12, "heads": 3, "layers": 2, "feedforward": 20}
LONG, SHORT = [2, 4, 5, 6, 4, 4, 1, 3], [2, 6, 3]
SOURCES = ([4, 5, 6, 4, 3], [6, 3])


def _lm(**options):
    return TransformerLm(TransformerLmConfig(**SIZES | options), V, seed=3).eval()


def _seq2seq(**options):
    config = TransformerSeq2SeqConfig(**SIZES | options)
    return TransformerSeq2Seq(config, W, V, seed=3).eval()


def _mlm(**options):
    return TransformerMlm(TransformerMlmConfig(**SIZES | options), V, seed=3).eval()


def _padded(rows, width=0):
    width = max(width, *map(len, rows))
    table = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    return table, torch.tensor([len(row) for row in rows])


def _batch(rows, sources=None, width=0):
    """Rows of tokens; each is fed but for its last, and predicted but for its first."""
    inputs, lengths = _padded([row[:-1] for row in rows], width)
    targets, _ = _padded([row[1:] for row in rows], width)
    targets[torch.arange(targets.shape[1]) >= lengths[:, None]] = -100
    batch = TensorBatch(inputs, targets, lengths)
    if sources is not None:
        batch.source, batch.source_lengths = _padded(sources, width)
    return batch


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("tied", [False, True])
def test_loss_of_a_batch_is_that_of_its_rows(position, tied):
    for model, sources in ((_lm, None), (_seq2seq, SOURCES)):
        model = model(position=position, tied=tied)
        alone = []
        for number, row in enumerate((LONG, SHORT)):
            one = _batch([row], None if sources is None else [sources[number]])
            alone.append(model.loss(one)[0].terms["nll"][0].item())
        for width in (0, 12):
            total, count = model.loss(_batch([LONG, SHORT], sources, width))[0].terms["nll"]
            assert count == 9
            assert total.item() == pytest.approx(sum(alone), rel=1e-5)


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_steps_give_the_same_probabilities_as_the_whole(position, norm):
    for model, sources in ((_lm, None), (_seq2seq, SOURCES)):
        model = model(position=position, norm=norm, tied=True)
        batch = _batch([LONG, SHORT], sources)
        whole = model.token_logprobs(batch)
        assert whole.dtype == torch.float32
        assert not whole[batch.targets == -100].any()
        fed = torch.tensor([2, 1])  # row 1 starts one token earlier
        state = model.start(batch.source, batch.source_lengths, batch.inputs[:, :2], fed)
        for _ in range(6):
            last = torch.stack([batch.inputs[row, fed[row] - 1] for row in (0, 1)])
            logprobs, state, attention = model.step(last, state)
            assert attention is None
            torch.testing.assert_close(logprobs.exp().sum(1), torch.ones(2))
            for row in (0, 1):
                target = batch.targets[row, fed[row] - 1]
                if target >= 0:
                    expected = whole[row, fed[row] - 1]
                    torch.testing.assert_close(logprobs[row, target], expected)
            fed = (fed + 1).clamp(max=7)


def test_rows_of_a_beam_share_their_source_and_go_on_as_by_themselves():
    model = _seq2seq()
    batch = _batch([LONG, SHORT], SOURCES)
    ones = torch.ones(2, dtype=torch.long)
    state = model.start(batch.source, batch.source_lengths, batch.inputs[:, :1], ones)
    beams = model.select(state, torch.tensor([0, 0, 0, 1, 1, 1]))
    assert len(beams.sources[0].keys) == 2  # not six
    ids = torch.tensor([4, 5, 6, 4, 5, 6])
    logprobs, beams, _ = model.step(ids, beams)
    for row in range(6):
        alone = model.select(state, torch.tensor([row // 3]))
        torch.testing.assert_close(logprobs[row], model.step(ids[row : row + 1], alone)[0][0])
    kept = model.select(beams, torch.tensor([5, 4]))  # the second record alone, swapped
    assert len(kept.sources[0].keys) == 1
    again, _, _ = model.step(torch.tensor([1, 1]), kept)
    first = model.select(state, torch.tensor([1]))
    for row, token in enumerate((6, 5)):
        _, after, _ = model.step(torch.tensor([token]), first)
        torch.testing.assert_close(again[row], model.step(torch.tensor([1]), after)[0][0])


def test_a_state_may_be_stepped_on_twice():
    model = _lm()
    state = model.start(None, None, torch.tensor([[2, 4]]), torch.tensor([2]))
    first, left, _ = model.step(torch.tensor([4]), state)
    other, _, _ = model.step(torch.tensor([5]), state)
    again, right, _ = model.step(torch.tensor([4]), state)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    token = torch.tensor([6])
    assert torch.equal(model.step(token, left)[0], model.step(token, right)[0])


def test_attention_of_prefix_and_steps_is_that_of_the_whole():
    model = _seq2seq()
    batch = _batch([LONG, SHORT], SOURCES)
    lengths = torch.tensor([3, 1])
    state = model.start(
        batch.source, batch.source_lengths, batch.inputs[:, :3], lengths, attention=True
    )
    first = model.attended(state)
    assert first["encoder"].shape == (2, 2, 3, 5, 5)
    assert first["decoder"].shape == (2, 2, 3, 2, 2)
    assert not first["encoder"][1, :, :, :, 2:].any()  # padding of the second source
    last = torch.tensor([batch.inputs[0, 2], batch.inputs[1, 0]])
    _, after, attention = model.step(last, state)
    assert model.attended(after) == {}
    assert attention["cross"].shape == (2, 2, 3, 5)
    assert attention["decoder"].shape == (2, 2, 3, 3)
    assert not attention["decoder"][1, :, :, 1:].any()  # it was fed one input alone
    for weights in attention.values():
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 3))


def test_tied_models_have_one_table_and_shared_ones_another_less():
    names = [name for name, _ in _seq2seq(tied=True).named_parameters()]
    assert "decoder.output.weight" not in names
    config = TransformerSeq2SeqConfig(**SIZES, tied=True, share_embeddings=True)
    model = TransformerSeq2Seq(config, V, V)
    assert model.source.embedding.weight is model.decoder.output.weight
    tables = [p for p in model.parameters() if tuple(p.shape) == (V, 12)]
    assert len(tables) == 1
    with pytest.raises(ConfigError, match="one joint vocabulary, got 7 and 9 entries"):
        TransformerSeq2Seq(config, W, V)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_inputs_from_a_table_of_the_output_layer_are_scaled(tied, shared):
    """Vaswani et al. 2017, section 3.4; what is not shared with it has variance 1 as it is."""
    options = SIZES | {"tied": tied, "share_embeddings": shared, "position": "none"}
    model = TransformerSeq2Seq(TransformerSeq2SeqConfig(**options), V, V, seed=3).eval()
    ids = torch.tensor([[4, 6]])
    for embedded, scaled in (
        (model.decoder.embedded, tied),
        (model.source, tied and shared),
        (_lm(tied=tied, position="none").decoder.embedded, tied),
        (_mlm(tied=tied, position="none").embedded, tied),
    ):
        rows = embedded.embedding.weight[ids] * (math.sqrt(12) if scaled else 1)
        torch.testing.assert_close(embedded(ids), rows)


def test_embeddings_are_shared_over_one_vocabulary_alone():
    def vocabulary(*tokens):
        specials = {"pad": 0, "unk": 1, "bos": 2, "eos": 3}
        every = ["<pad>", "<unk>", "<s>", "</s>", *tokens]
        return Vocabulary.from_header({"tokens": every, "specials": specials, "counts": None})

    options = SIZES | {"share_embeddings": True}
    pair = {"source": vocabulary("a", "b"), "target": vocabulary("a", "c")}
    with pytest.raises(ConfigError, match="one joint vocabulary"):
        TransformerSeq2Seq.build("transformer", options, pair)


def test_a_longer_input_than_the_learned_positions_is_refused():
    model = _lm(max_positions=4)
    with pytest.raises(ConfigError, match="4"):
        model.token_logprobs(_batch([LONG]))


@pytest.mark.parametrize("position", [name for name in POSITIONS if name != "learned"])
def test_longer_inputs_than_any_trained_on_work_with_other_positions(position):
    model = _lm(position=position)
    row = [2, *[4, 5] * 400, 3]
    assert torch.isfinite(model.token_logprobs(_batch([row]))).all()


def test_masked_tokens_are_predicted_from_both_sides():
    model = _mlm()
    inputs, lengths = _padded([[5, 4, 6, 4], [4, 6]])
    batch = TensorBatch(inputs, torch.full_like(inputs, -100), lengths)
    logprobs, attention = model.fill_logprobs(batch, torch.tensor([1, 4]), attention=True)
    torch.testing.assert_close(logprobs.exp().sum(1), torch.ones(2))
    assert attention["encoder"].shape == (2, 2, 3, 4, 4)
    other = inputs.clone()
    other[0, 3] = 5  # what stands behind the gap
    changed, _ = model.fill_logprobs(
        TensorBatch(other, batch.targets, lengths), torch.tensor([1, 4])
    )
    assert not torch.allclose(changed[0], logprobs[0])
    torch.testing.assert_close(changed[1], logprobs[1])
    alone, _ = model.fill_logprobs(
        TensorBatch(inputs[1:, :2], batch.targets[1:, :2], lengths[1:]), torch.tensor([0])
    )
    torch.testing.assert_close(alone[0], logprobs[1])


def test_the_loss_of_masked_tokens_is_their_cross_entropy_and_that_of_pairs_comes_beside():
    model = _mlm()
    inputs, lengths = _padded([[5, 4, 6, 4], [4, 6]])
    targets = torch.full_like(inputs, -100)
    targets[0, 1], targets[0, 3], targets[1, 0] = 7, 8, 4
    batch = TensorBatch(inputs, targets, lengths)
    logprobs, _ = model.fill_logprobs(batch, torch.tensor([1, 3, 4]))
    expected = -sum(logprobs[i, t].item() for i, t in enumerate((7, 8, 4)))
    found, _ = model.loss(batch)
    assert found.objective == "nll"
    assert found.terms["nll"][1] == 3
    assert found.terms["nll"][0].item() == pytest.approx(expected, rel=1e-5)

    batch.next_sentence = torch.tensor([1, 0])
    batch.segments = torch.zeros_like(inputs)
    found, _ = model.loss(batch)
    states, _ = model.encode(batch)
    pairs = 0.0
    for row, label in enumerate((1, 0)):
        scores = model.follows(torch.tanh(model.pooler(states[row, 0]))).tolist()
        pairs += math.log(sum(map(math.exp, scores))) - scores[label]
    assert found.terms["next_sentence"][0].item() == pytest.approx(pairs, rel=1e-5)
    total, count = found.terms[found.objective]
    nll = found.terms["nll"][0].item()
    assert total.item() / count == pytest.approx(nll / 3 + pairs / 2, rel=1e-5)


def test_segments_tell_two_texts_apart():
    model = _mlm()
    inputs, lengths = _padded([[5, 4, 6, 4]])
    batch = TensorBatch(inputs, torch.full_like(inputs, -100), lengths)
    apart = TensorBatch(inputs, batch.targets, lengths, segments=torch.tensor([[0, 0, 1, 1]]))
    assert not torch.allclose(model.encode(batch)[0], model.encode(apart)[0])


def test_a_batch_without_gaps_has_no_target():
    inputs, lengths = _padded([[5, 4]])
    batch = TensorBatch(inputs, torch.full_like(inputs, -100), lengths)
    assert _mlm().loss(batch)[0].terms["nll"][1] == 0


def test_layers_are_shaped_as_the_options_say():
    options = {"dropout": 0.3, "attention_dropout": 0.2, "activation": "geglu", "norm": "post"}
    config = TransformerLmConfig(**SIZES | options, rms_norm=True)
    assert config.shape() == Shape(12, 3, 20, **options, rms_norm=True)
    assert TransformerLmConfig(hidden=12, heads=3).shape().feedforward == 48


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("option", ["dropout", "attention_dropout"])
def test_dropout_changes_training_alone(option, fused, monkeypatch):
    monkeypatch.setattr(multihead, "_EXPLICIT", 0 if fused else 512)
    options = {"dropout": 0.0, "attention_dropout": 0.0, option: 0.5}
    for kind, sources in ((_lm, None), (_seq2seq, SOURCES), (_mlm, None)):
        model, batch = kind(**options), _batch([LONG, SHORT], sources)
        quiet = {model.loss(batch)[0].terms["nll"][0].item() for _ in range(3)}
        noisy = {model.train().loss(batch)[0].terms["nll"][0].item() for _ in range(3)}
        assert (len(quiet), len(noisy)) == (1, 3)


def test_smoothing_is_of_the_objective_in_training_alone():
    """Szegedy et al. 2016, section 7: (1 - e) on the target, and e spread over all tokens."""
    for kind, sources in ((_lm, None), (_seq2seq, SOURCES), (_mlm, None)):
        model, batch = kind(label_smoothing=0.2, dropout=0.0), _batch([LONG, SHORT], sources)
        assert model.loss(batch)[0].objective == "nll"
        if kind is _mlm:
            real = (batch.targets.flatten() >= 0).nonzero().squeeze(1)
            logprobs, _ = model.fill_logprobs(batch, real)
        else:
            read = [batch.inputs]
            if kind is _seq2seq:
                ones = torch.ones(2, dtype=torch.long)
                state = model.start(batch.source, batch.source_lengths, batch.inputs[:, :1], ones)
                read += [state.sources, state.mask]
            logprobs = model.decoder.output(model.decoder.read(*read).flatten(0, 1))
            logprobs = logprobs[batch.targets.flatten() >= 0]
        targets = batch.targets[batch.targets >= 0]
        nll = -logprobs.gather(1, targets[:, None]).sum()
        found, _ = model.train().loss(batch)
        torch.testing.assert_close(found.terms["nll"][0], nll)
        smoothed = 0.8 * nll - 0.2 * logprobs.mean(1).sum()
        torch.testing.assert_close(found.terms[found.objective][0], smoothed)
        assert found.objective != "nll"


def test_what_ends_a_sublayer_begins_smaller_where_norms_stand_before():
    """By the root of their number: two in a layer, three where a source is attended to."""
    for kind, ends in ((_lm, {"": 4}), (_mlm, {"": 4}), (_seq2seq, {"encoder.": 4, "decoder.": 6})):
        before, after = (dict(kind(norm=norm).named_parameters()) for norm in ("pre", "post"))
        for part, number in ends.items():
            names = [
                name for name in after
                if name.startswith(part) and re.search(r"layers\..*\.output\.weight", name)
            ]  # fmt: skip
            assert len(names) == number
            for name in names:
                torch.testing.assert_close(before[name], after[name] / math.sqrt(number))
        same = [n for n in after if not re.search(r"layers\..*\.output\.weight", n)]
        assert all(torch.equal(before[name], after[name]) for name in same)


def test_first_weights_come_from_the_seed_alone():
    first, second = (_lm().state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)
    torch.manual_seed(99)
    other = TransformerLm(TransformerLmConfig(**SIZES), V, seed=4).state_dict()
    assert not torch.equal(first["decoder.output.weight"], other["decoder.output.weight"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heads": 5}, "5 heads do not divide"),
        ({"layers": 0}, "layers must be at least 1"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1"),
        ({"position": "sinusoidal", "max_positions": 9}, "belong to learned positions"),
        ({"position": "sinus"}, "'sinus'"),
        ({"activation": "gleu"}, "'gleu'"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        TransformerLm(TransformerLmConfig(**SIZES | options), V)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("position", POSITIONS)
def test_the_gpu_gives_what_the_cpu_gives(position):
    model = _seq2seq(position=position)
    batch = _batch([LONG, SHORT], SOURCES)
    expected = model.token_logprobs(batch)
    found = model.to("cuda").token_logprobs(batch.to("cuda")).cpu()
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
