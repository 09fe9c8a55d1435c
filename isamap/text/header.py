"""Declarations: extents, permissions, buffers and ranges of a definition."""

from collections.abc import Mapping
from math import prod
from typing import cast

from isamap.ir.dtype import DTYPES
from isamap.ir.index import Index
from isamap.ir.literal import LiteralFault, canonical, exact, value
from isamap.ir.nodes import Buffer, Extent, Literal, Permissions, Range, Role
from isamap.text.contents import check_table, ends, table_values
from isamap.text.context import Declared, Placed, Scope, listed
from isamap.text.indices import to_index
from isamap.text.proof import negative_at
from isamap.text.syntax import (
    AttributeItem,
    Broken,
    BufferItem,
    Definition,
    Expression,
    ExtentItem,
    Number,
    RangeItem,
    Word,
)
from isamap.text.values import Typing

MAX_RANK = 16
"""Dimensions of a buffer."""

_LARGEST = 1 << 62
"""Elements of a buffer: offsets in bytes still fit 64 bits for most types."""


# --- extents --------------------------------------------------------------------------------------
def declare_extents(scope: Scope, definition: Definition, given: Mapping[str, int]) -> None:
    """Take the extents of a definition; ``given`` replaces the values of some."""
    for item in definition.extents:
        if not scope.declare(item.name):
            continue
        name, span = item.name.text, scope.span(item.name)
        if name in given:
            _known(scope, item.name, given[name])
        elif item.value is not None:
            _valued(scope, item, item.value)
        elif item.lower is not None and item.upper is not None:
            _ranged(scope, definition, item, item.lower, item.upper)
        elif item.least is not None:
            _open(scope, definition, item, item.least)
        else:
            scope.extents[name] = Extent(name, span=span)


def _known(scope: Scope, name: Word, number: int) -> None:
    if not 0 < number <= _LARGEST:
        reason = "it must be 1 or more" if number < 1 else "it does not fit 62 bits"
        scope.fail("E029", f"the extent {name.text} is {number}: {reason}", name)
        scope.broken.add(name.text)
        return
    scope.extents[name.text] = Extent(name.text, number, span=scope.span(name))
    scope.known[name.text] = number


def _valued(scope: Scope, item: ExtentItem, node: Expression) -> None:
    name = item.name.text
    found = to_index(scope, node, extents_only=True)
    if found is None:
        scope.broken.add(name)
        return
    number = found.substitute(scope.known)
    if number.constant is not None:
        _known(scope, item.name, number.constant)
    elif is_positive(scope, number, item.name, f"the extent {name}"):
        scope.derived[name] = found
    else:
        scope.broken.add(name)


def _ranged(
    scope: Scope, definition: Definition, item: ExtentItem, lower: Expression, upper: Expression
) -> None:
    name = item.name.text
    scope.broken.add(name)
    if definition.kind != "instruction":
        message = f"only an instruction's extent can have a range; {name} is of a {definition.kind}"
        scope.fail("E038", message, item.name, "give it a value, or leave it a symbol")
        return
    ends = [to_index(scope, node, extents_only=True) for node in (lower, upper)]
    numbers = [end.substitute(scope.known).constant for end in ends if end is not None]
    if len(numbers) < 2:
        return
    low, high = numbers
    if low is None or high is None:
        scope.fail("E029", f"the range of {name} must be made of numbers", item.name)
    elif not 0 < low < high:
        message = f"the range {low}..{high} of {name} must begin at 1 or more and not be empty"
        scope.fail("E029", message, item.name, "the upper end is exclusive")
    else:
        scope.broken.discard(name)
        scope.extents[name] = Extent(name, None, (low, high), scope.span(item.name))


def _open(scope: Scope, definition: Definition, item: ExtentItem, least: Expression) -> None:
    """Take an extent that the machine fixes and the description leaves open."""
    name = item.name.text
    scope.broken.add(name)
    if definition.kind != "instruction":
        message = f"only an instruction's extent can be left open; {name} is of a {definition.kind}"
        scope.fail("E038", message, item.name, "give it a value, or leave it a symbol")
        return
    if item.kind is not None and item.kind.text != "pow2":
        hint = f"write '{name} >= 4' or, for powers of two alone, '{name} >= 4 pow2'"
        scope.fail("E013", f"unknown kind of numbers '{item.kind.text}'", item.kind, hint)
        return
    found = to_index(scope, least, extents_only=True)
    number = None if found is None else found.substitute(scope.known).constant
    if found is None:
        return
    if number is None:
        scope.fail("E029", f"the least value of {name} must be a number", item.name)
    elif not 2 <= number <= _LARGEST:
        message = f"the least value of {name} is {number}; it must be 2 or more, and fit 62 bits"
        hint = "what holds for an axis of one place need not hold for a longer one"
        scope.fail("E029", message, item.name, hint)
    elif item.kind is not None and number & (number - 1):
        scope.fail("E029", f"the least value of {name}, {number}, is no power of two", item.name)
    else:
        scope.broken.discard(name)
        power = item.kind is not None
        span = scope.span(item.name)
        scope.extents[name] = Extent(name, least=number, power=power, span=span)


