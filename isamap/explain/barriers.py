"""Why a variable may not lie on an axis: the smallest set of demands that contradict it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

from isamap.explain.explanation import Reason
from isamap.ir.nodes import Permissions
from isamap.ir.printer import print_expr
from isamap.mapping.axes.rows import as_form
from isamap.mapping.laws.clauses import literal, named_demands
from isamap.mapping.laws.enumerate import Component, components
from isamap.mapping.laws.filler import legal_filling
from isamap.mapping.laws.killing import Filling
from isamap.mapping.laws.laws import Breach, breaches, is_legal
from isamap.mapping.laws.placements import MOST_VARIABLES
from isamap.mapping.laws.problem import Local, Problem, problem
from isamap.mapping.matching import Matching
from isamap.mapping.tiles.operand import needle_access
from isamap.solver.models import Models, Named, Unknown, conflict

MOST_SETS = 64
"""Sets of inner variables that are tried before the answer is 'unknown'."""

MOST_REFUSED = 64
"""Placements of one set of inner variables that the checker may refuse before that."""

Verdict: TypeAlias = Literal["legal", "forbidden", "unknown"]


@dataclass(frozen=True, slots=True)
class Barrier:
    """Whether a variable may lie on an axis at all; if not, a smallest set of broken laws."""

    verdict: Verdict
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Barriers:
    """Answers for one matching's statement, needle, binding and permissions."""

    matching: Matching
    permissions: Permissions
    whole: Problem
    filling: Filling

    def at(self, variable: str, axis: str) -> Barrier:
        """Return whether a legal placement puts a form with ``variable`` on ``axis``.

        It must keep the matching's inner variables inner.  The variable must be one that may be
        placed, the axis longer than 1.
        """
        v, a = self.whole.variables.index(variable), self.whole.axes.index(axis)
        found = components(self.whole.local(self.filling))
        component = next((c for c in found if v in c.variables), None)
        if component is None:
            return Barrier("unknown")
        least: tuple[Breach, ...] | None = None
        try:
            kept = {self.whole.variables.index(name) for name in self.matching.inner} | {v}
            least_inner = [component.variables.index(u) for u in kept if u in component.variables]
            for inner in _inner_sets(component, least_inner):
                core = _core(component.local, inner, component.variables.index(v), a)
                if core is None:
                    return Barrier("legal")
                if least is None or len(core) < len(least):
                    least = core
        except Unknown:
            return Barrier("unknown")
        assert least is not None
        told = (self._told(component, breach, variable, axis) for breach in least)
        return Barrier("forbidden", tuple(dict.fromkeys(told)))

    def _told(self, component: Component, breach: Breach, variable: str, axis: str) -> Reason:
        names = [self.whole.variables[v] for v in component.variables]
        form = as_form(breach.vector, names)
        operand = self.whole.operands[breach.operand]
        statement, needle = self.matching.statement, self.matching.needle
        here = statement.target if breach.operand == 0 else self.matching.bound(operand)
        place = needle_access(self.matching, operand).span
        seen = [self.whole.axes[n] for n in sorted(self.whole.sees[breach.operand])]
        sees = f"only axes {', '.join(seen)}" if len(seen) > 1 else f"only axis {(*seen, '-')[0]}"
        match breach.law:
            case 0:
                text = f"the kernel does not permit to reorder the sum over {form}"
                span = dict(self.permissions.spans).get("reassociate", statement.span)
                return Reason("permission", text, span, needle.target.span)
            case 1:
                text = (
                    f"law 1: elements of {print_expr(here)} differ by {form}, "
                    f"and operand {operand} sees {sees if seen else 'no axis'}"
                )
                return Reason("law 1", text, here.span, place)
            case 2:
                text = (
                    f"law 2: each element of {statement.target.buffer} would be spread over "
                    f"{operand} along {axis}"
                )
                return Reason("law 2", text, here.span, place)
            case 4:
                text = f"law 4: padding would repeat work: no one operand tells {form}"
                return Reason("law 4", text, statement.span, needle.target.span)
            case 7:
                name = needle.owner(operand)
                text = (
                    f"law 5: {name} is one register, and its places would want different elements"
                )
                return Reason("law 5", text, here.span, place)
            case _:
                text = "law 4: padding would repeat work: no one operand sees the axes that "
                text += f"{variable} would lie on"
                return Reason("law 4", text, statement.span, needle.target.span)


def barriers(matching: Matching, permissions: Permissions) -> Barriers:
    """Return what answers for a legal matching."""
    whole = problem(matching.statement, matching.needle, matching.operands, permissions)
    filling = legal_filling(whole, matching)
    assert filling is not None, "the matching is legal"
    return Barriers(matching, permissions, whole, filling)


def _inner_sets(component: Component, least: Sequence[int]) -> Iterator[tuple[int, ...]]:
    others = [v for v in range(component.local.size) if v not in least]
    sets = (
        tuple(sorted((*least, *chosen)))
        for count in range(min(len(others), max(0, MOST_VARIABLES - len(least))) + 1)
        for chosen in combinations(others, count)
    )
    for number, inner in enumerate(sets):
        if number == MOST_SETS:
            raise Unknown("too many sets of variables")
        yield inner


def _core(
    local: Local, inner: tuple[int, ...], variable: int, axis: int
) -> tuple[Breach, ...] | None:
    """Return demands that contradict ``variable`` on ``axis``; None if a placement is legal."""
    forms = [
        f
        for f, form in enumerate(local.forms)
        if form[variable] and {v for v, c in enumerate(form) if c} <= set(inner)
    ]
    clauses = list(named_demands(local, inner))
    clauses.append(Named(None, tuple(literal(local, f, axis) for f in forms)))
    pairs = {(f, a) for f in range(len(local.forms)) for a in range(local.axes)}
    for _ in range(MOST_REFUSED):
        core = conflict(clauses)
        if core is not None:
            return tuple(name for name in core if isinstance(name, Breach))
        model = next(iter(Models(len(pairs), clauses)))
        placed = frozenset(divmod(n, local.axes) for n in model)
        if is_legal(local, placed):
            return None
        # The clauses leave law 4b to the checker: this placement is refused under its name.
        # Where digits have levels it may be refused for reasons that ranks of forms do not show.
        hidden = Breach(7 if local.registers else 5, 0, (0,) * local.size)
        breach = next(breaches(local, placed), hidden)
        block = [-literal(local, f, a) for f, a in placed]
        block += [literal(local, f, a) for f, a in pairs - placed]
        clauses.append(Named(Breach(breach.law, breach.operand, (0,) * local.size), tuple(block)))
    raise Unknown("too many placements")
