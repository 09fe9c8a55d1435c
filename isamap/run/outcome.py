"""What a failed run is told as: a value, so that a search goes on."""

from dataclasses import dataclass
from typing import Literal

from isamap.diagnostics import Diagnostic, Span, fail

Kind = Literal["crash", "timeout", "memory", "refused", "unloadable", "uncounted", "level"]

_CODES: dict[Kind, str] = {
    "crash": "E506",
    "timeout": "E507",
    "memory": "E508",
    "refused": "E509",
    "unloadable": "E510",
    "uncounted": "E515",
    "level": "E516",
}


@dataclass(frozen=True, slots=True)
class Crash:
    """A run that gave no result.

    ``kind`` is ``crash`` (ended by ``signal``, or by an unexpected exit), ``timeout``, ``memory``
    (a limit was reached), ``refused`` (the function returned non-zero), ``unloadable`` (no such
    library or function), ``uncounted`` (a measuring command gave no count) or ``level`` (it counts
    no more with the computation than without).  ``command`` repeats what was started, '' where no
    command can.  ``span`` is where a description names that, None where none does.
    """

    kind: Kind
    signal: str | None
    detail: str
    command: str
    span: Span | None = None

    @property
    def message(self) -> str:
        """One sentence that says what happened."""
        return f"{self.detail} ({self.signal})" if self.signal else self.detail

    @property
    def diagnostic(self) -> Diagnostic:
        """The same as a diagnostic, for a caller that has nothing else to try."""
        hint = f"to repeat: {self.command}" if self.command else None
        return fail(_CODES[self.kind], self.message, self.span, hint)
