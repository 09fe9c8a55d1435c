"""What descriptions say is another thing of instructions that they inherit."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from isamap.diagnostics import Diagnostic, Span, fail
from isamap.hw.accelerator import Entry
from isamap.hw.check import (
    Machine,
    check_align,
    check_besides,
    check_latency,
    check_pace,
    check_units,
)
from isamap.hw.check_template import check_template
from isamap.hw.document import Document, Place
from isamap.hw.numeric import check_numeric
from isamap.hw.schema import ChangeModel, InstructionModel, times


@dataclass(frozen=True, slots=True)
class Change:
    """What a description says of instructions of one name."""

    document: Document
    name: str
    model: ChangeModel

    @property
    def place(self) -> Place:
        """Where it stands in its description."""
        return ("change", self.name)

    @property
    def span(self) -> Span:
        """Where the name stands."""
        return self.document.key_span(*self.place)

    @property
    def fields(self) -> dict[str, object]:
        """The fields that it gives, and where their figures come from if it does not say."""
        given = {name: getattr(self.model, name) for name in self.model.model_fields_set}
        own = self.document.model.source
        return given if own is None else {"source": own, **given}


@dataclass(slots=True)
class Changes:
    """The changes of the descriptions that have been looked at, the nearest first."""

    all: list[Change] = field(default_factory=list)
    used: set[tuple[str, str]] = field(default_factory=set)

    def add(self, document: Document, own: Collection[str]) -> Iterator[Diagnostic]:
        """Let what a description says count for all that is looked at afterwards.

        ``own`` are the names of its own instructions: a fault is yielded for each that it changes.
        """
        for name, model in document.model.change.items():
            change = Change(document, name, model)
            if name in own:
                text = f"'{name}' is an instruction of this description, not one that it inherits"
                yield fail("E137", text, change.span, "say it where the instruction is described")
                self.used.add((document.source.name, name))
            self.all.append(change)

    def of(self, names: Iterable[str]) -> tuple[Change, ...]:
        """Return the changes of an instruction that has these names, the last one's word counts.

        That is the nearest description's, and of one description that with types in its name.
        """
        each = tuple(names)
        found = [c for c in reversed(self.all) if c.name in each]
        self.used |= {(c.document.source.name, c.name) for c in found}
        order = {id(c.document): n for n, c in enumerate(found)}
        return tuple(sorted(found, key=lambda c: (order[id(c.document)], -each.index(c.name))))

    def unused(self) -> Iterator[Diagnostic]:
        """Yield a fault for each change of what is not inherited."""
        for change in self.all:
            if (change.document.source.name, change.name) not in self.used:
                text = f"no instruction '{change.name}' is inherited"
                yield fail("E137", text, change.span, "'isamap hw show' lists them")


def changed_model(model: InstructionModel, changes: Iterable[Change]) -> InstructionModel:
    """Return the fields of an instruction after changes.

    A throughput is that of all units, whatever was said of each, and the other way round; a latency
    that of all operands.
    """
    for change in changes:
        fields = change.fields
        if "latency" in fields:
            fields.setdefault("latency_from", {})
        if times(change.model.units):
            fields["throughput"] = None
        elif "throughput" in fields:
            fields.setdefault("units", dict.fromkeys(model.units))
        elif "units" in fields and times(model.units):
            fields["throughput"] = max(times(model.units))
        model = model.model_copy(update=fields)
    return model


def check_change(change: Change, entry: Entry, machine: Machine) -> Iterator[Diagnostic]:
    """Yield what is wrong with a change of an instruction; ``entry`` is what comes out."""
    model = change.model
    if not model.model_fields_set:
        yield fail("E137", f"nothing of '{change.name}' is changed", change.span)
    if model.units is not None:
        yield from check_units(change.document, change.place, model.units, machine)
    yield from check_pace(change.document, change.place, model)
    yield from check_besides(change.document, change.place, model.besides, machine)
    yield from check_latency(change.document, change.place, entry, model.latency_from)
    if model.align:
        yield from check_align(change.document, change.place, entry, machine)
    if model.numeric:
        yield from check_numeric(change.document, change.place, entry)
    if model.emit is not None:
        place = (*change.place, "emit")
        yield from check_template(change.document, place, entry, model.emit, machine.storages)
