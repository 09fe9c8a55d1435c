"""Programs of C that measure something, compiled and run where their output is wanted."""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path


def run(script: str, flags: Sequence[str], arguments: Sequence[str] = ()) -> int:
    """Compile the C beside a script, run it, and return its exit status.

    CalledProcessError if gcc refuses it.
    """
    source = Path(script).with_suffix(".c")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / source.stem
        subprocess.run(["gcc", *flags, str(source), "-o", str(program)], check=True)
        return subprocess.run([str(program), *arguments], check=False).returncode
