"""Movements with several axes along a dimension, ``r[16*b + l] = m[b, l]``, are used so."""

from pathlib import Path

import pytest

from isamap.diagnostics import Source
from isamap.hw.accelerator import Accelerator
from isamap.ir.index import Index, const, var
from isamap.mapping.fragments.radix import unfold
from isamap.pipeline.options import Options
from isamap.pipeline.prove import prove_result
from isamap.pipeline.result import Result
from isamap.schedule.reader import parse_schedule
from tests.mapping.machines import kernel, machine, simulate

DOT = """
instruction dot {
  in a : s8[4, 32] @ v    in b : s8[32] @ v    inout c : s32[4] @ w
  c[i] += s32(a[i, k]) * s32(b[k])
}
instruction clear { in x : s32[] @ imm  out c : s32[4] @ w  c[i] = x[] }
instruction put(n in 1..5, Q) {
  in c : s32[4] @ w    out m : s32[n] @ memory strides [Q]  for i in 0..n  m[i] = c[i]
}
instruction one { in m : s8[32] @ memory  out r : s8[32] @ v  r[k] = m[k] }
"""
BRICKS = """
instruction bricks(rows in 1..5, P, B) {
  in m : s8[rows, 2, 16] @ memory strides [P, B, 1] pad 0    out r : s8[4, 32] @ v
  for p in 0..4    for b in 0..2    for l in 0..16
  r[p, 16*b + l] = m[p, b, l]
}
"""
SOME = """
instruction some(rows in 1..5, bricks in 1..3, P, B) {
  in m : s8[rows, bricks, 16] @ memory strides [P, B, 1] pad 0    out r : s8[4, 32] @ v
  for p in 0..4    for b in 0..2    for l in 0..16
  r[p, 16*b + l] = m[p, b, l]
}
instruction some_one(bricks in 1..3, B) {
  in m : s8[bricks, 16] @ memory strides [B, 1] pad 0    out r : s8[32] @ v
  for b in 0..2    for l in 0..16
  r[16*b + l] = m[b, l]
}
"""
WOVEN = """
instruction woven(rows in 1..5, P, B) {
  in m : s8[rows, 2, 16] @ memory strides [P, B, 1] pad 0    out r : s8[4, 32] @ v
  for p in 0..4    for b in 0..2    for l in 0..16
  r[p, 2*l + b] = m[p, b, l]
}
"""
TIMES = """
instruction times {
  in a : s32[8] @ v    in b : s32[8] @ v    out c : s32[8] @ v
  c[i] = a[i] * b[i]
}
instruction pair(B) {
  in m : s32[2, 4] @ memory strides [B, 1]    out r : s32[8] @ v
  for b in 0..2    for l in 0..4
  r[4*b + l] = m[b, l]
}
instruction put_pair(B) {
  in r : s32[8] @ v    out m : s32[2, 4] @ memory strides [B, 1]
  for b in 0..2    for l in 0..4
  m[b, l] = r[4*b + l]
}
"""


def brick_product(height: int, bricks: int) -> str:
    return f"""kernel product {{
      in X : s8[{bricks}, {height}, 16]  const F : s8[{bricks}, 16]  out Y : s32[{height}]
      Y[h] += s32(X[c, h, d]) * s32(F[c, d])
    }}"""


def placed(text: str, hardware: Accelerator, axes: str) -> Result:
    """Map a kernel with its variables on these axes; check what it computes and what is proved."""
    source = kernel(text)
    said = f"schedule {source.name} {{ Y {{ axes {axes} }} }}"
    options = Options(schedule=parse_schedule(Source("x.schedule", said)))
    result = simulate(source, hardware, options=options)
    assert all(claim.verdict != "refuted" for claim in prove_result(result).claims)
    return result


def straight(text: str, hardware: Accelerator, axes: str) -> None:
    """Check what a mapping computes, and that the code copies no input, nor the result."""
    arrays = placed(text, hardware, axes).lowered.arrays
    assert [a.name for a in arrays if a.role == "local"] == []


