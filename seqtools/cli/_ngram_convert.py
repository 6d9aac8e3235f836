"""The kinds of seq-ngram: convert."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from seqtools.cli._io import Session
from seqtools.cli._ngram_options import tell_of_compiling
from seqtools.cli._options import Streams, example, stream_options
from seqtools.errors import SeqtoolsError
from seqtools.streams.files import STDIN

if TYPE_CHECKING:
    from seqtools.ngram.model import Model

_ENDINGS = {"arpa": ".arpa", "binary": ".safetensors", "jsonl": ".jsonl"}
_COMPRESSED = (".gz", ".zst", ".xz", ".bz2")


@click.command(
    epilog=example(
        r"""$ printf 'a b\na b\na c\nb a\n' | seq-ngram train --order 2 --text -o k.arpa --quiet""",
        "$ seq-ngram convert k.arpa -o k.safetensors",
        """$ seq-ngram convert k.safetensors | jq -c 'select(.ngram == ["a","b"])'""",
        '{"ngram":["a","b"],"logprob":-1.1281055}',
    )
)
@click.option("--model", metavar="FILE", help="The model, instead of FILE.")
@click.option(
    "--to", type=click.Choice([*_ENDINGS]),
    help="What to write, where the name of -o does not say it; binary is that of .safetensors.",
)  # fmt: skip
@stream_options(rejects=False, shard=False)
def convert(streams: Streams, model: str | None, to: str | None) -> None:
    """Write a model in another format.

    Reads ARPA or what seq-ngram train made, and writes what the name of -o says: FILE.arpa, or
    compressed FILE.arpa.gz (.zst, .xz, .bz2); FILE.safetensors, which opens at once; FILE.jsonl,
    which is for jq and cannot be read back.

    Without -o it writes JSONL: each n-gram with logprob and, below the highest order, backoff,
    natural logarithms both, in the order of ARPA: shorter ones first, then by the last word, the
    one before it, and so on.
    """
    path = _one_model(streams.files, model)
    form = to or _form(streams.output)
    from seqtools.ngram import arpa
    from seqtools.ngram.model import load, save

    tell_of_compiling(streams)
    with Session(dataclasses.replace(streams, files=(path,))) as session:
        found = load(path)
        if form == "arpa":
            _check_arpa(found, path)
            arpa.write(found.words, found.levels, session.output.write)
        elif form == "binary":
            save(found, session.output.write)
        else:
            from seqtools.ngram.listing import list_ngrams

            for block in list_ngrams(found):
                session.output.write(block)


def _one_model(files: tuple[str, ...], model: str | None) -> str:
    given = files if model is None else (model,)
    if len(given) != 1 or (model is not None and files != (STDIN,)):
        raise click.UsageError("One model at a time: FILE, or --model FILE.")
    return given[0]


def _check_arpa(model: Model, path: str) -> None:
    """See that ARPA can hold the model of that file.

    Raises:
        SeqtoolsError: it cannot.
    """
    from seqtools.ngram import arpa

    try:
        arpa.check(model)
    except SeqtoolsError as error:
        raise type(error)(f"{path}: {error}") from None


def _form(output: str | None) -> str:
    """What a name asks for."""
    if output is None or output == STDIN:
        return "jsonl"
    name = output
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    for form, ending in _ENDINGS.items():
        if name.endswith(ending) and (form != "binary" or name == output):
            return form
    raise click.UsageError(
        f"-o {output}: the name ends in .arpa, .arpa.gz (.zst, .xz, .bz2), .safetensors or .jsonl,"
        " or --to says what to write."
    )


kinds: tuple[click.Command, ...] = (convert,)
