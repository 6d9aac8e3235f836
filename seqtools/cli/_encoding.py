"""Records to ids the way the model's training data was encoded, and hypotheses to fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from seqtools.cli._run import warn
from seqtools.errors import ConfigError, RecordError
from seqtools.models.description import Description, describe
from seqtools.streams.files import Place
from seqtools.streams.records import Record, get_ids, get_tokens

if TYPE_CHECKING:
    import torch

    from seqtools.decoding.hypothesis import Array, Hypothesis

# The names that a task's input and output have in records and among the vocabularies.
_SOURCE = {"seq2seq": ("src_", "source")}
_TARGET = {"lm": ("", "tokens"), "seq2seq": ("tgt_", "target")}
_MANY = 8  # unknown tokens; with fewer, odd names in short records would look like a mistake
_NEVER = ("pad", "bos", "mask", "cls", "sep")  # roles that are never proposed


class Symbols(Protocol):
    """What is asked of a vocabulary here; `text.vocab.Vocabulary` is one."""

    @property
    def specials(self) -> Mapping[str, int]:
        """Role to id."""
        ...

    @property
    def unk(self) -> int | None:
        """Id that stands for every unknown token."""
        ...

    @property
    def bos(self) -> int | None:
        """Id of the symbol before a sequence."""
        ...

    @property
    def eos(self) -> int | None:
        """Id of the symbol after a sequence."""
        ...

    def __len__(self) -> int: ...

    def encode(self, tokens: Sequence[str]) -> list[int]:
        """Ids of `tokens`, RecordError where there is none for one."""
        ...

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Tokens of `ids`."""
        ...

    def spellings(self) -> frozenset[str]:
        """What the specials are spelled like, if text cannot become a token of that spelling."""
        ...


@dataclass
class Item:
    """A record on its way through the model.

    Attributes:
        place: where it stands.
        raw: its line.
        record: what the line holds.
        prefix: ids fed before the first target or produced token.
        source: ids of the source, None for an lm.
        targets: ids to be scored, empty where the model is to produce some.
        added: fields made of it.
        error: why it could not be decoded.
    """

    place: Place
    raw: bytes
    record: Record
    prefix: list[int]
    source: list[int] | None = None
    targets: list[int] = field(default_factory=list)
    added: dict[str, Any] = field(default_factory=dict)
    error: str | None = None

    @property
    def width(self) -> int:
        """Positions that the record takes in a batch."""
        return max(len(self.prefix) + len(self.targets), len(self.source or ()))

    @property
    def name(self) -> str:
        """What the record's random choices depend on: its `id`, or its number without one."""
        name = self.record.get("id")
        return str(name if type(name) in (str, int) else self.place.number)


