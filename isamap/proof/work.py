"""How much a run of a lowered kernel takes, before it is made."""

from collections.abc import Mapping, Sequence
from math import prod

from isamap.interp.arguments import bind_symbols
from isamap.interp.setup import box_of
from isamap.ir.index import Index
from isamap.ir.nodes import Kernel
from isamap.lower.nodes import Call, Copy, Guard, Loop, LoweredKernel, Node, Prefetch, Scope


def is_affordable(
    kernel: Kernel,
    lowered: LoweredKernel,
    symbols: Mapping[str, int],
    calls: int,
    iterations: int,
) -> bool:
    """Return whether a run at these sizes stays within some instructions and iterations."""
    return affordable_work(kernel, lowered, symbols, calls, iterations) is not None


def affordable_work(
    kernel: Kernel,
    lowered: LoweredKernel,
    symbols: Mapping[str, int],
    calls: int,
    iterations: int,
) -> int | None:
    """Return the instructions of a run, None if it takes more than some, or more iterations."""
    values = bind_symbols(kernel, symbols)
    points = sum(
        prod(count for _, _, count in box_of(statement, values)) for statement in kernel.statements
    )
    if points > iterations:
        return None
    made, copied = _work(lowered.code, dict(values))
    return made if made <= calls and copied <= iterations else None


def _work(nodes: Sequence[Node], values: dict[str, int]) -> tuple[int, int]:
    """Return instructions and copied elements; counts that depend on counters are taken at 0."""
    made = copied = 0
    for node in nodes:
        if isinstance(node, Call):
            made += 1
        elif isinstance(node, Copy):
            copied += prod(_number(count, values) for _, count in node.counters)
            made += 1
        elif isinstance(node, Prefetch):
            made += 1
        elif isinstance(node, Loop):
            count = max(0, _number(node.count, values))
            below = _work(node.body, {**values, node.counter: 0})
            made, copied = made + count * below[0] + 1, copied + count * below[1]
        elif isinstance(node, Guard):
            both = [_work(part, values) for part in (node.body, node.otherwise)]
            made, copied = made + max(b[0] for b in both) + 1, copied + max(b[1] for b in both)
        elif isinstance(node, Scope):
            below = _work(node.body, values)
            made, copied = made + below[0], copied + below[1]
    return made, copied


def _number(index: Index, values: Mapping[str, int]) -> int:
    return int(index.evaluate(values, lambda _buffer, _indices: 0))
