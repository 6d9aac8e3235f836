"""Options that several commands share, asked for through click."""

import dataclasses

import click
import pytest
from click.testing import CliRunner

from seqtools.cli import _options
from seqtools.cli._options import (
    NON_NEGATIVE,
    POSITIVE,
    PROBABILITY,
    FiniteFloat,
    NamesType,
    ShardType,
    Streams,
    collect,
    example,
    filter_options,
    stream_options,
)
from seqtools.streams.files import Shard


def convert(kind, text):
    """What an option of this type makes of a text."""
    seen = []

    @click.command()
    @click.option("--x", type=kind)
    def run(x):
        seen.append(x)

    done = CliRunner().invoke(run, ["--x", text])
    if done.exit_code:
        assert done.exit_code == 2
        assert "'--x'" in done.output
        raise ValueError(done.output)
    return seen[0]


@pytest.mark.parametrize("text", ["nan", "NaN", "inf", "-inf", "infinity", "1e999", "", "x", "1,5"])
def test_floats_are_finite_numbers(text):
    with pytest.raises(ValueError):
        convert(FiniteFloat(), text)
    with pytest.raises(ValueError):
        convert(PROBABILITY, text)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (FiniteFloat(0), ["0", "1e300", "-0.0"], ["-1e-9"]),
        (FiniteFloat(0, low_open=True), ["1e-9"], ["0", "-1"]),
        (FiniteFloat(0, 1, high_open=True), ["0", "0.999"], ["1", "1.5"]),
        (FiniteFloat(high=2), ["-1e300", "2"], ["2.1"]),
        (PROBABILITY, ["0", "1", "0.5"], ["-0.1", "1.5"]),
        (POSITIVE, ["1", "1000"], ["0", "-1", "1.5", "nan", ""]),
        (NON_NEGATIVE, ["0", "1"], ["-1", "x"]),
    ],
)
def test_bounds(kind, good, bad):
    for text in good:
        assert convert(kind, text) == float(text)
    for text in bad:
        with pytest.raises(ValueError):
            convert(kind, text)


def test_shards():
    assert convert(ShardType(), "1/1") == Shard(1, 1)
    assert convert(ShardType(), "3/17") == Shard(3, 17)
    for text in (
        "0/2",
        "3/2",
        "1",
        "/",
        "1/",
        "/1",
        "1/0",
        "-1/2",
        "+1/2",
        "a/b",
        "1/2/3",
        "１/２",
    ):
        with pytest.raises(ValueError):
            convert(ShardType(), text)


def test_names():
    assert convert(NamesType(), "src,tgt") == ("src", "tgt")
    assert convert(NamesType(), "a b") == ("a b",)
    for text in ("", ",", "a,", ",a", "a,,b", "a,b,a"):
        with pytest.raises(ValueError):
            convert(NamesType(), text)


def streams(decorate, *arguments):
    """The Streams that a command gets, and the output where it gets none."""
    seen = []

    @click.command()
    @decorate
    def run(streams):
        seen.append(streams)

    done = CliRunner().invoke(run, arguments)
    return (seen[0] if seen else None), done


def test_what_a_command_gets_by_default():
    assert streams(filter_options)[0] == Streams()
    assert Streams().files == ("-",)


def test_what_a_command_is_asked_for():
    found, _ = streams(
        filter_options,
        *("a", "-", "b", "-o", "out", "--rejects", "bad", "--max-rejects", "0", "--jobs", "3"),
        *("--shard", "2/3", "--first-record", "0", "--quiet", "--debug"),
    )  # fmt: skip
    assert found == Streams(("a", "-", "b"), "out", "bad", 0, 3, Shard(2, 3), 0, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--max-rejects", "1"], "--max-rejects needs --rejects FILE."),
        (["--rejects", "x", "-o", "x"], "Output and --rejects go to the same place."),
        (["--rejects", "x", "--max-rejects", "-1"], "'--max-rejects'"),
        (["--jobs", "0"], "'--jobs'"),
        (["--first-record", "-1"], "'--first-record'"),
    ],
)
def test_what_makes_no_sense(arguments, said):
    found, done = streams(filter_options, *arguments)
    assert (found, done.exit_code) == (None, 2)
    assert said in done.output


