"""Instruction calls as kernels: what the call leaves in memory the kernel leaves in its arrays."""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import pytest

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.interp.run import interpret
from isamap.ir.dtype import DTYPES
from isamap.ir.index import const, var
from isamap.ir.nodes import Literal, Permissions
from isamap.ir.printer import print_kernel
from isamap.lower.nodes import Array, Call, LoweredKernel, Operand, Register, Window
from isamap.pipeline.called import Called, UnservedError, called
from isamap.sim.lowered import run_lowered
from isamap.text.load import parse_module

TPP, GEMMINI = load_hardware("tpp"), load_hardware("gemmini")
MEMORY = 4000

OTHERS = """\
format: 1
name: others
title: movements in memory that primitives do not have
source: invented
clock: 1 GHz
units: {u: 1}
storages:
  memory: {kind: memory}
instructions:
  - semantics: |
      instruction put(rows in 1..17, cols in 1..17, P, Q) {
        in r : s32[16, 16] @ memory    out m : s32[rows, cols] @ memory strides [P, Q]
        for i in 0..rows    for j in 0..cols
        m[i, j] = r[i, j]
      }
    throughput: 1
    latency: 1
    units: u
  - semantics: |
      instruction take(rows in 1..17, cols in 1..17, P) {
        in m : s32[rows, cols] @ memory strides [P, 1] pad -3    out r : s32[16, 16] @ memory
        for i in 0..16    for j in 0..16
        r[i, j] = m[i, j]
      }
    throughput: 1
    latency: 1
    units: u
  - semantics: |
      instruction sums(P, R) {
        in m : s32[4, 6] @ memory strides [P, 1]    out r : s32[4] @ memory strides [R]
        r[i] += m[i, j]
      }
    throughput: 1
    latency: 1
    units: u
"""


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Accelerator:
    path = tmp_path_factory.mktemp("others") / "others.yaml"
    path.write_text(OTHERS)
    return load_hardware(str(path))


Place: TypeAlias = int | Literal | tuple[str, int]


def call(
    machine: Accelerator,
    name: str,
    sizes: Mapping[str, int | str],
    lent: Mapping[str, str] | None = None,
    **places: Place,
) -> tuple[Call, Called]:
    """Return a call whose operands begin at elements of arrays that have their names, and its
    kernel; ``sizes`` may be symbols."""
    entry = machine.entry(name)
    operands: list[tuple[str, Operand]] = []
    for operand in entry.instruction.places:
        place = places.get(operand.name, 0)
        if isinstance(place, tuple):
            operands.append((operand.name, Window(place[0], const(place[1]))))
        elif isinstance(place, Literal):
            operands.append((operand.name, place))
        else:
            assert isinstance(place, int)
            operands.append((operand.name, Window(operand.name, const(place))))
    symbols = tuple((n, const(v) if isinstance(v, int) else var(v)) for n, v in sizes.items())
    made = Call(name, tuple(operands), symbols)
    return made, called(made, entry, lent or {}, Permissions())


def both(machine: Accelerator, made: Call, kernel: Called) -> None:
    """Assert that the call, simulated, does to memory what its kernel does to its arrays."""
    entry = machine.entry(made.instruction)
    rng = np.random.default_rng(0)
    dtypes = {
        place.buffer: entry.instruction.operand(name).dtype
        for name, place in made.operands
        if isinstance(place, Window)
    }
    arrays = {n: rng.integers(-9, 10, MEMORY).astype(t.numpy) for n, t in dtypes.items()}
    declared = tuple(Array(n, "inout", t, const(MEMORY)) for n, t in dtypes.items())
    lowered = LoweredKernel("k", (), declared, (made,))
    after = run_lowered(lowered, machine, {n: a.copy() for n, a in arrays.items()}, {})
    values = {name: index.constant or 0 for name, index in made.symbols}
    places = dict(made.operands)
    given, cut = {}, {}
    for name in kernel.pointers:
        place, buffer = places[name], kernel.kernel.buffer(name)
        assert isinstance(place, Window)
        shape = tuple(int(e.evaluate(values)) for e in buffer.shape)
        cut[name] = slice(place.offset.offset, place.offset.offset + int(np.prod(shape)))
        if buffer.role != "out":
            given[name] = arrays[place.buffer][cut[name]].reshape(shape)
    symbols = {name: values[name] for name in kernel.symbols}
    expected = dict(arrays)
    for name, result in interpret(kernel.kernel, given, symbols).items():
        whole = places.get(name)
        if whole is None:
            continue  # a local
        assert isinstance(whole, Window)
        expected[whole.buffer] = expected[whole.buffer].copy()
        expected[whole.buffer][cut[name]] = result.ravel()
    for name, result in after.items():
        np.testing.assert_array_equal(np.asarray(result).ravel(), expected[name])


DENSE = {"m": 3, "n": 5, "P": 5, "Q": 5, "R": 5}


