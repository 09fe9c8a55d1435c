"""Copies with padding have room behind their last element, for rows that are read whole."""

import pytest

from isamap.interp.compare import compare
from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.statements import zero_based
from isamap.lower.choose import choose
from isamap.mapping.find import enumerate_mappings
from isamap.mapping.matching import Enumeration
from isamap.sim.lowered import run_lowered
from isamap.text.load import parse_module
from tests.properties.machines import load

MACHINE = """\
format: 1
name: pairs
extends: portable_c
clock: 1 GHz
units: {u: 1}
storages:
  file: {kind: registers, count: 4, bits: 64, types: {f32: pair_f32}}
  constant: {kind: immediate}
toolchain:
  prelude: |
    typedef struct { float v[2]; } pair_f32;
instructions:
  - semantics: |
      instruction scale {
        in a : f32[] @ file
        in b : f32[2, 1] @ file
        inout c : f32[2] @ file
        for i in 0..2
        for j in 0..1
        c[i] += a[] * b[i, j]
      }
    emit: for (int i = 0; i < 2; ++i) {c}.v[i] += {a}.v[0] * {b}.v[i];
    throughput: 1
    latency: 1
    units: [u]
  - semantics: |
      instruction load_one {
        in m : f32[] @ memory
        out r : f32[] @ file
        r[] = m[]
      }
    emit: "{r}.v[0] = ({m})[0];"
    throughput: 1
    latency: 1
    units: [u]
  - semantics: |
      instruction load_pair {
        in m : f32[2, 1] @ memory
        out r : f32[2, 1] @ file
        r[i, j] = m[i, j]
      }
    emit: for (int i = 0; i < 2; ++i) {r}.v[i] = ({m})[i];
    throughput: 1
    latency: 1
    units: [u]
  - semantics: |
      instruction store_pair {
        in r : f32[2] @ file
        out m : f32[2] @ memory
        m[i] = r[i]
      }
    emit: for (int i = 0; i < 2; ++i) ({m})[i] = {r}.v[i];
    throughput: 1
    latency: 1
    units: [u]
  - semantics: |
      instruction set_pair {
        in v : f32[] @ constant
        out r : f32[2] @ file
        r[i] = v[]
      }
    emit: for (int i = 0; i < 2; ++i) {r}.v[i] = {v};
    throughput: 1
    latency: 1
    units: [u]
"""
KERNEL = """\
kernel window(H, W) {
  in A : f32[]
  in B : f32[W + H] pad 0
  out Y : f32[]
  for h in 0..H
  for w in 0..W
  Y[] += A[] * B[w + h - 2]
}
"""


@pytest.mark.parametrize("sizes", [{"H": 1, "W": 1}, {"H": 3, "W": 2}])
def test_nothing_behind_a_copy_is_read_along_an_axis_without_variables(
    sizes: dict[str, int],
) -> None:
    machine = load(MACHINE)
    (kernel,) = parse_module(KERNEL).kernels
    found = enumerate_mappings(zero_based(kernel.statements[0]), machine, kernel.permissions)
    arrays = random_inputs(kernel, sizes, seed=1)
    expected = {"Y": interpret(kernel, arrays, sizes)["Y"]}
    # Nothing lies on i, so that the second element of the pair that load_pair reads is no row.
    mapping = next(
        m
        for m in found.mappings
        if m.matching.needle.name == "scale" and not any(m.tile[v] > 1 for v in m.tile)
    )
    one = Enumeration(found.statement, (mapping,), True)
    choice = choose(kernel, machine, (one,), symbols=sizes)
    outputs = run_lowered(choice.lowered, machine, arrays, sizes, kernel=kernel)
    assert compare(kernel, arrays, expected, {"Y": outputs["Y"]}, sizes).ok
