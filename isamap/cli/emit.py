"""Writing the C of a mapped kernel."""

from pathlib import Path

from isamap.cli.output import check_file, check_folder, write_text
from isamap.diagnostics import ArgumentsError, ToolError, fail
from isamap.emit.source import CSource
from isamap.hw.accelerator import Accelerator
from isamap.pipeline.result import Result


def check_emit(path: Path, machine: Accelerator) -> None:
    """Raise what :func:`write_c` would, as far as it is known before anything is mapped."""
    check_code(machine)
    check_path(path)


def check_code(machine: Accelerator) -> None:
    """Raise ToolError where it is known of a machine that there will be no C."""
    if machine.toolchain is None:
        why = f"the description of '{machine.name}' names no toolchain"
        raise ToolError(fail("E741", f"there is no C to write: {why}"))


def check_path(path: Path) -> None:
    """Raise ArgumentsError where C cannot be written to a path: a file .c, or a folder.

    What is neither there nor a folder by its name is no folder to make: it may be meant as a file.
    """
    if path.suffix == ".c" and not path.is_dir():
        check_file(path)
    elif path.suffix and not path.exists():
        text = f"cannot write '{path}': it is neither a file .c nor a folder that there is"
        hint = f"name a file such as '{path.with_suffix('.c')}', or make the folder"
        raise ArgumentsError(fail("E732", text, hint=hint))
    else:
        check_folder(path)


def emitted_files(path: Path, name: str) -> tuple[Path, ...]:
    """Return the files that the C of a kernel called ``name`` is written to, then its header."""
    if path.suffix == ".c" and not path.is_dir():
        return (path,)
    return path / f"{name}.c", path / f"{name}.h"


def write_c(result: Result, path: Path) -> None:
    """Write the C to ``path`` if it ends in .c, else the C and its header into folder ``path``.

    Raises ToolError where the description makes no C, ArgumentsError where nothing can be
    written.
    """
    source = written_code(result)
    texts = (source.text, source.header)
    # A file has the C alone.
    write_text(dict(zip(emitted_files(path, result.kernel.name), texts, strict=False)))


def written_code(result: Result) -> CSource:
    """Return the C of a mapped kernel; ToolError where the description makes none."""
    if result.source is None:
        raise ToolError(fail("E741", f"there is no C to write: {result.no_c}"))
    return result.source
