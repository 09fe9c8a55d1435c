"""What estimates take to be near, what copies cost, and what is asked for ahead because of that."""

from dataclasses import replace
from itertools import pairwise

import pytest

from isamap.diagnostics import Source
from isamap.ir.nodes import Kernel
from isamap.lower import delivery
from isamap.lower.cost import estimate
from isamap.lower.lower import lower
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.result import Result
from isamap.pipeline.source import load_hardware
from isamap.schedule.reader import parse_schedule
from isamap.schedule.schedule import Schedule
from isamap.text.load import parse_module

CLOSE, SHARED, FAR = 64, 512, 1024
"""Sizes of square products of f32 that half of 1 MiB holds, an eighth of 32 MiB, and neither."""


def product(m: int, n: int, k: int, dtype: str = "f32", hardware: str = "x86_avx512") -> Result:
    wide = "s32" if dtype in ("s8", "u8") else "f32"
    text = f"""kernel product {{
      in A : {dtype}[{m}, {k}]  in B : {dtype}[{k}, {n}]  out C : {wide}[{m}, {n}]
      C[m, n] += {wide}(A[m, k]) * {wide}(B[k, n])
    }}"""
    return map_kernel(parse_module(text).kernels[0], load_hardware(hardware))


def test_what_a_core_keeps_does_not_come_from_memory() -> None:
    near, shared, far = (product(n, n, n).estimate for n in (CLOSE, SHARED, FAR))
    assert near.parts["l3"] == near.parts["memory"] == 0
    assert near.parts["l2"] > 0
    assert near.bound_by == "fma"
    assert shared.parts["l3"] > 0
    assert shared.parts["memory"] == 0
    # The third cache has room for 12 MiB, but others use it as well.
    assert far.parts["memory"] > 0


@pytest.mark.parametrize("size", [64, 128])
def test_small_products_take_the_unit_that_computes_most(size: int) -> None:
    result = product(size, size, size, "bf16", "x86_amx")
    assert {s.mapping.matching.needle.name for s in result.schedule.statements} == {"tdpbf16ps"}


def test_copies_are_estimated_by_bytes() -> None:
    # The fragments of both weave rows, four of bytes and two of bf16: in two steps, and in one.
    copies = {
        dtype: product(512, 512, 512, dtype, "x86_amx").estimate.parts["copies"]
        for dtype in ("u8", "bf16")
    }
    assert copies["u8"] > 0
    assert copies["u8"] / (512 * 512 * (1 + 2)) == copies["bf16"] / (512 * 512 * 2 * (1 + 1))


def test_what_jumps_from_row_to_row_is_asked_for() -> None:
    (own,) = product(42, 700, 2048, hardware="x86_amx").schedule.statements
    assert own.operands[1] == "direct"
    assert [(early.access, early.variable) for early in own.early] == [(1, "k")]


def test_what_was_just_copied_is_not_asked_for() -> None:
    (own,) = product(35, 700, 2048, "u8", "x86_amx").schedule.statements
    assert own.inside
    copied = {n for n, depth in enumerate(own.inside) if depth}
    assert copied
    assert copied.isdisjoint(early.access for early in own.early)


def layer(pixels: int, channels: int, filters: int) -> Kernel:
    text = f"""kernel layer {{
      in X : bf16[{pixels}, {channels}]  const F : bf16[{channels}, {filters}]
      local S : f32[{pixels}, {filters}]  out Y : bf16[{pixels}, {filters}]
      S[p, k] += f32(X[p, c]) * f32(F[c, k])
      Y[p, k] = bf16(S[p, k])
    }}"""
    return parse_module(text).kernels[0]


def test_loops_beside_each_other_share_a_cache() -> None:
    # Finished later, the reduction is in parts: a panel of F has to outlive all of them.
    found = map_kernel(layer(196, 512, 512), load_hardware("x86_amx"))
    (root,) = (own for own in found.schedule.statements if own.within is None)
    assert root.later
    reads = [
        lower(
            found.kernel,
            load_hardware("x86_amx"),
            Schedule(
                tuple(
                    replace(own, later=flag) if own is root else own
                    for own in found.schedule.statements
                )
            ),
        )
        for flag in (True, False)
    ]
    one, other = (estimate(code, load_hardware("x86_amx")).parts["l2"] for code in reads)
    assert one == pytest.approx(other, rel=0.1)


def test_caches_lose_ever_more_of_what_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    # Bytes are looked at, not how much longer those take that nobody fetches ahead.
    monkeypatch.setattr(delivery, "ALONE", 1.0)
    # A panel of so many rows of 16 columns beside 16 rows, from half of 48 KiB to more than all.
    # The second cache keeps all operands.
    schedule = parse_schedule(
        Source("near", "schedule layer {\n S {\n loops k/16, p/16, c/32\n }\n }")
    )
    traffic = []
    for depth in range(384, 1024, 64):
        found = map_kernel(
            layer(416, depth, 32), load_hardware("x86_amx"), Options(schedule=schedule)
        )
        traffic.append(found.estimate.parts["l2"] / depth)
    steps = [after / before for before, after in pairwise(traffic)]
    assert all(0.95 < step < 1.25 for step in steps)
    assert traffic[-1] > 1.8 * traffic[0]
