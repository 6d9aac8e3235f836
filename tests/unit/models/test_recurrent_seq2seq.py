import itertools
from dataclasses import asdict

import pytest
import torch

from seqtools.errors import ConfigError
from seqtools.models.protocols import TensorBatch
from seqtools.models.recurrent_seq2seq import RecurrentSeq2Seq, RecurrentSeq2SeqConfig
from seqtools.nn.attention import SCORES

ARCHITECTURES = ("rnn", "lstm", "gru")
SOURCES, V = 9, 8
# (source, target): sources end with 3, targets start with 2 and end with 3, as sequences do here
LONG = ([4, 5, 6, 7, 8, 3], [2, 4, 7, 6, 5, 3])
SHORT = ([8, 3], [2, 5, 3])
EMPTY = ([], [2, 6, 4, 3])

WIRED = [
    {"attention": "none"},
    {"wiring": "bahdanau"},
    {"wiring": "luong"},
    {"wiring": "luong", "input_feeding": True},
]

PARTIAL = [
    {"attention": "local", "local": "monotonic", "attention_window": 1},
    {"attention": "local", "wiring": "luong", "attention_window": 2},
    {"attention": "local", "local": "monotonic", "wiring": "luong", "attention_window": 1},
    {"attention": "local", "local": "monotonic", "attention_window": 1} | WIRED[3],
    {"attention": "hard"},
    {"attention": "hard", "attention_score": "general"} | WIRED[3],
]


def _model(architecture="gru", *, seed=3, **options):
    options = {"hidden": 6, "embedding": 5, "layers": 2, "bidirectional": True} | options
    if options.get("attention") == "location":
        options["max_source"] = 20
    if options.get("attention") in ("dot", "scaled-dot"):
        options["merge"] = "sum"
    config = RecurrentSeq2SeqConfig(architecture, **options)
    return RecurrentSeq2Seq(config, SOURCES, V, seed=seed).eval()


def _batch(*pairs, pad=0):
    def rows(lists, filler):
        width = max(map(len, lists)) + pad
        return torch.tensor([row + [filler] * (width - len(row)) for row in lists]).long()

    sources = [source for source, _ in pairs]
    return TensorBatch(
        inputs=rows([target[:-1] for _, target in pairs], 0),
        targets=rows([target[1:] for _, target in pairs], -100),
        lengths=torch.tensor([len(target) - 1 for _, target in pairs]),
        source=rows(sources, 0),
        source_lengths=torch.tensor([len(source) for source in sources]),
    )


def _stepped(model, batch):
    """log P of each target and the attention, found step by step."""
    first = torch.ones(len(batch.inputs), dtype=torch.long)
    state = model.start(batch.source, batch.source_lengths, batch.inputs[:, :1], first)
    logprobs, attention = torch.zeros(batch.targets.shape), []
    for step in range(batch.inputs.shape[1]):
        scores, state, seen = model.step(batch.inputs[:, step], state)
        torch.testing.assert_close(scores.exp().sum(1), torch.ones(len(scores)))
        target = batch.targets[:, step]
        found = scores.gather(1, target.clamp(min=0)[:, None]).squeeze(1)
        logprobs[:, step] = found.masked_fill(target == -100, 0.0)
        attention.append(seen)
    return logprobs, attention


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("options", [*WIRED, *PARTIAL], ids=str)
@pytest.mark.parametrize("tied", [False, True])
def test_steps_give_the_same_probabilities_as_the_whole(architecture, options, tied):
    model = _model(architecture, tied=tied, **options)
    batch = _batch(LONG, SHORT, EMPTY)
    whole = model.token_logprobs(batch)
    assert not whole[batch.targets == -100].any()
    stepped, _ = _stepped(model, batch)
    torch.testing.assert_close(stepped, whole)
    torch.testing.assert_close(model.loss(batch)[0].terms["nll"][0], -whole.sum())


