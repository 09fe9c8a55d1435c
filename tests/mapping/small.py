"""Small statements, instructions and machines, each in a line of text."""

import re
from dataclasses import replace
from fractions import Fraction
from math import prod

from isamap.hw.accelerator import Accelerator, Entry, Storage
from isamap.ir.dtype import DTYPES, DType
from isamap.ir.index import Index, const, var
from isamap.ir.nodes import (
    Access,
    Buffer,
    Expr,
    Instruction,
    Op,
    Reduction,
    Statement,
    Variable,
)
from isamap.ir.statements import accesses
from isamap.mapping.matching import Needle
from isamap.mapping.needles.needles import needles, roots

S64 = DTYPES["s64"]
STORAGES = (
    Storage("reg", "registers", 32, 512),
    Storage("mem", "memory"),
    Storage("imm", "immediate"),
)


def access(text: str, dtype: DType = S64) -> Access:
    """Return the access written ``A[i, 2*k + 1]``."""
    name, inside = re.fullmatch(r"\s*(\w+)\[(.*)\]\s*", text).groups()  # type: ignore[union-attr]
    names = {n: var(n) for n in re.findall(r"[A-Za-z_]\w*", inside)}
    indices = [eval(part, {}, names) for part in inside.split(",")] if inside.strip() else []
    fixed = tuple(i if isinstance(i, Index) else const(i) for i in indices)
    return Access(name, fixed, dtype)


def fold(op: str, args: list[Expr]) -> Expr:
    """Return the left-associated application of a binary operation."""
    result = args[0]
    for arg in args[1:]:
        result = Op(op, (result, arg), result.dtype)
    return result


def statement(text: str, dtype: DType = S64, /, **extents: int | str) -> Statement:
    """Return the statement ``C[i] += A[i, k] * B[k]``; its body has one kind of operation."""
    parts = re.fullmatch(r"(.*?\])\s*(\S*=)\s*(.*)", text)
    assert parts is not None
    left, reduction, right = parts.groups()
    op = next(
        (
            op
            for op in ("*", "max", "min", "+", "-", "&", "|", "^")
            if f" {op} " in re.sub(r"\[.*?\]", "", right)
        ),
        "",
    )
    terms = re.split(rf" {re.escape(op)} (?![^\[]*\])", right) if op else [right]
    body = fold(op, [access(t, dtype) for t in terms])
    target = access(left, dtype)
    order = dict.fromkeys(re.findall(r"\b[a-z]\w*\b", " ".join(re.findall(r"\[(.*?)\]", text))))
    variables = tuple(
        Variable(n, const(0), var(e) if isinstance(e, str) else const(e))
        for n in order
        if (e := extents.get(n)) is not None
    )
    names: tuple[Reduction, ...] = ("=", "+=", "*=", "max=", "min=", "or=", "and=", "xor=")
    return Statement(target, names[names.index(reduction)], body, variables)


def instruction(name: str, inner: Statement, storages: dict[str, str] | None = None) -> Instruction:
    """Return the instruction of one statement; operands are as large as its axes need."""
    extents = {v.name: v.extent.constant for v in inner.variables}
    operands: dict[str, Buffer] = {}
    for a in (*accesses(inner.value), inner.target):
        shape = []
        for index in a.indices:
            bounds = index.bounds({n: (0, e - 1) for n, e in extents.items() if e is not None})
            assert bounds is not None
            shape.append(const(bounds[1] + 1))
        is_target = a.buffer == inner.target.buffer
        role = "in" if not is_target else "out" if inner.reduction == "=" else "inout"
        if is_target and any(b.buffer == a.buffer for b in accesses(inner.value)):
            role = "inout"
        place = (storages or {}).get(a.buffer, "reg")
        operands[a.buffer] = Buffer(a.buffer, role, a.dtype, tuple(shape), place)  # type: ignore[arg-type]
    return Instruction(name, (), tuple(operands.values()), (), (), (inner,))


def machine(*instructions: Instruction) -> Accelerator:
    """Return a machine with these instructions, each of one cycle."""
    entries = tuple(Entry(i, Fraction(1), Fraction(1)) for i in instructions)
    return Accelerator("toy", "toy", STORAGES, (), entries, None, Fraction(1))


GEMM = instruction("gemm", statement("c[i,j] += a[i,k] * b[k,j]", i=16, j=16, k=16))
OUTER = instruction("outer", statement("c[i,j] += a[i] * b[j]", i=16, j=16))
DOT = instruction("dot", statement("c[i] += a[i,k] * b[k]", i=16, k=4))
LANES = instruction("lanes", statement("c[i] += a[i] * b[i]", i=16))

KERNELS = {
    "gemm": statement("C[m,n] += A[m,k] * B[k,n]", m=2, n=2, k=2),
    "conv1d": statement("Y[w] += X[w+s] * W[s]", w=3, s=3),
    "strided": statement("Y[w] += X[2*w+s] * W[s]", w=3, s=3),
    "depthwise": statement("Y[c,w] += X[c,w+s] * W[c,s]", c=2, w=3, s=3),
    "gemv": statement("Y[m] += A[m,k] * B[k]", m=2, k=2),
    "outer": statement("Y[m,n] += A[m] * B[n]", m=2, n=2),
    "batched": statement("C[b,m,n] += A[b,m,k] * B[b,k,n]", b=2, m=2, n=2, k=2),
    "scatter": statement("Y[w+s] += X[w] * W[s]", w=3, s=3),
    "flipped": statement("Y[w] += X[w-s+2] * W[s]", w=3, s=3),
}


def root(kernel: Statement, inner: Instruction) -> tuple[Needle, tuple[tuple[str, Expr], ...]]:
    """Return the needle of an instruction and the first binding of a kernel's operands to it."""
    return roots(kernel, needles(machine(inner)))[0]


def with_extents(needle: Needle, extents: dict[str, int]) -> Needle:
    """Return the needle with other axis extents; a merged axis has at least that extent."""
    axes = []
    for axis in needle.axes:
        extent, parts = extents.get(axis.name, axis.extent), axis.parts
        if parts:
            inside = prod(size for _, size in parts[1:])
            parts = ((parts[0][0], -(-extent // inside)), *parts[1:])
            extent = inside * parts[0][1]
        axes.append(replace(axis, extent=extent, parts=parts))
    return replace(needle, axes=tuple(axes))
