"""Kernels cut down to sizes that a simulator goes through quickly, tails included."""

from collections.abc import Iterator
from pathlib import Path

from isamap.diagnostics import IsamapError
from isamap.ir.nodes import Kernel
from isamap.ir.statements import accesses
from isamap.pipeline.sizes import iterations
from isamap.pipeline.source import load_kernel

MOST = 20_000
"""Iterations that a cut kernel has at most, if its text allows it."""

STEPS = (37, 21, 13, 7, 5, 3, 2, 1)
"""Extents that are tried, from the largest down: odd, so that most tiles have tails."""


def small_kernel(path: Path) -> Kernel:
    """Return the kernel of a file with its extents cut.

    Extents of last dimensions are left longest: their elements lie side by side in memory and fill
    the lanes of an instruction.  Equal extents are cut together where the text wants it so.
    """
    kernel = load_kernel(path)
    while iterations(kernel, dict.fromkeys(kernel.symbols, 5)) > MOST:
        for smaller in _smaller(kernel):
            try:
                kernel = load_kernel(path, smaller)
                break
            except IsamapError:
                continue
        else:
            return kernel
    return kernel


def _smaller(kernel: Kernel) -> Iterator[dict[str, int]]:
    """Yield all extents with one, or several equal ones, cut; what should be cut first, first."""
    values = {e.name: e.value for e in kernel.extents if e.value is not None}
    last = {
        name
        for statement in kernel.statements
        for access in (statement.target, *accesses(statement.value))
        if access.indices
        for name in kernel.buffer(access.buffer).shape[-1].names
    }
    order = sorted(values, key=lambda n: -values[n] / (6 if n in last else 1))
    for name in order:
        smaller = next((step for step in STEPS if step < values[name]), None)
        if smaller is not None:
            yield {**values, name: smaller}
            equal = [n for n in values if values[n] == values[name]]
            yield {**values, **dict.fromkeys(equal, smaller)}
