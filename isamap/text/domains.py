"""The ranges of a statement's variables, and the proof that its accesses stay inside.

A range is never solved for.  A variable that stands alone in a dimension has that dimension's
range, an explicit ``for`` line replaces this, and then every access is checked.
"""

from collections.abc import Iterator
from collections.abc import Mapping as Dict
from dataclasses import dataclass

from isamap.ir.index import Div, Index, Mod, Name, Read, const, var
from isamap.text.context import Scope
from isamap.text.proof import Domain, Witness, negative_at, without_reads
from isamap.text.uses import Use, Uses

MAX_VARIABLES = 24
"""Variables of a statement: arrays with an axis for each of them are within numpy's limit."""

_FARTHEST = 1 << 62
"""Magnitude of an index, and of what it is computed from: with an extent it still fits 64 bits."""

_FARTHEST_OUTSIDE = 1 << 48
"""The same where it may leave the shape: iterations that only fill up a tile go even farther."""

Ranges = dict[str, tuple[Index, Index]]
"""The lower end and the extent of each variable."""


@dataclass(frozen=True, slots=True)
class _Bound:
    extent: Index
    use: Use


def ranges_of(scope: Scope, uses: Uses) -> Ranges | None:
    """Return the ranges of a statement's variables; None after reporting those without one."""
    found: Ranges = {}
    whole = True
    if len(uses.names) > MAX_VARIABLES:
        message = f"the statement has {len(uses.names)} variables; {MAX_VARIABLES} are allowed"
        scope.fail("E010", message, uses.item)
        return None
    for name, node in uses.names.items():
        if (explicit := scope.ranges.get(name)) is not None:
            found[name] = (explicit.lower, explicit.upper - explicit.lower)
            continue
        bounds = list(_strong(scope, uses, name)) or list(_weak(uses, name))
        if bounds:
            if (bound := _agreed(scope, name, bounds)) is None:
                whole = False
            else:
                found[name] = (const(0), bound.extent)
        elif uses.complete:
            message = f"no access bounds the variable {name}"
            hint = f"say its range on a line before, such as: for {name} in 0..{_guess(uses, name)}"
            if name in uses.bare:
                message = f"{name} is no buffer, no extent, and as a variable no access bounds it"
                hint = f"an input is declared, 'in {name} : f32[]', and read with {name}[]"
            scope.fail("E022", message, node, hint)
            whole = False
        else:
            whole = False
    return found if whole else None


def _strong(scope: Scope, uses: Uses, name: str) -> Iterator[_Bound]:
    """Yield the extents of unpadded dimensions in which a variable stands alone."""
    for use in uses.accesses:
        if use.padded:
            continue
        for _, index, extent in use.dimensions:
            if _is_alone(index.substitute(scope.known), extent.substitute(scope.known), name):
                yield _Bound(extent, use)


def _is_alone(index: Index, extent: Index, name: str) -> bool:
    return index == var(name) or index == extent - 1 - var(name)


def _weak(uses: Uses, name: str) -> Iterator[_Bound]:
    """Yield what padded dimensions and ``name // c`` suggest."""
    for use in uses.accesses:
        for _, index, extent in use.dimensions:
            if use.padded and index == var(name):
                yield _Bound(extent, use)
            elif len(index.terms) == 1 and index.terms[0][1] == 1:
                match index.terms[0][0]:
                    case (Div(value, divisor),) if value == var(name):
                        yield _Bound(extent * divisor, use)


def _agreed(scope: Scope, name: str, bounds: list[_Bound]) -> _Bound | None:
    """Return the bound on which all agree; None after reporting that they do not."""
    # An extent with a range stands for a part of a whole that the other operand has.
    ranged = {n for n, extent in scope.extents.items() if extent.range is not None}
    partial = [bound for bound in bounds if bound.extent.names & ranged]
    bounds = partial or bounds
    first = bounds[0]
    sizes = [bound.extent.substitute(scope.known) for bound in bounds]
    for bound, size in zip(bounds, sizes, strict=True):
        if size != sizes[0]:
            message = (
                f"{name} has two ranges: 0..{sizes[0]} from {first.use.name}, "
                f"0..{size} from {bound.use.name}"
            )
            known = [one.constant for one in sizes if one.constant is not None]
            # The smallest one stays inside all of them.
            end = min(known) if len(known) == len(sizes) else sizes[0]
            hint = f"make the shapes agree, or say the range: for {name} in 0..{end}"
            if scope.disputed.setdefault(name, str(end)) != str(end):
                hint = (
                    f"a range that is said holds for {name} in every statement: give it another "
                    f"name in this one, and say the range of that, 0..{end}"
                )
            notes = [scope.note(f"0..{sizes[0]} from here", first.use.node)]
            scope.fail("E023", message, bound.use.node, hint, tuple(notes))
            return None
    return first


