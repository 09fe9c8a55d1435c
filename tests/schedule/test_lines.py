"""Iterations that are taken together: two, so that a line is asked for once, or several."""

from dataclasses import replace

import pytest

from isamap.diagnostics import Source
from isamap.hw.accelerator import Accelerator
from isamap.interp.compare import compare
from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.lower.nodes import Call, Guard, Loop, Node, Prefetch, Register, Scope
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.prove import prove_result
from isamap.pipeline.result import Result
from isamap.pipeline.source import load_hardware
from isamap.schedule.flows import Flow
from isamap.schedule.lines import SCARCE, paired
from isamap.schedule.reader import parse_schedule
from isamap.schedule.schedule import Early, Level
from isamap.schedule.shape import block_of, read_shape
from isamap.schedule.treatment import inputs
from isamap.sim.lowered import run_lowered
from isamap.text.load import parse_module

LARGE = "M = 480, N = 480"


def of_four_steps() -> Accelerator:
    """A machine that likes up to four steps of a sum in a body."""
    return replace(load_hardware("x86_avx512_intel"), unroll=4)


def mapped(
    machine: Accelerator, depth: int, sizes: str = LARGE, kind: str = "f32", loops: str = ""
) -> Result:
    """A product whose factors are packed ahead, with some loops."""
    a, b = ("A[k, i]", "B[k, j]") if kind == "f32" else ("f32(A[k, i])", "f32(B[k, j])")
    text = f"""kernel product({sizes}, K = {depth}) {{
      const A : {kind}[K, M]  const B : {kind}[K, N]  inout C : f32[M, N]
      C[i, j] += {a} * {b} }}"""
    kernel = parse_module(text).kernels[0]
    said = f"C {{\n axes i <- j\n loops {loops}\n }}" if loops else ""
    text = f"schedule product {{\n {said}\n }}"
    schedule = parse_schedule(Source("lines", text)) if loops else None
    return map_kernel(kernel, machine, Options(rewrite=(), schedule=schedule))


def asked(nodes: tuple[Node, ...]) -> list[int]:
    """How many lines each stretch of nodes asks for that asks for some."""
    found = [sum(isinstance(node, Prefetch) for node in nodes)]
    for node in nodes:
        if isinstance(node, Loop | Scope):
            found += asked(node.body)
    return [count for count in found if count]


def test_a_block_of_few_instructions_takes_two_iterations_that_share_a_line() -> None:
    result = mapped(load_hardware("x86_avx2"), 256)
    (own,) = result.schedule.statements
    shape = read_shape(own.mapping)
    block = block_of(shape, own.levels)
    assert block["k"] == 2
    assert 4 * block["i"] * block["k"] <= 64
    assert set(asked(result.lowered.body)) == {1}


@pytest.mark.parametrize("depth", [256, 259, 262])
def test_what_is_left_over_is_computed_too(depth: int) -> None:
    machine = load_hardware("x86_avx2")
    small = {"l1": 4 << 10, "l2": 8 << 10}
    storages = (replace(s, size=small.get(s.name, s.size)) for s in machine.storages)
    machine = replace(machine, storages=tuple(storages))
    # Of an odd depth the rules take single iterations.
    result = mapped(machine, depth, "M = 16, N = 24", loops="i/4, k/2" if depth % 2 else "")
    (own,) = result.schedule.statements
    assert block_of(read_shape(own.mapping), own.levels)["k"] == 2
    arrays = random_inputs(result.kernel, {}, seed=1)
    expected = {"C": interpret(result.kernel, arrays)["C"]}
    found = run_lowered(result.lowered, machine, arrays, kernel=result.kernel)
    assert compare(result.kernel, arrays, expected, {"C": found["C"]}, {}).ok
    assert prove_result(result).verdict != "refuted"


def test_where_asking_costs_little_a_block_has_one_iteration() -> None:
    result = mapped(load_hardware("x86_avx512"), 1024)
    (own,) = result.schedule.statements
    shape = read_shape(own.mapping)
    block = block_of(shape, own.levels)
    assert block["k"] == 1
    assert block["i"] * block["j"] >= SCARCE


