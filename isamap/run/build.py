"""From C text to a shared library or a program, by the description's toolchain.

Everything is built in a folder named after a hash of the text and the command, so that the same
kernel is compiled once.
"""

import atexit
import functools
import hashlib
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import as_file
from pathlib import Path

from isamap.diagnostics import ToolError, fail
from isamap.emit.program import program_text
from isamap.emit.repeat import shared_text
from isamap.emit.source import CSource
from isamap.hw.accelerator import Accelerator, Toolchain
from isamap.hw.tools import located
from isamap.resources import shipped
from isamap.run.process import command_text, run_limited

COMPILE_SECONDS = 600.0
"""Time limit of one compilation unless told otherwise: the first one may build a C library."""


def require_toolchain(accelerator: Accelerator) -> Toolchain:
    """Return the toolchain of a description that may be executed.

    ToolError if the description is not trusted or has no toolchain.
    """
    if not accelerator.trusted:
        raise ToolError(
            fail(
                "E501",
                f"the description of {accelerator.name} is not trusted: its code templates and "
                "compiler command are not executed",
                hint="give --trust if you trust whoever wrote it",
            )
        )
    if accelerator.toolchain is None:
        raise ToolError(fail("E502", f"the description of {accelerator.name} has no toolchain"))
    return accelerator.toolchain


def build_shared(
    source: CSource,
    accelerator: Accelerator,
    folder: Path | None = None,
    timeout: float = COMPILE_SECONDS,
) -> Path:
    """Compile to a shared library and return its path.

    ``folder`` None is one of this process, removed at its end.  ToolError if the description is
    not trusted, the compiler is missing, too slow, or refuses the text.
    """
    tools = require_toolchain(accelerator)
    text = shared_text(source)
    return _build(text, source.entry, ".so", tools, tools.shared, folder, timeout)


def build_program(
    source: CSource,
    accelerator: Accelerator,
    folder: Path | None = None,
    timeout: float = COMPILE_SECONDS,
) -> Path:
    """Compile to an executable that computes once, fed through pipes; return its path.

    Errors are those of :func:`build_shared`.
    """
    return build_text(program_text(source), source.entry, accelerator, folder, timeout)


def build_text(
    text: str,
    name: str,
    accelerator: Accelerator,
    folder: Path | None = None,
    timeout: float = COMPILE_SECONDS,
) -> Path:
    """Compile the text of a whole program called ``name`` to an executable and return its path.

    Errors are those of :func:`build_shared`.
    """
    tools = require_toolchain(accelerator)
    with _of_program(tools) as options:
        return _build(_whole(text, tools), name, "", tools, options, folder, timeout)


def compiler_remarks(
    source: CSource,
    accelerator: Accelerator,
    arguments: Sequence[str],
    timeout: float = COMPILE_SECONDS,
) -> str:
    """Compile the program of :func:`build_program` with more arguments; return what is told of it.

    Errors are those of :func:`build_shared`.
    """
    tools = require_toolchain(accelerator)
    with _of_program(tools) as options, tempfile.TemporaryDirectory() as folder:
        c_file = Path(folder) / f"{source.entry}.c"
        c_file.write_text(_whole(program_text(source), tools))
        made = [str(c_file), "-o", str(c_file.with_suffix(".run"))]
        flags = [*tools.flags, *options, *arguments]
        command = [*located(tools.compiler), *made, *flags]
        return _compile(command, timeout, c_file, tools)


def started_in(tools: Toolchain) -> Path | None:
    """Return the folder in which the commands of a toolchain are started, None: where we are.

    It is that of the description: what is named relative to it is found.  A folder that is gone
    since the description was read has nothing to be found.
    """
    folder = Path(tools.folder) if tools.folder else None
    return folder if folder is not None and folder.is_dir() else None


def _whole(text: str, tools: Toolchain) -> str:
    """Return the text of a program with all that it needs where there is no C library."""
    return f"{text}\n{tools.start}\n#include <isamap_runtime.h>\n" if tools.start else text