def is_positive(scope: Scope, size: Index, node: Placed, what: str) -> bool:
    """Return whether a size is 1 or more for all symbols; report it if not."""
    with scope.deciding(node, f"{what} is 1 or more"):
        witness = negative_at(size - 1, scope.domain())
        if witness is None:
            return True
        at = ", ".join(f"{name} = {number}" for name, number in witness.items())
        reached = size.evaluate(witness)
        where = f" for {at}" if at else ""
        message = f"{what} is {reached}{where}; it must be 1 or more"
        hint = "give the sizes numbers, or choose others" if at else None
        scope.fail("E029", message, node, hint)
    return False


# --- permissions ----------------------------------------------------------------------------------
def permissions(scope: Scope, definition: Definition) -> Permissions:
    """Return the permissions of a kernel."""
    flags: dict[str, bool] = {}
    bound = None
    for item in definition.permits:
        name = item.name.text
        if name in flags or (item.bound is not None and bound is not None):
            scope.fail("E014", f"the permission {name.split('(')[0]} is given twice", item.name)
        if item.bound is None:
            flags[name] = not item.denied
        elif isinstance(item.bound, Number):
            try:
                bound = exact(item.bound.text)
            except LiteralFault as fault:
                scope.fail("E016", f"the bound of an error: {fault}", item.name)
                continue
            if not 0 < bound < 1:
                message = f"the bound of an error must lie between 0 and 1, found {item.bound.text}"
                scope.fail("E016", message, item.name)
    return Permissions(
        flags.get("reassociate", True),
        flags.get("finite", True),
        flags.get("distribute", False),
        bound,
        tuple((item.name.text, scope.span(item.name)) for item in definition.permits),
    )


# --- buffers --------------------------------------------------------------------------------------
def declare_buffer(
    scope: Scope, item: BufferItem, storages: frozenset[str] | None, kind: str
) -> None:
    """Take a buffer's name and shape; ``storages`` is None in kernels and programs.

    ``kind`` is that of the definition.
    """
    fresh = scope.declare(item.name)
    name = item.name.text
    if len(item.shape) > MAX_RANK:
        message = f"{name} has {len(item.shape)} dimensions; {MAX_RANK} are allowed"
        scope.fail("E010", message, item.name)
        scope.broken.add(name)
        return
    found = [_extent(scope, node, name) for node in item.shape]
    shape = tuple(extent for extent in found if extent is not None)
    strides = _strides(scope, item)
    whole = len(shape) == len(found) and _fits(scope, item, shape)
    if whole and item.contents is not None:
        whole = check_table(scope, item, shape, kind)
    if fresh and whole:
        scope.buffers[name] = Declared(item, shape, strides)
    elif fresh:
        scope.broken.add(name)
    _check_place(scope, item, storages)
    seen: set[str] = set()
    for attribute in item.attributes:
        if attribute.kind in seen:
            scope.fail("E014", f"'{attribute.kind}' is given twice", attribute)
        seen.add(attribute.kind)
        if attribute.kind == "order":
            _check_order(scope, attribute)
        if attribute.kind == "strides" and storages is None:
            message = "only the operands of an instruction have strides"
            scope.fail("E037", message, attribute)
        if attribute.kind == "values" and item.role.text in ("out", "local"):
            message = f"values are declared of what a kernel is given, not of '{item.role.text}'"
            scope.fail("E037", message, attribute)


def _extent(scope: Scope, node: Expression, name: str) -> Index | None:
    found = to_index(scope, node, extents_only=True)
    if found is None:
        return None
    size = found.substitute(scope.known)
    return found if is_positive(scope, size, node, f"this extent of {name}") else None


def _fits(scope: Scope, item: BufferItem, shape: tuple[Index, ...]) -> bool:
    sizes = [extent.substitute(scope.known).constant or 1 for extent in shape]
    if prod(sizes) <= _LARGEST:
        return True
    message = f"{item.name.text} has {prod(sizes):.3g} elements, more than can be addressed"
    scope.fail("E029", message, item.name)
    return False


def _strides(scope: Scope, item: BufferItem) -> tuple[Index, ...] | None:
    for attribute in item.attributes:
        if attribute.kind == "strides":
            found = [to_index(scope, node, extents_only=True) for node in attribute.args]
            if len(found) != len(item.shape):
                message = (
                    f"{item.name.text} has {len(item.shape)} dimensions but {len(found)} strides"
                )
                scope.fail("E012", message, attribute)
            whole = tuple(stride for stride in found if stride is not None)
            return whole if len(whole) == len(item.shape) else None
    return None


