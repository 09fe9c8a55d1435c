"""Calls of two threads while another program has one of their two processors half of the time.

    python benchmarks/neighbours.py

The other program spins on the second processor.  Two threads that lost nothing but the time that it
takes would need 4/3 of what they need alone; two halves that each wait for the other one, twice as
long, as much as one thread.  Means of all calls in some seconds: those that are interrupted count.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import isamap
from isamap.interp.inputs import random_inputs
from isamap.text.load import parse_module

TEXT = """kernel gemm(M = {m}, N = {n}, K = {k}) {{
  in A : f32[M, K]  in B : f32[K, N]  out Y : f32[M, N]
  Y[m, n] += A[m, k] * B[k, n] }}"""
SIZES = ((128, 128, 128), (512, 512, 512), (1760, 64, 1760))
SPIN = "while True: pass"


def calls(size: tuple[int, int, int], hardware: str, threads: int) -> Callable[[], object]:
    """Return a call of the product of matrices of m x k and k x n elements."""
    kernel = parse_module(TEXT.format(**dict(zip("mnk", size, strict=True)))).kernels[0]
    machine = isamap.load_hardware(hardware)
    options = isamap.Options(prove=False, threads=threads)
    code = isamap.map(kernel, machine, options).compile()
    return code.bind(**random_inputs(kernel, {}, 0), threads=threads)


def mean(call: Callable[[], object], seconds: float) -> float:
    """Return the seconds that a call takes on average."""
    count, start = 0, time.perf_counter()
    while time.perf_counter() < start + seconds:
        call()
        count += 1
    return (time.perf_counter() - start) / count


@contextmanager
def neighbour(processor: int) -> Iterator[None]:
    """Have another program spin on a processor meanwhile."""
    with subprocess.Popen([sys.executable, "-c", SPIN]) as other:
        os.sched_setaffinity(other.pid, {processor})
        time.sleep(0.2)
        try:
            yield
        finally:
            other.kill()


def row(size: tuple[int, int, int], hardware: str, processor: int, seconds: float) -> str:
    """Return a line of the table."""
    two, one = calls(size, hardware, 2), calls(size, hardware, 1)
    alone, disturbed, single = [], [], []
    for _ in range(3):
        alone.append(mean(two, seconds))
        with neighbour(processor):
            disturbed.append(mean(two, seconds))
        single.append(mean(one, seconds))
    times = [min(alone), sorted(disturbed)[1], min(single)]
    cells = [f"{t * 1e6:.4g} us" for t in times] + [f"{t / times[0]:.2f}" for t in times[1:]]
    return f"| {'x'.join(map(str, size))} | {' | '.join(cells)} |"


def main() -> int:
    """Time and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hw", default="native", help="a description that runs here")
    parser.add_argument("--seconds", type=float, default=1.0, help="of calls of each time")
    given = parser.parse_args()
    allowed = sorted(os.sched_getaffinity(0))[:2]
    if len(allowed) < 2:
        print("none: this process has one processor", file=sys.stderr)
        return 1
    os.sched_setaffinity(0, set(allowed))
    print("| product | two threads | beside another program | one thread | ratio | one / two |")
    print("|---|---|---|---|---|---|")
    for size in SIZES:
        print(row(size, given.hw, allowed[1], given.seconds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
