"""What the matcher finds: needles, bindings, placements, matchings, mappings."""

from collections.abc import Mapping as Dict
from dataclasses import dataclass, field, replace
from fractions import Fraction

from isamap.hw.accelerator import Entry
from isamap.ir.hashed import Asked
from isamap.ir.index import Index
from isamap.ir.nodes import Access, Buffer, Expr, Literal, Reduction, Statement
from isamap.ir.printer import print_expr
from isamap.ir.statements import accesses, reduces


@dataclass(frozen=True, slots=True)
class Axis:
    """An iteration variable of an instruction and its extent, the largest where it has a range.

    Where the description leaves an extent open, ``extent`` is its least value and ``open`` says
    what it is (``V``, ``2*V``); whatever is legal is so for all its values.  Variables that the
    same operands see are one axis, and ``parts`` are their names and extents, outermost first; it
    is empty for an axis of one variable.
    """

    name: str
    extent: int
    open: str = ""
    parts: tuple[tuple[str, int], ...] = ()

    @property
    def pieces(self) -> tuple[tuple[str, int], ...]:
        """The variables of the instruction on this axis with their extents, outermost first."""
        return self.parts or ((self.name, self.extent),)


@dataclass(frozen=True, slots=True)
class Needle:
    """An instruction read as one statement ``target reduction value`` over axes.

    One entry gives several needles: ``r = max(a, b)`` is also ``r max= b`` with ``a`` tied to
    ``r``, and ``c += a*b`` is also ``c = c0 + a*b``.  ``target`` is the access of the written
    operand; ``value`` is the body, whose :class:`Access` leaves name operands.  ``tied`` is the
    input operand that must be the same register as the target's (None: there is none; for an
    ``inout`` target read as a reduction it is the target itself).  ``fixed`` are operands that hold
    constants, with their accesses: ``value`` is what the instruction computes then.

    An operand that is read at several places (``a[i] * a[j]``) has a name of its own for each in
    ``value``: the operand's at the first place, others in ``places``, each with the operand.
    """

    entry: Entry
    target: Access
    reduction: Reduction
    value: Expr
    axes: tuple[Axis, ...]
    tied: str | None
    fixed: tuple[tuple[Access, Literal], ...] = ()
    places: tuple[tuple[str, str], ...] = ()

    def owner(self, name: str) -> str:
        """Return the operand that is read under a name of ``value``."""
        return dict(self.places).get(name, name)

    def operand(self, name: str) -> Buffer:
        """Return the declaration of the operand that is read under a name of ``value``."""
        return self.entry.instruction.operand(self.owner(name))

    @property
    def chain(self) -> Fraction:
        """Cycles from the old result to the new one."""
        return self.entry.after(self.tied or self.target.buffer)

    @property
    def moved(self) -> str | None:
        """The operand that it takes elsewhere as it is, element for element, if that is all."""
        if self.reduction != "=" or not isinstance(self.value, Access):
            return None
        return self.value.buffer if self.value.indices == self.target.indices else None

    def shown(self, name: str) -> str:
        """Return what people call an operand: its access, if it is read at several places."""
        owner = self.owner(name)
        if all(owner != other for _, other in self.places):
            return name
        access = next(a for a in accesses(self.value) if a.buffer == name)
        return print_expr(replace(access, buffer=owner))

    @property
    def repeated(self) -> tuple[Reduction, Expr]:
        """What is done for each iteration: the reduction within the body, if there is one."""
        found = reduces(self.value)
        return (found[0].reduction, found[0].body) if found else (self.reduction, self.value)

    @property
    def name(self) -> str:
        """The instruction's name."""
        return self.entry.name


@dataclass(frozen=True, slots=True)
class Placement:
    """A form over a statement's variables, put on an axis of the instruction.

    On an axis that occurs in a sum (``a[i + r]``) the form has its factor and its sign, and the
    placements of one ``level`` step together: their weights are equal on all axes of the sum.
    Higher levels are further out.  Elsewhere the level is 0 and says nothing.
    """

    form: Index
    axis: str
    level: int = 0


@dataclass(frozen=True, slots=True)
class Matching(Asked):
    """An operand bijection and the placements that the four laws allow.

    ``operands`` binds each input operand of the needle to a subexpression of the statement's body
    (an access, a literal, or an operation that another instruction computes first).  Placements on
    one axis are ordered, outermost digit first.
    """

    statement: Statement
    needle: Needle
    operands: tuple[tuple[str, Expr], ...]
    placements: tuple[Placement, ...]

    @property
    def fed(self) -> tuple[tuple[str, Expr], ...]:
        """The operands that are brought to the instruction: all but the tables in it."""
        own = self.needle
        return self.answer(
            "fed",
            lambda: tuple((n, e) for n, e in self.operands if own.operand(n).contents is None),
        )

    def on_axis(self, axis: str) -> tuple[Index, ...]:
        """Return the forms on an axis, outermost digit first."""
        return tuple(p.form for p in self.placements if p.axis == axis)

    @property
    def inner(self) -> tuple[str, ...]:
        """The inner variables: those that occur in a placed form, in the statement's order."""
        used = {name for p in self.placements for name in p.form.names}
        return tuple(v.name for v in self.statement.variables if v.name in used)

    def bound(self, operand: str) -> Expr:
        """Return the subexpression to which an operand is bound."""
        return dict(self.operands)[operand]


@dataclass(frozen=True, slots=True)
class Mapping(Asked):
    """A matching with an extent for each inner variable.

    ``utilisation`` is kernel iterations done per instruction iteration, tails included, 0 to 1.
    """

    matching: Matching
    tile: Dict[str, int] = field(hash=False)
    utilisation: float


@dataclass(frozen=True, slots=True)
class Enumeration:
    """All mappings of one statement on a machine.

    ``complete`` says that nothing legal within the form set was left out; otherwise ``reason`` says
    which limit was reached.  ``refused`` are compositions of instructions that compute the
    statement for some values of its operands but, for all that is known of them, not for all.
    """

    statement: Statement
    mappings: tuple[Mapping, ...]
    complete: bool
    reason: str = ""
    refused: tuple[str, ...] = ()
