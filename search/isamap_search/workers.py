"""Who works on a trial, and which trials were left by workers that are gone.

A worker signs each trial that it takes with a lease: who it is, and until when it should be done.
Others on the same machine see at once that it has ended, those elsewhere when its lease is over.
Their clocks should agree to a minute.
"""

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LEASE_SECONDS = 300.0
"""How long a worker may take for a stage of a race before others take its trials for lost."""

UNSIGNED_SECONDS = 60.0
"""How long a trial may be without a lease: its worker proposes what to try before it signs."""

ATTRIBUTE = "isamap:lease"
"""The user attribute of a trial that holds its lease."""


@dataclass(frozen=True, slots=True)
class Worker:
    """A process: ``host`` names the system whose process numbers ``pid`` is one of.

    ``started`` tells it from a later process with the same number.
    """

    host: str
    pid: int
    started: str

    @staticmethod
    def own() -> "Worker":
        """Return the worker that this process is."""
        pid = os.getpid()
        return Worker(_host(), pid, _started(pid))

    @property
    def is_gone(self) -> bool:
        """Whether the process has certainly ended: known on its own machine only."""
        return self.host == _host() and _started(self.pid) != self.started

    def lease(self, seconds: float = LEASE_SECONDS) -> dict[str, Any]:
        """Return the lease that it signs now."""
        until = time.time() + seconds
        return {"host": self.host, "pid": self.pid, "started": self.started, "until": until}


def is_lost(lease: object, age: float, now: float) -> bool:
    """Return whether the trial with a lease is left behind.

    ``age`` is the seconds since it was taken, which count where it was not signed.
    """
    if not isinstance(lease, Mapping):
        return age > UNSIGNED_SECONDS
    try:
        worker = Worker(str(lease["host"]), int(lease["pid"]), str(lease["started"]))
        return worker.is_gone or float(lease["until"]) < now
    except (KeyError, TypeError, ValueError):
        return age > UNSIGNED_SECONDS


def _host() -> str:
    """Return what tells two systems apart: name, boot, and the name space of processes."""
    parts = [socket.gethostname()]
    boot, space = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
    if boot.exists():
        parts.append(boot.read_text().strip())
    if space.exists():
        parts.append(os.readlink(space))
    return " ".join(parts)


def _started(pid: int) -> str:
    """Return when a process began, in the system's own words; '' if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    # Behind the name, which may hold anything: the 22nd field, of which the name is the second.
    fields = text.rpartition(")")[2].split()
    # A zombie has ended, too.
    return "" if fields[0] in ("Z", "X") else fields[19]
