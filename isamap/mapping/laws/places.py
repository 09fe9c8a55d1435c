"""Operands that an instruction reads at several places: one register, and what each place wants."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from isamap.ir.index import Index, var
from isamap.ir.nodes import Access, Coordinate, Expr, Literal, Op, Reduce
from isamap.ir.statements import read_indices
from isamap.mapping.axes.linear import Vector
from isamap.mapping.axes.rows import row
from isamap.mapping.matching import Axis, Needle


@dataclass(frozen=True, slots=True)
class Place:
    """One of the places at which an operand is read, and the expression that is bound to it.

    ``operand`` is the place's number among the operands of the problem.  The element is given by
    ``dims``, for each dimension the factor of each axis and a constant; in the kernel by ``rows``
    over the variables that may be placed, by ``constants``, and by all that is neither: places
    with one ``rest`` agree in that.
    """

    operand: int
    dims: tuple[tuple[Vector, int], ...]
    rows: tuple[Vector, ...]
    constants: tuple[int, ...]
    rest: Hashable = 0

    def offset(self, other: "Place") -> tuple[int, ...]:
        """Return by how much the constants of two places differ in each dimension."""
        pairs = zip(self.dims, other.dims, strict=True)
        return tuple(own - its for (_, own), (_, its) in pairs)


@dataclass(frozen=True, slots=True)
class Register:
    """The places of one operand.

    In the problem of a component of variables the rows are those that it has a part in.  Where the
    places differ by constants the constants lie on level 0 of the positions; only the component of
    the operand's own variables (``joint``) may have digits on that level.
    """

    places: tuple[Place, ...]
    joint: bool = True

    @property
    def is_shifted(self) -> bool:
        """Whether places differ by constants."""
        return any(any(p.offset(self.places[0])) for p in self.places)

    @property
    def axes(self) -> frozenset[int]:
        """The axes along the operand."""
        return frozenset(
            a for p in self.places for weights, _ in p.dims for a, c in enumerate(weights) if c
        )

    @property
    def moving(self) -> tuple[frozenset[int], ...]:
        """The variables of each row, at any place."""
        return tuple(
            frozenset(v for r in rows for v, c in enumerate(r) if c)
            for rows in zip(*(p.rows for p in self.places), strict=True)
        )

    def differing(self, one: Place, other: Place) -> frozenset[int]:
        """Return the variables of which two places want elements in another way.

        Where both places reach one element of the register, these variables must begin at 0 in
        every tile: a tile must have all of their iterations.
        """
        pairs = zip(one.rows, other.rows, strict=True)
        return frozenset(
            v for r, s in pairs for v, (a, b) in enumerate(zip(r, s, strict=True)) if a != b
        )


def registers(
    needle: Needle,
    bound: Sequence[tuple[str, Expr]],
    variables: Sequence[str],
    axes: Sequence[Axis],
) -> tuple[Register, ...]:
    """Return the operands that a needle reads at several places; tables hold what they hold."""
    found = []
    numbers = {name: n for n, (name, _) in enumerate(bound, 1)}
    read = {a.buffer: a for a in _accesses(needle.value)}
    for owner in dict.fromkeys(owner for _, owner in needle.places):
        if needle.operand(owner).contents is not None:
            continue
        names = [owner, *(name for name, its in needle.places if its == owner)]
        places = [
            _place(numbers[name], read[name], dict(bound)[name], variables, axes)
            for name in names
            if name in numbers
        ]
        # Rows can only be compared where there are as many.
        most = max((len(place.rows) for place in places), default=0)
        rests = [place.rest for place in places]
        if len(places) > 1:
            found.append(
                Register(
                    tuple(
                        replace(_widened(p, most, len(variables)), rest=rests.index(p.rest))
                        for p in places
                    )
                )
            )
    return tuple(found)


def _place(
    operand: int, access: Access, expr: Expr, variables: Sequence[str], axes: Sequence[Axis]
) -> Place:
    names = [axis.name for axis in axes]
    dims = tuple((row(index, names), index.offset) for index in access.indices)
    rows = tuple(row(index, variables) for index in read_indices(expr))
    rest = []
    for index, own in zip(read_indices(expr), rows, strict=True):
        linear = sum((var(v) * c for v, c in zip(variables, own, strict=True)), Index(()))
        rest.append(index - linear - index.offset)
    constants = tuple(index.offset for index in read_indices(expr))
    return Place(operand, dims, rows, constants, (skeleton(expr), tuple(rest)))


def _widened(place: Place, count: int, size: int) -> Place:
    more = count - len(place.rows)
    zeros = ((0,) * size,) * more
    return replace(place, rows=place.rows + zeros, constants=place.constants + (0,) * more)


def skeleton(expr: Expr) -> Hashable:
    """Return an expression without its indices."""
    match expr:
        case Access(buffer, indices, dtype):
            return buffer, len(indices), dtype.name
        case Literal():
            return expr.text, expr.dtype.name
        case Coordinate():
            return ("position",)
        case Op(op, args, dtype):
            return op, dtype.name, tuple(skeleton(arg) for arg in args)
        case Reduce(reduction, _, body, dtype):
            return reduction, dtype.name, skeleton(body)


def _accesses(expr: Expr) -> Iterable[Access]:
    match expr:
        case Access():
            yield expr
        case Op(_, args, _):
            for arg in args:
                yield from _accesses(arg)
        case Reduce(_, _, body, _):
            yield from _accesses(body)
        case Literal() | Coordinate():
            pass


def as_written(expr: Expr) -> Expr:
    """Return a body in which every place of an operand goes by the operand's own name."""
    match expr:
        case Access(buffer, _, _):
            return replace(expr, buffer=buffer.rstrip("'"))
        case Op(_, args, _):
            return replace(expr, args=tuple(as_written(arg) for arg in args))
        case Reduce(_, _, body, _):
            return replace(expr, body=as_written(body))
        case Literal() | Coordinate():
            return expr