@pytest.mark.parametrize("attention", SCORES)
@pytest.mark.parametrize("wiring", ["bahdanau", "luong"])
@pytest.mark.parametrize("layers", [1, 2])
def test_every_attention_in_every_wiring(attention, wiring, layers):
    model = _model(attention=attention, wiring=wiring, layers=layers)
    batch = _batch(LONG, SHORT, EMPTY)
    stepped, seen = _stepped(model, batch)
    torch.testing.assert_close(stepped, model.token_logprobs(batch))
    for step in seen:
        weights = step["cross"]
        assert weights.shape == (3, 1, 1, 6)
        torch.testing.assert_close(weights.sum(3).view(-1), torch.tensor([1.0, 1.0, 0.0]))
        assert not weights[1, :, :, 2:].any()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("options", [*WIRED, *PARTIAL], ids=str)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_batch_order_and_padding_change_nothing(architecture, options, bidirectional):
    model = _model(architecture, bidirectional=bidirectional, **options)
    alone = [model.token_logprobs(_batch(pair))[0] for pair in (LONG, SHORT, EMPTY)]
    pairs = list(enumerate((LONG, SHORT, EMPTY)))
    for order, pad in itertools.product((pairs, pairs[::-1]), (0, 7)):
        found = model.token_logprobs(_batch(*(pair for _, pair in order), pad=pad))
        for row, (number, _) in enumerate(order):
            length = len(alone[number])
            torch.testing.assert_close(found[row, :length], alone[number])
            assert not found[row, length:].any()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("options", [*WIRED, *PARTIAL], ids=str)
def test_nothing_looks_ahead(architecture, options):
    model = _model(architecture, **options)
    other = (LONG[0], [*LONG[1][:3], 1, 1, 3])
    one, two = (model.token_logprobs(_batch(pair))[0] for pair in (LONG, other))
    torch.testing.assert_close(one[:2], two[:2])
    assert not torch.allclose(one[3:], two[3:])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("options", [*WIRED, *PARTIAL], ids=str)
def test_prefixes_of_different_lengths(architecture, options):
    model = _model(architecture, **options)
    batch = _batch(LONG, SHORT)
    whole = model.token_logprobs(batch)
    prefix, lengths = batch.inputs[:, :4], torch.tensor([4, 1])
    state = model.start(batch.source, batch.source_lengths, prefix, lengths)
    logprobs, _, _ = model.step(torch.tensor([prefix[0, 3], prefix[1, 0]]), state)
    torch.testing.assert_close(logprobs[0, batch.targets[0, 3]], whole[0, 3])
    torch.testing.assert_close(logprobs[1, batch.targets[1, 0]], whole[1, 0])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("options", [*WIRED, *PARTIAL], ids=str)
def test_selected_rows_go_on_as_before(architecture, options):
    model = _model(architecture, **options)
    batch = _batch(LONG, SHORT, EMPTY)
    first = torch.ones(3, dtype=torch.long)
    state = model.start(batch.source, batch.source_lengths, batch.inputs[:, :1], first)
    for rows in ([0, 0, 1, 1, 2, 2], [1, 0, 2, 3, 5, 4], [3, 5, 4]):
        ids = torch.arange(len(state.decoder[0])) + 2
        expected, after, _ = model.step(ids, state)
        rows = torch.tensor(rows)
        found, _, _ = model.step(ids[rows], model.select(state, rows))
        torch.testing.assert_close(found, expected[rows])
        state = model.select(after, rows)


