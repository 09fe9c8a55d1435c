"""What a mapping says about each operand of its instruction: digits, fragments, layouts."""

from collections.abc import Mapping as Dict
from dataclasses import replace

from isamap.ir.dtype import DType
from isamap.ir.index import Index, const, total, var
from isamap.ir.nodes import Access, Buffer, Literal
from isamap.ir.statements import names as names_in
from isamap.mapping.axes.seen import seen_at
from isamap.mapping.fragments.fragment import Digit, Fragment, Reference
from isamap.mapping.fragments.layout import PackedLayout, PlacedDigit
from isamap.mapping.laws.positions import digits, levelled, piece_digits
from isamap.mapping.matching import Axis, Mapping, Matching, Needle
from isamap.mapping.needles.needles import operand_accesses
from isamap.mapping.tiles.counted import counted_axes
from isamap.mapping.tiles.cut_digits import cut_digits
from isamap.mapping.tiles.joined import joins
from isamap.mapping.tiles.shared import brought, gathered, places_of
from isamap.mapping.tiles.sliding import sliding


def needle_access(matching: Matching, operand: str) -> Access:
    """Return the needle's access of an operand."""
    if matching.needle.target.buffer == operand:
        return matching.needle.target
    return operand_accesses(matching.needle)[operand]


def taken_access(matching: Matching, operand: str) -> tuple[Access, tuple[str, ...]]:
    """Return how the instruction reads an operand that lies in memory, and its axes.

    Of a dimension that is a sum of axes only the place counts: it is an axis of its own.  One that
    is gathered is packed whole, so that only its shape counts.
    """
    access = needle_access(matching, operand)
    is_gathered = bool(gathered(matching, operand))
    indices = tuple(
        var(f"{d}") if is_gathered or len(index.names) > 1 else index
        for d, index in enumerate(access.indices)
    )
    return replace(access, indices=indices), tuple(index.name or "" for index in indices)


def placed_digits(mapping: Mapping, axis: str) -> tuple[PlacedDigit, ...]:
    """Return the digits on an axis, outermost first; variables with one iteration are left out."""
    return digits(mapping.matching, mapping.tile)[axis]


def operand_digits(mapping: Mapping, operand: str) -> tuple[tuple[PlacedDigit, ...], ...]:
    """Return the digits along each dimension of an operand, outermost first.

    Along a dimension that is a sum of axes they are those of all its axes, where these are not the
    parts of one merged axis in their order; a constant in the index is a digit of one value.
    """
    return mapping.answer(("digits", operand), lambda: _operand_digits(mapping, operand))


def _operand_digits(mapping: Mapping, operand: str) -> tuple[tuple[PlacedDigit, ...], ...]:
    on_axes = digits(mapping.matching, mapping.tile)
    pieces = piece_digits(mapping.matching.needle.axes, on_axes)
    dims = []
    for index in needle_access(mapping.matching, operand).indices:
        if (name := index.name) is not None:
            dims.append(pieces[name])
            continue
        if (whole := _whole_axis(index, mapping.matching.needle.axes)) is not None:
            dims.append(on_axes[whole])
            continue
        here = []
        for axis in sorted(index.names & pieces.keys()):
            factor = _coefficient(index, axis)
            here += [replace(digit, weight=digit.weight * factor) for digit in pieces[axis]]
        here.sort(key=lambda digit: -digit.weight)
        if index.offset:
            here.append(PlacedDigit(const(0), -index.offset, 1, 1))
        dims.append(tuple(here))
    return tuple(dims)


def _whole_axis(index: Index, axes: tuple[Axis, ...]) -> str | None:
    """Return the merged axis of which an index is the position, as ``2*k + p`` is of k*p."""
    for axis in axes:
        weights, weight = {}, axis.extent
        for name, size in axis.parts:
            weight //= size
            weights[name] = weight
        if axis.parts and index == total(var(name) * w for name, w in weights.items()):
            return axis.name
    return None


def _coefficient(form: Index, variable: str) -> int:
    value = form.coefficient(variable).constant
    assert value is not None, "indices of needles have numbers as coefficients"
    return value


def is_simple(dims: tuple[tuple[PlacedDigit, ...], ...]) -> bool:
    """Return whether every digit is one variable, no variable has two, and none leaves holes."""
    names = [digit.form.name for dim in dims for digit in dim]
    if None in names or len(set(names)) < len(names):
        return False
    for dim in dims:
        weight = 1
        for digit in reversed(dim):
            if digit.weight != weight:
                return False
            weight *= digit.extent
    return True


