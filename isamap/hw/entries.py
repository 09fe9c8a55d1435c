"""The instructions of a description, and of those that it extends."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from fractions import Fraction

from isamap.diagnostics import Collector, HardwareError, IsamapError, Span, fail
from isamap.hw.accelerator import Entry
from isamap.hw.changes import Changes, changed_model, check_change
from isamap.hw.check import (
    Machine,
    check_entry,
    check_pace,
    check_unique,
    check_units,
    parsed_constraints,
)
from isamap.hw.document import Document
from isamap.hw.numeric import numeric_of
from isamap.hw.parameters import fill
from isamap.hw.schema import DescriptionModel, InstructionModel
from isamap.ir.constraint import Constraint
from isamap.ir.nodes import Instruction
from isamap.ir.statements import bind_lengths
from isamap.text.load import parse_instructions

_MAX_INSTRUCTIONS = 20_000
"""Families multiply: a small file could otherwise ask for any number."""


def merge_entries(
    chain: tuple[Document, ...], machine: Machine, collector: Collector
) -> tuple[Entry, ...]:
    """Return the instructions of a chain of descriptions, the nearest one's first.

    The nearest one of a name counts, with what nearer descriptions change of it.  A name that is an
    instruction's own is that one's alone, and not that of others which have it before their types.
    Faults go to the collector; HardwareError if there are too many instructions.
    """
    written = [
        [_instructions(document, index, machine, collector) for index in range(_count(document))]
        for document in chain
    ]
    own_names = {one.name for many in written for each in many for one in each}
    merged: dict[str, Entry] = {}
    lacking: dict[str, Span] = {}
    known = {name for number in range(len(chain)) for name in absent_caches(chain, number)}
    changes = Changes()
    for document, instructions in zip(chain, written, strict=True):
        entries: list[tuple[int, Entry]] = []
        for index, model in enumerate(document.model.instructions):
            place = ("instructions", index)
            collector.extend(check_units(document, place, model.units, machine))
            collector.extend(check_pace(document, place, model))
            for instruction in instructions[index]:
                constraints, faults = parsed_constraints(document, index, model, instruction)
                collector.extend(faults)
                entry = _entry(document.model, model, instruction, machine, constraints)
                collector.extend(check_entry(document, index, entry, machine))
                own = changes.of(_names(entry, own_names))
                if own:
                    other = changed_model(model, own)
                    entry = _entry(document.model, other, instruction, machine, constraints)
                    entry = replace(entry, changed=own[-1].span)
                    for change in own:
                        collector.extend(check_change(change, entry, machine))
                entries.append((index, _filled(entry, document.parameters)))
            if len(merged) + len(entries) > _MAX_INSTRUCTIONS:
                message = f"more than {_MAX_INSTRUCTIONS} instructions"
                span = document.span("instructions", index)
                raise HardwareError(fail("E123", message, span))
        collector.extend(check_unique(entries, document))
        for _, entry in entries:
            left_out = lacking.keys() & _names(entry, own_names)
            known |= left_out
            if not left_out:
                merged.setdefault(entry.name, entry)
        for number, name in enumerate(document.model.without):
            lacking.setdefault(name, document.span("without", number))
        described = {name for _, entry in entries for name in _names(entry, own_names)}
        collector.extend(changes.add(document, described))
    for name in (name for name in lacking if name not in known):
        message = f"no instruction or cache '{name}' is inherited"
        collector.add(fail("E129", message, lacking[name], "'isamap hw show' lists them"))
    collector.extend(changes.unused())
    return tuple(merged.values())


def absent_caches(chain: tuple[Document, ...], number: int) -> tuple[str, ...]:
    """Return the caches of later descriptions of a chain that one's ``without`` names."""
    inherited = {
        name
        for document in chain[number + 1 :]
        for name, model in document.model.storages.items()
        if model.kind == "cache"
    }
    return tuple(name for name in chain[number].model.without if name in inherited)


def _count(document: Document) -> int:
    return len(document.model.instructions)


def _names(entry: Entry, own_names: Collection[str]) -> tuple[str, ...]:
    """Return the names by which a description means an instruction: with its types and without."""
    generic = entry.instruction.generic
    return (entry.name,) if generic is None or generic in own_names else (entry.name, generic)


def _instructions(
    document: Document, index: int, machine: Machine, collector: Collector
) -> tuple[Instruction, ...]:
    scalar = document.scalar("instructions", index, "semantics")
    if scalar.excerpt is None:
        message = "semantics in a style whose lines cannot be told apart"
        collector.add(fail("E110", message, scalar.span, "write it as a block: 'semantics: |'"))
        return ()
    try:
        storages = frozenset(machine.storages)
        found = parse_instructions(scalar.excerpt, storages, document.parameters)
    except IsamapError as error:
        collector.extend(error.diagnostics)
        return ()
    if not found:
        message = "expected 'instruction NAME { ... }', found no instruction"
        collector.add(fail("E118", message, scalar.span))
    return tuple(map(bind_lengths, found))


def _filled(entry: Entry, values: Mapping[str, int]) -> Entry:
    """Return an instruction with the parameters of the description in its templates replaced."""
    if not values:
        return entry
    emit, bypass = (t if t is None else fill(t, values) for t in (entry.emit, entry.bypass))
    return replace(entry, emit=emit, bypass=bypass)


def _entry(
    description: DescriptionModel,
    model: InstructionModel,
    instruction: Instruction,
    machine: Machine,
    constraints: tuple[Constraint, ...],
) -> Entry:
    units: dict[str, Fraction] = {}
    whole = model.throughput or Fraction(1)
    for unit, cycles in model.units.items():
        # Once, however many of its units are this one: the throughput is that of all its work.
        own = machine.merged.get(unit, unit)
        before = units.get(own, Fraction(0)) if cycles is not None else Fraction(0)
        units[own] = before + (cycles or whole) / machine.units.get(own, 1)
    places = (machine.storages.get(o.storage or "") for o in instruction.operands)
    begin = [place.alignment for place in places if place is not None and place.kind == "memory"]
    return Entry(
        instruction=instruction,
        throughput=max(units.values(), default=whole),
        latency=model.latency,
        latency_from=dict(model.latency_from),
        length=model.length,
        besides=dict(model.besides),
        units=units,
        emit=model.emit,
        bypass=model.bypass,
        align=dict(model.align),
        begin=min(begin, default=1),
        states={s: int(v) if v.strip().isdigit() else v for s, v in model.states.items()},
        energy=model.energy,
        area=model.area,
        same=model.same,
        constraints=constraints,
        numeric=numeric_of(model),
        source=model.source or description.source,
        span=instruction.span,
    )
