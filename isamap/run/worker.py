"""A separate process that runs compiled kernels: what crashes there is a result here."""

import json
import mmap
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np

from isamap.emit.source import CSource
from isamap.run.arguments import check_arrays
from isamap.run.outcome import Crash
from isamap.run.process import signal_name, stop
from isamap.run.protocol import Layout, layout_of, view

Arrays: TypeAlias = Mapping[str, np.ndarray]

_SCRIPT = Path(__file__).with_name("worker_main.py")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may take: wall-clock seconds, and bytes beyond the arrays' own (workspace
    included).  Processor time may be the wall-clock limit once per thread."""

    seconds: float = 60.0
    memory: int = 4 << 30


@dataclass(frozen=True, slots=True)
class Loaded:
    """A compiled kernel that a worker can run: the library and what it was compiled from."""

    path: Path
    source: CSource


class Worker:
    """Runs kernels in a process of its own, which is started when needed and again after a crash.

    Several kernels may be used by turns.  Not for several threads at once.  Use as a context
    manager, or call :meth:`close`.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._process: _Process | None = None

    def __enter__(self) -> "Worker":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def run(
        self, kernel: Loaded, arrays: Arrays, symbols: Mapping[str, int], threads: int = 1
    ) -> dict[str, np.ndarray] | Crash:
        """Prepare constants and compute once; return the written arrays by name.

        ``arrays`` holds every input by name, of exactly the kernel's types and shapes
        (ArgumentsError otherwise).
        """
        answer = self._ask("run", [kernel], arrays, symbols, threads, self.limits.seconds)
        if isinstance(answer, Crash):
            return answer
        memory, layout = self._started().memory, layout_of(kernel.source, symbols)
        places = zip(kernel.source.parameters, layout.offsets, strict=True)
        return {p.name: view(p, symbols, memory, at).copy() for p, at in places if p.is_output}

    def time(
        self,
        kernels: Sequence[Loaded],
        arrays: Arrays,
        symbols: Mapping[str, int],
        threads: int = 1,
        repeats: int = 5,
        window: float = 0.001,
    ) -> tuple[tuple[float, ...], ...] | Crash:
        """Return for each kernel ``repeats`` samples of the seconds that one call takes.

        Constants are prepared before, which is not timed.  All kernels have the same parameters.
        A sample is the mean over at least ``window`` seconds; samples of the kernels are taken by
        turns, on one core if there is one thread.  There are fewer, but one at least, where they
        take longer than half the time limit; the limit itself is for each kernel.  ``inout`` arrays
        keep changing from call to call.
        """
        seconds = self.limits.seconds * len(kernels)
        budget = self.limits.seconds / 2
        more = {"repeats": repeats, "window": window, "budget": budget, "pin": threads == 1}
        answer = self._ask("time", kernels, arrays, symbols, threads, seconds, more)
        if isinstance(answer, Crash):
            return answer
        return tuple(tuple(samples) for samples in answer["samples"])

    def _started(self) -> "_Process":
        if self._process is None:
            self._process = _Process()
        return self._process

    def _ask(
        self,
        what: str,
        kernels: Sequence[Loaded],
        arrays: Arrays,
        symbols: Mapping[str, int],
        threads: int,
        seconds: float,
        more: Mapping[str, object] | None = None,
    ) -> dict[str, Any] | Crash:
        source = kernels[0].source
        check_arrays(source, arrays, symbols)
        assert all(k.source.parameters == source.parameters for k in kernels), "one signature"
        process = self._started()
        numbers = []
        for kernel in kernels:
            number = process.load(kernel)
            if isinstance(number, Crash):
                return self._forget(number)
            numbers.append(number)
        layout = layout_of(source, symbols)
        process.fill(source, layout, arrays, symbols)
        request = {
            "op": what,
            "ids": numbers,
            "offsets": layout.offsets,
            "size": layout.size,
            "symbols": [symbols[s] for s in source.symbols],
            "threads": threads,
            "memory": self.limits.memory,
            "cpu": seconds * threads,
            **(more or {}),
        }
        try:
            answer = process.ask(request, seconds)
        except BaseException:
            # Interrupted: an answer that comes late must not be taken for the next one's.
            self.close()
            raise
        if isinstance(answer, Crash):
            return self._forget(answer)
        if code := answer["result"]:
            return Crash("refused", None, source.failure(code), "")
        return answer

    def _forget(self, crash: Crash) -> Crash:
        """Drop the process if it has ended."""
        if self._process is not None and not self._process.is_alive:
            self.close()
        return crash


