"""Composed instructions: several in sequence that are searched for, placed and scheduled as one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction

from isamap.hw.accelerator import Entry
from isamap.ir.index import const, var
from isamap.ir.nodes import Access, Buffer, Expr, Instruction, Literal, Op, Statement, Variable
from isamap.ir.statements import accesses
from isamap.mapping.compose.connect import Chain, Given, Joined, Part, Place
from isamap.mapping.compose.sums import Claim, Sum
from isamap.mapping.matching import Axis, Needle
from isamap.mapping.needles.demands import defined_for
from isamap.mapping.needles.pieces import Apply, Leaf, Total, Value
from isamap.solver.lemma import Lemma

TARGET = "c"
"""The operand of a composed instruction that it adds to."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What must be true of a kernel's operands for a composition to compute a statement."""

    text: str
    lemma: Lemma


@dataclass(frozen=True, slots=True)
class Composed(Entry):
    """A composed instruction: an entry of no description, which lowering expands.

    Its ``instruction`` is what the parts compute together.  ``claims`` is what makes that so,
    ``conditions`` are the claims of one binding, proved.  ``temporaries`` has the operand in which
    each part but the last leaves its result (None: in the composition's own target).
    """

    parts: tuple[Part, ...] = ()
    temporaries: tuple[Buffer | None, ...] = ()
    claims: tuple[Claim, ...] = ()
    conditions: tuple[Condition, ...] = ()

    @property
    def scratch(self) -> tuple[Buffer, ...]:
        """The operands that are held beside the composition's own while it runs."""
        constants = [
            part.entry.instruction.operand(name)
            for part in self.parts
            for name, place in part.places
            if isinstance(place, Literal)
        ]
        return tuple(b for b in (*self.temporaries, *constants) if b is not None)


def takes_part(needle: Needle, name: str) -> bool:
    """Return whether an instruction (or one of its instantiations) is a part of a composition.

    ``name`` may also be the composition's own.
    """
    entry = needle.entry
    return isinstance(entry, Composed) and (
        name == entry.name
        or any(name in (part.entry.name, part.entry.instruction.generic) for part in entry.parts)
    )


def is_of(needle: Needle, name: str) -> bool:
    """Return whether a needle is an instruction, one of a generic one, or has it as a part."""
    return name in (needle.name, needle.entry.instruction.generic) or takes_part(needle, name)


def parts_of(needle: Needle) -> tuple[str, ...]:
    """Return the names of the instructions that a needle stands for, in order."""
    entry = needle.entry
    if not isinstance(entry, Composed):
        return (needle.name,)
    return tuple(part.entry.name for part in entry.parts)


def claims_of(needle: Needle) -> tuple[Claim, ...]:
    """Return what must be so for a needle to compute a statement, whatever its operands are."""
    return needle.entry.claims if isinstance(needle.entry, Composed) else ()


def conditions_of(needle: Needle) -> tuple[Condition, ...]:
    """Return what had to be proved of the kernel's values for a needle to compute a statement."""
    return needle.entry.conditions if isinstance(needle.entry, Composed) else ()


def composed(chain: Chain, found: Sum, whole: Joined) -> Needle:
    """Return a chain as a needle whose entry is a :class:`Composed`."""
    names = _names(chain)
    last = chain.parts[-1].entry
    target = last.instruction.operand(chain.target.operand)
    access = Access(TARGET, tuple(map(var, whole.target.axes)), target.dtype)
    value = as_expr(whole.body, names)
    shapes = {TARGET: access, **{a.buffer: a for a in accesses(value)}}
    sources = {TARGET: target, **{names[own]: b for own, b in chain.sources.items()}}
    operands = [
        replace(
            sources[name],
            name=name,
            role="inout" if name == TARGET else "in",
            shape=tuple(const(whole.extents[index.name or ""]) for index in shapes[name].indices),
        )
        for name in (*sorted(shapes.keys() - {TARGET}, key=list(names.values()).index), TARGET)
    ]
    parts = tuple(
        Part(part.entry, tuple((name, _named(place, names)) for name, place in part.places))
        for part in chain.parts
    )
    temporaries = tuple(_result(part) for part in parts[:-1])
    claims = tuple(replace(claim, body=_renamed(claim.body, names)) for claim in found.claims)
    variables = tuple(Variable(a, const(0), const(e)) for a, e in whole.extents.items())
    statement = Statement(access, chain.reduction, value, variables)
    return needle(parts, temporaries, operands, statement, claims)


