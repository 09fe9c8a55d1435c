"""C templates: text in which ``{name}`` stands for something, and doubled braces for braces.

``{name.base}`` and ``{name.offset}`` are the two parts of where something lies in memory.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

_TOKEN = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)(?:\.([a-z]+))?\}|[{}]")

PARTS = ("base", "offset")
"""The parts of an address: a pointer, and elements beyond it, a constant."""


@dataclass(frozen=True, slots=True)
class Placeholder:
    """``{name}`` or ``{name.part}`` at character ``offset`` of a template."""

    name: str
    offset: int
    part: str = ""

    @property
    def text(self) -> str:
        """What stands between the braces."""
        return f"{self.name}.{self.part}" if self.part else self.name


@dataclass(frozen=True, slots=True)
class Stray:
    """A brace at character ``offset`` that opens no placeholder and is not doubled."""

    offset: int


@lru_cache(maxsize=1024)
def scan(template: str) -> tuple[Placeholder | Stray, ...]:
    """Return the placeholders and the stray braces of a template, in order."""
    found: list[Placeholder | Stray] = []
    for match in _TOKEN.finditer(template):
        if match[1]:
            found.append(Placeholder(match[1], match.start(), match[2] or ""))
        elif len(match[0]) == 1:
            found.append(Stray(match.start()))
    return tuple(found)


def scan_plain(text: str, values: Mapping[str, str]) -> str:
    """Return a text with the placeholders that have a value replaced; all else stays as it is."""
    return _TOKEN.sub(lambda match: values.get(match[0][1:-1], match[0]), text)


def render(template: str, values: Mapping[str, str]) -> str:
    """Return the template with every placeholder replaced; a missing value is a KeyError."""

    def replacement(match: re.Match[str]) -> str:
        return values[match[0][1:-1]] if match[1] else match[0][0]

    return _TOKEN.sub(replacement, template)