@contextmanager
def _of_program(tools: Toolchain) -> Iterator[tuple[str, ...]]:
    """Give the compiler's arguments that make a program."""
    if not tools.start:
        yield tools.program
        return
    with as_file(shipped("hwdesc") / "freestanding") as headers:
        yield ("-ffreestanding", "-nostdlib", "-isystem", str(headers), *tools.program)


def _build(
    text: str,
    name: str,
    suffix: str,
    tools: Toolchain,
    kind: Sequence[str],
    folder: Path | None,
    timeout: float,
) -> Path:
    folders = [word for folder in tools.includes for word in ("-isystem", folder)]
    options = [*tools.flags, *folders, *kind]
    key = "\0".join([text, name, suffix, tools.folder, *tools.compiler, *options])
    home = (folder or _session_folder()).resolve() / hashlib.sha256(key.encode()).hexdigest()[:20]
    result = home / f"{name}{suffix or '.run'}"
    if result.exists():
        return result
    home.mkdir(parents=True, exist_ok=True)
    # Everything is made under another name first: whoever builds the same at the same time finds
    # all of a file or nothing.
    mine = f"{os.getpid()}-{threading.get_ident()}.part"
    c_file = home / f"{name}.c"
    text_file = home / f"{c_file.name}.{mine}"
    text_file.write_text(text)
    text_file.replace(c_file)
    partial = home / f"{result.name}.{mine}"
    # The text stands before the options, which may name libraries.
    command = [*located(tools.compiler), str(c_file), "-o", str(partial), *options]
    _compile(command, timeout, c_file, tools)
    partial.replace(result)
    return result


def _compile(command: list[str], timeout: float, c_file: Path, tools: Toolchain) -> str:
    """Run a compiler in the folder of its description, and return what it tells."""
    started = started_in(tools)
    try:
        finished = run_limited(command, timeout, environment={"LC_ALL": "C"}, folder=started)
    except OSError as error:
        raise ToolError(
            fail(
                "E503",
                f"cannot start the compiler {command[0]}: {error.strerror}",
                tools.compiler_at,
                hint="install it, or name another one in the description's toolchain",
            )
        ) from error
    if finished.code is None:
        message = f"the compiler took longer than {timeout:g} s"
        raise ToolError(
            fail("E504", message, tools.compiler_at, _to_repeat(command, c_file, started))
        )
    if finished.code:
        told = _shortened(finished.stderr) or f"it ended with status {finished.code}"
        raise ToolError(
            fail(
                "E505",
                f"the compiler refuses the emitted C: {told}",
                tools.compiler_at,
                _to_repeat(command, c_file, started),
            )
        )
    return finished.stderr


def _to_repeat(command: list[str], c_file: Path, started: Path | None) -> str:
    """Return the command that fails, on a copy of the C that outlives this process."""
    kept = Path(tempfile.mkdtemp(prefix="isamap-failed-")) / c_file.name
    shutil.copy(c_file, kept)
    output = command[command.index("-o") + 1]
    shown = {str(c_file): str(kept), output: os.devnull}
    words = [shown.get(word, word) for word in command]
    return f"to repeat: {command_text(words, started)}"


def _shortened(text: str, lines: int = 30) -> str:
    """Return the first lines of what a compiler told, or those from its first error on."""
    told = text.strip().splitlines()
    first = next((n for n, line in enumerate(told) if re.search(r"\berror\b", line, re.I)), 0)
    # Warnings and remarks that come first may be any number.
    start = 0 if len(told) <= lines or first < lines // 2 else first - 1
    before = [f"{start} lines, and then"] if start else []
    rest = len(told) - start - lines
    after = [f"... and {rest} more lines"] if rest > 0 else []
    return "\n".join(before + told[start : start + lines] + after)


@functools.cache
def _session_folder() -> Path:
    # Readable by its owner only: nobody else can put a library there that this process would load.
    folder = Path(tempfile.mkdtemp(prefix="isamap-"))
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder
