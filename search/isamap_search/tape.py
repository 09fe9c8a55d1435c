"""The log of a search, and its replay.

A search is a function of its arguments and of what it learns from outside: measurements, whether
the budget allows more, proposals that depend on other workers.  The latter pass through a tape.  A
recorder writes them down; a replay gives them back in the same order, and checks on the way that
the search decides what it decided then.

A log holds numbers, words and the kernel's text as JSON, one event a line; reading it executes
nothing.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from isamap.diagnostics import ArgumentsError, IsamapError, fail
from isamap_search.logged import Fits

T = TypeVar("T")

FORMAT = 2
"""Of log files; a replay refuses others."""


class ReplayError(IsamapError):
    """A replayed search decided otherwise than the logged one."""

    exit_code = 4


class Tape(Protocol):
    """Between a search and what it learns from outside."""

    @property
    def proposals_are_taken(self) -> bool:
        """Whether proposals come from a log because other workers had a part in them."""
        ...

    def take(self, kind: str, make: Callable[[], T], fits: Fits) -> T:
        """Return what ``make`` finds out (plain JSON), or what it did when it was logged.

        ArgumentsError where a logged value does not ``fits``.
        """
        ...

    def check(self, kind: str, value: object) -> None:
        """Note a decision; ReplayError when the logged one differs."""
        ...

    def interrupted(self) -> None:
        """Note that the search ended here."""
        ...


class Untaped:
    """Nothing is kept."""

    proposals_are_taken = False

    def take(self, kind: str, make: Callable[[], T], fits: Fits) -> T:
        """Return what ``make`` returns."""
        return make()

    def check(self, kind: str, value: object) -> None:
        """Do nothing."""

    def interrupted(self) -> None:
        """Do nothing."""


class Recorder:
    """Writes a log: a new file with a header, then each event at once."""

    proposals_are_taken = False

    def __init__(self, path: Path, header: Mapping[str, object]) -> None:
        """Begin a log; ArgumentsError when it cannot be written."""
        self._path = path
        try:
            self._file = path.open("w", encoding="utf-8")
        except OSError as error:
            raise self._unwritable(error) from error
        self._write({"isamap search log": FORMAT, **header})

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def take(self, kind: str, make: Callable[[], T], fits: Fits) -> T:
        """Return what ``make`` returns, and log it."""
        value = make()
        self._write({kind: value})
        return value

    def check(self, kind: str, value: object) -> None:
        """Log a decision."""
        self._write({kind: value})

    def interrupted(self) -> None:
        """Log the end."""
        self._write({"interrupted": True})

    def _write(self, event: Mapping[str, object]) -> None:
        try:
            self._file.write(json.dumps(event) + "\n")
            self._file.flush()
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> ArgumentsError:
        text = f"cannot write the log '{self._path}': {error.strerror}"
        return ArgumentsError(fail("E745", text))


class Replay:
    """Gives back what a log holds; where it ends early, the search is interrupted there."""

    def __init__(self, events: Sequence[Mapping[str, Any]]) -> None:
        self._events: Iterator[tuple[int, Mapping[str, Any]]] = iter(enumerate(events, 2))
        self.proposals_are_taken = any(event.get("alone") is False for event in events)
        self.decisions = 0
        self.is_cut = False

    def take(self, kind: str, make: Callable[[], T], fits: Fits) -> T:
        """Return the logged value; KeyboardInterrupt where the search was interrupted."""
        number, event = self._next()
        if kind not in event:
            raise _differs(number, event, kind)
        value: T = event[kind]
        if not fits(value):
            text = f"line {number} of the log: '{kind}' cannot be {_short(event[kind])}"
            raise ArgumentsError(fail("E746", text))
        return value

    def check(self, kind: str, value: object) -> None:
        """Compare a decision with the logged one."""
        number, event = self._next()
        if event != json.loads(json.dumps({kind: value})):
            raise _differs(number, event, f"{kind}: {json.dumps(value)}")
        self.decisions += 1

    def interrupted(self) -> None:
        """Do nothing: the log has said so."""

    def _next(self) -> tuple[int, Mapping[str, Any]]:
        found = next(self._events, None)
        if found is None:
            self.is_cut = True
            raise KeyboardInterrupt
        if "interrupted" in found[1]:
            raise KeyboardInterrupt
        return found


def read_log(path: Path) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """Return the header and the events of a log; ArgumentsError if it is none.

    A last line that was cut off is left out.
    """
    try:
        size = os.stat(path).st_size
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        text = f"cannot read the log '{path}': {error.strerror}"
        raise ArgumentsError(fail("E745", text)) from error
    found: list[Mapping[str, Any]] = []
    for number, line in enumerate(lines[:-1], 1):
        event = _parsed(line)
        if event is None:
            raise ArgumentsError(fail("E746", f"'{path}', line {number}: not an event of a search"))
        found.append(event)
    if not found or found[0].get("isamap search log") != FORMAT:
        told = "is empty" if size == 0 else f"is no search log of format {FORMAT}"
        raise ArgumentsError(fail("E746", f"'{path}' {told}"))
    return found[0], found[1:]


def _parsed(line: str) -> Mapping[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def _short(value: object) -> str:
    told = json.dumps(value)
    return told if len(told) < 200 else told[:200] + "..."


def _differs(number: int, event: Mapping[str, Any], now: str) -> ReplayError:
    text = f"line {number} of the log says {_short(event)}, but this search comes to {now}"
    hint = "the kernel, the description or isamap has changed since"
    return ReplayError(fail("E747", text, hint=hint))
