"""A small machine and lowered kernels for it, made from text and by hand."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from isamap.hw.accelerator import Accelerator, Entry, Storage, Unit
from isamap.ir.dtype import DTYPES
from isamap.ir.index import Index, as_index
from isamap.ir.nodes import Role
from isamap.lower.nodes import Array, LoweredKernel, Node, Register
from isamap.text.load import parse_module

F32, S32 = DTYPES["f32"], DTYPES["s32"]

_TEXT = """
instruction load { in m : f32[4] @ memory  out r : f32[4] @ reg  r[i] = m[i] }
instruction part(n in 1..5) {
  in m : f32[n] @ memory pad 0  out r : f32[4] @ reg  for i in 0..4  r[i] = m[i]
}
instruction some(n in 1..5) {
  in m : f32[n] @ memory  inout r : f32[4] @ reg  for i in 0..n  r[i] = m[i]
}
instruction store { in r : f32[4] @ reg  out m : f32[4] @ memory  m[i] = r[i] }
instruction mac {
  in a : f32[4] @ reg  in b : f32[4] @ reg  inout c : f32[4] @ reg  c[i] += a[i] * b[i]
}
instruction set { in v : f32[] @ imm  out r : f32[4] @ reg  r[i] = v[] }
instruction index { in v : s64[] @ imm  out m : s64[] @ memory  m[] = v[] }
instruction fetch(h in 1..9, w in 1..9, P) {
  in m : f32[h, w] @ memory strides [P, 1]  inout t : f32[8, 8] @ spm
  for i in 0..h  for j in 0..w  t[i, j] = m[i, j]
}
instruction drain { in t : f32[8, 8] @ spm  out m : f32[8, 8] @ memory  m[i, j] = t[i, j] }
"""

STORAGES = (
    Storage("reg", "registers", count=2, bits=128),
    Storage("imm", "immediate"),
    Storage("spm", "scratchpad", size=1024, alignment=64, read=Fraction(16), write=Fraction(8)),
    Storage("memory", "memory"),
)

PACE = {"mac": Fraction(1, 4)}
"""Cycles of an instruction, where it is not one: half a cycle of one of two units."""
UNITS = {"mac": "fp", "load": "port", "store": "port", "fetch": "dma", "drain": "dma"}


def machine(issue: int = 1) -> Accelerator:
    """A machine without toolchain; latencies are 4 for mac and 1 for the rest."""
    entries = tuple(
        Entry(
            i,
            throughput=PACE.get(i.name, Fraction(1)),
            latency=Fraction(4) if i.name == "mac" else Fraction(1),
            units={UNITS[i.name]: PACE.get(i.name, Fraction(1))} if i.name in UNITS else {},
            align={"m": 16} if i.name == "store" else {},
        )
        for i in parse_module(_TEXT).instructions
    )
    units = (Unit("fp", 2), Unit("port"), Unit("dma"))
    return Accelerator("toy", "A toy", STORAGES, units, entries, None, Fraction(10**9), issue=issue)


def array(name: str, role: Role, size: Index | int, dtype: str = "f32") -> Array:
    return Array(name, role, DTYPES[dtype], as_index(size))


def reg(name: str) -> Register:
    return Register(name, "reg", F32, (4,))


def lowered(
    arrays: Sequence[Array],
    body: Sequence[Node],
    symbols: tuple[str, ...] = (),
    requires: tuple[Index, ...] = (),
) -> LoweredKernel:
    return LoweredKernel("k", symbols, tuple(arrays), tuple(body), requires)


def private(found: Array) -> Array:
    return replace(found, private=True)
