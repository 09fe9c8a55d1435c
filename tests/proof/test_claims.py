"""What holds of a lowered kernel is proved, and a lowered kernel with a fault is refused."""

from dataclasses import replace
from pathlib import Path
from typing import TypeGuard

import pytest

from isamap.ir.index import const
from isamap.ir.statements import bind_extents
from isamap.lower.nodes import Call, Copy, Loop, LoweredKernel, Node, Register, Scope, Window
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.prove import prove_result
from isamap.pipeline.result import Result
from isamap.proof.bounds import memory_lemmas
from isamap.proof.field import field_check
from isamap.proof.parallel import parallel_lemmas
from isamap.proof.partition import partition_lemmas
from isamap.proof.registers import register_flow
from isamap.proof.walk import Malformed, sites
from isamap.solver.lemma import Lemma, prove
from tests.mapping.machines import machine as small_machine
from tests.proof.samples import BYTES, FIXED, PIXELS, POOL, SAME, SYMBOLIC, changed, kernel, mapped

SAMPLES = [
    (FIXED, "gemm16"),
    (FIXED, "x86_avx512"),
    (SYMBOLIC, "x86_avx512"),
    (SYMBOLIC, "gemm16"),
    (SYMBOLIC, "portable_c"),
    (BYTES, "x86_avx512"),
    (POOL, "x86_avx2"),
    (SAME, "x86_avx512"),
    (PIXELS.format(channels=1), "x86_avx512"),  # stores go across pixels
    (PIXELS.format(channels=18), "x86_avx512"),  # a pixel has a vector and a part of one
]


def lemmas(result: Result, lowered: LoweredKernel) -> tuple[Lemma, ...]:
    bound = bind_extents(result.kernel)
    found = tuple(sites(lowered))
    memory = memory_lemmas(bound, result.accelerator, lowered, found)
    return (*memory, *parallel_lemmas(bound, result.accelerator, lowered, found))


def refuted(result: Result, lowered: LoweredKernel) -> set[str]:
    return {lemma.name for lemma in lemmas(result, lowered) if prove(lemma).verdict == "refuted"}


def computes_in_parallel(node: Node) -> TypeGuard[Loop]:
    """Say whether a node is a parallel loop that calls instructions, not one that only packs."""
    return isinstance(node, Loop) and node.parallel and isinstance(node.body[0], Scope)


@pytest.mark.parametrize(("text", "hardware"), SAMPLES)
@pytest.mark.parametrize("threads", [1, 4])
def test_what_is_lowered_is_proved(text: str, hardware: str, threads: int) -> None:
    result = mapped(text, hardware, threads)
    names = set()
    for lemma in lemmas(result, result.lowered):
        assert prove(lemma).verdict == "proved", lemma.claim
        names.add(lemma.name)
    assert "bounds" in names
    flow = register_flow(result.accelerator, result.lowered)
    assert flow.reads > 0
    assert (flow.faults, flow.undecided) == ((), ())
    check = field_check(result.kernel, result.accelerator, result.lowered, seeds=(0,))
    assert check.verdict == "agrees", check.text
    assert check.probability < 1e-12


@pytest.mark.parametrize(("text", "hardware"), SAMPLES)
def test_ranges_are_cut_into_pieces(text: str, hardware: str) -> None:
    for schedule in mapped(text, hardware).schedule.statements:
        found = partition_lemmas(schedule)
        assert found
        assert all(prove(lemma).verdict == "proved" for lemma in found)
        wrong = [
            replace(le, script=le.script.replace("(mod length", "(div length")) for le in found
        ]
        assert all(prove(lemma).verdict == "refuted" for lemma in wrong)


@pytest.mark.parametrize(("text", "hardware"), SAMPLES)
def test_a_window_that_begins_later_leaves_its_array(text: str, hardware: str) -> None:
    result = mapped(text, hardware)
    out = next(b.name for b in result.kernel.buffers if b.role == "out")

    def later(node: Node) -> Node | None:
        match node:
            case Call(_, operands, _):
                for name, place in operands:
                    if isinstance(place, Window) and place.buffer == out:
                        end = result.lowered.array(out).size
                        moved = (name, replace(place, offset=place.offset + end))
                        rest = tuple(o for o in operands if o[0] != name)
                        return replace(node, operands=(*rest, moved))
        return None

    wrong = changed(result.lowered, later)
    assert "bounds" in refuted(result, wrong)
    assert field_check(result.kernel, result.accelerator, wrong).verdict == "differs"


