"""Byte-level byte-pair encoding, built from what a GGUF file says about its tokenizer.

Text is cut into words by the pre-tokenizer's expressions, a word's UTF-8 bytes are written with
the GPT-2 alphabet (every byte a printable character), and adjacent parts are merged in the order
of the merge list. Source: the GPT-2 encoder (Radford et al., 2019); the expressions are those of
the Hugging Face `Digits` and `ByteLevel` pre-tokenizers.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any

import regex

from poblano_golden.errors import PoblanoError
from poblano_sw.model.gguf_file import GgufFile

__all__ = ["Tokenizer"]

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_PRE_TOKENIZERS: dict[str, tuple[str, ...]] = {
    "gpt-2": (_GPT2,),
    "smollm": (r"\p{N}|\P{N}+", _GPT2),
}
"""Pre-tokenizer name -> expressions, each applied to every piece that the one before it found."""
_NORMAL = 1
"""Token type of the tokens that merging makes, spelled in the byte alphabet."""


def _byte_alphabet() -> dict[int, str]:
    """Byte -> the printable character that stands for it in the vocabulary."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}


_CHARACTER = _byte_alphabet()
_BYTE = {character: byte for byte, character in _CHARACTER.items()}


class Tokenizer:
    """Text to token numbers and back.

    Parameters
    ----------
    file:
        The GGUF file whose `tokenizer.ggml.*` entries describe it.

    Raises
    ------
    PoblanoError
        Another kind of tokenizer or pre-tokenizer, or lists that contradict each other.
    """

    def __init__(self, file: GgufFile) -> None:
        model = file.get("tokenizer.ggml.model", str)
        pre = file.get("tokenizer.ggml.pre", str)
        if model != "gpt2" or pre not in _PRE_TOKENIZERS:
            raise PoblanoError(
                f"{file.path}: the tokenizer must be gpt2 with a pre-tokenizer of "
                f"{sorted(_PRE_TOKENIZERS)}, not {model} with {pre}"
            )
        self._expressions = [regex.compile(e) for e in _PRE_TOKENIZERS[pre]]
        self._tokens = _texts(file, "tokenizer.ggml.tokens")
        types = file.get("tokenizer.ggml.token_type", list)
        if len(types) != len(self._tokens):
            raise PoblanoError(
                f"{file.path}: {len(types)} token types for {len(self._tokens)} tokens"
            )
        self._numbers = {text: number for number, text in enumerate(self._tokens)}
        self._bytes = [
            _spelled_bytes(file, text) if kind == _NORMAL else text.encode()
            for text, kind in zip(self._tokens, types, strict=True)
        ]
        self._ranks = {
            (left, right): rank
            for rank, (left, _, right) in enumerate(
                merge.partition(" ") for merge in _texts(file, "tokenizer.ggml.merges")
            )
        }
        for left, right in self._ranks:
            if not left or not right or left + right not in self._numbers:
                raise PoblanoError(
                    f"{file.path}: the merge of {left!r} and {right!r} gives no token"
                )
        self._bos = (
            [self._number_of(file, "tokenizer.ggml.bos_token_id")]
            if file.get("tokenizer.ggml.add_bos_token", bool, False)
            else []
        )
        self.end = self._number_of(file, "tokenizer.ggml.eos_token_id")
        """The token that ends a text."""
        self._merge = lru_cache(maxsize=1 << 16)(self._merge_word)

    def __len__(self) -> int:
        """Tokens in the vocabulary."""
        return len(self._tokens)

    def _number_of(self, file: GgufFile, key: str) -> int:
        number = file.get(key, int)
        if not 0 <= number < len(self._tokens):
            raise PoblanoError(
                f"{file.path}: {key} must be below {len(self._tokens)}, not {number}"
            )
        return number

    def encode(self, text: str) -> list[int]:
        """Return the token numbers of a text; special tokens in it are ordinary characters.

        Raises
        ------
        PoblanoError
            The text holds a byte for which the vocabulary has no token, or is no valid Unicode.
        """
        pieces = [text]
        for expression in self._expressions:
            pieces = [found for piece in pieces for found in expression.findall(piece)]
        return self._bos + [number for piece in pieces for number in self._merge(piece)]

    def _merge_word(self, word: str) -> tuple[int, ...]:
        """Merge the parts of one word, always the pair that stands first in the merge list."""
        try:
            parts = [_CHARACTER[byte] for byte in word.encode()]
        except UnicodeEncodeError:
            raise PoblanoError(f"text must be valid Unicode, not {word!r}") from None
        last = len(self._ranks)
        while len(parts) > 1:
            best = min(pairwise(parts), key=lambda pair: self._ranks.get(pair, last))
            if best not in self._ranks:
                break
            merged: list[str] = []
            for part in parts:
                if merged and (merged[-1], part) == best:
                    merged[-1] += part
                else:
                    merged.append(part)
            parts = merged
        for part in parts:
            if part not in self._numbers:
                raise PoblanoError(
                    f"the vocabulary has no token for byte 0x{_BYTE[part]:02x} of {word!r}"
                )
        return tuple(self._numbers[part] for part in parts)

    def decode(self, tokens: list[int]) -> str:
        """Return the text of token numbers; bytes that are no UTF-8 become U+FFFD.

        Raises
        ------
        PoblanoError
            A number outside the vocabulary.
        """
        raw = bytearray()
        for number in tokens:
            if not 0 <= number < len(self._tokens):
                raise PoblanoError(f"a token must be below {len(self._tokens)}, not {number}")
            raw += self._bytes[number]
        return raw.decode(errors="replace")


def _spelled_bytes(file: GgufFile, text: str) -> bytes:
    try:
        return bytes(_BYTE[character] for character in text)
    except KeyError:
        raise PoblanoError(f"{file.path}: token {text!r} is not in the byte alphabet") from None


def _texts(file: GgufFile, key: str) -> list[str]:
    values: list[Any] = file.get(key, list)
    if not all(isinstance(value, str) for value in values):
        raise PoblanoError(f"{file.path}: metadata key {key!r} must be a list of texts")
    return values