@pytest.mark.parametrize("options", [*WIRED, *PARTIAL], ids=str)
def test_no_nan_from_sources_without_tokens(options):
    model = _model(**options).train()
    for batch in (_batch(LONG, EMPTY), _batch(EMPTY), _batch(EMPTY, pad=2)):
        model.zero_grad()
        total, count = model.loss(batch)[0].terms["nll"]
        (total / count).backward()
        assert torch.isfinite(total)
        assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_bahdanau_step_by_the_formula():
    model = _model(layers=1)
    decoder, embed = model.decoder, model.target_embedding.weight
    batch = _batch(LONG)
    values, last = model.encoder(model.source_embedding(batch.source), batch.source_lengths)
    bridge = model.bridge.parts[0][0]
    s = torch.tanh(bridge.weight @ last[0][0].flatten() + bridge.bias)
    score = decoder.attention.score
    expected = []
    for token, target in zip(LONG[1][:-1], LONG[1][1:], strict=True):
        scores = torch.stack(
            [
                score.energy @ torch.tanh(score.query.weight @ s + score.key.weight @ h)
                for h in values[0]
            ]
        )
        weights = torch.exp(scores) / torch.exp(scores).sum()
        context = sum(w * h for w, h in zip(weights, values[0], strict=True))
        y = embed[token]
        x = torch.cat((y, context))
        cell = decoder.first
        a = (cell.weight_ih_l0 @ x + cell.bias_ih_l0).split(6)
        b = (cell.weight_hh_l0 @ s + cell.bias_hh_l0).split(6)
        r, z = torch.sigmoid(a[0] + b[0]), torch.sigmoid(a[1] + b[1])
        s = z * s + (1 - z) * torch.tanh(a[2] + r * b[2])
        readout = torch.tanh(
            decoder.readout.weight @ torch.cat((s, context, y)) + decoder.readout.bias
        )
        logits = model.output.weight @ readout + model.output.bias
        expected.append(logits[target] - torch.log(torch.exp(logits).sum()))
    torch.testing.assert_close(model.token_logprobs(batch)[0], torch.stack(expected))


@pytest.mark.parametrize("feeding", [False, True])
def test_luong_step_by_the_formula(feeding):
    model = _model(
        layers=1, bidirectional=False, wiring="luong", attention="general", input_feeding=feeding
    )
    decoder, embed = model.decoder, model.target_embedding.weight
    batch = _batch(LONG)
    values, last = model.encoder(model.source_embedding(batch.source), batch.source_lengths)
    s, fed, expected = last[0][:, 0], torch.zeros(6), []
    for token, target in zip(LONG[1][:-1], LONG[1][1:], strict=True):
        x = torch.cat((embed[token], fed)) if feeding else embed[token]
        layer = decoder.stack.forward_layers[0]
        s, _ = layer(x.view(1, 1, -1), s.view(1, 1, -1))
        s = s.view(-1)
        scores = torch.stack([s @ decoder.attention.score.key.weight @ h for h in values[0]])
        weights = torch.exp(scores) / torch.exp(scores).sum()
        context = sum(w * h for w, h in zip(weights, values[0], strict=True))
        fed = torch.tanh(decoder.combine.weight @ torch.cat((context, s)))
        logits = model.output.weight @ fed + model.output.bias
        expected.append(logits[target] - torch.log(torch.exp(logits).sum()))
    torch.testing.assert_close(model.token_logprobs(batch)[0], torch.stack(expected))


@pytest.mark.parametrize("options", [*WIRED, *PARTIAL[:4]], ids=str)
def test_without_teacher_forcing_the_model_reads_its_own_tokens(options):
    model = _model(teacher_forcing=0.0, **options)
    batch = _batch(LONG)
    first = torch.ones(1, dtype=torch.long)
    state = model.start(batch.source, batch.source_lengths, batch.inputs[:, :1], first)
    last, expected = batch.inputs[:, 0], 0.0
    for step in range(batch.inputs.shape[1]):
        logprobs, state, _ = model.step(last, state)
        expected -= logprobs[0, batch.targets[0, step]].item()
        last = logprobs.argmax(1)
    found = model.train().loss(batch)[0].terms["nll"][0]
    assert found.item() == pytest.approx(expected, rel=1e-5)
    forced = model.eval().loss(batch)[0].terms["nll"][0]
    torch.testing.assert_close(forced, -model.token_logprobs(batch).sum())


@pytest.mark.parametrize("options", WIRED, ids=str)
def test_tokens_of_its_own_take_no_gradient_away_in_bfloat16(options):
    model, batch = _model(teacher_forcing=0.0, **options).train(), _batch(LONG, SHORT)
    found = []
    for narrow in (False, True):
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            total, _ = model.loss(batch)[0].terms["nll"]
        total.backward()
        found.append([parameter.grad for parameter in model.parameters()])
    for exact, near in zip(*found, strict=True):
        assert (near - exact).norm() <= 0.1 * exact.norm() + 1e-3


