"""Whether an operand in memory takes the elements of a reference as they lie there."""

from collections.abc import Set
from dataclasses import dataclass

from isamap.hw.accelerator import Entry
from isamap.ir.index import Index, Name, const, row_major
from isamap.ir.nodes import Access, Buffer, Literal
from isamap.mapping.fragment import Fragment, Reference


@dataclass(frozen=True, slots=True)
class Fit:
    """How an operand in memory takes the elements of a reference."""

    limits: tuple[tuple[str, int], ...]
    pitches: tuple[tuple[str, Index], ...]


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
    if reference.alignment % entry.align.get(operand.name, 1):
        return None
    packed = reference.dense is not None
    if packed and reference.dense != fragment.shape:
        return None
    extents = {e.name: e for e in entry.instruction.extents}
    # An extent with a range is a limit: its value follows the live elements, not a pitch.
    free = {e.name for e in entry.instruction.extents if e.value is None and e.range is None}
    declared = operand.strides or row_major(operand.shape)
    limits: dict[str, int] = {}
    pitches: dict[str, Index] = {}
    if any(not index.is_linear_in(axes) or index.offset for index in access.indices):
        return None
    if any(index.names - set(axes) for index in access.indices):
        return None
    dense = row_major(fragment.shape)
    for dim, axis in enumerate(axes):
        own = const(0)
        for index, pitch in zip(access.indices, declared, strict=True):
            own += index.coefficient(axis) * pitch
        whole = packed or not fragment.has_dead(dim)
        reach = fragment.shape[dim] if packed else fragment.extent(dim)
        wanted = dense[dim] if packed else reference.stride(fragment, dim)
        if wanted is None:
            return None
        if reach > 1 and not _agree(own, wanted, free, pitches):
            return None
        limit = _limit(operand, access, axis)
        if not whole:
            if not _is_rectangular(fragment, dim):
                return None
            if own.constant == 0 and not storing:
                if dim in fragment.filled:
                    return None
                continue
            if limit is None or (not storing and operand.pad is None):
                return None
            if dim in fragment.filled and not storing and not _pads_with(operand, filler):
                return None
        if limit is not None:
            span = extents[limit].range
            if span is not None and (span[0] > 1 or span[1] <= fragment.shape[dim]):
                return None
            if limits.setdefault(limit, dim) != dim:
                return None
    return Fit(tuple(limits.items()), tuple(pitches.items()))


def _pads_with(operand: Buffer, filler: Literal | None) -> bool:
    return filler is not None and operand.pad is not None and operand.pad.text == filler.text


def _agree(own: Index, wanted: Index, free: Set[str], pitches: dict[str, Index]) -> bool:
    """Return whether a pitch of an instruction can be ``wanted``; binds it if it is free."""
    if own == wanted:
        return True
    if len(own.terms) == 1 and own.terms[0][1] == 1 and len(own.terms[0][0]) == 1:
        atom = own.terms[0][0][0]
        if isinstance(atom, Name) and atom.name in free:
            return pitches.setdefault(atom.name, wanted) == wanted
    return False


def _limit(operand: Buffer, access: Access, axis: str) -> str | None:
    """Return the extent of the instruction that bounds ``axis`` in an operand, if one does."""
    for index, extent in zip(access.indices, operand.shape, strict=True):
        if index.name == axis and (name := extent.name) is not None:
            return name
    return None


def _is_rectangular(fragment: Fragment, dim: int) -> bool:
    """Return whether the live elements of a dimension are its first ones."""
    digits = [digit for digit in fragment.dims[dim] if digit.tile > 1]
    return all(digit.variable not in fragment.partial for digit in digits[1:])
