"""Running a program that computes once, through the description's runner (an emulator, or none)."""

import shutil
import struct
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from isamap.diagnostics import ToolError, fail
from isamap.emit.program import BAD_INPUT, MAGIC, NO_MEMORY
from isamap.emit.source import CSource
from isamap.hw.accelerator import Accelerator, Toolchain
from isamap.hw.tools import located
from isamap.run.arguments import check_arrays
from isamap.run.build import require_toolchain, started_in
from isamap.run.outcome import Crash
from isamap.run.process import Finished, command_text, run_limited, signal_name
from isamap.run.protocol import shape_of


def run_program(
    path: Path,
    source: CSource,
    accelerator: Accelerator,
    arrays: Mapping[str, np.ndarray],
    symbols: Mapping[str, int],
    threads: int = 1,
    seconds: float | None = None,
) -> dict[str, np.ndarray] | Crash:
    """Run what :func:`isamap.run.build.build_program` gave; return the written arrays by name.

    ``seconds`` limit it, None: as the description says.  ArgumentsError for arrays that do not fit,
    ToolError if the description is not trusted or its runner cannot be started.
    """
    tools = require_toolchain(accelerator)
    check_arrays(source, arrays, symbols)
    limit = tools.seconds if seconds is None else seconds
    given = program_input(source, arrays, symbols, threads)
    finished, command = by_runner(path, tools, given, limit)
    outcome = program_outcome(finished, source, symbols, limit, command)
    if isinstance(outcome, Crash) and outcome.kind != "refused":
        return replace(outcome, span=tools.runner_at)
    return outcome


def to_repeat(
    path: Path,
    source: CSource,
    accelerator: Accelerator,
    arrays: Mapping[str, np.ndarray],
    symbols: Mapping[str, int],
    threads: int = 1,
) -> str:
    """Return the command that runs a program again, on copies that outlive this process.

    It is run by the measuring command if there is one, else by the runner.
    """
    tools = require_toolchain(accelerator)
    kept = Path(tempfile.mkdtemp(prefix="isamap-failed-"))
    program = str(shutil.copy(path, kept / path.name))
    (kept / "input").write_bytes(program_input(source, arrays, symbols, threads))
    first = tools.measure or tools.runner
    words = [*located(first), program, *([str(kept / "cycles")] if tools.measure else [])]
    command = command_text(words, started_in(tools) if first else None)
    return f"{command} <{kept / 'input'} >{kept / 'output'}"


def by_runner(path: Path, tools: Toolchain, given: bytes, limit: float) -> tuple[Finished, str]:
    """Run a program through the runner, if there is one; return how it ended, and the command.

    ``given`` is the program's standard input.  ToolError if the runner cannot be started.
    """
    command = [*located(tools.runner), str(path.resolve())]
    folder = started_in(tools) if tools.runner else None
    try:
        return run_limited(command, limit, given, folder=folder), command_text(command, folder)
    except OSError as error:
        where = f", started in {folder}" if folder else ""
        raise ToolError(
            fail(
                "E511",
                f"cannot start {command[0]}: {error.strerror}",
                tools.runner_at,
                hint=f"it is the runner of the description's toolchain{where}"
                if tools.runner
                else None,
            )
        ) from error


def program_outcome(
    finished: Finished,
    source: CSource,
    symbols: Mapping[str, int],
    limit: float,
    repeat: str,
    what: str = "the program",
) -> dict[str, np.ndarray] | Crash:
    """Return the arrays that a run wrote, or how ``what`` ran failed; ``repeat`` starts it again.

    ``limit`` are the seconds after which it was stopped.
    """
    if finished.code is None:
        return Crash("timeout", None, f"no result after {limit:g} s", repeat)
    if finished.code:
        return _crash(finished.code, finished.stderr.strip()[-2000:], repeat, what)
    return _outputs(finished.stdout, source, symbols, repeat, what)


def program_input(
    source: CSource,
    arrays: Mapping[str, np.ndarray],
    symbols: Mapping[str, int],
    threads: int,
    runs: int = 1,
) -> bytes:
    """Return what a program reads that computes ``runs`` times."""
    sizes = [int(p.size.evaluate(symbols)) for p in source.parameters]
    numbers = [threads, runs, *(symbols[s] for s in source.symbols), *sizes]
    parts = [MAGIC, struct.pack(f"<{len(numbers)}q", *numbers)]
    parts += [
        np.ascontiguousarray(arrays[p.name]).tobytes() for p in source.parameters if p.is_input
    ]
    return b"".join(parts)


def _outputs(
    stream: bytes, source: CSource, symbols: Mapping[str, int], repeat: str, what: str
) -> dict[str, np.ndarray] | Crash:
    start = len(MAGIC) + 8
    if len(stream) < start or not stream.startswith(MAGIC):
        return Crash("crash", None, f"{what}'s output is not what it should be", repeat)
    (code,) = struct.unpack_from("<q", stream, len(MAGIC))
    if code:
        return Crash("refused", None, source.failure(code), "")
    shapes = {p.name: shape_of(p, symbols) for p in source.parameters if p.is_output}
    lengths = {
        name: int(np.prod(shape, dtype=np.int64)) * source.parameter(name).dtype.bytes
        for name, shape in shapes.items()
    }
    if len(stream) != start + sum(lengths.values()):
        return Crash("crash", None, f"{what}'s output ends early or goes on", repeat)
    found = {}
    for name, shape in shapes.items():
        content = bytearray(stream[start : start + lengths[name]])
        found[name] = np.frombuffer(content, source.parameter(name).dtype.numpy).reshape(shape)
        start += lengths[name]
    return found


def _crash(code: int, told: str, repeat: str, what: str) -> Crash:
    # Emulators report a signal of their guest as a shell does: 128 and its number.
    number = -code if code < 0 else code - 128 if code > 128 else 0
    detail = f"{what} crashed" if number else f"{what} ended with status {code}"
    if code == BAD_INPUT:
        detail = "the program could not read its input or write its output"
    if code == NO_MEMORY:
        return Crash("memory", None, "the program got no memory", repeat)
    detail += f": {told}" if told else ""
    return Crash("crash", signal_name(number) if number else None, detail, repeat)
