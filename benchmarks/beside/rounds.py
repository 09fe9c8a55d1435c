"""One case, all peers: made ready, checked, and timed in turn."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from beside.cases import Case, operations, title, traffic
from beside.least import Least
from beside.peaks import Peaks
from beside.process import Gone, Process
from beside.record import Record, Timing
from beside.reference import Expected, expected

READY_LIMIT = 300.0
"""Seconds that a peer may take to make a case ready."""

ROUND_LIMIT = 60.0


def measure(
    case: Case,
    processes: Sequence[Process],
    peaks: Peaks,
    rounds: int,
    window: float,
    folder: Path,
) -> Record:
    """Time every peer once a round, each round begun by the next one, and the machine itself."""
    absent: dict[str, str] = {}
    ways: dict[str, tuple[str, float, str | None]] = {}
    live: list[Process] = []
    reference: Expected | None = None
    file = folder / "answer.npy"
    for process in processes:
        name = process.peer.name
        try:
            said = process.ask(READY_LIMIT, case=dict(case), window=window, answer=str(file))
        except Gone as error:
            absent[name] = str(error)
            continue
        if said["way"] is None:
            absent[name] = "; ".join(said["faults"])
            continue
        reference = reference or expected(case)
        ways[name] = said["way"], said["setup"], reference.fault(np.load(file))
        live.append(process)
    seconds: dict[str, list[float]] = {process.peer.name: [] for process in live}
    least: list[float] = []
    bound = Least(case, peaks)
    for number in range(rounds):
        first = number % max(1, len(live))
        for process in (*live[first:], *live[:first]):
            try:
                taken = process.ask(ROUND_LIMIT, time=True)["seconds"]
            except Gone as error:
                absent[process.peer.name] = str(error)
                continue
            seconds[process.peer.name].append(taken)
        shortest = bound.seconds()
        least += [] if shortest is None else [shortest]
    bound.close()
    timings = tuple(
        Timing(name, way, tuple(seconds[name]), wrong, setup)
        for name, (way, setup, wrong) in ways.items()
        if name not in absent
    )
    count = operations(case)
    work, unit = (count, "G") if count is not None else (traffic(case), "GB")
    family, name = str(case["family"]), title(case)
    return Record(family, name, work * 1e-9, unit, tuple(least), timings, absent, case)


def told(record: Record) -> str:
    """Return a record in a line."""
    parts = [
        f"{t.peer} {record.rate(t):.4g}" + (" WRONG" if t.wrong else "")
        for t in sorted(record.timings, key=lambda t: t.median)
    ]
    ratio = "" if record.ratio is None else f"  x{record.ratio:.2f}"
    return f"{record.title}{ratio}  " + ", ".join(parts)


Restart = Callable[[Process], Process]


def revived(processes: Sequence[Process], start: Restart) -> list[Process]:
    """Return the processes, those that ended started again."""
    return [process if process.alive else start(process) for process in processes]
