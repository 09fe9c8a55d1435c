"""Text for people: tables and numbers within 80 columns."""

import textwrap
from collections.abc import Callable, Sequence

import click

WIDTH = 80


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: frozenset[int] = frozenset(),
    marked: int | None = None,
    indent: str = "  ",
) -> list[str]:
    """Return the lines of a table no wider than 80 columns; wide cells are wrapped.

    ``right`` are the columns aligned to the right; ``marked`` is the row that gets a star.
    """
    widths = _widths(headings, rows, WIDTH - len(indent) - 2)
    lines = [click.style(_line(headings, widths, right, indent + "  "), dim=True)]
    for number, row in enumerate(rows):
        wrapped = [
            textwrap.wrap(cell, width, break_on_hyphens=False) or [""]
            for cell, width in zip(row, widths, strict=True)
        ]
        for part in range(max(map(len, wrapped))):
            cells = [cell[part] if part < len(cell) else "" for cell in wrapped]
            lead = indent + ("* " if number == marked and part == 0 else "  ")
            line = _line(cells, widths, right, lead)
            lines.append(click.style(line, bold=True) if number == marked else line)
    return lines


def wrap(text: str, indent: str = "  ", hang: str | None = None) -> list[str]:
    """Return a paragraph of at most 80 columns; lines after the first begin with ``hang``."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent if hang is None else hang,
        break_on_hyphens=False,
    )


def short(number: float) -> str:
    """Return a number in at most six characters: 999, 16.8M, 1.07G."""
    for limit, unit in ((1e3, ""), (1e6, "K"), (1e9, "M"), (1e12, "G"), (1e15, "T")):
        # What would round up to the next unit belongs there.
        if abs(number) < limit * 0.9995:
            scaled = number / (limit / 1e3)
            return f"{scaled:.3g}{unit}"
    return f"{number:.1e}"


def repeats(samples: Sequence[float], text: Callable[[float], str]) -> str:
    """Return how many samples a number is the median of and how far they lie apart, each written
    by ``text``: ``the median of 5 samples from 318 us to 340 us``.
    """
    least, most = text(min(samples)), text(max(samples))
    if len(samples) == 1:
        return "one sample"
    if least == most:
        return f"the same in {len(samples)} samples"
    return f"the median of {len(samples)} samples from {least} to {most}"


def listed(words: Sequence[str]) -> str:
    """Return words as they are said: ``a``, ``a and b``, ``a, b and c``."""
    *others, last = words or ("",)
    return f"{', '.join(others)} and {last}" if others else last


def size(count: int) -> str:
    """Return a number of bytes with a fitting unit: 2.626 MiB."""
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.4g} {unit}"
    return f"{count} B"


def duration(seconds: float) -> str:
    """Return a time with a fitting unit: 1.41 ms."""
    for limit, unit in ((1e-6, "ns"), (1e-3, "us"), (1.0, "ms")):
        if seconds < limit * 0.9995:
            return f"{seconds / (limit / 1e3):.3g} {unit}"
    return f"{seconds:.3g} s"


def _widths(headings: Sequence[str], rows: Sequence[Sequence[str]], available: int) -> list[int]:
    """Return column widths: each what its widest cell needs, the widest ones cut until it fits."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    while sum(widths) + 2 * (len(widths) - 1) > available:
        widest = max(range(len(widths)), key=lambda i: widths[i])
        widths[widest] -= 1
    return widths


def _line(cells: Sequence[str], widths: Sequence[int], right: frozenset[int], lead: str) -> str:
    padded = [
        cell.rjust(width) if i in right else cell.ljust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return (lead + "  ".join(padded)).rstrip()
