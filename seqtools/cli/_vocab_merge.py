"""The kind merge of seq-vocab."""

from __future__ import annotations

import click

from seqtools.cli._io import Session
from seqtools.cli._options import ListOption, NamesType, Streams, example, stream_options
from seqtools.cli._vocab_options import Size, judge, roles, size_options
from seqtools.errors import FormatError


@click.command(
    epilog=example(
        """$ echo '{"tokens":["to","be"]}' | seq-vocab build --specials none > first.vocab""",
        """$ echo '{"tokens":["be","brief"]}' | seq-vocab build --specials none > second.vocab""",
        "$ seq-vocab merge first.vocab second.vocab",
        '{"id":0,"token":"be","count":2}',
        '{"id":1,"token":"brief","count":1}',
        '{"id":2,"token":"to","count":1}',
    )
)
@size_options
@click.option(
    "--specials", cls=ListOption, type=NamesType(), metavar="LIST|none",
    help="Specials as for build; by default all files must have the same, which are kept.",
)  # fmt: skip
@stream_options(rejects=False, shard=False)
def merge(streams: Streams, size: Size, specials: tuple[str, ...] | None) -> None:
    """Make one vocabulary of several: counts are added, and ids given anew.

    What --shard I/N built, without --max-size and --min-count, becomes what one run over the whole
    would have built. Vocabularies without counts, as of a model of subwords, keep the order in
    which their tokens are met.
    """
    from seqtools.text.merging import Merger
    from seqtools.text.vocab import Vocabulary

    merger = Merger(None if specials is None else roles(specials))
    with Session(streams, "files") as session:
        for path in streams.files:
            vocabulary = Vocabulary.read(path)
            try:
                merger.add(vocabulary)
            except FormatError as error:
                raise FormatError(f"{path}: {error}") from None
            session.records += 1
            session.progress()
        vocabulary = merger.result(
            max_size=size.max_size, min_count=size.min_count, multiple=size.pad_to_multiple
        )
        for entry in vocabulary.entries():
            session.write(entry)
        judge(vocabulary, merger.counts, size.min_count)