class _Process:
    """The worker process and the memory shared with it."""

    def __init__(self) -> None:
        self.errors = _unnamed_file()
        self.file = _unnamed_file()
        theirs_in, self.requests = os.pipe()
        self.answers, theirs_out = os.pipe()
        # Isolated and without site packages: it starts in some 20 ms and finds only the library.
        command = [sys.executable, "-I", "-S", str(_SCRIPT)]
        descriptors = (theirs_in, theirs_out, self.file)
        self.child = subprocess.Popen(
            [*command, *map(str, descriptors)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.errors,
            pass_fds=descriptors,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.size = 0
        self.map: mmap.mmap | None = None
        self.numbers: dict[Path, int] = {}
        self.unread = b""

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self.child.poll() is None

    @property
    def memory(self) -> memoryview:
        """The shared memory."""
        assert self.map is not None
        return memoryview(self.map)

    def close(self) -> None:
        """End it and free what it shares."""
        stop(self.child)
        self.child.wait()
        for descriptor in (self.requests, self.answers, self.file, self.errors):
            os.close(descriptor)
        self.map = None

    def load(self, kernel: Loaded) -> int | Crash:
        """Return the number by which the process knows a kernel."""
        if kernel.path in self.numbers:
            return self.numbers[kernel.path]
        number = len(self.numbers)
        request = {
            "op": "load",
            "id": number,
            "path": str(kernel.path),
            "entry": kernel.source.entry,
            **_taken(kernel.source),
        }
        answer = self.ask(request, 60.0)
        if isinstance(answer, Crash):
            return answer
        self.numbers[kernel.path] = number
        return number

    def fill(
        self, source: CSource, layout: Layout, arrays: Arrays, symbols: Mapping[str, int]
    ) -> None:
        """Copy the inputs into the shared memory; outputs begin as not-a-number or -1."""
        if layout.size > self.size:
            os.ftruncate(self.file, layout.size)
            self.map = mmap.mmap(self.file, layout.size)
            self.size = layout.size
        for parameter, offset in zip(source.parameters, layout.offsets, strict=True):
            place = view(parameter, symbols, self.memory, offset)
            if parameter.is_input:
                np.copyto(place, arrays[parameter.name], casting="no")
            else:
                place.reshape(-1).view(np.uint8).fill(0 if parameter.dtype.kind == "bool" else 0xFF)

    def ask(self, request: Mapping[str, object], seconds: float) -> dict[str, Any] | Crash:
        """Return the answer to one request, or how the process ended instead."""
        line = json.dumps(request).encode() + b"\n"
        try:
            while line:
                line = line[os.write(self.requests, line) :]
        except BrokenPipeError:
            return self._ended()
        answer = self._line(time.monotonic() + seconds)
        if answer is None:
            stop(self.child)
            self.child.wait()
            return Crash("timeout", None, f"no result after {seconds:g} s", "")
        if not answer:
            return self._ended()
        found: dict[str, Any] = json.loads(answer)
        if "error" in found:
            return Crash(found["error"], None, found["detail"], "")
        return found

    def _line(self, until: float) -> bytes | None:
        """Return the next line, ``b''`` at the end of the stream, None after ``until``."""
        poll = select.poll()
        poll.register(self.answers, select.POLLIN)
        while b"\n" not in self.unread:
            left = until - time.monotonic()
            if left <= 0 or not poll.poll(left * 1000):
                return None
            part = os.read(self.answers, 1 << 16)
            if not part:
                return b""
            self.unread += part
        line, _, self.unread = self.unread.partition(b"\n")
        return line

    def _ended(self) -> Crash:
        code = self.child.wait()
        told = os.pread(self.errors, 1 << 16, 0).decode(errors="replace").strip()[-2000:]
        if code < 0:
            name = signal_name(-code)
            if name == "SIGXCPU":
                return Crash("timeout", name, "the processor time is used up", "")
            detail = "the kernel crashed" + (f": {told}" if told else "")
            return Crash("crash", name, detail, "")
        detail = f"the worker ended with status {code}" + (f": {told}" if told else "")
        return Crash("crash", None, detail, "")


def _taken(source: CSource) -> dict[str, object]:
    """Return the numbers of the parameters and extents that each function of a kernel takes."""
    places = {p.name: n for n, p in enumerate(source.parameters)}
    ahead = None
    if source.ahead is not None:
        ahead = {
            "pointers": [places[p.name] for p in source.ahead.parameters],
            "symbols": [source.symbols.index(s) for s in source.ahead.symbols],
        }
    return {
        "pointers": [places[p.name] for p in source.taken],
        "symbols": list(range(len(source.symbols))),
        "ahead": ahead,
    }


def _unnamed_file() -> int:
    """Return the descriptor of a file that no folder lists, in memory where there is such."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("isamap")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