def filled_dims(mapping: Mapping, operand: str) -> frozenset[int]:
    """Return the dimensions whose dead elements would reach owned results.

    Those are the dimensions on axes that the target does not see: a dead element on an axis of the
    target only touches results that nobody owns.  Nor does one matter that lies where the
    instruction is told to end.  Of an operand that is read at several places they are those of all
    places.
    """
    matching = mapping.matching

    def filled() -> frozenset[int]:
        places = places_of(matching, operand)
        return frozenset[int]().union(
            *(_filled_at(mapping, needle_access(matching, n)) for n in places)
        )

    return mapping.answer(("filled", operand), filled)


def _filled_at(mapping: Mapping, access: Access) -> frozenset[int]:
    needle = mapping.matching.needle
    target, own = needle.target.indices, access.indices
    if levelled(needle) or any(index.name is None for index in (*target, *own)):
        return _filled(needle, target, own)
    ended = {index.name for index in target} | counted_axes(mapping).keys()
    return frozenset(d for d, index in enumerate(own) if index.name not in ended)


def _filled(needle: Needle, target: tuple[Index, ...], own: tuple[Index, ...]) -> frozenset[int]:
    """Return the dimensions with an axis of which the target does not see the position."""
    seen = seen_at(target, needle.axes)
    assert seen is not None, "needles have linear accesses"
    owned = {name for n in seen.alone for name, _ in needle.axes[n].pieces}
    pieces = {name for axis in needle.axes for name, _ in axis.pieces}
    return frozenset(d for d, index in enumerate(own) if (index.names & pieces) - owned)


def fragment(
    mapping: Mapping,
    operand: str,
    partial: frozenset[str],
    filler: Literal | None,
    packed: bool = False,
) -> Fragment | None:
    """Return the fragment that an operand takes, or None if its elements have no regular order.

    That of an input that is not ``packed`` may slide: along a dimension lie the values of a sum of
    variables.  ``filler`` None says that dead elements do no harm.
    """
    if gathered(mapping.matching, operand):
        return None
    buffer: Buffer = mapping.matching.needle.operand(operand)
    shape = operand_shape(mapping, operand)
    dims = operand_digits(mapping, operand)
    if shape is None:
        return None
    is_input = operand != mapping.matching.needle.target.buffer
    laid_out = _plain(dims) or cut_digits(dims, mapping.tile, partial)
    if laid_out is None and is_input and not packed:
        laid_out = sliding(dims, mapping.tile)
    if laid_out is None:
        return None
    laid = {v for dim in laid_out for digit in dim for v in digit.variables}
    assert buffer.storage is not None
    return Fragment(
        buffer.storage,
        buffer.dtype,
        shape,
        laid_out,
        partial & laid,
        filled_dims(mapping, operand) if filler is not None else frozenset(),
        filler,
    )


def _plain(dims: tuple[tuple[PlacedDigit, ...], ...]) -> tuple[tuple[Digit, ...], ...] | None:
    """Return digits of one variable each, None if they are not :func:`is_simple`."""
    if not is_simple(dims):
        return None
    return tuple(tuple(Digit(d.form.name or "", d.extent) for d in dim) for dim in dims)


def spare_rows(
    mapping: Mapping, operand: str, reference: Reference, extents: Dict[str, Index]
) -> Index:
    """Return the elements behind those in use that are read where whole fragments are read.

    ``extents`` are those of the statement's variables.
    """
    ragged = {v for v, tile in mapping.tile.items() if not _divides(tile, extents[v])}
    found = fragment(mapping, operand, frozenset(ragged), None)
    spare = 0
    for dim, size in enumerate(found.shape) if found is not None else ():
        assert found is not None
        if found.has_dead(dim):
            spare += (size - 1) * reference.row_pitch(found, dim)
    return const(spare)


def dense_fragment(mapping: Mapping, operand: str) -> Fragment | None:
    """Return the fragment of an operand as packing lays it out: full in every dimension."""
    buffer = mapping.matching.needle.operand(operand)
    shape = operand_shape(mapping, operand)
    if shape is None:
        return None
    assert buffer.storage is not None
    dims = tuple((Digit(f"{d}", extent),) for d, extent in enumerate(shape))
    return Fragment(buffer.storage, buffer.dtype, shape, dims)


