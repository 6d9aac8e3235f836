"""The kinds keywords and idf of seq-stats."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from seqtools.cli._io import Session
from seqtools.cli._options import (
    POSITIVE,
    ListOption,
    NamesType,
    Streams,
    collect,
    example,
    refuse_same_input,
)
from seqtools.cli._stats_run import Mode, run_statistic, statistic_options
from seqtools.cli._stats_show import Drawing, Histogram, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seqtools.streams.parallel import Counts, Transform
    from seqtools.streams.records import Record
    from seqtools.text.keywords import Wanted
    from seqtools.text.keywords.corpus import CorpusKeywords, Shape
    from seqtools.text.keywords.idf import IdfTable

_ROWS = 60  # of a table on a terminal


@dataclass(frozen=True)
class Choice:
    """Which words, and how they are weighed; see the options of the same names."""

    field: str
    method: str
    top: int
    corpus: bool
    by: str | None
    idf: str | None
    stopwords: str | None
    min_length: int
    pos: tuple[str, ...] | None

    def __post_init__(self) -> None:
        if self.idf is not None and self.method == "textrank":
            raise click.UsageError("--idf is for --method tfidf.")
        if self.corpus and self.by:
            raise click.UsageError("--corpus and --by are two ways to put records together.")

    @property
    def together(self) -> bool:
        """Keywords are of many records."""
        return self.corpus or self.by is not None

    def shape(self) -> Shape:
        """Where the words are, and which count."""
        from seqtools.text.keywords.corpus import Shape

        return Shape(self.field, self._wanted())

    def of_state(self, stated: Record) -> Choice:
        """With what a state says of how it was made; it does not have the words of --stopwords."""
        names = ("field", "by", "method", "min_length", "pos")
        return replace(self, **{name: stated[name] for name in names if name in stated})

    def _wanted(self) -> Wanted:
        from seqtools.streams.files import read_blocks
        from seqtools.text.keywords import STOPWORDS, Wanted, read_stopwords

        stopwords = STOPWORDS
        if self.stopwords is not None:
            text = b"".join(block.data for block in read_blocks([self.stopwords]))
            try:
                stopwords = read_stopwords(text.decode().split("\n"))
            except UnicodeDecodeError:
                raise click.UsageError(f"{self.stopwords}: not UTF-8") from None
        pos = None if self.pos is None else frozenset(self.pos)
        return Wanted(stopwords, self.min_length, pos)

    def table(self) -> IdfTable | None:
        """How rare words are; None for TextRank."""
        from seqtools.text.keywords.idf import IdfTable

        if self.method == "textrank":
            return None
        return IdfTable.of_jieba() if self.idf is None else IdfTable.read(self.idf)


_OPTIONS = (
    click.option(
        "--field", default="tokens", show_default=True,
        help="A list of tokens; F_tokens gets F_keywords (tokens: keywords).",
    ),
    click.option(
        "--method", type=click.Choice(["tfidf", "textrank"]), default="tfidf", show_default=True,
        help="Frequent here and rare elsewhere, or near words that matter.",
    ),
    click.option(
        "--top", type=POSITIVE, default=20, show_default=True, help="How many keywords at most."
    ),
    click.option(
        "--corpus", is_flag=True, help="Keywords of all records as one text: a record for each."
    ),
    click.option(
        "--by", metavar="FIELD", help="The same for each class, which the string FIELD names."
    ),
    click.option(
        "--idf", metavar="FILE",
        help="How rare words are: what seq-stats idf wrote, or lines of WORD IDF; without it,"
        " jieba's table of Chinese words. Other words get its median.",
    ),
    click.option(
        "--stopwords", metavar="FILE",
        help="Words to pass over, one a line, besides the 31 English ones that jieba does.",
    ),
    click.option(
        "--min-length", type=POSITIVE, default=2, show_default=True,
        help="Pass over words of fewer code points.",
    ),
    click.option(
        "--pos", cls=ListOption, type=NamesType(), metavar="LIST",
        help="Only words whose part of speech, in F_pos, is one of these, as in n,ns,vn,v.",
    ),
)  # fmt: skip


@click.command(
    epilog=example(
        "$ echo 我来到北京清华大学 | seq-tokenize jieba --text > school.jsonl",
        "$ seq-stats keywords --top 2 school.jsonl",
        '{"text":"我来到北京清华大学","tokens":["我","来到","北京","清华大学"],',
        '"keywords":[["清华大学",2.6935315738733334],["来到",1.79522896137]]}',
        "$ seq-stats keywords --method textrank --top 1 --corpus school.jsonl",
        '{"token":"清华大学","count":1,"weight":1.0}',
    )
)
@collect(Choice, "choice", _OPTIONS)
@statistic_options
def keywords(streams: Streams, mode: Mode, choice: Choice) -> None:
    """Keywords of each record, as pairs of a word and its weight, heaviest first.

    For the same words the weights are those of jieba.analyse, extract_tags and textrank; ties stand
    in order of appearance. jieba's textrank looks at nouns and verbs only: --pos n,ns,vn,v, for
    what seq-tokenize jieba --pos made.
    """
    from seqtools.text.keywords.corpus import CorpusKeywords

    refuse_same_input(streams, "--idf", choice.idf)
    refuse_same_input(streams, "--stopwords", choice.stopwords)
    shape, table = choice.shape(), choice.table()

    def make(stated: Record) -> CorpusKeywords:
        if not stated:
            return CorpusKeywords(shape, table, by=choice.by, top=choice.top)
        chosen = choice.of_state(stated)
        return CorpusKeywords(chosen.shape(), chosen.table(), by=chosen.by, top=chosen.top)

    if choice.together or mode.merge:
        run_statistic(streams, mode, make, _show, most=_ROWS, remark=_tell_of_unknown)
        return
    for name in ("partial", "table"):
        if getattr(mode, name):
            raise click.UsageError(f"--{name} needs --corpus or --by.")
    with Session(streams) as session:
        counts = session.filter(lambda counts: _adder(shape, table, choice.top, counts))
        _tell(session, counts["words"], counts["unknown"])


def _tell_of_unknown(session: Session, found: CorpusKeywords) -> None:
    _tell(session, *found.count_unknown())


def _tell(session: Session, words: int, unknown: int) -> None:
    if unknown:
        share = unknown / words
        session.summary(f"{unknown} of {words} words are not in the IDF table (share {share:.4g})")


def _adder(shape: Shape, table: IdfTable | None, top: int, counts: Counts) -> Transform:
    """What adds keywords to a record."""
    from seqtools.text.fields import base, derived
    from seqtools.text.keywords import best
    from seqtools.text.keywords.idf import count_unknown
    from seqtools.text.keywords.textrank import count_pairs, rank
    from seqtools.text.keywords.tfidf import weigh

    name = derived(base(shape.field, "tokens"), "keywords")

    def transform(record: Record, number: int) -> Record:
        words = shape.words(record)
        if table is None:
            weights = rank(count_pairs(words))
        else:
            weights = weigh(words, table)
            total, unknown = count_unknown(words, table)
            counts["words"] += total
            counts["unknown"] += unknown
        record[name] = best(weights, top)
        return record

    return transform


def _show(records: list[Record]) -> Iterator[Drawing]:
    columns = [*records[0]] if records else ["token", "count", "weight"]
    yield Table("keywords", columns, [[*record.values()] for record in records])
    names = columns[:-2]
    bars = [(" ".join(record[name] for name in names), record["weight"]) for record in records]
    if bars:
        yield Histogram("", bars)


@click.command(
    epilog=example(
        """$ printf '{"tokens":["a","cat"]}\\n{"tokens":["a","dog"]}\\n' | seq-stats idf""",
        '{"token":"a","documents":2,"idf":0.0}',
        '{"token":"cat","documents":1,"idf":0.6931471805599453}',
        '{"token":"dog","documents":1,"idf":0.6931471805599453}',
    )
)
@click.option("--field", default="tokens", show_default=True, help="A list of tokens.")
@click.option(
    "--min-count", type=POSITIVE, default=1, show_default=True,
    help="Leave out tokens in fewer records.",
)  # fmt: skip
@statistic_options
def idf(streams: Streams, mode: Mode, field: str, min_count: int) -> None:
    """In how many records each token is, and ln(records / those), for keywords --idf.

    Memory grows with the number of types.
    """
    from seqtools.text.keywords.idf import DocumentCounts

    def show(records: list[Record]) -> Iterator[Drawing]:
        columns = ["token", "documents", "idf"]
        rows = [[record[column] for column in columns] for record in records]
        yield Table("in most records", columns, rows)

    def make(stated: Record) -> DocumentCounts:
        return DocumentCounts(stated.get("field", field), min_count=min_count)

    run_statistic(streams, mode, make, show, most=_ROWS)