class Encoder:
    """What a model's file says about records.

    Args:
        model: the model's description.
        path: the file.
        vocabularies: those of the model, where they are not in its description.

    Raises:
        ConfigError: the model is of a task that has no sequences to produce.
    """

    def __init__(
        self,
        model: Description,
        path: str = "",
        *,
        vocabularies: Mapping[str, Symbols] | None = None,
    ) -> None:
        if model.task not in _TARGET:
            raise ConfigError(f"seq-decode does not serve models for the task {model.task}")
        vocabularies = vocabularies or model.vocabularies
        self.task = model.task
        self._path = path
        self._options = model.batching
        location = model.config.get("attention") == "location"
        self._longest = model.config.get("max_source") if location else None
        self._kind = "ids" if self._options.get("ids") else "tokens"
        self._target_prefix, self._target_name = _TARGET[self.task]
        self._source_prefix, self._source_name = _SOURCE.get(self.task, ("", ""))
        self._source = vocabularies.get(self._source_name)
        self.vocabulary = vocabularies[self._target_name]
        self._warned = False
        self.truncated = 0
        self.reserved = 0
        self.without_attention = 0

    @classmethod
    def open(cls, path: str) -> Encoder:
        """Read the description in a model's file; torch is not needed for that."""
        return cls(describe(path), path)

    def load(self, device: torch.device) -> Any:
        """The model itself.

        Raises:
            FormatError: it cannot be loaded.
        """
        from seqtools.models.store import load_model

        return load_model(self._path, device=device).model.eval()

    def require(self, task: str, what: str) -> None:
        """See that the model is of `task`.

        Raises:
            ConfigError: it is of another.
        """
        if self.task != task:
            raise ConfigError(
                f"{what} is for models of the task {task}; this one is for {self.task}"
            )

    @property
    def banned(self) -> list[int]:
        """Ids that are never proposed."""
        specials = self.vocabulary.specials
        return [specials[role] for role in _NEVER if role in specials]

    @property
    def start(self) -> list[int]:
        """The symbol fed first: a model of windows has seen records only behind a line end."""
        windows = self._options.get("sampling") in ("random", "sequential")
        symbol = self.vocabulary.eos if windows else self.vocabulary.bos
        return [] if symbol is None else [symbol]

    def prompt(self, place: Place, raw: bytes, record: Record) -> Item:
        """Encode what the model is to continue or translate.

        Raises:
            RecordError: a field is missing or of another type, or cannot be encoded.
        """
        if self._source is not None:
            source = self._encode_source(record, place)
            return Item(place, raw, record, self._started([]), source)
        ids = self._encode(record, self._target_prefix, self._target_name, self.vocabulary, place)
        return Item(place, raw, record, self._started(ids))

    def empty(self, number: int) -> Item:
        """A new record, from the empty prompt.

        Raises:
            RecordError: the model knows no symbol to start from.
        """
        return Item(Place("--count", number, number), b"", {}, self._started([]))

    def pair(self, place: Place, raw: bytes, record: Record) -> Item:
        """Encode what the model is to score.

        Raises:
            RecordError: a field is missing or of another type, or cannot be encoded.
        """
        source = None if self._source is None else self._encode_source(record, place)
        ids = self._encode(record, self._target_prefix, self._target_name, self.vocabulary, place)
        if self._kind == "ids":  # taken as they are: the first one has nothing before it
            return Item(place, raw, record, ids[:1], source, ids[1:])
        eos = self.vocabulary.eos
        targets = ids if eos is None else [*ids, eos]
        return Item(place, raw, record, self._started([]), source, targets)

    def attention(
        self, item: Item, ids: list[int], cross: Array | None, *, ended: bool = False
    ) -> dict[str, Any]:
        """The attention object of a record; kinds that the model does not have are absent.

        Args:
            item: the record.
            ids: what was produced.
            cross: (layers, heads, rows, columns), a row for each of `ids` and for the end.
            ended: the end was produced after `ids`.
        """
        end = [self.vocabulary.eos] if ended and self.vocabulary.eos is not None else []
        rows = ids + end
        value: dict[str, Any] = {
            "rows": self.vocabulary.decode(rows),
            "inputs": self.vocabulary.decode(item.prefix + rows[:-1]),
        }
        if self._source is not None and item.source is not None:
            value["columns"] = self._source.decode(item.source)
        if cross is not None:
            value["cross"] = np.ascontiguousarray(cross, dtype=np.float32)
        elif rows:
            self.without_attention += 1
        return value

    def next_tokens(self, pairs: Sequence[tuple[int, float]]) -> list[dict[str, Any]]:
        """Ids with their log P as a list of objects."""
        tokens = self.vocabulary.decode(number for number, _ in pairs)
        return [
            {"token": token, "id": number, "logprob": np.float32(logprob)}
            for token, (number, logprob) in zip(tokens, pairs, strict=True)
        ]

    def default_length(self, item: Item) -> int:
        """How long an output may be where nothing else is said."""
        if item.source is None:
            return 100
        end = self._kind == "tokens" and self._source is not None and self._source.eos is not None
        return 2 * (len(item.source) - end) + 10

    def report(self) -> None:
        """Warn about what was changed on the way to ids."""
        if self.truncated:
            limit = self._options["max_length"]
            warn(
                f"sources cut to the {limit} tokens that the model was trained on: {self.truncated}"
            )
        if self.without_attention:
            warn("the model has no attention to write")
        if self.reserved:
            warn(f"tokens spelled like special symbols, read as unknown: {self.reserved}")

    def _started(self, ids: list[int]) -> list[int]:
        prefix = ids if self._kind == "ids" and ids else [*self.start, *ids]
        if not prefix:
            raise RecordError(
                "the model knows no symbol to start from, so the prompt must not be empty"
            )
        return prefix

    def _encode_source(self, record: Record, place: Place) -> list[int]:
        assert self._source is not None
        ids = self._encode(record, self._source_prefix, self._source_name, self._source, place)
        end = [] if self._kind == "ids" or self._source.eos is None else [self._source.eos]
        limit, truncate = self._options.get("max_length"), self._options.get("truncate")
        room = None if limit is None or truncate == "drop" else limit - len(end)
        if room is not None and len(ids) > room:
            if truncate == "error":
                raise RecordError(f"the source has length {len(ids) + len(end)}, more than {limit}")
            self.truncated += 1
            ids = ids[len(ids) - room :] if truncate == "left" else ids[:room]
        source = ids + end
        if not source:
            raise RecordError("the source is empty")
        if self._longest is not None and len(source) > self._longest:
            raise RecordError(
                f"the source has length {len(source)}, but the model's attention reaches"
                f" {self._longest}"
            )
        return source

    def _encode(
        self, record: Record, prefix: str, name: str, vocabulary: Symbols, place: Place
    ) -> list[int]:
        if self._kind == "ids":
            return get_ids(record, f"{prefix}ids", len(vocabulary))
        tokens = get_tokens(record, f"{prefix}tokens")
        ids = vocabulary.encode(tokens)
        unknown = 0 if vocabulary.unk is None else ids.count(vocabulary.unk)
        if unknown:
            spellings = vocabulary.spellings()
            self.reserved += sum(token in spellings for token in tokens)
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


def hypotheses_fields(
    item: Item, found: Sequence[Hypothesis], encoder: Encoder, name: str, *, attention: bool
) -> dict[str, Any]:
    """The fields that a search adds: the best tokens, and all hypotheses."""
    output = "tokens" if name == "text" else f"{name}_tokens"
    listed = []
    for one in found:
        value = {
            "tokens": encoder.vocabulary.decode(one.ids),
            "ids": one.ids,
            "logprob": np.float32(one.logprob),
            "score": np.float32(one.score),
            "token_logprobs": one.token_logprobs,
            "finished": one.finished,
        }
        if attention:
            value["attention"] = encoder.attention(item, one.ids, one.attention, ended=one.finished)
        listed.append(value)
    return {output: listed[0]["tokens"], "hypotheses": listed}