@pytest.mark.parametrize("height", [8, 7, 3])
def test_two_variables_lie_on_an_axis_as_the_load_brings_them(height: int, tmp_path: Path) -> None:
    hardware = machine(tmp_path, DOT, BRICKS)
    straight(brick_product(height, 4), hardware, "i <- h, k <- [c, d]")


@pytest.mark.parametrize("bricks", [3, 4, 5])
def test_the_outermost_axis_may_have_a_limit(bricks: int, tmp_path: Path) -> None:
    hardware = machine(tmp_path, DOT, SOME)
    straight(brick_product(7, bricks), hardware, "i <- h, k <- [c, d]")


def test_an_order_of_its_own_is_kept(tmp_path: Path) -> None:
    text = """kernel woven {
      const F : s8[16, 2]  in X : s8[9, 2, 16]  out Y : s32[9]
      Y[h] += s32(F[d, c]) * s32(X[h, c, d])
    }"""
    straight(text, machine(tmp_path, DOT, WOVEN), "i <- h, k <- [d, c]")


@pytest.mark.parametrize("height", [8, 7])
def test_one_variable_is_split_over_the_axes_of_a_load(height: int, tmp_path: Path) -> None:
    text = f"""kernel product {{
      in X : s8[{height}, 64]  const F : s8[64]  out Y : s32[{height}]
      Y[h] += s32(X[h, k]) * s32(F[k])
    }}"""
    straight(text, machine(tmp_path, DOT, BRICKS), "i <- h, k <- k")


def test_stores_take_what_lies_along_one_dimension(tmp_path: Path) -> None:
    text = """kernel times {
      in A : s32[6, 12]  in B : s32[6, 12]  out Y : s32[6, 12]
      Y[h, w] = A[h, w] * B[h, w]
    }"""
    straight(text, machine(tmp_path, TIMES), "i <- [h, w]")


def test_one_variable_is_split_over_the_axes_of_a_store(tmp_path: Path) -> None:
    text = """kernel times {
      in A : s32[6, 16]  in B : s32[6, 16]  out Y : s32[6, 16]
      Y[h, w] = A[h, w] * B[h, w]
    }"""
    straight(text, machine(tmp_path, TIMES), "i <- w")


OUTER, INNER, MIDDLE = var("i"), var("j"), var("k")


@pytest.mark.parametrize(
    ("index", "found"),
    [
        (16 * OUTER + INNER, (("i", "j"), (2, 16))),
        (INNER * 2 + OUTER, (("j", "i"), (16, 2))),
        (8 * OUTER + 4 * MIDDLE + INNER, (("i", "k", "j"), (4, 2, 4))),
        (OUTER + INNER, None),
        (16 * OUTER + 2 * INNER, None),
        (16 * OUTER + INNER + 1, None),
        (OUTER * INNER, None),
        (12 * OUTER + INNER, None),
        (-OUTER + INNER, None),
    ],
)
def test_a_sum_is_unfolded_if_each_axis_steps_over_those_inside_it(
    index: Index, found: tuple[tuple[str, ...], tuple[int, ...]] | None
) -> None:
    sizes = {"i": 2, "j": 16, "k": 2} if MIDDLE.names.isdisjoint(index.names) else {"j": 4, "k": 2}
    assert unfold((index,), (32,), {"i": None, **sizes}) == found


def test_axes_beside_a_sum_keep_their_dimensions() -> None:
    sizes = {"i": 2, "j": 16, "k": 5}
    assert unfold((MIDDLE, 16 * OUTER + INNER, const(0)), (8, 32, 1), sizes) == (
        ("k", "i", "j", ""),
        (8, 2, 16, 1),
    )
    assert unfold((OUTER, 16 * OUTER + INNER), (2, 32), sizes) is None
