"""What names mean within one definition, and where its errors go."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from isamap.diagnostics import Collector, Diagnostic, Span, fail
from isamap.ir.index import Index
from isamap.ir.nodes import Extent, Range
from isamap.text.proof import Domain, Interval, Undecided
from isamap.text.syntax import BufferItem, Word
from isamap.text.tokens import Places


class Placed(Protocol):
    """Anything that stands between two offsets of a text."""

    @property
    def start(self) -> int:
        """The offset of its first character."""

    @property
    def end(self) -> int:
        """The offset after its last character."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A buffer's declaration as far as types do not matter: they may be parameters."""

    item: BufferItem
    shape: tuple[Index, ...]
    strides: tuple[Index, ...] | None

    @property
    def padded(self) -> bool:
        """Whether reading outside the shape is allowed."""
        return any(a.kind == "pad" for a in self.item.attributes)


@dataclass(slots=True)
class Scope:
    """The names of a kernel, an instruction or a program.

    ``constants`` are names that stand for numbers.  ``known`` are the extents with a number,
    ``derived`` those that are expressions of symbols.  ``broken`` are names whose declaration is
    wrong: nothing more is said about them.  ``disputed`` has the ends that were advised for
    variables with two ranges.  ``limits`` takes the questions that the solver left
    open.
    """

    places: Places
    errors: Collector
    limits: Collector
    constants: Mapping[str, int] = field(default_factory=dict)
    extents: dict[str, Extent] = field(default_factory=dict)
    known: dict[str, Index | int] = field(default_factory=dict)
    derived: dict[str, Index] = field(default_factory=dict)
    parameters: dict[str, Word] = field(default_factory=dict)
    buffers: dict[str, Declared] = field(default_factory=dict)
    ranges: dict[str, Range] = field(default_factory=dict)
    disputed: dict[str, str] = field(default_factory=dict)
    values: dict[str, tuple[int, int]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    first: dict[str, Word] = field(default_factory=dict)

    def span(self, node: Placed) -> Span:
        """Return where a node stands."""
        return self.places.span(node.start, node.end)

    def fail(
        self,
        code: str,
        message: str,
        node: Placed,
        hint: str | None = None,
        notes: tuple[Diagnostic, ...] = (),
    ) -> None:
        """Report an error at a node."""
        self.errors.add(Diagnostic(code, message, self.span(node), hint=hint, notes=notes))

    def note(self, message: str, node: Placed) -> Diagnostic:
        """Return a note at a node."""
        return Diagnostic("", message, self.span(node), severity="note")

    def declare(self, name: Word) -> bool:
        """Take a name; report it and return False if it is taken already."""
        if (earlier := self.first.get(name.text)) is not None:
            note = self.note(f"{name.text} is declared here first", earlier)
            self.fail("E014", f"the name {name.text} is declared twice", name, notes=(note,))
            return False
        if name.text in self.constants:
            message = f"{name.text} is a parameter of the description"
            self.fail("E014", message, name, "choose another name")
            return False
        self.first[name.text] = name
        return True

    def symbols(self) -> dict[str, Interval]:
        """Return the extents without a number, with their least and greatest value."""
        return {
            name: (extent.least or 1, None)
            if extent.range is None
            else (extent.range[0], extent.range[1] - 1)
            for name, extent in self.extents.items()
            if extent.value is None
        }

    def domain(self, variables: dict[str, tuple[Index, Index]] | None = None) -> Domain:
        """Return the domain of some variables and all symbols."""
        return Domain(variables or {}, self.symbols())

    @contextmanager
    def deciding(self, node: Placed, question: str) -> Iterator[None]:
        """Turn a question that the solver leaves open into a message at ``node``."""
        try:
            yield
        except Undecided as reason:
            message = f"it could not be decided whether {question} ({reason})"
            hint = "give sizes, --set N=64, or write the index more simply"
            self.limits.add(fail("E090", message, self.span(node), hint))


def listed(names: Iterable[str]) -> str:
    """Return names for a message."""
    return ", ".join(names) or "none"