@pytest.mark.parametrize(("text", "hardware"), SAMPLES[2:5])
def test_one_more_iteration_leaves_an_array(text: str, hardware: str) -> None:
    result = mapped(text, hardware)

    def more(node: Node) -> Node | None:
        return replace(node, count=node.count + 1) if isinstance(node, Loop) else None

    assert "bounds" in refuted(result, changed(result.lowered, more))


def test_a_copy_that_is_too_long_leaves_its_array() -> None:
    result = mapped(SYMBOLIC, "gemm16")
    copies = [s for s in sites(result.lowered) if isinstance(s.node, Copy)]
    if not copies:
        pytest.skip("nothing is copied")

    def longer(node: Node) -> Node | None:
        if not isinstance(node, Copy):
            return None
        (name, count), *rest = node.counters
        return replace(node, counters=((name, count + 1), *rest))

    assert "bounds" in refuted(result, changed(result.lowered, longer))


def test_parallel_iterations_that_meet_are_refuted() -> None:
    result = mapped(SYMBOLIC, "x86_avx512", 4)

    def together(node: Node) -> Node | None:
        """Let all iterations write where the first one does."""
        if not computes_in_parallel(node):
            return None

        def first(inner: Node) -> Node:
            match inner:
                case Call(_, operands, _):
                    moved = tuple(
                        (name, replace(p, offset=p.offset.substitute({node.counter: 0})))
                        if isinstance(p, Window) and p.buffer == "C"
                        else (name, p)
                        for name, p in operands
                    )
                    return replace(inner, operands=moved)
                case Loop() | Scope():
                    return replace(inner, body=tuple(map(first, inner.body)))
                case _:
                    return inner

        return replace(node, body=tuple(map(first, node.body)))

    assert "parallel" in refuted(result, changed(result.lowered, together))


def test_an_extent_out_of_its_range_is_refuted() -> None:
    result = mapped(FIXED, "x86_avx512")

    def empty(node: Node) -> Node | None:
        if isinstance(node, Call) and node.symbols:
            return replace(node, symbols=tuple((name, const(0)) for name, _ in node.symbols))
        return None

    assert "extents" in refuted(result, changed(result.lowered, empty))


def test_a_register_that_is_never_loaded_is_found() -> None:
    result = mapped(FIXED, "x86_avx512")

    def drop(node: Node) -> Node | None:
        """Replace the first load by nothing."""
        if isinstance(node, Scope) and isinstance(node.body[0], Call):
            return replace(node, body=node.body[1:])
        return None

    flow = register_flow(result.accelerator, changed(result.lowered, drop))
    assert flow.faults
    assert "before a write" in flow.faults[0]


def test_a_register_of_several_iterations_is_found() -> None:
    result = mapped(SYMBOLIC, "x86_avx512", 4)

    def widen(node: Node) -> Node | None:
        """Put the registers of a parallel iteration outside the loop."""
        if not computes_in_parallel(node):
            return None
        registers: list[Register] = []

        def without(inner: Node) -> tuple[Node, ...]:
            match inner:
                case Scope(own, body):
                    registers.extend(own)
                    return tuple(n for part in body for n in without(part))
                case Loop(_, _, body, _):
                    return (replace(inner, body=tuple(n for p in body for n in without(p))),)
                case _:
                    return (inner,)

        body = tuple(n for part in node.body for n in without(part))
        return Scope(tuple(registers), (replace(node, body=body),))

    wrong = changed(result.lowered, widen)
    assert any("parallel" in f for f in register_flow(result.accelerator, wrong).faults)


def test_a_counter_that_hides_another_is_refused() -> None:
    result = mapped(SYMBOLIC, "portable_c")

    def rename(node: Node) -> Node | None:
        return replace(node, counter="M") if isinstance(node, Loop) else None

    with pytest.raises(Malformed, match="M hides"):
        list(sites(changed(result.lowered, rename)))


