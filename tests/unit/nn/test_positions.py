import cmath
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqtools.errors import ConfigError
from seqtools.nn.initialisation import initialise
from seqtools.nn.positions import FARTHEST_VECTOR, POSITIONS, make_positions, t5_bucket

B, H, T, S, D = 2, 3, 5, 7, 4
E = H * D


def _random(*size, seed=0):
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _made(name, *, causal=False, layers=1, heads=H, max_positions=64):
    made = make_positions(
        name,
        hidden=heads * D,
        heads=heads,
        layers=layers,
        causal=causal,
        max_positions=max_positions,
    )
    for seed, module in enumerate([made[0], *made[1]]):
        initialise(module, torch.Generator().manual_seed(seed))
        module.double()
    return made


def _scores(positions, query, key, queries, keys):
    """The scores of attention, as `AttentionPositions` says they are made."""
    scores = positions.rotate(query, queries) @ positions.rotate(key, keys).transpose(2, 3)
    vectors = positions.key_scores(query, queries, keys)
    assert (vectors is not None) == positions.has_vectors
    scores = (scores if vectors is None else scores + vectors) / math.sqrt(D)
    bias = positions.bias(queries, keys)
    assert (bias is not None) == positions.has_bias
    return scores if bias is None else scores + bias


def test_sinusoids_by_the_formula():
    add, _ = _made("sinusoidal")
    embedded, positions = _random(B, T, E), torch.tensor([0, 1, 2, 700, 100_000])
    result = add(embedded, positions)
    for column, position in enumerate(positions.tolist()):
        for i in range(E // 2):
            angle = position / 10000 ** (2 * i / E)
            added = torch.tensor([math.sin(angle), math.cos(angle)], dtype=torch.float64)
            expected = embedded[:, column, 2 * i : 2 * i + 2] + added
            torch.testing.assert_close(result[:, column, 2 * i : 2 * i + 2], expected)


def test_sinusoids_of_an_odd_size_end_in_a_sine():
    add, _ = make_positions("sinusoidal", hidden=3, heads=1, layers=1, causal=True)
    result = add(torch.zeros(1, 2, 3, dtype=torch.float64), torch.arange(2))
    expected = [math.sin(1), math.cos(1), math.sin(10000 ** (-2 / 3))]
    torch.testing.assert_close(result[0], torch.tensor([[0, 1, 0], expected], dtype=torch.float64))


def test_learned_vectors_are_added():
    add, _ = _made("learned")
    embedded, positions = _random(B, T, E), torch.tensor([3, 0, 63, 3, 1])
    result, table = add(embedded, positions), dict(add.named_parameters())["embedding.weight"]
    for column, position in enumerate(positions.tolist()):
        torch.testing.assert_close(result[:, column], embedded[:, column] + table[position])


def test_learned_positions_end():
    add, _ = _made("learned", max_positions=4)
    with pytest.raises(ConfigError, match="an input of 5 positions is longer than the model's 4"):
        add(torch.zeros(1, 5, E), torch.arange(5))
    assert add(torch.zeros(1, 0, E), torch.arange(0)).shape == (1, 0, E)
    for bad in (None, 0):
        with pytest.raises(ConfigError, match=f"max positions of 1 up, got {bad}"):
            _made("learned", max_positions=bad)


def test_rotary_by_the_matrix_of_the_paper():
    """Su et al. 2021, equations 14 and 15: blocks of 2 x 2 rotations on the diagonal."""
    _, [rotary] = _made("rotary")
    x, positions = _random(B, H, T, D), torch.tensor([0, 1, 5, 300, 70_000])
    result = rotary.rotate(x, positions)
    for column, m in enumerate(positions.tolist()):
        matrix = torch.zeros(D, D, dtype=torch.float64)
        for i in range(D // 2):
            angle = m * 10000 ** (-2 * i / D)
            cos, sin = math.cos(angle), math.sin(angle)
            block = torch.tensor([[cos, -sin], [sin, cos]], dtype=torch.float64)
            matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = block
        torch.testing.assert_close(result[:, :, column], x[:, :, column] @ matrix.T)


@given(query=st.integers(0, 3000), key=st.integers(0, 3000), shift=st.integers(-3000, 3000))
def test_rotary_inner_products_are_a_function_of_the_distance(query, key, shift):
    """Su et al. 2021, equation 12: Re(sum of q_i k_i* e^(i (m - n) theta_i)) over the pairs."""
    _, [rotary] = _made("rotary")
    q, k = _random(1, 1, 1, D), _random(1, 1, 1, D, seed=1)

    def product(m, n):
        turned = rotary.rotate(q, torch.tensor([m])) * rotary.rotate(k, torch.tensor([n]))
        return turned.sum().item()

    expected = 0.0
    for i in range(D // 2):
        one, other = (complex(*x[0, 0, 0, 2 * i : 2 * i + 2].tolist()) for x in (q, k))
        turn = cmath.exp(1j * (query - key) * 10000 ** (-2 * i / D))
        expected += (one * other.conjugate() * turn).real
    assert product(query, key) == pytest.approx(expected, abs=1e-9)
    if min(query, key) + shift >= 0:
        assert product(query + shift, key + shift) == pytest.approx(expected, abs=1e-9)


def test_rotary_of_a_transposed_part_in_any_precision():
    _, [rotary] = _made("rotary")
    x = _random(B, T, 3, H, D).float()
    query = x[:, :, 1].transpose(1, 2)
    exact = rotary.rotate(query.double(), torch.arange(T))
    torch.testing.assert_close(rotary.rotate(query, torch.arange(T)), exact.float())
    narrow = rotary.rotate(query.bfloat16(), torch.arange(T))
    expected = rotary.rotate(query.bfloat16().double(), torch.arange(T))
    assert torch.equal(narrow, expected.float().bfloat16())


def test_rotary_needs_pairs():
    with pytest.raises(ConfigError, match="heads of even size, got 5"):
        make_positions("rotary", hidden=10, heads=2, layers=1, causal=True)


def test_alibi_of_eight_heads_has_the_slopes_of_the_paper():
    """Press et al. 2022, section 3: 1/2, 1/4, ..., 1/256."""
    _, [alibi] = _made("alibi", causal=True, heads=8)
    bias = alibi.bias(torch.arange(T), torch.arange(S))
    expected = [[[-abs(i - j) / 2**h for j in range(S)] for i in range(T)] for h in range(1, 9)]
    assert torch.equal(bias, torch.tensor(expected, dtype=torch.float64))
    _, [alibi] = _made("alibi", heads=16)
    expected = torch.tensor([-(2 ** (-h / 2)) for h in range(1, 17)], dtype=torch.float64)
    for key in (4, 6):  # symmetric
        torch.testing.assert_close(
            alibi.bias(torch.tensor([5]), torch.tensor([key]))[:, 0, 0], expected
        )


@pytest.mark.parametrize(
    ("distance", "bucket"),
    [
        *((distance, distance) for distance in range(17)),  # one each, and 16 opens the next
        (18, 16),  # 16 * 8^(1/16) = 18.22
        (19, 17),
        (45, 23),  # 16 * 8^(8/16) = 45.25
        (46, 24),
        (64, 26),  # 16 * 8^(10/16) = 58.7, 16 * 8^(11/16) = 66.8
        (112, 30),  # 16 * 8^(15/16) = 112.4
        (113, 31),
        (128, 31),
        (100_000, 31),
    ],
)
def test_causal_buckets_by_hand(distance, bucket):
    assert t5_bucket(-distance, causal=True) == bucket
    if distance:
        assert t5_bucket(distance, causal=True) == 0


@pytest.mark.parametrize(
    ("distance", "bucket"),
    [
        *((distance, distance) for distance in range(9)),
        (11, 8),  # 8 * 16^(1/8) = 11.3
        (12, 9),
        (15, 9),
        (16, 10),  # 8 * 16^(2/8), exactly
        (22, 10),  # 8 * 16^(3/8) = 22.6
        (23, 11),
        (31, 11),
        (32, 12),
        (45, 12),
        (46, 13),
        (63, 13),
        (64, 14),
        (90, 14),  # 8 * 16^(7/8) = 90.5
        (91, 15),
        (128, 15),
        (100_000, 15),
    ],
)
def test_two_sided_buckets_by_hand(distance, bucket):
    assert t5_bucket(-distance, causal=False) == bucket
    if distance:
        assert t5_bucket(distance, causal=False) == 16 + bucket


@pytest.mark.parametrize("causal", [False, True])
def test_t5_bias_is_the_number_of_its_bucket(causal):
    _, [t5] = _made("t5", causal=causal)
    (table,) = t5.parameters()
    queries, keys = torch.tensor([0, 3, 200]), torch.tensor([0, 1, 3, 50, 190, 201, 500])
    bias = t5.bias(queries, keys)
    assert bias.shape == (H, 3, 7)
    for i, query in enumerate(queries.tolist()):
        for j, key in enumerate(keys.tolist()):
            assert torch.equal(bias[:, i, j], table[:, t5_bucket(key - query, causal=causal)])


def test_shaw_by_equations_3_and_4():
    _, [shaw] = _made("shaw")
    tables = dict(shaw.named_parameters())
    queries, keys = torch.tensor([0, 3, 40, 41, 42]), torch.tensor([0, 2, 3, 19, 24, 40, 99])
    query, weights = _random(B, H, T, D), _random(B, H, T, S, seed=1).softmax(-1)
    scores, values = shaw.key_scores(query, queries, keys), shaw.values(weights, queries, keys)
    for i in range(T):
        expected = torch.zeros(B, H, D, dtype=torch.float64)
        for j in range(S):
            clipped = max(-FARTHEST_VECTOR, min(int(keys[j] - queries[i]), FARTHEST_VECTOR))
            place = clipped + FARTHEST_VECTOR
            torch.testing.assert_close(
                scores[:, :, i, j], query[:, :, i] @ tables["key_table"][place]
            )
            expected += weights[:, :, i, j, None] * tables["value_table"][place]
        torch.testing.assert_close(values[:, :, i], expected)


@pytest.mark.parametrize("name", ["shaw", "t5", "rotary", "alibi"])
def test_relative_positions_do_not_see_a_shift(name):
    _, [positions] = _made(name)
    query, key = _random(B, H, T, D), _random(B, H, S, D, seed=1)
    queries, keys = torch.arange(T) + 1, torch.arange(S)
    expected = _scores(positions, query, key, queries, keys)
    shifted = _scores(positions, query, key, queries + 1000, keys + 1000)
    torch.testing.assert_close(shifted, expected, rtol=1e-9, atol=1e-9)
    other = _scores(positions, query, key, queries + 1, keys)
    assert not torch.allclose(other, expected)


@pytest.mark.parametrize("name", POSITIONS)
def test_rows_with_positions_of_their_own_equal_each_row_alone(name):
    add, [positions] = _made(name)
    embedded, query, key = _random(B, T, E), _random(B, H, T, D), _random(B, H, S, D, seed=1)
    queries, keys = torch.tensor([[0, 1, 2, 3, 4], [20, 21, 22, 23, 9]]), torch.arange(S)
    every = add(embedded, queries)
    scores = _scores(positions, query, key, queries, keys)
    own = _scores(positions, query, key, queries, keys.expand(B, S))
    torch.testing.assert_close(own, scores)
    values = positions.values(scores, queries, keys)
    for row in range(B):
        one = slice(row, row + 1)
        torch.testing.assert_close(every[one], add(embedded[one], queries[row]))
        alone = _scores(positions, query[one], key[one], queries[row], keys)
        torch.testing.assert_close(scores[one], alone)
        if values is not None:
            alone = positions.values(scores[one], queries[row], keys)
            torch.testing.assert_close(values[one], alone)


@pytest.mark.parametrize("name", [name for name in POSITIONS if name != "learned"])
def test_all_but_learned_go_on_past_what_was_seen(name):
    add, [positions] = _made(name, max_positions=8)
    long = torch.arange(300)
    assert torch.isfinite(add(_random(1, 300, E), long)).all()
    query, key = _random(1, H, 300, D), _random(1, H, 300, D, seed=1)
    scores = _scores(positions, query, key, long, long)
    assert torch.isfinite(scores).all()
    start = _scores(positions, query[:, :, :8], key[:, :, :8], long[:8], long[:8])
    torch.testing.assert_close(scores[:, :, :8, :8], start)


@pytest.mark.parametrize("name", POSITIONS)
def test_what_came_before_changes_nothing(name):
    """Other lengths, types and places in between leave no trace."""
    add, [positions] = _made(name)
    embedded, query, key = _random(B, T, E), _random(B, H, T, D), _random(B, H, S, D, seed=1)
    first = add(embedded, torch.arange(T))
    scores = _scores(positions, query, key, torch.arange(T), torch.arange(S))
    add.float()(embedded[:, :2].float(), torch.tensor([30, 50]))
    _scores(positions.float(), query.float(), key.float(), torch.arange(T) + 9, torch.arange(S))
    add.double(), positions.double()
    again = _scores(positions, query, key, torch.arange(T), torch.arange(S))
    if any(True for _ in [*add.parameters(), *positions.parameters()]):
        # Their own weights went through float32.
        torch.testing.assert_close(add(embedded, torch.arange(T)), first, atol=1e-6, rtol=1e-6)
        torch.testing.assert_close(again, scores, atol=1e-6, rtol=1e-6)
    else:
        assert torch.equal(add(embedded, torch.arange(T)), first)
        assert torch.equal(again, scores)


@pytest.mark.parametrize("name", POSITIONS)
def test_only_weights_are_saved(name):
    add, layers = _made(name, layers=2)
    expected = {
        "learned": [("embedding.weight", (64, E))],
        "shaw": [("key_table", (33, D)), ("value_table", (33, D))] * 2,
        "t5": [("table", (H, 32))],
    }
    kept = [add, *dict.fromkeys(layers)]
    saved = [(key, tuple(value.shape)) for x in kept for key, value in x.state_dict().items()]
    assert saved == expected.get(name, [])


@pytest.mark.parametrize("name", POSITIONS)
def test_types_follow_the_model(name):
    add, [positions] = _made(name)
    for kind in (torch.float32, torch.float64):
        add.to(kind), positions.to(kind)
        query, key = _random(B, H, T, D).to(kind), _random(B, H, S, D, seed=1).to(kind)
        assert add(_random(B, T, E).to(kind), torch.arange(T)).dtype == kind
        scores = _scores(positions, query, key, torch.arange(T), torch.arange(S))
        assert scores.dtype == kind


@pytest.mark.parametrize("name", ["shaw", "t5", "learned"])
def test_every_weight_learns(name):
    add, [positions] = _made(name)
    long, count = torch.arange(64), 64
    scores = _scores(positions, _random(1, H, count, D), _random(1, H, count, D), long, long)
    loss = scores.square().sum() + add(_random(1, count, E), long).square().sum()
    values = positions.values(scores.detach().softmax(-1), long, long)
    (loss if values is None else loss + values.square().sum()).backward()
    for parameter in [*add.parameters(), *positions.parameters()]:
        reached = parameter.grad.ne(0)
        # Distances up to 63 reach 14 buckets of T5's before the query, and 13 after it.
        assert reached.all() if name != "t5" else reached.sum() == H * (14 + 13)


def test_gradients():
    _, [shaw] = _made("shaw")
    _, [rotary] = _made("rotary")
    _, [t5] = _made("t5")
    queries, keys = torch.arange(T) + 12, torch.arange(S)
    query = _random(1, H, T, D).requires_grad_()
    weights = _random(1, H, T, S, seed=1).requires_grad_()
    check = torch.autograd.gradcheck
    assert check(lambda x, _: rotary.rotate(x, queries), (query, weights))
    tables = tuple(shaw.parameters())
    assert check(lambda x, *_: shaw.key_scores(x, queries, keys), (query, *tables))
    assert check(lambda x, *_: shaw.values(x, queries, keys), (weights, *tables))
    assert check(lambda *_: t5.bias(queries, keys), tuple(t5.parameters()))


def test_layers_share_all_but_vectors():
    for name in POSITIONS:
        _, layers = _made(name, layers=3)
        assert len(layers) == 3
        assert len(set(layers)) == (3 if name == "shaw" else 1)


def test_unknown_positions():
    with pytest.raises(ConfigError, match="unknown positions 'rope': choose from sinusoidal, lea"):
        _made("rope")
