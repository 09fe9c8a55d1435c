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
from typing import Any, TypeAlias

Calls: TypeAlias = Callable[[int], int]
"""Calls a kernel so many times and returns its result."""

_THREAD_BYTES = 192 << 20
"""Address space that the C library sets aside for a thread: its stack and its heap's arena."""


class Function:
    """A loaded kernel.

    ``pointers`` and ``symbols`` are the numbers of the parameters and extents that a call takes;
    ``ahead`` those that preparing its constants takes, None where nothing is prepared.
    """

    def __init__(
        self,
        path: str,
        entry: str,
        pointers: list[int],
        symbols: list[int],
        ahead: dict[str, list[int]] | None,
    ) -> None:
        library = ctypes.CDLL(path)
        self.pointers, self.symbols, self.ahead = pointers, symbols, ahead
        self.repeat = library[f"{entry}_repeat"]
        self.repeat.argtypes = [ctypes.POINTER(ctypes.c_int64), ctypes.c_int64]
        self.repeat.restype = ctypes.c_int
        self.room = _size(library[f"{entry}_workspace"], len(symbols), True)
        if ahead is not None:
            count = len(ahead["symbols"])
            self.prepare = library[f"{entry}_prepare"]
            self.prepare.argtypes = [
                *[ctypes.c_void_p] * len(ahead["pointers"]),
                *[ctypes.c_int64] * count,
                *[ctypes.c_void_p] * 2,
                ctypes.c_int,
            ]
            self.prepare.restype = ctypes.c_int
            self.prepared = _size(library[f"{entry}_prepared"], count, False)
            self.prepare_room = _size(library[f"{entry}_prepare_workspace"], count, True)


def _size(function: Any, symbols: int, threads: bool) -> Any:
    """Return a function that tells a number of bytes."""
    function.argtypes = [*[ctypes.c_int64] * symbols, *[ctypes.c_int] * threads]
    function.restype = ctypes.c_size_t
    return function


class Refused(Exception):
    """What is prepared was refused; holds the function's result."""

    def __init__(self, result: int) -> None:
        super().__init__(result)
        self.result = result


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
        self.kept: list[mmap.mmap] = []

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to one request."""
        match request["op"]:
            case "load":
                return self._load(request)
            case what:
                try:
                    return self._run(request) if what == "run" else self._time(request)
                except Refused as refused:
                    return {"result": refused.result}

    def _load(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            function = Function(
                request["path"],
                request["entry"],
                request["pointers"],
                request["symbols"],
                request["ahead"],
            )
        except (OSError, AttributeError) as error:
            return {"error": "unloadable", "detail": str(error)}
        self.functions[request["id"]] = function
        return {}

    def _calls(self, request: dict[str, Any]) -> list[Calls]:
        """Return one closure per function named, its constants prepared.

        MemoryError if there is no room.
        """
        base = self.memory.at_least(request["size"])
        _limit(request["memory"], request["threads"], request["cpu"])
        pointers = [base + offset for offset in request["offsets"]]
        symbols, threads = request["symbols"], request["threads"]
        functions = [self.functions[number] for number in request["ids"]]
        self.kept.clear()
        ahead = [self._prepared(f, pointers, symbols, threads) for f in functions]
        rooms = (f.room(*_picked(symbols, f.symbols), threads) for f in functions)
        space = self._space(max(rooms))

        def closure(function: Function, prepared: list[int]) -> Calls:
            arguments = [
                *_picked(pointers, function.pointers),
                *_picked(symbols, function.symbols),
                *prepared,
                space or 0,
                threads,
            ]
            given = (ctypes.c_int64 * len(arguments))(*arguments)
            return lambda count: int(function.repeat(given, count))

        return [closure(f, prepared) for f, prepared in zip(functions, ahead, strict=True)]

    def _prepared(
        self, function: Function, pointers: list[int], symbols: list[int], threads: int
    ) -> list[int]:
        """Return the address of what is prepared for a function, nothing if it takes nothing."""
        if function.ahead is None:
            return []
        own = _picked(symbols, function.ahead["symbols"])
        # Never empty, so that there is an address.
        area = _area(function.prepared(*own) or 1)
        self.kept.append(area)
        result = function.prepare(
            *_picked(pointers, function.ahead["pointers"]),
            *own,
            _address(area),
            self._space(function.prepare_room(*own, threads)),
            threads,
        )
        if result:
            raise Refused(result)
        return [_address(area)]

    def _space(self, need: int) -> int | None:
        if need == 0:
            return None
        if self.spare is None or len(self.spare) < need:
            self.spare = None
            self.spare = _area(need)
        return _address(self.spare)

    def _run(self, request: dict[str, Any]) -> dict[str, Any]:
        (call,) = self._calls(request)
        return {"result": call(1)}

    def _time(self, request: dict[str, Any]) -> dict[str, Any]:
        calls = self._calls(request)
        end = time.monotonic() + request["budget"]
        before = os.sched_getaffinity(0)
        if request["pin"]:
            os.sched_setaffinity(0, {max(before)})
        try:
            counts = []
            for call in calls:
                if result := call(1):
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


def _picked(values: list[int], places: list[int]) -> list[int]:
    return [values[place] for place in places]


def _area(need: int) -> mmap.mmap:
    """Return fresh memory; MemoryError if there is none."""
    try:
        return mmap.mmap(-1, need)
    except (OSError, OverflowError, ValueError) as error:
        raise MemoryError(f"no room for {need} bytes beside the arrays") from error


def _seconds(call: Calls, count: int) -> float:
    start = time.perf_counter()
    call(count)
    return time.perf_counter() - start


def _calls_per_window(call: Calls, window: float) -> int:
    """Return how many calls take a window at least; one that was disturbed is not believed."""
    count = 1
    while (taken := min(_seconds(call, count), _seconds(call, count))) < window:
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
