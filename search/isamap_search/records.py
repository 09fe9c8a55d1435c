"""What was measured, one JSON line each, appended and never rewritten.

A line that does not parse, such as the last one of a run that was killed, is skipped.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_kernel
from isamap.schedule.space import Choice, Space

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Key:
    """What a measurement depends on besides the schedule."""

    kernel: str
    hardware: str
    threads: int
    sizes: tuple[tuple[str, int], ...]

    @staticmethod
    def of(
        kernel: Kernel, hardware: Accelerator, threads: int, symbols: Mapping[str, int]
    ) -> "Key":
        """Return the key: digests of the kernel's text and of the description's content."""
        digest = sha256(print_kernel(kernel).encode()).hexdigest()[:16]
        return Key(digest, hardware.digest, threads, tuple(sorted(symbols.items())))


@dataclass(frozen=True, slots=True)
class Record:
    """A measured schedule: the text of the option of each choice, and seconds a run."""

    choices: tuple[tuple[str, str], ...]
    seconds: float


class Records:
    """A file of measurements; OSError when it cannot be read or written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, key: Key) -> list[Record]:
        """Return what was measured under a key, the fastest first."""
        if not self.path.exists():
            return []
        found = []
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            if record := _parse(line, key):
                found.append(record)
        return sorted(found, key=lambda record: record.seconds)

    def append(self, key: Key, record: Record) -> None:
        """Add a measurement as a line of its own, behind a damaged last line too."""
        text = json.dumps(
            {
                "format": _FORMAT,
                "kernel": key.kernel,
                "hardware": key.hardware,
                "threads": key.threads,
                "sizes": dict(key.sizes),
                "choices": dict(record.choices),
                "seconds": record.seconds,
            }
        )
        with self.path.open("ab+") as file:
            if file.tell() > 0:
                file.seek(-1, 2)
                if file.read(1) != b"\n":
                    text = "\n" + text
            file.write(text.encode() + b"\n")


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


def _parse(line: str, key: Key) -> Record | None:
    try:
        entry: Any = json.loads(line)
        if not isinstance(entry, dict) or entry["format"] != _FORMAT:
            return None
        sizes = tuple(sorted(entry["sizes"].items()))
        if Key(entry["kernel"], entry["hardware"], entry["threads"], sizes) != key:
            return None
        return Record(tuple(sorted(entry["choices"].items())), float(entry["seconds"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
