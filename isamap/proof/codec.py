"""Frozen data as JSON and back, by the names of its classes and fields.

Only the classes listed here are read, so that a file can name nothing else.  Places in source texts
are left out; an instruction is written by its name and found again among those that are given.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Any, TypeAlias

from isamap.hw.accelerator import Entry, Storage
from isamap.ir import constraint, nodes
from isamap.ir import index as indices
from isamap.ir.dtype import DTYPES, DType
from isamap.ir.index import Name
from isamap.ir.printer import print_instruction
from isamap.lower import nodes as lowered
from isamap.mapping import matching
from isamap.mapping.compose.composed import Composed
from isamap.schedule import schedule

Json: TypeAlias = Any


class Unreadable(Exception):
    """JSON that is not what was written; the message says where."""


def _classes() -> dict[str, type]:
    found: dict[str, type] = {"Storage": Storage, "Name": Name}
    for module in (indices, nodes, constraint, lowered, matching, schedule):
        for name, value in vars(module).items():
            if isinstance(value, type) and is_dataclass(value):
                found[name] = value
    return found


_CLASSES = _classes()


def encode(value: object) -> Json:
    """Return a value as JSON data: a class's fields, a tuple as a list, a mapping as pairs."""
    match value:
        case Name(name):
            return {"is": "Name", "name": name}
        case None | bool() | int() | str() | float():
            return value
        case Fraction():
            return {"fraction": str(value)}
        case DType():
            return {"type": value.name}
        case Entry():
            return {"instruction": entry_key(value)}
        case tuple() | list():
            return [encode(part) for part in value]
        case Mapping():
            return {"pairs": [[encode(k), encode(v)] for k, v in value.items()]}
        case _:
            name = type(value).__name__
            assert _CLASSES.get(name) is type(value), f"{name} cannot be saved"
            found = {"is": name}
            for field in fields(value):  # type: ignore[arg-type]
                if field.name != "span":
                    found[field.name] = encode(getattr(value, field.name))
            return found


def entry_key(entry: Entry) -> str:
    """Return what names an instruction: its name, and what a composed one is made of."""
    if not isinstance(entry, Composed):
        return entry.name
    parts = [(part.entry.name, part.places) for part in entry.parts]
    conditions = [condition.lemma for condition in entry.conditions]
    made = repr((print_instruction(entry.instruction), parts, conditions))
    return f"{entry.name} {sha256(made.encode()).hexdigest()[:16]}"


def decode(data: Json, entries: Mapping[str, Entry], where: str = "") -> Any:
    """Return the value of :func:`encode`'s data; :class:`Unreadable` if it is none."""
    match data:
        case None | bool() | int() | str() | float():
            return data
        case list():
            return tuple(decode(part, entries, f"{where}[{n}]") for n, part in enumerate(data))
        case {"fraction": str(text)}:
            return Fraction(text)
        case {"type": str(name)} if name in DTYPES:
            return DTYPES[name]
        case {"instruction": str(name)} if len(data) == 1:
            if name not in entries:
                raise Unreadable(f"{where}: there is no instruction {name}")
            return entries[name]
        case {"pairs": list(pairs)}:
            return {decode(k, entries, where): decode(v, entries, where) for k, v in pairs}
        case {"is": str(name), **rest} if name in _CLASSES:
            values = {str(k): decode(v, entries, f"{where}.{k}") for k, v in rest.items()}
            try:
                return _CLASSES[name](**values)
            except TypeError as error:
                raise Unreadable(f"{where}: {error}") from None
        case _:
            raise Unreadable(f"{where}: cannot be read")
