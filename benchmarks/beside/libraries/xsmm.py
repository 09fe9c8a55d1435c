"""libxsmm 1.17, called as from C: kernels that it compiles for tiles, in the loops of ``xsmm.c``."""

import ctypes
import shutil
import subprocess
import weakref
from collections.abc import Callable, Iterator
from ctypes import c_char_p, c_void_p
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import ml_dtypes
import numpy as np

from beside import inputs
from beside.cases import Case, element_kind, side
from beside.inputs import Array
from beside.places import CONSTANT, INPUT, RESULT, copied, room
from beside.way import Way

SOURCE = Path(__file__).with_name("xsmm.c")
FLAGS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC")
LIBRARIES = ("-lxsmm", "-lxsmmnoblas", "-lm", "-ldl", "-lpthread", "-lrt")

KINDS = {"f32": 1, "bf16": 2, "u8s8": 4, "scaled": 4}
"""Types of elements as ``xsmm.c`` counts them, with how many neighbours in depth lie together.

``scaled`` are bytes as well; a 256th part of their sums is stored, in a byte.
"""

OUTPUTS = {"u8s8": np.dtype(np.int32), "scaled": np.dtype(np.uint8)}
"""Types of sums that are not those of the operands."""

ROWS, COLUMNS, DEPTH = 24, (64, 48), 512
"""The tile of a kernel: rows and columns that its accumulators are a part of, depth.

Kernels of the whole depth are tried, too.
"""

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


def ways(case: Case, threads: int) -> Iterator[Way]:
    """One for each tile and packing; after one that there is no kernel for comes the next."""
    return map(lambda make: make(), _makers(case, threads))


def _makers(case: Case, threads: int) -> list[Callable[[], Way]]:
    kind = element_kind(case)
    match case["family"].partition("_")[0]:
        case "gemm":
            left, right = inputs.gemm(case)
            packings, shape = (LYING, EACH) if kind == "f32" else (EACH,), (case["m"], case["n"])
        case "linear":
            left, w = inputs.linear(case)
            right, packings, shape = w.T, (AHEAD,), (case["n"], case["m"])
        case "pw":  # channels last, a product
            x, w = inputs.conv(case)
            left, right = x.reshape(case["ci"], -1).T, w.reshape(case["co"], -1).T
            packings, shape = (AHEAD,), (1, case["co"], side(case), side(case))
            kind = "scaled" if kind == "u8s8" else kind
        case _:
            return []
    if kind == "bf16":
        left, right = left.astype(ml_dtypes.bfloat16), right.astype(ml_dtypes.bfloat16)
    depth = left.shape[1]
    # Sums that are stored between tiles of depth would be rounded, or cut off.
    depths = {depth, min(depth, DEPTH)} if kind in ("f32", "u8s8") else {depth}
    return [
        partial(_way, kind, left, right, shape, columns, deep, packing, threads)
        for columns, deep, packing in product(COLUMNS, sorted(depths), packings)
    ]


def _way(
    kind: str,
    left: Array,
    right: Array,
    shape: tuple[int, ...],
    columns: int,
    deep: int,
    packing: int,
    threads: int,
) -> Way:
    """Return a product of two matrices in tiles; Refused if there is no kernel for them."""
    (rows, depth), cols = left.shape, right.shape[1]
    columns = min(columns, cols)
    out = room((rows, cols), OUTPUTS.get(kind, left.dtype), RESULT)
    panels = room((0,) if packing == LYING else (cols * depth,), right.dtype, CONSTANT)
    if packing == AHEAD:
        panels[:] = _packed(right, KINDS[kind], columns)
    arrays = copied(left, INPUT), copied(right, CONSTANT), panels, out
    one, other, packed, result = (c_void_p(a.ctypes.data if a.size else None) for a in arrays)
    slab = ROWS * -(-rows // (ROWS * threads))
    sizes = rows, cols, depth, min(ROWS, rows), columns, deep, slab, threads
    given = one, other, packed, int(packing == EACH), result
    address = LIBRARY.xsmm_product(list(KINDS).index(kind), *sizes, *given)
    if address is None:
        raise Refused(f"libxsmm has no kernel of {kind} for {rows}x{cols}x{depth}")
    place = _Place(address, arrays)

    def answer() -> Array:
        found = out.astype(np.float32) if kind == "bf16" else out
        return found.reshape(shape) if len(shape) == 2 else found.T.reshape(shape)

    name = f"{columns} columns, {deep} deep, {PACKINGS[packing]}"
    return Way(name, partial(LIBRARY.xsmm_run, place), answer)


def _packed(right: Array, group: int, columns: int) -> Array:
    """Return a matrix in panels, one tile of columns each, groups of neighbours in depth together."""
    tiles = (right[:, at : at + columns] for at in range(0, right.shape[1], columns))
    grouped = [t.reshape(-1, group, t.shape[1]).transpose(0, 2, 1).ravel() for t in tiles]
    return np.concatenate(grouped)


class _Place(c_void_p):
    """The address of a product, which ends with it; its arrays live as long."""

    def __init__(self, address: int, arrays: tuple[Array, ...]) -> None:
        super().__init__(address)
        self.arrays = arrays
        weakref.finalize(self, LIBRARY.xsmm_drop, c_void_p(address)).atexit = False
