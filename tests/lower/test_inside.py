"""Operands that are packed inside loops: any levels, any depth, tails, open sizes, threads."""

import random
from dataclasses import replace

import numpy as np
import pytest

from isamap.diagnostics import ScheduleError
from isamap.hw.load import load_hardware
from isamap.interp.run import interpret
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.lower import lower
from isamap.lower.nodes import Copy, Guard, Loop, LoweredKernel, Node, Scope
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.proof.certificate import certify
from isamap.proof.evidence import Evidence
from isamap.schedule.schedule import Level, Schedule, StatementSchedule, Treatment
from isamap.text.load import parse_module
from tests.lower.test_lowering import agrees, first_choice, machine

GEMM = """kernel gemm({sizes}) {{
  in A : {a}[M, K]  in B : {b}[K, N]  out C : {c}[M, N]
  C[m, n] += {product}
}}"""
WINDOW = """kernel window(H = {h}, C = {c}) {{
  in X : f32[C, H, H] pad 0  in W : f32[C, C, 3, 3]  out Y : f32[C, H, H]
  Y[k, h, w] += X[c, h + r - 1, w + s - 1] * W[k, c, r, s]
}}"""
PLAIN = {"a": "f32", "b": "f32", "c": "f32", "product": "A[m, k] * B[k, n]"}
BYTES = {"a": "u8", "b": "s8", "c": "s32", "product": "s32(A[m, k]) * s32(B[k, n])"}


def parsed(text: str) -> Kernel:
    return parse_module(text, "test.ir").kernels[0]


def random_levels(own: StatementSchedule, rng: random.Random, threads: int) -> tuple[Level, ...]:
    """Return the innermost levels of a schedule, with others around them in some order."""
    statement = own.mapping.matching.statement
    levels = list(own.levels)
    for variable in statement.variables:
        least = min((lv.step for lv in levels if lv.variable == variable.name), default=0)
        extent = variable.extent.constant or 40
        if least and rng.random() < 0.6 and least * 2 < extent:
            levels.insert(0, Level(variable.name, least * rng.randint(2, 3)))
    outer = levels[: len(levels) - len(own.levels)]
    rng.shuffle(outer)
    levels[: len(outer)] = outer
    if threads > 1:
        used = frozenset().union(*(i.names for i in statement.target.indices))
        results = [n for n, lv in enumerate(levels) if lv.variable in used]
        first = rng.choice(results) if results else len(levels)
        levels = [
            replace(lv, parallel=n >= first and lv.variable in used) for n, lv in enumerate(levels)
        ]
    return tuple(levels)


def somewhere(own: StatementSchedule, rng: random.Random, threads: int) -> StatementSchedule:
    levels = random_levels(own, rng, threads)
    inside = tuple(rng.randint(0, len(levels)) if kind == "packed" else 0 for kind in own.operands)
    return replace(own, levels=levels, inside=inside)


def packed_all(own: StatementSchedule, kind: Treatment = "packed") -> StatementSchedule:
    return replace(own, operands=(kind,) * len(own.operands))


@pytest.mark.parametrize("hardware", ["gemm16", "x86_avx512", "portable_c"])
@pytest.mark.parametrize("types", [PLAIN, BYTES], ids=["f32", "u8s8"])
def test_a_product_packed_anywhere(types: dict[str, str], hardware: str) -> None:
    rng = random.Random(str(types) + hardware)
    if hardware == "gemm16" and types is PLAIN:
        types = {**PLAIN, "a": "s8", "b": "s8", "c": "s32", "product": BYTES["product"]}
    done = 0
    for trial in range(12):
        m, n, k = (rng.randint(1, 50) for _ in range(3))
        sizes = f"M = {m}, N = {n}, K = {k}" if trial % 3 else "M, N, K"
        kernel = parsed(GEMM.format(sizes=sizes, **types))
        own = packed_all(first_choice(kernel, machine(hardware)).schedule.statements[0])
        made = somewhere(own, rng, threads=rng.choice([1, 2]))
        try:
            lowered = lower(kernel, machine(hardware), Schedule((made,)))
        except ScheduleError:  # a level that this mapping cannot have
            continue
        agrees(kernel, lowered, machine(hardware), trial)
        done += any(made.inside)
    assert done >= 3


def test_a_padded_window_packed_anywhere() -> None:
    rng = random.Random(3)
    accelerator = machine("x86_avx512")
    for trial in range(12):
        kernel = parsed(WINDOW.format(h=rng.randint(3, 20), c=rng.randint(1, 6)))
        own = packed_all(first_choice(kernel, accelerator).schedule.statements[0])
        made = somewhere(own, rng, threads=1)
        agrees(kernel, lower(kernel, accelerator, Schedule((made,))), accelerator, trial)


def test_an_access_that_runs_backwards_over_an_open_extent() -> None:
    kernel = parsed(
        """kernel turned(M, N, K) {
  in A : f32[M, K]  in B : f32[K, N]  out C : f32[M, N]
  C[m, n] += A[m, K - 1 - k] * B[K - 1 - k, n]
}"""
    )
    accelerator = machine("x86_avx512")
    first = first_choice(kernel, accelerator).schedule.statements[0]
    agrees(kernel, lower(kernel, accelerator, Schedule((first,))), accelerator, 1)
    made = somewhere(packed_all(first), random.Random(5), threads=1)
    assert any(made.inside)
    agrees(kernel, lower(kernel, accelerator, Schedule((made,))), accelerator, 2)


