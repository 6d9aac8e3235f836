"""Steps against the whole and company against solitude, for sizes and prefixes that are drawn."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtools.models.protocols import TensorBatch
from seqtools.models.transformer_lm import TransformerLm, TransformerLmConfig
from seqtools.models.transformer_mlm import TransformerMlm, TransformerMlmConfig
from seqtools.models.transformer_seq2seq import TransformerSeq2Seq, TransformerSeq2SeqConfig
from seqtools.nn import multihead
from seqtools.nn.positions import POSITIONS

V, W = 9, 7  # target and source entries
SIZES = {"hidden": 12, "heads": 3, "layers": 2, "feedforward": 20, "max_positions": None}
NORMS = [("pre", False), ("post", False), ("pre", True), ("post", True)]


def _options(position, norm="pre", *, rms_norm=False):
    return SIZES | {"position": position, "norm": norm, "rms_norm": rms_norm}


def _lm(position, norm="pre", *, rms_norm=False):
    config = TransformerLmConfig(**_options(position, norm, rms_norm=rms_norm))
    return TransformerLm(config, V, seed=3).eval()


def _seq2seq(position, norm="pre", *, rms_norm=False):
    config = TransformerSeq2SeqConfig(**_options(position, norm, rms_norm=rms_norm))
    return TransformerSeq2Seq(config, W, V, seed=3).eval()


def _padded(rows, filler=0):
    width = max(map(len, rows))
    table = torch.tensor([[*row, *[filler] * (width - len(row))] for row in rows])
    return table, torch.tensor([len(row) for row in rows])


def _batch(rows, sources=None):
    """Each row is fed but for its last token, and predicted but for its first."""
    inputs, lengths = _padded([row[:-1] for row in rows])
    targets, _ = _padded([row[1:] for row in rows], -100)
    batch = TensorBatch(inputs, targets, lengths)
    if sources is not None:
        batch.source, batch.source_lengths = _padded(sources)
    return batch


def _rows(size, *, longest):
    tokens = st.integers(4, size - 1)
    return st.lists(tokens, min_size=1, max_size=longest).map(lambda row: [2, *row, 3])


@st.composite
def _searches(draw):
    """Rows with their sources, prefixes, padding behind them, and what is selected on the way."""
    count = draw(st.integers(1, 3))
    rows = draw(st.lists(_rows(V, longest=40), min_size=count, max_size=count))
    sources = draw(st.lists(_rows(W, longest=20), min_size=count, max_size=count))
    prefixes = [draw(st.integers(1, len(row) - 1)) for row in rows]
    padding = draw(st.integers(0, 2))
    picks = st.lists(st.integers(0, 3), min_size=1, max_size=4)
    return rows, sources, prefixes, padding, draw(st.lists(picks, max_size=4))


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("kind", [_lm, _seq2seq])
@given(search=_searches())
@settings(max_examples=10)
def test_steps_of_any_rows_give_what_each_gives_alone_at_once(kind, position, search):
    rows, sources, prefixes, padding, picks = search
    model = kind(position)
    if kind is _lm:
        sources = [None] * len(rows)
    alone = [
        model.token_logprobs(_batch([row], None if source is None else [source]))[0]
        for row, source in zip(rows, sources, strict=True)
    ]
    prefix, lengths = _padded([row[:n] for row, n in zip(rows, prefixes, strict=True)])
    prefix = torch.nn.functional.pad(prefix, (0, padding))
    given_source = (None, None) if kind is _lm else _padded(sources)
    state = model.start(*given_source, prefix, lengths)
    owners, fed = list(range(len(rows))), list(prefixes)
    with torch.no_grad():
        for step in range(8):
            # A row that has come to its end goes on with its last input; nothing is expected then.
            last = [rows[o][min(n, len(rows[o]) - 1) - 1] for o, n in zip(owners, fed, strict=True)]
            logprobs, state, _ = model.step(torch.tensor(last), state)
            for i, (owner, number) in enumerate(zip(owners, fed, strict=True)):
                if number < len(rows[owner]):
                    found, expected = logprobs[i, rows[owner][number]], alone[owner][number - 1]
                    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
            fed = [number + 1 for number in fed]
            if step < len(picks):
                chosen = [pick % len(owners) for pick in picks[step]]
                state = model.select(state, torch.tensor(chosen))
                owners, fed = [owners[c] for c in chosen], [fed[c] for c in chosen]


@pytest.mark.parametrize("position", POSITIONS)
@given(rows=st.lists(_rows(V, longest=40), min_size=2, max_size=4))
@settings(max_examples=10)
def test_the_states_of_an_encoder_do_not_depend_on_the_company(position, rows):
    model = TransformerMlm(TransformerMlmConfig(**_options(position)), V, seed=3).eval()
    inputs, lengths = _padded(rows)
    states, _ = model.encode(TensorBatch(inputs, inputs, lengths))
    for row, together in zip(rows, states, strict=True):
        ids, length = _padded([row])
        alone, _ = model.encode(TensorBatch(ids, ids, length))
        torch.testing.assert_close(together[: len(row)], alone[0], atol=1e-5, rtol=1e-4)


def test_texts_without_segments_are_first_texts():
    model = TransformerMlm(TransformerMlmConfig(**_options("learned")), V, seed=3).eval()
    inputs, lengths = _padded([[4, 5, 6]])
    zeros = TensorBatch(inputs, inputs, lengths, segments=torch.zeros_like(inputs))
    assert torch.equal(
        model.encode(TensorBatch(inputs, inputs, lengths))[0], model.encode(zeros)[0]
    )


def test_segments_are_dropped_with_the_rest_of_an_input():
    model = TransformerMlm(TransformerMlmConfig(**_options("learned"), dropout=0.5), V, seed=3)
    seen = []
    model.encoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    inputs, lengths = _padded([[4, 5, 6] * 20])
    torch.manual_seed(0)
    model.train().encode(TensorBatch(inputs, inputs, lengths))
    torch.manual_seed(0)
    kept = torch.rand(1, 60, 12) >= 0.5
    assert torch.equal(seen[0] != 0, kept)


ROWS, SOURCES = [[2, 4, 5, 6, 4, 3], [2, 6, 3]], [[4, 5, 6, 4, 3], [6, 3]]


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize(("norm", "rms_norm"), NORMS)
@pytest.mark.parametrize("fused", [False, True])
def test_bfloat16_is_near_float32_in_training_and_in_steps(
    position, norm, rms_norm, fused, monkeypatch
):
    monkeypatch.setattr(multihead, "_EXPLICIT", 0 if fused else 512)
    for kind, sources in ((_lm, None), (_seq2seq, SOURCES)):
        model, batch = kind(position, norm, rms_norm=rms_norm), _batch(ROWS, sources)
        exact = model.token_logprobs(batch)
        parameters = list(model.parameters())
        wanted = torch.autograd.grad(model.loss(batch)[0].terms["nll"][0], parameters)
        with torch.autocast("cpu", torch.bfloat16):
            total, _ = model.loss(batch)[0].terms["nll"]
        found = torch.autograd.grad(total, parameters)
        assert total.item() == pytest.approx(-exact.sum().item(), rel=0.01)
        norms = [sum(g.square().sum().item() for g in part) for part in (found, wanted)]
        assert math.sqrt(norms[0] / norms[1]) == pytest.approx(1, abs=0.05)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            fed = torch.tensor([3, 1])
            state = model.start(batch.source, batch.source_lengths, batch.inputs[:, :3], fed)
            for _ in range(2):
                last = batch.inputs[[0, 1], fed - 1]
                logprobs, state, _ = model.step(last, state)
                assert logprobs.dtype == torch.float32
                for row in (0, 1):
                    step = fed[row] - 1
                    target = batch.targets[row, step]
                    assert abs(logprobs[row, target] - exact[row, step]) < 0.1
                fed = fed + 1


@pytest.mark.parametrize("rms_norm", [False, True])
@pytest.mark.filterwarnings("error")
def test_bfloat16_is_near_float32_in_filling(rms_norm):
    config = TransformerMlmConfig(**_options("learned", rms_norm=rms_norm))
    model = TransformerMlm(config, V, seed=3).eval()
    inputs, lengths = _padded([[4, 5, 6, 4], [6, 5]])
    batch, places = TensorBatch(inputs, inputs, lengths), torch.tensor([1, 4])
    exact, _ = model.fill_logprobs(batch, places)
    with torch.autocast("cpu", torch.bfloat16):
        found, _ = model.fill_logprobs(batch, places)
    torch.testing.assert_close(found, exact, atol=0.05, rtol=0)
