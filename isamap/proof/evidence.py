"""Everything that is claimed of a mapped kernel, from the data alone; nothing is proved here."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from isamap.hw.accelerator import Accelerator
from isamap.ir.index import Index, product
from isamap.ir.nodes import Kernel, Permissions
from isamap.ir.statements import accesses, bind_extents, zero_based
from isamap.lower.apart import every
from isamap.lower.nodes import Call, LoweredKernel
from isamap.mapping.checks.legal import violations
from isamap.mapping.checks.lemmas import laid_digits, laws_of, mixed_radix, placement_lemmas
from isamap.mapping.checks.on_tile import legal_on_tile
from isamap.mapping.checks.script import Names
from isamap.mapping.compose.composed import conditions_of, parts_of
from isamap.mapping.laws.composite import layout_of
from isamap.mapping.laws.enumerate import components
from isamap.mapping.laws.filler import legal_filling
from isamap.mapping.laws.positions import digits, extent
from isamap.mapping.laws.problem import problem
from isamap.mapping.matching import Mapping, Matching
from isamap.mapping.needles.pattern import bindings
from isamap.mapping.tiles.shared import wholly_shared
from isamap.proof.ahead import faults_ahead
from isamap.proof.assigned import assigned_registers
from isamap.proof.bounds import memory_lemmas
from isamap.proof.claim import CODE, Claim, Decision, Obligation, Open
from isamap.proof.demands import code_demands, mapping_demands
from isamap.proof.fusion import fusion_obligations
from isamap.proof.held import held_claims, held_sizes
from isamap.proof.lent import in_place, lent_claims
from isamap.proof.numbers import float_notes, integer_obligations
from isamap.proof.parallel import parallel_lemmas
from isamap.proof.partition import cuts, partition_lemmas, repeated_claims
from isamap.proof.registers import register_flow
from isamap.proof.rounds import round_obligations
from isamap.proof.walk import UNBOUNDED, Malformed, sites
from isamap.rewrite.rule import Rewriting
from isamap.schedule.schedule import Schedule
from isamap.solver.lemma import Lemma

_POINTS = 1 << 16
"""Iterations of an instruction up to which a mapping is checked on its tile point by point."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A kernel, what it was rewritten to, its schedule (mappings included) and what it became.

    ``mapped`` is ``kernel`` itself where there are no rewritings, else the last one's.
    """

    kernel: Kernel
    rewritings: tuple[Rewriting, ...]
    mapped: Kernel
    machine: Accelerator
    schedule: Schedule
    lowered: LoweredKernel

    @property
    def error(self) -> Fraction | None:
        """The relative error of products that the rules add; None if they add none."""
        return sum((r.error for r in self.rewritings if r.error is not None), Fraction(0)) or None


def obligations(evidence: Evidence) -> tuple[Obligation, ...]:
    """Return all claims in a fixed order; the same evidence gives the same claims."""
    found: list[Obligation] = []
    for rewriting in evidence.rewritings:
        found += [Open(f"rule {rewriting.rule}", lemma) for lemma in rewriting.lemmas]
    bound = bind_extents(evidence.mapped)
    names = subjects(bound)
    shared = in_place(bound, evidence.lowered)
    for at, schedule in enumerate(evidence.schedule.statements):
        mapping, name = schedule.mapping, names[at]
        expected = zero_based(bound.statements[at])
        if mapping.matching.statement != expected:
            text = "the mapping is of another statement than the kernel's"
            found.append(Claim(name, "statement", text, "checker", "refuted"))
            continue
        if schedule.within is None:
            found += mapping_obligations(mapping, bound, name)
            found += mapping_demands(mapping, cuts(schedule), bound.permissions, name)
            found += [Open(name, lemma) for lemma in partition_lemmas(schedule)]
            found += repeated_claims(bound, evidence.schedule, at, name)
        else:
            found += fusion_obligations(shared, evidence.schedule, at)
        if schedule.along is not None:
            found += round_obligations(shared, evidence.schedule, at)
        found += integer_obligations(bound, at, name)
        found += float_notes(mapping.matching, bound.permissions, name)
    for rewriting in evidence.rewritings:
        if rewriting.error is not None:
            subject = f"rule {rewriting.rule}"
            found.append(Claim(subject, "floats", rewriting.note, "none", "noted"))
    found += _code(evidence, bound)
    found += _assumptions(evidence)
    return tuple(found)


def subjects(kernel: Kernel) -> tuple[str, ...]:
    """Return a name for each statement: its target, numbered where there are several."""
    targets = [s.target.buffer for s in kernel.statements]
    return tuple(
        name if targets.count(name) == 1 else f"{name}#{targets[: i + 1].count(name)}"
        for i, name in enumerate(targets)
    )


# --- a matching ---------------------------------------------------------------------------------
def mapping_obligations(mapping: Mapping, kernel: Kernel, name: str) -> Iterator[Obligation]:
    """Yield the laws: by ranks, by the solver, and on the tile."""
    matching = mapping.matching
    text = f"with its operands bound so, {matching.needle.name} has the statement's body"
    yield Claim(name, "operands", text, "checker", _decided(_has_body(matching)))
    broken = violations(matching, kernel.permissions)
    told = "; ".join(v.message for v in broken)
    text = f"{matching.needle.name} computes the statement by the four laws"
    yield Claim(name, "laws", text, "checker", _decided(not broken), detail=told)
    yield from (Open(name, lemma) for lemma in _laws(matching, kernel.permissions))
    yield Open(name, mixed_radix())
    for condition in conditions_of(matching.needle):
        yield Open(name, condition.lemma)
    yield from _tile(mapping, kernel, name)


def _has_body(matching: Matching) -> bool:
    """Return whether the body is the needle's with what its operands stand for in their places."""
    needle, given = matching.needle, dict(matching.operands)
    held = {access.buffer: literal for access, literal in needle.fixed}
    readings = bindings(needle.value, matching.statement.value)
    return any({**reading, **held} == given for reading in readings)


