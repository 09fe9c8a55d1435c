"""Starting other programs: argument lists, never a shell; a time limit for the whole group."""

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended: ``code`` is its exit status, minus the signal's number if one ended
    it, None if it was stopped after its time."""

    code: int | None
    stdout: bytes
    stderr: str


def command_text(command: Sequence[str], folder: Path | None = None) -> str:
    """Return a command as one would type it, in whichever folder it is to be started."""
    there = f"cd {shlex.quote(str(folder))} && " if folder else ""
    return there + shlex.join(command)


def run_limited(
    command: Sequence[str],
    timeout: float,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Finished:
    """Run ``command`` to its end, or stop it and all it started after ``timeout`` seconds.

    OSError if it cannot be started.
    """
    process = subprocess.Popen(
        list(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=None if environment is None else {**os.environ, **environment},
        cwd=folder,
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(stdin, timeout)
        code: int | None = process.returncode
    except subprocess.TimeoutExpired:
        stop(process)
        stdout, stderr = process.communicate()
        code = None
    except BaseException:
        stop(process)
        process.communicate()
        raise
    return Finished(code, stdout, stderr.decode(errors="replace"))


def stop(process: subprocess.Popen[bytes]) -> None:
    """Kill a program that was started as the leader of a session, with all its children."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            process.kill()


def signal_name(number: int) -> str:
    """Return the name of a signal (``SIGSEGV``)."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
