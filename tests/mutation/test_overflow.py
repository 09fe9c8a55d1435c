"""A sum of 70,000 products of bytes overflows 32 bits: code that saturates there is wrong."""

from pathlib import Path

import numpy as np

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.interp.rounding import Values
from isamap.ir.nodes import Kernel
from isamap.lower.nodes import LoweredKernel
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.source import load_kernel
from isamap.proof.field import field_check
from isamap.sim.lowered import run_lowered
from tests.mutation.faults import mutants

COMMON = "in a : u8[] @ memory in b : s8[2] @ memory inout c : s32[2] @ acc"
MACHINE = f"""\
format: 1
name: products
title: sums of products that wrap, and the same that saturate
source: invented
clock: 1 GHz
units: {{u: 1}}
storages:
  acc: {{kind: registers, count: 8, bits: 64}}
  imm: {{kind: immediate}}
  memory: {{kind: memory}}
instructions:
  - semantics: |
      instruction wrapping {{
        {COMMON} c[i] += s32(a[]) * s32(b[i])
      }}
    throughput: 1
    latency: 1
    units: u
  - semantics: |
      instruction saturating {{
        {COMMON} c[i] = sat[s32](s64(c[i]) + s64(a[]) * s64(b[i]))
      }}
    throughput: 1
    latency: 1
    units: u
  - semantics: |
      instruction zero {{
        in m : s32[] @ imm out r : s32[2] @ acc r[i] = m[]
      }}
    throughput: 1
    latency: 1
    units: u
  - semantics: |
      instruction store(n in 1..3) {{
        in r : s32[2] @ acc out m : s32[n] @ memory
        for i in 0..n
        m[i] = r[i]
      }}
    throughput: 1
    latency: 1
    units: u
"""
LONG = """\
kernel long_sum(K = 131072, N = 2) {
  in A : u8[K]
  in B : s8[K, N]
  out C : s32[N]
  C[n] += s32(A[k]) * s32(B[k, n])
}
"""


def mutant(folder: Path, length: int) -> tuple[Kernel, Accelerator, LoweredKernel, LoweredKernel]:
    """Return a kernel, its machine, its code, and the code with the other instruction."""
    (folder / "products.yaml").write_text(MACHINE)
    (folder / "long.ir").write_text(LONG.replace("131072", str(length)))
    machine = load_hardware(str(folder / "products.yaml"))
    kernel = load_kernel(folder / "long.ir")
    lowered = map_kernel(kernel, machine, Options(1, 0, None, False, None)).lowered
    (wrong,) = [m for m in mutants(lowered, machine) if m.fault == "wrong instruction"]
    return kernel, machine, lowered, wrong.lowered


def greatest(length: int) -> dict[str, Values]:
    return {"A": np.full(length, 255, np.uint8), "B": np.full((length, 2), 127, np.int8)}


def test_a_saturating_sum_is_caught_where_the_kernel_wraps(tmp_path: Path) -> None:
    kernel, machine, lowered, wrong = mutant(tmp_path, 70_000)
    inputs = greatest(70_000)
    assert run_lowered(lowered, machine, inputs)["C"].tolist() == [255 * 127 * 70_000 - 2**32] * 2
    assert run_lowered(wrong, machine, inputs)["C"].tolist() == [2**31 - 1] * 2
    assert field_check(kernel, machine, wrong, seeds=(0,), calls=1 << 20).verdict == "differs"


def test_a_short_sum_does_not_tell_them_apart(tmp_path: Path) -> None:
    _, machine, lowered, wrong = mutant(tmp_path, 1000)
    inputs = greatest(1000)
    assert run_lowered(lowered, machine, inputs)["C"].tolist() == [255 * 127 * 1000] * 2
    assert run_lowered(wrong, machine, inputs)["C"].tolist() == [255 * 127 * 1000] * 2
