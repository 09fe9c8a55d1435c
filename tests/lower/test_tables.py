"""Constants that no instruction sets a register to: they are loaded from a table."""

from pathlib import Path

import pytest

from isamap.diagnostics import NoMappingError
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.prove import prove_result
from isamap.pipeline.result import Result
from tests.mapping.machines import kernel, machine, simulate

MAC = """
instruction mac {
  in a : f32[4] @ v    in b : f32[4] @ v    inout c : f32[4] @ w
  c[i] += a[i] * b[i]
}
instruction larger {
  in a : f32[4] @ v    in b : f32[4] @ v    out r : f32[4] @ v
  r[i] = max(a[i], b[i])
}
instruction splat { in m : f32[] @ memory  out r : f32[4] @ v  r[i] = m[] }
"""
LOAD = "instruction load_{s} {{ in m : f32[4] @ memory  out r : f32[4] @ {s}  r[i] = m[i] }}"
SPLAT = "instruction all_{s} {{ in m : f32[] @ memory  out r : f32[4] @ {s}  r[i] = m[] }}"
STORE = "instruction store_{s} {{ in r : f32[4] @ {s}  out m : f32[4] @ memory  m[i] = r[i] }}"
PRODUCT = """
kernel product(M = 5, N = 11, K = 7) {
  in A : f32[M, K]    in B : f32[K, N]    out C : f32[M, N]
  C[m, n] += A[m, k] * B[k, n]
}
"""
POSITIVE = """
kernel positive(M = 3, N = 11) {
  in A : f32[M, N]    out C : f32[M, N]
  C[m, n] = max(A[m, n], 0.5)
}
"""


def tables(result: Result) -> list[tuple[int, str]]:
    """Return the length of each table of the code, and its first element."""
    found = [a.contents for a in result.lowered.arrays if a.contents is not None]
    return [(len(contents.elements), contents.elements[0].text) for contents in found]


@pytest.mark.parametrize(("load", "count"), [(LOAD, 4), (SPLAT, 1)])
def test_a_sum_begins_with_zeros_from_memory(load: str, count: int, tmp_path: Path) -> None:
    parts = (MAC, LOAD.format(s="v"), load.format(s="w"), STORE.format(s="w"))
    hardware = machine(tmp_path, *parts)
    result = simulate(kernel(PRODUCT), hardware)
    assert tables(result) == [(count, "0.0")]
    assert all(claim.verdict != "refuted" for claim in prove_result(result).claims)


def test_other_constants_are_loaded_likewise(tmp_path: Path) -> None:
    parts = (MAC, LOAD.format(s="v"), STORE.format(s="v"))
    assert tables(simulate(kernel(POSITIVE), machine(tmp_path, *parts)))[0][1] == "0.5"


def test_what_sets_a_register_is_used_where_there_is_one(tmp_path: Path) -> None:
    fill = "instruction set_w { in x : f32[] @ imm  out r : f32[4] @ w  r[i] = x[] }"
    parts = (MAC, fill, LOAD.format(s="v"), LOAD.format(s="w"), STORE.format(s="w"))
    assert not tables(simulate(kernel(PRODUCT), machine(tmp_path, *parts)))


def test_without_a_load_the_reason_is_told(tmp_path: Path) -> None:
    hardware = machine(tmp_path, MAC, LOAD.format(s="v"), STORE.format(s="w"))
    with pytest.raises(NoMappingError) as error:
        map_kernel(kernel(PRODUCT), hardware, Options(instruction="mac"))
    notes = [note.message for note in error.value.diagnostics[0].notes]
    assert "mac: no instruction sets a register of w to 0.0, or loads one" in notes


IN_MEMORY = """
instruction times {
  in a : f32[4] @ memory    in b : f32[4] @ memory    out c : f32[4] @ memory
  c[i] = a[i] * b[i]
}
instruction plus {
  in a : f32[4] @ memory    in b : f32[STEP] @ memory    out c : f32[4] @ memory
  c[i] = a[i] + b[AT]
}
instruction larger {
  in a : f32[4] @ memory    in b : f32[4] @ memory    out c : f32[4] @ memory
  c[i] = max(a[i], b[i])
}
"""
LINE = """
kernel line(N = 11) {
  in X : f32[N]    out Y : f32[N]
  Y[n] = max(X[n] * 2.5 + 3.0, 0.5)
}
"""


@pytest.mark.parametrize(("step", "at", "count"), [("4", "i", 4), ("1", "0", 1)])
@pytest.mark.parametrize("extent", [11, 12])
def test_instructions_that_compute_in_memory_find_constants_there(
    step: str, at: str, count: int, extent: int, tmp_path: Path
) -> None:
    text = IN_MEMORY.replace("STEP", step).replace("AT", at)
    result = simulate(kernel(LINE.replace("11", str(extent))), machine(tmp_path, text))
    assert sorted(tables(result)) == sorted([(4, "2.5"), (count, "3.0"), (4, "0.5")])
    assert all(claim.verdict != "refuted" for claim in prove_result(result).claims)
