"""A first look at what each instruction has to do with a statement, before changes are tried."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from isamap.explain.closed import closed, unplaced
from isamap.explain.compositions import reasons as unknown
from isamap.explain.explanation import Reason
from isamap.explain.near import Near, nearest, part
from isamap.explain.rewriting import Rewritten, by_composition, by_instruction, is_proved
from isamap.explain.verify import Bench
from isamap.hw.accelerator import Entry
from isamap.ir.nodes import Access, Kernel, Statement
from isamap.ir.printer import print_expr
from isamap.ir.statements import bind_extents, reduces, zero_based
from isamap.lower.grouping import group_mappings, group_reasons
from isamap.mapping.compose.composed import takes_part
from isamap.mapping.compose.conditions import Refused
from isamap.mapping.find import composed_for
from isamap.mapping.groups import Group, groups
from isamap.mapping.matching import Enumeration, Needle
from isamap.mapping.needles.needles import covered
from isamap.mapping.needles.readings import written_like

FAR = 50
"""The distance of an instruction that is not considered at all."""


def _distance(near: Near) -> int:
    """Return how far an instruction is: its differences, and that they change the result."""
    return near.cost + (near.effect == "different")


@dataclass(frozen=True, slots=True)
class Look:
    """What a first look at an instruction finds."""

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
class Looker:
    """Looks at instructions for one statement of a kernel."""

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

    def compositions(self, instruction: str | None) -> Iterator[Look]:
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
                yield Look(needle.entry, "matches", 0, found=mapped)
            elif refused:
                reasons = unknown(self.kernel, self.number, refused)
                yield Look(needle.entry, "differs", 1, reasons, refused=refused)
            else:
                reasons = unplaced(self.bound, needle, operands, self.kernel.permissions)
                yield Look(needle.entry, "differs", 1, reasons)
        yield from self.sequences(instruction, frozenset(named))

    def sequences(self, instruction: str | None, direct: frozenset[str]) -> Iterator[Look]:
        """Yield looks at compositions that compute the statement once it is rewritten."""
        after = by_composition(self.kernel, self.number, self.bench.index)
        ways: dict[str, list[Rewritten]] = {}
        fitting: dict[str, Needle] = {}
        refused: dict[str, tuple[Rewritten, Refused]] = {}
        for one in after:
            for needle, _ in one.found.roots:
                fitting[needle.name] = needle
                ways.setdefault(needle.name, []).append(one.rewritten)
            for other in one.found.refused:
                fitting.setdefault(other.instruction, other.needle)
                refused.setdefault(other.instruction, (one.rewritten, other))
        for name, needle in fitting.items():
            if name in direct or not (instruction is None or takes_part(needle, instruction)):
                continue
            entry = needle.entry
            done = self.bench.rewritten(self.kernel, self.number, entry, ways.get(name, ()))
            if done is not None:
                yield Look(entry, "rewritten", 1, found=done[1], rewritten=done[0])
            elif name in refused and is_proved(refused[name][0]):
                before, fault = refused[name]
                reasons = unknown(self.kernel, self.number, (fault,), before)
                yield Look(entry, "differs", 2, reasons, rewritten=before, refused=(fault,))

    def look(self, entry: Entry) -> Look:
        """Return how near an instruction comes."""
        found = self.bench.match(self.kernel, self.number, entry)
        if found.mappings:
            return Look(entry, "matches", 0, found=found)
        index = self.bench.alone(entry)
        for group, found in group_mappings(self.kernel, index):
            if group in self.groups:
                return Look(entry, "matches", 0, found=found, group=group)
        ways = self.rewritten.get(entry.name, ())
        after = self.bench.rewritten(self.kernel, self.number, entry, ways)
        if after is not None:
            return Look(entry, "rewritten", 1, found=after[1], rewritten=after[0])
        readings = index.readings(entry)
        if not readings.needles:
            verdict = "moves" if readings.moves else "differs"
            reason = Reason("reading", readings.reason, self.written.span, entry.span)
            return Look(entry, verdict, FAR + (verdict == "moves"), (reason,))
        near = nearest(self.written, written_like(self.written, entry, readings))
        whole, chosen = self._grouped(readings.needles, near)
        if chosen is not None:
            return Look(entry, "differs", _distance(whole), whole.reasons, (whole,), group=chosen)
        inner = part(self.written, readings.needles)
        if inner is not None and near[0].cost > 0:
            text = f"it computes {print_expr(inner)}, a part of the statement: other "
            text += "instructions may take its result"
            reason = Reason("part", text, inner.span, entry.instruction.statements[0].span)
            return Look(entry, "part", min(_distance(near[0]), 2), (reason,), near)
        copied = near[0].cost == 0 and isinstance(self.written.value, Access)
        if not copied and not any(covered(n) for n in readings.needles):
            return Look(entry, "moves", FAR + 1, near[0].reasons, near)
        if near[0].cost == 0:
            reasons = closed(self.bound, near[0].needle, index, self.kernel.permissions)
            return Look(entry, "differs", 1, reasons, near)
        return Look(entry, "differs", _distance(near[0]), near[0].reasons, near)

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