def _check_place(scope: Scope, item: BufferItem, storages: frozenset[str] | None) -> None:
    name = item.name.text
    if storages is None:
        if item.storage is not None:
            message = f"{name} is placed in a storage: only operands of instructions are"
            scope.fail("E038", message, item.storage, f"leave '@ {item.storage.text}' out")
    elif item.contents is not None and item.storage is not None:
        message = f"{name} is a part of the instruction: it is placed in no storage"
        scope.fail("E038", message, item.storage, f"leave '@ {item.storage.text}' out")
    elif item.storage is None and (item.contents is not None or item.role.text == "local"):
        pass  # within the instruction, nobody places it
    elif item.storage is None:
        hint = f"say where it lives: {name} : {item.dtype.text}[...] @ STORAGE"
        scope.fail("E038", f"the operand {name} is placed in no storage", item.name, hint)
    elif storages and item.storage.text not in storages:
        hint = f"the storages are: {listed(sorted(storages))}"
        scope.fail("E038", f"unknown storage '{item.storage.text}'", item.storage, hint)


def _check_order(scope: Scope, attribute: AttributeItem) -> None:
    order = cast(Word, attribute.word).text
    if order == "big":
        message = "buffers in big-endian byte order are reserved, not supported"
        scope.fail("E046", message, attribute)
    elif order != "little":
        scope.fail("E013", f"unknown byte order '{order}'", attribute, "it is little or big")


def buffer(typing: Typing, declared: Declared) -> Buffer | None:
    """Return a declared buffer with its types bound."""
    item = declared.item
    dtype = typing.dtype(item.dtype)
    if dtype is None:
        return None
    pad: Literal | None = None
    values: tuple[Literal, Literal] | None = None
    for attribute in item.attributes:
        found = [_literal(typing, node, item.dtype) for node in attribute.args]
        literals = [literal for literal in found if literal is not None]
        if attribute.kind == "pad" and literals:
            (pad,) = literals
        elif attribute.kind == "values" and len(literals) == 2:
            values = (literals[0], literals[1])
            _check_values(typing, item, attribute, values)
    contents = table_values(typing, item, declared.shape)
    if item.contents is not None and contents is None:
        return None
    return Buffer(
        item.name.text,
        cast(Role, item.role.text) if contents is None else "table",
        dtype,
        declared.shape,
        item.storage.text if item.storage else None,
        pad,
        values,
        declared.strides,
        span=typing.span(item.name),
        contents=contents,
    )


def _literal(typing: Typing, node: Expression, dtype: Word) -> Literal | None:
    if not isinstance(node, Number):
        return None
    found = typing.dtype(dtype)
    return None if found is None else typing.literal(node, node.text, found)


def _check_values(
    typing: Typing, item: BufferItem, attribute: AttributeItem, values: tuple[Literal, Literal]
) -> None:
    low, high = map(value, values)
    if not low <= high:
        message = f"the values {values[0].text} .. {values[1].text} are an empty range"
        typing.scope.fail("E036", message, attribute, "the least comes first; both are included")


def limits(item: BufferItem) -> tuple[int, int] | None:
    """Return the ends of an integer buffer's declared values, or None."""
    if item.contents is not None:
        return ends(item)
    for attribute in item.attributes:
        if attribute.kind == "values" and item.dtype.text[0] in "su":
            texts = [node.text for node in attribute.args if isinstance(node, Number)]
            try:
                low, high = (int(canonical(text, DTYPES["s64"])) for text in texts)
            except (LiteralFault, ValueError):
                return None  # reported where the literals are typed
            return (low, high) if low <= high else None
    return None


# --- ranges ---------------------------------------------------------------------------------------
def declare_range(scope: Scope, item: RangeItem) -> None:
    """Take an explicit range of a variable."""
    fresh = scope.declare(item.name)
    name = item.name.text
    ends = [to_index(scope, node, extents_only=True) for node in (item.lower, item.upper)]
    lower, upper = ends
    if not fresh:
        return
    broken = any(isinstance(node, Broken) for node in (item.lower, item.upper))
    if lower is None or upper is None or broken:
        scope.broken.add(name)
        return
    size = (upper - lower).substitute(scope.known)
    with scope.deciding(item, f"the range of {name} is never empty"):
        witness = negative_at(size - 1, scope.domain())
        if witness is None:
            scope.ranges[name] = Range(name, lower, upper, scope.span(item.name))
            return
        at = ", ".join(f"{n} = {number}" for n, number in witness.items())
        message = f"the range of {name} is empty{f' for {at}' if at else ''}"
        scope.fail("E036", message, item, "the upper end is exclusive")
    scope.broken.add(name)
