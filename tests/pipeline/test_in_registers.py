"""What computes statements in the registers of others: told as it is, and as it is asked for."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from isamap.cli.text import report_lines
from isamap.diagnostics import NoMappingError, ScheduleError, Source
from isamap.emit.liveness import calls
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.ir.nodes import Access, Kernel
from isamap.ir.printer import print_kernel
from isamap.lower.apart import every
from isamap.lower.nodes import Call, InRegisters, LoweredKernel, Register, Scope
from isamap.lower.printer import print_lowered
from isamap.pipeline.facts import report_facts
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.pipeline.result import Result
from isamap.pipeline.schedule_text import schedule_text
from isamap.schedule.reader import parse_schedule
from isamap.schedule.written import WrittenSchedule
from isamap.text.load import parse_module
from isamap_search.budget import Budget

ROOT = Path(__file__).parents[2]
POWER8 = str(ROOT / "examples" / "machines" / "power8.yaml")

FLOATS = """kernel k(M = 13, N = 36, K = 8) {{
  in A : f32[M, K]  in B : f32[K, N]  in b : f32[N]  in R : f32[M, N]
  local C : f32[M, N]  {local}  out Y : f32[M, N]
  C[m, n] += A[m, k] * B[k, n]
  {rest}
}}"""
BYTES = """kernel k(M = 13, N = 36, K = 8) {{
  in A : u8[M, K]  const B : s8[K, N]  in b : s32[N] values -1000 .. 1000
  local C : s32[M, N]  out Y : s8[M, N]
  C[m, n] += s32(A[m, k]) * s32(B[k, n])
  {rest}
}}"""


def kernel(text: str, rest: str, local: str = "") -> Kernel:
    (found,) = parse_module(text.format(rest=rest, local=local)).kernels
    return found


SCALED = kernel(FLOATS, "Y[m, n] = C[m, n] * b[n] + R[m, n]")
RELU = kernel(FLOATS, "Y[m, n] = max(C[m, n], 0)")
CHAIN = kernel(
    FLOATS, "T[m, n] = C[m, n] + b[n]\n  Y[m, n] = max(T[m, n], 0)", "local T : f32[M, N]"
)
NARROWED = kernel(BYTES, "Y[m, n] = sat[s8](f32(C[m, n] + b[n]) * 0.01)")
KERNELS = {"scaled": SCALED, "relu": RELU, "chain": CHAIN, "narrowed": NARROWED}


@cache
def machine(name: str) -> Accelerator:
    return load_hardware(name)


@cache
def mapped(name: str, hardware: str, instruction: str | None = None) -> Result:
    options = Options(prove=False, instruction=instruction, rewrite=() if instruction else None)
    return map_kernel(KERNELS[name], machine(hardware), options)


def followers(result: Result) -> dict[str, InRegisters]:
    return {own.statement: own for own in result.lowered.in_registers}


def used(lowered: LoweredKernel) -> set[str]:
    return {call.instruction for call in calls(lowered.code)}


def finishing(result: Result) -> set[str]:
    """Return what takes results from accumulators on and computes with them, by the code alone."""
    found: set[str] = set()
    for scope in every(result.lowered.code):
        if isinstance(scope, Scope):
            results = {r.name for r in scope.registers if r.name.startswith("acc")}
            if results:
                found |= set(_computing(scope, results, result.accelerator))
    return found


def _computing(scope: Scope, results: set[str], hardware: Accelerator) -> Iterator[str]:
    """Yield what reads a register that depends on ``results``, and does not update these."""
    reached = set(results)
    for call in (node for node in every(scope.body) if isinstance(node, Call)):
        registers = {name: p.name for name, p in call.operands if isinstance(p, Register)}
        entry = hardware.entry(call.instruction)
        written = {registers[own.name] for own in entry.outputs if own.name in registers}
        if written & results or not reached & set(registers.values()):
            continue
        reached |= written
        if any(not isinstance(one.value, Access) for one in entry.instruction.statements):
            yield call.instruction


@pytest.mark.parametrize("hardware", ["x86_avx512", "aarch64_neon", "vector_c", POWER8])
@pytest.mark.parametrize("name", KERNELS)
def test_what_is_told_is_in_the_code(name: str, hardware: str) -> None:
    result = mapped(name, hardware)
    there = followers(result)
    assert there
    assert {n for own in there.values() for n in own.by} == finishing(result)
    fused = {result.statements[n].name: r for n, r in result.schedule.fused.items()}
    assert {name: result.statements[root].name for name, root in fused.items()} == {
        name: own.within for name, own in there.items()
    }
    for statement, by in zip(result.statements, result.by, strict=True):
        assert set(by) <= used(result.lowered)
        if statement.name in there:
            assert by == there[statement.name].by


def test_each_statement_of_a_chain_has_its_own() -> None:
    there = followers(mapped("chain", "x86_avx512"))
    assert there["T"] == InRegisters("T", "C", ("vadd_f32",))
    assert there["Y"] == InRegisters("Y", "C", ("vmax_f32",))


def test_what_only_moves_is_stored_or_left() -> None:
    moved = kernel(FLOATS, "Y[m, n] = C[m, n]")
    result = map_kernel(moved, machine("x86_avx512"))
    # The last four columns are a part of a vector.
    assert followers(result)["Y"].by == ("vstore_f32", "vmaskstore_f32")
    local = kernel(FLOATS, "T[m, n] = C[m, n]\n  Y[m, n] = T[m, n] * b[n]", "local T : f32[M, N]")
    there = followers(map_kernel(local, machine("x86_avx512")))
    assert (there["T"].by, there["Y"].by) == ((), ("vmul_f32",))


def test_report_and_json_tell_what_computes_it_there() -> None:
    """In loops of its own it is computed by ``v_mac_f32``."""
    (own,) = parse_module(print_kernel(SCALED).replace("N = 36", "N = 67")).kernels
    report = make_report(own, machine("vector_c"), Options(prove=False, simulate=True))
    assert report.result.mappings[1].matching.needle.name == "v_mac_f32"
    assert finishing(report.result) == {"v_mul_f32", "v_add_f32"}
    lines = report_lines(report, everything=False)
    text = " ".join(" ".join(lines).split())
    told = "computed by v_mul_f32 + v_add_f32 where each result of C is in a register"
    assert f"{told}: no loops of its own" in text
    assert "  Y: v_mul_f32 + v_add_f32, in the registers of C" in lines
    assert sum("  * " in line for line in lines) == 1  # the mapping of C
    facts = json.loads(json.dumps(report_facts(report)))
    first, second = facts["schedule"]
    assert (first["by"], first["within"]) == (["v_mac_f32"], None)
    assert (second["by"], second["within"]) == (["v_mul_f32", "v_add_f32"], "C")
    line = "  Y in the registers of C by v_mul_f32 + v_add_f32"
    assert line in print_lowered(report.result.lowered).splitlines()


@pytest.mark.parametrize(
    ("name", "hardware", "asked", "by"),
    [
        ("scaled", "x86_avx512", None, ("vfmadd_f32",)),
        ("scaled", "x86_avx512", "vadd_f32", ("vmul_f32", "vadd_f32")),
        ("scaled", "vector_c", None, ("v_mul_f32", "v_add_f32")),
        ("scaled", "vector_c", "v_mac_f32", ("v_mac_f32",)),
        ("scaled", "aarch64_neon", "fadd", ("fmul", "fadd")),
    ],
)
def test_what_is_asked_for_computes_it_there(
    name: str, hardware: str, asked: str | None, by: tuple[str, ...]
) -> None:
    result = mapped(name, hardware, asked)
    assert followers(result)["Y"].by == by
    assert finishing(result) == set(by)


def test_it_may_be_what_stores_there() -> None:
    free = mapped("narrowed", "x86_avx512")
    asked = mapped("narrowed", "x86_avx512", "vstore_xmm_s8")
    # A part of a vector is stored by a mask unless something else is asked for.
    assert "vmaskstore_xmm_s8" in used(free.lowered)
    assert "vmaskstore_xmm_s8" not in used(asked.lowered)
    assert "vstore_xmm_s8" in used(asked.lowered)
    assert followers(asked)["Y"].within == "C"


def test_where_it_cannot_be_there_the_statement_has_its_own_loops() -> None:
    assert followers(mapped("relu", "vector_c"))["Y"].by == ("v_max_f32",)
    result = mapped("relu", "vector_c", "c_max_f32")
    assert result.lowered.in_registers == ()
    assert result.by[1] == ("c_max_f32",)
    assert {"v_mac_f32", "c_max_f32"} <= used(result.lowered)
    assert "v_max_f32" not in used(result.lowered)


def test_a_search_keeps_to_it() -> None:
    options = Options(
        prove=False, simulate=True, instruction="vadd_f32", tune=Budget(trials=6), seed=3
    )
    result = map_kernel(SCALED, machine("x86_avx512"), options)
    assert "vfmadd_f32" not in used(result.lowered)
    assert all("vadd_f32" in by for by in result.by)


# --- as it is written -----------------------------------------------------------------------------
def written(text: str) -> WrittenSchedule:
    return parse_schedule(Source("x.schedule", text))


def test_a_saved_schedule_says_so_where_it_was_asked_for() -> None:
    asked, free = mapped("scaled", "x86_avx512", "vadd_f32"), mapped("scaled", "x86_avx512")
    assert "Y { within C }" in schedule_text(free)
    assert "Y { within C by vadd_f32 }" in schedule_text(asked)
    options = Options(prove=False, schedule=written(schedule_text(asked)))
    again = map_kernel(SCALED, machine("x86_avx512"), options)
    assert again.lowered == asked.lowered
    assert again.by == asked.by


@pytest.mark.parametrize(
    ("block", "by"),
    [
        ("within C", ("vfmadd_f32",)),
        ("within C by vmul_f32 + vadd_f32", ("vmul_f32", "vadd_f32")),
        ("within C\n instruction vadd_f32", ("vmul_f32", "vadd_f32")),
        ("instruction vadd_f32", ("vmul_f32", "vadd_f32")),
    ],
)
def test_a_text_may_ask_for_it(block: str, by: tuple[str, ...]) -> None:
    options = Options(prove=False, schedule=written(f"schedule k {{\n Y {{ {block} }}\n}}"))
    result = map_kernel(SCALED, machine("x86_avx512"), options)
    assert followers(result)["Y"].by == by == result.by[1]
    assert result.by[0] == ("vfmadd_f32",)


@pytest.mark.parametrize(
    ("block", "code", "place", "message"),
    [
        ("by vmax_f32", "E418", "2:6", "by vmax_f32: vfmadd_f32 computes it there"),
        ("by vmix_f32", "E413", "2:18", "'x86_avx512' has no instruction 'vmix_f32'"),
        ("by 3", "E410", "2:18", "the name of an instruction"),
    ],
)
def test_a_text_that_asks_for_what_cannot_be_is_refused(
    block: str, code: str, place: str, message: str
) -> None:
    text = f"schedule k {{\n Y {{ within C {block} }}\n}}"
    with pytest.raises(ScheduleError) as caught:
        map_kernel(SCALED, machine("x86_avx512"), Options(schedule=written(text)))
    (told,) = caught.value.diagnostics
    assert message in told.message
    assert (told.code, f"{told.span}") == (code, f"x.schedule:{place}")


# --- where nothing else takes results to memory ---------------------------------------------------
OUTPUTS = """\
format: 1
name: outputs
clock: 1 GHz
units: {load: 1, work: 1, store: 1}
storages:
  a: {kind: registers, count: 8, bits: 128}
  c: {kind: registers, count: 8, bits: 512}
  memory: {kind: memory}
