"""Claims about memory: every access in its array, every operand aligned, every extent in range.

Touches that differ by a constant only are one claim about the least and the greatest of them, so
that a block of unrolled instructions costs no more than one.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from isamap.hw.accelerator import Accelerator, Entry
from isamap.ir.index import Index, const
from isamap.ir.nodes import Kernel
from isamap.lower.nodes import Call, LoweredKernel, Window
from isamap.proof.touched import Touch, bound_symbols, touches
from isamap.proof.walk import Context, Site, Terms, conjunction, disjunction, number
from isamap.solver.lemma import Lemma

CASES = 12
"""Cases of a claim in one script; its other cases are lemmas of the same name and claim."""


def memory_lemmas(
    kernel: Kernel, machine: Accelerator, lowered: LoweredKernel, found: Iterable[Site]
) -> tuple[Lemma, ...]:
    """Return the claims about memory of all sites: one for each array, and for what is aligned.

    They hold for all values of the loop counters and of the symbols, which are at least 1.
    """
    found = tuple(found)
    entries = {entry.name: entry for entry in machine.entries}
    lemmas = list(_bounds(lowered, kernel, found, entries))
    lemmas += _alignment(lowered, kernel, found, entries)
    lemmas += _extents(lowered, kernel, found, entries)
    return tuple(lemmas)


# --- bounds -------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Group:
    """Touches at ``address`` and some constants more, from the least to the greatest of them."""

    address: Index
    context: Context


def _bounds(
    lowered: LoweredKernel,
    kernel: Kernel,
    found: tuple[Site, ...],
    entries: Mapping[str, Entry],
) -> Iterator[Lemma]:
    groups: dict[str, dict[_Group, tuple[int, int]]] = {a.name: {} for a in lowered.arrays}
    for site in found:
        for touch in touches(site, entries):
            key, low, high = _grouped(touch)
            known = groups[touch.array].get(key, (low, high))
            groups[touch.array][key] = min(known[0], low), max(known[1], high)
    for array in lowered.arrays:
        if not groups[array.name]:
            continue
        terms = Terms(lowered.symbols, kernel)
        size = terms.term(array.size)
        cases = []
        for key, (low, high) in groups[array.name].items():
            address = terms.term(key.address)
            outside = f"(or (< (+ {address} {number(low)}) 0) (>= (+ {address} {high}) {size}))"
            cases.append(conjunction([*terms.context(key.context), outside]))
        claim = f"every access to {array.name} lies within its {array.size} elements"
        yield from in_parts("bounds", claim, cases, terms, lowered)


def _grouped(touch: Touch) -> tuple[_Group, int, int]:
    """Return a touch without its constant, and without counters that only add a constant range."""
    address, context = touch.address, touch.context
    low = high = 0
    used = frozenset().union(*(c.names for c in context.conditions))
    used |= frozenset().union(*(c.names for failed in context.failed for c in failed))
    used |= frozenset().union(*(count.names for _, count in context.counters))
    kept = []
    for name, count in context.counters:
        step, last = address.coefficient(name).constant, count.constant
        plain = address.is_linear_in((name,)) and step is not None and name not in used
        if plain and last is not None and last >= 1 and step is not None:
            address = address.substitute({name: 0})
            low, high = low + min(0, step * (last - 1)), high + max(0, step * (last - 1))
        else:
            kept.append((name, count))
    offset = address.offset
    group = _Group(address - offset, replace(context, counters=tuple(kept)))
    return group, offset + low, offset + high


# --- alignment and extents ----------------------------------------------------------------------
def _alignment(
    lowered: LoweredKernel,
    kernel: Kernel,
    found: tuple[Site, ...],
    entries: Mapping[str, Entry],
) -> Iterator[Lemma]:
    terms = Terms(lowered.symbols, kernel)
    cases: dict[str, None] = {}
    names: dict[str, None] = {}
    for site in found:
        if not isinstance(site.node, Call):
            continue
        entry = entries[site.node.instruction]
        for name, place in site.node.operands:
            step = entry.align.get(name, 1) // entry.instruction.operand(name).dtype.bytes
            if isinstance(place, Window) and step > 1:
                rest = place.offset % step
                context = site.context
                broken = f"(not (= {terms.term(rest)} 0))"
                cases.setdefault(conjunction([*terms.context(context), broken]))
                names.setdefault(entry.name)
    if cases:
        claim = f"operands of {', '.join(names)} begin at elements of their alignment"
        yield from in_parts("alignment", claim, [*cases], terms, lowered)


def _extents(
    lowered: LoweredKernel,
    kernel: Kernel,
    found: tuple[Site, ...],
    entries: Mapping[str, Entry],
) -> Iterator[Lemma]:
    terms = Terms(lowered.symbols, kernel)
    cases: dict[str, None] = {}
    names: dict[str, None] = {}
    for site in found:
        if not isinstance(site.node, Call):
            continue
        entry = entries[site.node.instruction]
        values = bound_symbols(site.node, entry)
        for extent in entry.instruction.extents:
            if extent.range is None:
                continue
            low, end = extent.range
            value = values.get(extent.name, const(low - 1))  # none at all is out of range
            broken = f"(or (< {terms.term(value)} {low}) (>= {terms.term(value)} {end}))"
            cases.setdefault(conjunction([*terms.context(site.context), broken]))
            names.setdefault(f"{extent.name} of {entry.name}")
    if cases:
        claim = f"{', '.join(names)} is in its range"
        yield from in_parts("extents", claim, [*cases], terms, lowered)


def in_parts(
    name: str, claim: str, cases: list[str], terms: Terms, lowered: LoweredKernel
) -> Iterator[Lemma]:
    """Yield a claim as lemmas of a few cases each: many products at once are hard to decide."""
    for at in range(0, len(cases), CASES):
        script = terms.script(disjunction(cases[at : at + CASES]), lowered.requires)
        yield Lemma(name, claim, script)
