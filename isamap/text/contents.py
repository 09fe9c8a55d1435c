"""Tables: buffers whose elements the text holds."""

from collections.abc import Iterator
from itertools import chain
from math import prod

from isamap.ir import nodes
from isamap.ir.dtype import DTYPES
from isamap.ir.index import Index
from isamap.ir.literal import LiteralFault, canonical
from isamap.text.context import Scope
from isamap.text.syntax import Broken, BufferItem, Contents, Number
from isamap.text.values import Typing


def check_table(scope: Scope, item: BufferItem, shape: tuple[Index, ...], kind: str) -> bool:
    """Report what is wrong with the contents of a buffer; return whether they fit its shape.

    ``kind`` is that of the definition.
    """
    name, contents = item.name.text, item.contents
    assert contents is not None
    if item.role.text != "const" or kind == "program":
        what = "a program" if kind == "program" else f"'{item.role.text}'"
        message = f"{name} is of {what}: only a const of a kernel or an instruction has contents"
        scope.fail("E037", message, contents)
        return False
    for attribute in item.attributes:
        if attribute.kind in ("values", "strides"):
            message = f"the elements of {name} are written down: it has no '{attribute.kind}'"
            scope.fail("E037", message, attribute)
    sizes = [extent.substitute(scope.known).constant for extent in shape]
    if None in sizes:
        message = f"the extents of {name}, whose elements are written down, must be numbers"
        scope.fail("E048", message, item.name, "give the extents values")
        return False
    wanted = [size for size in sizes if size is not None]
    if prod(wanted) > 1 << 20:
        scope.fail("E048", f"{name} has more elements than a text can hold", item.name)
        return False
    return _fits(scope, name, contents, wanted, ())


def _fits(
    scope: Scope,
    name: str,
    node: Contents | Number | Broken,
    shape: list[int],
    at: tuple[int, ...],
) -> bool:
    """Report the first row that does not have the shape that it should have."""
    place = f"{name}[{', '.join(map(str, at))}]" if at else name
    match node:
        case Broken():
            return False
        case Number() if shape:
            message = f"{place} has {len(shape)} dimension{'s' * (len(shape) > 1)}, found a number"
            hint = f"write a row in brackets, of {shape[0]}"
            scope.fail("E048", message, node, hint)
            return False
        case Number():
            return True
        case Contents(rows):
            if not shape:
                scope.fail("E048", f"{place} is one element, found a row in brackets", node)
                return False
            if len(rows) != shape[0]:
                message = f"{place} has {shape[0]} elements here, found {len(rows)}"
                scope.fail("E048", message, node)
                return False
            return all(_fits(scope, name, r, shape[1:], (*at, n)) for n, r in enumerate(rows))


def numbers(node: Contents | Number | Broken) -> Iterator[Number]:
    """Yield the numbers of contents in row-major order."""
    match node:
        case Number():
            yield node
        case Contents(rows):
            yield from chain.from_iterable(map(numbers, rows))
        case Broken():
            pass


def table_values(
    typing: Typing, item: BufferItem, shape: tuple[Index, ...]
) -> nodes.Contents | None:
    """Return what a table holds, or None after reporting the elements that do not fit its type."""
    dtype = typing.dtype(item.dtype)
    if item.contents is None or dtype is None:
        return None
    found = [typing.literal(node, node.text, dtype) for node in numbers(item.contents)]
    literals = tuple(literal for literal in found if literal is not None)
    sizes = [extent.substitute(typing.scope.known).constant or 0 for extent in shape]
    return nodes.Contents(tuple(sizes), literals) if len(literals) == len(found) else None


def ends(item: BufferItem) -> tuple[int, int] | None:
    """Return the least and the greatest element of an integer table, or None."""
    if item.contents is None or item.dtype.text[0] not in "su":
        return None
    try:
        found = [int(canonical(n.text, DTYPES["s64"])) for n in numbers(item.contents)]
    except LiteralFault:
        return None  # reported where the literals are typed
    return (min(found), max(found)) if found else None