def test_dropout_changes_training_alone():
    model, batch = _model(dropout=0.5), _batch(LONG, SHORT)
    assert torch.equal(model.token_logprobs(batch), model.token_logprobs(batch))
    losses = {model.train().loss(batch)[0].terms["nll"][0].item() for _ in range(3)}
    assert len(losses) == 3


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("options", [*WIRED, {"attention": "concat"}], ids=str)
def test_autocast_is_close_and_keeps_weights_and_probabilities_float32(architecture, options):
    model, batch = _model(architecture, **options), _batch(LONG, SHORT, EMPTY)
    exact = model.token_logprobs(batch)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(model.token_logprobs(batch), exact, atol=0.05, rtol=0.05)
        stepped, _ = _stepped(model, batch)
        total = model.train().loss(batch)[0].terms["nll"][0]
    torch.testing.assert_close(stepped, exact, atol=0.05, rtol=0.05)
    total.backward()
    assert all(p.grad.dtype == torch.float32 for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attention": "dto"}, "unknown attention 'dto': choose from none, dot"),
        ({"wiring": "loung"}, "unknown wiring 'loung'"),
        ({"attention": "none", "wiring": "luong"}, "nothing to wire, got luong"),
        ({"input_feeding": True}, "belongs to luong wiring, got bahdanau"),
        ({"max_source": 4}, "belongs to location attention, got additive"),
        ({"attention": "location"}, "a max source of at least 1, got None"),
        ({"attention": "dot", "bidirectional": True}, "of one size, got 256 and 512"),
        ({"teacher_forcing": 1.5}, "from 0 to 1, got 1.5"),
        ({"attention_score": "dot"}, "belongs to local or hard attention, got additive"),
        ({"attention_window": 3}, "an attention window belongs to local attention, got additive"),
        ({"attention": "hard", "local": "monotonic"}, "a kind of window belongs to local .* hard"),
        ({"attention": "local", "local": "m"}, "unknown kind of local attention 'm': choose from"),
        ({"attention": "local", "attention_window": 0}, "attention window must be at least 1"),
        ({"attention": "hard", "attention_score": "local"}, "unknown attention score 'local'"),
        ({"attention": "hard", "attention_score": "location"}, "a max source of at least 1"),
        ({"layers": 0}, "layers must be at least 1, got 0"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ConfigError, match=message):
        RecurrentSeq2Seq(RecurrentSeq2SeqConfig("gru", **options), SOURCES, V)


def test_what_local_and_hard_attention_are_by_default():
    made = {}
    for name in ("local", "hard"):
        config = RecurrentSeq2SeqConfig("gru", attention=name)
        made[name] = config.attention_score, config.attention_window, config.local
        assert RecurrentSeq2SeqConfig(**asdict(config)) == config
    assert made == {"local": ("general", 10, "predictive"), "hard": ("additive", None, None)}


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("attention", ["local", "hard"])
def test_every_score_can_be_wrapped(score, attention):
    options = {"max_source": 20} if score == "location" else {}
    model = _model(attention=attention, attention_score=score, merge="sum", **options)
    batch = _batch(LONG, SHORT, EMPTY)
    stepped, seen = _stepped(model, batch)
    torch.testing.assert_close(stepped, model.token_logprobs(batch))
    for step in seen:
        sums = step["cross"].sum(3).view(-1)
        assert sums[2] == 0.0
        assert (sums[:2] > 0).all()
        assert (sums[:2] == 1).all() if attention == "hard" else (sums[:2] < 1).all()


def test_hard_attention_is_drawn_in_training_and_the_best_in_decoding():
    model, batch = _model(attention="hard"), _batch(LONG, SHORT)
    assert torch.equal(model.token_logprobs(batch), model.token_logprobs(batch))
    losses = {model.train().loss(batch)[0].terms["nll"][0].item() for _ in range(5)}
    assert len(losses) > 1


def test_a_source_is_needed():
    with pytest.raises(ValueError, match="needs a source"):
        _model().start(None, None, torch.tensor([[2]]), torch.tensor([1]))


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("options", [*WIRED, *PARTIAL], ids=str)
def test_cuda_equals_cpu(options):
    model, batch = _model(**options), _batch(LONG, SHORT, EMPTY)
    expected = model.token_logprobs(batch)
    result = model.cuda().token_logprobs(batch.to("cuda"))
    torch.testing.assert_close(result.cpu(), expected, atol=1e-4, rtol=1e-4)
