"""How many matchings kernels have on a machine, and which, without tiles or schedules."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Any

from isamap.diagnostics import ArgumentsError, fail
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Access, Coordinate, Kernel, Literal, Permissions, Statement
from isamap.ir.printer import print_expr
from isamap.ir.statements import bind_extents, zero_based
from isamap.mapping.enumerate import Listing, list_matchings
from isamap.mapping.family import Family
from isamap.mapping.lemmas import prove_placement
from isamap.mapping.matching import Matching
from isamap.mapping.needles import Bindings, Needles, needles, roots
from isamap.mapping.orders import OperandOrders
from isamap.mapping.placements import Listed
from isamap.pipeline.result import statement_names
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
    """The matchings of one statement on one instruction.

    ``operator`` is the kernel's name, with the statement's where it has several.  ``count`` is how
    many matchings there are, over all orders of operands that count; ``complete`` says that no
    limit was met, or ``reason`` which.  ``proved`` says that the solver proved the laws for each
    local placement of which they are made, for tiles of any extents; None where it gave up.
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
        }


def count_matchings(
    kernels: Sequence[Kernel], hardware: Accelerator, query: Query
) -> tuple[Row, ...]:
    """Return a row for each statement and each instruction that computes the whole of its body.

    An instruction without a legal order of operands, or without a matching in the family, has a
    row with the count 0; one that computes something else has none.
    """
    load()
    index = needles(hardware)
    rows: list[Row] = []
    for kernel in kernels:
        names = statement_names(kernel)
        for name, statement in zip(names, bind_extents(kernel).statements, strict=True):
            operator = kernel.name if len(names) == 1 else f"{kernel.name}.{name}"
            rows += _rows(operator, zero_based(statement), index, kernel.permissions, query)
    return tuple(rows)


def listed_facts(row: Row, limit: int | None = LIMIT) -> dict[str, Any]:
    """Return a row with its matchings, at most ``limit`` of them."""
    found = [
        {
            "operands": {name: print_expr(expr) for name, expr in matching.operands},
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


def _rows(
    operator: str,
    statement: Statement,
    index: Needles,
    permissions: Permissions,
    query: Query,
) -> Iterator[Row]:
    """Yield the rows of a statement, in the order of the instructions."""
    counted = [root for root in roots(statement, index, query.orders) if _is_whole(root[1])]
    every = (root for root in roots(statement, index, "all") if _is_whole(root[1]))
    for instruction in dict.fromkeys(needle.name for needle, _ in every):
        started = perf_counter()
        listings = tuple(
            list_matchings(
                statement,
                needle,
                operands,
                family=query.family,
                listed=query.listed,
                nonempty=query.nonempty,
                permissions=permissions,
            )
            for needle, operands in counted
            if needle.name == instruction
        )
        proved = _proved(listings)
        reasons = dict.fromkeys(listing.reason for listing in listings if listing.reason)
        yield Row(
            operator,
            instruction,
            query,
            listings,
            sum(listing.count for listing in listings),
            not reasons,
            "; ".join(reasons),
            proved,
            perf_counter() - started,
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