instructions:
  - semantics: |
      instruction block {
        in a : s8[4, 4] @ a    in w : s8[4, 4] @ a    inout c : s32[4, 4] @ c
        c[i, j] += s32(a[i, k]) * s32(w[k, j])
      }
    throughput: 4
    latency: 8
    units: work
  - semantics: |
      instruction clear { out c : s32[4, 4] @ c    c[i, j] = 0 }
    throughput: 1
    latency: 1
    units: work
  - semantics: |
      instruction load(P) {
        in m : s8[4, 4] @ memory strides [P, 1]    out a : s8[4, 4] @ a
        a[i, j] = m[i, j]
      }
    throughput: 1
    latency: 9
    units: load
  - semantics: |
      instruction narrow(P) {
        in c : s32[4, 4] @ c    out m : s8[4, 4] @ memory strides [P, 1]
        m[i, j] = sat[s8](c[i, j])
      }
    throughput: 4
    latency: 9
    units: store
  - semantics: |
      instruction narrow_slowly(P) {
        in c : s32[4, 4] @ c    out m : s8[4, 4] @ memory strides [P, 1]
        m[i, j] = sat[s8](c[i, j])
      }
    throughput: 40
    latency: 90
    units: store
  - semantics: |
      instruction narrow_one {
        in c : s32[] @ memory    out m : s8[] @ memory
        m[] = sat[s8](c[])
      }
    throughput: 4
    latency: 9
    units: store
