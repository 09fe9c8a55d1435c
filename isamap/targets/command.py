"""Commands that fetching and making tools consists of."""

from collections.abc import Sequence
from pathlib import Path

from isamap.diagnostics import ToolError, fail
from isamap.run.process import command_text, run_limited

SECONDS = 600.0
"""Time limit of one command."""


def run(command: Sequence[str], folder: Path | None = None) -> str:
    """Run a command to its end and return what it told.  ToolError if it fails."""
    try:
        done = run_limited(command, SECONDS, folder=folder, environment={"LC_ALL": "C"})
    except OSError as error:
        raise ToolError(fail("E540", f"cannot start {command[0]}: {error.strerror}")) from error
    if done.code != 0:
        told = done.stderr.strip()[-2000:] or f"it ended with status {done.code}"
        raise ToolError(fail("E540", f"{command_text(command)} failed: {told}"))
    return done.stdout.decode(errors="replace")
