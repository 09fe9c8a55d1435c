"""Prefetching and the order of a block's calls: they change when things come, and no result."""

import random
from dataclasses import replace

import numpy as np
import pytest

from isamap.diagnostics import ScheduleError
from isamap.emit.c import emit_c
from isamap.hw.load import load_hardware
from isamap.ir.index import Index, const, read, var
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.cost import estimate
from isamap.lower.lower import lower
from isamap.lower.nest import hoisted
from isamap.lower.nodes import Call, Guard, Loop, LoweredKernel, Node, Prefetch, Register, Scope
from isamap.mapping.fragments.produce import Producers
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.proof.certificate import certify
from isamap.proof.evidence import Evidence
from isamap.schedule.early import EARLY, early_of
from isamap.schedule.schedule import Early, Level, Schedule, StatementSchedule
from isamap.schedule.space import space
from isamap.schedule.treatment import inputs
from isamap.sim.lowered import LoweredFault, run_lowered
from isamap.text.load import parse_module
from tests.lower.test_lowering import KERNELS, agrees, first_choice, machine

GEMM = """kernel gemm({sizes}) {{
  in A : f32[M, K]  in B : f32[K, N]  out C : f32[M, N]
  C[m, n] += A[m, k] * B[k, n]
}}"""


def gemm(sizes: str) -> Kernel:
    return parse_module(GEMM.format(sizes=sizes), "test.ir").kernels[0]


def walk(nodes: tuple[Node, ...]) -> list[Node]:
    found: list[Node] = []
    for node in nodes:
        found.append(node)
        if isinstance(node, Loop | Scope):
            found += walk(node.body)
        elif isinstance(node, Guard):
            found += walk((*node.body, *node.otherwise))
    return found


def prefetches(lowered: LoweredKernel) -> list[Prefetch]:
    return [node for node in walk(lowered.code) if isinstance(node, Prefetch)]