def test_options_are_there_where_they_mean_something():
    for option in ("--rejects", "--shard", "--jobs"):
        decorate = stream_options(rejects=False, shard=False)
        assert streams(decorate, option, "1")[1].exit_code == 2
    found, _ = streams(stream_options(rejects=False, shard=False))
    assert found == Streams()


def test_an_example_keeps_its_lines():
    @click.command(epilog=example("$ printf 'a' \\", "    | seq-x   kind"))
    def run():
        pass

    output = CliRunner().invoke(run, ["--help"]).output
    assert output.endswith("  Example:\n    $ printf 'a' \\\n        | seq-x   kind\n")


def test_the_version_and_the_seed(monkeypatch):
    monkeypatch.setattr("sys.argv", ["/usr/bin/seq-toy"])

    @_options.group("toy", "Plays.")
    def cli():
        pass

    seen = []

    @cli.command()
    @_options.seed_option
    @filter_options
    def kind(streams, seed):
        seen.append(seed)

    runner = CliRunner()
    for arguments in (["--version"], ["kind", "--version"], ["kind", "--jobs", "0", "--version"]):
        done = runner.invoke(cli, arguments)
        assert done.exit_code == 0
        assert done.output.startswith("seq-toy (seqtools) ")
    for arguments in ([], ["--seed", "7"]):
        assert runner.invoke(cli, ["kind", *arguments]).exit_code == 0
    assert seen == [0, 7]
    assert runner.invoke(cli, ["kind", "--seed", "-1"]).exit_code == 2


def test_a_forgotten_kind_is_asked_for_by_name():
    @_options.group("toy", "Plays.")
    def cli():
        pass

    for name in ("heatmap", "table"):
        cli.command(name)(lambda: None)
    runner = CliRunner()
    for arguments, said in (
        (["-o", "x", "table"], "A kind is missing before '-o': heatmap, table."),
        (["--model", "m"], "A kind is missing before '--model': heatmap, table."),
        (["a.jsonl"], "No such command 'a.jsonl'; a kind is missing: heatmap, table."),
        (["--", "-x"], "No such command '-x'; a kind is missing: heatmap, table."),
    ):
        done = runner.invoke(cli, arguments)
        assert done.exit_code == 2
        assert done.output.endswith(f"Error: {said}\n")
    near = runner.invoke(cli, ["tabel"])
    assert near.exit_code == 2
    assert "No such command 'tabel'" in near.output
    assert "missing" not in near.output
    assert runner.invoke(cli, ["table"]).exit_code == 0


def test_help_has_a_short_name():
    @_options.group("toy", "Plays.")
    def cli():
        pass

    cli.command("table")(lambda: None)
    for kind in ([], ["table"]):
        short, long = (CliRunner().invoke(cli, [*kind, flag]) for flag in ("-h", "--help"))
        assert (short.exit_code, short.output) == (0, long.output)
        assert short.output.startswith("Usage: ")


@dataclasses.dataclass(frozen=True)
class Sum:
    left: int
    right: int
    minus: bool = False

    def __post_init__(self):
        if self.right == 13:
            raise click.UsageError("13 brings bad luck.")


def test_options_are_collected_into_one_value():
    options = (click.option("--left", type=int, required=True), click.option("--right", type=int))
    seen = []

    @click.command()
    @collect(Sum, "numbers", options)
    @click.option("--own")
    def run(own, numbers):
        seen.append((own, numbers))

    done = CliRunner().invoke(run, ["--left", "1", "--own", "x"])
    assert (done.exit_code, seen) == (0, [("x", Sum(1, None, minus=False))])
    done = CliRunner().invoke(run, ["--left", "1", "--right", "13"])
    assert done.exit_code == 2
    assert "bad luck" in done.output
    text = CliRunner().invoke(run, ["--help"]).output
    assert text.index("--left") < text.index("--right") < text.index("--own")


def test_the_help_says_what_is_typed():
    from seqtools.cli import batch, train

    text = CliRunner().invoke(train.cli, ["rnn", "--help"]).output
    for words in ("--device cpu|cuda|cuda:N|auto", "--max-time SECONDS|Nm|Nh", "--layers N "):
        assert words in text
    assert "--offset N|random" in CliRunner().invoke(batch.cli, ["lm", "--help"]).output
