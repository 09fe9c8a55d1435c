"""Writing a schedule as text that :mod:`isamap.schedule.reader` reads."""

from collections.abc import Sequence
from dataclasses import dataclass

from isamap.ir.nodes import Access
from isamap.ir.printer import print_expr, print_statement
from isamap.mapping.find import on_axes
from isamap.mapping.matching import Mapping
from isamap.schedule.buffers import buffer_texts
from isamap.schedule.calls import calls_text
from isamap.schedule.past import past_texts
from isamap.schedule.schedule import Early, Level, Schedule, StatementSchedule
from isamap.schedule.treatment import inputs


@dataclass(frozen=True, slots=True)
class Named:
    """A statement as a schedule's text knows it: its name and its legal mappings."""

    name: str
    mappings: tuple[Mapping, ...]


def print_schedule(
    kernel: str,
    machine: str,
    head: Sequence[str],
    statements: Sequence[Named],
    schedule: Schedule,
    notes: Sequence[str] = (),
) -> str:
    """Return the text of a schedule.

    ``head`` are the lines that say what becomes of the kernel's statements before they are mapped;
    ``notes`` are comments at the top.  What a statement in another one's registers would do on its
    own is not said.
    """
    lines = [f"# {note}" for note in notes]
    lines.append(f"schedule {kernel} on {machine} {{")
    calls = calls_text(schedule)
    lines += [f"  {line}" for line in (*head, *[calls] * bool(calls))]
    names = [statement.name for statement in statements]
    for statement, own in zip(statements, schedule.statements, strict=True):
        lines += [
            *[""] * (lines[-1][-1] != "{"),
            f"  # {print_statement(own.mapping.matching.statement).strip()}",
        ]
        if own.within is not None:
            by = "" if own.by is None else f" by {own.by}"
            lines.append(f"  {statement.name} {{ within {names[own.within]}{by} }}")
            continue
        lines.append(f"  {statement.name} {{")
        lines += [f"    {line}" for line in _clauses(statement, own)]
        if own.along is not None:
            lines.append(f"    along {names[own.along]}")
        lines.append("  }")
    return "\n".join([*lines, "}", ""])


def _clauses(statement: Named, own: StatementSchedule) -> list[str]:
    lines = [
        f"instruction {_instruction(statement, own.mapping)}",
        f"axes {axes_text(own.mapping)}",
        f"tile {tile_text(own.mapping)}",
        f"loops {', '.join(map(level_text, own.levels)) or 'none'}",
    ]
    if own.operands:
        treated = [f"{name} {how}" for name, how in operand_treatments(own).items()]
        lines.append(f"operands {', '.join(treated)}")
    if own.stream is not None:
        lines.append(f"stream {print_expr(inputs(own.mapping)[own.stream][1])}")
    if own.past:
        lines.append(f"past {', '.join(past_texts(own))}")
    if own.early:
        lines.append(f"prefetch {', '.join(early_text(own, early) for early in own.early)}")
    if own.buffers:
        lines.append(f"buffers {', '.join(buffer_texts(own)) or 'none'}")
    words = [] if own.bypass is None else ["uncached" if own.bypass else "cached"]
    if words or own.later:
        lines.append(f"results {', '.join([*words, *['later'] * own.later])}")
    return lines


def axes_text(mapping: Mapping) -> str:
    """Return what lies on the axes: ``i <- [h, c], j <- k``."""
    placed = on_axes(mapping).items()
    texts = [f"{a} <- {t[0] if len(t) == 1 else '[' + ', '.join(t) + ']'}" for a, t in placed]
    return ", ".join(texts) or "none"


def tile_text(mapping: Mapping) -> str:
    """Return the tile: ``c=16``."""
    found = [f"{name}={extent}" for name, extent in mapping.tile.items() if extent > 1]
    return ", ".join(found) or "none"


def level_text(level: Level) -> str:
    """Return a loop: ``m/96 parallel``, ``m/32 overlap``."""
    words = " parallel" * level.parallel + " overlap" * level.overlap
    return f"{level.variable}/{level.step}{words}"


def early_text(own: StatementSchedule, early: Early) -> str:
    """Return what is prefetched: ``B[k, n] as b 2 of k``, ``next of n``, or ``C``, the results."""
    if early.access is None:
        name = own.mapping.matching.statement.target.buffer
    else:
        operand, access = inputs(own.mapping)[early.access]
        name = f"{print_expr(access)} as {operand}"
    if early.variable is None:
        return name
    return f"{name} {'next' if early.shared else early.count} of {early.variable}"


def bound_texts(mapping: Mapping) -> tuple[tuple[str, str], ...]:
    """Return the operands of the instruction with what they stand for."""
    needle = mapping.matching.needle
    return tuple((needle.shown(n), print_expr(e)) for n, e in mapping.matching.operands)


def _instruction(statement: Named, mapping: Mapping) -> str:
    """Return the instruction, with as much besides as tells the mapping from all others."""
    name = mapping.matching.needle.name
    placed, tile = axes_text(mapping), tile_text(mapping)
    alike = [
        m
        for m in statement.mappings
        if tile_text(m) == tile and axes_text(m) == placed and m.matching.needle.name == name
    ]
    if len(alike) == 1:
        return name
    bound = bound_texts(mapping)
    text = f"{name}({', '.join(f'{operand} = {expr}' for operand, expr in bound)})"
    alike = [m for m in alike if bound_texts(m) == bound]
    return text if len(alike) == 1 else f"{text} way {alike.index(mapping) + 1}"


def operand_treatments(own: StatementSchedule) -> dict[str, str]:
    """Return the treatment of each access, ``packed inside 1``, by the shortest name that says
    which it is."""
    pairs = inputs(own.mapping)
    depths = [own.copied_inside(n) for n in range(len(pairs))]
    words = [
        how + f" inside {depth}" * bool(depth) + f" pitch {own.pitch(n)}" * bool(own.pitch(n))
        for n, (how, depth) in enumerate(zip(own.operands, depths, strict=True))
    ]
    treated = dict(zip(pairs, words, strict=True))
    found: dict[str, str] = {}
    for (operand, access), how in treated.items():
        found.setdefault(_name(treated, operand, access, how), how)
    return found


def _name(treated: dict[tuple[str, Access], str], operand: str, access: Access, how: str) -> str:
    if all(h == how for (_, a), h in treated.items() if a.buffer == access.buffer):
        return access.buffer
    text = print_expr(access)
    if all(h == how for (_, a), h in treated.items() if a == access):
        return text
    return f"{text} as {operand}"
