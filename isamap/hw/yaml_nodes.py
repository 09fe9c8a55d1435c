"""Safe reading of YAML into nodes that know their place.

No value is interpreted here: every scalar stays the text that was written, so ``on``, ``1e3`` and
``12:30`` are those characters.  The size, the depth and the number of nodes are bounded before
anything is built; anchors, aliases, tags, merge keys and several documents are refused.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from isamap.diagnostics import Collector, Diagnostic, HardwareError, Source, Span, fail

MAX_BYTES = 1 << 20
MAX_DEPTH = 64
MAX_EVENTS = 200_000

TOO_DEEP = "nesting depth"
"""What a LibYAML that bounds levels itself says, whose scanner looks ahead."""

_DEEP = f"nested more than {MAX_DEPTH} levels deep"

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text; ``excerpt`` places it character by character in its file, where that is possible."""

    text: str
    span: Span
    excerpt: Source | None


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    items: tuple["Node", ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Mapping:
    """Pairs of a key and a value, in order, no key twice."""

    entries: tuple[tuple[Scalar, "Node"], ...]
    span: Span

    def get(self, key: str) -> "Node | None":
        """Return the value of ``key``."""
        return next((value for name, value in self.entries if name.text == key), None)


Node: TypeAlias = Scalar | Sequence | Mapping


def read_file(path: Path) -> Source:
    """Return the text of a file; raise HardwareError unless it is a small UTF-8 text."""
    name = str(path)
    try:
        if path.exists() and not path.is_file():
            raise HardwareError(fail("E100", f"'{name}' is not a regular file"))
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        # ValueError: a name with a NUL character.
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise HardwareError(fail("E100", f"cannot read '{name}': {reason}")) from None
    return decode(name, data)


def decode(name: str, data: bytes) -> Source:
    """Return bytes of a file as text; raise HardwareError unless it is small and UTF-8."""
    if len(data) > MAX_BYTES:
        raise HardwareError(fail("E100", f"'{name}' is larger than {MAX_BYTES >> 20} MiB"))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"'{name}' is not UTF-8 text: byte {data[error.start]:#04x} at {error.start}"
        raise HardwareError(fail("E100", message)) from None
    if "\0" in text:
        raise HardwareError(fail("E100", f"'{name}' is not text: it holds a NUL character"))
    return Source(name, text)


@lru_cache(maxsize=64)
def read_nodes(source: Source) -> Mapping:
    """Return the one mapping that a YAML text holds; raise HardwareError with all faults.

    What several descriptions extend is read once.
    """
    collector = Collector()
    try:
        _check_events(source, collector)
        _raise(collector)
        root = yaml.compose(source.text, _LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        span = _span(source, mark, None) if mark else None
        if TOO_DEEP in (error.problem or ""):
            raise HardwareError(fail("E102", _DEEP, span)) from None
        message = f"not YAML: {error.problem or error.context}"
        raise HardwareError(fail("E101", message, span, _syntax_hint(error.problem))) from None
    except yaml.YAMLError as error:
        message = "not YAML: " + str(error).splitlines()[0]
        raise HardwareError(fail("E101", message)) from None
    if not isinstance(root, yaml.MappingNode):
        start = Span(source, 1, 1, 1, 2)
        span = _span(source, root.start_mark, root.end_mark) if root else start
        message = "a description is a mapping of fields such as 'name: ...'"
        raise HardwareError(fail("E106", message, span))
    node = _convert(root, source, source.text.splitlines(), collector)
    _raise(collector)
    assert isinstance(node, Mapping)
    return node


def plain(node: Node) -> Any:
    """Return the node as dictionaries, lists and texts."""
    match node:
        case Scalar(text):
            return text
        case Sequence(items):
            return [plain(item) for item in items]
        case Mapping(entries):
            return {key.text: plain(value) for key, value in entries}


def find(root: Node, path: tuple[int | str, ...]) -> tuple[Node, Scalar | None]:
    """Return the deepest node on ``path`` and its key; parts that the tree lacks are skipped."""
    node, key = root, None
    for part in path:
        match node:
            case Mapping(entries):
                pair = next(((k, v) for k, v in entries if k.text == part), None)
                if pair is not None:
                    key, node = pair
            case Sequence(items) if isinstance(part, int) and part < len(items):
                key, node = None, items[part]
            case _:
                pass
    return node, key


def _raise(collector: Collector) -> None:
    if collector.errors:
        raise HardwareError(collector.errors)


def _check_events(source: Source, collector: Collector) -> None:
    """Bound what composing will cost, without recursion, and refuse what no description needs."""
    depth = documents = 0
    events: Iterator[Any] = yaml.parse(source.text, _LOADER)
    for count, event in enumerate(events):
        if count >= MAX_EVENTS:
            raise HardwareError(_refuse(source, event, f"more than {MAX_EVENTS} YAML nodes"))
        match event:
            case yaml.AliasEvent():
                collector.add(_refuse(source, event, "aliases ('*name') are not allowed"))
            case yaml.DocumentStartEvent():
                documents += 1
                if documents > 1:
                    collector.add(_refuse(source, event, "a file holds one YAML document"))
            case yaml.CollectionStartEvent():
                depth += 1
                if depth > MAX_DEPTH:
                    raise HardwareError(_refuse(source, event, _DEEP))
            case yaml.CollectionEndEvent():
                depth -= 1
            case _:
                pass
        if isinstance(event, yaml.NodeEvent) and not isinstance(event, yaml.AliasEvent):
            if event.anchor:
                collector.add(_refuse(source, event, "anchors ('&name') are not allowed"))
            if getattr(event, "tag", None):
                collector.add(_refuse(source, event, "tags ('!name') are not allowed"))


def _refuse(source: Source, event: Any, message: str) -> Diagnostic:
    return fail("E102", message, _span(source, event.start_mark, event.end_mark))


def _convert(node: Any, source: Source, lines: list[str], collector: Collector) -> Node:
    span = _span(source, node.start_mark, node.end_mark, lines)
    if isinstance(node, yaml.ScalarNode):
        return Scalar(node.value, span, _excerpt(node, source, lines))
    if isinstance(node, yaml.SequenceNode):
        return Sequence(tuple(_convert(n, source, lines, collector) for n in node.value), span)
    entries: dict[str, tuple[Scalar, Node]] = {}
    for key_node, value_node in node.value:
        key = _convert(key_node, source, lines, collector)
        value = _convert(value_node, source, lines, collector)
        if not isinstance(key, Scalar):
            collector.add(fail("E106", "a key is a text", key.span))
        elif key.text == "<<":
            collector.add(fail("E102", "merge keys ('<<') are not allowed", key.span))
        elif key.text in entries:
            first = Diagnostic("", "first here", entries[key.text][0].span, severity="note")
            message = f"'{key.text}' is given twice"
            collector.add(Diagnostic("E103", message, key.span, notes=(first,)))
        else:
            entries[key.text] = (key, value)
    return Mapping(tuple(entries.values()), span)


def _span(source: Source, start: Any, end: Any, lines: list[str] | None = None) -> Span:
    """Return the place between two marks; of something longer than a line, its first line."""
    line, column = start.line + 1, start.column + 1
    if end is not None and end.line == start.line:
        stop = end.column + 1
    elif end is not None:
        stop = len(source.line(line) if lines is None else lines[start.line]) + 1
    else:
        stop = column
    return Span(source, line, column, line, max(column + 1, stop))


def _excerpt(node: Any, source: Source, lines: list[str]) -> Source | None:
    """Place a scalar's text in the file; None if the text differs from the characters there."""
    value: str = node.value
    parts = value.split("\n")
    line, column = node.start_mark.line, node.start_mark.column
    if node.style == "|":
        first, indent = line + 1, _indent(parts, lines[line + 1 :])
    elif node.style in (None, "'", '"') and len(parts) == 1:
        first, indent = line, column + (node.style is not None)
    else:
        return None
    for offset, part in enumerate(parts):
        raw = lines[first + offset] if first + offset < len(lines) else ""
        placed = raw[indent : indent + len(part)] if node.style != "|" else raw[indent:]
        if placed != part and (part or raw.strip()):
            # The lines that a block scalar's end adds or drops are blank, or belong to others.
            if offset >= len(parts) - 1 and not part:
                continue
            return None
    return Source(source.name, value, first + 1, indent, source.text)


def _indent(parts: list[str], lines: list[str]) -> int:
    pairs = zip(parts, lines, strict=False)
    return next((len(raw) - len(part) for part, raw in pairs if part.strip()), 0)


_UNQUOTED = (
    "mapping values are not allowed",
    "could not find expected ':'",
    "did not find expected key",
    "expected <block end>",
)
"""What YAML says of texts that should have been quoted."""


def _syntax_hint(problem: str | None) -> str | None:
    if problem is None:
        return None
    if any(words in problem for words in _UNQUOTED):
        return "a text with ': ' or '{' in it is quoted, or written as a block after '|'"
    if "cannot start any token" in problem:
        return "a text that begins with @, ` or % is quoted; tabs do not indent"
    return None
