"""The tuned f32 GEMM beside the machine's FMA peak, on one core.

    python benchmarks/gemm_peak.py                 # 1024^3, --tune 50
    python benchmarks/gemm_peak.py --size 512 --tune 30s --rounds 51

The peak is that of a loop of independent register-only FMAs, compiled here for the widest vectors
of the CPU.  Both are pinned to one core and timed by turns, a window each, so that both see the
same clock and the same neighbours.  Prints medians, best windows, and the ratio of the medians.
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

import isamap
from isamap.cli.options import BudgetType
from isamap.hw.native import cpu_features

EXAMPLE = Path(__file__).parents[1] / "examples" / "matmul.ir"
CHAINS = 14  # more than latency times ports of any x86 core
WINDOW = 0.02


def peak_source(register: str) -> str:
    """Return C for ``void peak(long n)``: n times CHAINS independent FMAs on one register class."""
    lines = [f'"vfmadd231ps %%{register}14, %%{register}15, %%{register}{i}\\n"' for i in range(14)]
    zeroed = [f'"vxorps %%xmm{i}, %%xmm{i}, %%xmm{i}\\n"' for i in range(16)]
    clobbers = ", ".join(f'"xmm{i}"' for i in range(16))
    return (
        "void peak(long n) {\n"
        f"__asm__ volatile({' '.join(zeroed)} ::: {clobbers});\n"
        "for (long i = 0; i < n; i++)\n"
        f"__asm__ volatile({' '.join(lines)} ::: {clobbers});\n"
        "}\n"
    )


def load_peak(folder: Path) -> tuple[Callable[[], float], str]:
    """Return a function that measures one window of the peak in GFLOP/s, and what it runs."""
    features = cpu_features()
    if "fma" not in features:
        sys.exit("this CPU has no FMA")
    register, lanes = ("zmm", 16) if "avx512f" in features else ("ymm", 8)
    text, library = folder / "peak.c", folder / "peak.so"
    text.write_text(peak_source(register))
    command = ["gcc", "-O2", "-march=native", "-shared", "-fPIC", str(text), "-o", str(library)]
    subprocess.run(command, check=True)
    function = ctypes.CDLL(str(library)).peak
    function.argtypes = [ctypes.c_long]
    operations = 2 * lanes * CHAINS

    def measure(loops: int) -> float:
        start = perf_counter()
        function(loops)
        return loops * operations / (perf_counter() - start) / 1e9

    loops = int(measure(100_000) * 1e9 * WINDOW / operations)
    return lambda: measure(loops), f"{CHAINS} chains of vfmadd231ps {register}"


def load_gemm(size: int, hardware: str, tune: str, seed: int) -> tuple[Callable[[], float], str]:
    """Return a function that measures one call of the tuned GEMM in GFLOP/s, and what it runs."""
    kernel = isamap.load_kernel(EXAMPLE, set={"M": size, "N": size, "K": size})
    machine = isamap.load_hardware(hardware)
    budget = None if tune == "0" else BudgetType().convert(tune, None, None)
    options = isamap.Options(seed=seed, tune=budget)
    last = ""

    def tell(text: str) -> None:
        nonlocal last
        if text != last:
            print(f"  {text}", file=sys.stderr)
        last = text

    result = isamap.map(kernel, machine, options, tell)
    compiled = result.compile()
    generator = np.random.default_rng(seed)
    a = generator.uniform(-1, 1, (size, size)).astype(np.float32)
    b = generator.uniform(-1, 1, (size, size)).astype(np.float32)
    c = np.empty((size, size), np.float32)
    compiled(A=a, B=b, out=c)
    assert np.allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=1e-3), "wrong result"
    calls = 1

    def measure() -> float:
        start = perf_counter()
        for _ in range(calls):
            compiled(A=a, B=b, out=c)
        return calls * 2 * size**3 / (perf_counter() - start) / 1e9

    calls = max(1, round(WINDOW * measure() * 1e9 / (2 * size**3)))
    levels = result.schedule.statements[0].levels
    loops = ", ".join(f"{level.variable}/{level.step}" for level in levels)
    return measure, f"{result.mappings[0].matching.needle.name}, loops {loops}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--hw", default="native")
    parser.add_argument("--tune", default="50", help="trials, or 30s; 0 takes the first schedule")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    gemm, schedule = load_gemm(arguments.size, arguments.hw, arguments.tune, arguments.seed)
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    with tempfile.TemporaryDirectory() as folder:
        peak, loop = load_peak(Path(folder))
        gemm(), peak()
        pairs = [(peak(), gemm()) for _ in range(arguments.rounds)]
    peaks, gemms = zip(*pairs, strict=True)
    facts = {
        "size": arguments.size,
        "core": core,
        "peak": loop,
        "schedule": schedule,
        "peak_gflops": {"median": median(peaks), "best": max(peaks)},
        "gemm_gflops": {"median": median(gemms), "best": max(gemms)},
        "ratio": median(gemms) / median(peaks),
        "best_ratio": max(gemms) / max(peaks),
    }
    if arguments.json:
        print(json.dumps(facts, indent=2))
        return
    print(f"core {core}, {arguments.rounds} windows each, by turns")
    print(f"peak  median {median(peaks):7.1f}  best {max(peaks):7.1f} GFLOP/s  ({loop})")
    print(f"gemm  median {median(gemms):7.1f}  best {max(gemms):7.1f} GFLOP/s  ({schedule})")
    print(f"ratio median {facts['ratio']:7.2f}  best {facts['best_ratio']:7.2f}")


if __name__ == "__main__":
    main()
