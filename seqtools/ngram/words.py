"""The words of a model, on bytes: text to ids without a Python object for each word.

A word is found by a hash of its bytes. The table (open addressing, a power of two of slots, at most
half full) holds, in one 64-bit number, 32 bits of the hash and the id plus one; 0 is an empty slot.
Such arrays are stored with the model as they are, so that opening it builds nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from seqtools.errors import FormatError
from seqtools.ngram.compiled import frozen, kernel

Array: TypeAlias = np.ndarray[Any, Any]

UNK, BOS, EOS = 0, 1, 2  # ids
SPECIALS = (b"<unk>", b"<s>", b"</s>")

_SEED = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)

# What a byte does: nothing, end a token, end a record.
_TEXT = np.zeros(256, dtype=np.uint8)
_TEXT[[9, 11, 12, 13, 32]] = 1
_TEXT[10] = 2
_TOKENS = np.zeros(256, dtype=np.uint8)  # no byte of UTF-8 is 0xfe or 0xff
_TOKENS[0xFF] = 1
_TOKENS[0xFE] = 2
_TEXT.flags.writeable = _TOKENS.flags.writeable = False


class Words:
    """The vocabulary of a model.

    Attributes:
        utf8: uint8, the words one after the other.
        offsets: int64 (V + 1,), where each begins.
        table: uint64 (2**m,), the hash table.
        unk_as_word: text spelled `<unk>` is an ordinary word with an id of its own, not id 0.
    """

    def __init__(
        self, utf8: Array, offsets: Array, table: Array, *, unk_as_word: bool = False
    ) -> None:
        self.utf8 = frozen(utf8)
        self.offsets = frozen(offsets)
        self.table = frozen(table)
        self.unk_as_word = unk_as_word

    @classmethod
    def from_strings(cls, strings: Sequence[bytes], *, unk_as_word: bool = False) -> Words:
        """Make a vocabulary; the first three are `<unk>`, `<s>`, `</s>`.

        Raises:
            FormatError: a word is there twice.
        """
        offsets = np.zeros(len(strings) + 1, dtype=np.int64)
        np.cumsum([len(string) for string in strings], out=offsets[1:])
        utf8 = np.frombuffer(b"".join(strings), dtype=np.uint8)
        table = np.zeros(_table_size(len(strings)), dtype=np.uint64)
        twice = _fill_table(utf8, frozen(offsets), table, 1 if unk_as_word else 0)
        if twice >= 0:
            raise FormatError(
                f"the word {strings[twice].decode('utf-8', 'replace')!r} is there twice"
            )
        return cls(utf8, offsets, table, unk_as_word=unk_as_word)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def strings(self) -> list[bytes]:
        """All words, by id."""
        data = self.utf8.tobytes()
        return [data[start:end] for start, end in itertools.pairwise(self.offsets.tolist())]

    def string(self, number: int) -> bytes:
        """One word."""
        return self.utf8[self.offsets[number] : self.offsets[number + 1]].tobytes()

    def find(self, word: bytes) -> int:
        """The id of a word as it is spelled, -1 where it is not there."""
        data = np.frombuffer(word, dtype=np.uint8)
        tag = hash_word(data, 0, len(word))
        return max(-1, find_word(data, 0, len(word), tag, self.utf8, self.offsets, self.table))

    def encode_text(
        self, data: bytes, *, mark: bool = False, spelled: Array | None = None
    ) -> tuple[Array, Array]:
        """Lines of plain text to ids; tokens are separated by ASCII white space.

        Unknown words, and those spelled like `<s>` or `</s>`, are id 0.

        Args:
            data: whole lines.
            mark: put the id of `</s>` after each line.
            spelled: int64 (2,) to add to: how many tokens are spelled `<unk>` without being a word
                of their own, and how many `<s>` or `</s>`.

        Returns:
            ids (n,) int32, and ends (lines,) int64: line i is ids[ends[i - 1]:ends[i]].
        """
        return self._encode(
            data if data.endswith(b"\n") or not data else data + b"\n", _TEXT, spelled, mark=mark
        )

    def encode_tokens(
        self, records: Iterable[Sequence[str]], *, mark: bool = False
    ) -> tuple[Array, Array]:
        """The same for lists of tokens, which may hold white space."""
        return self.encode_packed(pack_tokens(records), mark=mark)

    def encode_packed(
        self, data: bytes, *, mark: bool = False, spelled: Array | None = None
    ) -> tuple[Array, Array]:
        """The same for what `pack_tokens` made."""
        return self._encode(data, _TOKENS, spelled, mark=mark)

    def _encode(
        self, data: bytes, kinds: Array, spelled: Array | None, *, mark: bool
    ) -> tuple[Array, Array]:
        raw = np.frombuffer(data, dtype=np.uint8)
        ids = np.empty(len(raw) + 1, dtype=np.int32)
        ends = np.empty(len(raw) + 1, dtype=np.int64)
        if spelled is None:
            spelled = np.zeros(2, dtype=np.int64)
        count, records = _encode(
            raw, kinds, self.utf8, self.offsets, self.table, ids, ends, mark, spelled
        )
        return ids[:count].copy(), ends[:records].copy()


class Learner:
    """Text to ids where the vocabulary grows with the text; ids are in order of appearance.

    Args:
        unk_as_word: text spelled `<unk>` becomes a word of its own.
        literal: so does text spelled `<s>` and `</s>`; the ids of the specials then stand for no
            text at all.
    """

    def __init__(self, *, unk_as_word: bool = False, literal: bool = False) -> None:
        start = Words.from_strings(SPECIALS, unk_as_word=unk_as_word)
        self.unk_as_word = unk_as_word
        self._utf8 = np.zeros(1 << 20, dtype=np.uint8)
        self._utf8[: len(start.utf8)] = start.utf8
        self._offsets = np.zeros(1 << 16, dtype=np.int64)
        self._offsets[: len(start.offsets)] = start.offsets
        self._table = np.zeros_like(start.table) if literal else start.table.copy()
        # words, ids written, records ended, spelled <unk>, spelled <s> or </s>
        self._state = np.array([len(start), 0, 0, 0, 0], dtype=np.int64)

    def __len__(self) -> int:
        return int(self._state[0])

    @property
    def spelled_unk(self) -> int:
        """How many tokens were spelled `<unk>` and became id 0."""
        return int(self._state[3])

    @property
    def spelled_marker(self) -> int:
        """How many tokens were spelled `<s>` or `</s>` and became id 0."""
        return int(self._state[4])

    def learn_text(self, data: bytes) -> Array:
        """Lines of plain text to ids (n,) int32, `</s>` after each line."""
        return self._learn(data if data.endswith(b"\n") or not data else data + b"\n", _TEXT)

    def learn_packed(self, data: bytes) -> Array:
        """The same for what `pack_tokens` made."""
        return self._learn(data, _TOKENS)

    def words(self) -> Words:
        """What was learnt, ids in order of appearance."""
        count = len(self)
        offsets = self._offsets[: count + 1].copy()
        return Words(
            self._utf8[: offsets[-1]].copy(), offsets, self._table, unk_as_word=self.unk_as_word
        )

    def _learn(self, data: bytes, kinds: Array) -> Array:
        raw = np.frombuffer(data, dtype=np.uint8)
        ids = np.empty(len(raw) + 1, dtype=np.int32)
        self._state[1] = self._state[2] = 0
        position = 0
        while position < len(raw):
            self._grow(len(raw))
            position = _learn(
                raw, position, kinds, self._utf8, self._offsets, self._table, self._state, ids
            )
        return ids[: self._state[1]].copy()

    def _grow(self, size: int) -> None:
        """Make room for `size` bytes of new words, and for as many words again as there are."""
        count = len(self)
        used = int(self._offsets[count])
        if used + size > len(self._utf8):
            self._utf8 = _enlarged(self._utf8, used, 2 * len(self._utf8) + size)
        if 2 * count > len(self._offsets):
            self._offsets = _enlarged(self._offsets, count + 1, 2 * len(self._offsets))
        if 4 * count > len(self._table):
            table = np.zeros(4 * len(self._table), dtype=np.uint64)
            rehash(self._table, table)
            self._table = table


def pack_tokens(records: Iterable[Sequence[str]]) -> bytes:
    """Lists of tokens as bytes: 0xff after each token, 0xfe after each record.

    >>> pack_tokens([["a", "b c"], []])
    b'a\\xffb c\\xff\\xfe\\xfe'
    """
    return b"".join(map(pack_record, records))


def pack_record(tokens: Sequence[str]) -> bytes:
    """`pack_tokens` of one record."""
    if not tokens:
        return b"\xfe"
    text = "\n".join(tokens)
    if text.count("\n") == len(tokens) - 1:  # no token has one in it
        return text.encode().replace(b"\n", b"\xff") + b"\xff\xfe"
    return b"".join(token.encode() + b"\xff" for token in tokens) + b"\xfe"


def is_utf8(data: bytes) -> bool:
    """Whether bytes are UTF-8."""
    if data.isascii():  # which is quick to see
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _enlarged(array: Array, used: int, size: int) -> Array:
    larger = np.zeros(size, dtype=array.dtype)
    larger[:used] = array[:used]
    return larger


def _table_size(count: int) -> int:
    return 1 << max(4, (2 * count - 1).bit_length())


@kernel
def _mixed(value: Any) -> Any:
    """The upper 32 bits of a well-mixed hash."""
    value ^= value >> _HALF
    value *= _MIX
    return value >> _HALF


@kernel
def hash_word(data: Array, start: int, end: int) -> Any:
    """The tag by which data[start:end] is found."""
    value = _SEED
    for position in range(start, end):
        value = (value ^ np.uint64(data[position])) * _PRIME
    return _mixed(value)


@kernel
def find_word(
    data: Array, start: int, end: int, tag: Any, utf8: Array, offsets: Array, table: Array
) -> int:
    """The id of data[start:end], or -1 - slot where it would go."""
    mask = np.uint64(len(table) - 1)
    slot = tag & mask
    while True:
        entry = table[slot]
        if entry == 0:
            return int(-1 - np.int64(slot))
        if entry >> _HALF == tag:
            found = np.int64(entry & np.uint64(0xFFFFFFFF)) - 1
            begin = offsets[found]
            if offsets[found + 1] - begin == end - start:
                same = True
                for position in range(end - start):
                    if utf8[begin + position] != data[start + position]:
                        same = False
                        break
                if same:
                    return int(found)
        slot = (slot + np.uint64(1)) & mask


@kernel
def _fill_table(utf8: Array, offsets: Array, table: Array, first: int) -> int:
    """Put all words from id `first` into the table; the id of one that was there, or -1."""
    for word in range(first, len(offsets) - 1):
        tag = hash_word(utf8, offsets[word], offsets[word + 1])
        slot = find_word(utf8, offsets[word], offsets[word + 1], tag, utf8, offsets, table)
        if slot >= 0:
            return word
        table[-1 - slot] = (tag << _HALF) | np.uint64(word + 1)
    return -1


@kernel
def rehash(old: Array, new: Array) -> None:
    """Put the entries of a table, each with the hash in its upper half, into a larger one."""
    mask = np.uint64(len(new) - 1)
    for entry in old:
        if entry != 0:
            slot = (entry >> _HALF) & mask
            while new[slot] != 0:
                slot = (slot + np.uint64(1)) & mask
            new[slot] = entry


@kernel
def _encode(
    data: Array, kinds: Array, utf8: Array, offsets: Array, table: Array,
    ids: Array, ends: Array, mark: bool, spelled: Array,  # noqa: FBT001
) -> tuple[int, int]:  # fmt: skip
    """Tokens to ids by a vocabulary that stays as it is; how many ids, how many records."""
    count = records = begin = 0
    value = _SEED
    terminated = kinds[0xFF] == 1
    for position in range(len(data)):
        byte = data[position]
        kind = kinds[byte]
        if kind == 0:
            value = (value ^ np.uint64(byte)) * _PRIME
            continue
        if position > begin or (terminated and kind == 1):
            found = find_word(data, begin, position, _mixed(value), utf8, offsets, table)
            if 0 <= found <= EOS:
                spelled[0 if found == UNK else 1] += 1
            ids[count] = found if found > EOS else UNK
            count += 1
        if kind == 2:
            if mark:
                ids[count] = EOS
                count += 1
            ends[records] = count
            records += 1
        begin = position + 1
        value = _SEED
    return count, records


@kernel
def _learn(
    data: Array, start: int, kinds: Array, utf8: Array, offsets: Array, table: Array,
    state: Array, ids: Array,
) -> int:  # fmt: skip
    """Tokens to ids, new ones added; the position to go on from once there is more room."""
    begin = start
    value = _SEED
    terminated = kinds[0xFF] == 1
    words, count = state[0], state[1]
    room = min(len(table) // 2, len(offsets) - 1)
    for position in range(start, len(data)):
        byte = data[position]
        kind = kinds[byte]
        if kind == 0:
            value = (value ^ np.uint64(byte)) * _PRIME
            continue
        if position > begin or (terminated and kind == 1):
            tag = _mixed(value)
            found = find_word(data, begin, position, tag, utf8, offsets, table)
            if found < 0:
                if words >= room:
                    state[0], state[1] = words, count
                    return begin
                table[-1 - found] = (tag << _HALF) | np.uint64(words + 1)
                used = offsets[words]
                for each in range(begin, position):
                    utf8[used + each - begin] = data[each]
                found = words
                words += 1
                offsets[words] = used + position - begin
            elif found <= EOS:
                state[3 if found == UNK else 4] += 1
                found = UNK
            ids[count] = found
            count += 1
        if kind == 2:
            ids[count] = EOS
            count += 1
            state[2] += 1
        begin = position + 1
        value = _SEED
    state[0], state[1] = words, count
    return len(data)
