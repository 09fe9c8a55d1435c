"""Matchings as text: how many there are, and which."""

from collections.abc import Sequence
from itertools import islice

from isamap.cli.tables import duration, table, wrap
from isamap.ir.printer import print_expr
from isamap.mapping.matching import Matching
from isamap.pipeline.count import Query, Row

SHOWN = 8
_PROVED = {True: "yes", False: "no", None: "unknown"}
_LISTED = {
    "every": "every matching",
    "maximal": "irredundant maximal matchings",
    "tight": "tight maximal matchings",
}
_ORDERS = {
    "given": "operands in the order written",
    "distinct": "orders of operands up to the instruction's symmetries",
    "all": "every order of operands",
}


def query_line(query: Query) -> str:
    """Return in words which matchings are meant."""
    parts = [_LISTED[query.listed], f"{query.family} family", _ORDERS[query.orders]]
    if query.nonempty:
        parts.append("every axis used")
    return ", ".join(parts)


def count_lines(rows: Sequence[Row]) -> list[str]:
    """Return a table of numbers."""
    if not rows:
        return ["    no instruction computes the whole of a statement"]
    cells = [
        (
            row.operator,
            row.instruction,
            str(row.count),
            "yes" if row.complete else "no",
            "refused" if row.refused and not row.listings else _PROVED[row.proved],
            duration(row.seconds),
        )
        for row in rows
    ]
    headings = ("operator", "instruction", "count", "complete", "proved", "time")
    lines = table(headings, cells, frozenset({2, 5}))
    for row in rows:
        if not row.complete:
            lines += wrap(f"{row.operator} on {row.instruction}: {row.reason}", "    ")
        lines += condition_lines(row)
    return lines


def condition_lines(row: Row) -> list[str]:
    """Return why a composition computes the statement, and in which ways it does not."""
    told = [f"{row.operator} on {row.instruction}, as {text}" for text in row.conditions]
    told += [f"refused: {row.operator} on {row.instruction}: {text}" for text in row.refused]
    return [line for text in told for line in wrap(text, "    ", "      ")]


def matching_lines(rows: Sequence[Row], everything: bool) -> list[str]:
    """Return a table of matchings for each row, the first few unless ``everything`` is wanted."""
    lines = [] if rows else count_lines(rows)
    for row in rows:
        number = f"{row.count} matching{'s' * (row.count != 1)}"
        proved = {True: ", proved", False: ", NOT proved", None: ", not proved: unknown"}
        lines += [
            "",
            *wrap(f"{row.operator} on {row.instruction}: {number}{proved[row.proved]}", ""),
        ]
        shown = list(islice(row.matchings(), None if everything else SHOWN))
        if shown:
            lines += table(("operands", "axes"), [_cells(matching) for matching in shown])
        if len(shown) < row.count:
            lines += wrap(f"{len(shown)} shown (--all shows the rest)", "    ")
        if not row.complete:
            lines += wrap(f"there may be more: {row.reason}", "    ")
        lines += condition_lines(row)
    return lines


def _cells(matching: Matching) -> tuple[str, str]:
    bound = ((matching.needle.shown(name), expr) for name, expr in matching.operands)
    operands = ", ".join(f"{name} = {print_expr(expr)}" for name, expr in bound)
    axes = []
    for axis in matching.needle.axes:
        forms = [str(form) for form in matching.on_axis(axis.name)]
        if forms:
            digits = forms[0] if len(forms) == 1 else f"[{', '.join(forms)}]"
            axes.append(f"{axis.name}<-{digits}")
    return operands, ", ".join(axes) or "-"
