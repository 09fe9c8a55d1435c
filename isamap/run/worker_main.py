"""The worker process: loads shared libraries, calls their functions, times them.

It is started as a script with nothing but the standard library, so that it begins at once and a
crash takes nothing along.  Requests and answers are one JSON object a line; arrays lie in a file
that both processes map.
"""

import ctypes
import json
import math
import mmap
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

_THREAD_BYTES = 192 << 20
"""Address space that the C library sets aside for a thread: its stack and its heap's arena."""


class Function:
    """A loaded kernel."""

    def __init__(self, path: str, entry: str, pointers: int, symbols: int) -> None:
        library = ctypes.CDLL(path)
        integers = [ctypes.c_int64] * symbols
        self.call = library[entry]
        self.call.argtypes = (
            [ctypes.c_void_p] * pointers
            + integers
            + [
                ctypes.c_void_p,
                ctypes.c_int,
            ]
        )
        self.call.restype = ctypes.c_int
        self.room = library[f"{entry}_workspace"]
        self.room.argtypes = [*integers, ctypes.c_int]
        self.room.restype = ctypes.c_size_t


class Memory:
    """The shared file, mapped as large as the last request said."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.size = 0
        self.address = 0
        self.map: mmap.mmap | None = None

    def at_least(self, size: int) -> int:
        """Return the address of at least ``size`` bytes of the file."""
        if size > self.size:
            self.map = mmap.mmap(self.descriptor, size)
            self.size = size
            self.address = _address(self.map)
        return self.address


def _address(area: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(area))


class Worker:
    """Answers requests."""

    def __init__(self, descriptor: int) -> None:
        self.memory = Memory(descriptor)
        self.functions: dict[int, Function] = {}
        self.spare: mmap.mmap | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to one request."""
        match request["op"]:
            case "load":
                return self._load(request)
            case "run":
                return self._run(request)
            case _:
                return self._time(request)

    def _load(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            function = Function(
                request["path"], request["entry"], request["pointers"], request["symbols"]
            )
        except (OSError, AttributeError) as error:
            return {"error": "unloadable", "detail": str(error)}
        self.functions[request["id"]] = function
        return {}

    def _calls(self, request: dict[str, Any]) -> list[Callable[[], int]]:
        """Return one closure per function named; MemoryError if there is no room."""
        base = self.memory.at_least(request["size"])
        _limit(request["memory"], request["threads"], request["cpu"])
        pointers = [base + offset for offset in request["offsets"]]
        functions = [self.functions[number] for number in request["ids"]]
        symbols, threads = request["symbols"], request["threads"]
        need = max(f.room(*symbols, threads) for f in functions)
        space = self._space(need)
        arguments = [*pointers, *symbols, space, threads]

        def closure(function: Function) -> Callable[[], int]:
            given = [
                kind(value) for kind, value in zip(function.call.argtypes, arguments, strict=True)
            ]
            call = function.call
            return lambda: int(call(*given))

        return [closure(f) for f in functions]

    def _space(self, need: int) -> int | None:
        if need == 0:
            return None
        if self.spare is None or len(self.spare) < need:
            self.spare = None
            try:
                self.spare = mmap.mmap(-1, need)
            except (OSError, OverflowError, ValueError) as error:
                raise MemoryError(f"no room for a workspace of {need} bytes") from error
        return _address(self.spare)

    def _run(self, request: dict[str, Any]) -> dict[str, Any]:
        (call,) = self._calls(request)
        return {"result": call()}

    def _time(self, request: dict[str, Any]) -> dict[str, Any]:
        calls = self._calls(request)
        end = time.monotonic() + request["budget"]
        before = os.sched_getaffinity(0)
        if request["pin"]:
            os.sched_setaffinity(0, {max(before)})
        try:
            counts = []
            for call in calls:
                if result := call():
                    return {"result": result}
                counts.append(_calls_per_window(call, request["window"]))
            samples: list[list[float]] = [[] for _ in calls]
            # Interleaved: a disturbance meets every candidate alike.
            for _ in range(request["repeats"]):
                for call, count, taken in zip(calls, counts, samples, strict=True):
                    taken.append(_seconds(call, count) / count)
                if time.monotonic() > end:
                    break
        finally:
            os.sched_setaffinity(0, before)
        return {"result": 0, "samples": samples}


def _seconds(call: Callable[[], int], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return time.perf_counter() - start


def _calls_per_window(call: Callable[[], int], window: float) -> int:
    count = 1
    while (taken := _seconds(call, count)) < window:
        count = max(count + 1, min(count * 10, math.ceil(1.2 * count * window / max(taken, 1e-9))))
    return count


def _limit(memory: int, threads: int, cpu: float) -> None:
    """Bound what this process may use from here on."""
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[0])
    space = pages * resource.getpagesize() + memory + threads * _THREAD_BYTES
    _soften(resource.RLIMIT_AS, space)
    used = resource.getrusage(resource.RUSAGE_SELF)
    _soften(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + cpu) + 1)
    _soften(resource.RLIMIT_CORE, 0)


def _soften(kind: int, wanted: int) -> None:
    _, hard = resource.getrlimit(kind)
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(kind, (soft, hard))


def main() -> None:
    """Serve until the parent closes its end."""
    requests, answers, memory = map(int, sys.argv[1:])
    worker = Worker(memory)
    with open(requests) as lines, open(answers, "w") as out:
        for line in lines:
            try:
                answer = worker.answer(json.loads(line))
            except MemoryError as error:
                answer = {"error": "memory", "detail": str(error) or "out of memory"}
            out.write(json.dumps(answer) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
