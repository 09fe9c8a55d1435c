"""Every template that this CPU can run does what its statement says, bit for bit."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.hw.native import runnable
from isamap.hw.shipped import read_shipped, shipped_names
from isamap.interp.call import execute
from isamap.ir.dtype import DType
from isamap.ir.nodes import Instruction, Op
from tests.hw.native_calls import (
    Call,
    Case,
    Guarded,
    Place,
    Register,
    Values,
    build,
    called_here,
    cases,
    free,
    lanes_of,
    pitches_of,
    shape_of,
    widened,
)

# Fused and narrow products round other bits than the statement: small integers round none.
ROUNDS_OTHERWISE = (
    "vfmadd",
    "vfnmadd",
    "vdpbf16ps",
    "tdpbf16ps",
    "dot2_bf16",
    "vsum",
    "vdot",
    "v_sum",
    "v_dot",
    "v_mac_f",
    "fmla_f",
    "xvf",
    "xvbf",
)
# The result of f32 may be the neighbour of the nearest number; two mathematical libraries may
# differ in the last bits of f64.
LIBRARY = frozenset({"exp", "log", "tanh", "sigmoid", "erf"})
# The sign of a zero that has two candidates is nobody's promise.
ZEROS = frozenset({"min", "max"})

_FLOATS = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e30, -1e30, 3e9),
    *(127.5, 128.0, -128.5, 255.5, 65504.0, 65520.0, 448.0, 464.0, 465.0, 1e-40, -1e-40, 2e-45),
    *(2147483647.0, -2147483648.0, 2147483648.0, 9.3e18, 1.9e19, 6e-8, 1e-3, 240.0, 57344.0),
)
EXTREMES = {
    "float": _FLOATS,
    "signed": (0, 1, -1, 2, -2, 7, -8, 100),
    "unsigned": (0, 1, 2, 7, 15, 100),
}


def random_elements(
    shape: tuple[int, ...], dtype: DType, generator: np.random.Generator, tame: bool
) -> Values:
    """Return elements of every magnitude, extremes among them; small integers if ``tame``."""
    if dtype.kind == "bool":
        return generator.integers(0, 2, shape).astype(np.bool_)
    if tame and dtype.is_float:
        return generator.integers(-4, 5, shape).astype(dtype.numpy)
    if dtype.is_float:
        exponents = generator.uniform(-dtype.max_exponent, dtype.max_exponent, shape)
        near = generator.uniform(-8, 8, shape)
        size = np.exp2(np.where(generator.random(shape) < 0.5, near, exponents))
        values = size * generator.choice([-1.0, 1.0], shape)
    else:
        small = generator.integers(-40, 40, shape)
        bits = generator.integers(0, 1 << 63, shape) >> generator.integers(0, 63, shape)
        values = np.where(generator.random(shape) < 0.5, small, bits)
        ends = [dtype.lowest, dtype.highest, dtype.lowest + 1, dtype.highest - 1]
        picked = np.array([e & ((1 << 64) - 1) for e in ends], np.uint64).view(np.int64)
        values = np.where(generator.random(shape) < 0.2, generator.choice(picked, shape), values)
    special = generator.choice(np.array(EXTREMES[dtype.kind]), shape)
    values = np.where(generator.random(shape) < generator.choice([0.1, 0.7]), special, values)
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(dtype.numpy)


def choices(instruction: Instruction, generator: np.random.Generator) -> Iterator[dict[str, int]]:
    """Yield values of the free extents: all of one with a range, the others at random."""
    ranges = {e.name: e.range for e in instruction.extents if e.value is None}
    if not ranges:
        yield {}
        return
    longest = max((b - a for a, b in (r for r in ranges.values() if r)), default=1)
    for turn in range(max(longest, 4)):
        chosen = {}
        for at, (name, span) in enumerate(ranges.items()):
            if span is None:
                continue
            low, high = span
            offset = turn if at == 0 else int(generator.integers(0, high - low))
            chosen[name] = low + offset % (high - low)
        for name, span in ranges.items():
            if span is None:
                # At least a dense row, so that elements do not overlap.
                chosen[name] = int(generator.integers(1, 5)) if turn % 2 else 64
                chosen[name] = max(chosen[name], _row(instruction, name, chosen))
        yield chosen


def _row(instruction: Instruction, pitch: str, chosen: Mapping[str, int]) -> int:
    for operand in instruction.places:
        for at, stride in enumerate(operand.strides or ()):
            if pitch in stride.names:
                inner = operand.shape[at + 1 :]
                return int(np.prod([e.evaluate(chosen) for e in inner], dtype=int))
    return 1


def operations(value: Any) -> frozenset[str]:
    """Return the operations that occur in an expression."""
    if not isinstance(value, Op):
        return frozenset()
    return frozenset({value.op}).union(*(operations(a) for a in value.args))


def differing(instruction: Instruction, expected: Values, actual: Values, dtype: DType) -> Values:
    """Return where two results differ: in any bit, any not-a-number being as good as another."""
    used = operations(instruction.statements[0].value)
    if not dtype.is_float:
        return np.asarray(expected != actual)
    wanted, found = expected.astype(np.float64), actual.astype(np.float64)
    equal = (wanted == found) | (np.isnan(wanted) & np.isnan(found))
    if not used & ZEROS and instruction.statements[0].reduction == "=":
        equal &= np.isnan(wanted) | (np.signbit(wanted) == np.signbit(found))
    if used & LIBRARY and dtype.bits >= 32:
        allowed = 4 if dtype.bits == 64 else 1
        with np.errstate(all="ignore"):
            space = np.spacing(np.abs(expected)).astype(np.float64)
            equal |= np.abs(wanted - found) <= allowed * space
    return np.asarray(~equal)


def story(operands: Mapping[str, Values], name: str, actual: Values, wrong: Values) -> str:
    """Return what went wrong, at the first few places."""
    lines = []
    for place in np.argwhere(np.atleast_1d(wrong))[:4]:
        at = tuple(place) if wrong.shape else ()
        others = {k: v for k, v in operands.items() if k != name}
        given = [f"{k} = {v[at] if v.shape == wrong.shape else v}" for k, v in others.items()]
        results = f"expected {operands[name][at]}, got {actual[at]}"
        lines.append(f"  {name}{list(at)}: {', '.join(given)}: {results}")
    return "\n".join(lines)


class Caller:
    """Calls one case on random operands and compares with the interpreter."""

    def __init__(self, accelerator: Accelerator, call: Call) -> None:
        self.accelerator = accelerator
        self.call = call
        self.guards: dict[str, Guarded] = {}

    def check_often(self, case: Case, generator: np.random.Generator) -> None:
        # One object for all calls: the interpreter plans an instruction once.
        instruction = widened(case.entry.instruction, case.immediates)
        turns = 1 if case.immediates else 4 if free(instruction) else 20
        for _ in range(turns if lanes_of(case.entry.instruction) == 1 else 2):
            for symbols in choices(instruction, generator):
                self.check(case, instruction, symbols, generator)

    def check(
        self,
        case: Case,
        instruction: Instruction,
        symbols: Mapping[str, int],
        generator: np.random.Generator,
    ) -> None:
        tame = case.entry.name.startswith(ROUNDS_OTHERWISE)
        expected: dict[str, Values] = {}
        registers: dict[str, Register] = {}
        memory: dict[str, Values] = {}
        places: list[Place | None] = []
        for operand in instruction.places:
            shape = shape_of(operand, symbols)
            start = random_elements(shape, operand.dtype, generator, tame)
            if operand.name in case.immediates:
                literal = case.immediates[operand.name]
                value: Any = (
                    float(literal.text)
                    if operand.dtype.is_float
                    else (
                        literal.text == "true"
                        if operand.dtype.kind == "bool"
                        else int(literal.text)
                    )
                )
                start = np.array(value, operand.dtype.numpy)
                places.append(None)
            elif self.accelerator.storage(case.entry.storage(operand.name)).kind == "memory":
                guard = self.guards.setdefault(operand.name, Guarded())
                guard.bytes[:] = 0xA5
                place = guard.place(shape, pitches_of(operand, symbols), operand.dtype.numpy)
                place[...] = start
                memory[operand.name] = place
                offset = place.ctypes.data - guard.bytes.ctypes.data
                places.append(Place(guard.bytes, offset, place.itemsize))
            else:
                storage = self.accelerator.storage(case.entry.storage(operand.name))
                c_type = storage.types[operand.dtype.name] if not storage.numbered else ""
                register = registers[operand.name] = Register(operand, c_type)
                register.write(start)
                places.append(Place(register.bytes, 0, register.held.itemsize))
            expected[operand.name] = start.copy()
        untouched = {name: self.guards[name].bytes.copy() for name in memory}
        execute(instruction, expected, symbols)
        self.call(case, places, [symbols[n] for n in free(instruction)])
        for operand in instruction.places:
            if operand.role == "in":
                continue
            name = operand.name
            actual = memory[name].copy() if name in memory else registers[name].read()
            wrong = differing(instruction, expected[name], actual, operand.dtype)
            assert not wrong.any(), f"{case.symbol} {dict(symbols)}\n" + story(
                expected, name, actual, wrong
            )
            if name in memory:
                # Nothing beside the operand's elements was written.
                memory[name][...] = 0
                now = self.guards[name].bytes.copy()
                self.guards[name].bytes[:] = untouched[name]
                memory[name][...] = 0
                assert np.array_equal(now, self.guards[name].bytes), f"{case.entry.name} strays"


OTHERS = ("x86_avx512",)
"""Descriptions to which another one adds a few instructions."""


def native_names() -> list[str]:
    """Return the shipped descriptions whose code this CPU might run itself."""
    tools = {name: load_hardware(name).toolchain for name in shipped_names()}
    return [name for name, own in tools.items() if own is not None and not own.runner]


def chosen_cases(accelerator: Accelerator, inherited: frozenset[str]) -> list[Case]:
    """Return the cases of every own template; skip the test if the code cannot run here."""
    if reason := runnable(accelerator):
        pytest.skip(f"{accelerator.name} cannot run here: {reason}")
    entries = [e for e in accelerator.entries if e.emit is not None and e.name not in inherited]
    return [case for entry in entries for case in cases(entry, accelerator)]


def check_templates(accelerator: Accelerator, inherited: frozenset[str], folder: Path) -> int:
    """Compare every own template with its statement; return how many were."""
    chosen = chosen_cases(accelerator, inherited)
    return check_cases(Caller(accelerator, called_here(build(accelerator, chosen, folder))), chosen)


def check_cases(caller: Caller, chosen: list[Case]) -> int:
    """Call each case on random operands; return how many there were."""
    wrong = []
    for case in chosen:
        seed = int.from_bytes(hashlib.sha256(case.symbol.encode()).digest()[:4], "little")
        try:
            caller.check_often(case, np.random.default_rng(seed))
        except AssertionError as error:
            wrong.append(str(error).split("\nassert", 1)[0])
    assert not wrong, f"{len(wrong)} of {len(chosen)} wrong:\n" + "\n".join(wrong[:30])
    return len(chosen)


@pytest.mark.parametrize("name", native_names())
def test_templates_do_what_their_statements_say(name: str, tmp_path: Path) -> None:
    accelerator = load_hardware(name)
    inherited = frozenset[str]()
    if (parent := read_shipped(name).model.extends) is not None:
        inherited = frozenset(entry.name for entry in load_hardware(parent).entries)
    assert check_templates(accelerator, inherited, tmp_path) > (20 if parent in OTHERS else 100)


def test_the_documented_example_does_what_it_says(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "hardware.md").read_text(encoding="utf-8")
    (example, *_) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "sse.yaml").write_text(example, encoding="utf-8")
    accelerator = load_hardware(str(tmp_path / "sse.yaml"), trust=True)
    assert accelerator.entry("c_add_f32").emit == "{r} = {a} + {b};"
    inherited = frozenset(entry.name for entry in load_hardware("portable_c").entries)
    assert check_templates(accelerator, inherited, tmp_path) >= 7


def test_a_wrong_template_is_found(tmp_path: Path) -> None:
    accelerator = load_hardware("portable_c")
    entry = replace(accelerator.entry("c_max_f32"), emit="{r} = {a} > {b} ? {a} : {b};")
    wrong = replace(accelerator, entries=(entry,))
    with pytest.raises(AssertionError, match=r"a = nan, b = .*: expected nan"):
        check_templates(wrong, frozenset(), tmp_path)
