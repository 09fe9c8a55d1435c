"""The table of a statement's mappings."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from isamap.cli.compositions import composition_lines
from isamap.cli.tables import short, table, wrap
from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_expr
from isamap.mapping.matching import Enumeration
from isamap.mapping.matching import Mapping as LegalMapping
from isamap.pipeline.result import StatementResult, issue_cycles
from isamap.pipeline.sequences import Sequences, axes_text, tile_text

SHOWN = 8
"""Mappings that are shown unless all are."""

_HEADINGS = ("instruction", "axes", "tile", "used", "cycles")
_RIGHT = frozenset({3, 4})
_NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True)
class Tried:
    """What is known of the mappings that were brought to code, by their positions.

    ``estimates`` has their cycles, ``faults`` why there is no code.  The chosen one is not
    ``used`` where the statement is computed in the registers of another.
    """

    chosen: int
    estimates: Mapping[int, float] = field(default_factory=dict)
    faults: Mapping[int, str] = field(default_factory=dict)
    used: bool = True

    @classmethod
    def of(cls, statement: StatementResult, used: bool) -> "Tried":
        """Return what is known of a mapped statement."""
        return cls(
            statement.chosen,
            {s.mapping: s.cycles for s in statement.scheduled if s.cycles is not None},
            {s.mapping: s.reason for s in statement.scheduled if s.cycles is None},
            used,
        )

    def order(self, count: int) -> tuple[int, ...]:
        """Return the mappings: the chosen one, those that have an estimate, all others."""
        known = sorted(self.estimates, key=lambda i: self.estimates[i])
        return tuple(dict.fromkeys((self.chosen, *known, *range(count))))


def mapping_lines(
    found: Enumeration,
    sequences: Sequences,
    symbols: Mapping[str, int],
    everything: bool,
    tried: Tried | None = None,
) -> list[str]:
    """Return the table of legal mappings, and whether it is all of them.

    They come in their order, or with what was ``tried`` first.  Those that are the same to a reader
    are told once, as the first of them; with ``everything`` what their operands stand for tells
    them apart.
    """
    if not found.mappings:
        return ["    no legal mapping", *composition_lines(found, [])]
    count = len(found.mappings)
    order = range(count) if tried is None else tried.order(count)
    rows: dict[tuple[str, ...], str] = {}
    told: dict[str, int] = {}
    alike = Counter(_cells(m, sequences.name(m)) for m in found.mappings if everything)
    for i in order:
        mapping = found.mappings[i]
        cells = _cells(mapping, sequences.name(mapping))
        if alike[cells] > 1:
            cells = (f"{cells[0]} ({_operands(mapping)})", *cells[1:])
        if cells in rows:
            continue
        if not everything and len(rows) == SHOWN:
            break
        if tried is not None and i in tried.estimates:
            rows[cells] = short(tried.estimates[i])
            continue
        fault = tried.faults.get(i, "") if tried else ""
        if fault := fault or sequences.lacking(mapping):
            rows[cells] = f"no code [{told.setdefault(fault, len(told) + 1)}]"
        elif tried is None or i == tried.chosen:
            rows[cells] = _bound(mapping, sequences.kernel, symbols)
        else:
            rows[cells] = _NOT_TRIED
    # The chosen one comes first.
    lines = table(
        _HEADINGS,
        [(*cells, cycles) for cells, cycles in rows.items()],
        _RIGHT,
        0 if tried is not None and tried.used else None,
    )
    lines += composition_lines(found, [found.mappings[i] for i in order])
    for reason, number in told.items():
        lines += wrap(f"[{number}] {reason}", "    ", "      ")
    if _NOT_TRIED in rows.values():
        lines += wrap(f"{_NOT_TRIED}: slower by a rough count of calls and copies", "    ")
    text = f"{count} legal mapping{'s' * (count != 1)}"
    if len(rows) < count:
        text += f", {len(rows)} shown (--all shows the rest)"
    text += "" if found.complete else f"; there may be more: {found.reason}"
    return [*lines, *wrap(text, "    ")]


def _operands(mapping: LegalMapping) -> str:
    return ", ".join(f"{name} = {print_expr(e)}" for name, e in mapping.matching.operands)


def _cells(mapping: LegalMapping, name: str) -> tuple[str, ...]:
    return (
        name,
        axes_text(mapping),
        tile_text(mapping),
        f"{100 * mapping.utilisation:.3g}%",
    )


def _bound(mapping: LegalMapping, kernel: Kernel, symbols: Mapping[str, int]) -> str:
    """Return the cycles of the calls alone, from which what is done besides is missing."""
    if not set(kernel.symbols) <= set(symbols):
        return "-"
    return f">{short(issue_cycles(mapping, kernel, symbols))}"