def operand_shape(mapping: Mapping, operand: str) -> tuple[int, ...] | None:
    """Return the extents of an operand, the largest where they have a range."""
    needle = mapping.matching.needle
    largest = {name: extent for axis in needle.axes for name, extent in axis.pieces}
    shape: list[int] = []
    declared = needle.operand(operand).shape
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
    repeat: bool = False,
    whole: Dict[str, Index] | None = None,
) -> PackedLayout | None:
    """Return the packed layout of an access for an operand.

    Along dimensions that only other variables move on, a fragment's elements are the same: unless
    they are to ``repeat``, one is laid out for all.

    ``order`` are the statement's variables, outermost loop first.  Tiles are told apart by the
    variables of the access, and by those whose tail leaves dead elements that must be filled; by
    the sum of several where only that matters, as windows of an image share its rows.
    Where ``extents`` are those of a piece of the iterations, ``whole`` are those of all.
    ``operand`` may be any place of one that is gathered: the layouts of its places are of one
    array, and tiles are told apart by the variables of all.
    """
    shape = operand_shape(mapping, operand)
    dims = operand_digits(mapping, operand)
    if shape is None:
        return None
    lead = next(
        n for n, _ in brought(mapping.matching) if n in places_of(mapping.matching, operand)
    )
    sources = gathered(mapping.matching, lead)
    if not all(isinstance(expr, Access) for _, expr in sources):
        return None
    if filler is not None and filler.dtype != access.dtype:
        # A conversion stands between the packed elements and the operand; it keeps zero.
        if filler.text not in ("0", "0.0", "false"):
            return None
        filler = zero_of(access.dtype)
    used = access.names
    for name, expr in sources:
        used |= names_in(expr) & extents.keys()
        used |= {
            v for dim in operand_digits(mapping, name) for digit in dim for v in digit.form.names
        }
    needy = filled_dims(mapping, operand) if filler is not None else frozenset()
    taken = shape
    if not repeat and not sources:
        alike = _alike(dims, used, needy)
        shape = tuple(1 if d in alike else n for d, n in enumerate(shape))
        dims = tuple(() if d in alike else dim for d, dim in enumerate(dims))
    for d in needy:
        for digit in dims[d]:
            used |= {v for v in digit.form.names if not _divides(mapping.tile[v], extents[v])}
    if not is_simple(dims):
        # A variable with several digits leaves holes that depend on how much of it is alive.
        used |= {v for dim in dims for digit in dim for v in digit.form.names}
    variables = tuple(v for v in order if v in used)
    laid = {v for dim in dims for digit in dim for v in digit.form.names}
    free = {v for v in variables if v not in laid and mapping.tile.get(v, 1) == 1}
    joined = () if sources else joins(access, free & access.names, extents, whole or extents)
    reach = dict(extents)
    for join in joined:
        variables = tuple(
            dict.fromkeys(join.name if v in join.form.names else v for v in variables)
        )
        reach[join.name] = join.extent
    return PackedLayout(
        array,
        access,
        shape,
        dims,
        variables,
        tuple((v, reach[v]) for v in variables),
        tuple((v, mapping.tile.get(v, 1)) for v in variables),
        tuple((v, block.get(v, mapping.tile.get(v, 1))) for v in variables),
        filler or zero_of(access.dtype),
        taken,
        tuple((join.name, join.form) for join in joined),
    )


def _alike(
    dims: tuple[tuple[PlacedDigit, ...], ...], used: frozenset[str], needy: frozenset[int]
) -> frozenset[int]:
    """Return the dimensions along which all elements of an access with some variables are alike.

    Not among them are those of which elements must hold a filler, and those whose variables move
    along another dimension, too: there they decide where the elements are.
    """
    moving = [{v for digit in dim for v in digit.form.names} for dim in dims]
    others = [
        used.union(*(own for other, own in enumerate(moving) if other != d))
        for d in range(len(dims))
    ]
    return frozenset(
        d for d, own in enumerate(moving) if own and not own & others[d] and d not in needy
    )


def _divides(tile: int, extent: Index) -> bool:
    return (extent % tile) == const(0)


def zero_of(dtype: DType) -> Literal:
    """Return zero as a literal of a type."""
    if dtype.kind == "bool":
        return Literal("false", dtype)
    return Literal("0.0" if dtype.is_float else "0", dtype)
