"""Sources, spans, diagnostics and the one family of errors that a user can cause.

Every message has the same form::

    mm.ir:4:15: error[E012]: A has 2 dimensions but is indexed with 1
          C[i, j] += A[i] * B[k, j]
                     ^^^^
    mm.ir:2:10: note: A is declared here
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

_LONGEST = 160

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Source:
    """A text with the name it is reported under.

    ``first_line`` and ``indent`` place an excerpt inside a larger file: line ``n`` (from 1) and
    column ``c`` (from 1) of ``text`` are line ``first_line + n - 1`` and column ``indent + c`` of
    the file called ``name``.  ``whole`` is that file's text where it differs from ``text``.
    """

    name: str
    text: str
    first_line: int = 1
    indent: int = 0
    whole: str | None = None

    def line(self, number: int) -> str:
        """Return line ``number`` of the file (1-based), or '' past its end."""
        if self.whole is not None:
            lines, index = self.whole.split("\n"), number - 1
        else:
            lines, index = self.text.split("\n"), number - self.first_line
        return lines[index].removesuffix("\r") if 0 <= index < len(lines) else ""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one line of a file: line and column from 1, ``end_column`` exclusive."""

    source: Source
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message with its place, its stable code (``E012``) and further places as notes."""

    code: str
    message: str
    span: Span | None = None
    severity: Severity = "error"
    hint: str | None = None
    notes: tuple["Diagnostic", ...] = ()

    def render(self) -> str:
        """Return the message as it is printed: place, text, source line with carets, notes."""
        place = f"{self.span}: " if self.span else ""
        label = f"{self.severity}[{self.code}]" if self.code else self.severity
        lines = [f"{place}{label}: {self.message}"]
        if self.span:
            lines += _excerpt(self.span)
        if self.hint:
            lines.append(f"  help: {self.hint}")
        lines += [note.render() for note in self.notes]
        return "\n".join(lines)


def _excerpt(span: Span) -> list[str]:
    text = span.source.line(span.line)
    if not text.strip():
        return []
    start = span.column - 1
    stop = span.end_column - 1 if span.end_line == span.line else len(text)
    if len(text) > _LONGEST:  # only a window around the place is shown
        first = max(0, min(start - _LONGEST // 4, len(text) - _LONGEST))
        text, start, stop = text[first : first + _LONGEST], start - first, stop - first
    # Tabs are copied into the caret line so that the caret stands under its text.
    lead = "".join("\t" if char == "\t" else " " for char in text[:start])
    return [f"  {text}", f"  {lead}{'^' * max(1, min(stop, len(text)) - start)}"]


class IsamapError(Exception):
    """A fault of the user's input: one or more diagnostics, in order of position."""

    exit_code = 1

    def __init__(self, diagnostics: Diagnostic | Sequence[Diagnostic]) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = (
            (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        )
        super().__init__("\n".join(d.render() for d in self.diagnostics))

    def __reduce__(self) -> tuple[type["IsamapError"], tuple[tuple[Diagnostic, ...]]]:
        return type(self), (self.diagnostics,)


class ParseError(IsamapError):
    """The text is not of the language."""


class VerifyError(IsamapError):
    """The text is of the language, but means nothing: names, types, ranks, ranges, bounds."""


class HardwareError(IsamapError):
    """A hardware description is wrong."""


class ScheduleError(IsamapError):
    """A schedule does not fit its kernel or its hardware."""


class ArgumentsError(IsamapError):
    """Arrays, extents or options given with a kernel do not fit it."""


class CertificateError(IsamapError):
    """A certificate is none, or says something other than its own data."""


class NoMappingError(IsamapError):
    """Nothing on this hardware computes a statement."""

    exit_code = 3


class ToolError(IsamapError):
    """A compiler, a runner or a device is missing or failed."""

    exit_code = 5


class LimitError(IsamapError):
    """An answer is unknown, or a limit of time or memory was reached."""

    exit_code = 6


def fail(code: str, message: str, span: Span | None = None, hint: str | None = None) -> Diagnostic:
    """Return an error diagnostic (shorthand)."""
    return Diagnostic(code, message, span, hint=hint)


SYNTAX_CODES = frozenset(f"E{number:03d}" for number in range(3, 12))
"""Codes of text that could not be read; see the table in docs/language.md."""


def _line(diagnostic: Diagnostic) -> tuple[str, int]:
    span = diagnostic.span
    return (span.source.name, span.line) if span else (diagnostic.message, 0)


@dataclass(slots=True)
class Collector:
    """Gathers diagnostics of one text so that all its errors are told in one go."""

    limit: int = 50
    found: list[Diagnostic] = field(default_factory=list)

    def add(self, diagnostic: Diagnostic) -> None:
        """Take one diagnostic."""
        self.found.append(diagnostic)

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Take several diagnostics."""
        self.found.extend(diagnostics)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The errors in order of position, at most ``limit`` and a count of the rest.

        A line with an error of syntax tells its first such one only: the others follow from it,
        those of what the line means too, wherever they stand.
        """
        ordered = sorted(
            (d for d in self.found if d.severity == "error"),
            key=lambda d: (
                (d.span.source.name, d.span.line, d.span.column) if d.span else ("", 0, 0)
            ),
        )
        misread = {_line(d) for d in ordered if d.code in SYNTAX_CODES}
        seen: set[tuple[object, ...]] = set()
        kept = []
        for d in ordered:
            if _line(d) in misread and d.code not in SYNTAX_CODES:
                continue
            column = d.span.column if d.span and _line(d) not in misread else 0
            place = (*_line(d), column)
            if place not in seen:
                seen.add(place)
                kept.append(d)
        if len(kept) <= self.limit:
            return tuple(kept)
        more = Diagnostic("", f"and {len(kept) - self.limit} more errors", severity="note")
        return (*kept[: self.limit], more)
