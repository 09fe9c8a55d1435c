"""What compilers make of addresses into aligned arrays: it must not fault."""

from pathlib import Path

import numpy as np
import pytest

import isamap
from isamap.hw.accelerator import Accelerator
from isamap.hw.native import runnable
from isamap.interp.run import interpret
from isamap.text.load import parse_module

# Scalars read the rows of E one by one, which GCC 12 made vectors of two; it then took their
# addresses, 8 bytes after a multiple of 16, for multiples of 64, and those of masked loads too.
KERNEL = """
kernel rows(R = 10, C = 3) {
  in X : f32[R, C]
  local E : f32[R, C]
  local S : f32[R]
  out Y : f32[R, C]
  E[r, c] = exp(X[r, c])
  S[r] += E[r, c]
  Y[r, c] = E[r, c] / S[r]
}
"""

SCHEDULE = """
schedule rows on x86_avx512 {
  E {
    instruction vexp_f32
    axes i <- r
    tile r=10
    loops none
    operands X direct
  }
  S {
    instruction c_add_f32
    axes none
    tile none
    loops none
    operands E direct
  }
  Y {
    instruction vdiv_f32
    axes i <- c
    tile c=3
    loops none
    operands E direct, S direct
  }
}
"""


def test_masked_loads_beside_scalar_ones_do_not_fault(tmp_path: Path) -> None:
    machine: Accelerator = isamap.load_hardware("x86_avx512")
    if (reason := runnable(machine)) is not None:
        pytest.skip(reason)
    path = tmp_path / "rows.schedule"
    path.write_text(SCHEDULE)
    kernel = parse_module(KERNEL, "rows.ir").kernels[0]
    options = isamap.Options(schedule=isamap.load_schedule(path))
    x = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
    got = isamap.map(kernel, machine, options).compile()(x)["Y"]
    np.testing.assert_allclose(got, np.asarray(interpret(kernel, {"X": x})["Y"]), rtol=1e-5)