def _laws(matching: Matching, permissions: Permissions) -> Iterator[Lemma]:
    """Yield the laws as lemmas, for each component of variables; none of what is no placement."""
    whole = problem(matching.statement, matching.needle, matching.operands, permissions)
    filling = legal_filling(whole, matching) or whole.fillings[0]
    shown = tuple(map(matching.needle.shown, whole.operands))
    if whole.seen:
        layout = layout_of(whole, matching.placements)
        if layout is not None:
            names = Names(whole.variables, shown)
            yield from laws_of(laid_digits(whole.local(filling), layout), names)
        return
    placed = whole.placed(matching.placements)
    if placed is None:
        return
    for component in components(whole.local(filling)):
        own = {form: n for n, form in enumerate(component.forms)}
        part = frozenset((own[f], axis) for f, axis in placed if f in own)
        names = Names(tuple(whole.variables[v] for v in component.variables), shown)
        yield from placement_lemmas(component.local, part, names)


def _tile(mapping: Mapping, kernel: Kernel, name: str) -> Iterator[Claim]:
    """Yield that the axes have room for the digits of the tile."""
    matching = mapping.matching
    inner = matching.inner
    tile = [mapping.tile.get(v, 1) for v in inner]
    on_axes = digits(matching, mapping.tile)
    full = [a.name for a in matching.needle.axes if extent(on_axes[a.name]) > a.extent]
    sizes = ", ".join(f"{v}={t}" for v, t in zip(inner, tile, strict=True)) or "1"
    text = f"the tile {sizes} fits the axes of {matching.needle.name}"
    yield Claim(name, "tile", text, "checker", _decided(not full), detail=", ".join(full))
    extents = {v.name: v.extent.constant for v in matching.statement.variables}
    if matching.needle.places and (whole := sorted(wholly_shared(matching))):
        cut = [v for v in whole if mapping.tile.get(v, 1) != extents[v]]
        told = ", ".join(whole)
        text = f"a tile has all iterations of {told}, in which places of one operand differ"
        yield Claim(name, "tile", text, "checker", _decided(not cut), detail=", ".join(cut))
    points = prod(axis.extent for axis in matching.needle.axes)
    if not full and points <= _POINTS and prod(tile) <= _POINTS:
        legal = legal_on_tile(matching, dict(mapping.tile), kernel.permissions)
        text = f"the four laws hold on this tile, iteration by iteration ({points} of them)"
        yield Claim(name, "tile", text, "checker", _decided(legal))


def _decided(holds: bool) -> Decision:
    return "proved" if holds else "refuted"


# --- the code -----------------------------------------------------------------------------------
def _code(evidence: Evidence, bound: Kernel) -> Iterator[Obligation]:
    machine, lowered = evidence.machine, evidence.lowered
    held = held_sizes(bound, evidence.schedule)
    yield _arrays(bound, lowered, held)
    try:
        found = tuple(sites(lowered))
        memory = memory_lemmas(bound, machine, lowered, found)
        parallel = parallel_lemmas(bound, machine, lowered, found)
    except Malformed as fault:
        yield Claim(
            CODE, "names", "every name has one meaning", "checker", "refuted", "", str(fault)
        )
        return
    yield from lent_claims(bound, evidence.schedule, lowered)
    yield from held_claims(bound, lowered, held, found, {e.name: e for e in machine.entries})
    for lemma in (*memory, *parallel):
        if lemma.script.startswith(UNBOUNDED):
            detail = "indices that arrays hold are looked at before each call"
            yield Claim(CODE, lemma.name, lemma.claim, "none", "assumed", detail=detail)
        else:
            yield Open(CODE, lemma)
    needles = [s.mapping.matching.needle for s in evidence.schedule.statements]
    mapped = frozenset(name for needle in needles for name in parts_of(needle))
    yield from code_demands(bound, machine, lowered, found, mapped)
    if lowered.prepare or lowered.prepared:
        yield _ahead(machine, lowered)
    flow = register_flow(machine, lowered)
    text = f"each of {flow.reads} register operands has a value when it is read"
    verdict = _decided(not flow.faults)
    if flow.undecided and not flow.faults:
        verdict = "unknown"
    told = "; ".join((*flow.faults, *flow.undecided)[:3])
    yield Claim(CODE, "registers", text, "data flow", verdict, detail=told)
    yield from _assigned(machine, lowered)


