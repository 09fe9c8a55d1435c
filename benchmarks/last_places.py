"""How far functions of f32 are off, in units in the last place, over all floats.

    python benchmarks/last_places.py native                     # every 257th float
    python benchmarks/last_places.py vector_c tanh --step 1     # all of them

Maps ``Y[i] = f(X[i])`` as any kernel and computes it, on machines whose code this CPU runs itself;
the library's function of f64 is what should come out.  A unit is the distance of the floats beside
the result; infinity counts as 2^128.  Not-a-number and signs of zeros must be right.
"""

import argparse
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import isamap
from isamap.hw.native import elsewhere
from isamap.text.load import parse_module

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]

CHUNK = 1 << 20
KERNEL = "kernel f() {{ in X : f32[{size}]  out Y : f32[{size}]  Y[i] = {name}(X[i]) }}"


def _erf(values: Doubles) -> Doubles:
    return np.fromiter(map(math.erf, values), np.float64, len(values))


FUNCTIONS: dict[str, Callable[[Doubles], Any]] = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "erf": _erf,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", help="a description, or 'native'")
    parser.add_argument("functions", nargs="*", help=f"of {', '.join(FUNCTIONS)}; all of them")
    parser.add_argument("--step", type=int, default=257, help="from one float's bits to the next's")
    parser.add_argument("--trust", action="store_true", help="execute C of your own")
    given = parser.parse_args()
    if unknown := set(given.functions) - set(FUNCTIONS):
        parser.error(f"no function of these: {', '.join(sorted(unknown))}")
    machine = isamap.load_hardware(given.name, trust=given.trust)
    if why := elsewhere(machine):
        parser.error(f"{machine.name}: {why}")
    print("| function | instructions | floats | worst | at | more than 1 off |")
    print("|---|---|---:|---:|---|---:|")
    for name in given.functions or FUNCTIONS:
        module = parse_module(KERNEL.format(name=name, size=CHUNK), "f.ir")
        result = isamap.map(module.kernels[0], machine)
        used = sorted({m.matching.needle.name for m in result.mappings})
        compiled = result.compile()
        bits = np.arange(0, 1 << 32, given.step, dtype=np.uint64).astype(np.uint32)
        worst, at, more = 0.0, np.float32(0), 0
        for start in range(0, len(bits), CHUNK):
            part = bits[start : start + CHUNK].view(np.float32)
            inputs = np.resize(part, CHUNK)
            off = distances(compiled(X=inputs)["Y"][: len(part)], part, FUNCTIONS[name])
            more += int((off > 1).sum())
            if off.max() > worst:
                worst, at = float(off.max()), part[off.argmax()]
        print(
            f"| {name} | {', '.join(used)} | {len(bits):,} | {worst:.3f} | {float(at).hex()} "
            f"| {more:,} |",
            flush=True,
        )


def distances(got: Floats, inputs: Floats, function: Callable[[Doubles], Any]) -> Doubles:
    """Return the units in the last place by which each result is off, inf where it is wrong."""
    with np.errstate(all="ignore"):
        want = np.asarray(function(inputs.astype(np.float64)), np.float64)
        exponents = np.where(want == 0, -125, np.frexp(want)[1])
        units = np.ldexp(1.0, np.maximum(exponents, -125) - 24)
        units = np.where(np.isfinite(want), units, 2.0**104)
        ends = [np.clip(x.astype(np.float64), -(2.0**128), 2.0**128) for x in (want, got)]
        off = np.abs(ends[0] - ends[1]) / np.minimum(units, 2.0**104)
    none = np.isnan(want)
    wrong = (none != np.isnan(got)) | ((want == 0) & (np.signbit(want) != np.signbit(got)))
    return np.where(wrong, np.inf, np.where(none, 0.0, off))


if __name__ == "__main__":
    main()
