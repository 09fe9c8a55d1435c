"""Explaining a kernel on a machine: every instruction, the nearest first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from isamap.explain.changes import (
    approximated,
    declared,
    permitted,
    rewritten,
    shortened,
    sized,
    transposed,
)
from isamap.explain.compositions import narrowed
from isamap.explain.copies import gathered, staged
from isamap.explain.correspond import correspondence
from isamap.explain.explanation import POOR, Explanation, Reason, StatementExplanation
from isamap.explain.look import Look, Looker
from isamap.explain.scatter import scattered
from isamap.explain.tabled import tabled
from isamap.explain.verify import Bench, Candidate
from isamap.hw.accelerator import Accelerator, Entry
from isamap.ir.nodes import Kernel, Statement
from isamap.ir.statements import statement_names
from isamap.mapping.fragments.produce import producers_of
from isamap.mapping.groups import Group, grouped
from isamap.mapping.matching import Enumeration, Mapping, Needle
from isamap.mapping.needles.needles import needles
from isamap.pipeline.mapped import only_instruction
from isamap.pipeline.started import Started, started

MATCHING, DIFFERING = 3, 4
"""Instructions that compute a statement, and that do not, which are told unless all are."""

BETTER = 1.5
"""How many times as much a change must do to be worth telling."""

WAYS = 4
"""Sets of differences of one instruction that are turned into changes."""


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
    bench = Bench(machine, producers_of(machine), needles(machine))
    few = not everything and not instruction
    return tuple(
        _Explainer(Looker(kernel, number, bench)).statement(name, chosen.entries, few, instruction)
        for number, name in enumerate(statement_names(kernel))
    )


def explain_started(
    kernel: Kernel,
    machine: Accelerator,
    instruction: str | None = None,
    everything: bool = False,
) -> tuple[Started, tuple[StatementExplanation, ...]]:
    """Explain a kernel as it is mapped: without statements that only start a reduction.

    With such a start last if only then every statement is computed.  See :func:`explain`.
    """
    kernels = started(kernel, None)
    first = explain(kernels[0].kernel, machine, instruction, everything)
    if not all(one.maps for one in first):
        for other in kernels[1:]:
            found = explain(other.kernel, machine, instruction, everything)
            if all(one.maps for one in found):
                return other, found
    return kernels[0], first


def _told(found: Sequence[Explanation]) -> tuple[Explanation, ...]:
    """Return what is worth telling: of instructions that differ those first that a change helps.

    Where something computes the statement the others are left out: that a change of the result
    would help them is of no use.
    """
    computed = any(one.verdict in ("matches", "rewritten") for one in found)
    ranked = sorted(found, key=_help)
    return tuple(one for one in ranked if not computed or not _help(one))


def _help(one: Explanation) -> int:
    """Return 0 if an instruction computes the statement or a harmless change helps it, 1 if code
    is lacking even so, and more if none helps.
    """
    if one.verdict != "differs":
        return 0
    if not one.changes:
        return 3
    change = one.changes[0]
    return 2 if change.effect == "different" else int(bool(change.rest))


@dataclass(frozen=True, slots=True)
class _Explainer:
    looker: Looker

    @property
    def kernel(self) -> Kernel:
        return self.looker.kernel

    @property
    def number(self) -> int:
        return self.looker.number

    @property
    def written(self) -> Statement:
        return self.looker.written

    @property
    def bench(self) -> Bench:
        return self.looker.bench

    def statement(
        self, name: str, entries: Sequence[Entry], few: bool, instruction: str | None
    ) -> StatementExplanation:
        composed = tuple(self.looker.compositions(instruction))
        # An instruction that is defined for some values only is a composition of one.
        alone = {look.entry.name for look in composed}
        every = [*(self.looker.look(e) for e in entries if e.name not in alone), *composed]
        looks = sorted(every, key=lambda look: look.order)
        if instruction is None:
            looks = [look for look in looks if look.verdict != "moves"]
        groups: dict[object, list[Look]] = {}
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
        if few:
            if all(map(_help, told)):
                told = (*told, *self._helping(list(groups.values()), told))
            told = _told(told)
        return StatementExplanation(name, self.written, told, len(groups) - len(told))

    def _helping(
        self, groups: Sequence[Sequence[Look]], told: Sequence[Explanation]
    ) -> Iterator[Explanation]:
        """Yield the first instruction that a harmless change helps, of those that are not told."""
        known = {one.entry.name for one in told}
        for group in groups:
            if group[0].entry.name not in known:
                one = self.whole(group[0])
                if not _help(one):
                    yield replace(one, alike=tuple(g.entry.name for g in group[1:]))
                    return

    def _names(self, group: Group | None) -> tuple[str, ...]:
        if group is None or group.count < 2:
            return ()
        return statement_names(self.kernel)[group.first : group.first + group.count]

    def whole(self, look: Look) -> Explanation:
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

    def matching(self, look: Look, found: Enumeration) -> Explanation:
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

    def _repairs(self, look: Look) -> Iterator[tuple[Candidate, ...]]:
        """Yield changes under which an instruction that differs may match, the nearest first.

        Each with what it may need besides, in the order in which that is tried.
        """
        for one in look.refused:
            for candidate in narrowed(self.kernel, self.number, one, look.rewritten):
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
                for candidate in scattered(self.kernel, self.number):
                    yield (candidate,)
                for candidate in tabled(self.kernel, self.number, near.needle, self.bench.index):
                    yield (candidate,)
                yield from self._sizes(look.entry, near.needle)
                continue
            for candidate in declared(self.kernel, self.number, near):
                yield (candidate,)
            yield tuple(approximated(self.kernel, near, self.number))
            for candidate in rewritten(self.kernel, self.number, near):
                yield (candidate, *permitted(candidate))

    def _sizes(self, entry: Entry, needle: Needle) -> Iterator[tuple[Candidate, ...]]:
        """Yield the change of one extent under which an instruction does most at once."""
        axes = [axis.extent for axis in needle.axes]
        tried = [
            (change.used, candidate)
            for candidate in sized(self.kernel, self.number, axes)
            if (change := self.bench.attempt(self.kernel, candidate, entry, 0.0))
        ]
        if tried:
            yield (max(tried, key=lambda one: one[0])[1],)

    def _layouts(self, mapping: Mapping) -> Iterator[tuple[Candidate, ...]]:
        """Yield changes under which operands of an instruction may be brought to it."""
        for candidate in transposed(self.kernel, self.number):
            yield (candidate,)
        for candidate in staged(self.kernel, self.number, mapping.matching):
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
        for candidate in scattered(self.kernel, self.number):
            yield (candidate,)
        axes = [axis.extent for axis in mapping.matching.needle.axes]
        yield tuple(sized(self.kernel, self.number, axes))
