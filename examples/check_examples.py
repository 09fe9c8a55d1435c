"""Maps, runs and checks every example, and prints a table with the seconds each took.

Every example is mapped on to the best x86 description that this CPU runs; the three smallest sums
of products of each folder, of types that it multiplies, also on to the simulated accelerator
gemm16.  Each is one cold process, ``isamap map EXAMPLE --hw HW --json``, as a user would start it.

    python examples/check_examples.py                       # all of them
    python examples/check_examples.py 'resnet50/*' --jobs 2
    python examples/check_examples.py --most 120            # what the interpreter computes quickly
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from math import inf
from pathlib import Path

from isamap.hw.load import load_hardware
from isamap.hw.native import runnable
from isamap.ir.dtype import DType
from isamap.ir.nodes import Kernel, Op
from isamap.ir.statements import accesses
from isamap.pipeline.sizes import iterations
from isamap.text.load import load_module

HERE = Path(__file__).parent
PREFERRED = ("x86_avx512", "x86_avx2", "portable_c")
SIMULATED = "gemm16"
SIMULATED_PER_FOLDER = 3
SECONDS = 3.0  # process start to printed result, for a layer of at most LAYER_MACS
LAYER_MACS = 130_000_000
TIMEOUT = 300


@dataclass(frozen=True, slots=True)
class Example:
    """A kernel's file, its multiply-adds and whether it is nothing but sums of products."""

    path: Path
    macs: int
    products: bool

    @property
    def name(self) -> str:
        return self.path.relative_to(HERE).with_suffix("").as_posix()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What ``isamap map`` said about an example on a machine."""

    example: Example
    hardware: str
    seconds: float
    ok: bool
    facts: str

    @property
    def row(self) -> str:
        verdict = "ok" if self.ok else "FAILED"
        work = self.example.macs / 1e6
        return (
            f"{verdict:6} {self.seconds:6.1f} s  {work:9.2f} M  {self.hardware:11} "
            f"{self.example.name:38} {self.facts}"
        )


def host() -> str:
    """Return the first of the preferred machines that this CPU runs."""
    return next(name for name in PREFERRED if runnable(load_hardware(name)) is None)


@cache
def multiplied() -> frozenset[DType]:
    """Return the types that the simulated machine multiplies."""
    entries = load_hardware(SIMULATED).entries
    bodies = (s.value for entry in entries for s in entry.instruction.statements)
    products = (value for value in bodies if isinstance(value, Op) and value.op == "*")
    return frozenset(access.dtype for value in products for access in accesses(value))


def is_sum_of_products(kernel: Kernel) -> bool:
    """Return whether a kernel is nothing but sums of products of types that are multiplied."""
    return all(
        s.reduction == "+="
        and isinstance(s.value, Op)
        and s.value.op == "*"
        and {access.dtype for access in accesses(s.value)} <= multiplied()
        for s in kernel.statements
    )


def load(path: Path) -> Example:
    (kernel,) = load_module(path, {}).kernels
    symbols = dict.fromkeys(kernel.symbols, 100)
    return Example(path, iterations(kernel, symbols), is_sum_of_products(kernel))


def all_examples() -> list[Example]:
    return [load(path) for path in sorted(HERE.rglob("*.ir"))]


def smallest(examples: list[Example]) -> Iterator[Example]:
    """Yield the smallest sums of products of each folder: those that are simulated as well."""
    for folder in sorted({e.path.parent for e in examples}):
        products = [e for e in examples if e.path.parent == folder and e.products]
        yield from sorted(products, key=lambda e: e.macs)[:SIMULATED_PER_FOLDER]


def check(example: Example, hardware: str) -> Outcome:
    """Map, run and check one example in a process of its own."""
    command = [sys.executable, "-m", "isamap", "map", str(example.path), "--hw", hardware, "--json"]
    start = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return Outcome(example, hardware, TIMEOUT, False, f"not done after {TIMEOUT} s")
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        text = f"exit {done.returncode}: {' '.join(last)}"
        return Outcome(example, hardware, seconds, False, text)
    report = json.loads(done.stdout)
    chosen = [s["mappings"][s["chosen"]]["instruction"] for s in report["statements"]]
    ok = report["checked"] is True
    text = f"{', '.join(chosen)}; {report['checked_outputs']} outputs checked"
    return Outcome(example, hardware, seconds, ok, text if ok else "not checked")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("patterns", nargs="*", default=["*"], help="names such as 'resnet50/*'")
    parser.add_argument("--jobs", type=int, default=1, help="examples at a time (times suffer)")
    text = "only examples of so many million multiply-adds at most"
    parser.add_argument("--most", type=float, default=inf, metavar="M", help=text)
    arguments = parser.parse_args()
    examples = [
        e
        for e in all_examples()
        if any(fnmatch(e.name, p) for p in arguments.patterns) and e.macs <= 1e6 * arguments.most
    ]
    native = host()
    work = [(e, native) for e in examples] + [(e, SIMULATED) for e in smallest(examples)]
    outcomes = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for outcome in pool.map(lambda item: check(*item), work):
            print(outcome.row, flush=True)
            outcomes.append(outcome)
    failed = [o for o in outcomes if not o.ok]
    layers = [o for o in outcomes if o.hardware == native and o.example.macs <= LAYER_MACS]
    slow = sorted((o for o in layers if o.seconds > SECONDS), key=lambda o: -o.seconds)
    print(f"\n{len(outcomes)} checks, {len(failed)} failed, {len(slow)} layers over {SECONDS} s")
    for outcome in slow:
        print(f"  {outcome.seconds:.1f} s  {outcome.example.name}")
    return 1 if failed or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
