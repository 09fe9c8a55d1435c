"""Lowered kernels written by hand."""

from dataclasses import dataclass

from isamap.ir.dtype import DTYPES
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
    prepare: tuple[Node, ...] = (),
) -> Sample:
    """Return a sample whose arrays are the kernel's buffers and ``local_arrays``."""
    arrays = tuple(Array(b.name, b.role, b.dtype, product(b.shape)) for b in kernel.buffers)
    symbols = kernel.symbols
    return Sample(
        LoweredKernel(kernel.name, symbols, arrays + local_arrays, body, requires, prepare), kernel
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


def padded() -> Sample:
    """Y[h, w] = X[h - 1, w - 1] with a frame of 2: a copy whose conditions meet every edge."""
    h, w = var("h"), var("w")
    frame = Copy(
        (("h", const(7)), ("w", const(9))),
        "Y",
        9 * h + w,
        "X",
        5 * (h - 1) + w - 2,
        (h - 1, 5 - h, w - 2, 6 - w),
        Literal("0.5", DTYPES["bf16"]),
    )
    shapes = kernel("padded", [("X", "in", "bf16", [5, 5]), ("Y", "out", "bf16", [7, 9])])
    return sample(shapes, (frame,))


def scalars(name: str, value: str) -> Sample:
    """Y[0] = X[0]; Y[1] = a constant, for one type, all held as memory holds them."""
    dtype = DTYPES[name]
    r = Register("r", "raw", dtype, ())
    body = Scope(
        (r,),
        (
            Call(f"get_{name}", (("m", Window("X", const(0))), ("r", r))),
            Call(f"put_{name}", (("r", r), ("m", Window("Y", const(0))))),
            Call(f"set_{name}", (("v", Literal(value, dtype)), ("r", r))),
            Call(f"put_{name}", (("r", r), ("m", Window("Y", const(1))))),
        ),
    )
    shapes = kernel(f"scalars_{name}", [("X", "in", name, [1]), ("Y", "out", name, [2])])
    return sample(shapes, (body,))


def indices(
    values: tuple[Index, ...], counts: tuple[int, int], requires: tuple[Index, ...] = ()
) -> Sample:
    """Y[i, j, n] = value n of the loop counters i and j, the extent M and the table T."""
    i, j = var("i"), var("j")
    calls = tuple(
        Call(
            "put_index",
            (("v", value), ("m", Window("Y", (i * counts[1] + j) * len(values) + n))),
        )
        for n, value in enumerate(values)
    )
    loops = Loop("i", const(counts[0]), (Loop("j", const(counts[1]), calls),))
    shapes = kernel(
        "indices",
        [("T", "in", "s32", ["M"]), ("Y", "out", "s64", [*counts, len(values)])],
        ["M"],
    )
    return sample(shapes, (loops,), requires=requires)


def reversal() -> Sample:
    """Y[i, j] = X[i, N - 1 - j] by way of a row of scratch memory for each thread."""
    size, i, j = var("N"), var("i"), var("j")
    s32 = DTYPES["s32"]
    row = Array("row", "local", s32, size, private=True)
    unused = Array("unused", "local", s32, size * 3)
    fill = Copy((("j", size),), "row", j, "X", i * size + size - 1 - j)
    drain = Copy((("j", size),), "Y", i * size + j, "row", j)
    shapes = kernel(
        "reversal", [("X", "in", "s32", [9, "N"]), ("Y", "out", "s32", [9, "N"])], ["N"]
    )
    return sample(shapes, (Loop("i", const(9), (fill, drain), parallel=True),), (row, unused))


def stages() -> Sample:
    """A row that threads change in turns: what one of them writes another one reads next.

    In each round Y is turned around by way of a scratch row, its last element
    becomes the first one, and a register that is set outside of the loops goes to Z.  In the
    rounds before the last one, Z is copied to W.
    """
    size, rounds, i, t, s32 = var("N"), var("T"), var("i"), var("t"), DTYPES["s32"]
    row = Array("row", "local", s32, size)
    one = Array("one", "local", s32, const(1))
    r = Register("r", "raw", s32, ())

    def each(counter: str, *nodes: Node) -> Loop:
        return Loop(counter, size, nodes, parallel=True)

    def moved(target: str, to: Index, source: str, start: Index) -> Copy:
        return Copy((), target, to, source, start)

    turned = each("i", moved("row", size - 1 - i, "Y", i))
    back = each("i", moved("Y", i, "row", i))
    alone = (moved("one", const(0), "Y", const(0)), moved("Y", size - 1, "one", const(0)))
    told = each("i", Call("put_s32", (("r", r), ("m", Window("Z", i)))))
    kept = Scope((r,), (Call("get_s32", (("m", Window("Y", size - 1)), ("r", r))), told))
    last = Guard((rounds - 2 - t,), (each("i", moved("W", i, "Z", size - 1 - i)),))
    shapes = kernel(
        "stages",
        [
            ("X", "in", "s32", ["N"]),
            ("Y", "out", "s32", ["N"]),
            ("Z", "out", "s32", ["N"]),
            ("W", "out", "s32", ["N"]),
        ],
        ["N", "T"],
    )
    begin = each("i", moved("Y", i, "X", i), moved("W", i, "X", i))
    body = (begin, Loop("t", rounds, (turned, back, *alone, kept, last)))
    return sample(shapes, body, (row, one))


def prepared() -> Sample:
    """Y[m, j] = W[N - 1 - j], turned ahead by way of a row that is not kept; Z[m, j] = V[j]."""
    size, m, j, s32 = var("N"), var("m"), var("j"), DTYPES["s32"]
    row, turned = Array("row", "local", s32, size), Array("turned", "prepared", s32, size)
    stage = Array("stage", "local", s32, size)
    first = (
        Copy((("j", size),), "row", j, "W", j),
        Copy((("j", size),), "turned", j, "row", size - 1 - j),
    )
    body = (
        Copy((("j", size),), "stage", j, "turned", j),
        Copy((("m", var("M")), ("j", size)), "Y", m * size + j, "stage", j),
        Copy((("m", var("M")), ("j", size)), "Z", m * size + j, "V", j),
    )
    shapes = kernel(
        "prepared",
        [
            ("W", "const", "s32", ["N"]),
            ("V", "const", "s32", ["N"]),
            ("X", "in", "s32", ["M"]),
            ("Y", "out", "s32", ["M", "N"]),
            ("Z", "out", "s32", ["M", "N"]),
        ],
        ["M", "N"],
    )
    return sample(shapes, body, (row, turned, stage), prepare=first)


def failing(instruction: str) -> Sample:
    """A kernel of one instruction that does not end well; ``X`` names what it is given."""
    call = Call(instruction, (("m", Window("Y", const(0))),))
    return sample(kernel(instruction, [("X", "in", "s64", [1]), ("Y", "out", "s64", [1])]), (call,))


def greedy() -> Sample:
    """A kernel whose workspace is M times 2**30 bytes."""
    big = Array("big", "local", DTYPES["u8"], var("M") * (1 << 30))
    body = (
        Copy((("i", const(1)),), "big", const(0), "X", const(0)),
        Copy((("i", const(1)),), "Y", const(0), "big", const(0)),
    )
    shapes = kernel("greedy", [("X", "in", "u8", [1]), ("Y", "out", "u8", [1])], ["M"])
    return sample(shapes, body, (big,))


def increment() -> Sample:
    """Z[0] = Z[0] + 1 for s64, Z starting from its content."""
    s64 = DTYPES["s64"]
    z, one = Register("z", "raw", s64, ()), Register("one", "raw", s64, ())
    place = Window("Z", const(0))
    body = Scope(
        (z, one),
        (
            Call("get_s64", (("m", place), ("r", z))),
            Call("set_s64", (("v", Literal("1", s64)), ("r", one))),
            Call("add_s64", (("a", z), ("b", one), ("r", z))),
            Call("put_s64", (("r", z), ("m", place))),
        ),
    )
    return sample(kernel("increment", [("Z", "inout", "s64", [1])]), (body,))


def surviving() -> Sample:
    """What :func:`failing` computes if nothing fails."""
    call = Call("put_index", (("v", const(5)), ("m", Window("Y", const(0)))))
    return sample(kernel("fine", [("X", "in", "s64", [1]), ("Y", "out", "s64", [1])]), (call,))