def _guess(uses: Uses, name: str) -> str:
    """Return an upper end for the hint: what an extent of the statement holds, or a number."""
    for use in uses.accesses:
        for _, index, extent in use.dimensions:
            if use.padded:
                continue
            if index.atoms == (Name(name),):
                return str(extent)
            step = index.coefficient(name).constant
            if step is not None and step > 1:
                return str(extent // step)
    return "3"


# --- staying inside -------------------------------------------------------------------------------
def check_inside(scope: Scope, uses: Uses, ranges: Ranges) -> None:
    """Report every access that may leave its buffer, or that no code can compute."""
    known = {
        name: (low.substitute(scope.known), extent.substitute(scope.known))
        for name, (low, extent) in ranges.items()
    }
    reported: set[int] = set()
    ends = {
        name: (low.constant, low.constant + extent.constant - 1)
        for name, (low, extent) in known.items()
        if low.constant is not None and extent.constant is not None
    }
    for use in uses.accesses:
        if id(use.node) in reported:
            continue
        for number, index, extent in () if use.padded else use.dimensions:
            with scope.deciding(use.node, f"{use.name} stays inside its shape"):
                if not _check_dimension(scope, use, number, (index, extent), known):
                    reported.add(id(use.node))
                    break
        if id(use.node) not in reported and (text := _too_far(scope, use, ends)):
            scope.fail("E016", text, use.node)
            reported.add(id(use.node))


def _too_far(scope: Scope, use: Use, ends: Dict[str, tuple[int, int]]) -> str:
    """Return in words which index, padded or not, code could not compute; nothing if none."""
    most = _FARTHEST_OUTSIDE if use.padded else _FARTHEST
    for _, index, _ in use.dimensions:
        if _reach(index.substitute(scope.known), ends) > most:
            return f"the index {index} of {use.name} becomes more than {most:.3g}"
    return ""


def _reach(index: Index, ends: Dict[str, tuple[int, int]]) -> int:
    """Return the greatest magnitude that sums of an index's terms may have, on the way and within.

    What is known only when the code runs counts as 1.
    """
    sums, within = 0, 0
    for atoms, factor in index.terms:
        size = abs(factor)
        for atom in atoms:
            match atom:
                case Name(name):
                    size *= max(map(abs, ends.get(name, (0, 1))))
                case Div(value, divisor):
                    inner = _reach(value, ends)
                    within, size = max(within, inner), size * (inner // divisor + 1)
                case Mod(value, divisor):
                    inner = _reach(value, ends)
                    within, size = max(within, inner), size * min(inner, divisor - 1)
                case Read():
                    pass
        sums += size
    return max(sums, within)


def _check_dimension(
    scope: Scope, use: Use, number: int, dimension: tuple[Index, Index], known: Ranges
) -> bool:
    index, extent = (part.substitute(scope.known) for part in dimension)
    plain = without_reads(index, scope.values)
    if plain is None:
        return True  # what is read from a buffer without limits is known only when it runs
    at, reads = plain
    domain = scope.domain({**known, **reads})
    witness = negative_at(at, domain)
    if witness is None:
        witness = negative_at(extent - 1 - at, domain)
    if witness is None:
        return True
    _report(scope, use, number, dimension, at, _complete(witness, at, extent, domain))
    return False


def _complete(witness: Witness, at: Index, extent: Index, domain: Domain) -> Witness:
    """Return a witness with a value for every name of the index and the extent."""
    found = dict(witness)
    for name, (least, _) in domain.symbols.items():
        if name in at.names | extent.names:
            found.setdefault(name, least)
    for name, (lower, _) in domain.variables.items():
        if name in at.names:
            found.setdefault(name, lower.substitute(found).constant or 0)
    return found


def _report(
    scope: Scope,
    use: Use,
    number: int,
    dimension: tuple[Index, Index],
    at: Index,
    witness: Witness,
) -> None:
    index, extent = dimension
    size = extent.substitute(scope.known).substitute(witness)
    reached = at.evaluate(witness)
    point = ", ".join(f"{name} = {number}" for name, number in witness.items())
    where = f" at {point}" if point else ""
    shown = f"index {index} is {reached}" if str(index) != str(reached) else f"index is {reached}"
    message = (
        f"{use.name} is {'written' if use.target else 'read'} out of bounds: its {shown}{where}, "
        f"but dimension {number + 1} has {size} elements"
    )
    hint = None
    if not use.target:
        hint = f"declare what lies outside, {use.name} : ... pad 0, or say a smaller range"
    note = scope.note(f"{use.name} is declared here", use.buffer.item.name)
    scope.fail("E021", message, use.node.indices[number] if _own(use) else use.node, hint, (note,))


def _own(use: Use) -> bool:
    """Return whether the node's indices are those of the use, and not an index read within."""
    return use.node.buffer.text == use.name and len(use.node.indices) == len(use.indices)
