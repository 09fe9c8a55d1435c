"""Running a program that calls many functions on many sets of arrays, wherever programs run."""

import struct
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isamap.emit.program import MAGIC
from isamap.hw.accelerator import Accelerator
from isamap.run.board import measured
from isamap.run.build import require_toolchain
from isamap.run.outcome import Crash
from isamap.run.process import Finished, signal_name
from isamap.run.program import by_runner


@dataclass(frozen=True, slots=True)
class Batch:
    """Calls of the function ``number``: for each array its elements, a set in each row.

    ``written`` are the positions of the arrays that come back.
    """

    number: int
    symbols: tuple[int, ...]
    arrays: tuple[np.ndarray, ...]
    written: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """What its arrays take."""
        return sum(array.nbytes for array in self.arrays)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a batch gave: the written arrays, in order.

    ``refused`` is the first set in which the function refused to work, ``strays`` the first in
    which something beside the arrays was written; None if there is none.
    """

    arrays: tuple[np.ndarray, ...]
    refused: int | None
    strays: int | None


def run_battery(
    path: Path, accelerator: Accelerator, batches: Sequence[Batch], seconds: float
) -> list[Answer] | Crash:
    """Run a program of :func:`isamap.emit.battery.battery_text` once; return an answer a batch.

    Through the measuring command, whose counts are not looked at, or through the runner.  ToolError
    if that cannot be started.
    """
    parts = [MAGIC, *(part for batch in batches for part in _input(batch)), struct.pack("<q", -1)]
    done, repeat = _run(path, accelerator, b"".join(parts), seconds)
    if done.code is None:
        return Crash("timeout", None, f"no result after {seconds:g} s", repeat)
    if done.code:
        number = -done.code if done.code < 0 else done.code - 128 if done.code > 128 else 0
        told = f"the program ended with status {done.code}" if not number else "the program crashed"
        told += f": {done.stderr.strip()[-500:]}" if done.stderr.strip() else ""
        return Crash("crash", signal_name(number) if number else None, told, repeat)
    answers = _answers(done.stdout, batches)
    if answers is None:
        return Crash("crash", None, "the program's output is not what it should be", repeat)
    return answers


def _run(
    path: Path, accelerator: Accelerator, given: bytes, seconds: float
) -> tuple[Finished, str]:
    tools = require_toolchain(accelerator)
    if tools.measure:
        with tempfile.TemporaryDirectory(prefix="isamap-") as folder:
            return measured(accelerator, path, Path(folder) / "cycles", given, seconds)
    return by_runner(path, tools, given, seconds)


def _input(batch: Batch) -> list[bytes]:
    sizes = [int(np.prod(array.shape[1:], dtype=np.int64)) for array in batch.arrays]
    numbers = [batch.number, len(batch.arrays[0]) if batch.arrays else 0, *batch.symbols, *sizes]
    return [
        struct.pack(f"<{len(numbers)}q", *numbers),
        *(np.ascontiguousarray(array).tobytes() for array in batch.arrays),
    ]


def _answers(stream: bytes, batches: Sequence[Batch]) -> list[Answer] | None:
    at = len(MAGIC)
    if not stream.startswith(MAGIC):
        return None
    answers = []
    for batch in batches:
        chosen = [batch.arrays[number] for number in batch.written]
        if len(stream) < at + 16 + sum(array.nbytes for array in chosen):
            return None
        refused, strays = struct.unpack_from("<2q", stream, at)
        at += 16
        found = []
        for array in chosen:
            raw = bytearray(stream[at : at + array.nbytes])
            found.append(np.frombuffer(raw, array.dtype).reshape(array.shape))
            at += array.nbytes
        answers.append(
            Answer(
                tuple(found),
                None if refused < 0 else refused,
                None if strays < 0 else strays,
            )
        )
    return answers if at == len(stream) else None
