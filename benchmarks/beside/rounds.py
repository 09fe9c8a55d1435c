"""One case, all peers: made ready, checked, and timed in turn."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from beside.cases import Case, element_kind, operations, title, traffic
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
    """Time every peer once a round, each round begun by the next one."""
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
    for number in range(rounds):
        first = number % max(1, len(live))
        for process in (*live[first:], *live[:first]):
            try:
                taken = process.ask(ROUND_LIMIT, time=True)["seconds"]
            except Gone as error:
                absent[process.peer.name] = str(error)
                continue
            seconds[process.peer.name].append(taken)
    timings = tuple(
        Timing(name, way, tuple(seconds[name]), wrong, setup)
        for name, (way, setup, wrong) in ways.items()
        if name not in absent
    )
    work, unit, peak = limits(case, peaks)
    return Record(str(case["family"]), title(case), work, unit, peak, timings, absent)


def renewed(case: Case, record: Record, peaks: Peaks) -> Record:
    """Return a record with the peak as it is known now: it may have been measured again."""
    count = operations(case)
    return record if count is None else replace(record, peak=peaks.best(element_kind(case)))


def limits(case: Case, peaks: Peaks) -> tuple[float, str, float | None]:
    """Return the work of a case in 1e9, its unit, and how much of it a second can have."""
    count = operations(case)
    if count is not None:
        return count * 1e-9, "G", peaks.best(element_kind(case))
    size = traffic(case)
    return size * 1e-9, "GB", peaks.copy(size)


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
