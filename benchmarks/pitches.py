"""How much it gains that rows of a padded copy begin a line further apart.

    python benchmarks/pitches.py [--hw x86_avx2] [--rounds 31]

5x5 depthwise convolutions along rows whose padded copies have a power of two floats: the first
schedule, and the same with rows that follow each other, timed by turns on one core.  A ratio above
1 says how many times as long rows take that follow each other.
"""

import argparse
from dataclasses import replace
from statistics import median

from isamap.emit.c import emit_c
from isamap.interp.inputs import random_inputs
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.lower import lower
from isamap.mapping.fragments.produce import producers_of
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.source import load_hardware
from isamap.run.build import build_shared
from isamap.run.outcome import Crash
from isamap.run.worker import Loaded, Worker
from isamap.schedule.schedule import Schedule
from isamap.text.load import parse_module

SIZES = ((16, 30, 252), (4, 64, 1020), (16, 30, 1020), (2, 30, 2044))
"""Channels, rows, and the length of a row without its padding."""


def depthwise(channels: int, rows: int, length: int) -> Kernel:
    """Return the kernel."""
    text = f"""kernel rows(C = {channels}, H = {rows}, W = {length}) {{
      in X : f32[C, H, W] pad 0  in F : f32[C, 5, 5]  out Y : f32[C, H, W]
      Y[c, h, w] += X[c, h + r - 2, w + s - 2] * F[c, r, s] }}"""
    return parse_module(text).kernels[0]


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hw", default="x86_avx2", help="a description whose code runs here")
    parser.add_argument("--rounds", type=int, default=31, help="samples of each, by turns")
    arguments = parser.parse_args()
    hardware = load_hardware(arguments.hw)
    for size in SIZES:
        kernel = depthwise(*size)
        first = map_kernel(kernel, hardware, Options())
        (own,) = first.schedule.statements
        if not own.pitches:
            print(f"{size}: no padded copy has a pitch")
            continue
        dense = Schedule((replace(own, pitches=()),))
        bound = bind_extents(kernel)
        code = [first.lowered, lower(kernel, hardware, dense, producers_of(hardware))]
        sources = [emit_c(one, hardware, bound) for one in code]
        programs = [Loaded(build_shared(s, hardware), s) for s in sources]
        with Worker() as worker:
            taken = worker.time(programs, random_inputs(kernel, {}, 0), {}, 1, arguments.rounds)
        if isinstance(taken, Crash):
            raise SystemExit(taken.message)
        apart, together = map(median, taken)
        print(f"{size}: {apart * 1e6:.1f} us, {together * 1e6:.1f} us, {together / apart:.3f}")


if __name__ == "__main__":
    main()