def groups_of(size: int, rows: Iterable[Vector], shared: Iterable[Register]) -> list[int]:
    """Return for each variable the least variable with which it must be placed together.

    Those are variables that share an index expression, and those from which the elements of one
    register follow at different places.
    """
    group = list(range(size))
    links = [frozenset(v for v, c in enumerate(r) if c) for r in rows]
    for register in shared:
        if register.is_shifted:
            links.append(frozenset().union(*register.moving))
        else:
            links += register.moving
    for link in links:
        used = {group[v] for v in link}
        group = [min(used) if g in used else g for g in group]
    return group


def part_of(register: Register, variables: Sequence[int]) -> Register:
    """Return what a component of variables has to do with a register."""
    own = frozenset(variables)
    kept = [n for n, moving in enumerate(register.moving) if moving & own]
    if kept and register.is_shifted:
        kept = list(range(len(register.moving)))
    places = tuple(
        replace(
            p,
            rows=tuple(p.rows[n] for n in kept),
            constants=tuple(p.constants[n] for n in kept),
        )
        for p in register.places
    )
    return Register(places, joint=bool(kept) or not register.is_shifted)


def cut(register: Register, variables: Sequence[int]) -> Register:
    """Return :func:`part_of` over the component's variables only."""
    found = part_of(register, variables)
    places = tuple(
        replace(p, rows=tuple(tuple(r[v] for v in variables) for r in p.rows)) for p in found.places
    )
    return replace(found, places=places)


def is_torn(register: Register) -> bool:
    """Return whether places want different elements in the same place whatever is placed.

    That is so where they have the same constants: all digits 0 is the same element for both.
    """
    for one, other in combinations(register.places, 2):
        if any(one.offset(other)):
            continue
        if one.rest != other.rest:
            return True
        still = [n for n, moving in enumerate(register.moving) if not moving]
        if any(one.constants[n] != other.constants[n] for n in still):
            return True
    return False
