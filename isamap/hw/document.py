"""One YAML file as a validated model that still knows where each of its parts was written."""

import difflib
import json
from collections.abc import Iterable
from collections.abc import Mapping as Names
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import BaseModel, ValidationError

from isamap.diagnostics import (
    Collector,
    Diagnostic,
    HardwareError,
    IsamapError,
    Source,
    Span,
    fail,
)
from isamap.hw import schema
from isamap.hw.parameters import check_parameters, filled, settle
from isamap.hw.schema import DescriptionModel, InstructionModel
from isamap.hw.units import shorten
from isamap.hw.yaml_nodes import Mapping, Node, Scalar, Sequence, find, plain, read_nodes
from isamap.text.load import parse_instructions

Place: TypeAlias = tuple[int | str, ...]
"""The keys and positions that lead to a value."""


@dataclass(frozen=True, slots=True)
class Document:
    """A description's file: its text, its nodes, its values, and those of its parameters.

    ``folder`` is where it lies, None if it is shipped.
    """

    source: Source
    root: Mapping
    model: DescriptionModel
    parameters: Names[str, int] = field(default_factory=dict)
    folder: Path | None = None

    def span(self, *path: int | str) -> Span:
        """Return where the value at ``path`` stands, or the nearest enclosing value's place."""
        return find(self.root, path)[0].span

    def key_span(self, *path: int | str) -> Span:
        """Return where the key at the end of ``path`` stands."""
        node, key = find(self.root, path)
        return key.span if key is not None else node.span

    def scalar(self, *path: int | str) -> Scalar:
        """Return the text node at ``path``."""
        node, _ = find(self.root, path)
        assert isinstance(node, Scalar)
        return node

    @property
    def content(self) -> str:
        """The content as one canonical text: comments and layout do not change it."""
        return json.dumps(plain(self.root), sort_keys=True, ensure_ascii=True)


def read_document(
    source: Source, root: Mapping | None = None, parameters: Names[str, int] | None = None
) -> Document:
    """Return the validated document of a text; raise HardwareError with all of its faults.

    ``root`` is what :func:`read_nodes` gave of it.  ``parameters`` are the values of those that it
    or another description of its chain declares; without them its own have their defaults.
    """
    root = root if root is not None else read_nodes(source)
    if parameters is None:
        parameters = {p.name: p.value for p in settle([root], {})}
    try:
        content = filled(plain(root), parameters)
        model = DescriptionModel.model_validate(content, context=dict(parameters))
    except ValidationError as error:
        collector = Collector()
        for item in error.errors(include_url=False, include_context=True):
            collector.add(_diagnostic(item, root))
        collector.extend(_semantics_faults(root, parameters))
        raise HardwareError(collector.errors) from None
    document = Document(source, root, model, parameters)
    if model.format != schema.FORMAT:
        message = f"format {model.format} is not known, this program reads {schema.FORMAT}"
        raise HardwareError(fail("E122", message, document.span("format")))
    if faults := list(check_parameters(root)):
        raise HardwareError(faults)
    return document


def _semantics_faults(root: Mapping, parameters: Names[str, int]) -> list[Diagnostic]:
    """Return the faults of the instructions' texts in a file that is otherwise at fault too.

    Only where the file names its own storages, each by a key: else too much is unknown.
    """
    storages, _ = find(root, ("storages",))
    instructions, _ = find(root, ("instructions",))
    own = isinstance(storages, Mapping) and storages is not root
    if not own or not isinstance(instructions, Sequence) or "extends" in plain(root):
        return []
    names = frozenset(plain(storages))
    faults: list[Diagnostic] = []
    for item in instructions.items:
        text = item.get("semantics") if isinstance(item, Mapping) else None
        if isinstance(text, Scalar) and text.excerpt is not None:
            try:
                parse_instructions(text.excerpt, names, parameters)
            except IsamapError as error:
                faults += error.diagnostics
    return faults


def _diagnostic(item: Any, root: Mapping) -> Diagnostic:
    """Say a pydantic error in the words of the file, at the place in the file."""
    path: tuple[int | str, ...] = tuple(item["loc"])
    node, key = find(root, path)
    # A path ends in '[key]' where the key itself is at fault.
    place = key.span if key is not None and path[-1] == "[key]" else node.span
    found = _found(node)
    match item["type"]:
        case "missing":
            return fail("E105", f"'{path[-1]}' is missing", place)
        case "extra_forbidden":
            place = key.span if key is not None else place
            return fail("E104", f"unknown key '{path[-1]}'", place, _suggestion(path))
        case "value_error":
            code = "E107" if isinstance(node, Scalar) else "E106"
            return fail(code, str(item["ctx"]["error"]), place)
        case "literal_error":
            word = path[-2] if path[-1] == "[key]" else found
            message = f"expected {item['ctx']['expected']}, found {word}"
            return fail("E106", message, place)
        case "model_type" | "dict_type":
            return fail("E106", f"expected a mapping of fields, found {found}", place)
        case "tuple_type":
            return fail("E106", f"expected a list, found {found}", place)
        case other:
            return fail("E106", f"{item['msg']} ({other})", place)


def _found(node: Node) -> str:
    match node:
        case Scalar("" | "~" | "null"):
            return "nothing"
        case Scalar(text):
            return f"'{shorten(text)}'"
        case Sequence():
            return "a list"
        case Mapping():
            return "a mapping"


def _suggestion(path: tuple[int | str, ...]) -> str:
    known = sorted(_model_at(path[:-1]).model_fields)
    close = difflib.get_close_matches(str(path[-1]), known, n=1)
    return f"did you mean '{close[0]}'?" if close else f"the keys are {_listed(known)}"


def _model_at(path: tuple[int | str, ...]) -> type[BaseModel]:
    match path:
        case ("instructions" | "change", _, "numeric", *_):
            return schema.NumericModel
        case ("change", *_):
            return schema.ChangeModel
        case ("instructions", *_):
            return InstructionModel
        case ("storages", *_):
            return schema.StorageModel
        case ("states", *_):
            return schema.StateModel
        case ("parameters", *_):
            return schema.ParameterModel
        case ("toolchain", *_):
            return schema.ToolchainModel
        case _:
            return DescriptionModel


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)
