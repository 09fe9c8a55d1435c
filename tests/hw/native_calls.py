"""Single instructions as C functions: built from a description's templates, called on raw bytes."""

import ctypes
import mmap
import re
import subprocess
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from isamap.emit.literals import memory_type, value_text
from isamap.hw.accelerator import Accelerator, Entry
from isamap.hw.template import render
from isamap.ir.index import const, row_major, var
from isamap.ir.nodes import Access, Buffer, Expr, Instruction, Literal, Op, Variable

Values = np.ndarray[Any, np.dtype[Any]]

_PAGE = mmap.PAGESIZE
_LIBC = ctypes.CDLL(None, use_errno=True)
_PROT_READ, _PROT_WRITE = 1, 2


@dataclass(frozen=True)
class Case:
    """One instruction with its immediates; ``symbol`` is the name of its C function."""

    entry: Entry
    immediates: Mapping[str, Literal]
    symbol: str


def cases(entry: Entry, accelerator: Accelerator) -> Iterable[Case]:
    """Yield the instruction with a few values of its immediate operand, if it has one."""
    operands = [
        o
        for o in entry.instruction.places
        if accelerator.storage(entry.storage(o.name)).kind == "immediate"
    ]
    if not operands:
        yield Case(entry, {}, f"call_{entry.name}")
        return
    (operand,) = operands
    more = {"float": ["-1.5", "inf"], "signed": ["-1", "-8"]}.get(operand.dtype.kind, [])
    texts = ["0", "1", *more]
    if operand.dtype.name == "f8e4m3":
        texts.remove("inf")
    if operand.dtype.kind == "bool":
        texts = ["false", "true"]
    elif not operand.dtype.is_float:
        texts += [str(operand.dtype.lowest), str(operand.dtype.highest)]
    for number, text in enumerate(texts):
        literal = Literal(text, operand.dtype)
        yield Case(entry, {operand.name: literal}, f"call_{entry.name}_{number}")


@dataclass(frozen=True)
class Place:
    """Where an operand lies: ``offset`` bytes into an array of elements of ``width`` bytes."""

    bytes: Values
    offset: int
    width: int


Call = Callable[[Case, Sequence[Place | None], Sequence[int]], None]
"""Executes a case on its operands, None for an immediate, and the values of its free extents."""


def called_here(library: ctypes.CDLL) -> Call:
    """Return what calls the functions of a library in this process."""

    def call(case: Case, places: Sequence[Place | None], symbols: Sequence[int]) -> None:
        addresses = [ctypes.c_void_p(p.bytes.ctypes.data + p.offset if p else None) for p in places]
        numbers = (ctypes.c_int64 * max(1, len(symbols)))(*symbols)
        getattr(library, case.symbol)((ctypes.c_void_p * len(addresses))(*addresses), numbers)

    return call


def source(accelerator: Accelerator, chosen: Iterable[Case]) -> str:
    """Return C text with a function ``void call(void **operands, const int64_t *symbols)``."""
    toolchain = accelerator.toolchain
    assert toolchain is not None
    lines = [f"#include <{header}>" for header in toolchain.headers]
    lines.append(toolchain.prelude)
    for case in chosen:
        lines += _function(case, accelerator)
    return "\n".join(lines) + "\n"


