"""Kernels cut after each of their statements, whose times tell where that of the whole goes."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.text.load import parse_module

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
script: Any = import_module("parts")

TEXT = """kernel softmax(R = 5, C = 37) {
  in X : f32[R, C]  local M : f32[R]  local E : f32[R, C]  local S : f32[R]  out Y : f32[R, C]
  M[r] max= X[r, c]
  E[r, c] = exp(X[r, c] - M[r])
  S[r] += E[r, c]
  Y[r, c] = E[r, c] / S[r] }"""


def test_a_cut_kernel_writes_what_later_statements_read() -> None:
    kernel = parse_module(TEXT).kernels[0]
    roles = [{b.name: b.role for b in script.cut(kernel, n).buffers} for n in range(1, 5)]
    assert roles[0] == {"X": "in", "M": "out"}
    assert roles[1] == {"X": "in", "M": "local", "E": "out"}
    assert roles[2] == {"X": "in", "M": "local", "E": "out", "S": "out"}
    assert roles[3] == {"X": "in", "M": "local", "E": "local", "S": "local", "Y": "out"}
    arrays = random_inputs(kernel, {}, 1)
    whole = interpret(kernel, arrays)["Y"]
    found = interpret(script.cut(kernel, 3), arrays)
    assert np.array_equal(found["E"] / found["S"][:, None], whole)  # both round once


def test_the_parts_of_a_kernel_are_its_time() -> None:
    name, steps, copy = script.parts("softmax", parse_module(TEXT).kernels[0], "native", 1)
    assert [target for target, _ in steps] == ["M", "E", "S", "Y"]
    assert sum(seconds for _, seconds in steps) > 0
    assert copy > 0
    lines = script.table([(name, steps, copy)])
    assert lines[-1].startswith("| softmax | ")
    assert len(lines[-1].split("|")) == len(lines[0].split("|"))
