"""The key-value cache of a KV head in HBM, and the step that appends a token to it.

Keys are MX blocks along the head, values MX blocks along the tokens, transposed. The block of
values that is not full yet also lies there as BF16; each step quantises it anew, as if the tokens
to come were zeros. Full blocks are never written again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from poblano_golden.errors import PoblanoError
from poblano_golden.formats import BLOCK_SIZE, MxFormat
from poblano_sw.kernel import BF16, Blocks, Builder, Mask, Matrix

__all__ = ["KvCache", "append", "place_cache"]


@dataclass(frozen=True)
class KvCache:
    """A cache for `tokens` tokens.

    Attributes
    ----------
    keys:
        `[tokens, head]`.
    values:
        `[head of the values, tokens]`.
    open_values:
        BF16 `[head of the values, 32]`: the block that is not full yet.
    """

    keys: Blocks
    values: Blocks
    open_values: Matrix

    def of(self, tokens: int) -> tuple[Blocks, Blocks]:
        """Return keys and values of the first tokens."""
        if not 1 <= tokens <= self.keys.rows:
            raise PoblanoError(f"a cache of {self.keys.rows} tokens has no first {tokens}")
        return self.keys[:tokens], replace(self.values, cols=tokens)


def place_cache(
    builder: Builder, tokens: int, head: int, fmt: MxFormat, *, value_head: int | None = None
) -> KvCache:
    """Take place in HBM for a cache."""
    width = head if value_head is None else value_head
    return KvCache(
        builder.blocks(tokens, head, fmt, place="hbm_0", name="keys"),
        builder.blocks(width, tokens, fmt, place="hbm_0", name="values"),
        builder.matrix(width, BLOCK_SIZE, BF16, place="hbm_0", name="open values"),
    )


def append(
    builder: Builder,
    cache: KvCache,
    k: Matrix,
    v: Matrix,
    *,
    position: int,
    rule: str = "even",
) -> None:
    """Append a token to a cache.

    Parameters
    ----------
    builder:
        Takes the commands.
    cache:
        The cache, which holds `position` tokens.
    k, v:
        Its key and value, binary32 `[1, head]`, in L1.
    position:
        The number of the token.
    rule:
        The scale rule of the blocks.

    Raises
    ------
    PoblanoError
        If the cache is full.
    """
    if not 0 <= position < cache.keys.rows:
        raise PoblanoError(f"a cache of {cache.keys.rows} tokens has no token {position}")
    first = position // BLOCK_SIZE * BLOCK_SIZE
    count = position - first + 1
    with builder.scope():
        key = builder.blocks(1, k.cols, cache.keys.fmt, name="key")
        values = builder.matrix(v.cols, BLOCK_SIZE, BF16, name="open values")
        block = builder.blocks(v.cols, count, cache.values.fmt, name="block of values")
        builder.vector(k, d=key, rule=rule)
        builder.store(cache.keys[position : position + 1], key)
        if count > 1:
            builder.load(values, cache.open_values)
        else:
            builder.vector(values, mask=Mask(0), d=values)
        builder.vector(v.reshaped(v.cols, 1), d=values[:, count - 1 : count])
        builder.store(cache.open_values, values)
        builder.vector(values[:, :count], d=block, rule=rule)
        _, known = cache.of(position + 1)
        builder.store(known[:, first:], block)