def without(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return nodes without what they prefetch."""
    found: list[Node] = []
    for node in nodes:
        match node:
            case Prefetch():
                continue
            case Loop():
                found += hoisted(replace(node, body=without(node.body)))
            case Scope():
                found.append(replace(node, body=without(node.body)))
            case Guard(conditions, body, otherwise):
                found.append(Guard(conditions, without(body), without(otherwise)))
            case _:
                found.append(node)
    return tuple(found)


def test_asking_ahead_is_all_that_it_adds() -> None:
    """Whatever is prefetched in any kernel: without the nodes that do it, the code is the same."""
    rng = random.Random(5)
    asked = 0
    for name, kernel in KERNELS.items():
        accelerator = machine(rng.choice(["portable_c", "x86_avx2", "x86_avx512"]))
        choice = first_choice(kernel, accelerator)
        for option in EARLY[2:]:
            own = tuple(
                replace(s, early=early_of(option, s.mapping, s.levels))
                for s in choice.schedule.statements
            )
            lowered = lower(kernel, accelerator, Schedule(own))
            asked += len(prefetches(lowered))
            bare = replace(lowered, body=without(lowered.body), prepare=without(lowered.prepare))
            assert bare == choice.lowered, name
        agrees(kernel, lowered, accelerator, 1)
    assert asked > 1000


def test_a_search_may_prefetch_and_order_calls() -> None:
    kernel, accelerator = KERNELS["padded_convolution"], machine("x86_avx512")
    choice = first_choice(kernel, accelerator)
    around = space(accelerator, bind_extents(kernel), choice.starts, Producers(accelerator))
    sizes = {c.name: len(c.options) for c in around.choices if c.name in ("0.prefetch", "0.stream")}
    assert sizes["0.prefetch"] > 2
    assert sizes["0.stream"] == 3
    made = {
        lower(kernel, accelerator, around.build({**around.first, name: number}))
        for name, count in sizes.items()
        for number in range(count)
    }
    assert len(made) >= sizes["0.prefetch"]
    for seed, lowered in enumerate(made):
        agrees(kernel, lowered, accelerator, seed)


def block_of(
    levels: str, operands: tuple[str, str], sizes: str
) -> tuple[Kernel, StatementSchedule]:
    kernel = gemm(sizes)
    own = first_choice(kernel, machine("x86_avx512")).schedule.statements[0]
    assert own.mapping.matching.needle.name == "vfmadd_f32"
    assert own.mapping.tile["n"] == 16
    pairs = (level.split("/") for level in levels.split(", "))
    made = tuple(Level(v, int(step)) for v, step in pairs)
    return kernel, StatementSchedule(own.mapping, made, operands)  # type: ignore[arg-type]


def test_each_line_of_a_block_is_asked_for_once() -> None:
    kernel, own = block_of("n/48, m/8, k/1", ("direct", "packed"), "M = 64, N = 96, K = 32")
    early = (Early(0, 2, "k"), Early(1, 4, "k"), Early(None))
    lowered = lower(kernel, machine("x86_avx512"), Schedule((replace(own, early=early),)))
    found = prefetches(lowered)
    assert {p.storage for p in found} == {"l1"}
    # The results of a block are eight rows of three lines; its A is eight rows, its B three lines.
    assert sorted(p.offset.offset for p in found if p.buffer == "A") == [
        32 * m + 2 for m in range(8)
    ]
    assert [p.offset.offset for p in found if p.buffer == "B_packed"] == [192, 208, 224]
    want = sorted(96 * m + 16 * n for m in range(8) for n in range(3))
    assert sorted(p.offset.offset for p in found if p.buffer == "C") == want


def asked(
    nodes: tuple[Node, ...], values: dict[str, int]
) -> list[tuple[dict[str, int], Prefetch, int]]:
    """Return what is prefetched in a run of nodes, with the values of the counters."""
    found = []
    for node in nodes:
        match node:
            case Prefetch():
                found.append((values, node, int(node.offset.evaluate(values))))
            case Loop(counter, count, body, _):
                for n in range(int(count.evaluate(values))):
                    found += asked(body, {**values, counter: n})
            case Scope(body=body):
                found += asked(body, values)
            case _:
                pass
    return found


@pytest.mark.parametrize("rows", [16, 32, 40, 44, 56, 60])
@pytest.mark.parametrize("k", [32, 37])
def test_the_passes_over_a_panel_share_in_asking_for_the_next(rows: int, k: int) -> None:
    kernel, own = block_of("n/32, m/8, k/1", ("direct", "packed"), f"M = {rows}, N = 96, K = {k}")
    lowered = lower(
        kernel, machine("x86_avx512"), Schedule((replace(own, early=(Early(1, 1, "n", True),)),))
    )
    found = asked(lowered.body, {})
    (column,) = {name for values, _, _ in found for name in values if name.startswith("n_")}
    passes = -(-rows // 8)
    for panel in range(3):
        places = [place for values, _, place in found if values[column] == panel]
        here, there = 32 * k * (panel + 1), 32 * k * (panel + 2)
        # Every line of the next panel, wherever the first one begins.
        assert all(any(at <= n < at + 16 for at in places) for n in range(here, there))
        assert min(places) == here
        assert max(places) < there + 32 * passes + k
    # One line for each block of eight rows, where the panel is cut without a rest.
    if rows % 8 == 0 and k % passes == 0:
        assert len(found) == 3 * passes * k
    agrees(kernel, lowered, machine("x86_avx512"), 1)


@pytest.mark.parametrize(
    ("how", "sizes"),
    [
        ("direct", "M = 32, N = 96, K = 32"),
        ("packed", "M, N = 96, K = 32"),
        ("packed", "M = 32, N = 96, K"),
    ],
)
def test_what_lies_in_pieces_is_asked_for_by_every_pass(how: str, sizes: str) -> None:
    kernel, own = block_of("n/32, m/8, k/1", ("direct", how), sizes)
    early, plain = (replace(own, early=(Early(1, 1, "n", shared),)) for shared in (True, False))
    shared = lower(kernel, machine("x86_avx512"), Schedule((early,)))
    assert prefetches(shared) == prefetches(
        lower(kernel, machine("x86_avx512"), Schedule((plain,)))
    )


def test_without_a_next_panel_there_is_nothing_to_share() -> None:
    kernel, own = block_of("n/32, m/8, k/1", ("direct", "packed"), "M = 32, N = 32, K = 32")
    made = replace(own, early=(Early(1, 1, "n", True),))
    assert prefetches(lower(kernel, machine("x86_avx512"), Schedule((made,)))) == []


def test_results_finished_in_registers_are_asked_for_where_they_go() -> None:
    text = """kernel relu(M = 64, N = 64, K = 64) {
      in A : f32[M, K]  in B : f32[K, N]  local T : f32[M, N]  out C : f32[M, N]
      T[m, n] += A[m, k] * B[k, n]
      C[m, n] = max(T[m, n], 0)
    }"""
    kernel = parse_module(text, "test.ir").kernels[0]
    result = map_kernel(kernel, machine("x86_avx512"), Options())
    first, second = result.schedule.statements
    assert second.within == 0
    made = Schedule((replace(first, early=(Early(None), Early(None, 1, "m"))), second))
    lowered = lower(result.mapped, machine("x86_avx512"), made)
    assert {p.buffer for p in prefetches(lowered)} == {"C"}
    assert "T" not in {array.name for array in lowered.arrays}
    agrees(result.mapped, lowered, machine("x86_avx512"), 1)


def test_what_lies_outside_is_harmless() -> None:
    """Far beyond the ends of all arrays, on the simulator and in machine code."""
    accelerator = load_hardware("native")
    kernel = gemm("M = 24, N = 48, K = 16")
    result = map_kernel(kernel, accelerator, Options())
    (own,) = result.schedule.statements
    far = [replace(e, count=1 << 40) for e in early_of("inputs 1", own.mapping, own.levels)]
    assert {e.access for e in far} == {0, 1}
    early = (*far, Early(None, 1 << 40, own.levels[0].variable))
    made = Schedule((replace(own, early=early),))
    lowered = lower(kernel, accelerator, made)
    agrees(kernel, lowered, accelerator, 3)
    compiled = replace(result, schedule=made, lowered=lowered).compile()
    rng = np.random.default_rng(0)
    arrays = {
        "A": rng.integers(-3, 4, (24, 16)).astype(np.float32),
        "B": rng.integers(-3, 4, (16, 48)).astype(np.float32),
    }
    answer = compiled.call(arrays, {})["C"]
    np.testing.assert_array_equal(answer, arrays["A"] @ arrays["B"])


@pytest.mark.parametrize(
    ("hardware", "text"),
    [
        ("x86_avx512", "_mm_prefetch((const char *)((uintptr_t)"),
        ("x86_avx2", "_mm_prefetch((const char *)((uintptr_t)"),
        ("portable_c", "__builtin_prefetch((const void *)((uintptr_t)"),
    ],
)
def test_the_c_asks_as_the_description_says(hardware: str, text: str) -> None:
    kernel = gemm("M = 24, N = 48, K = 16")
    result = map_kernel(kernel, machine(hardware), Options())
    assert result.source is not None
    assert text not in result.source.text
    (own,) = result.schedule.statements
    made = Schedule((replace(own, early=early_of("all 4", own.mapping, own.levels)),))
    lowered = lower(kernel, machine(hardware), made)
    lines = emit_c(lowered, machine(hardware), kernel).text.splitlines()
    assert sum(text in line for line in lines) == len(prefetches(lowered)) > 0


def test_the_certificate_proves_code_that_prefetches() -> None:
    kernel = gemm("M, N = 70, K = 40")
    accelerator = machine("x86_avx512")
    result = map_kernel(kernel, accelerator, Options())
    (own,) = result.schedule.statements
    made = Schedule((replace(own, early=early_of("all 4", own.mapping, own.levels)),))
    lowered = lower(kernel, accelerator, made)
    assert prefetches(lowered)
    certificate = certify(Evidence(kernel, (), kernel, accelerator, made, lowered))
    assert {claim.verdict for claim in certificate.claims} <= {"proved", "assumed", "noted"}
    agrees(kernel, lowered, accelerator, 2)


@pytest.mark.parametrize("place", [read("A", (const(0),)), var("nowhere")])
def test_a_place_that_is_not_known_ahead_is_refuted(place: Index) -> None:
    kernel = parse_module(
        """kernel copy(N = 32) {
          in A : s32[N]  out B : s32[N]
          B[i] = A[i] + 1
        }""",
        "test.ir",
    ).kernels[0]
    accelerator = machine("x86_avx512")
    result = map_kernel(kernel, accelerator, Options())
    wrong = Prefetch("l1", "A", place)
    lowered = replace(result.lowered, body=(wrong, *result.lowered.body))
    evidence = Evidence(kernel, (), kernel, accelerator, result.schedule, lowered)
    assert "refuted" in {claim.verdict for claim in certify(evidence).claims}
    with pytest.raises(LoweredFault):
        run_lowered(lowered, accelerator, {"A": np.zeros(32, np.int32)})


def test_what_depends_on_data_is_not_asked_for() -> None:
    text = """kernel look(N = 40, D = 32) {
      in I : s32[N] values 0 .. 99  in T : f32[100, D]  out Y : f32[N, D]
      Y[n, d] = T[I[n], d]
    }"""
    kernel = parse_module(text, "test.ir").kernels[0]
    accelerator = machine("x86_avx512")
    (own,) = map_kernel(kernel, accelerator, Options()).schedule.statements
    assert [e.access for e in early_of("all 4", own.mapping, own.levels)] == [None]
    held = replace(own, early=(Early(0, 2, own.levels[-1].variable),))
    with pytest.raises(ScheduleError, match="depends on what arrays hold"):
        lower(kernel, accelerator, Schedule((held,)))


@pytest.mark.parametrize(
    ("early", "hardware", "text"),
    [
        (Early(0, 2, "k"), "x86_avx512", "no loop over 'k'"),
        (Early(None), "gemm16", "no cache"),
    ],
)
def test_refused(early: Early, hardware: str, text: str) -> None:
    kernel = parse_module(
        """kernel gemm(M = 64, N = 64, K = 64) {
          in A : s8[M, K]  in B : s8[K, N]  out C : s32[M, N]
          C[m, n] += s32(A[m, k]) * s32(B[k, n])
        }""",
        "test.ir",
    ).kernels[0]
    own = first_choice(kernel, machine(hardware)).schedule.statements[0]
    levels = tuple(level for level in own.levels if level.variable != "k")
    made = Schedule((replace(own, levels=levels, early=(early,)),))
    with pytest.raises(ScheduleError, match=text):
        lower(bind_extents(kernel), machine(hardware), made)


def test_asking_takes_issue_slots_and_no_traffic() -> None:
    kernel, own = block_of("m/1, n/16, k/1", ("direct", "direct"), "M = 64, N = 64, K = 64")
    accelerator = machine("x86_avx512")
    bare = estimate(lower(kernel, accelerator, Schedule((own,))), accelerator)
    early = replace(own, early=early_of("all 16", own.mapping, own.levels))
    asking = estimate(lower(kernel, accelerator, Schedule((early,))), accelerator)
    assert asking.busy >= bare.busy
    assert asking.parts["memory"] == bare.parts["memory"]


def order_of(lowered: LoweredKernel, operand: str) -> list[str]:
    calls = [n for n in walk(lowered.body) if isinstance(n, Call) and "fmadd" in n.instruction]
    places = [call.operand(operand) for call in calls]
    return [place.name for place in places if isinstance(place, Register)]


def test_calls_follow_the_operand_that_is_named() -> None:
    kernel, own = block_of("n/48, m/8, k/1", ("direct", "direct"), "M = 8, N = 48, K = 32")

    def runs(stream: int | None, operand: str) -> int:
        made = Schedule((replace(own, stream=stream),))
        names = order_of(lower(kernel, machine("x86_avx512"), made), operand)
        assert len(names) == 24
        return sum(one != other for one, other in zip(names, [*names[1:], ""], strict=True))

    pairs = inputs(own.mapping)
    number = {access.buffer: n for n, (_, access) in enumerate(pairs)}
    operand = {access.buffer: name for name, access in pairs}
    # Each fragment of the operand that is named serves all its calls, one after the other.
    assert runs(number["A"], operand["A"]) == 8
    assert runs(number["B"], operand["B"]) == 3


def test_an_order_that_would_change_sums_is_refused() -> None:
    text = """kernel exact(M = 8, N = 48, K = 32) {
      in A : f32[M, K]  in B : f32[K, N]  out C : f32[M, N]
      C[m, n] += A[m, k] * B[K - 1 - k, n]
    }"""
    kernel = parse_module(text, "test.ir").kernels[0]
    kernel = replace(kernel, permissions=replace(kernel.permissions, reassociate=False))
    accelerator = machine("x86_avx512")
    own = first_choice(kernel, accelerator).schedule.statements[0]
    levels = tuple(replace(lv, step=4) if lv.variable == "k" else lv for lv in own.levels)
    number = {access.buffer: n for n, (_, access) in enumerate(inputs(own.mapping))}
    wrong = Schedule((replace(own, levels=levels, stream=number["B"]),))
    with pytest.raises(ScheduleError, match="order of the calls would change that of sums"):
        lower(bind_extents(kernel), accelerator, wrong)
    same = replace(own, levels=levels, stream=number["A"])
    agrees(kernel, lower(bind_extents(kernel), accelerator, Schedule((same,))), accelerator, 1)
