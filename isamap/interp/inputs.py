"""Random arrays for a kernel."""

import math
from collections.abc import Mapping
from math import prod

import numpy as np

from isamap.interp.arguments import bind_symbols, inputs_of, shape_of
from isamap.interp.cells import size_of
from isamap.interp.rounding import Values, literal_value, round_float
from isamap.interp.setup import box_of, split
from isamap.ir.dtype import DType
from isamap.ir.index import Index, Read
from isamap.ir.nodes import Buffer, Kernel
from isamap.ir.statements import accesses

_PERIOD = (1 << 24) - 3
"""Elements after which a huge array repeats; odd, so that rows do not repeat each other."""

_MODEST = 1 << 10
"""Bound of integers wider than 8 bits whose buffer declares no range."""

_SMALL, _SMALL_WIDE = 1 << 2, 1 << 6
"""Bounds of small integers, of those of up to 8 bits and of wider ones."""


def random_inputs(
    kernel: Kernel,
    symbols: Mapping[str, int] | None = None,
    seed: int = 0,
    *,
    one_sign: bool = False,
    small: bool = False,
) -> dict[str, Values]:
    """Return an array for every in, const and inout buffer; the same seed gives the same arrays.

    Floats are in -1..1, integers of up to 8 bits in their whole range and wider ones in
    -1024..1024, or all in the declared range of the buffer.  Floats are multiples of a power of
    two, so that most sums of products are exact and a result can be compared bit for bit: 1/16, or
    1/8 or 1/4 where sums are long or their type is narrow (in proportion in a declared range).
    Buffers from which indices are read hold indices that are in bounds.

    With ``one_sign`` floats are in 0..1/4 (of what is declared), so that little cancels: rounding
    errors grow no faster than the values do, even through many statements.  With ``small`` integers
    of which no range is declared are in -4..4, wider ones in -64..64, so that less is clipped.
    """
    values = bind_symbols(kernel, symbols or {})
    generator = np.random.default_rng(seed)
    limits, digits = _index_limits(kernel, values), _grid_digits(kernel, values)
    return {
        b.name: _random(
            b, shape_of(b, values), generator, limits.get(b.name), digits, one_sign, small
        )
        for b in inputs_of(kernel)
    }


def _random(
    buffer: Buffer,
    shape: tuple[int, ...],
    generator: np.random.Generator,
    limit: tuple[int, int] | None,
    digits: int,
    one_sign: bool,
    small: bool,
) -> Values:
    size = prod(shape)
    drawn = _draw(buffer, min(size, _PERIOD), generator, limit, digits, one_sign, small)
    if size <= _PERIOD:
        return drawn.reshape(shape)
    found = np.empty(size, drawn.dtype)
    for at in range(0, size, _PERIOD):
        found[at : at + _PERIOD] = drawn[: size - at]
    return found.reshape(shape)


def _grid_digits(kernel: Kernel, symbols: Mapping[str, int]) -> int:
    """Return the binary digits after the point with which sums of products stay exact, 2 to 4."""
    digits = 4
    for statement in kernel.statements:
        dtype = statement.target.dtype
        if dtype.is_float and statement.reduction == "+=":
            _, reductions = split(statement, box_of(statement, symbols))
            terms = max(1, size_of(reductions))
            digits = min(digits, (dtype.precision - (terms - 1).bit_length()) // 2)
    return max(2, digits)


def _draw(
    buffer: Buffer,
    size: int,
    generator: np.random.Generator,
    limit: tuple[int, int] | None,
    digits: int,
    one_sign: bool,
    small: bool,
) -> Values:
    dtype = buffer.dtype
    declared = [literal_value(v) for v in buffer.values] if buffer.values else None
    if dtype.is_float:
        low, high = (float(declared[0]), float(declared[1])) if declared else (-1.0, 1.0)
        if one_sign and low <= 0 < high:
            low, high = 0.0, high / 4
        return _floats(generator, low, high, size, dtype, digits)
    least, most = dtype.lowest, dtype.highest
    if declared:
        least, most = int(declared[0]), int(declared[1])
    elif limit is None and (dtype.bits > 8 or small):
        wide = dtype.bits > 8
        reach = (_SMALL_WIDE if wide else _SMALL) if small else _MODEST
        least, most = max(least, -reach), min(most, reach)
    if limit is not None:
        least, most = max(least, limit[0]), min(most, limit[1])
    return _integers(generator, least, most, size).astype(dtype.numpy)


def _floats(
    generator: np.random.Generator, low: float, high: float, size: int, dtype: DType, digits: int
) -> Values:
    """Return numbers on a grid in a range; one of width 2 has ``digits`` digits after the point."""
    if not math.isfinite(high - low) or high == low:
        grid = np.array([low if math.isfinite(low) else 0.0])
    else:
        digits = min(digits, 3) if dtype.bits == 8 else digits
        step = 2.0 ** (math.ceil(math.log2(high - low)) - 1 - digits)
        grid = np.arange(math.ceil(low / step), math.floor(high / step) + 1) * step
    table: Values = round_float(grid, dtype).astype(dtype.numpy)
    # A byte each: generators of bounded integers take several times as long.
    drawn = np.frombuffer(generator.bytes(size), np.uint8) % np.uint8(len(table))
    return np.asarray(table[drawn])


def _integers(generator: np.random.Generator, least: int, most: int, size: int) -> Values:
    kind = np.uint64 if most > np.iinfo(np.int64).max else np.int64
    return generator.integers(least, most, size, kind, endpoint=True)


def _index_limits(kernel: Kernel, symbols: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return the range in which each buffer that indices are read from keeps accesses in bounds."""
    found: dict[str, tuple[int, int]] = {}
    for statement in kernel.statements:
        ranges = {n: (a, a + count - 1) for n, a, count in box_of(statement, symbols)}
        for access in (statement.target, *accesses(statement.value)):
            used = [(access.buffer, access.indices)]
            used += [(r.buffer, r.indices) for index in access.indices for r in index.reads]
            for buffer, indices in used:
                shape = shape_of(kernel.buffer(buffer), symbols)
                for index, size in zip(indices, shape, strict=True):
                    for name, low, high in _limits(index.substitute(symbols), size, ranges):
                        old = found.get(name, (low, high))
                        found[name] = max(old[0], low), min(old[1], high)
    return found


def _limits(
    index: Index, size: int, ranges: Mapping[str, tuple[int, int]]
) -> list[tuple[str, int, int]]:
    """Return ranges for the reads of an index that keep it in 0..size-1.

    Each of several reads gets an equal share of the room; one inside ``//``, ``%`` or a product is
    kept in 0..size-1 itself.
    """
    plain = {m[0]: c for m, c in index.terms if len(m) == 1 and isinstance(m[0], Read)}
    rest = Index(tuple(t for t in index.terms if t[0][:1] not in {(atom,) for atom in plain}))
    ends = rest.bounds(ranges)
    found = []
    for atom in index.reads:
        low, high = 0, size - 1
        if atom in plain and ends is not None:
            share = plain[atom] * len(plain)
            least, most = (low - ends[0], high - ends[1])
            # Rounded inwards, whichever the sign of the factor.
            edges = sorted([(least, share), (most, share)], key=lambda e: e[0] / e[1])
            low, high = -((-edges[0][0]) // edges[0][1]), edges[1][0] // edges[1][1]
        found.append((atom.buffer, low, max(low, high)))
    return found
