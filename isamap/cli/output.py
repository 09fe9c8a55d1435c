"""Files that a command writes at its end: whether it can is looked at before the work."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from isamap.diagnostics import ArgumentsError, fail


def check_file(path: Path | None, folders: bool = False) -> None:
    """Raise ArgumentsError where a file cannot be written; ``folders``: they are made, if need be.

    None is no file, and fine.
    """
    if path is None:
        return
    if path.is_dir():
        raise _unwritable(path, "it is a folder")
    if path.exists():
        if not os.access(path, os.W_OK):
            raise _unwritable(path, "no permission")
        return
    _check_parent(path, path.absolute().parent, folders)


def check_folder(path: Path) -> None:
    """Raise ArgumentsError where files cannot be written into a folder.

    It is made if need be, in a folder that there is.
    """
    if path.exists() and not path.is_dir():
        raise _unwritable(path, "it is no folder")
    _check_parent(path, path.absolute() if path.exists() else path.absolute().parent, False)


def check_apart(written: Mapping[str, Iterable[Path | None]], read: Iterable[Path]) -> None:
    """Raise ArgumentsError where a file that an option has written is one that a command reads.

    ``written`` are the files of each option; None is no file.  Which are read is asked only if some
    is written.
    """
    given = [(option, path) for option, paths in written.items() for path in paths if path]
    kept = {path.resolve() for path in read} if given else set()
    for option, path in given:
        if path.resolve() in kept:
            text = f"cannot write '{path}': this command reads it"
            raise ArgumentsError(fail("E732", text, hint=f"give {option} another file"))


def write_text(files: Mapping[Path, str]) -> None:
    """Write some files, and the folder that they lie in; ArgumentsError where that fails."""
    try:
        for file, text in files.items():
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        text = f"cannot write '{error.filename}': {error.strerror}"
        raise ArgumentsError(fail("E732", text)) from error


def _check_parent(path: Path, folder: Path, folders: bool) -> None:
    while folders and not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.exists():
        raise _unwritable(path, f"there is no folder '{folder}'")
    if not folder.is_dir():
        raise _unwritable(path, f"'{folder}' is no folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _unwritable(path, f"no permission in '{folder}'")


def _unwritable(path: Path, why: str) -> ArgumentsError:
    return ArgumentsError(fail("E732", f"cannot write '{path}': {why}"))
