"""Instructions whose result lies in memory, where it may overwrite one of their operands."""

from pathlib import Path

import numpy as np
import pytest

from isamap.diagnostics import NoMappingError
from isamap.hw.load import load_hardware
from isamap.interp.run import interpret
from isamap.ir.statements import bind_extents, zero_based
from isamap.lower.choose import choose
from isamap.mapping.find import enumerate_mappings
from isamap.sim.lowered import run_lowered
from isamap.text.load import parse_module

MACHINE = """\
format: 1
name: inmemory
title: operands and results in memory
source: invented
clock: 1 GHz
units: {{u: 1}}
storages:
  memory: {{kind: memory}}
instructions:
  - semantics: |
      {semantics}
    throughput: 1
    latency: 1
    units: u
"""

ACCUMULATING = (
    "instruction mac(n in 1..5) { in a : s32[n] @ memory in b : s32[n] @ memory "
    "inout c : s32[n] @ memory c[i] += a[i] * b[i] }"
)
SEPARATE = (
    "instruction mad(n in 1..5) { in a : s32[n] @ memory in b : s32[n] @ memory "
    "in c : s32[n] @ memory out r : s32[n] @ memory r[i] = a[i] * b[i] + c[i] }"
)
PITCHES = (
    "instruction add(n in 1..5, P, Q) { in a : s32[n, 2] @ memory strides [P, 1] "
    "in b : s32[n, 2] @ memory strides [P, 1] out r : s32[n, 2] @ memory strides [Q, 1] "
    "r[i, j] = a[i, j] + b[i, j] }"
)

COUNTED = (
    "instruction gemm(m in 1..9, n in 1..9, k in 1..9, P, Q, R) { "
    "in a : s32[m, k] @ memory strides [P, 1] in b : s32[k, n] @ memory strides [Q, 1] "
    "inout c : s32[m, n] @ memory strides [R, 1] c[i, j] += a[i, l] * b[l, j] }"
)


def check(folder: Path, semantics: str, text: str) -> None:
    path = folder / "inmemory.yaml"
    path.write_text(MACHINE.format(semantics=semantics))
    machine = load_hardware(str(path))
    (kernel,) = parse_module(text).kernels
    found = [
        enumerate_mappings(zero_based(s), machine, kernel.permissions)
        for s in bind_extents(kernel).statements
    ]
    lowered = choose(kernel, machine, found).lowered
    rng = np.random.default_rng(0)
    arrays = {
        b.name: rng.integers(-9, 9, [e.evaluate({}) for e in b.shape]).astype(np.int32)
        for b in bind_extents(kernel).buffers
        if b.role in ("in", "inout")
    }
    expected = interpret(kernel, arrays)
    for name, actual in run_lowered(lowered, machine, arrays, {}).items():
        np.testing.assert_array_equal(np.asarray(actual).ravel(), expected[name].ravel())


@pytest.mark.parametrize("semantics", [ACCUMULATING, SEPARATE])
@pytest.mark.parametrize(
    "statement",
    [
        "Y[i] = C[i] + A[i] * B[i]",
        "Y[i] = C[2 * i - 4] + A[i] * B[i]",
        "Y[i] = Y[i] + A[i] * B[i]",
        "Y[i] += A[i] * B[i]",
        "Y[i] = C[i] + A[i] * Y[i]",
    ],
)
def test_operand_that_is_overwritten_has_its_content(
    tmp_path: Path, semantics: str, statement: str
) -> None:
    if semantics is ACCUMULATING and "A[i] * Y[i]" in statement:
        pytest.skip("the operand's copy would overwrite Y: refused, see below")
    text = (
        "kernel k(N = 18) { in A : s32[N] in B : s32[N] in C : s32[N] pad 7 inout Y : s32[N] "
        f"{statement} }}"
    )
    check(tmp_path, semantics, text)


def test_operand_is_not_put_over_what_is_still_read(tmp_path: Path) -> None:
    text = (
        "kernel k(N = 18) { in A : s32[N] in C : s32[N] inout Y : s32[N] "
        "Y[i] = C[i] + A[i] * Y[i] }"
    )
    with pytest.raises(NoMappingError, match="cannot be made into code for inmemory"):
        check(tmp_path, ACCUMULATING, text)


def test_reduction_into_memory_starts_from_its_identity(tmp_path: Path) -> None:
    text = (
        "kernel k(N = 18) { in A : s32[N, 3] in B : s32[N, 3] out Y : s32[N, 3] "
        "Y[i, j] += A[i, j] * B[i, j] }"
    )
    check(tmp_path, SEPARATE, text)


def test_operands_of_other_pitches_are_no_accumulators(tmp_path: Path) -> None:
    text = "kernel k(N = 18) { in A : s32[N, 2] inout Y : s32[N, 2] Y[i, j] = Y[i, j] + A[i, j] }"
    check(tmp_path, PITCHES, text)


@pytest.mark.parametrize(
    "access",
    ["A[i, k] * B[k, j]", "A[i, k] * B[j, k]", "A[k, i] * B[k, j]", "A[k, i] * B[j, k]"],
)
@pytest.mark.parametrize("size", [3, 11])
def test_counts_at_which_an_instruction_ends_need_no_padding(
    tmp_path: Path, access: str, size: int
) -> None:
    """What is packed has whole fragments, what is not ends sooner: so many are computed."""
    text = (
        f"kernel k(N = {size}) {{ in A : s32[N, N] in B : s32[N, N] out Y : s32[N, N] "
        f"Y[i, j] += {access} }}"
    )
    check(tmp_path, COUNTED, text)


@pytest.mark.parametrize(
    "text",
    [
        "out C : s32[M, N] C[m, n] += A[m, k, n] * B[k, n]",
        "inout C : s32[M, N] C[m, n] += A[m, k, n] * B[k, n]",
        "inout C : s32[M, N] for m in 0..M C[m, n] = C[m, n] + A[m, 0, n] * B[1, n]",
        "in D : s32[M, N] out C : s32[M, N] C[m, n] = D[m, n] + A[m, 0, n] * B[1, n]",
    ],
)
def test_what_an_instruction_changes_beyond_the_result_is_staged(text: str, tmp_path: Path) -> None:
    """It always takes four elements, and the last ones of a row are fewer: those beyond stay."""
    whole = ACCUMULATING.replace("(n in 1..5)", "").replace("[n]", "[4]")
    head = "kernel t(M = 3, N = 7, K = 5) { in A : s32[M, K, N] in B : s32[K, N] "
    check(tmp_path, whole, f"{head}{text} }}")
