"""Carrying out a change: the changed kernel is read back, matched, and brought to code."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from isamap.diagnostics import IsamapError, NoMappingError
from isamap.explain.compound import COMPOUNDS, spelled
from isamap.explain.explanation import Change, Effect, Reason
from isamap.explain.handing import Handing, only, takers
from isamap.explain.rewriting import Rewritten, by_composition, by_instruction, is_proved
from isamap.hw.accelerator import Accelerator, Entry
from isamap.ir.nodes import Expr, Kernel, Op
from isamap.ir.operations import OPERATIONS
from isamap.ir.printer import print_kernel
from isamap.lower.alternatives import alternatives
from isamap.lower.grouping import group_mappings
from isamap.lower.judge import Judge
from isamap.mapping.compose.compose import Compositions
from isamap.mapping.compose.composed import Composed
from isamap.mapping.find import composed_for, enumerate_roots, enumerate_statement
from isamap.mapping.fragments.produce import Producers
from isamap.mapping.groups import Group, grouped
from isamap.mapping.matching import Enumeration
from isamap.mapping.needles.needles import Needles, needles
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.sizes import TYPICAL_SIZE
from isamap.text.load import parse_module

REWRITTEN = 3
"""Rewritten kernels that are matched to an instruction that does not match the one written."""

TRIED = 24
"""Mappings that are brought to code one by one, before all the others together."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A changed kernel; ``statement`` is the statement of it that the instruction shall compute.

    With ``together`` it is the first of so many that the instruction shall compute as one.
    """

    text: str
    effect: Effect
    kernel: Kernel
    statement: int
    reasons: tuple[Reason, ...] = ()
    rewrites: bool = False
    together: int = 0


@dataclass(slots=True)
class Bench:
    """One machine on which changes are tried."""

    machine: Accelerator
    producers: Producers
    index: Needles
    handing: Handing = field(init=False)

    def __post_init__(self) -> None:
        self.handing = Handing(self.machine, self.producers, self.index, TRIED)

    def match(self, kernel: Kernel, statement: int, entry: Entry) -> Enumeration:
        """Return the legal mappings of one statement to one instruction or composition."""
        if isinstance(entry, Composed):
            found = composed_for(kernel, statement, self.index)
            return self.composed(kernel, found, entry.name)
        return enumerate_statement(kernel, statement, self.alone(entry))

    def composed(self, kernel: Kernel, found: Compositions, name: str) -> Enumeration:
        """Return the legal mappings to the compositions of one name among some of a statement."""
        own = tuple(root for root in found.roots if root[0].name == name)
        return enumerate_roots(found.statement, own, kernel.permissions)

    def match_group(
        self, kernel: Kernel, first: int, count: int, entry: Entry
    ) -> tuple[Group, Enumeration] | None:
        """Return the mappings of statements to an instruction that computes them as one, if any."""
        for group, found in group_mappings(kernel, self.alone(entry)):
            if (group.first, group.count) == (first, count):
                return group, found
        return None

    def alone(self, entry: Entry) -> Needles:
        """Return the needles of one instruction."""
        return needles(replace(self.machine, entries=(entry,)))

    def rewritten(
        self, kernel: Kernel, number: int, entry: Entry, ways: Sequence[Rewritten] | None = None
    ) -> tuple[Rewritten, Enumeration] | None:
        """Return a proved rewriting after which an instruction computes a part of a statement, and
        this machine the rest; ``ways`` are those of the instruction, where they are known.
        """
        for other in (self.ways(kernel, number, entry) if ways is None else ways)[:REWRITTEN]:
            found = self.match(other.kernel, other.statement, entry)
            if found.mappings and is_proved(other) and self.computes(other, found):
                return other, found
        return None

    def ways(self, kernel: Kernel, number: int, entry: Entry) -> tuple[Rewritten, ...]:
        """Return the rewritten kernels of which an instruction, or composition, fits a statement"""
        if isinstance(entry, Composed):
            return tuple(
                one.rewritten
                for one in by_composition(kernel, number, self.index)
                if any(needle.name == entry.name for needle, _ in one.found.roots)
            )
        return by_instruction(kernel, number, self.index).get(entry.name, ())

    def computes(self, rewritten: Rewritten, found: Enumeration) -> bool:
        """Return whether the machine has code for all statements of a rewriting.

        ``found`` are the mappings of the one that matters.
        """
        kernel = rewritten.kernel
        for number in rewritten.group:
            if number == rewritten.statement:
                own = found
            else:
                own = enumerate_statement(kernel, number, self.index, TRIED)
            if not own.mappings or self.out_of_reach(kernel, number, own):
                return False
        return True

    def out_of_reach(self, kernel: Kernel, statement: int, found: Enumeration) -> str:
        """Return why no mapping can be brought to code with this machine's instructions, or ''."""
        symbols = dict.fromkeys(kernel.symbols, TYPICAL_SIZE)
        reasons: dict[str, None] = {}
        first = [(m,) for m in found.mappings[:TRIED]]
        for mappings in (*first, found.mappings[TRIED:]):
            some = replace(found, mappings=mappings)
            judge = Judge(self.machine, self.producers, symbols)
            tried = alternatives(kernel, judge, statement, some)
            if any(a.estimate and a.saved for a in tried):
                return ""
            if any(a.schedule for a in tried):
                # It takes something from registers, or others must take what it leaves there.
                for last in (statement, *takers(kernel, statement)):
                    reason = self.handing.refused(kernel, statement, some, last)
                    if not reason:
                        return ""
                reasons[reason] = None
            reasons.update(dict.fromkeys(a.reason for a in tried))
        return next(iter(reasons), "no mapping could be scheduled")

    def remaining(self, kernel: Kernel, added: Iterable[int]) -> str:
        """Return why this machine has no code for one of some statements, or ''."""
        for number in added:
            try:
                map_kernel(only(kernel, (number,)), self.machine)
            except NoMappingError as error:
                return error.diagnostics[0].message
        return ""

    def attempt(
        self, original: Kernel, candidate: Candidate, entry: Entry, above: float
    ) -> Change | None:
        """Return the change if it is good text and the instruction then does more than ``above``.

        ``above`` is a utilisation; 0 asks for any mapping at all.
        """
        text = print_kernel(candidate.kernel)
        before = print_kernel(original)
        if text == before:
            return None
        try:
            (kernel,) = parse_module(text, original.name).kernels
        except IsamapError:
            return None  # It means nothing so: this is no change to suggest.
        rest = ""
        if candidate.together:
            whole = self.match_group(kernel, candidate.statement, candidate.together, entry)
            if whole is None:
                return None
            found = whole[1]
            rest = self.out_of_reach(grouped(kernel, whole[:1]), candidate.statement, found)
        elif (found := self.match(kernel, candidate.statement, entry)).mappings:
            rest = self.out_of_reach(kernel, candidate.statement, found)
        elif candidate.rewrites:
            after = self.rewritten(kernel, candidate.statement, entry)
            if after is None:
                return None
            found = after[1]
        used = max((m.utilisation for m in found.mappings), default=0.0)
        if used <= above:
            return None
        if len(kernel.statements) > len(original.statements) and not rest:
            own = (*original.statements, kernel.statements[candidate.statement])
            rest = self.remaining(
                kernel, (n for n, s in enumerate(kernel.statements) if s not in own)
            )
        return Change(
            candidate.text,
            candidate.effect,
            difference(before, text),
            kernel,
            candidate.statement,
            used,
            candidate.reasons,
            rest,
        )

    def first(
        self,
        original: Kernel,
        groups: Iterable[Sequence[Candidate]],
        entry: Entry,
        above: float = 0.0,
        most: int = 2,
        needs_code: bool = False,
    ) -> tuple[Change, ...]:
        """Return the first changes that work, at most one of each group of ever larger ones.

        Those that do not reach code on this machine are told only where none does, and not if they
        change what is computed besides; ``needs_code``: not at all.  What changes what is computed
        is told only where nothing else helps, and once.
        """
        found: dict[object, Change] = {}
        for group in groups:
            for candidate in group:
                change = self.attempt(original, candidate, entry, above)
                if change is not None:
                    found.setdefault(_canonical(change), change)
                    break
            reached = [c for c in found.values() if not c.rest]
            if len(reached) == most:
                break
        reached = [c for c in found.values() if not c.rest]
        if any(c.effect != "different" for c in reached):
            reached = [c for c in reached if c.effect != "different"]
        elif reached:
            reached = reached[:1]
        others = [c for c in found.values() if c.effect != "different"]
        return tuple(reached or (others[:most] if not needs_code else ()))


def _canonical(change: Change) -> object:
    """Return a changed kernel so that the order of commutative arguments does not show."""
    statement = change.kernel.statements[change.statement]
    buffers = tuple((b.name, b.dtype, b.shape, b.values) for b in change.kernel.buffers)
    body = statement.target, statement.reduction, _sorted(statement.value)
    return body, change.kernel.permissions, change.kernel.extents, buffers


def _sorted(expr: Expr) -> object:
    if not isinstance(expr, Op):
        return expr
    if expr.op in COMPOUNDS:
        return expr.op, _sorted(spelled(expr))
    args = [_sorted(arg) for arg in expr.args]
    if OPERATIONS[expr.op].commutative:
        args.sort(key=repr)
    return expr.op, expr.dtype, tuple(args)


def difference(before: str, after: str) -> tuple[str, ...]:
    """Return the lines that differ, with '-' and '+' before them."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return tuple(
        f"{line[0]} {line[1:].strip()}"
        for line in lines
        if line[:1] in "+-" and line[:3] not in ("+++", "---")
    )
