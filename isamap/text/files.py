"""Reading files safely, and following their includes."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from isamap.diagnostics import Collector, Diagnostic, ParseError, Source, Span, fail
from isamap.text.parse import MAX_CHARACTERS, parse_text
from isamap.text.syntax import File, Include
from isamap.text.tokens import Places

_MAX_FILES = 64
_MAX_BYTES = 4 * MAX_CHARACTERS


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file's syntax, its places, and whether it is the one that was asked for."""

    file: File
    places: Places
    main: bool


def read_source(path: Path) -> Source:
    """Return a file's text; ParseError, placed at its first line, if it cannot be read as text."""
    name = str(path)
    start = Span(Source(name, ""), 1, 1, 1, 1)
    try:
        if path.exists() and not path.is_file():
            raise ParseError(fail("E001", f"'{name}' is not a regular file", start))
        with path.open("rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ParseError(fail("E001", f"cannot read '{name}': {reason}", start)) from None
    if len(data) > _MAX_BYTES:
        message = f"'{name}' is larger than {MAX_CHARACTERS} characters"
        raise ParseError(fail("E003", message, start))
    if (zero := data.find(b"\0")) >= 0:
        raise ParseError(_not_text(name, data, zero, "a zero byte: it is no text"))
    try:
        return Source(name, data.decode("utf-8").removeprefix("\ufeff"))
    except UnicodeDecodeError as error:
        reason = f"the byte 0x{data[error.start]:02x}, which is not UTF-8"
        raise ParseError(_not_text(name, data, error.start, reason)) from None


def _not_text(name: str, data: bytes, offset: int, reason: str) -> Diagnostic:
    line = data.count(b"\n", 0, offset) + 1
    head = data[data.rfind(b"\n", 0, offset) + 1 : offset]
    column = len(head.decode("utf-8", "replace")) + 1
    span = Span(Source(name, ""), line, column, line, column + 1)
    return fail("E002", f"'{name}' holds {reason}", span, "files are written in UTF-8")


def parse_files(path: Path, errors: Collector) -> Iterator[Parsed]:
    """Yield a file and all that it includes, each once, what is included first.

    ParseError if ``path`` itself cannot be read; other errors go to ``errors``.
    """
    walk = _Walk(path.resolve().parent, errors)
    yield from walk.visit(path, read_source(path), None)


def files_read(path: Path) -> tuple[Path, ...]:
    """Return a file and all that it includes; ParseError if ``path`` cannot be read."""
    walk = _Walk(path.resolve().parent, Collector())
    for _ in walk.visit(path, read_source(path), None):
        pass
    return walk.files


class _Walk:
    def __init__(self, root: Path, errors: Collector) -> None:
        self._root = root
        self._errors = errors
        self._open: list[Path] = []
        self._done: set[Path] = set()

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that were visited."""
        return tuple(self._done)

    def visit(self, path: Path, source: Source, parent: Span | None) -> Iterator[Parsed]:
        self._open.append(path.resolve())
        self._done.add(path.resolve())
        file, places = parse_text(source, self._errors)
        for include in file.includes:
            span = places.span(include.start, include.end)
            inner = self._included(path, include, span)
            if inner is not None:
                yield from self.visit(*inner, span)
        self._open.pop()
        yield Parsed(file, places, parent is None)

    def _included(self, path: Path, include: Include, span: Span) -> tuple[Path, Source] | None:
        """Return the file that is meant, if it is to be read; report it if it must not be."""
        found = path.parent / include.path
        try:
            resolved = found.resolve()
        except (OSError, RuntimeError, ValueError) as error:
            self._errors.add(fail("E031", f"cannot include '{include.path}': {error}", span))
            return None
        if not resolved.is_relative_to(self._root):
            message = f"'{include.path}' lies outside the folder of the first file"
            hint = "files are included from that folder and below it"
            self._errors.add(fail("E031", message, span, hint))
        elif resolved in self._open:
            chain = [p.name for p in self._open[self._open.index(resolved) :]]
            message = f"the files include each other: {' -> '.join([*chain, resolved.name])}"
            self._errors.add(fail("E032", message, span))
        elif resolved in self._done:
            return None
        elif len(self._done) >= _MAX_FILES:
            message = f"more than {_MAX_FILES} files are included"
            self._errors.add(fail("E032", message, span))
        else:
            try:
                return found, read_source(found)
            except ParseError as error:
                message = f"cannot include it: {error.diagnostics[0].message}"
                self._errors.add(fail("E031", message, span))
        return None