def test_what_takes_too_long_is_not_run() -> None:
    result = mapped(FIXED, "portable_c")
    check = field_check(result.kernel, result.accelerator, result.lowered, calls=10)
    assert (check.verdict, check.field_runs) == ("not run", 0)
    assert check.text


def test_a_maximum_is_a_polynomial_there() -> None:
    result = mapped(POOL, "x86_avx2")
    check = field_check(result.kernel, result.accelerator, result.lowered)
    assert (check.verdict, check.field_runs, check.exact_runs) == ("agrees", 2, 0)
    assert 0 < check.probability < 1e-12


EXPONENTIALS = """
kernel exponentials(N = 20) {
  in  X : f32[N]
  out Y : f32[N]
  Y[n] = exp(X[n])
}
"""


def test_a_kernel_with_free_functions_runs_in_its_types_too() -> None:
    result = mapped(EXPONENTIALS, "portable_c")
    check = field_check(result.kernel, result.accelerator, result.lowered)
    assert check.verdict == "agrees"
    assert check.exact_runs == 2
    assert "exp" in check.text


def test_laws_that_the_field_lacks_are_used_for_rewriting_alone(tmp_path: Path) -> None:
    """max(a + d, b + d) is max(a, b) + d by a lemma; no field has maxima that sums go into."""
    text = """kernel three(N = 3) {
      in A : f32[N, N]  in B : f32[N, N]  in D : f32[N, N]  out C : f32[N, N]
      for j in 0..N    for k in 0..N
      C[i, l] max= A[i, j] + B[j, k] + D[k, l]
    }"""
    unit = (
        "instruction mp { in a : f32[4, 4] @ v  in b : f32[4, 4] @ v  inout c : f32[4, 4] @ v "
        "c[i, j] max= a[i, k] + b[k, j] }"
    )
    load = (
        "instruction load(n in 1..5, m in 1..5, P, Q) { "
        "in x : f32[n, m] @ memory strides [P, Q] pad 0  out r : f32[4, 4] @ v "
        "for i in 0..4  for j in 0..4  r[i, j] = x[i, j] }"
    )
    store = (
        "instruction store(n in 1..5, m in 1..5, P, Q) { "
        "in r : f32[4, 4] @ v  out x : f32[n, m] @ memory strides [P, Q] x[i, j] = r[i, j] }"
    )
    fill = "instruction fill { in x : f32[] @ imm  out r : f32[4, 4] @ v  r[i, j] = x[] }"
    result = map_kernel(kernel(text), small_machine(tmp_path, unit, load, store, fill))
    assert [r.rule for r in result.rewritings] == ["contract"]
    certificate = prove_result(result)
    assert certificate.verdict == "proved", certificate.field
    assert "by laws that its lemmas prove" in certificate.field.text
    other = kernel(text.replace("D[k, l]", "D[l, k]"))
    wrong = field_check(
        result.mapped, result.accelerator, result.lowered, seeds=(0,), written=other
    )
    assert wrong.verdict == "differs"
    assert wrong.field_runs == 1


def test_sums_that_begin_with_a_table_of_infinities_are_proved(tmp_path: Path) -> None:
    needles = (
        "instruction vmax { in a : f32[4] @ v  inout c : f32[4] @ v  c[i] max= a[i] }",
        "instruction load(n in 1..5) { in x : f32[n] @ memory pad 0  out r : f32[4] @ v"
        "  for i in 0..4  r[i] = x[i] }",
        "instruction store(n in 1..5) { in r : f32[4] @ v  out x : f32[n] @ memory"
        "  for i in 0..n  x[i] = r[i] }",
    )
    text = (
        "kernel pool(N = 11) { in X : f32[2*N + 1]  out Y : f32[N]"
        "  for s in 0..3  Y[i] max= X[2*i + s] }"
    )
    result = map_kernel(kernel(text), small_machine(tmp_path, *needles))
    tables = [a for a in result.lowered.arrays if a.contents is not None]
    assert [a.contents.elements[0].text for a in tables if a.contents] == ["-inf"]
    certificate = prove_result(result)
    assert certificate.verdict == "proved", certificate.field
    assert certificate.field.field_runs > 0
