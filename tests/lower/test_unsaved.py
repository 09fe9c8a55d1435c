"""Results that no instruction takes to memory as they are."""

from pathlib import Path

import pytest

from isamap.diagnostics import NoMappingError
from tests.mapping.machines import kernel, machine, names, simulate

WIDE = """\
instruction wide { in a : f32[] @ v  in b : f32[4] @ v  out c : f32[1, 4, 1] @ v
  for i in 0..1  for j in 0..4  for k in 0..1  c[i, j, k] = a[] * b[j] }
instruction one_1 { in m : f32[] @ memory  out r : f32[] @ v  r[] = m[] }
instruction load_4 { in m : f32[4] @ memory  out r : f32[4] @ v  r[i] = m[i] }
"""
SINGLE = """\
instruction single { in a : f32[] @ v  in b : f32[] @ v  out c : f32[] @ v  c[] = a[] * b[] }
instruction most { in a : f32[] @ v  in b : f32[] @ imm  out c : f32[] @ v  c[] = max(a[], b[]) }
instruction store_1 { in r : f32[] @ v  out m : f32[] @ memory  m[] = r[] }
"""
SOME = """\
instruction store_some(ni in 1..2, nj in 1..5, nk in 1..2) {
  in r : f32[1, 4, 1] @ v  out m : f32[ni, nj, nk] @ memory
  for i in 0..ni  for j in 0..nj  for k in 0..nk  m[i, j, k] = r[i, j, k] }
"""
TWO = """kernel two(H = 3, W = 8) {
  in A : f32[H]  in B : f32[W]  local Y : f32[H, W]  out Z : f32[H, W]
  Y[h, w] = A[h] * B[w]
  Z[h, w] = max(Y[h, w], 0)
}"""
ONE = """kernel one(H = 3, W = 5) {
  in A : f32[H]  in B : f32[W]  out Y : f32[H, W]
  Y[h, w] = A[h] * B[w]
}"""


def test_a_pitch_may_be_made_of_an_extent_that_is_sure(tmp_path: Path) -> None:
    # The store's rows are nk apart, and nk can be nothing but 1.
    result = simulate(kernel(ONE), machine(tmp_path, WIDE, SOME))
    assert dict(result.mappings[0].tile) == {"w": 4}


def test_what_no_later_statement_can_take_is_computed_by_another_instruction(
    tmp_path: Path,
) -> None:
    result = simulate(kernel(TWO), machine(tmp_path, WIDE, SINGLE))
    assert names(result)[0] == "single"


def test_where_no_other_instruction_computes_it_the_reason_is_told(tmp_path: Path) -> None:
    single = SINGLE.replace("a[] * b[]", "a[] - b[]")
    with pytest.raises(NoMappingError, match=r"no instruction takes f32\[1, 4, 1\] from v to mem"):
        simulate(kernel(TWO), machine(tmp_path, WIDE, single))