def test_what_is_converted_when_it_is_loaded_leaves_no_registers_for_two_iterations() -> None:
    (own,) = mapped(load_hardware("x86_avx2"), 512, kind="f16").schedule.statements
    assert own.early
    assert block_of(read_shape(own.mapping), own.levels)["k"] == 1


def test_loops_around_are_cut_at_whole_blocks() -> None:
    (own,) = mapped(load_hardware("x86_avx2"), 256).schedule.statements
    shape, machine = read_shape(own.mapping), load_hardware("x86_avx2")
    single = [replace(one, step=1) if one.variable == "k" else one for one in own.levels]
    levels = (Level("k", 101), *single)
    (operand, _), (other, _) = inputs(own.mapping)
    made = {operand: 1, other: 1}
    far = [Flow(0, operand, frozenset("ik"), 4, machine.storage("l3"), ("j",))]
    early = [Early(0, 32, "k")]
    found = paired(shape, levels, early, far, made, machine)
    inner, outer = found[-1].step, found[0].step
    assert inner == 2
    assert outer % inner == 0
    assert 101 <= outer < 101 + inner
    assert block_of(shape, found)["k"] == 2
    # Without anything to ask for, and where a block has whole lines, the loops are as they were.
    assert paired(shape, levels, [], far, made, machine) == levels
    assert paired(shape, levels, early, far, made | {operand: 3}, machine) == levels
    wide = [replace(far[0], bytes=8)]
    assert paired(shape, levels, early, wide, made, machine) == levels


PRODUCT = """kernel product(M = {rows}, N = {columns}, K = {depth}) {{
  in A : f32[M, K]  in B : f32[K, N]  out C : f32[M, N]
  C[m, n] += A[m, k] * B[k, n] }}"""
IMAGE = """kernel image(C = {depth}) {{
  in X : f32[14, 14, C] pad 0  in F : f32[3, 3, C, 32]  out Y : f32[14, 14, 32]
  for r in 0..3  for t in 0..3
  Y[p, q, k] += X[p + r - 1, q + t - 1, c] * F[r, t, c, k] }}"""


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (PRODUCT.format(rows=96, columns=96, depth=64), 4),
        (PRODUCT.format(rows=96, columns=96, depth=66), 3),
        (PRODUCT.format(rows=96, columns=96, depth=70), 2),
        (PRODUCT.format(rows=96, columns=96, depth=77), 1),  # whatever, there would be a rest
        (IMAGE.format(depth=64), 1),  # at the border, nothing is read
    ],
)
def test_steps_of_a_sum_are_in_one_block_where_they_leave_no_rest(text: str, steps: int) -> None:
    result = map_kernel(parse_module(text).kernels[0], of_four_steps(), Options())
    (own,) = result.schedule.statements
    block = block_of(read_shape(own.mapping), own.levels)
    assert block[own.levels[-1].variable] == steps
    assert prove_result(result).verdict == "proved"


def products(nodes: tuple[Node, ...]) -> list[set[str]]:
    """The registers that each product of the first body with some reads, without its sum."""
    calls = [n for n in nodes if isinstance(n, Call) and n.instruction == "vfmadd_f32"]
    if calls:
        named = ([o for o in call.operands if isinstance(o[1], Register)] for call in calls)
        return [
            {o.name for name, o in own if name in "ab" and isinstance(o, Register)} for own in named
        ]
    inner = (products(n.body) for n in nodes if isinstance(n, Loop | Scope | Guard))
    return next((found for found in inner if found), [])


def test_a_step_of_a_sum_needs_what_it_uses_no_longer_than_it_lasts() -> None:
    text = PRODUCT.format(rows=96, columns=96, depth=64)
    result = map_kernel(parse_module(text).kernels[0], of_four_steps(), Options())
    (own,) = result.schedule.statements
    block = block_of(read_shape(own.mapping), own.levels)
    found = products(result.lowered.body)
    each = block["m"] * block["n"]
    assert len(found) == 4 * each
    steps = [set().union(*found[n : n + each]) for n in range(0, len(found), each)]
    assert all(steps)
    assert sum(map(len, steps)) == len(set().union(*steps))
