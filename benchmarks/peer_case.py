"""One case of the side-by-side benchmark, alone: its schedules, its C, its time.

    python benchmarks/peer_case.py --data FOLDER gemm_f32 m=64 n=64 k=64 [--c] [--threads 2]

FOLDER holds the benchmark's ``data.py`` and ``shapes.py``.  Environment variables are those of
``peer.py``.  Prints the first schedule in each layout, and the time of a call.
"""

import argparse
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

import peer

ROUNDS, WINDOW = 50, 0.004


def main() -> None:
    """Map one case and tell about it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="the folder of the benchmark")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--c", action="store_true", help="print the C as well")
    parser.add_argument("family")
    parser.add_argument("sizes", nargs="*", help="m=64")
    given = parser.parse_args()
    sys.path.insert(0, given.data)
    import shapes  # the benchmark's
    from peer_cases import problems

    case = {"family": given.family, **{k: int(v) for k, v in (s.split("=") for s in given.sizes)}}
    for problem in problems(case):
        result = peer.map_text(problem.text, given.threads)
        cycles, bound = result.estimate.cycles, result.estimate.bound_by
        print(f"{problem.layout}: {cycles:.4g} cycles, bound by {bound}")
        names = (s.name for s in result.statements)
        for name, own, by in zip(names, result.schedule.statements, result.by, strict=True):
            loops = ", ".join(f"{level.variable}/{level.step}" for level in own.levels)
            where = "" if own.within is None else f" in the registers of statement {own.within}"
            operands = ", ".join(own.operands)
            print(f"  {name}: {' + '.join(by)}, {loops}; {operands}{where}")
        if given.c:
            print(result.c)
    start = perf_counter()
    made = peer.make(case, given.threads)
    assert made is not None, "there is no kernel for this family"
    call, _ = made
    print(f"ready after {perf_counter() - start:.2f} s")
    samples = [_seconds(call) for _ in range(ROUNDS)]
    rate = shapes.flops(case) * 1e-9
    print(
        f"least {min(samples) * 1e6:.4g} us, {rate / min(samples):.4g} G/s; "
        f"median {median(samples) * 1e6:.4g} us, {rate / median(samples):.4g} G/s"
    )


def _seconds(call: Callable[[], int]) -> float:
    count, start = 0, perf_counter()
    while (taken := perf_counter() - start) < WINDOW or not count:
        call()
        count += 1
    return taken / count


if __name__ == "__main__":
    main()
