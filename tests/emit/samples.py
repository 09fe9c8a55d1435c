"""Lowered kernels written by hand."""

from dataclasses import dataclass

from isamap.ir.index import Index, const, product, var
from isamap.ir.nodes import Kernel, Literal
from isamap.lower.nodes import (
    Array,
    Call,
    Copy,
    Guard,
    Loop,
    LoweredKernel,
    Node,
    Register,
    Scope,
    Window,
)
from tests.emit.machines import F32, kernel


@dataclass(frozen=True)
class Sample:
    """A lowered kernel with the kernel that says how it is called."""

    lowered: LoweredKernel
    kernel: Kernel


def sample(
    kernel: Kernel,
    body: tuple[Node, ...],
    local_arrays: tuple[Array, ...] = (),
    requires: tuple[Index, ...] = (),
) -> Sample:
    """Return a sample whose arrays are the kernel's buffers and ``local_arrays``."""
    arrays = tuple(Array(b.name, b.role, b.dtype, product(b.shape)) for b in kernel.buffers)
    symbols = kernel.symbols
    return Sample(
        LoweredKernel(kernel.name, symbols, arrays + local_arrays, body, requires), kernel
    )


def gemm(parallel: bool = False) -> Sample:
    """C[m, n] += A[m, k] * B[k, n]: one row and 16 columns at a time, tails masked, B packed."""
    m, k, j = var("m"), var("k"), var("j")
    size_m, size_n, size_k = var("M"), var("N"), var("K")
    acc, a, b = (Register(name, "vec", F32, (16,)) for name in ("acc", "a", "b"))
    tail = size_n - 16 * j
    row = m * size_n + 16 * j
    inner = Loop(
        "k",
        size_k,
        (
            Call("broadcast", (("m", Window("A", m * size_k + k)), ("r", a))),
            Call("load", (("m", Window("packed", (j * size_k + k) * 16)), ("r", b))),
            Call("fma", (("a", a), ("b", b), ("c", acc))),
        ),
    )
    store = Guard(
        (tail - 16,),
        (Call("store", (("r", acc), ("m", Window("C", row)))),),
        (Call("store_part", (("r", acc), ("m", Window("C", row))), (("n", tail),)),),
    )
    zero = Call("set1", (("v", Literal("0", F32)), ("r", acc)))
    panels = (size_n + 15) // 16
    pack = Copy(
        (("j", panels), ("k", size_k), ("i", const(16))),
        "packed",
        (j * size_k + k) * 16 + var("i"),
        "B",
        k * size_n + 16 * j + var("i"),
        (size_n - 1 - 16 * j - var("i"),),
        Literal("0", F32),
    )
    body = (
        pack,
        Loop(
            "m", size_m, (Loop("j", panels, (Scope((acc, a, b), (zero, inner, store)),)),), parallel
        ),
    )
    shapes = kernel(
        "gemm",
        [
            ("A", "in", "f32", ["M", "K"]),
            ("B", "in", "f32", ["K", "N"]),
            ("C", "out", "f32", ["M", "N"]),
        ],
        ["M", "N", "K"],
    )
    return sample(shapes, body, (Array("packed", "local", F32, panels * size_k * 16),))
