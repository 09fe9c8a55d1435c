"""Instructions that are defined for some values of their operands only."""

from pathlib import Path

import numpy as np
import pytest

from isamap.diagnostics import NoMappingError
from isamap.mapping.compose.composed import Composed
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.prove import prove_result
from isamap.sim.lowered import run_lowered
from isamap.sim.memory import LoweredFault
from isamap.solver.lemma import prove
from tests.mapping.machines import kernel, machine, moves, names, simulate

DOT = """
instruction dot {{
  in a : s8[4, 4] @ v    in b : s8[4, 4] @ v values 0 .. {most}    inout c : s32[4] @ v
  c[i] += s32(a[i, k]) * s32(b[i, k])
}}
"""
AFRESH = """
instruction afresh {
  in a : s8[4, 4] @ v    in b : s8[4, 4] @ v values 0 .. 127    out r : s32[4] @ v
  r[i] += s32(a[i, k]) * s32(b[i, k])
}
"""
ADD = """
instruction add {
  in a : s32[4] @ v    in b : s32[4] @ v    out r : s32[4] @ v
  r[i] = a[i] + b[i]
}
"""
SUM = """
instruction mac {
  in a : s8[4] @ v    in b : s8[4] @ v values 0 .. 127    inout c : s8[4] @ v
  c[i] += a[i] * b[i]
}
"""
NEGATE = "instruction negate { in a : s8[4] @ v  out r : s8[4] @ v  r[i] = -a[i] }"
BYTES = (moves("s8", 16), moves("s32", 4))
GEMM = """
kernel small(M = 5, N = 7, K = 6) {{
  in A : s8[M, K]    in B : s8[K, N] {b}    out C : s32[M, N]
  C[m, n] += s32(A[m, k]) * s32(B[k, n])
}}
"""


@pytest.mark.parametrize("parts", [(DOT.format(most=127),), (AFRESH, ADD)])
def test_it_is_used_where_the_values_are_proved(parts: tuple[str, ...], tmp_path: Path) -> None:
    result = simulate(kernel(GEMM.format(b="values 0 .. 127")), machine(tmp_path, *parts, *BYTES))
    assert names(result)[0] in ("dot", "afresh + add")
    needle = result.statements[0].mappings[0].matching.needle
    assert isinstance(needle.entry, Composed)
    (condition,) = needle.entry.conditions
    assert condition.text == "B[k, n] is a value of s8, 0 .. 127 (B[k, n] in 0 .. 127)"
    assert prove(condition.lemma).verdict == "proved"


@pytest.mark.parametrize("b", ["", "values -1 .. 127", "values 0 .. 120"])
@pytest.mark.parametrize("parts", [(DOT.format(most=119),), (AFRESH.replace("127", "119"), ADD)])
def test_elsewhere_it_is_refused_with_the_reason(
    parts: tuple[str, ...], b: str, tmp_path: Path
) -> None:
    hardware = machine(tmp_path, *parts, *BYTES)
    with pytest.raises(NoMappingError) as error:
        map_kernel(kernel(GEMM.format(b=b)), hardware)
    notes = [note.message for note in error.value.diagnostics[0].notes]
    assert any("it needs that B[k, n] is a value of s8, 0 .. 119" in note for note in notes), notes


def test_the_other_operand_may_be_anything(tmp_path: Path) -> None:
    text = GEMM.format(b="").replace("A : s8[M, K]", "A : s8[M, K] values 3 .. 9")
    result = simulate(kernel(text), machine(tmp_path, DOT.format(most=9), *BYTES))
    bound = dict(result.statements[0].mappings[0].matching.operands)
    assert str(bound["b"]).count("'A'") == 1  # exchanged


def test_what_is_computed_on_the_way_does_not_count_as_proved(tmp_path: Path) -> None:
    text = """
    kernel turned(N = 9) {
      in X : s8[N]    in Y : s8[N]    inout Z : s8[N]
      Z[i] += X[i] * -Y[i]
    }
    """
    with pytest.raises(NoMappingError):
        map_kernel(kernel(text), machine(tmp_path, SUM, NEGATE, moves("s8", 4)))


