"""Texts as token ids, and ids as the sequences a model reads: alone, or question and passage joined.

The ids of a text do not depend on what it is joined with, so a passage is cut once, when its version is built, and
joined with every question that comes. `stamp` says when two tokenizers cut alike.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from domain.errors import ConfigError
from retrieval.model_folder import read_json, read_tokenizer
from retrieval.pairs import Ids, JoinedPair

CUTS_ALIKE = (
    "truncation",
    "padding",
    "post_processor",
    "version",
)  # parts of a tokenizer.json that change no text's ids


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """The special tokens around one text or between two, as the model was trained with them; `types` of each part."""

    ids: tuple[Ids, ...]  # before, (between,) after
    types: tuple[int, ...]  # of the same parts
    text_types: tuple[int, ...]  # of the texts between them

    @property
    def tokens(self) -> int:
        """How many special tokens there are."""
        return sum(map(len, self.ids))

    def around(self, *texts: Ids) -> tuple[Ids, Ids]:
        """Ids and types of the sequence with the special tokens around these texts."""
        parts, types = [self.ids[0]], [self.types[0]]
        for place, text in enumerate(texts):
            parts += [text, self.ids[place + 1]]
            types += [self.text_types[place], self.types[place + 1]]
        return np.concatenate(parts), np.repeat(np.array(types, np.int32), [len(part) for part in parts])


class Tokenizer:
    """The tokenizer of a model folder. `stamp` names it: equal stamps cut equal texts into equal ids."""

    def __init__(self, folder: Path, max_tokens: int) -> None:
        tokenizer, self.pad = read_tokenizer(folder, max_tokens)
        tokenizer.no_truncation()
        self._tokenizer, self.max_tokens = tokenizer, max_tokens
        described = read_json(folder / "tokenizer.json")
        cutting = {key: value for key, value in described.items() if key not in CUTS_ALIKE}
        self.stamp = hashlib.sha256(json.dumps(cutting, sort_keys=True).encode()).hexdigest()[:16]
        self.single, self.pair = _frame(tokenizer, folder, 1), _frame(tokenizer, folder, 2)

    def cut(self, text: str) -> Ids:
        """The ids of a text, without special ones and not truncated. No text fails, lone surrogates included."""
        return self.cut_all([text])[0]

    def cut_all(self, texts: Sequence[str]) -> list[Ids]:
        """As `cut`, for each text."""
        readable = [text.encode(errors="replace").decode() for text in texts]  # the tokenizer raises on surrogates
        encoded = self._tokenizer.encode_batch_fast(readable, add_special_tokens=False)  # fast: without offsets
        return [np.array(one.ids, np.int32) for one in encoded]

    def alone(self, text: Ids) -> Ids:
        """A text as a model reads it, special tokens included; what is beyond `max_tokens` is left out."""
        return self.single.around(text[: self.max_tokens - self.single.tokens])[0]

    def join(self, question: Ids, passage: Ids) -> JoinedPair:
        """One sequence of at most `max_tokens`: the longer side loses its end first."""
        room = self.max_tokens - self.pair.tokens
        asked, read = rooms(len(question), len(passage), room)
        ids, types = self.pair.around(question[:asked], passage[:read])
        return JoinedPair(ids, types, truncated=read < len(passage))


def rooms(first: int, second: int, room: int) -> tuple[int, int]:
    """How many tokens each of two texts keeps, together at most `room`: the longer one loses first, ties the first."""
    if first + second <= room:
        return first, second
    shorter = min(first, second, room // 2)
    return (shorter, room - shorter) if first <= second else (room - shorter, shorter)


def _frame(tokenizer: Any, folder: Path, texts: int) -> Frame:  # tokenizers.Tokenizer
    """The special tokens that the tokenizer puts around `texts` texts, read off an example."""
    tokenizer.no_padding()
    encoded = tokenizer.encode(*("a",) * texts)
    sides = encoded.sequence_ids  # the number of the text a token comes from, None for a special one
    if set(sides) - {None} != set(range(texts)):
        raise ConfigError(
            f"The tokenizer in {folder} makes {encoded.tokens} of {texts} texts 'a', in which they cannot be told "
            "apart: choose a model whose tokenizer.json has a post_processor."
        )
    begins = [sides.index(text) for text in range(texts)]
    ends = [len(sides) - sides[::-1].index(text) for text in range(texts)]
    gaps = list(zip([0, *ends], [*begins, len(sides)], strict=True))
    return Frame(
        tuple(np.array(encoded.ids[start:end], np.int32) for start, end in gaps),
        tuple(encoded.type_ids[start] if start < end else 0 for start, end in gaps),
        tuple(encoded.type_ids[start] for start in begins),
    )
