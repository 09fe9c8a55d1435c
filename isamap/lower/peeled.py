"""Parts of copies in which a condition holds everywhere, so that it need not be looked at."""

from collections.abc import Callable, Sequence

from isamap.ir.index import Index, const

_MANY = 256
"""Iterations of a loop that are looked at one by one."""


def outermost(condition: Index, loops: Sequence[tuple[str, Index]]) -> str | None:
    """Return the outermost of some loops' counters that a condition depends on, and others."""
    used = [name for name, _ in loops if name in condition.names]
    return used[0] if len(used) > 1 else None


def worst(condition: Index, inner: Sequence[tuple[str, Index]]) -> Index | None:
    """Return the least that a condition is over all iterations of inner loops: where that is not
    negative, it holds in all of them.

    None unless it is known how it depends on them, and how many iterations they have.
    """
    found = condition
    for name, count in inner:
        if name not in condition.names:
            continue
        step = condition.coefficient(name).constant
        if step is None or count.constant is None or not condition.is_linear_in([name]):
            return None
        found = found.substitute({name: const(0 if step > 0 else count.constant - 1)})
    return found


def unlooked(
    condition: Index, loops: Sequence[tuple[str, Index]], value: Callable[[Index], float]
) -> float:
    """Return in which part of the iterations of some loops a condition is not looked at in the
    innermost one, as loops are written in parts.
    """
    used = [n for n, (name, _) in enumerate(loops) if name in condition.names]
    if len(used) < 2:
        return 1.0 if condition.names <= {name for name, _ in loops} else 0.0
    (name, count), inner = loops[used[0]], loops[used[0] + 1 :]
    least, times = worst(condition, inner), count.constant
    if least is None or least.names - {name} or times is None or not 0 < times <= _MANY:
        return 0.0
    left = [n for n in range(times) if value(least.substitute({name: n})) < 0]
    part = 0.0
    if len(left) == 1:
        part = unlooked(condition.substitute({name: left[0]}), inner, value)
    return 1 - len(left) / times * (1 - part)
