"""Operands that find faults: random ones of every magnitude, and those at which rules change."""

from collections.abc import Callable

import numpy as np

from isamap.interp.rounding import Values, largest, literal_value, smallest_normal
from isamap.ir.dtype import DType
from isamap.ir.nodes import Buffer

_SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan)
_FLOATS = (
    *(0.5, -0.5, 1.5, 2.5, -2.5, 3.5),
    *(1e30, -1e30, 3e9, 127.5, 128.0, -128.5, 255.5, 32767.5, 65504.0, 65520.0, 448.0, 464.0),
    *(465.0, 1e-40, -1e-40, 2e-45, 2147483647.0, -2147483648.0, 2147483648.0, 9.3e18, 1.9e19),
    *(6e-8, 1e-3, 240.0, 57344.0, 16777216.0, 16777217.0, -16777216.0, 1.0000001, 0.99999994),
)
_INTEGERS = (0, 1, -1, 2, -2, 3, 7, -8, 100, 127, 128, 255, 256)


def random_operand(
    operand: Buffer, shape: tuple[int, ...], generator: np.random.Generator
) -> Values:
    """Return elements for a number of sets, the first dimension of ``shape``.

    Each set has a manner of its own: ordinary numbers, all magnitudes, few bits (which makes ties
    and cancels), subnormal ones, any bits, or those at which rules change, more or fewer.
    """
    dtype = operand.dtype
    if dtype.kind == "bool":
        return generator.integers(0, 2, shape).astype(np.bool_)
    make = _floats if dtype.is_float else _integers
    found = make(dtype, shape, generator)
    if operand.values is not None:
        low, high = (float(literal_value(value)) for value in operand.values)
        inside = generator.uniform(low, high, shape)
        inside = inside if dtype.is_float else np.floor(inside + 0.5)
        ends = np.where(generator.random(shape) < 0.5, low, high)
        found = np.where(generator.random(shape) < 0.3, ends, inside).astype(dtype.numpy)
    return found


def _chosen(
    shape: tuple[int, ...],
    parts: list[Callable[[], Values]],
    weights: list[int],
    generator: np.random.Generator,
) -> Values:
    """Return for every set what one of the parts gives."""
    shares = np.array(weights) / sum(weights)
    manner = generator.choice(len(parts), shape[0], p=shares)
    found = parts[0]()
    for number, part in enumerate(parts[1:], 1):
        where = (manner == number).reshape(-1, *(1,) * (len(shape) - 1))
        if where.any():
            found = np.where(where, part(), found)
    return found


def _floats(dtype: DType, shape: tuple[int, ...], generator: np.random.Generator) -> Values:
    precision, top = dtype.precision, dtype.max_exponent
    extremes = np.array(
        [
            *_FLOATS,
            *(s * x for s in (1, -1) for x in (largest(dtype), smallest_normal(dtype))),
            *(
                s * smallest_normal(dtype) * f
                for s in (1, -1)
                for f in (0.5, 2.0 ** (1 - precision))
            ),
        ]
    )

    def signs() -> Values:
        return np.asarray(generator.choice([-1.0, 1.0], shape), np.float64)

    def near() -> Values:
        return signs() * np.exp2(generator.uniform(-8, 8, shape))

    def wide() -> Values:
        return signs() * np.exp2(generator.uniform(-top, top, shape))

    def few_bits() -> Values:
        bits = generator.integers(1, 8, shape) * signs()
        exponents = [-precision - 1, -precision, -1, 0, 0, 1, precision]
        return np.asarray(bits * np.exp2(generator.choice(exponents, shape)))

    def tiny() -> Values:
        return signs() * smallest_normal(dtype) * np.exp2(generator.uniform(-precision, 4, shape))

    def mixed(share: float, other: Callable[[], Values]) -> Callable[[], Values]:
        def part() -> Values:
            special = generator.choice(extremes, shape)
            few = generator.choice(np.array(_SPECIAL), shape)
            special = np.where(generator.random(shape) < 0.4, few, special)
            return np.where(generator.random(shape) < share, special, other())

        return part

    parts = [
        near,
        wide,
        few_bits,
        tiny,
        mixed(0.1, near),
        mixed(0.1, few_bits),
        mixed(0.3, wide),
        mixed(1.0, near),
    ]
    found = _chosen(shape, parts, [3, 3, 4, 2, 2, 2, 2, 4], generator)
    with np.errstate(all="ignore"):
        rounded = np.asarray(found).astype(dtype.numpy)
    raw = np.frombuffer(generator.bytes(rounded.nbytes), dtype.numpy).reshape(shape)
    bits = (generator.random(shape[0]) < 0.1).reshape(-1, *(1,) * (len(shape) - 1))
    return np.where(bits, raw, rounded)


def _integers(dtype: DType, shape: tuple[int, ...], generator: np.random.Generator) -> Values:
    ends = [dtype.lowest, dtype.highest, dtype.lowest + 1, dtype.highest - 1, dtype.highest // 2]
    picked = np.array([e & ((1 << 64) - 1) for e in (*ends, *_INTEGERS)], np.uint64).view(np.int64)

    def small() -> Values:
        return generator.integers(-40, 41, shape)

    def any_size() -> Values:
        bits = np.frombuffer(generator.bytes(8 * int(np.prod(shape))), np.int64).reshape(shape)
        return bits >> generator.integers(0, 64, shape)

    def any_bits() -> Values:
        return np.frombuffer(generator.bytes(8 * int(np.prod(shape))), np.int64).reshape(shape)

    def extreme() -> Values:
        return generator.choice(picked, shape)

    def only_ends() -> Values:
        return generator.choice(picked[:2], shape)

    def mixed() -> Values:
        return np.where(generator.random(shape) < 0.2, extreme(), any_size())

    parts = [small, any_size, any_bits, extreme, only_ends, mixed]
    found = _chosen(shape, parts, [3, 3, 4, 4, 1, 4], generator)
    with np.errstate(all="ignore"):
        return np.asarray(found).astype(dtype.numpy)
