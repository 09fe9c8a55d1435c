"""What code takes of memory beside inputs and outputs, counted in bytes."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from isamap.hw.load import load_hardware
from isamap.pipeline.mapped import map_kernel
from isamap.text.load import parse_module

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
script: Any = import_module("memory")

PRODUCT = """kernel product {
  in A : f32[24, 30]  const B : f32[30, 40]  out C : f32[24, 40]
  C[i, j] += A[i, k] * B[k, j] }"""
CHAIN = """kernel chain {
  in X : f32[100]  local T : f32[100]  out Y : f32[100]
  T[i] = X[i] + X[99 - i]
  Y[i] = T[99 - i] * 2 }"""


def counted(text: str) -> Any:
    result = map_kernel(parse_module(text).kernels[0], load_hardware("x86_avx512"))
    return script.taken("case n=1", text, result), result


def test_copies_are_told_from_what_was_given() -> None:
    found, result = counted(PRODUCT)
    assert found.given == 4 * (24 * 30 + 30 * 40 + 24 * 40)
    copied = [a for a in result.lowered.arrays if a.role in ("local", "prepared")]
    assert found.copies == sum(int(a.size.evaluate({})) * 4 for a in copied)
    assert found.locals == 0
    row = script.line("gemm_f32", [found], 100.4)
    assert row.startswith(f"| gemm_f32 | 1 | {found.share:.2f} |")
    assert row.endswith("| 100 |")


def test_what_a_kernel_holds_itself_is_no_copy() -> None:
    found, _ = counted(CHAIN)
    assert (found.given, found.copies, found.locals) == (800, 0, 400)


def test_a_search_has_a_peak() -> None:
    found, _ = counted(PRODUCT)
    peak = script.searched(found, "portable_c", "3")
    assert 20 < peak < 1024
    with pytest.raises(SystemExit, match="ended with"):
        script.searched(found, "no_such_machine", "3")
