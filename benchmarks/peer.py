"""isamap beside other libraries: the adapter of a benchmark that times several in turn.

The benchmark calls ``make(case, threads)`` in a process of its own, where its module ``data`` gives
the inputs, and gets a function that computes once and one that returns the answer; None for a case
that there is no kernel for.  Constants are prepared in ``make``.

Every kernel is mapped on to the best description of this CPU by its first schedule.  Where the
activations of a case may lie in several layouts, the one with the lowest estimate is taken; of
several with nearly the same, that which keeps the units and the caches less busy in sum.

    ISAMAP_PEER_TUNE=30s        search for a schedule within a time, or for a number of trials
    ISAMAP_PEER_RECORDS=FILE    where its measurements are kept, and begun with
    ISAMAP_PEER_HW=NAME         another description than 'native'
    ISAMAP_PEER_LAYOUT=planes   a layout that is taken where it can be, whatever the estimate
    ISAMAP_PEER_PERMIT=distribute   what kernels permit, too: Winograd's convolutions
"""

import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import isamap
from isamap.cli.options import BudgetType
from isamap.diagnostics import NoMappingError
from isamap.run.library import LINE
from isamap.text.load import parse_module

if TYPE_CHECKING:
    from peer_cases.problem import Array, Case, Problem

VERSION = f"isamap {isamap.__version__}"

RECORDS = Path.home() / ".cache" / "isamap-peer-records.jsonl"
"""Where measurements are kept unless ISAMAP_PEER_RECORDS says otherwise."""

PAGE = 4096

ALIKE = 1.1
"""Estimates this close are taken for equal; the units and caches that they sum up then decide."""


def make(case: "Case", threads: int) -> "tuple[Callable[[], int], Callable[[], Array]] | None":
    """Return what computes a case once, and what returns its answer."""
    from peer_cases import problems  # needs the benchmark's data

    found = mapped(problems(case), threads)
    if found is None:
        return None
    problem, result = found
    # Every array begins in other sets of the first cache, results far from where they wait for
    # inputs: a load looks like an earlier store where both addresses end in the same twelve bits.
    arrays: dict[str, Array] = {}
    for number, buffer in enumerate(b for b in result.kernel.buffers if b.role != "local"):
        shape = tuple(int(extent.evaluate({})) for extent in buffer.shape)
        away = PAGE // 2 if buffer.role == "out" else 0
        arrays[buffer.name] = _room(shape, buffer.dtype.numpy, LINE * (2 * number + 1) + away)
        if buffer.name in problem.inputs:
            np.copyto(arrays[buffer.name], problem.inputs[buffer.name].reshape(shape))
    roles = {b.name: b.role for b in result.kernel.buffers}
    constants = {name: array for name, array in arrays.items() if roles[name] == "const"}
    given = {name: array for name, array in arrays.items() if roles[name] == "in"}
    ready = result.compile().prepare(*constants.values(), threads=threads)
    # Nothing is looked at in a call: small kernels take less time than that.
    call = ready.bind(*given.values(), out=arrays["Y"], threads=threads).call
    return call, lambda: problem.answer(arrays["Y"])


def mapped(candidates: "list[Problem]", threads: int) -> "tuple[Problem, isamap.Result] | None":
    """Return the candidate with the lowest estimate, mapped, and tuned if that is asked for.

    None if there is none; NoMappingError if the machine computes none of them.
    """
    wanted = os.environ.get("ISAMAP_PEER_LAYOUT")
    candidates = [p for p in candidates if p.layout == wanted] or candidates
    found: list[tuple[Problem, isamap.Result]] = []
    fault: NoMappingError | None = None
    for problem in candidates:
        try:
            found.append((problem, map_text(problem.text, threads)))
        except NoMappingError as error:
            fault = error
    if not found and fault is not None:
        raise fault
    least = min((result.estimate.cycles for _, result in found), default=0.0)
    alike = [(p, r) for p, r in found if r.estimate.cycles <= ALIKE * least]
    best = min(alike, key=lambda one: sum(one[1].estimate.parts.values()), default=None)
    if best is not None and (budget := os.environ.get("ISAMAP_PEER_TUNE")):
        return best[0], map_text(best[0].text, threads, budget)
    return best


@cache
def machine() -> isamap.Accelerator:
    """Return the description that kernels are mapped on to."""
    return isamap.load_hardware(os.environ.get("ISAMAP_PEER_HW", "native"))


def map_text(text: str, threads: int, budget: str | None = None) -> isamap.Result:
    """Map a kernel, with a search if there is a budget for one."""
    (kernel,) = parse_module(_permitting(text, os.environ.get("ISAMAP_PEER_PERMIT"))).kernels
    options = isamap.Options(threads=threads)
    if budget is not None:
        records = Path(os.environ.get("ISAMAP_PEER_RECORDS", RECORDS))
        records.parent.mkdir(parents=True, exist_ok=True)
        tune = BudgetType().convert(budget, None, None)
        options = isamap.Options(threads=threads, tune=tune, records=records)
    return isamap.map(kernel, machine(), options)


def _permitting(text: str, more: str | None) -> str:
    """Return a kernel that permits more."""
    if not more:
        return text
    head, _, rest = text.partition(" {")
    return f"{head}{', ' if ' permit ' in head else ' permit '}{more} {{{rest}"


def _room(shape: tuple[int, ...], dtype: "np.dtype[np.generic]", offset: int) -> "Array":
    """Return an array of zeros that begins so many bytes into a page, or into some later one."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    room = np.zeros(size + 2 * PAGE, np.uint8)
    start = -room.ctypes.data % PAGE + offset % PAGE
    return room[start : start + size].view(dtype).reshape(shape)
