"""What was measured, one JSON line each, appended and never rewritten.

Several processes may write to one file.  A line that does not parse, such as the last one of a run
that was killed, and a line of another format are skipped.  A line holds numbers and words, which
are only ever compared: a file from anyone may be read.
"""

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any

from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_kernel
from isamap.schedule.space import Choice, Space
from isamap_search.family import family
from isamap_search.machine import Machine, this_machine
from isamap_search.storage import append, locked

FORMAT = 2
"""Of the lines that are written and read."""

# The newest of a family are learned from; older ones cost time and say little more.
_MOST = 4000
_LONGEST_LINE = 1 << 16


@dataclass(frozen=True, slots=True)
class Key:
    """What a measurement depends on besides the schedule.

    ``family`` is the kernel's structure, ``kernel`` all of its text, ``hardware`` the description's
    content (digests); ``sizes`` has every extent's value.
    """

    family: str
    kernel: str
    hardware: str
    machine: Machine
    threads: int
    sizes: tuple[tuple[str, int], ...]

    @staticmethod
    def of(
        kernel: Kernel, hardware: Accelerator, threads: int, symbols: Mapping[str, int]
    ) -> "Key":
        """Return the key of measurements on this machine."""
        known = {e.name: e.value for e in kernel.extents if e.value is not None}
        digest = sha256(print_kernel(kernel).encode()).hexdigest()[:16]
        sizes = tuple(sorted({**dict(symbols), **known}.items()))
        machine = this_machine(hardware)
        return Key(family(kernel), digest, hardware.digest, machine, threads, sizes)

    def is_alike(self, other: "Key") -> bool:
        """Return whether only sizes and names differ."""
        mine = (self.family, self.hardware, self.machine, self.threads)
        return mine == (other.family, other.hardware, other.machine, other.threads)


@dataclass(frozen=True, slots=True)
class Record:
    """A measured schedule.

    ``choices`` is the text of the option of each choice, ``seconds`` those of a run, ``ratio`` the
    same over the first schedule's in the same race of ``rounds`` rounds.  ``cycles`` are the
    model's, ``features`` those of :mod:`isamap_search.features`.
    """

    choices: tuple[tuple[str, str], ...]
    seconds: float
    ratio: float = 1.0
    rounds: int = 0
    cycles: float = 0.0
    features: Mapping[str, float] = field(default_factory=dict)


class Records:
    """A file of measurements; OSError when it cannot be read or written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, key: Key) -> list[Record]:
        """Return what was measured under a key, the fastest first."""
        found = [record for _, record in self._lines(key.kernel, lambda other: other == key)]
        return sorted(found, key=lambda record: record.seconds)

    def alike(self, key: Key) -> list[tuple[Key, Record]]:
        """Return the newest measurements of the same family, on the same machine; any size."""
        return list(self._lines(key.family, key.is_alike))

    def append(self, key: Key, record: Record) -> None:
        """Add a measurement as a line of its own, behind a damaged last line too."""
        entry = {
            "format": FORMAT,
            "family": key.family,
            "kernel": key.kernel,
            "hardware": key.hardware,
            "machine": {
                "cpu": key.machine.cpu,
                "cores": key.machine.cores,
                "compiler": key.machine.compiler,
            },
            "threads": key.threads,
            "sizes": dict(key.sizes),
            "choices": dict(record.choices),
            "seconds": record.seconds,
            "ratio": record.ratio,
            "rounds": record.rounds,
            "cycles": record.cycles,
            "features": dict(record.features),
        }
        text = json.dumps(entry) + "\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.path) as descriptor, self.path.open("rb") as file:
            if file.seek(0, 2) > 0:
                file.seek(-1, 2)
                if file.read(1) != b"\n":
                    text = "\n" + text
            append(descriptor, text.encode())

    def _lines(self, word: str, wanted: Callable[[Key], bool]) -> Iterator[tuple[Key, Record]]:
        """Return the newest records whose lines hold ``word`` and whose keys are wanted."""
        found: deque[tuple[Key, Record]] = deque(maxlen=_MOST)
        if self.path.exists():
            with self.path.open("rb") as file:
                for line in file:
                    if len(line) <= _LONGEST_LINE and word.encode() in line:
                        parsed = _parse(line)
                        if parsed is not None and wanted(parsed[0]):
                            found.append(parsed)
        return iter(found)


def described(space: Space, assignment: Mapping[str, int]) -> tuple[tuple[str, str], ...]:
    """Return an assignment in words."""
    return tuple((c.name, _option(c, assignment[c.name])) for c in space.choices)


def recalled(space: Space, record: Record) -> dict[str, int] | None:
    """Return a record as an assignment of a space; None when the space is another one by now."""
    texts = dict(record.choices)
    assignment = {}
    for choice in space.choices:
        options = [_option(choice, number) for number in range(len(choice.options))]
        if texts.get(choice.name) not in options:
            return None
        assignment[choice.name] = options.index(texts[choice.name])
    return assignment


def _option(choice: Choice, number: int) -> str:
    # Two mappings to one instruction have the same text.
    return f"{number}: {choice.options[number]}"


def _parse(line: bytes) -> tuple[Key, Record] | None:
    try:
        entry: Any = json.loads(line.decode(errors="replace"))
        if not isinstance(entry, dict) or entry["format"] != FORMAT:
            return None
        machine = Machine(
            entry["machine"]["cpu"], entry["machine"]["cores"], entry["machine"]["compiler"]
        )
        sizes = tuple(sorted((str(name), int(size)) for name, size in entry["sizes"].items()))
        key = Key(
            str(entry["family"]),
            str(entry["kernel"]),
            str(entry["hardware"]),
            machine,
            int(entry["threads"]),
            sizes,
        )
        features = {str(name): float(value) for name, value in entry["features"].items()}
        choices = tuple(sorted((str(a), str(b)) for a, b in entry["choices"].items()))
        record = Record(
            choices,
            float(entry["seconds"]),
            float(entry["ratio"]),
            int(entry["rounds"]),
            float(entry["cycles"]),
            features,
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    numbers = (record.seconds, record.ratio, record.cycles)
    good = all(isfinite(n) and n > 0 for n in numbers) and all(map(isfinite, features.values()))
    return (key, record) if good else None
