"""libxsmm, called as from C: kernels that it compiles for tiles, in the loops of ``xsmm.c``."""

import ctypes
import shutil
import subprocess
import weakref
from collections.abc import Iterator, Sequence
from ctypes import c_char_p, c_void_p
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ml_dtypes
import numpy as np

from beside import inputs
from beside.cases import Case, element_kind, side
from beside.inputs import Array
from beside.places import CONSTANT, INPUT, RESULT, Address, at, copied, room
from beside.way import Way

SOURCE = Path(__file__).with_name("xsmm.c")
FLAGS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC")
LIBRARIES = ("-lxsmm", "-lxsmmnoblas", "-lm", "-ldl", "-lpthread", "-lrt")

KINDS = {"f32": 1, "bf16": 2, "u8s8": 4, "scaled": 4}
"""Types of elements as ``xsmm.c`` counts them, with how many neighbours in depth lie together.

``scaled`` are bytes as well; a 256th part of their sums is stored, in a byte.
"""

OUTPUTS: dict[str, np.dtype[Any]] = {"u8s8": np.dtype(np.int32), "scaled": np.dtype(np.uint8)}
"""Types of sums that are not those of the operands."""

ROWS, COLUMNS = 24, (64, 48)
"""Rows and columns of a tile: whole numbers of what a kernel has accumulators for."""

LYING, EACH, AHEAD = range(3)
PACKINGS = ("as it lies", "packed in each call", "packed ahead")
"""How the right matrix is taken."""


class Refused(Exception):
    """The library compiles no kernel for this."""


def _loaded() -> ctypes.PyDLL:
    """Return ``xsmm.c``, compiled; ModuleNotFoundError if a compiler or libxsmm is not there."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise ModuleNotFoundError("no C compiler", name="cc")
    header = "#include <libxsmm.h>"
    found = subprocess.run([compiler, "-E", "-"], input=header, text=True, capture_output=True)
    if found.returncode:
        raise ModuleNotFoundError("no libxsmm.h", name="libxsmm")
    with TemporaryDirectory() as folder:
        file = f"{folder}/xsmm.so"
        subprocess.run([compiler, *FLAGS, str(SOURCE), "-o", file, *LIBRARIES], check=True)
        # No call lets go of the interpreter's lock: nothing else in this process would take it.
        library = ctypes.PyDLL(file)
    library.xsmm_target.restype = library.xsmm_version.restype = c_char_p
    library.xsmm_product.restype = c_void_p
    return library


LIBRARY = _loaded()

VERSION = f"libxsmm {LIBRARY.xsmm_version().decode()} for {LIBRARY.xsmm_target().decode()}"


@dataclass(frozen=True)
class _Problem:
    """left[rows, depth] right[depth, cols] in some packings; ``image`` is its result turned to."""

    kind: str
    left: Array
    right: Array
    packings: Sequence[int]
    image: tuple[int, ...] | None = None


def ways(case: Case, threads: int) -> Iterator[Way]:
    """One for each tile and packing; after one that there is no kernel for comes the next."""
    problem = _problem(case)
    if problem is None:
        return iter(())
    tried = product(COLUMNS, problem.packings)
    return map(lambda how: _way(problem, how[0], how[1], threads), tried)


def _problem(case: Case) -> _Problem | None:
    kind = element_kind(case)
    match case["family"].partition("_")[0]:
        case "gemm":
            packings = (LYING, EACH) if kind == "f32" else (EACH,)
            a, b = _typed(case, *inputs.gemm(case))
            return _Problem(kind, a, b, packings)
        case "linear":
            x, w = _typed(case, *inputs.linear(case))
            return _Problem(kind, x, w.T, (AHEAD,))
        case "pw":  # channels last, a product
            x, w = _typed(case, *inputs.conv(case))
            left, right = x.reshape(case["ci"], -1).T, w.reshape(case["co"], -1).T
            image = 1, case["co"], side(case), side(case)
            return _Problem("scaled" if kind == "u8s8" else kind, left, right, (AHEAD,), image)
    return None


def _typed(case: Case, one: Array, two: Array) -> tuple[Array, Array]:
    if element_kind(case) != "bf16":
        return one, two
    return one.astype(ml_dtypes.bfloat16), two.astype(ml_dtypes.bfloat16)


def _way(problem: _Problem, columns: int, packing: int, threads: int) -> Way:
    """Return a product of two matrices in tiles; Refused if there is no kernel for them."""
    kind, left, right = problem.kind, problem.left, problem.right
    (rows, depth), cols = left.shape, right.shape[1]
    refused = f"libxsmm has no kernel of {kind} for {rows}x{cols}x{depth}"
    if depth % KINDS[kind]:
        raise Refused(refused)
    tile = min(ROWS, rows), min(columns, cols)
    out = room((rows, cols), OUTPUTS.get(kind, left.dtype), RESULT)
    panels = room((0,) if packing == LYING else (cols * depth,), right.dtype, CONSTANT)
    if packing == AHEAD:
        panels[:] = _packed(right, KINDS[kind], tile[1])
    arrays = copied(left, INPUT), copied(right, CONSTANT), panels, out
    one, other, packed, result = map(at, arrays)
    slab = ROWS * -(-rows // (ROWS * threads))
    sizes = rows, cols, depth, *tile, slab, threads
    given = one, other, packed, int(packing == EACH), result
    address = LIBRARY.xsmm_product(list(KINDS).index(kind), *sizes, *given)
    if address is None:
        raise Refused(refused)

    place = Address(address, *arrays)
    weakref.finalize(place, LIBRARY.xsmm_drop, c_void_p(address)).atexit = False

    def answer() -> Array:
        found = out.astype(np.float32) if kind == "bf16" else out
        return found if problem.image is None else found.T.reshape(problem.image)

    return Way(f"{columns} columns, {PACKINGS[packing]}", partial(LIBRARY.xsmm_run, place), answer)


def _packed(right: Array, group: int, columns: int) -> Array:
    """Return panels of so many columns, in which groups of neighbours in depth lie together."""
    tiles = (right[:, at : at + columns] for at in range(0, right.shape[1], columns))
    grouped = [t.reshape(-1, group, t.shape[1]).transpose(0, 2, 1).ravel() for t in tiles]
    return np.concatenate(grouped)
