"""What ``isamap map`` tells of code that crashes at memory."""

import platform
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Run

ALIGNED = """\
format: 1
name: aligned
extends: vector_c
instructions:
  - semantics: |
      instruction v_load_f32 { in m : f32[2*D] @ memory    out r : f32[2*D] @ v    r[i] = m[i] }
    emit: "{r} = (isamap_v_f32)_mm_load_ps((const float *){m});"
    throughput: 0.5
    latency: 10
    units: load
toolchain: {headers: [xmmintrin.h]}
"""
ROWS = """\
kernel add { in A : f32[7, 19] in B : f32[7, 19] out C : f32[7, 19] C[i, j] = A[i, j] + B[i, j] }
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="loads of x86")
def test_what_was_at_memory_is_told_of_code_that_crashes(isamap: "Run", tmp_path: Path) -> None:
    machine, kernel = tmp_path / "aligned.yaml", tmp_path / "add.ir"
    machine.write_text(ALIGNED)
    kernel.write_text(ROWS)
    done = isamap("map", kernel, "--hw", machine, "--trust")
    assert done.code == 5
    assert "error[E506]: the kernel crashed (SIGSEGV)" in done.err
    assert "note: in memory work v_load_f32, v_store_f32; one that goes beyond" in done.err
    assert f"is found by 'isamap targets test {machine}'" in done.err
