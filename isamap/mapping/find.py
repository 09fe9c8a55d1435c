"""All mappings of one statement on a machine."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from math import prod
from operator import itemgetter

from isamap.hw.accelerator import Accelerator
from isamap.ir.index import Index, total
from isamap.ir.nodes import Kernel, Permissions, Statement
from isamap.ir.printer import print_expr
from isamap.ir.ranges import Intervals, intervals_before
from isamap.ir.statements import bind_extents, zero_based
from isamap.mapping.axes.linear import primitive
from isamap.mapping.axes.rows import as_form, row
from isamap.mapping.compose.compose import Compositions, compositions
from isamap.mapping.compose.composed import conditions_of, takes_part
from isamap.mapping.laws.composite import arrangements
from isamap.mapping.laws.enumerate import enumerate_matchings
from isamap.mapping.laws.positions import digits, levelled
from isamap.mapping.matching import Enumeration, Mapping, Needle
from isamap.mapping.needles.demands import is_restricted
from isamap.mapping.needles.needles import Bindings, Needles, covered, needles, roots
from isamap.mapping.tiles.allowed import refusal
from isamap.mapping.tiles.promise import promise
from isamap.mapping.tiles.tile import MOST_CANDIDATES, MOST_TILES, tiles

LIMIT = 4096
"""Mappings of a statement that are listed unless more are asked for."""

MOST_RESTRICTED = 256
"""Tiles of a matching that are looked at where an instruction restricts them."""

FEW_MATCHINGS = 64
"""Where a binding has more, fewer tiles of each are looked at."""

MOST_LEVELLED = 128
"""Matchings of a binding of which tiles are sought, where levels of digits take long to fit."""


def enumerate_mappings(
    statement: Statement,
    accelerator: Accelerator | Needles,
    permissions: Permissions,
    limit: int = LIMIT,
    known: Intervals | None = None,
) -> Enumeration:
    """Return the mappings of a statement, best first, at most ``limit`` of them.

    The statement of the result starts all its variables at 0.  Mappings whose instruction does more
    of its operations come first, then those that do most iterations per cycle of the instruction
    (which is its throughput times the utilisation), then by their text.
    An index of the machine's needles may be given in its place, to share it between statements.
    ``known`` are the values that integer buffers have when the statement begins: compositions may
    depend on them.
    """
    index = accelerator if isinstance(accelerator, Needles) else needles(accelerator)
    statement = zero_based(statement)
    single = roots(statement, index)
    best = max((covered(needle) for needle, _ in single), default=0)
    several = compositions(statement, index, best, known or {}, permissions)
    refused = tuple(map(str, several.refused))
    return enumerate_roots(statement, (*single, *several.roots), permissions, limit, refused)


def enumerate_roots(
    statement: Statement,
    wanted: Iterable[tuple[Needle, Bindings]],
    permissions: Permissions,
    limit: int = LIMIT,
    refused: tuple[str, ...] = (),
) -> Enumeration:
    """Return the mappings of a statement to some needles whose operands are bound.

    The statement starts its variables at 0; ``refused`` is told with the result.
    """
    found: dict[object, tuple[tuple[int, float, str], Mapping]] = {}
    reasons: list[str] = []
    for needle, operands in wanted:
        matchings, complete, reason = enumerate_matchings(
            statement, needle, operands, limit, permissions=permissions
        )
        if not complete:
            reasons.append(f"{needle.name}: {reason}")
        head = _head(needle, operands)
        restricted = is_restricted(needle.entry)
        weight, mixed = covered(needle), levelled(needle)
        pace = prod(axis.extent for axis in needle.axes) / float(needle.entry.throughput or 1)
        arranged = [a for m in matchings for a in arrangements(m, permissions)]
        if mixed and len(arranged) > MOST_LEVELLED:
            reasons.append(f"{needle.name}: tiles of {MOST_LEVELLED} of its matchings were sought")
            arranged = sorted(arranged, key=promise, reverse=True)[:MOST_LEVELLED]
        scarce = max(1.0, len(arranged) / FEW_MATCHINGS)
        candidates = max(128, int(MOST_CANDIDATES / scarce**2))
        for matching in arranged:
            if not restricted:
                tiled = tiles(matching, candidates=candidates)
            else:
                many = tiles(matching, MOST_RESTRICTED, candidates=candidates)
                tiled = tuple(islice((m for m in many if not refusal(m, permissions)), MOST_TILES))
            for mapping in tiled:
                work = _work(mapping, mixed)
                rank = (-weight, -round(mapping.utilisation * pace, 6), f"{head} {work}")
                # A tile with an extent of 1 is also a tile of the matching without that variable.
                key = (needle.name, needle.reduction, needle.tied, operands, work)
                if key not in found or rank < found[key][0]:
                    found[key] = (rank, mapping)
    kept = [mapping for _, mapping in sorted(found.values(), key=itemgetter(0))]
    if len(kept) > limit:
        reasons.append(f"the limit of {limit} mappings was reached")
    reason = "; ".join(dict.fromkeys(reasons))
    return Enumeration(statement, tuple(kept[:limit]), not reasons, reason, refused)


def enumerate_statement(
    kernel: Kernel, number: int, index: Needles, limit: int = LIMIT
) -> Enumeration:
    """Return the mappings of one statement of a kernel, as :func:`enumerate_mappings` does.

    What the kernel's earlier statements and declarations say of the values of buffers is known.
    """
    return enumerate_mappings(
        bind_extents(kernel).statements[number],
        index,
        kernel.permissions,
        limit,
        intervals_before(kernel, number),
    )


def composed_for(kernel: Kernel, number: int, index: Needles) -> Compositions:
    """Return the compositions for a statement of a kernel, by what is known of its values."""
    statement = zero_based(bind_extents(kernel).statements[number])
    best = max((covered(needle) for needle, _ in roots(statement, index)), default=0)
    known = intervals_before(kernel, number)
    return compositions(statement, index, best, known, kernel.permissions)


def enumerate_with(
    kernel: Kernel, number: int, index: Needles, name: str, limit: int = LIMIT
) -> Enumeration:
    """Return the mappings of a statement to one instruction, or each instantiation of a generic
    one, and to the machine's compositions in which it takes part; or to one composition.
    """
    statement = zero_based(bind_extents(kernel).statements[number])
    machine = index.accelerator
    own = tuple(e for e in machine.entries if name in (e.name, e.instruction.generic))
    single = roots(statement, needles(replace(machine, entries=own)))
    several = composed_for(kernel, number, index)
    taking = [root for root in several.roots if takes_part(root[0], name)]
    refused = tuple(str(one) for one in several.refused if takes_part(one.needle, name))
    return enumerate_roots(statement, (*single, *taking), kernel.permissions, limit, refused)


def enumerate_preferred(kernel: Kernel, number: int, index: Needles, name: str) -> Enumeration:
    """Return the mappings of a statement to one instruction, or to all where it has none to it."""
    own = enumerate_with(kernel, number, index, name)
    return own if own.mappings else enumerate_statement(kernel, number, index)


def describe(mapping: Mapping) -> str:
    """Return a mapping as one line of text: instruction, operands, digits on each axis, tile.

    What had to be proved of a composition's operands comes last.
    """
    matching = mapping.matching
    proved = "".join(f", as {c.text}" for c in conditions_of(matching.needle))
    work = _work(mapping, levelled(matching.needle))
    return f"{_head(matching.needle, matching.operands)} {work}{proved}"


def _head(needle: Needle, operands: Bindings) -> str:
    bound = ", ".join(f"{needle.shown(name)} = {print_expr(expr)}" for name, expr in operands)
    return f"{needle.name}({bound})"


def on_axes(mapping: Mapping) -> dict[str, tuple[str, ...]]:
    """Return as text what lies on each axis that the tile makes longer than 1.

    That are forms over the variables with more than one iteration, outermost digit first; on axes
    whose digits have levels, the position with its weights.  With the tile, this tells apart all
    mappings to one instruction whose operands are bound alike.
    """
    return _on_axes(mapping, levelled(mapping.matching.needle))


def _on_axes(mapping: Mapping, mixed: AbstractSet[int]) -> dict[str, tuple[str, ...]]:
    """Return what :func:`on_axes` does; the digits of the axes ``mixed`` have levels."""
    long = tuple(name for name, extent in mapping.tile.items() if extent > 1)
    positions = _positions(mapping, mixed) if mixed else {}
    axes = {axis: [text] for axis, text in positions.items()}
    for placement in mapping.matching.placements:
        if placement.axis in positions:
            continue
        own = _names(placement.form)
        if text := _digit(placement.form, tuple(name for name in long if name in own)):
            axes.setdefault(placement.axis, []).append(text)
    return {axis: tuple(texts) for axis, texts in axes.items()}


def _work(mapping: Mapping, mixed: AbstractSet[int]) -> str:
    """Return the digits on each axis that the tile makes longer than 1, and the tile."""
    on_each = _on_axes(mapping, mixed)
    placed = "; ".join(f"{axis} <- {', '.join(texts)}" for axis, texts in on_each.items())
    tile = ", ".join(f"{name} {extent}" for name, extent in mapping.tile.items() if extent > 1)
    return f"{placed or 'one iteration'} [{tile}]"


@lru_cache(maxsize=4096)
def _names(form: Index) -> frozenset[str]:
    return form.names


def _positions(mapping: Mapping, mixed: AbstractSet[int]) -> dict[str, str]:
    """Return the position on each axis whose digits have levels, weights included."""
    needle = mapping.matching.needle
    on_axes = digits(mapping.matching, mapping.tile)
    names = [needle.axes[n].name for n in sorted(mixed)]
    return {n: str(total(d.form * d.weight for d in on_axes[n])) for n in names if on_axes[n]}


@lru_cache(maxsize=4096)
def _digit(form: Index, long: tuple[str, ...]) -> str:
    """Return a form over the variables with more than one iteration, without common factors."""
    moving = primitive(row(form, long))
    return str(as_form(moving, long)) if any(moving) else ""
