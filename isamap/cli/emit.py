"""Writing the C of a mapped kernel."""

from pathlib import Path

from isamap.diagnostics import ArgumentsError, ToolError, fail
from isamap.pipeline.result import Result


def write_c(result: Result, path: Path) -> None:
    """Write the C to ``path`` if it ends in .c, else the C and its header into folder ``path``.

    Raises ToolError where the description makes no C, ArgumentsError where nothing can be written.
    """
    if result.source is None:
        raise ToolError(fail("E741", f"there is no C to write: {result.no_c}"))
    name = result.kernel.name
    if path.suffix == ".c" and not path.is_dir():
        files = {path: result.source.text}
    else:
        files = {
            path / f"{name}.c": result.source.text,
            path / f"{name}.h": result.source.header,
        }
    try:
        for file, text in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        text = f"cannot write '{error.filename}': {error.strerror}"
        raise ArgumentsError(fail("E732", text)) from error
