"""All faults in the lowered kernels of all examples: what catches each mutant, as a table.

Examples are cut to sizes that the simulator goes through, and those that are then equal count once.
Of each fault a few mutants of every example are drawn, always the same ones.

    python -m tests.mutation.survey --each 12 --jobs 2
"""

import argparse
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from isamap.diagnostics import NoMappingError
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_kernel
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from tests.mutation.faults import FAULTS, Mutant, mutants
from tests.mutation.judge import caught, changes, equivalence, subject
from tests.mutation.small import small_kernel

EXAMPLES = Path(__file__).parents[2] / "examples"
MACHINES = ("x86_avx512", "gemm16")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a mutant: ``caught`` by something, or shown to be ``equivalent``; ``missed``
    says how its results differ although it passed all checks."""

    example: str
    fault: str
    place: str
    caught: str
    equivalent: str
    missed: str


@cache
def machine(name: str) -> Accelerator:
    return load_hardware(name)


def distinct_examples() -> dict[str, Path]:
    """Return the examples that are different kernels when they are small, by name."""
    found: dict[str, Path] = {}
    seen: set[str] = set()
    for path in sorted(EXAMPLES.rglob("*.ir")):
        text = print_kernel(small_kernel(path)).split("(", 1)[1]
        if text not in seen:
            seen.add(text)
            found[path.relative_to(EXAMPLES).with_suffix("").as_posix()] = path
    return found


def survey(name: str, path: Path, hardware: str, each: int) -> tuple[Outcome, ...]:
    """Return what becomes of ``each`` mutants of every fault; none if the kernel does not map."""
    return judged(name, small_kernel(path), hardware, each)


def judged(name: str, kernel: Kernel, hardware: str, each: int) -> tuple[Outcome, ...]:
    """Return what becomes of ``each`` mutants of every fault in the code of a kernel."""
    try:
        lowered = map_kernel(kernel, machine(hardware), Options(1, 0, None, False, None)).lowered
    except NoMappingError:
        return ()
    of = subject(kernel, machine(hardware), lowered)
    outcomes = []
    for mutant in drawn(list(mutants(lowered, machine(hardware))), f"{name} {hardware}", each):
        by = caught(of, mutant.lowered)
        shown = missed = ""
        if not by and not (missed := changes(of, mutant.lowered)):
            shown = equivalence(of, mutant.lowered)
        where = f"{name} on {hardware}"
        outcomes.append(Outcome(where, mutant.fault, mutant.place, by, shown, missed))
    return tuple(outcomes)


def drawn(found: list[Mutant], seed: str, each: int) -> Iterator[Mutant]:
    """Yield a few mutants of every fault, the same ones for the same seed."""
    choose = random.Random(seed)
    for fault in FAULTS:
        own = [m for m in found if m.fault == fault]
        yield from choose.sample(own, min(each, len(own)))


def table(outcomes: list[Outcome]) -> str:
    """Return the survey as a page."""
    lines = [
        "| fault | mutants | field check | proof | equivalent | missed |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    total: Counter[str] = Counter()
    for fault in FAULTS:
        own = [o for o in outcomes if o.fault == fault]
        counts = Counter(
            "field check" if o.caught == "field check" else "proof" if o.caught
            else "equivalent" if o.equivalent and not o.missed else "missed"
            for o in own
        )  # fmt: skip
        total += counts
        cells = [counts[k] for k in ("field check", "proof", "equivalent", "missed")]
        lines.append(f"| {fault} | {len(own)} | {' | '.join(map(str, cells))} |")
    cells = [total[k] for k in ("field check", "proof", "equivalent", "missed")]
    lines.append(f"| all | {len(outcomes)} | {' | '.join(map(str, cells))} |")
    survivors = Counter((o.fault, o.place, o.equivalent) for o in outcomes if not o.caught)
    lines += [
        "",
        "| survivors: fault | place | mutants | why it is the same |",
        "|---|---|---:|---|",
    ]
    for (fault, place, why), count in sorted(survivors.items()):
        lines.append(f"| {fault} | {place} | {count} | {why or 'not shown'} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--each", type=int, default=12, help="mutants of a fault in an example")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    outcomes: list[Outcome] = []
    with ProcessPoolExecutor(given.jobs) as pool:
        tasks = [
            pool.submit(survey, name, path, hardware, given.each)
            for name, path in distinct_examples().items()
            for hardware in MACHINES
        ]
        for task in tasks:
            outcomes += task.result()
    print(table(outcomes))
    missed = [o for o in outcomes if not o.caught and (o.missed or not o.equivalent)]
    for outcome in missed:
        print("missed:", outcome)
    raise SystemExit(bool(missed))


if __name__ == "__main__":
    main()