def _function(case: Case, accelerator: Accelerator) -> list[str]:
    instruction = case.entry.instruction
    lanes = lanes_of(instruction)
    before, after = [], []
    values = {name: dtype.name for name, dtype in instruction.types}
    for at, extent in enumerate(free(instruction)):
        before.append(f"    const int64_t x_{extent} = symbols[{at}];")
        values[extent] = f"x_{extent}"
    number = 0
    for at, operand in enumerate(instruction.places):
        storage = accelerator.storage(case.entry.storage(operand.name))
        if storage.numbered:
            values[operand.name] = str(number)
            place = f"operands[{at}]"
            before += _moved(accelerator, operand, number, place, into=True)
            if operand.role != "in":
                after += _moved(accelerator, operand, number, place, into=False)
            number += 1
            continue
        name = f"o_{operand.name}"
        values[operand.name] = name
        if operand.name in case.immediates:
            values[operand.name] = value_text(case.immediates[operand.name])
        elif storage.kind == "memory":
            qualifier = "const " if operand.role == "in" else ""
            c_type = memory_type(operand.dtype)
            pointer = f"({qualifier}{c_type} *)operands[{at}] + lane"
            before.append(f"    {qualifier}{c_type} *{name} = {pointer};")
        else:
            c_type = storage.types[operand.dtype.name]
            before.append(f"    {c_type} {name};")
            place = f"(char *)operands[{at}] + lane * sizeof {name}"
            before.append(f"    memcpy(&{name}, {place}, sizeof {name});")
            if operand.role != "in":
                after.append(f"    memcpy({place}, &{name}, sizeof {name});")
    assert case.entry.emit is not None
    body = [f"    {line}" for line in render(case.entry.emit, values).splitlines()]
    places = dict.fromkeys(case.entry.storage(o.name) for o in instruction.places)
    used = [accelerator.storage(name) for name in places]
    enter = [f"    if (!({s.permit})) __builtin_trap();" for s in used if s.permit]
    enter += [f"    {line}" for s in used for line in s.enter.splitlines()]
    leave = [f"    {line}" for s in used for line in s.leave.splitlines()]
    head = f"void {case.symbol}(void **operands, const int64_t *symbols)"
    return [
        f"{head};",
        head,
        "{",
        "    (void)operands, (void)symbols;",
        *enter,
        f"    for (size_t lane = 0; lane < {lanes}; lane++) {{",
        *before,
        *body,
        *after,
        "    }",
        *leave,
        "}",
    ]


def _moved(
    accelerator: Accelerator, operand: Buffer, number: int, place: str, into: bool
) -> list[str]:
    """Return the C that moves all of a numbered register: from memory or to it.

    Where no instruction does that for the operand's type, one for as many bytes does.
    """
    storage = accelerator.storage(operand.storage or "")
    size = prod(shape_of(operand, {})) * operand.dtype.bits
    for entry in accelerator.entries:
        places = entry.instruction.places
        kinds = {accelerator.storage(entry.storage(o.name)).kind for o in places}
        mine = [o for o in places if o.storage == storage.name]
        if kinds != {"registers", "memory"} or len(places) != 2 or len(mine) != 1:
            continue
        held, other = mine[0], next(o for o in places if o is not mine[0])
        if (held.role == "out") != into or held.dtype != other.dtype or entry.emit is None:
            continue
        shape = [extent.constant for extent in other.shape]
        if None in shape or prod(shape_of(held, {})) * held.dtype.bits != size:
            continue
        pitches = {e.name: str(shape[-1]) for e in entry.instruction.extents if e.value is None}
        pointer = f"(({'const ' * into}{memory_type(held.dtype)} *){place})"
        names = {name: dtype.name for name, dtype in entry.instruction.types}
        values = {**pitches, **names, held.name: str(number), other.name: pointer}
        return [f"        {line}" for line in render(entry.emit, values).splitlines()]
    raise AssertionError(f"nothing moves {operand.dtype} {operand.shape} of {storage.name}")


LANES = 300
"""How often a function repeats an instruction on scalars, each time on the next elements."""


def lanes_of(instruction: Instruction) -> int:
    """Return how many elements of each operand a function takes."""
    scalar = not instruction.extents and not any(o.shape for o in instruction.places)
    return LANES if scalar else 1


def widened(instruction: Instruction, immediates: Container[str]) -> Instruction:
    """Return an instruction on scalars as one on vectors, its immediate operands left alone."""
    if lanes_of(instruction) == 1:
        return instruction
    lane = (var("lane"),)

    def wide(value: Expr) -> Expr:
        match value:
            case Access(buffer) if buffer not in immediates:
                return replace(value, indices=lane)
            case Op(args=args):
                return replace(value, args=tuple(wide(a) for a in args))
            case _:
                return value

    (statement,) = instruction.statements
    target = wide(statement.target)
    assert isinstance(target, Access)
    variables = (Variable("lane", const(0), const(LANES)),)
    return replace(
        instruction,
        operands=tuple(
            o if o.name in immediates else replace(o, shape=(const(LANES),))
            for o in instruction.places
        ),
        statements=(
            replace(statement, target=target, value=wide(statement.value), variables=variables),
        ),
    )


def free(instruction: Instruction) -> tuple[str, ...]:
    """Return the extents that a use chooses: those with a range, and free pitches."""
    return tuple(e.name for e in instruction.extents if e.value is None)


