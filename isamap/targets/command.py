"""Commands that fetching and making tools consists of."""

from collections.abc import Sequence
from pathlib import Path

from isamap.diagnostics import ToolError, fail
from isamap.run.process import command_text, run_limited

SECONDS = 600.0
"""Time limit of one command."""

_LINES = 12
"""Lines that are told of what a command said when it failed: the last ones."""


def fetch(command: Sequence[str], folder: Path | None = None) -> str:
    """Run a command that fetches something.  ToolError, with what it needs, if it fails."""
    hint = "it is fetched from the network, once: what is there works without"
    return run(command, folder, hint)


def run(command: Sequence[str], folder: Path | None = None, hint: str | None = None) -> str:
    """Run a command to its end and return what it told.  ToolError, with a hint, if it fails."""
    try:
        done = run_limited(command, SECONDS, folder=folder, environment={"LC_ALL": "C"})
    except OSError as error:
        raise ToolError(fail("E540", f"cannot start {command[0]}: {error.strerror}")) from error
    if done.code != 0:
        lines = done.stderr.strip().splitlines()[-_LINES:]
        told = "\n".join(lines) or f"it ended with status {done.code}"
        raise ToolError(fail("E540", f"{command_text(command)} failed: {told}", hint=hint))
    return done.stdout.decode(errors="replace")
