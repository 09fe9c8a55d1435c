"""Numbers and quantities written as text: ``4``, ``1/3``, ``48 KiB``, ``128 B/cycle``, ``3.0 GHz``.

Everything is exact.  A unit says its dimension; each field names the dimension that it wants.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

Dimension = Literal["bytes", "bytes/cycle", "frequency", "cycles", "energy", "area"]

_DECIMAL = r"[0-9]{1,18}(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,2})?"
NUMBER = rf"-?{_DECIMAL}(?: ?[*/] ?{_DECIMAL})*"
"""The pattern of a number: one, or a product or quotient of several."""
_FACTOR = rf"(?:{_DECIMAL}|[A-Za-z_][A-Za-z0-9_]*)"
WRITTEN = rf"-?{_FACTOR}(?: ?[*/] ?{_FACTOR})*"
"""The pattern of a number as it is written: parameters of the description may be factors."""

_UNITS: dict[Dimension, dict[str, Fraction]] = {
    "bytes": {
        "B": Fraction(1),
        "kB": Fraction(1000),
        "MB": Fraction(1000**2),
        "GB": Fraction(1000**3),
        "KiB": Fraction(1 << 10),
        "MiB": Fraction(1 << 20),
        "GiB": Fraction(1 << 30),
    },
    "frequency": {
        "Hz": Fraction(1),
        "kHz": Fraction(1000),
        "MHz": Fraction(1000**2),
        "GHz": Fraction(1000**3),
    },
    "cycles": {"cycle": Fraction(1), "cycles": Fraction(1)},
    "energy": {"pJ": Fraction(1), "fJ": Fraction(1, 1000), "nJ": Fraction(1000)},
    "area": {"um2": Fraction(1), "mm2": Fraction(10**6)},
}
_UNITS["bytes/cycle"] = {f"{unit}/cycle": value for unit, value in _UNITS["bytes"].items()}

_EXAMPLES: dict[Dimension, str] = {
    "bytes": "a size such as '48 KiB'",
    "bytes/cycle": "a rate such as '64 B/cycle'",
    "frequency": "a frequency such as '3.0 GHz'",
    "cycles": "a number of cycles such as '4', '0.5' or '1/3'",
    "energy": "an energy such as '12 pJ'",
    "area": "an area such as '350 um2'",
}

UNIT_NAMES = frozenset(
    part for units in _UNITS.values() for unit in units for part in unit.split("/")
)
"""The words that units are made of."""

_BARE: frozenset[Dimension] = frozenset({"cycles"})
"""Dimensions whose unit may be left out, because the field's name implies it."""

_NUMBER = re.compile(NUMBER)
_QUANTITY = re.compile(rf"({NUMBER})(?![\d.eE/])\s*(.*)", re.DOTALL | re.ASCII)


class UnitError(ValueError):
    """A text that is no number or quantity; its message says what was expected."""


def parse_number(text: str) -> Fraction:
    """Return a number: decimal, with an exponent, or a ratio such as ``1/3``."""
    if not _NUMBER.fullmatch(text.strip()):
        raise UnitError(f"expected a number such as 0.5 or 1/3, found '{shorten(text)}'")
    first, *factors = re.split(r"\s*([*/])\s*", text.strip())
    found = Fraction(first)
    for operator, factor in zip(factors[::2], map(Fraction, factors[1::2]), strict=True):
        if operator == "/" and not factor:
            raise UnitError(f"division by zero in '{text}'")
        found = found * factor if operator == "*" else found / factor
    return found


def parse_whole(text: str) -> int:
    """Return a whole number that is not negative."""
    if not re.fullmatch(rf"[0-9]{{1,18}}(?: ?[*/] ?{_DECIMAL})*", text.strip(), re.ASCII):
        raise UnitError(f"expected a whole number, found '{shorten(text)}'")
    found = parse_number(text)
    if found.denominator != 1:
        raise UnitError(f"expected a whole number, '{shorten(text)}' is {found}")
    return int(found)


def with_values(text: str, values: Mapping[str, int]) -> str:
    """Return the text of a number or quantity with parameters replaced by their values."""
    return re.sub(r"[A-Za-z_]\w*", lambda m: str(values.get(m[0], m[0])), text, flags=re.ASCII)


def parse_quantity(text: str, dimension: Dimension) -> Fraction:
    """Return a quantity in the base unit of its dimension (B, B/cycle, Hz, cycles, pJ, um2)."""
    known = _UNITS[dimension]
    match = _QUANTITY.fullmatch(text.strip())
    example = _EXAMPLES[dimension]
    if match is None:
        raise UnitError(f"expected {example}, found '{shorten(text)}'")
    number, unit = match[1], re.sub(r"\s+", "", match[2])
    if not unit and dimension in _BARE:
        return parse_number(number)
    if not unit:
        raise UnitError(f"the unit is missing: expected {example}, found '{shorten(text)}'")
    if unit not in known:
        raise UnitError(f"unknown unit '{shorten(unit)}', expected one of {', '.join(known)}")
    return parse_number(number) * known[unit]


def quantity_pattern(dimension: Dimension) -> str:
    """Return a regular expression of the texts of a dimension, for editors."""
    units = "|".join(unit.replace("/", " ?/ ?") for unit in _UNITS[dimension])
    unit = rf"(?: ?(?:{units}))?" if dimension in _BARE else rf" ?(?:{units})"
    return rf"^{WRITTEN}{unit}$"


def shorten(text: str) -> str:
    """Return the text fit for a message: one line, at most 40 characters."""
    line = " ".join(text.split())
    return line if len(line) <= 40 else line[:37] + "..."
