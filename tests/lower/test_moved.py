"""Statements that copy take any store of their register, not only that of their mapping."""

from pathlib import Path

import numpy as np
import pytest

from isamap.hw.load import load_hardware
from isamap.interp.run import interpret
from isamap.ir.statements import bind_extents, zero_based
from isamap.lower.choose import choose
from isamap.lower.printer import print_lowered
from isamap.mapping.find import enumerate_mappings
from isamap.sim.lowered import run_lowered
from isamap.text.load import parse_module

MACHINE = """\
format: 1
name: stores
title: a store, one of some elements, and one of every other element
source: invented
clock: 1 GHz
units: {u: 1}
storages:
  v: {kind: registers, count: 8, bits: 128}
  memory: {kind: memory}
instructions:
  - semantics: |
      instruction load(n in 1..5) {
        in m : s32[n] @ memory pad 0  out r : s32[4] @ v  for i in 0..4  r[i] = m[i]
      }
    throughput: 1
    latency: 1
    units: u
  - semantics: "instruction store { in r : s32[4] @ v  out m : s32[4] @ memory  m[i] = r[i] }"
    throughput: 1
    latency: 1
    units: u
  - semantics: |
      instruction some(n in 1..5) {
        in r : s32[4] @ v  out m : s32[n] @ memory  for i in 0..n  m[i] = r[i]
      }
    throughput: 2
    latency: 1
    units: u
  - semantics: |
      instruction spread(n in 1..5) {
        in r : s32[4] @ v  out m : s32[n] @ memory strides [2]  for i in 0..n  m[i] = r[i]
      }
    throughput: 3
    latency: 1
    units: u
"""


@pytest.mark.parametrize(
    ("extent", "target", "stores"),
    [
        (8, "Y[n]", {"store"}),
        (11, "Y[n]", {"store", "some"}),
        (11, "Y[2 * n + 1]", {"spread"}),
    ],
)
def test_a_copy_takes_the_store_that_fits(
    tmp_path: Path, extent: int, target: str, stores: set[str]
) -> None:
    path = tmp_path / "stores.yaml"
    path.write_text(MACHINE)
    machine = load_hardware(str(path))
    text = (
        f"kernel k(N = {extent}) {{ in X : s32[N]  inout Y : s32[2 * N]  {target} = X[n] "
        "for n in 0..N }"
    )
    (kernel,) = parse_module(text).kernels
    bound = bind_extents(kernel)
    found = [
        enumerate_mappings(zero_based(s), machine, kernel.permissions) for s in bound.statements
    ]
    lowered = choose(kernel, machine, found).lowered
    printed = print_lowered(lowered)
    assert {name for name in ("store", "some", "spread") if f"{name}(" in printed} == stores
    assert "copy" not in printed
    rng = np.random.default_rng(0)
    arrays = {
        b.name: rng.integers(-9, 9, [e.evaluate({}) for e in b.shape]).astype(np.int32)
        for b in bound.buffers
    }
    actual = run_lowered(lowered, machine, arrays, {})["Y"]
    np.testing.assert_array_equal(np.asarray(actual).ravel(), interpret(kernel, arrays)["Y"])