def copies(nodes: tuple[Node, ...], depth: int = 0) -> list[tuple[int, Copy]]:
    found: list[tuple[int, Copy]] = []
    for node in nodes:
        if isinstance(node, Copy):
            found.append((depth, node))
        elif isinstance(node, Loop | Guard | Scope):
            inner = (*node.body, *getattr(node, "otherwise", ()))
            found += copies(inner, depth + isinstance(node, Loop))
    return found


def elements(lowered: LoweredKernel) -> dict[str, int]:
    return {a.name: a.size.evaluate({}) for a in lowered.arrays if a.role == "local"}


def test_what_is_packed_inside_takes_the_room_of_a_piece() -> None:
    kernel = parsed(GEMM.format(sizes="M = 96, N = 512, K = 300", **PLAIN))
    accelerator = machine("x86_avx512")
    own = packed_all(first_choice(kernel, accelerator).schedule.statements[0])
    levels = (Level("n", 64), Level("k", 128), Level("m", 6), Level("k", 1))
    before = lower(kernel, accelerator, Schedule((replace(own, levels=levels, inside=()),)))
    inside = lower(kernel, accelerator, Schedule((replace(own, levels=levels, inside=(3, 2)),)))
    assert elements(before) == {"A_packed": 96 * 300, "B_packed": 300 * 512}
    assert elements(inside) == {"A_packed": 6 * 128, "B_packed": 128 * 64}
    depths = {(copy.target, depth) for depth, copy in copies(inside.body)}
    # Of three parts of k two have a loop, the last one is its tail.
    assert depths == {("A_packed", 2), ("A_packed", 3), ("B_packed", 1), ("B_packed", 2)}


def test_the_first_schedule_packs_each_element_once_and_where_it_is_used() -> None:
    kernel = parsed(GEMM.format(sizes="M = 512, N = 1024, K = 512", **PLAIN))
    for threads in (1, 2):
        result = map_kernel(kernel, load_hardware("x86_avx512"), Options(threads=threads))
        (own,) = result.schedule.statements
        assert own.operands[1] == "packed"
        assert own.inside == (0, 1)
        assert own.levels[0].variable == "n"
        (array,) = [a for a in result.lowered.arrays if a.role == "local"]
        assert array.private == (threads > 1)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_pack_for_themselves_time_and_again(threads: int) -> None:
    rng = random.Random(threads)
    accelerator = load_hardware("native")
    kernel = parsed(GEMM.format(sizes="M = 150, N = 333, K = 70", **PLAIN))
    result = map_kernel(kernel, accelerator, Options(threads=threads))
    numbers = np.random.default_rng(0)
    arrays = {
        "A": numbers.integers(-2, 3, (150, 70)).astype(np.float32),
        "B": numbers.integers(-2, 3, (70, 333)).astype(np.float32),
    }
    want = np.asarray(interpret(kernel, arrays)["C"])
    for _ in range(6):
        own = packed_all(result.schedule.statements[0])
        made = Schedule((somewhere(own, rng, threads),))
        lowered = lower(kernel, accelerator, made)
        compiled = replace(result, schedule=made, lowered=lowered).compile()
        for _ in range(30):
            np.testing.assert_array_equal(compiled.call(arrays, {}, threads=threads)["C"], want)


def test_what_is_packed_inside_is_proved() -> None:
    kernel = parsed(GEMM.format(sizes="M = 50, N = 70, K = 40", **PLAIN))
    accelerator = machine("x86_avx512")
    result = map_kernel(kernel, accelerator, Options())
    own = packed_all(result.schedule.statements[0])
    levels = (Level("n", 64, True), Level("k", 16), Level("m", 6, True), Level("k", 1))
    made = Schedule((replace(own, levels=levels, inside=(3, 2)),))
    lowered = lower(kernel, accelerator, made)
    evidence = Evidence(kernel, (), kernel, accelerator, made, lowered)
    assert {claim.verdict for claim in certify(evidence).claims} <= {"proved", "assumed", "noted"}


@pytest.mark.parametrize(
    ("kinds", "inside", "text"),
    [
        (("direct", "direct"), (1, 0), "A is copied inside loops, and operand .* is not"),
        (("packed", "packed"), (0, 7), "B is copied inside 7 loops, and there are 2"),
        (("packed", "packed"), (-1, 0), "A is copied inside -1 loops"),
    ],
)
def test_misplaced(kinds: tuple[str, str], inside: tuple[int, int], text: str) -> None:
    kernel = parsed(GEMM.format(sizes="M = 50, N = 170, K = 40", **PLAIN))
    accelerator = machine("x86_avx512")
    own = first_choice(kernel, accelerator).schedule.statements[0]
    made = replace(own, operands=kinds, inside=inside)  # type: ignore[arg-type]
    with pytest.raises(ScheduleError, match=text):
        lower(bind_extents(kernel), accelerator, Schedule((made,)))