def alone(own: Needle) -> Needle | None:
    """Return a needle as a composition of its one instruction, which is defined for some values.

    Its claims are that operands have these; None if a number that it is fed is none of them.
    """
    entry = own.entry
    fed = {access.buffer: literal for access, literal in own.fixed}
    claims = []
    for operand in entry.instruction.operands:
        ends = defined_for(operand)
        if ends is None:
            continue
        if operand.name not in fed:
            claims.append(Claim(Leaf(operand.name, (), operand.dtype), 1, operand.dtype, *ends))
        elif not ends[0] <= int(fed[operand.name].text) <= ends[1]:
            return None
    outer = [o for o in entry.instruction.operands if o.role not in ("local", "table")]
    part = Part(entry, tuple((operand.name, Given(operand.name)) for operand in outer))
    common = {f.name: getattr(entry, f.name) for f in fields(Entry)}
    return replace(own, entry=Composed(**common, parts=(part,), claims=tuple(claims)))


def needle(
    parts: tuple[Part, ...],
    temporaries: tuple[Buffer | None, ...],
    operands: Iterable[Buffer],
    statement: Statement,
    claims: tuple[Claim, ...],
) -> Needle:
    """Return the needle of parts that compute a statement over the composition's axes."""
    name = " + ".join(part.entry.name for part in parts)
    busy = _busy(parts)
    entry = Composed(
        Instruction(name, (), tuple(operands), (), (), (statement,)),
        max(busy.values()),
        _latency(parts),
        busy,
        besides=_besides(parts),
        parts=parts,
        temporaries=temporaries,
        claims=claims,
    )
    axes = tuple(Axis(v.name, v.extent.constant or 1) for v in statement.variables)
    target = statement.target
    return Needle(entry, target, statement.reduction, statement.value, axes, target.buffer)


def as_expr(value: Value, names: Mapping[str, str]) -> Expr:
    """Return a value without reductions as an expression over a composition's operands."""
    match value:
        case Leaf(operand, axes, dtype):
            return Access(names[operand], tuple(map(var, axes)), dtype)
        case Apply(op, args, dtype):
            return Op(op, tuple(as_expr(arg, names) for arg in args), dtype)
        case Literal():
            return value
        case Total():
            raise AssertionError("reductions are outside")


def _names(chain: Chain) -> dict[str, str]:
    """Return a short name for each operand, in the order of the parts that read them."""
    names: dict[str, str] = {}
    taken = {TARGET}
    for part in chain.parts:
        for name, place in part.places:
            if isinstance(place, Given) and place.name:
                short, number = name, 1
                while short in taken:
                    number += 1
                    short = f"{name}{number}"
                taken.add(short)
                names[place.name] = short
    return names


def _named(place: Place, names: Mapping[str, str]) -> Place:
    return Given(names.get(place.name, TARGET)) if isinstance(place, Given) else place


def _renamed(value: Value, names: Mapping[str, str]) -> Value:
    match value:
        case Leaf():
            # Which element it is does not matter to a claim: it is about all of them.
            return replace(value, operand=names[value.operand], axes=())
        case Apply(_, args, _):
            return replace(value, args=tuple(_renamed(arg, names) for arg in args))
        case _:
            return value


def _result(part: Part) -> Buffer:
    """Return the operand of a part to which nothing of the composition is given."""
    (made,) = part.entry.outputs
    return made


def _busy(parts: tuple[Part, ...]) -> dict[str, Fraction]:
    """Return the cycles for which the parts occupy each unit."""
    busy: dict[str, Fraction] = {}
    for entry in (part.entry for part in parts):
        for unit, cycles in entry.busy.items():
            busy[unit] = busy.get(unit, Fraction(0)) + cycles
    return busy


def _besides(parts: tuple[Part, ...]) -> dict[str, int]:
    """Return the registers that the C of the part takes that takes most of them."""
    taken: dict[str, int] = {}
    for part in parts:
        for name, number in part.entry.besides.items():
            taken[name] = max(taken.get(name, 0), number)
    return taken


def _latency(parts: tuple[Part, ...]) -> Fraction:
    """Return the cycles from the accumulator to the result.

    What is added to the accumulator does not wait for it.
    """
    waiting = Fraction(0)
    for part in parts:
        own = [name for name, place in part.places if place == Given(TARGET)]
        read = [n for n in own if part.entry.instruction.operand(n).role != "out"]
        if own:
            waiting += max((part.entry.after(n) for n in read), default=part.entry.latency)
    return waiting
