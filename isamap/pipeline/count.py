"""How many matchings kernels have on a machine, and which, without tiles or schedules."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from time import perf_counter
from typing import Any

from isamap.diagnostics import ArgumentsError, fail
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Access, Coordinate, Kernel, Literal, Permissions, Statement
from isamap.ir.printer import print_expr
from isamap.ir.ranges import Intervals, intervals_before
from isamap.ir.statements import bind_extents, statement_names, zero_based
from isamap.mapping.checks.lemmas import prove_placement
from isamap.mapping.compose.compose import compositions
from isamap.mapping.compose.composed import conditions_of, takes_part
from isamap.mapping.laws.enumerate import Listing, list_matchings
from isamap.mapping.laws.family import Family
from isamap.mapping.laws.placements import Listed
from isamap.mapping.matching import Matching, Needle
from isamap.mapping.needles.needles import Bindings, Needles, covered, needles, roots
from isamap.mapping.needles.orders import OperandOrders
from isamap.pipeline.mapped import only_instruction
from isamap.resources import shipped
from isamap.solver.models import load

LIMIT = 1024
"""Matchings of one statement and one instruction that are listed unless all are asked for."""


@dataclass(frozen=True, slots=True)
class Query:
    """Which matchings are meant."""

    family: Family = "embedded"
    listed: Listed = "tight"
    nonempty: bool = False
    orders: OperandOrders = "distinct"


@dataclass(frozen=True, slots=True)
class Row:
    """The matchings of one statement on one instruction, or on instructions in sequence.

    ``operator`` is the kernel's name, with the statement's where it has several.  ``count`` is how
    many matchings there are, over all orders of operands that count; ``complete`` says that no
    limit was met, or ``reason`` which.  ``proved`` says that the solver proved the laws for each
    local placement of which they are made, for tiles of any extents; None where it gave up.
    ``conditions`` are what had to be proved of the operands' values, each once; ``refused`` tells
    of ways to bind the operands for which it was not proved, and which are not counted.
    """

    operator: str
    instruction: str
    query: Query
    listings: tuple[Listing, ...]
    count: int
    complete: bool
    reason: str
    proved: bool | None
    seconds: float
    conditions: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    def matchings(self) -> Iterator[Matching]:
        """Yield the matchings, one order of operands after the other."""
        for listing in self.listings:
            yield from listing

    def facts(self) -> dict[str, Any]:
        """Return the row as ``isamap match --count --json`` prints it."""
        return {
            "operator": self.operator,
            "instruction": self.instruction,
            "family": self.query.family,
            "listing": self.query.listed,
            "operand_orders": self.query.orders,
            "nonempty": self.query.nonempty,
            "count": self.count,
            "complete": self.complete,
            "incomplete_reason": self.reason,
            "proved": self.proved,
            "seconds": round(self.seconds, 6),
            "conditions": list(self.conditions),
            "refused": list(self.refused),
        }


def count_matchings(
    kernels: Sequence[Kernel],
    hardware: Accelerator,
    query: Query,
    instruction: str | None = None,
) -> tuple[Row, ...]:
    """Return a row for each statement and each instruction that computes the whole of its body.

    An instruction without a legal order of operands, or without a matching in the family, has a
    row with the count 0; one that computes something else has none.  Rows of compositions follow.
    With ``instruction`` only its rows are returned, and those of which it is a part.
    """
    load()
    index = needles(hardware)
    rows: list[Row] = []
    for kernel in kernels:
        names = statement_names(kernel)
        for number, (name, statement) in enumerate(
            zip(names, bind_extents(kernel).statements, strict=True)
        ):
            operator = kernel.name if len(names) == 1 else f"{kernel.name}.{name}"
            counter = _Counter(
                operator, zero_based(statement), index, kernel.permissions, query, instruction
            )
            rows += counter.single()
            rows += counter.composed(intervals_before(kernel, number))
    return tuple(rows)


def listed_facts(row: Row, limit: int | None = LIMIT) -> dict[str, Any]:
    """Return a row with its matchings, at most ``limit`` of them."""
    found = [
        {
            "operands": {
                matching.needle.shown(name): print_expr(expr) for name, expr in matching.operands
            },
            "axes": {
                axis.name: [str(form) for form in matching.on_axis(axis.name)]
                for axis in matching.needle.axes
            },
        }
        for matching in islice(row.matchings(), limit)
    ]
    return {**row.facts(), "listed": len(found), "matchings": found}


def load_suite(name: str) -> tuple[Kernel, ...]:
    """Return the kernels of a suite that ships with isamap; ArgumentsError if there is none."""
    from isamap.text.load import parse_module  # Lark: not needed to print help

    known = sorted(
        item.name.removesuffix(".ir")
        for item in shipped("suite").iterdir()
        if item.name.endswith(".ir")
    )
    if name not in known:
        text = f"there is no suite '{name}'"
        raise ArgumentsError(fail("E708", text, hint=f"the suites are: {', '.join(known)}"))
    text = (shipped("suite") / f"{name}.ir").read_text("utf-8")
    return parse_module(text, f"suite/{name}.ir").kernels


@dataclass(frozen=True, slots=True)
class _Counter:
    """Counts the matchings of one statement of a kernel."""

    operator: str
    statement: Statement
    index: Needles
    permissions: Permissions
    query: Query
    instruction: str | None

    def single(self) -> Iterator[Row]:
        """Yield the rows of instructions, in their order."""
        index = self.index
        if self.instruction is not None:
            index = needles(only_instruction(index.accelerator, self.instruction))
        counted = [r for r in roots(self.statement, index, self.query.orders) if _is_whole(r[1])]
        every = (r for r in roots(self.statement, index, "all") if _is_whole(r[1]))
        for name in dict.fromkeys(needle.name for needle, _ in every):
            yield self._row(name, [root for root in counted if root[0].name == name])

    def composed(self, known: Intervals) -> Iterator[Row]:
        """Yield the rows of compositions, then of those whose conditions are not proved."""
        best = max((covered(n) for n, _ in roots(self.statement, self.index)), default=0)
        found = compositions(
            self.statement, self.index, best, known, self.permissions, self.query.orders
        )
        counted = [r for r in found.roots if _is_whole(r[1]) and self._is_asked(r[0])]
        refused = [r for r in found.refused if _is_whole(r.operands) and self._is_asked(r.needle)]
        names = [*(needle.name for needle, _ in counted), *(one.instruction for one in refused)]
        for name in dict.fromkeys(names):
            reasons = dict.fromkeys(one.reason for one in refused if one.instruction == name)
            row = self._row(name, [root for root in counted if root[0].name == name])
            yield replace(row, refused=tuple(reasons))

    def _is_asked(self, needle: Needle) -> bool:
        return self.instruction is None or takes_part(needle, self.instruction)

    def _row(self, name: str, counted: Sequence[tuple[Needle, Bindings]]) -> Row:
        started = perf_counter()
        listings = tuple(
            list_matchings(
                self.statement,
                needle,
                operands,
                family=self.query.family,
                listed=self.query.listed,
                nonempty=self.query.nonempty,
                permissions=self.permissions,
            )
            for needle, operands in counted
        )
        proved = _proved(listings)
        reasons = dict.fromkeys(listing.reason for listing in listings if listing.reason)
        conditions = dict.fromkeys(c.text for needle, _ in counted for c in conditions_of(needle))
        return Row(
            self.operator,
            name,
            self.query,
            listings,
            sum(listing.count for listing in listings),
            not reasons,
            "; ".join(reasons),
            proved,
            perf_counter() - started,
            tuple(conditions),
        )


def _is_whole(operands: Bindings) -> bool:
    """Return whether nothing is left to another instruction."""
    return all(isinstance(expr, Access | Literal | Coordinate) for _, expr in operands)


def _proved(listings: Sequence[Listing]) -> bool | None:
    verdicts = {
        prove_placement(local, placed).verdict
        for listing in listings
        for local, found in listing.solved
        for placed in found
    }
    if "refuted" in verdicts:
        return False
    return None if "unknown" in verdicts else True