def _assigned(machine: Accelerator, lowered: LoweredKernel) -> Iterator[Claim]:
    """Yield that fragments which are needed at one time are not in one register."""
    found = assigned_registers(machine, lowered)
    if not found.fragments and not found.faults:
        return
    text = f"what {found.fragments} fragments in numbered registers hold is theirs when it is read"
    told = "; ".join(found.faults[:3])
    yield Claim(CODE, "numbers", text, "data flow", _decided(not found.faults), detail=told)


def _arrays(kernel: Kernel, lowered: LoweredKernel, held: dict[str, Index]) -> Claim:
    """Return that the code is one for the kernel's buffers and symbols.

    A local buffer of which a round has its own elements may have these only (``held``).
    """
    wrong = [] if kernel.symbols == lowered.symbols else ["other symbols"]
    arrays = {array.name: array for array in lowered.arrays}
    for b in kernel.buffers:
        found = arrays.get(b.name)
        size = product(b.shape)
        roles = (b.role, "prepared") if b.role == "local" else (b.role,)
        sizes = {size, held.get(b.name, size)}
        expected = (b.dtype, b.contents)
        if found is None and b.role == "local":
            continue  # It never leaves registers, or a node names it that is not there.
        if (
            found is None
            or (found.dtype, found.contents) != expected
            or found.size not in sizes
            or found.role not in roles
        ):
            wrong.append(b.name)
    names = {b.name for b in kernel.buffers}
    own = [a.name for a in lowered.arrays if a.role in ("local", "prepared", "table")]
    wrong += [name for name in arrays if name not in names and name not in own]
    text = "the arrays of the code are the kernel's buffers"
    return Claim(CODE, "arrays", text, "checker", _decided(not wrong), detail=", ".join(wrong))


def _ahead(machine: Accelerator, lowered: LoweredKernel) -> Claim:
    """Return that what is prepared holds for all calls with the same constants."""
    faults = faults_ahead(machine, lowered)
    names = ", ".join(a.name for a in lowered.prepared) or "nothing"
    text = f"{names} depends on constants only, and no call changes it"
    return Claim(CODE, "prepared", text, "checker", _decided(not faults), detail="; ".join(faults))


def used_instructions(evidence: Evidence) -> tuple[str, ...]:
    """Return the names of all instructions of the mappings and of the code, sorted."""
    needles = [s.mapping.matching.needle for s in evidence.schedule.statements]
    names = {name for needle in needles for name in parts_of(needle)}
    names |= {n.instruction for n in every(evidence.lowered.code) if isinstance(n, Call)}
    return tuple(sorted(names))


def _assumptions(evidence: Evidence) -> Iterator[Claim]:
    kernel = evidence.kernel
    if kernel.symbols:
        verb = "is" if len(kernel.symbols) == 1 else "are"
        text = f"{', '.join(kernel.symbols)} {verb} at least 1"
        yield Claim(CODE, "inputs", text, "none", "assumed")
    ranged = [b.name for b in kernel.buffers if b.values is not None and b.role != "out"]
    if ranged:
        text = f"elements of {', '.join(ranged)} are in their declared ranges"
        yield Claim(CODE, "inputs", text, "none", "assumed")
    held = sorted(
        {
            read.buffer
            for statement in kernel.statements
            for access in (statement.target, *accesses(statement.value))
            for index in access.indices
            for read in index.reads
        }
    )
    if held:
        text = f"elements of {', '.join(held)} that serve as indices are in bounds"
        detail = "they are looked at before each call"
        yield Claim(CODE, "inputs", text, "none", "assumed", detail=detail)
    used = used_instructions(evidence)
    aligned = any(e.align for e in evidence.machine.entries if e.name in used)
    text = "arrays have the sizes of their shapes"
    text += " and begin at aligned addresses" if aligned else ""
    yield Claim(CODE, "inputs", text, "none", "assumed")
    text = f"{evidence.machine.name} does what its description says of {len(used)} instructions"
    yield Claim(CODE, "machine", text, "none", "assumed")
