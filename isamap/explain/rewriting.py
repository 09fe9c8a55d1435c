"""What the rewriting rules make of a statement, and which instructions then compute part of it."""

from collections.abc import Iterator
from dataclasses import dataclass

from isamap.ir.nodes import Kernel, Statement
from isamap.mapping.compose.compose import Compositions
from isamap.mapping.find import composed_for
from isamap.mapping.needles.needles import Needles, covered, roots
from isamap.rewrite.apply import judge
from isamap.rewrite.build import normal
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.rules import rules_for

STEPS = 64
"""Kernels that one statement can become which are looked at."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A kernel after one or two rewritings, and the statement of it that an instruction computes.

    ``group`` are the numbers of the statements that stand for the one that was rewritten.
    """

    kernel: Kernel
    rewritings: tuple[Rewriting, ...]
    group: range
    statement: int = 0


def by_instruction(kernel: Kernel, number: int, index: Needles) -> dict[str, tuple[Rewritten, ...]]:
    """Return for each instruction the rewritten kernels of which it fits a statement, in the order
    in which the rules yield them; instructions that fit the statement as written are left out.
    """
    start = normal(kernel)
    direct = {needle.name for needle, _ in roots(start.statements[number], index)}
    found: dict[str, list[Rewritten]] = {}
    for candidate in _candidates(start, number, index):
        for at in candidate.group:
            for needle, _ in roots(candidate.kernel.statements[at], index):
                if needle.name not in direct:
                    here = Rewritten(candidate.kernel, candidate.rewritings, candidate.group, at)
                    found.setdefault(needle.name, []).append(here)
    return {name: tuple(kernels) for name, kernels in found.items()}


@dataclass(frozen=True, slots=True)
class Sequenced:
    """A kernel after rewritings, and the compositions for the statement of it that matters."""

    rewritten: Rewritten
    found: Compositions


def by_composition(kernel: Kernel, number: int, index: Needles) -> tuple[Sequenced, ...]:
    """Return the rewritten kernels in whose statements instructions in sequence take part, in the
    order in which the rules yield them.

    Only statements over most variables are looked at: the others of a rewriting prepare or correct
    what these compute.  Told are compositions that do as much as what the machine has for the
    statement as written.
    """
    start = normal(kernel)
    least = max((covered(n) for n, _ in roots(start.statements[number], index)), default=0)
    found = []
    for candidate in _candidates(start, number, index):
        statements = candidate.kernel.statements
        most = max(len(statements[at].variables) for at in candidate.group)
        for at in candidate.group:
            if len(statements[at].variables) < most or statements[at].reduction == "=":
                continue
            several = composed_for(candidate.kernel, at, index)
            kept = Compositions(
                several.statement,
                tuple(root for root in several.roots if covered(root[0]) >= least),
                tuple(one for one in several.refused if covered(one.needle) >= least),
            )
            if kept.roots or kept.refused:
                here = Rewritten(candidate.kernel, candidate.rewritings, candidate.group, at)
                found.append(Sequenced(here, kept))
    return tuple(found)


def is_proved(rewritten: Rewritten) -> bool:
    """Return whether the lemmas of all rewritings hold."""
    return not judge(rewritten.rewritings).refused


def _candidates(kernel: Kernel, number: int, index: Needles) -> Iterator[Rewritten]:
    """Yield the kernels after one rewriting and after two, each once."""
    bodies = [
        statement
        for entry in index.accelerator.entries
        if len(entry.instruction.statements) == 1
        for statement in entry.instruction.statements
    ]
    rules = rules_for(bodies)
    start = Rewritten(kernel, (), range(number, number + 1))
    seen: set[tuple[Statement, ...]] = {(kernel.statements[number],)}
    frontier, count = [start], 0
    for _ in range(2):
        reached: list[Rewritten] = []
        for before in frontier:
            for at in before.group:
                for _, rule in rules:
                    for rewriting in rule(before.kernel, at):
                        after = _after(before, rewriting)
                        group = tuple(after.kernel.statements[n] for n in after.group)
                        if group in seen:
                            continue
                        seen.add(group)
                        reached.append(after)
                        yield after
                        count += 1
                        if count == STEPS:
                            return
        frontier = reached


def _after(before: Rewritten, rewriting: Rewriting) -> Rewritten:
    more = len(rewriting.kernel.statements) - len(before.kernel.statements)
    group = range(before.group.start, before.group.stop + more)
    return Rewritten(rewriting.kernel, (*before.rewritings, rewriting), group)
