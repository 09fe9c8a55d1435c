"""Explaining a kernel on a machine: every instruction, the nearest first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from isamap.explain.changes import (
    approximated,
    declared,
    gathered,
    permitted,
    rewritten,
    shortened,
    sized,
    transposed,
)
from isamap.explain.closed import closed, unplaced
from isamap.explain.compositions import narrowed
from isamap.explain.compositions import reasons as unknown
from isamap.explain.correspond import correspondence
from isamap.explain.explanation import Explanation, Reason, StatementExplanation
from isamap.explain.near import Near, nearest, part
from isamap.explain.rewriting import Rewritten, by_instruction
from isamap.explain.verify import Bench, Candidate
from isamap.hw.accelerator import Accelerator, Entry
from isamap.ir.nodes import Access, Kernel, Statement
from isamap.ir.printer import print_expr
from isamap.ir.statements import bind_extents, reduces, zero_based
from isamap.lower.grouping import group_mappings, group_reasons
from isamap.mapping.composed import takes_part
from isamap.mapping.conditions import Refused
from isamap.mapping.find import composed_for
from isamap.mapping.groups import Group, grouped, groups
from isamap.mapping.matching import Enumeration, Mapping, Needle
from isamap.mapping.needles import covered, needles
from isamap.mapping.produce import Producers
from isamap.pipeline.mapped import only_instruction
from isamap.pipeline.result import statement_names

MATCHING, DIFFERING = 3, 4
"""Instructions that compute a statement, and that do not, which are told unless all are."""

POOR = 0.5
"""A utilisation from which on downwards a change is looked for."""

BETTER = 1.5
"""How many times as much a change must do to be worth telling."""

WAYS = 4
"""Sets of differences of one instruction that are turned into changes."""

FAR = 50
"""The distance of an instruction that is not considered at all."""


def explain(
    kernel: Kernel,
    machine: Accelerator,
    instruction: str | None = None,
    everything: bool = False,
) -> tuple[StatementExplanation, ...]:
    """Explain for each statement of a kernel what each instruction has to do with it.

    With ``instruction`` only that one (or each instantiation of that generic one) is looked at, and
    the compositions in which it takes part;
    otherwise those that compute something, the nearest first, and unless ``everything`` only a
    few.  Every change that is told was carried out, read back and matched.
    ArgumentsError if the machine has no such instruction.
    """
    chosen = only_instruction(machine, instruction) if instruction else machine
    bench = Bench(machine, Producers(machine), needles(machine))
    few = not everything and not instruction
    return tuple(
        _Explainer(kernel, number, bench).statement(name, chosen.entries, few, instruction)
        for number, name in enumerate(statement_names(kernel))
    )


def _distance(near: Near) -> int:
    """Return how far an instruction is: its differences, and that they change the result."""
    return near.cost + (near.effect == "different")


@dataclass(frozen=True, slots=True)
class _Look:
    """What a first look at an instruction finds, before changes are tried."""

    entry: Entry
    verdict: str
    distance: int
    reasons: tuple[Reason, ...] = ()
    near: tuple[Near, ...] = ()
    found: Enumeration | None = None
    rewritten: Rewritten | None = None
    group: Group | None = None
    refused: tuple[Refused, ...] = ()

    @property
    def order(self) -> tuple[float, float, float]:
        """Nearest first; of those that match the one that does most of the statement, fastest."""
        if self.found is None or not self.found.mappings:
            needles = [*(n.needle for n in self.near), *(one.needle for one in self.refused)]
            done = covered(needles[0]) if needles else 0
            return self.distance + 1, -float(done), 0.0
        best = self.found.mappings[0]
        pace = best.utilisation / float(self.entry.throughput or 1)
        for axis in best.matching.needle.axes:
            pace *= axis.extent
        return float(self.distance), -float(covered(best.matching.needle)), -pace


@dataclass(slots=True)
class _Explainer:
    kernel: Kernel
    number: int
    bench: Bench
    written: Statement = field(init=False)
    bound: Statement = field(init=False)
    rewritten: dict[str, tuple[Rewritten, ...]] = field(init=False)
    groups: tuple[Group, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.written = self.kernel.statements[self.number]
        self.bound = zero_based(bind_extents(self.kernel).statements[self.number])
        self.groups = tuple(
            group
            for group in groups(self.kernel)
            if group.first <= self.number < group.first + group.count
        )
        self.rewritten = by_instruction(self.kernel, self.number, self.bench.index)

    def statement(
        self, name: str, entries: Sequence[Entry], few: bool, instruction: str | None
    ) -> StatementExplanation:
        every = [*map(self.look, entries), *self.compositions(instruction)]
        looks = sorted(every, key=lambda look: look.order)
        if instruction is None:
            looks = [look for look in looks if look.verdict != "moves"]
        groups: dict[object, list[_Look]] = {}
        for look in looks:
            generic = look.entry.instruction.generic or look.entry.name
            key = look.entry.name if instruction else (generic, look.verdict)
            groups.setdefault(key, []).append(look)
        kept = list(groups.values())
        if few:
            matching = [g for g in kept if g[0].found is not None]
            differing = [g for g in kept if g[0].found is None]
            kept = [*matching[:MATCHING], *differing[:DIFFERING]]
        told = tuple(
            replace(self.whole(group[0]), alike=tuple(g.entry.name for g in group[1:]))
            for group in kept
        )
        return StatementExplanation(name, self.written, told, len(groups) - len(kept))

    def compositions(self, instruction: str | None) -> Iterator[_Look]:
        """Yield looks at the machine's compositions, with one instruction as a part if given."""
        found = composed_for(self.kernel, self.number, self.bench.index)
        roots = [*found.roots, *((one.needle, one.operands) for one in found.refused)]
        named = {
            needle.name: (needle, operands)
            for needle, operands in reversed(roots)
            if instruction is None or takes_part(needle, instruction)
        }
        for name, (needle, operands) in named.items():
            refused = tuple(one for one in found.refused if one.instruction == name)
            mapped = self.bench.composed(self.kernel, found, name)
            if mapped.mappings:
                yield _Look(needle.entry, "matches", 0, found=mapped)
            elif refused:
                reasons = unknown(self.kernel, self.number, refused)
                yield _Look(needle.entry, "differs", 1, reasons, refused=refused)
            else:
                reasons = unplaced(self.bound, needle, operands, self.kernel.permissions)
                yield _Look(needle.entry, "differs", 1, reasons)

    def look(self, entry: Entry) -> _Look:
        """Return how near an instruction comes."""
        found = self.bench.match(self.kernel, self.number, entry)
        if found.mappings:
            return _Look(entry, "matches", 0, found=found)
        index = self.bench.alone(entry)
        for group, found in group_mappings(self.kernel, index):
            if group in self.groups:
                return _Look(entry, "matches", 0, found=found, group=group)
        after = self.bench.rewritten(self.kernel, self.number, entry, self.rewritten)
        if after is not None:
            return _Look(entry, "rewritten", 1, found=after[1], rewritten=after[0])
        readings = index.readings(entry)
        if not readings.needles:
            verdict = "moves" if readings.moves else "differs"
            reason = Reason("reading", readings.reason, self.written.span, entry.span)
            return _Look(entry, verdict, FAR + (verdict == "moves"), (reason,))
        near = nearest(self.written, readings.needles)
        whole, chosen = self._grouped(readings.needles, near)
        if chosen is not None:
            return _Look(entry, "differs", _distance(whole), whole.reasons, (whole,), group=chosen)
        inner = part(self.written, readings.needles)
        if inner is not None and near[0].cost > 0:
            text = f"it computes {print_expr(inner)}, a part of the statement: other "
            text += "instructions may take its result"
            reason = Reason("part", text, inner.span, entry.instruction.statements[0].span)
            return _Look(entry, "part", min(_distance(near[0]), 2), (reason,), near)
        copied = near[0].cost == 0 and isinstance(self.written.value, Access)
        if not copied and not any(covered(n) for n in readings.needles):
            return _Look(entry, "moves", FAR + 1, near[0].reasons, near)
        if near[0].cost == 0:
            reasons = closed(self.bound, near[0].needle, index, self.kernel.permissions)
            return _Look(entry, "differs", 1, reasons, near)
        return _Look(entry, "differs", _distance(near[0]), near[0].reasons, near)

    def _grouped(self, given: Sequence[Needle], alone: Sequence[Near]) -> tuple[Near, Group | None]:
        """Return the statements which an instruction comes nearer to than to the one alone."""
        best, chosen = alone[0], None
        for group in self.groups:
            if group.count > 1 or reduces(group.statement.value):
                near = nearest(group.statement, given)[0]
                better = covered(near.needle) - near.cost > covered(best.needle) - best.cost
                if near.cost <= best.cost and better:
                    best, chosen = near, group
        if chosen is not None and best.cost == 0:
            reasons = group_reasons(self.kernel, self.bench.index, self.number)
            own = [r for r in reasons if r.startswith(f"{best.needle.name}: ")]
            texts = [r.partition(": ")[2] for r in own] or ["no placement of its axes holds it"]
            told = tuple(
                Reason("extent", text, self.written.span, best.needle.entry.span) for text in texts
            )
            best = replace(best, reasons=told)
        return best, chosen

    def _names(self, group: Group | None) -> tuple[str, ...]:
        if group is None or group.count < 2:
            return ()
        return statement_names(self.kernel)[group.first : group.first + group.count]

    def whole(self, look: _Look) -> Explanation:
        """Return the whole explanation: changes tried, correspondence drawn."""
        entry = look.entry
        together = self._names(look.group)
        if look.found is not None:
            return replace(self.matching(look, look.found), together=together)
        fits = bool(look.near) and look.near[0].cost == 0
        changes = self.bench.first(self.kernel, self._repairs(look), entry, needs_code=fits)
        verdict = look.verdict
        if verdict == "part":  # It is of use as it is.
            changes = tuple(c for c in changes if c.effect != "different")
        assert verdict in ("part", "differs", "moves")
        reasons = look.reasons
        if changes and verdict == "differs" and not fits:
            reasons = changes[0].reasons  # The smallest set that was found to be enough.
        return Explanation(entry, verdict, look.distance, reasons, None, changes, together=together)  # type: ignore[arg-type]

    def matching(self, look: _Look, found: Enumeration) -> Explanation:
        """Return the correspondence of an instruction that computes the statement."""
        entry = look.entry
        drawn = correspondence(found, self.kernel.permissions)
        if look.rewritten is not None:
            rewritings = look.rewritten.rewritings
            return Explanation(entry, "rewritten", 1, (), drawn, rewriting=rewritings)
        if look.group is not None:
            lacking = self.bench.out_of_reach(
                grouped(self.kernel, (look.group,)), look.group.first, found
            )
        else:
            lacking = self.bench.out_of_reach(self.kernel, self.number, found)
        if lacking:
            reason = Reason("lowering", lacking, self.written.span, entry.span)
            candidates = self._layouts(drawn.mapping)
            changes = self.bench.first(self.kernel, candidates, entry, needs_code=True)
            return Explanation(entry, "unreachable", 1, (reason,), drawn, changes)
        used = drawn.mapping.utilisation
        changes = ()
        if used <= POOR and look.group is None:
            candidates = self._improvements(drawn.mapping)
            changes = self.bench.first(self.kernel, candidates, entry, BETTER * used, 1)
        return Explanation(entry, "matches", 0, (), drawn, changes)

    def _repairs(self, look: _Look) -> Iterator[tuple[Candidate, ...]]:
        """Yield changes under which an instruction that differs may match, the nearest first.

        Each with what it may need besides, in the order in which that is tried.
        """
        for one in look.refused:
            for candidate in narrowed(self.kernel, self.number, one):
                yield (candidate,)
        if look.group is not None:
            # Where it differs from several statements together no change is known.
            if look.near[0].cost == 0:
                axes = [axis.extent for axis in look.near[0].needle.axes]
                for candidate in shortened(self.kernel, look.group, axes):
                    yield (candidate,)
            return
        for near in look.near[:WAYS]:
            if near.cost == 0:
                yield tuple(permitted(Candidate("", "same", self.kernel, self.number)))
                continue
            for candidate in declared(self.kernel, self.number, near):
                yield (candidate,)
            yield tuple(approximated(self.kernel, near, self.number))
            for candidate in rewritten(self.kernel, self.number, near):
                yield (candidate, *permitted(candidate))

    def _layouts(self, mapping: Mapping) -> Iterator[tuple[Candidate, ...]]:
        """Yield changes under which operands of an instruction may be brought to it."""
        for candidate in transposed(self.kernel, self.number):
            yield (candidate,)
        axes = [axis.extent for axis in mapping.matching.needle.axes]
        for candidate in sized(self.kernel, self.number, axes):
            yield (candidate,)

    def _improvements(self, mapping: Mapping) -> Iterator[tuple[Candidate, ...]]:
        """Yield changes under which an instruction that matches may do more at once."""
        yield tuple(permitted(Candidate("", "same", self.kernel, self.number)))
        inner = mapping.matching.inner
        outer = [v.name for v in self.written.variables if v.name not in inner]
        yield tuple(gathered(self.kernel, self.number, outer))
        axes = [axis.extent for axis in mapping.matching.needle.axes]
        yield tuple(sized(self.kernel, self.number, axes))
