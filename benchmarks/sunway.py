"""Cycles of products on a Sunway core group, with and without transfers beside the computing.

They are simulated: `python benchmarks/sunway.py`.
"""

from fractions import Fraction

from isamap.diagnostics import Source
from isamap.hw.load import load_hardware
from isamap.interp.inputs import random_inputs
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.schedule.reader import parse_schedule
from isamap.sim.run import simulate
from isamap.text.load import parse_module

SIZES = [
    ((512, 512, 512), "i/128, j/128, k/128"),
    ((1024, 384, 640), "i/256, j/128, k/128"),
    ((300, 450, 700), "i/128, j/128, k/128"),
]
PLACES = ["none", "A 2, B 2", "A 2, B 2, C 2"]


def cycles(sizes: tuple[int, int, int], loops: str, places: str) -> tuple[Fraction, Fraction]:
    """Return the cycles of a product, and those that its computing alone takes."""
    m, n, k = sizes
    text = f"""kernel gemm {{ in A : f32[{m}, {k}]  in B : f32[{k}, {n}]  out C : f32[{m}, {n}]
      C[i, j] += A[i, k] * B[k, j] }}"""
    schedule = f"""schedule gemm {{ C {{
      axes i <- i, j <- j, k <- k
      loops {loops}
      buffers {places}
    }} }}"""
    (kernel,) = parse_module(text).kernels
    machine = load_hardware("sw26010")
    options = Options(prove=False, schedule=parse_schedule(Source("gemm", schedule)))
    result = map_kernel(kernel, machine, options)
    arrays = random_inputs(kernel, {}, 0)
    found = simulate(result.lowered, machine, arrays, kernel=result.mapped)
    return found.cycles, found.busy["compute"]


def main() -> None:
    """Print a line for each product."""
    for sizes, loops in SIZES:
        told = [cycles(sizes, loops, places) for places in PLACES]
        name = " x ".join(map(str, sizes))
        columns = [*(f"{float(one) / 1000:,.0f}K" for one, _ in told)]
        columns.append(f"{float(told[0][1]) / 1000:,.0f}K")
        print(f"| {name} | {loops} | {' | '.join(columns)} |")


if __name__ == "__main__":
    main()
