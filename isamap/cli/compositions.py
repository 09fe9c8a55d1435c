"""What there is to tell of compositions: why they compute a statement, or do not."""

from collections.abc import Iterable

from isamap.cli.tables import wrap
from isamap.mapping.compose.composed import conditions_of
from isamap.mapping.matching import Enumeration, Mapping

SHOWN = 3
"""Refused compositions that are told."""


def composition_lines(found: Enumeration, mappings: Iterable[Mapping]) -> list[str]:
    """Return the conditions under which compositions compute a statement, and what is refused."""
    told: dict[str, None] = {}
    for mapping in mappings:
        needle = mapping.matching.needle
        for condition in conditions_of(needle):
            told.setdefault(f"{needle.name} computes it because {condition.text}")
    for reason in found.refused[:SHOWN]:
        told.setdefault(f"refused: {reason}")
    return [line for text in told for line in wrap(text, "    ", "      ")]
