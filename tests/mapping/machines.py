"""Machines written as text, and kernels mapped on to them and simulated."""

from pathlib import Path
from textwrap import indent

import numpy as np

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.interp.run import interpret
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.result import Result
from isamap.sim.lowered import run_lowered
from isamap.text.load import parse_module

_HEAD = """\
format: 1
name: toy
title: a machine for tests
source: made up
clock: 1 GHz
issue: 6
units: {one: 1}
storages:
  v: {kind: registers, count: 32, bits: 1024}
  w: {kind: registers, count: 32, bits: 1024}
  imm: {kind: immediate}
  memory: {kind: memory}
instructions:
"""

MOVES = """\
instruction load_{t}_{n} {{ in m : {t}[{n}] @ memory  out r : {t}[{n}] @ {s}  r[i] = m[i] }}
instruction store_{t}_{n} {{ in r : {t}[{n}] @ {s}  out m : {t}[{n}] @ memory  m[i] = r[i] }}
instruction set_{t}_{n} {{ in x : {t}[] @ imm  out r : {t}[{n}] @ {s}  r[i] = x[] }}
"""


def moves(dtype: str, count: int, storage: str = "v") -> str:
    """Return a load, a store and a constant of one type."""
    return MOVES.format(t=dtype, n=count, s=storage)


def machine(folder: Path, *instructions: str) -> Accelerator:
    """Return a machine with these instructions, each of one cycle."""
    text = _HEAD
    for line in "\n".join(instructions).split("instruction ")[1:]:
        text += f"  - semantics: |\n{indent('instruction ' + line.strip(), '      ')}\n"
        text += "    throughput: 1\n    latency: 1\n    units: one\n"
    path = folder / "toy.yaml"
    path.write_text(text)
    return load_hardware(str(path))


def kernel(text: str) -> Kernel:
    """Return the one kernel of a text."""
    (found,) = parse_module(text).kernels
    return found


def names(result: Result) -> list[str]:
    """Return the chosen instruction of each statement."""
    return [s.mappings[s.chosen].matching.needle.name for s in result.statements]


def simulate(
    source: Kernel,
    hardware: Accelerator,
    seed: int = 0,
    options: Options = Options(),  # noqa: B008  (frozen)
) -> Result:
    """Map a kernel and compare the simulated result with the interpreter, extremes included."""
    result = map_kernel(source, hardware, options)
    rng = np.random.default_rng(seed)
    for extremes in (True, False):
        arrays = {}
        for buffer in bind_extents(source).buffers:
            if buffer.role in ("in", "const", "inout"):
                shape = [extent.constant or 0 for extent in buffer.shape]
                dtype = buffer.dtype
                if dtype.is_float:
                    arrays[buffer.name] = rng.integers(-8, 9, shape).astype(dtype.numpy)
                    continue
                ends = buffer.values
                low = int(ends[0].text) if ends else dtype.lowest
                high = int(ends[1].text) if ends else dtype.highest
                drawn = rng.integers(low, high, shape, endpoint=True)
                if extremes:
                    drawn = np.where(rng.integers(0, 2, shape) == 1, low, high)
                arrays[buffer.name] = drawn.astype(dtype.numpy)
        expected = interpret(source, arrays, {})
        actual = run_lowered(result.lowered, hardware, arrays, {})
        for buffer in source.buffers:
            if buffer.role in ("out", "inout"):
                want = np.asarray(expected[buffer.name]).ravel()
                np.testing.assert_array_equal(np.asarray(actual[buffer.name]).ravel(), want)
    return result