"""
SUMS = """kernel k {
  in A : s8[8, 8]  in W : s8[8, 8]  local S : s32[8, 8]  out Y : s8[8, 8]
  S[m, n] += s32(A[m, k]) * s32(W[k, n])
  Y[m, n] = sat[s8](S[m, n])
}"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Accelerator:
    path = tmp_path_factory.mktemp("outputs") / "outputs.yaml"
    path.write_text(OUTPUTS)
    return load_hardware(str(path))


@pytest.mark.parametrize(
    ("asked", "by"),
    [(None, "narrow"), ("narrow", "narrow"), ("narrow_slowly", "narrow_slowly")],
)
def test_the_only_way_is_taken_with_what_is_asked_for(
    outputs: Accelerator, asked: str | None, by: str
) -> None:
    (own,) = parse_module(SUMS).kernels
    report = make_report(own, outputs, Options(prove=False, instruction=asked))
    assert report.check is not None
    assert report.check.ok
    assert report.result.lowered.in_registers == (InRegisters("Y", "S", (by,)),)
    assert used(report.result.lowered) & {"narrow", "narrow_slowly", "narrow_one"} == {by}


def test_what_is_asked_for_and_cannot_be_is_told_where_it_stands(outputs: Accelerator) -> None:
    (own,) = parse_module(SUMS, "sums.ir").kernels
    with pytest.raises(NoMappingError) as caught:
        map_kernel(own, outputs, Options(prove=False, instruction="narrow_one"))
    (told,) = caught.value.diagnostics
    assert f"{told.span}" == "sums.ir:3:3"
    notes = [note.message for note in told.notes]
    assert notes == [
        "block: no instruction takes s32[4, 4] from c to memory, and Y cannot be computed in the "
        "registers of S by narrow_one: narrow computes it there"
    ]