def test_the_simulator_stops_at_other_values(tmp_path: Path) -> None:
    (tmp_path / "narrow").mkdir()
    wide = machine(tmp_path, DOT.format(most=127), *BYTES)
    narrow = machine(tmp_path / "narrow", DOT.format(most=100), *BYTES)
    lowered = map_kernel(kernel(GEMM.format(b="values 0 .. 127")), wide).lowered
    a, b = np.ones((5, 6), np.int8), np.full((6, 7), 101, np.int8)
    assert (run_lowered(lowered, wide, {"A": a, "B": b})["C"] == 606).all()
    with pytest.raises(LoweredFault, match=r"operand b is 101, which is not in 0 \.\. 100"):
        run_lowered(lowered, narrow, {"A": a, "B": b})


TIMES = """
instruction times {
  in a : s16[8] @ v    in b : s16[8] @ v values 0 .. 255    out r : s16[8] @ v
  r[i] = a[i] * b[i]
}
"""
PRODUCTS = """
kernel products(N = 24) {{
  in A : s16[N]    in B : s16[N] {b}    out C : s16[N]
  C[n] = A[n] * B[n]
}}
"""
SATURATED = """
instruction saturated {
  in x : u8[8] @ v values 0 .. 1    in w : s8[8, 4] @ v    out y : s8[4] @ v
  local t : s32[4]
  t[j] += s32(x[k]) * s32(w[k, j])
  y[j] = sat[s8](t[j] >> 2)
}
"""
PACKED = """
instruction packed { in m : s8[8, 4] @ memory    out r : s8[8, 4] @ v    r[i, j] = m[i, j] }
"""
QUANTISED = """
kernel quantised(M = 3, N = 8, K = 8) {{
  in A : u8[M, K] {a}    in B : s8[K, N]    local T : s32[M, N]    out C : s8[M, N]
  T[m, n] += s32(A[m, k]) * s32(B[k, n])
  C[m, n] = sat[s8](T[m, n] >> 2)
}}
"""


def test_assignments_are_found_and_refused_likewise(tmp_path: Path) -> None:
    hardware = machine(tmp_path, TIMES, moves("s16", 8))
    result = simulate(kernel(PRODUCTS.format(b="values 0 .. 200")), hardware)
    assert names(result) == ["times"]
    (condition,) = result.statements[0].mappings[0].matching.needle.entry.conditions  # type: ignore[attr-defined]
    assert condition.text == "B[n] is a value of s16, 0 .. 255 (B[n] in 0 .. 200)"
    assert all(claim.verdict != "refuted" for claim in prove_result(result).claims)
    with pytest.raises(NoMappingError) as error:
        map_kernel(kernel(PRODUCTS.format(b="")), hardware)
    notes = [note.message for note in error.value.diagnostics[0].notes]
    assert [note.partition("; with")[0] for note in notes] == [
        "times: it needs that B[n] is a value of s16, 0 .. 255",
        "times: it needs that A[n] is a value of s16, 0 .. 255",
    ]


def test_statements_are_computed_together_where_the_values_are_proved(tmp_path: Path) -> None:
    hardware = machine(tmp_path, SATURATED, PACKED, moves("u8", 8), moves("s8", 4))
    result = simulate(kernel(QUANTISED.format(a="values 0 .. 1")), hardware)
    assert names(result) == ["saturated"]
    assert all(claim.verdict != "refuted" for claim in prove_result(result).claims)
    with pytest.raises(NoMappingError) as error:
        map_kernel(kernel(QUANTISED.format(a="")), hardware)
    note = error.value.diagnostics[0].notes[0].message
    assert note.startswith("saturated: it needs that A[m, k] is a value of u8, 0 .. 1; ")
    assert note.endswith("(for T and C together)")
