"""Tiles of operands as small pictures in plain characters."""

from collections.abc import Sequence
from itertools import zip_longest

from isamap.cli.tables import WIDTH

USED, PADDED = "#", "."
ROWS, COLUMNS = 8, 16
"""The largest picture of a tile; longer axes are drawn to scale."""

Dimension = tuple[str, int, int]
"""The index of a dimension, its extent, and how many of its positions are used."""


def bar(extent: int, used: int, width: int = COLUMNS) -> str:
    """Return an axis as characters: at most ``width``, the used positions first."""
    cells = min(extent, width)
    return "".join(USED if n * extent // cells < used else PADDED for n in range(cells))


def tile(title: str, dims: Sequence[Dimension]) -> list[str]:
    """Return the picture of a tile: its last two dimensions, rows down and columns across.

    A dimension before these is told below the picture, as so many tiles.
    """
    *outer, row, column = [("", 1, 1), ("", 1, 1), *dims]
    rows, columns = bar(row[1], row[2], ROWS), bar(column[1], column[2])
    label = row[0]
    lead = " " * (len(label) + 1)
    lines = [title, f"{lead}{column[0]}".rstrip()]
    for n, mark in enumerate(rows):
        cells = columns if mark == USED else PADDED * len(columns)
        lines.append(f"{label if n == 0 else ' ' * len(label)} {cells}")
    more = [f"{used} of {extent} {index}".rstrip() for index, extent, used in outer[:-2]]
    more = [text for text, (_, extent, _) in zip(more, outer[:-2], strict=False) if extent > 1]
    return [*lines, *(f"{lead}x {text}" for text in more)]


def side_by_side(pictures: Sequence[Sequence[str]], indent: str = "    ") -> list[str]:
    """Return pictures beside each other, in rows of at most 80 columns."""
    result: list[str] = []
    row: list[Sequence[str]] = []
    width = len(indent)
    for picture in pictures:
        own = max(map(len, picture))
        if row and width + own > WIDTH:
            result += _joined(row, indent)
            row, width = [], len(indent)
        row.append(picture)
        width += own + 3
    return result + _joined(row, indent)


def _joined(row: Sequence[Sequence[str]], indent: str) -> list[str]:
    widths = [max(map(len, picture)) for picture in row]
    lines = []
    for parts in zip_longest(*row, fillvalue=""):
        padded = (part.ljust(width) for part, width in zip(parts, widths, strict=True))
        lines.append((indent + "   ".join(padded)).rstrip())
    return lines
