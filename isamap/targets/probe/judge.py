"""Whether what was executed is what the statements say, and what to tell where it is not."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from isamap.hw.accelerator import Entry
from isamap.interp.rounding import Values
from isamap.ir.dtype import DType
from isamap.ir.nodes import Expr, Op
from isamap.targets.probe.trial import Slot, Trial

# The result of f32 may be the neighbour of the nearest number; two mathematical libraries may
# differ in the last bits of f64.
_LIBRARY = frozenset({"exp", "log", "tanh", "rsqrt", "sigmoid", "erf"})
# The sign of a zero that has two candidates is nobody's promise.
_ZEROS = frozenset({"min", "max", "min=", "max="})
_SHOWN = 16


def used(entries: Iterable[Entry]) -> frozenset[str]:
    """Return the operations and reductions in the statements of some instructions."""
    found: set[str] = set()
    for entry in entries:
        for statement in entry.instruction.statements:
            found |= {statement.reduction} | _operations(statement.value)
    return frozenset(found)


def differing(
    operations: frozenset[str], expected: Values, actual: Values, dtype: DType, off: float = 0.0
) -> Values:
    """Return where results differ: in any bit, any not-a-number being as good as another.

    With ``off`` floats may be as far from what is expected.
    """
    if not dtype.is_float:
        return np.asarray(expected != actual)
    with np.errstate(all="ignore"):
        wanted, found = expected.astype(np.float64), actual.astype(np.float64)
        equal = (wanted == found) | (np.isnan(wanted) & np.isnan(found))
        if not operations & _ZEROS:
            equal &= np.isnan(wanted) | (np.signbit(wanted) == np.signbit(found))
        if operations & _LIBRARY and dtype.bits >= 32:
            allowed = 4 if dtype.bits == 64 else 1
            space = np.spacing(np.abs(expected)).astype(np.float64)
            equal |= np.abs(wanted - found) <= allowed * space
        if off:
            equal |= np.abs(wanted - found) <= off
    return np.asarray(~equal)


def story(
    trial: Trial,
    symbols: Mapping[str, int],
    given: Sequence[tuple[Slot, Values]],
    result: tuple[Slot, Values, Values, Values],
) -> str:
    """Return the operands of one set in hexadecimal, and where its result differs.

    ``given`` are the arrays of one set by slot; ``result`` is the slot that differs, what it should
    hold, what it holds, and where it differs.
    """
    slot, expected, actual, wrong = result
    lines = []
    chosen = [f"{name} = {value}" for name, value in symbols.items()]
    chosen += [trial.variant] if trial.variant else []
    if chosen:
        lines.append(f"with {', '.join(chosen)}")
    for other, array in given:
        lines.append(f"{other.told} = {_bits(array)}")
    places = np.argwhere(np.atleast_1d(wrong))
    for place in places[:4]:
        at = tuple(int(i) for i in place) if wrong.shape else ()
        where = f"{slot.told}{list(at)}" if at else slot.told
        lines.append(f"{where} is {_one(actual[at])}, should be {_one(expected[at])}")
    if len(places) > 4:
        lines.append(f"and {len(places) - 4} more elements")
    return "\n".join(lines)


def _bits(array: Values) -> str:
    flat = np.ascontiguousarray(array).reshape(-1)
    shown = " ".join(_hex(value) for value in flat[:_SHOWN])
    more = f" ... ({flat.size})" if flat.size > _SHOWN else ""
    return f"{shown}{more}" if array.shape else shown


def _one(value: Values) -> str:
    return f"{_hex(value)} ({value})"


def _hex(value: Values) -> str:
    raw = np.asarray(value)
    return f"{int(raw.view(f'u{raw.dtype.itemsize}')):#0{2 + 2 * raw.dtype.itemsize}x}"


def _operations(value: Expr) -> frozenset[str]:
    if not isinstance(value, Op):
        return frozenset()
    return frozenset({value.op}).union(*(_operations(a) for a in value.args))
