"""Whether an operand in memory takes the elements of a reference as they lie there."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd, prod

from isamap.hw.accelerator import Entry
from isamap.ir.index import Index, Name, const, row_major
from isamap.ir.nodes import Access, Buffer, Extent, Literal
from isamap.mapping.fragments.cut import tiles_of
from isamap.mapping.fragments.fragment import Fragment, Reference
from isamap.mapping.needles.demands import broken, free_pitches


@dataclass(frozen=True, slots=True)
class Fit:
    """How an operand in memory takes the elements of a reference.

    ``limits`` are extents that bound a dimension, ``pitches`` those between elements.  ``counted``
    are limits at which the instruction ends: they are numbers of live elements, packed or not.
    """

    limits: tuple[tuple[str, int], ...]
    pitches: tuple[tuple[str, Index], ...]
    counted: frozenset[str] = frozenset()


def fit(
    entry: Entry,
    operand: Buffer,
    access: Access,
    axes: tuple[str, ...],
    fragment: Fragment,
    reference: Reference,
    filler: Literal | None,
    storing: bool = False,
) -> Fit | None:
    """Return how ``operand``, in memory, takes the elements of ``reference``, or None.

    ``axes`` names the instruction's axis along each dimension of ``fragment``; ``access`` is the
    instruction's access of the operand.
    """
    found = fit_or_why(entry, operand, access, axes, fragment, reference, filler, storing=storing)
    return None if isinstance(found, str) else found


def fit_or_why(
    entry: Entry,
    operand: Buffer,
    access: Access,
    axes: tuple[str, ...],
    fragment: Fragment,
    reference: Reference,
    filler: Literal | None,
    storing: bool = False,
) -> Fit | str:
    """Return what :func:`fit` returns, or why the operand does not take the elements."""
    name, array = operand.name, reference.array
    aligned = _alignment(entry, operand, fragment, reference)
    if aligned % entry.align.get(operand.name, 1):
        return f"{array} is aligned to {aligned} bytes, {name} wants {entry.align[name]}"
    packed = reference.dense is not None
    if packed and reference.dense != fragment.shape:
        return f"{array} is packed in another shape than {name} has"
    extents = {e.name: e for e in entry.instruction.extents}
    free = free_pitches(entry.instruction)
    declared = operand.strides or row_major(operand.shape)
    limits: dict[str, int] = {}
    pitches: dict[str, Index] = {}
    counted: set[str] = set()
    sure = _sure(entry, operand, access, axes, fragment, packed)
    if any(not index.is_linear_in(axes) or index.offset for index in access.indices):
        return f"an index of {name} is not a plain sum of axes"
    if any(index.names - set(axes) for index in access.indices):
        return f"an index of {name} uses other names than axes"
    for dim, axis in enumerate(axes):
        own = const(0)
        for index, pitch in zip(access.indices, declared, strict=True):
            own += index.coefficient(axis) * pitch.substitute(sure)
        whole = packed or not fragment.has_dead(dim) or _spares(fragment, dim, reference, storing)
        reach = fragment.shape[dim] if packed else fragment.extent(dim)
        wanted = const(reference.dense_pitch(dim)) if packed else reference.stride(fragment, dim)
        if wanted is None:
            return f"{array} has no one pitch along {axis}"
        if reach > 1 and not _agree(own, wanted, free, pitches):
            return f"{array} lies with pitch {wanted} along {axis}, {name} with {own}"
        limit = _limit(operand, access, axis)
        ends = limit is not None and _ends_at(entry, axis, limit)
        if not whole:
            if not _is_rectangular(fragment, dim):
                return f"the elements in use along {axis} are not its first ones"
            if own.constant == 0 and not storing:
                if dim in fragment.filled:
                    return (
                        f"{name} repeats one element along {axis}, where some must hold "
                        f"{_text(filler)}"
                    )
                continue
            if limit is None or (not storing and operand.pad is None and not ends):
                return (
                    f"{name} always takes {fragment.shape[dim]} elements along {axis}, "
                    "and fewer are there"
                )
            filled = ends or _pads_with(operand, filler)
            if dim in fragment.filled and not storing and not filled:
                return f"{name} does not fill up with {_text(filler)} along {axis}"
        if limit is not None:
            span = extents[limit].range
            if span is not None and (span[0] > 1 or span[1] <= fragment.shape[dim]):
                width = fragment.shape[dim]
                return (
                    f"{name} takes {span[0]} to {span[1] - 1} elements along {axis}, and has to "
                    f"take 1 to {width}: {limit} in 1..{width + 1}"
                )
            if limits.setdefault(limit, dim) != dim:
                return f"one extent of {name} bounds two axes"
            if ends and _is_rectangular(fragment, dim):
                counted.add(limit)
    if entry.constraints and (text := _broken(entry, axes, fragment, packed, limits, pitches)):
        return f"its constraint {text} may not hold"
    return Fit(tuple(limits.items()), tuple(pitches.items()), frozenset(counted))


def _sure(
    entry: Entry,
    operand: Buffer,
    access: Access,
    axes: tuple[str, ...],
    fragment: Fragment,
    packed: bool,
) -> dict[str, int]:
    """Return the extents that bound an axis of which every element is always in use: what they are.

    Pitches may be made of them.
    """
    sure: dict[str, int] = {}
    for dim, axis in enumerate(axes):
        limit = _limit(operand, access, axis)
        if limit is None:
            continue
        if not fragment.has_dead(dim):
            sure[limit] = fragment.extent(dim)
        elif packed and not _ends_at(entry, axis, limit):
            sure[limit] = fragment.shape[dim]
    return sure


def _alignment(entry: Entry, operand: Buffer, fragment: Fragment, reference: Reference) -> int:
    """Return the bytes at whose multiples each fragment begins.

    What a fragment lays out advances by tiles, unless it is loose.
    """
    if reference.dense is not None or operand.name not in entry.align:
        return reference.alignment
    tiles = tiles_of(fragment)
    tiles |= dict.fromkeys(reference.loose, 1)
    steps = [
        coefficient * prod(tiles.get(atom.name, 1) for atom in atoms if isinstance(atom, Name))
        for atoms, coefficient in reference.offset.terms
    ]
    return gcd(max(entry.begin, reference.alignment), *(s * operand.dtype.bytes for s in steps))


def _spares(fragment: Fragment, dim: int, reference: Reference, storing: bool) -> bool:
    """Return whether dead rows of a fragment may be read with those in use."""
    if storing or not reference.roomy or dim in fragment.filled:
        return False
    return reference.row_pitch(fragment, dim) > 0 and _is_rectangular(fragment, dim)


def _broken(
    entry: Entry,
    axes: tuple[str, ...],
    fragment: Fragment,
    packed: bool,
    limits: dict[str, int],
    pitches: dict[str, Index],
) -> str:
    """Return the constraint that some number of live elements breaks, or nothing."""
    counts: dict[str, range] = {}
    for dim, axis in enumerate(axes):
        whole = fragment.shape[dim] if packed else fragment.extent(dim)
        short = any(digit.is_partial(fragment.partial) for digit in fragment.dims[dim])
        counts[axis] = range(1 if short and not packed else whole, whole + 1)
    for limit, dim in limits.items():
        counts[limit] = counts[axes[dim]]
    return broken(entry, counts, pitches)


def _text(filler: Literal | None) -> str:
    return filler.text if filler is not None else "a constant"


def _pads_with(operand: Buffer, filler: Literal | None) -> bool:
    return filler is not None and operand.pad is not None and operand.pad.text == filler.text


def _agree(
    own: Index, wanted: Index, free: Mapping[str, Extent], pitches: dict[str, Index]
) -> bool:
    """Return whether a pitch of an instruction can be ``wanted``; binds it if it is free.

    The names in ``own`` are the instruction's extents, those in ``wanted`` the kernel's: what is
    called the same is not the same.
    """
    if not own.names:
        return own == wanted
    if len(own.terms) == 1 and own.terms[0][1] == 1 and len(own.terms[0][0]) == 1:
        atom = own.terms[0][0][0]
        if isinstance(atom, Name) and atom.name in free:
            span = free[atom.name].range
            if span is not None and wanted.constant not in range(*span):
                return False
            return pitches.setdefault(atom.name, wanted) == wanted
    return False


def _limit(operand: Buffer, access: Access, axis: str) -> str | None:
    """Return the extent of the instruction that bounds ``axis`` in an operand, if one does."""
    for index, extent in zip(access.indices, operand.shape, strict=True):
        if index.name == axis and (name := extent.name) is not None:
            return name
    return None


def _ends_at(entry: Entry, axis: str, limit: str) -> bool:
    """Return whether an instruction goes no further along ``axis`` than an extent says.

    What lies beyond is then neither read nor computed, and needs no filling.
    """
    along = [v for s in entry.instruction.statements for v in s.variables if v.name == axis]
    return bool(along) and all(v.extent.name == limit for v in along)


def _is_rectangular(fragment: Fragment, dim: int) -> bool:
    """Return whether the live elements of a dimension are its first ones."""
    digits = [digit for digit in fragment.dims[dim] if digit.tile > 1]
    if any(digit.has_holes(fragment.partial) for digit in digits):
        return False
    return not any(digit.is_partial(fragment.partial) for digit in digits[1:])
