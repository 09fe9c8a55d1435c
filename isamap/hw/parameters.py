"""Parameters of a description: numbers that are chosen when it is loaded, as the bits of a vector.

``aarch64_sve2:VL=512`` is the description ``aarch64_sve2`` with another value than its default.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from isamap.diagnostics import Diagnostic, HardwareError, Span, fail
from isamap.hw.template import scan_plain
from isamap.hw.units import UNIT_NAMES, UnitError, parse_whole
from isamap.hw.yaml_nodes import Mapping as Node
from isamap.hw.yaml_nodes import find, plain
from isamap.ir.dtype import DTYPES

_GIVEN = re.compile(r"(.+):([A-Za-z_]\w*=[0-9]{1,18}(?:,[A-Za-z_]\w*=[0-9]{1,18})*)", re.ASCII)
_APART = frozenset({"semantics", "emit", "bypass", "parameters", "name", "extends"})
"""Fields whose text is left as it is: programs and templates have rules of their own."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number of a machine that its description leaves to be chosen.

    ``value`` is the chosen one of the ``values`` that there are, ``default`` what it is unless
    another one is asked for; ``what`` says what it is, for people.
    """

    name: str
    what: str
    default: int
    values: tuple[int, ...]
    value: int


def split_name(text: str) -> tuple[str, dict[str, int]]:
    """Return the name or path of a description, and the values that follow it."""
    match = _GIVEN.fullmatch(text)
    if match is None:
        return text, {}
    pairs = [pair.split("=") for pair in match[2].split(",")]
    return match[1], {name: int(value) for name, value in pairs}


def full_name(name: str, parameters: Sequence[Parameter]) -> str:
    """Return the name by which a machine with its parameters is loaded again."""
    chosen = [f"{p.name}={p.value}" for p in parameters if p.value != p.default]
    return f"{name}:{','.join(chosen)}" if chosen else name


def settle(roots: Sequence[Node], given: Mapping[str, int]) -> tuple[Parameter, ...]:
    """Return the parameters of a chain of descriptions, the nearest declaration of each.

    Declarations whose fields are at fault are left out: reading the fields tells of them.
    HardwareError for a value of a parameter that there is not, or one that it does not take.
    """
    found: dict[str, Parameter] = {}
    for root in roots:
        for parameter in _declared(root, given):
            found.setdefault(parameter.name, parameter)
    faults = []
    for name, value in given.items():
        if name not in found:
            hint = f"its parameters are: {', '.join(found) or 'none'}"
            faults.append(fail("E128", f"the description has no parameter '{name}'", hint=hint))
        elif value not in found[name].values:
            listed = ", ".join(map(str, found[name].values))
            faults.append(fail("E128", f"{name} cannot be {value}", hint=f"it is one of {listed}"))
    if faults:
        raise HardwareError(faults)
    return tuple(found.values())


def check_parameters(root: Node) -> Iterator[Diagnostic]:
    """Yield what is wrong with the parameters that a description declares."""
    for parameter in _declared(root, {}):
        place, key = find(root, ("parameters", parameter.name))
        span: Span = place.span if key is None else key.span
        if parameter.default not in parameter.values:
            listed = ", ".join(map(str, parameter.values))
            message = f"the default of '{parameter.name}' is none of its values"
            yield fail("E128", message, span, f"they are: {listed}")
        if len(set(parameter.values)) < len(parameter.values):
            yield fail("E128", f"a value of '{parameter.name}' is given twice", span)
        if parameter.name in UNIT_NAMES or parameter.name in DTYPES:
            message = f"'{parameter.name}' is the name of a unit or a type already"
            yield fail("E128", message, span, "choose another name")


def fill(text: str, values: Mapping[str, int]) -> str:
    """Return a text with each ``{NAME}`` of a parameter replaced; all else stays."""
    return scan_plain(text, {name: str(value) for name, value in values.items()})


def filled(content: Any, values: Mapping[str, int]) -> Any:
    """Return a description's content, as texts, lists and dictionaries, with parameters filled in.

    Programs and templates are left alone.
    """
    match content:
        case str():
            return fill(content, values)
        case list():
            return [filled(item, values) for item in content]
        case dict():
            return {k: v if k in _APART else filled(v, values) for k, v in content.items()}
        case _:
            return content


def _declared(root: Node, given: Mapping[str, int]) -> Iterator[Parameter]:
    """Yield the parameters that a file declares, as far as their fields can be read."""
    declared = root.get("parameters")
    content = plain(declared) if isinstance(declared, Node) else {}
    for name, fields in content.items():
        try:
            default = parse_whole(fields["default"])
            values = tuple(parse_whole(value) for value in fields["values"])
        except (KeyError, TypeError, AttributeError, UnitError):
            continue
        what = fields.get("what", "")
        yield Parameter(name, what, default, values, given.get(name, default))