def build(accelerator: Accelerator, chosen: list[Case], folder: Path) -> ctypes.CDLL:
    """Compile the functions, warnings being errors, and load them."""
    toolchain = accelerator.toolchain
    assert toolchain is not None
    text, library = folder / "calls.c", folder / "calls.so"
    text.write_text(source(accelerator, chosen), encoding="utf-8")
    warnings = ["-Wall", "-Wextra", "-Werror"]
    command = [*toolchain.compiler, *toolchain.flags, *warnings, str(text)]
    command += [*toolchain.shared, "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return ctypes.CDLL(str(library))


class Guarded:
    """Memory whose last byte is followed by a page that may not be touched."""

    def __init__(self, size: int = 8 * _PAGE) -> None:
        self.size = size
        self._map = mmap.mmap(-1, size + _PAGE)
        self.bytes: Values = np.frombuffer(self._map, np.uint8, size)
        self._address = self.bytes.ctypes.data
        page = ctypes.c_void_p(self._address + size)
        assert _LIBC.mprotect(page, ctypes.c_size_t(_PAGE), 0) == 0

    def place(self, shape: tuple[int, ...], pitches: tuple[int, ...], dtype: Any) -> Values:
        """Return an array of the shape and pitches that ends at the forbidden page."""
        item = np.dtype(dtype).itemsize
        span = sum((n - 1) * p for n, p in zip(shape, pitches, strict=True)) + 1
        start = self.size - span * item
        assert start >= 0
        strides = tuple(p * item for p in pitches)
        return np.ndarray(shape, dtype, self._map, start, strides)


def shape_of(operand: Buffer, symbols: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape of an operand as numbers."""
    return tuple(extent.evaluate(symbols) for extent in operand.shape)


def pitches_of(operand: Buffer, symbols: Mapping[str, int]) -> tuple[int, ...]:
    """Return the pitches of a memory operand in elements."""
    strides = operand.strides if operand.strides is not None else row_major(operand.shape)
    return tuple(stride.evaluate(symbols) for stride in strides)


WIDENED = {"isamap_ymm2_s16": np.int16, "isamap_ymm2_f32": np.float32, "isamap_wide": np.int32}
"""C types that hold elements of even place, widened to this, and behind them those of odd place."""

PAIRS = "isamap_pairs"
"""The C type that holds each element as 16 bits, and 16 bits of zero beside it."""


class Register:
    """The bytes of a register's C variable, to and from elements."""

    def __init__(self, operand: Buffer, c_type: str) -> None:
        self.dtype = operand.dtype
        self.shape = shape_of(operand, {})
        self.is_mask = re.fullmatch(r"__mmask\d+", c_type) is not None
        # Vectors hold what memory holds; a scalar's C type may be wider than its element.
        scalar = {"float": np.float32, "double": np.float64, "int8_t": np.int8, "uint8_t": np.uint8}
        self.is_widened = c_type in WIDENED
        self.is_paired = c_type == PAIRS
        self.held = np.dtype({**scalar, **WIDENED}.get(c_type, operand.dtype.numpy))
        self.bytes: Values = np.zeros(max(64, 8 * prod(self.shape)), np.uint8)

    def write(self, elements: Values) -> None:
        """Put elements into the register."""
        raw: bytes
        if self.is_mask:
            raw = np.packbits(elements.astype(np.uint8).reshape(-1), bitorder="little").tobytes()
        elif self.is_paired:
            raw = elements.astype(np.int16).view(np.uint16).astype(np.uint32).tobytes()
        elif self.is_widened:
            flat = elements.astype(self.held).reshape(-1)
            raw = flat[0::2].tobytes() + flat[1::2].tobytes()
        else:
            raw = np.ascontiguousarray(elements.astype(self.held)).tobytes()
        self.bytes[:] = 0xA5
        self.bytes[: len(raw)] = np.frombuffer(raw, np.uint8)

    def read(self) -> Values:
        """Return the elements in the register."""
        count = prod(self.shape)
        if self.is_mask:
            bits = np.unpackbits(self.bytes[:2], bitorder="little")[:count]
            return bits.astype(np.bool_).reshape(self.shape)
        if self.is_paired:
            pairs = self.bytes[: 4 * count].copy().view(np.uint32)
            assert (pairs >> 16 == 0).all(), "the other halves are not zero"
            halves = pairs.astype(np.uint16).view(np.int16)
            return halves.astype(self.dtype.numpy).reshape(self.shape)
        size = count * self.held.itemsize
        values = self.bytes[:size].copy().view(self.held)
        if self.is_widened:
            values = values.reshape(2, -1).T
        values = values.reshape(self.shape)
        return values.astype(self.dtype.numpy)
