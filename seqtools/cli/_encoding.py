"""Records to ids the way the model's training data was encoded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seqtools.cli._decode_hints import read_tokens
from seqtools.cli._decode_items import Item, Symbols
from seqtools.cli._decode_length import Length
from seqtools.cli._run import warn
from seqtools.errors import ConfigError, RecordError
from seqtools.models.description import Description, describe
from seqtools.streams.files import Place
from seqtools.streams.records import Record, get_ids

if TYPE_CHECKING:
    import torch

# The names that a task's input and output have in records and among the vocabularies.
_SOURCE = {"seq2seq": ("src_", "source")}
_TARGET = {"lm": ("", "tokens"), "mlm": ("", "tokens"), "seq2seq": ("tgt_", "target")}
# The kinds of seq-decode that serve a task.
_KINDS = {
    "lm": "greedy, beam, sample, score, predict and encode",
    "mlm": "fill and encode",
    "seq2seq": "greedy, beam, sample and score",
}
_MANY = 8  # unknown tokens; with fewer, odd names in short records would look like a mistake
_PROPOSED = ("unk", "eos")  # the roles that may be proposed
_LENGTHS = {"lm": Length(0, 100), "seq2seq": Length(2, 10)}  # of outputs, unless one is asked for


class Encoder:
    """What the files of one or several models say about records.

    Args:
        model: the model's description; of several, the first one's.
        paths: the files.
        others: descriptions of the others; all have the same task and vocabularies.
        vocabularies: those of the model, where they are not in its description.

    Raises:
        ConfigError: the model is of a task that has no sequences to produce, or one of several
            cannot be asked together with the first.
    """

    def __init__(
        self,
        model: Description,
        paths: Sequence[str] = (),
        *,
        others: Sequence[Description] = (),
        vocabularies: Mapping[str, Symbols] | None = None,
    ) -> None:
        if model.task not in _TARGET:
            raise ConfigError(f"seq-decode does not serve models for the task {model.task}")
        vocabularies = vocabularies or model.vocabularies
        self.task = model.task
        self.counts: Counter[str] = Counter()  # what is to be warned about
        self.paths = paths
        configs = [one.config for one in (model, *others)]
        self._options = model.batching
        self._reach = least(config.get("max_source") for config in configs)
        # of sources, and of what is fed and produced, where a model beside may have fewer
        self._source_positions = self.positions = least(
            config.get("max_positions") for config in configs if config.get("position") == "learned"
        )
        self._kind = "ids" if self._options.get("ids") else "tokens"
        self._target_prefix, self._target_name = _TARGET[self.task]
        self._source_prefix, self._source_name = _SOURCE.get(self.task, ("", ""))
        self.source_vocabulary = vocabularies.get(self._source_name)
        self.vocabulary = vocabularies[self._target_name]
        self._warned = False
        for path, other in zip(paths[1:], others, strict=bool(paths)):
            self._agree(path, model, other)

    @classmethod
    def open(cls, paths: Sequence[str]) -> Encoder:
        """Read the descriptions in the models' files; torch is not needed for that."""
        first, *others = [describe(path) for path in paths]
        return cls(first, paths, others=others)

    def load(self, device: torch.device) -> Any:
        """The model itself, or an ensemble of several.

        Raises:
            FormatError: one cannot be loaded.
        """
        from seqtools.models.store import load_model

        models = [load_model(path, device=device).model.eval() for path in self.paths]
        if len(models) == 1:
            return models[0]
        from seqtools.decoding.ensemble import Ensemble

        return Ensemble(models)

    @property
    def file(self) -> str:
        """What messages call the model: its file."""
        return self.paths[0] if self.paths else "this one"

    def require(self, tasks: Sequence[str], what: str | None = None) -> None:
        """See that the model is of one of `tasks`.

        Args:
            tasks: those that are served.
            what: the option that serves them; the kind of seq-decode itself if None.

        Raises:
            ConfigError: it is of another.
        """
        if self.task not in tasks:
            others = "" if what else f", which {_KINDS[self.task]} serve"
            raise ConfigError(
                f"{what or 'this kind'} is for models of the task {' or '.join(tasks)};"
                f" {self.file} is for {self.task}{others}"
            )

    @property
    def banned(self) -> list[int]:
        """Ids that are never proposed."""
        specials = self.vocabulary.specials.items()
        return [number for role, number in specials if role not in _PROPOSED]

    @property
    def start(self) -> list[int]:
        """The symbol fed first: a model of windows has seen records only behind a line end."""
        return self._start(self._options)

    @property
    def ends(self) -> bool:
        """Whether an end is put behind what is to be scored."""
        return self._kind == "tokens" and self.vocabulary.eos is not None

    def id_of(self, token: str, option: str) -> int:
        """The id of a token that an option names; specials may be named too.

        Raises:
            ConfigError: the model does not know it.
        """
        vocabulary = self.vocabulary
        for number in vocabulary.specials.values():
            if vocabulary.decode([number]) == [token]:
                return number
        unknown = ConfigError(f"{option} {token}: the model does not know this token")
        try:
            [number] = vocabulary.encode([token])
        except RecordError:
            raise unknown from None
        if number == vocabulary.unk:
            raise unknown
        return number

    def prompt(self, place: Place, raw: bytes, record: Record) -> Item:
        """Encode what the model is to continue or translate.

        Raises:
            RecordError: a field is missing or of another type, or cannot be encoded.
        """
        begin = self._begin(record, place)
        if self.source_vocabulary is not None:
            source, cut = self._encode_source(record, place)
            prefix = self._started([])
            item = Item(place, raw, record, prefix, source, source_cut=cut, begin=begin)
        else:
            ids = self._encode_targets(record, place)
            item = Item(place, raw, record, self._started(ids), begin=begin)
        refuse_long(len(item.prefix), self.positions, "the prompt")
        return item

    def empty(self, number: int) -> Item:
        """A new record, from the empty prompt.

        Raises:
            RecordError: the model knows no symbol to start from.
        """
        return Item(Place("--count", number, number), b"", {}, self._started([]))

    def pair(self, place: Place, raw: bytes, record: Record, *, windows: bool = False) -> Item:
        """Encode what the model is to score.

        Args:
            place, raw, record: what is encoded.
            windows: it may be longer than the model's positions.

        Raises:
            RecordError: a field is missing or of another type, or cannot be encoded.
        """
        source, cut = None, 0
        if self.source_vocabulary is not None:
            source, cut = self._encode_source(record, place)
        ids = self._encode_targets(record, place)
        if self._kind == "ids":  # taken as they are: the first one has nothing before it
            prefix, targets = ids[:1], ids[1:]
        else:
            end = [] if self.vocabulary.eos is None else [self.vocabulary.eos]
            prefix, targets = self._started([]), ids + end
        if not windows:
            advice = f"; --window {self.positions} scores it in parts" if self.task == "lm" else ""
            refuse_long(len(targets), self.positions, "the text", advice)
        return Item(place, raw, record, prefix, source, source_cut=cut, targets=targets)

    def source_length(self, item: Item) -> int:
        """Tokens of an item's source, its end not counted."""
        vocabulary = self.source_vocabulary
        ends = self._kind == "tokens" and vocabulary is not None and vocabulary.eos is not None
        return len(item.source or ()) - ends

    def max_length(self, item: Item, asked: Length | None) -> int:
        """How long an item's output may be: as asked, and as far as the model's positions go."""
        wanted = self._wanted(item, asked)
        return wanted if self.positions is None else min(wanted, self._room(item))

    def cut_short(self, item: Item, asked: Length | None) -> bool:
        """Whether the model's positions end before the output is as long as it may be."""
        return self.positions is not None and self._room(item) < self._wanted(item, asked)

    def report(self) -> None:
        """Warn about what was changed on the way to ids, and what was not there to write."""
        counts = self.counts
        if counts["truncated"]:
            limit, number = self._options["max_length"], counts["truncated"]
            warn(f"texts cut to the {limit} tokens that the model was trained on: {number}")
        if counts["without attention"]:
            several = len(self.paths) > 1
            warn(
                "the models have no attention of like layers and heads, whose mean could be written"
                if several
                else "the model has no attention to write"
            )
        if counts["reserved"]:
            warn(f"tokens spelled like special symbols, read as unknown: {counts['reserved']}")
        if counts["unseen pairs"]:
            warn(f"second texts, of which training had none: {counts['unseen pairs']}")
        if counts["short of positions"]:
            warn(
                f"outputs cut where the model's {self.positions} positions end:"
                f" {counts['short of positions']}"
            )

    def _agree(self, path: str, model: Description, other: Description) -> None:
        """See that another model can be asked together with the first."""
        if other.task != model.task:
            wrong = f"is for {other.task}"
            raise ConfigError(f"{path} {wrong}, but {self.paths[0]} for {model.task}")
        if other.vocabularies != model.vocabularies:
            raise ConfigError(f"{path} and {self.paths[0]} do not have the same vocabularies")
        same = self._start(other.batching) == self.start
        if not same or bool(other.batching.get("ids")) != (self._kind == "ids"):
            raise ConfigError(f"{path} and {self.paths[0]} were not trained on records cut alike")

    def _wanted(self, item: Item, asked: Length | None) -> int:
        return (asked or _LENGTHS[self.task]).of(self.source_length(item))

    def _room(self, item: Item) -> int:
        return (self.positions or 0) - len(item.prefix) + 1

    def _start(self, options: Mapping[str, Any]) -> list[int]:
        windows = options.get("sampling") in ("random", "sequential")
        symbol = self.vocabulary.eos if windows else self.vocabulary.bos
        return [] if symbol is None else [symbol]

    def _begin(self, record: Record, place: Place) -> list[int]:
        """The ids that the output has to begin with."""
        if f"prefix_{self._kind}" not in record:
            return []
        return self._encode(record, "prefix_", self._target_name, self.vocabulary, place)

    def _encode_targets(self, record: Record, place: Place) -> list[int]:
        name = self._target_name
        return self._encode(record, self._target_prefix, name, self.vocabulary, place)

    def _started(self, ids: list[int]) -> list[int]:
        prefix = ids if self._kind == "ids" and ids else [*self.start, *ids]
        if not prefix:
            raise RecordError(
                "the model knows no symbol to start from, so the prompt must not be empty"
            )
        return prefix

    def _encode_source(self, record: Record, place: Place) -> tuple[list[int], int]:
        """The ids of the source, and how many tokens were left out before them."""
        vocabulary = self.source_vocabulary
        assert vocabulary is not None
        ids = self._encode(record, self._source_prefix, self._source_name, vocabulary, place)
        end = [] if self._kind == "ids" or vocabulary.eos is None else [vocabulary.eos]
        limit, truncate = self._options.get("max_length"), self._options.get("truncate")
        room = None if limit is None or truncate == "drop" else limit - len(end)
        cut = 0
        if room is not None and len(ids) > room:
            if truncate == "error":
                raise RecordError(f"the source has length {len(ids) + len(end)}, more than {limit}")
            self.counts["truncated"] += 1
            cut = len(ids) - room if truncate == "left" else 0
            ids = ids[cut : cut + room]
        source = ids + end
        if not source:
            raise RecordError("the source is empty")
        if self._reach is not None and len(source) > self._reach:
            raise RecordError(
                f"the source has length {len(source)}, but the model's attention reaches"
                f" {self._reach}"
            )
        refuse_long(len(source), self._source_positions, "the source")
        return source, cut

    def _encode(
        self, record: Record, prefix: str, name: str, vocabulary: Symbols, place: Place
    ) -> list[int]:
        if self._kind == "ids":
            return get_ids(record, f"{prefix}ids", len(vocabulary))
        tokens = read_tokens(record, f"{prefix}tokens")
        ids = vocabulary.encode(tokens)
        unknown = 0 if vocabulary.unk is None else ids.count(vocabulary.unk)
        if unknown:
            spellings = vocabulary.spellings()
            self.counts["reserved"] += sum(token in spellings for token in tokens)
            self._warn_of_unknown(unknown, len(tokens), name, place)
        return ids

    def _warn_of_unknown(self, unknown: int, count: int, name: str, place: Place) -> None:
        """Once: all tokens of a record are unknown, or many and far more than in training."""
        known = self._options.get("unknown_share", {}).get(name)
        usual = known or 0.0
        many = unknown >= _MANY and unknown / count > (1 + usual) / 2
        if self._warned or not (many or unknown == count):
            return
        self._warned = True
        training = "" if known is None else f" (in training {usual:.1%})"
        warn(
            f"{place.source}:{place.line}: {unknown} of {count} tokens are unknown to the model"
            f"{training}; were they made by the same tokenizer?"
        )


def least(limits: Iterable[int | None]) -> int | None:
    """The lowest of the limits that there are."""
    return min((limit for limit in limits if limit is not None), default=None)


def refuse_long(length: int, positions: int | None, what: str, advice: str = "") -> None:
    """See that what is fed has a position for each of its inputs.

    Raises:
        RecordError: it is longer.
    """
    if positions is not None and length > positions:
        raise RecordError(
            f"{what} takes {length} inputs, which is longer than the model's {positions} positions"
            f"{advice}"
        )
