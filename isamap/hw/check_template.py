"""Templates of C in descriptions: their names must be there, and all that matters be used."""

from collections.abc import Iterator, Mapping

from isamap.diagnostics import Diagnostic, Span, fail
from isamap.hw.accelerator import Entry, Storage
from isamap.hw.document import Document, Place
from isamap.hw.template import PARTS, Placeholder, Stray, scan
from isamap.hw.yaml_nodes import Scalar
from isamap.ir.nodes import Extent, Instruction

_BRACE = "a single brace: braces of C are doubled, '{{' or '}}'"


def check_template(
    document: Document, place: Place, entry: Entry, template: str, storages: Mapping[str, Storage]
) -> Iterator[Diagnostic]:
    """Yield what is wrong with the C template of an instruction that stands at a place."""
    instruction = entry.instruction
    scalar = document.scalar(*place)
    known = _names(instruction) | document.parameters.keys()
    pointers = tuple(
        operand.name
        for operand in instruction.places
        if storages[operand.storage or ""].kind == "memory"
    )
    used: set[str] = set()
    parts: dict[str, set[str]] = {}
    broken = False
    for token in scan(template):
        match token:
            case Stray(offset):
                span = _inside(scalar, offset, 1)
                broken = True
                yield fail("E114", _BRACE, span)
            case Placeholder(name, offset) if name not in known:
                span = _inside(scalar, offset, len(token.text) + 2)
                broken = True
                message = f"'{{{token.text}}}' is no operand, extent or type of '{entry.name}'"
                yield fail("E114", message, span, f"the names are: {', '.join(sorted(known))}")
            case Placeholder(name, offset, part) if part and (
                part not in PARTS or name not in pointers
            ):
                span = _inside(scalar, offset, len(token.text) + 2)
                broken = True
                message = f"'{{{token.text}}}' is no part of where an operand lies in memory"
                hint = f"the parts are {' and '.join(PARTS)}, of: {', '.join(pointers) or 'none'}"
                yield fail("E114", message, span, hint)
            case Placeholder(name, _, part):
                used.add(name)
                parts.setdefault(name, set()).add(part)
    needed = [o.name for o in instruction.places]
    chosen = (e for e in instruction.extents if e.value is None and e.least is None)
    needed += [e.name for e in chosen if _matters(e, instruction)]
    for name in needed:
        # A name that is wrong is usually the one that is missing.
        if name not in used and not broken:
            message = f"the template of '{entry.name}' never uses '{name}'"
            yield fail("E114", message, scalar.span, f"write '{{{name}}}' where it belongs")
    for name, own in parts.items():
        if "" not in own and own != set(PARTS):
            (lacking,) = set(PARTS) - own
            message = f"the template of '{entry.name}' has a part of where '{name}' lies only"
            yield fail("E114", message, scalar.span, f"write '{{{name}.{lacking}}}', too")


def _names(instruction: Instruction) -> frozenset[str]:
    """Return what a template may name of an instruction: operands, extents, type parameters."""
    names = {operand.name for operand in instruction.places}
    names |= {extent.name for extent in instruction.extents}
    names |= {parameter for parameter, _ in instruction.types}
    return frozenset(names)


def check_prefetch(document: Document, name: str, template: str) -> Iterator[Diagnostic]:
    """Yield what is wrong with the template by which lines are asked for into a cache."""
    scalar = document.scalar("storages", name, "prefetch")
    used = set()
    for token in scan(template):
        match token:
            case Stray(offset):
                yield fail("E114", _BRACE, _inside(scalar, offset, 1))
                return
            case Placeholder(_, offset) if token.text != "address":
                message = f"'{{{token.text}}}' is nothing that a line is prefetched by"
                span = _inside(scalar, offset, len(token.text) + 2)
                yield fail("E114", message, span, "the only name is: address")
                return
            case Placeholder(own, _):
                used.add(own)
    if not used:
        message = f"the template that prefetches into '{name}' never uses 'address'"
        yield fail("E114", message, scalar.span, "write '{address}' where it belongs")


def _matters(extent: Extent, instruction: Instruction) -> bool:
    """Whether the machine needs the extent's number: some operand's place depends on it."""
    used: frozenset[str] = frozenset()
    for operand in instruction.places:
        for index in (*operand.shape, *(operand.strides or ())):
            used |= index.names
    return extent.name in used


def _inside(scalar: Scalar, offset: int, length: int) -> Span:
    """Place characters of a scalar in its file; the whole scalar where that cannot be done."""
    excerpt = scalar.excerpt
    if excerpt is None:
        return scalar.span
    before = excerpt.text[:offset]
    line = before.count("\n")
    column = offset - (before.rfind("\n") + 1)
    row, start = excerpt.first_line + line, excerpt.indent + column + 1
    return Span(excerpt, row, start, row, start + length)
