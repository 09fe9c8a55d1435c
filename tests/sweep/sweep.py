"""Kernels of all sizes, compiled, executed and compared with the interpreter.

    .venv/bin/python -m tests.sweep.sweep --out sweep.jsonl              # everything, some hours
    .venv/bin/python -m tests.sweep.sweep --out sweep.jsonl --random 2000 --no-alone
    .venv/bin/python -m tests.sweep.sweep --out sweep.jsonl --part 0/2   # half of it; 1/2 the rest

Each case is a kernel at one combination of sizes on the native description.  Its first schedule is
compiled and run, and so are random points of the space around random mappings, with loops over
results shared out by two threads whether that pays or not; all with one thread and with two.  A
case that FILE has is not run again, so that the sweep goes on where it was stopped.  What fails is
made smaller, and FILE gets the kernel and the schedule's text, to be had again with ``isamap map
--schedule``.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from time import monotonic

from isamap.diagnostics import IsamapError, ScheduleError
from isamap.emit.c import emit_c
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.interp.inputs import random_inputs
from isamap.ir.ahead import statement_kernel
from isamap.ir.statements import bind_extents
from isamap.lower.capacity import excess
from isamap.lower.lower import lower
from isamap.mapping.fragments.produce import Producers
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.result import Result
from isamap.pipeline.schedule_text import schedule_text
from isamap.pipeline.verify import prepare_check
from isamap.run.build import build_shared
from isamap.run.outcome import Crash
from isamap.run.worker import Limits, Loaded, Worker
from isamap.schedule.first import first_schedule
from isamap.schedule.schedule import Schedule, StatementSchedule
from isamap.schedule.space import space
from isamap.text.load import parse_module
from tests.sweep.families import Family, alone, combinations

POINTS = 1
"""Random points of the space that are executed beside the first schedule."""

_ATTEMPTS = 12
_SECONDS = 60.0
_MAPPINGS = 24


@dataclass(frozen=True)
class Fault:
    """What went wrong, with which schedule (its text; '' where there was none) and threads."""

    message: str
    schedule: str = ""
    threads: int = 0


@dataclass(frozen=True)
class Outcome:
    """How many executions a case had, and the first fault."""

    executed: int
    fault: Fault | None


class Sweep:
    """Executes cases, all in one worker process as long as none crashes it."""

    def __init__(self, machine: Accelerator, folder: Path, points: int = POINTS) -> None:
        self._machine = with_headers(machine, folder)
        self._folder = folder
        self._points = points
        self._producers = Producers(self._machine)
        self._worker: Worker | None = None

    def close(self) -> None:
        """End the worker."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def case(self, family: Family, sizes: dict[str, int], seed: int) -> Outcome:
        """Execute a kernel at some sizes."""
        (kernel,) = parse_module(family.text(sizes), "kernel").kernels
        generator = random.Random(f"{seed}-{name_of(family, sizes)}")
        threads = generator.choice((1, 2))
        # Looking for rewritings takes half of the time: two of five cases do.
        rewrite = None if generator.random() < 0.4 else ()
        try:
            result = map_kernel(kernel, self._machine, Options(threads=threads, rewrite=rewrite))
        except IsamapError as error:
            return Outcome(0, Fault(str(error)))
        arrays = random_inputs(kernel, {}, generator.randrange(1 << 32))
        check = prepare_check(result, arrays, {}, seed)
        executed = 0
        variants = chain([result], self._random_points(result, generator))
        for number, variant in enumerate(variants):
            assert variant.source is not None
            try:
                built = build_shared(variant.source, self._machine, self._folder / "built")
            except IsamapError as error:
                return Outcome(executed, Fault(str(error), schedule_text(variant)))
            loaded = Loaded(built, variant.source)
            for count in (1, 2) if number or threads == 2 else (1,):
                outputs = self._run(loaded, arrays, count)
                executed += 1
                if isinstance(outputs, Crash):
                    text = outputs.diagnostic.message
                    return Outcome(executed, Fault(text, schedule_text(variant), count))
                found = check(outputs)
                if not found.ok:
                    return Outcome(executed, Fault(found.text, schedule_text(variant), count))
            built.unlink()
        return Outcome(executed, None)

    def smaller(
        self, family: Family, sizes: dict[str, int], seed: int
    ) -> tuple[dict[str, int], Outcome]:
        """Return smaller sizes that fail as well, if there are any among the neighbours."""
        best, outcome = dict(sizes), self.case(family, sizes, seed)
        again = True
        while again:
            again = False
            for name in family.usual:
                for size in sorted({1, best[name] // 2, best[name] - 1} - {0, best[name]}):
                    trial = {**best, name: size}
                    if (found := self.case(family, trial, seed)).fault is not None:
                        best, outcome, again = trial, found, True
                        break
        return best, outcome

    def _run(self, loaded: Loaded, arrays: dict, threads: int) -> dict | Crash:  # type: ignore[type-arg]
        if self._worker is None:
            self._worker = Worker(Limits(seconds=_SECONDS)).__enter__()
        found = self._worker.run(loaded, arrays, {}, threads)
        if isinstance(found, Crash):
            self.close()
        return found

    def _random_points(self, result: Result, generator: random.Random) -> Iterator[Result]:
        """Yield some random schedules that can be lowered, as results to be run."""
        wanted = self._points
        for _ in range(_ATTEMPTS * self._points):
            if not wanted:
                return
            try:
                schedule = self._drawn(result, generator)
                lowered = lower(result.mapped, self._machine, schedule, self._producers)
            except ScheduleError:
                continue
            if excess(lowered, self._machine) is not None:
                continue
            source = emit_c(lowered, self._machine, bind_extents(result.mapped))
            wanted -= 1
            yield replace(result, schedule=schedule, lowered=lowered, source=source)

    def _drawn(self, result: Result, generator: random.Random) -> Schedule:
        """Return a random point of the space around random mappings; ScheduleError if it is none.

        Half of them share all loops over results out among threads.
        """
        bound = bind_extents(result.mapped)
        starts: list[tuple[StatementSchedule, ...]] = []
        for number, statement in enumerate(result.statements):
            mappings = statement.mappings[:_MAPPINGS]
            mapping = generator.choice([statement.mappings[statement.chosen], *mappings])
            alone_ = statement_kernel(bound, number)
            starts.append((first_schedule(mapping, self._machine, self._producers, alone_),))
        around = space(self._machine, bound, starts, self._producers, 2, result.schedule)
        point = {c.name: generator.randrange(len(c.options)) for c in around.choices}
        schedule = around.build(point)
        if generator.random() < 0.5:
            return schedule
        return Schedule(tuple(map(_shared_out, schedule.statements)))


def _shared_out(own: StatementSchedule) -> StatementSchedule:
    target = own.mapping.matching.statement.target
    results = frozenset().union(*(index.names for index in target.indices))
    levels = tuple(replace(level, parallel=level.variable in results) for level in own.levels)
    return replace(own, levels=levels)


def with_headers(machine: Accelerator, folder: Path) -> Accelerator:
    """Return a machine whose compiler has read the headers before: that takes most of its time."""
    tools = machine.toolchain
    assert tools is not None, "the native description has a compiler"
    header = folder / "headers.h"
    names = ("math.h", "stddef.h", "stdint.h", "string.h", *tools.headers)
    lines = ("#define _GNU_SOURCE 1", *(f"#include <{name}>" for name in names))
    header.write_text("\n".join((*lines, "")))
    flags = [
        flag for flag in (*tools.flags, *tools.shared) if not flag.startswith(("-l", "-shared"))
    ]
    command = [*tools.compiler, *flags, "-x", "c-header", str(header), "-o", f"{header}.gch"]
    subprocess.run(command, check=True, timeout=120)
    return replace(machine, toolchain=replace(tools, flags=(*tools.flags, "-include", str(header))))


def name_of(family: Family, sizes: dict[str, int]) -> str:
    """Return a case's name: ``gemm_f32 M=1 N=35 K=18``."""
    return " ".join([family.name, *(f"{name}={size}" for name, size in sizes.items())])


def main(arguments: list[str] | None = None) -> int:
    """Run what FILE lacks; return 1 if something failed, now or before."""
    parser = argparse.ArgumentParser(description="Kernels of all sizes, executed and compared.")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    parser.add_argument("--random", type=int, default=2000, metavar="N")
    parser.add_argument("--no-alone", action="store_true", help="random combinations only")
    parser.add_argument("--only", default="", help="families whose name begins like that")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after that")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", default="0/1", metavar="I/N")
    given = parser.parse_args(arguments)
    part, parts = map(int, given.part.split("/"))
    start = monotonic()
    known = {}
    if given.out.exists():
        for line in given.out.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            known[entry["case"]] = entry
    cases = chain(combinations(given.random, given.seed), () if given.no_alone else alone())
    executed, failed = 0, [name for name, entry in known.items() if entry["fault"]]
    with tempfile.TemporaryDirectory() as folder, given.out.open("a", encoding="utf-8") as out:
        sweep = Sweep(load_hardware("native"), Path(folder))
        for number, (family, sizes) in enumerate(cases):
            name = name_of(family, sizes)
            if number % parts != part or name in known or not family.name.startswith(given.only):
                continue
            if monotonic() - start > given.seconds:
                break
            outcome = sweep.case(family, sizes, given.seed)
            entry = {"case": name, "executed": outcome.executed, "fault": None}
            if outcome.fault is not None:
                failed.append(name)
                least, found = sweep.smaller(family, sizes, given.seed)
                fault = found.fault or outcome.fault
                entry["fault"] = {
                    "message": fault.message,
                    "threads": fault.threads,
                    "kernel": family.text(least),
                    "schedule": fault.schedule,
                }
                print(f"{name} fails: {fault.message}; so does {name_of(family, least)}")
            known[name] = entry
            executed += outcome.executed
            out.write(json.dumps(entry) + "\n")
            out.flush()
            if len(known) % 50 == 0:
                print(f"{len(known)} cases, {len(failed)} failed", file=sys.stderr)
        sweep.close()
    total = sum(entry["executed"] for entry in known.values())
    print(f"{len(known)} cases, {total} executions ({executed} now), {len(failed)} cases failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