@pytest.mark.parametrize(
    "sizes",
    [
        DENSE,
        {**DENSE, "P": 7, "Q": 64, "R": 6},  # leading dimensions
        {**DENSE, "Q": 0},  # one row for all
        {**DENSE, "P": 2, "Q": 1},  # rows that overlap
        {**DENSE, "m": 1, "P": 0, "R": 0},
        {**DENSE, "n": 1, "R": 9},
    ],
)
def test_pitches_are_dimensions(sizes: Mapping[str, int]) -> None:
    both(TPP, *call(TPP, "binary_sub_s32", sizes, a=3, b=10, r=7))


def test_rows_within_longer_rows_are_told_by_their_dimension() -> None:
    _, made = call(TPP, "binary_sub_s32", {**DENSE, "P": 7, "R": 9})
    assert [str(b.shape[-1]) for b in made.kernel.buffers] == ["7", "5", "9"]
    assert made.kernel.buffer("r").role == "inout"
    assert made.kernel.buffer("a").role == "in"
    parsed = parse_module(print_kernel(made.kernel)).kernels
    assert parsed[0].statements == made.kernel.statements


@pytest.mark.parametrize("offset", [0, 15, 300])
def test_products_of_a_batch(offset: int) -> None:
    sizes = {"m": 2, "n": 3, "k": 4, "r": 5, "A": 40, "P": 9, "B": 13, "Q": 3, "R": 3}
    both(TPP, *call(TPP, "brgemm_s8", sizes, a=offset, b=1, c=offset))


def test_columns_apart_in_memory(others: Accelerator) -> None:
    both(TPP, *call(TPP, "reduce_rows_max_s32", {"m": 4, "n": 3, "P": 3, "R": 11}, r=2))
    both(TPP, *call(TPP, "unary_transpose_s32", {"m": 4, "n": 3, "P": 5, "R": 6}))
    for row, column in ((1, 19), (40, 2), (5, 1), (1, 3)):
        sizes = {"rows": 3, "cols": 5, "P": row, "Q": column}
        both(others, *call(others, "put", sizes, m=4))


def test_what_is_padded_is_padded_beyond_its_own_rows(others: Accelerator) -> None:
    for pitch in (7, 20):
        sizes = {"rows": 3, "cols": 7, "P": pitch}
        both(others, *call(others, "take", sizes, m=2))


def test_sums_that_begin_anew_do_so_where_rows_are_longer(others: Accelerator) -> None:
    for pitch, apart in ((6, 1), (9, 5)):
        both(others, *call(others, "sums", {"P": pitch, "R": apart}, m=1, r=1))


def test_one_place_is_one_array() -> None:
    sizes = {"m": 3, "n": 5, "P": 6, "R": 6}
    two = Literal("2", DTYPES["s32"])
    name = "unary_max_number_s32"
    made, kernel = call(TPP, name, sizes, a=("y", 4), r=("y", 4), v=two)
    assert kernel.pointers == ("r",)
    assert kernel.apart
    both(TPP, made, kernel)
    _, lent = call(TPP, name, sizes, {"t": "y"}, a=("t", 4), r=("y", 4), v=two)
    assert lent == kernel


def test_arrays_that_share_memory_are_told() -> None:
    sizes = {"m": 3, "n": 5, "P": 6, "R": 6}
    made, kernel = call(TPP, "unary_abs_s32", sizes, a=("y", 0), r=("y", 100))
    assert kernel.pointers == ("a", "r")
    assert not kernel.apart
    both(TPP, made, kernel)


def test_one_place_that_is_seen_in_two_ways_is_refused() -> None:
    sizes = {"m": 3, "n": 5, "P": 6, "R": 7}
    with pytest.raises(UnservedError, match="one place, differently"):
        call(TPP, "unary_abs_s32", sizes, a=("y", 0), r=("y", 0))


def test_results_that_overlap_are_refused() -> None:
    with pytest.raises(UnservedError, match="lie in no rows"):
        call(TPP, "unary_abs_s32", {"m": 3, "n": 5, "P": 6, "R": 2})


def test_what_only_the_run_knows_is_a_symbol() -> None:
    sizes: dict[str, int | str] = {"m": "M", "n": 5, "k": "K", "r": 1, "A": 0, "B": 0, "Q": 5}
    sizes |= {"P": "L", "R": "L"}
    _, made = call(TPP, "brgemm_f32", sizes)
    assert made.symbols == ("m", "k", "P", "R")
    assert made.kernel.symbols == made.symbols
    values = {"m": 2, "k": 3, "P": 4, "R": 6}
    shapes = {b.name: tuple(int(e.evaluate(values)) for e in b.shape) for b in made.kernel.buffers}
    arrays = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    result = interpret(made.kernel, arrays, values)["c"].reshape(2, 6)
    np.testing.assert_array_equal(result, np.where(np.arange(6) < 5, [[4]] * 2, 1))


def test_fragments_are_dense_arrays() -> None:
    entry = GEMMINI.entry("matmul_at")
    registers = [
        Register(n, s, entry.instruction.operand(n).dtype, (16, 16))
        for n, s in (("a", "spad"), ("b", "spad"), ("c", "acc"))
    ]
    made = Call("matmul_at", tuple((r.name, r) for r in registers))
    kernel = called(made, entry, {}, Permissions())
    assert [str(b.shape) for b in kernel.kernel.buffers] == [str((const(16), const(16)))] * 3
