"""What a mapping says about each operand of its instruction: digits, fragments, layouts."""

from collections.abc import Mapping as Dict
from math import gcd

from isamap.ir.dtype import DType
from isamap.ir.index import Index, const, total, var
from isamap.ir.nodes import Access, Buffer, Literal
from isamap.mapping.fragment import Digit, Fragment
from isamap.mapping.layout import PackedLayout, PlacedDigit
from isamap.mapping.matching import Mapping, Matching


def needle_access(matching: Matching, operand: str) -> Access:
    """Return the needle's access of an operand."""
    if matching.needle.target.buffer == operand:
        return matching.needle.target
    return next(a for a in _accesses(matching) if a.buffer == operand)


def _accesses(matching: Matching) -> tuple[Access, ...]:
    found: list[Access] = []
    pending = [matching.needle.value]
    while pending:
        expr = pending.pop(0)
        if isinstance(expr, Access):
            found.append(expr)
        else:
            pending.extend(getattr(expr, "args", ()))
    return tuple(found)


def placed_digits(mapping: Mapping, axis: str) -> tuple[PlacedDigit, ...]:
    """Return the digits on an axis, outermost first; variables with one iteration are left out."""
    digits: list[PlacedDigit] = []
    weight = 1
    for form in reversed(mapping.matching.on_axis(axis)):
        long = [v for v in sorted(form.names) if mapping.tile.get(v, 1) > 1]
        if not long:
            continue
        factors = {v: _coefficient(form, v) for v in long}
        step = gcd(*factors.values())
        reduced = total(var(v) * (c // step) for v, c in factors.items())
        low = sum((c // step) * (mapping.tile[v] - 1) for v, c in factors.items() if c < 0)
        reach = sum(abs(c // step) * (mapping.tile[v] - 1) for v, c in factors.items())
        digits.append(PlacedDigit(reduced, low, reach + 1, weight))
        weight *= reach + 1
    return tuple(reversed(digits))


def _coefficient(form: Index, variable: str) -> int:
    value = form.coefficient(variable).constant
    assert value is not None, "placed forms have numbers as coefficients"
    return value


def operand_digits(mapping: Mapping, operand: str) -> tuple[tuple[PlacedDigit, ...], ...] | None:
    """Return the digits along each dimension of an operand; None if some dimension is no axis."""
    dims = []
    for index in needle_access(mapping.matching, operand).indices:
        axis = index.name
        if axis is None:
            return None
        dims.append(placed_digits(mapping, axis))
    return tuple(dims)


def is_simple(dims: tuple[tuple[PlacedDigit, ...], ...]) -> bool:
    """Return whether every digit is one variable, and no variable has two digits."""
    names = [digit.form.name for dim in dims for digit in dim]
    return None not in names and len(set(names)) == len(names)


def filled_dims(mapping: Mapping, operand: str) -> frozenset[int]:
    """Return the dimensions whose dead elements would reach owned results.

    Those are the dimensions on axes that the target does not see: a dead element on an axis of the
    target only touches results that nobody owns.
    """
    needle = mapping.matching.needle
    owned = {index.name for index in needle.target.indices}
    indices = needle_access(mapping.matching, operand).indices
    return frozenset(d for d, index in enumerate(indices) if index.name not in owned)


def fragment(
    mapping: Mapping, operand: str, partial: frozenset[str], filler: Literal | None
) -> Fragment | None:
    """Return the fragment that an operand takes, or None if it is not simple.

    ``filler`` None says that dead elements do no harm.
    """
    buffer: Buffer = mapping.matching.needle.entry.instruction.operand(operand)
    shape = operand_shape(mapping, operand)
    dims = operand_digits(mapping, operand)
    if dims is None or shape is None or not is_simple(dims):
        return None
    digits = tuple(tuple(Digit(d.form.name or "", d.extent) for d in dim) for dim in dims)
    laid = {digit.variable for dim in digits for digit in dim}
    assert buffer.storage is not None
    return Fragment(
        buffer.storage,
        buffer.dtype,
        shape,
        digits,
        partial & laid,
        filled_dims(mapping, operand) if filler is not None else frozenset(),
        filler,
    )


def dense_fragment(mapping: Mapping, operand: str) -> Fragment | None:
    """Return the fragment of an operand as packing lays it out: full in every dimension."""
    buffer = mapping.matching.needle.entry.instruction.operand(operand)
    shape = operand_shape(mapping, operand)
    if shape is None:
        return None
    assert buffer.storage is not None
    dims = tuple((Digit(f"{d}", extent),) for d, extent in enumerate(shape))
    return Fragment(buffer.storage, buffer.dtype, shape, dims)


def operand_shape(mapping: Mapping, operand: str) -> tuple[int, ...] | None:
    """Return the extents of an operand, the largest where they have a range."""
    needle = mapping.matching.needle
    largest = {axis.name: axis.extent for axis in needle.axes}
    shape: list[int] = []
    declared = needle.entry.instruction.operand(operand).shape
    for extent, index in zip(
        declared, needle_access(mapping.matching, operand).indices, strict=True
    ):
        size = extent.constant if extent.constant is not None else largest.get(index.name or "")
        if size is None:
            return None
        shape.append(size)
    return tuple(shape)


def packed(
    array: str,
    mapping: Mapping,
    operand: str,
    access: Access,
    filler: Literal | None,
    extents: Dict[str, Index],
    block: Dict[str, int],
    order: tuple[str, ...],
) -> PackedLayout | None:
    """Return the packed layout of an access for an operand.

    ``order`` are the statement's variables, outermost loop first.  Tiles are told apart by the
    variables of the access, and by those whose tail leaves dead elements that must be filled.
    """
    shape = operand_shape(mapping, operand)
    dims = operand_digits(mapping, operand)
    if dims is None or shape is None:
        return None
    if filler is not None and filler.dtype != access.dtype:
        # A conversion stands between the packed elements and the operand; it keeps zero.
        if filler.text not in ("0", "0.0", "false"):
            return None
        filler = zero_of(access.dtype)
    used = frozenset().union(*(index.names for index in access.indices))
    needy = filled_dims(mapping, operand) if filler is not None else frozenset()
    for d in needy:
        for digit in dims[d]:
            used |= {v for v in digit.form.names if not _divides(mapping.tile[v], extents[v])}
    if not is_simple(dims):
        # A variable with several digits leaves holes that depend on how much of it is alive.
        used |= {v for dim in dims for digit in dim for v in digit.form.names}
    variables = tuple(v for v in order if v in used)
    return PackedLayout(
        array,
        access,
        shape,
        dims,
        variables,
        tuple((v, extents[v]) for v in variables),
        tuple((v, mapping.tile.get(v, 1)) for v in variables),
        tuple((v, block.get(v, mapping.tile.get(v, 1))) for v in variables),
        filler or zero_of(access.dtype),
    )


def _divides(tile: int, extent: Index) -> bool:
    return (extent % tile) == const(0)


def zero_of(dtype: DType) -> Literal:
    """Return zero as a literal of a type."""
    if dtype.kind == "bool":
        return Literal("false", dtype)
    return Literal("0.0" if dtype.is_float else "0", dtype)
