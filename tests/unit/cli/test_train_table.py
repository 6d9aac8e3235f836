"""The table of parameters, where layers that are alike share their lines."""

from seqtools.cli._train_table import Row, show_table, table_rows
from seqtools.models.store import build_model, summary
from seqtools.text.vocab import Vocabulary

WEIGHT, BIAS = (("weight", (4, 2)), ("bias", (4,)))


def layer(stack: str, number: int, *parts: tuple[str, tuple[int, ...]]):
    return [(f"{stack}.{number}.{name}", shape) for name, shape in parts]


def test_alike_layers_are_one_line_for_each_part() -> None:
    layers = [part for number in range(3) for part in layer("a.layers", number, WEIGHT, BIAS)]
    assert table_rows([("table", (9, 2)), *layers, ("bias", (9,))]) == [
        Row("table", (9, 2)),
        Row("a.layers.0-2.weight", (4, 2), 3),
        Row("a.layers.0-2.bias", (4,), 3),
        Row("bias", (9,)),
    ]


def test_layers_that_differ_stand_by_themselves() -> None:
    wide = ("weight", (4, 3))
    parameters = [
        *layer("a", 0, wide, BIAS), *layer("a", 1, WEIGHT, BIAS), *layer("a", 2, WEIGHT, BIAS),
        *layer("a", 3, WEIGHT), *layer("b", 0, WEIGHT), *layer("b", 1, WEIGHT),
    ]  # fmt: skip
    assert [(row.name, row.times) for row in table_rows(parameters)] == [
        ("a.0.weight", 1), ("a.0.bias", 1), ("a.1-2.weight", 2), ("a.1-2.bias", 2),
        ("a.3.weight", 1), ("b.0-1.weight", 2),
    ]  # fmt: skip


def test_parameters_of_one_name_and_shape_outside_of_layers_are_not_joined() -> None:
    assert table_rows([("a", (1,)), ("b", (1,))]) == [Row("a", (1,)), Row("b", (1,))]
    assert table_rows([]) == []


def test_a_transformer_on_stderr(capfd) -> None:
    words = Vocabulary.build({"a": 2, "b": 1})
    sizes = {"layers": 3, "decoder_layers": 1, "hidden": 8, "heads": 2}
    model = build_model("transformer", "seq2seq", sizes, {"source": words, "target": words}, seed=1)
    rows = [(name, shape) for name, shape, _ in summary(model)]
    show_table("transformer", rows)
    lines = [" ".join(line.split()) for line in capfd.readouterr().err.splitlines()]
    assert "encoder.layers.0-2.own.query.weight 8 x 8 3 x 64" in lines
    assert "decoder.stack.layers.0.own.query.weight 8 x 8 64" in lines
    total = sum(count for _, _, count in summary(model))
    assert lines[-1] == f"total {total:,}"
    assert len(lines) < len(rows)
