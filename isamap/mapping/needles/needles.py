"""Instructions as needles: statements over axes, indexed by what they compute."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from isamap.hw.accelerator import Accelerator, Entry
from isamap.ir.index import var
from isamap.ir.nodes import Access, Coordinate, Expr, Literal, Op, Reduce, Reduction, Statement
from isamap.ir.operations import OPERATIONS, REDUCTION_OPERATIONS
from isamap.ir.statements import accesses
from isamap.mapping.matching import Needle
from isamap.mapping.needles.demands import is_partial
from isamap.mapping.needles.makers import Makers
from isamap.mapping.needles.orders import OperandOrders, Renaming, automorphisms
from isamap.mapping.needles.pattern import bindings, size
from isamap.mapping.needles.readings import CASTS, REDUCTIONS, Readings, is_plain, read_entry

Key: TypeAlias = tuple[Reduction, str, str]
"""Reduction, root operation of the body ('' for a leaf), type of the body."""

Bindings: TypeAlias = tuple[tuple[str, Expr], ...]


@dataclass(slots=True)
class Needles:
    """A machine's instructions by what they compute; each is analysed when it is first needed.

    ``chains`` are those of several that were looked for
    (:class:`isamap.mapping.compose.compose.Composer`), by what for.
    """

    accelerator: Accelerator
    _kinds: dict[str, str] = field(default_factory=dict)
    _entries: dict[Key, list[Entry]] = field(default_factory=dict)
    _readings: dict[str, Readings] = field(default_factory=dict)
    _symmetries: dict[object, tuple[Renaming, ...]] = field(default_factory=dict)
    _makers: Makers | None = None
    chains: dict[object, tuple[Needle, ...]] = field(default_factory=dict)

    @property
    def makers(self) -> Makers:
        """The instructions with which compositions begin."""
        if self._makers is None:
            self._makers = Makers(self.accelerator)
        return self._makers

    def at(self, key: Key) -> Iterator[Needle]:
        """Yield the needles with this key; a masked form only if there is no full one."""
        seen: set[object] = set()
        for entry in self._entries.get(key, ()):
            if is_partial(entry):
                continue  # What proves its operands' values has it as a composition of one.
            for needle in self.readings(entry).needles:
                if _key(needle.reduction, needle.value) != key:
                    continue
                form = signature(needle)
                if not _is_ranged(entry):
                    seen.add(form)
                elif form in seen:
                    continue
                yield needle

    def partial(self, statement: Statement) -> Iterator[Needle]:
        """Yield the needles for a statement that are defined for some values only."""
        key = _key(statement.reduction, statement.value)
        for entry in self._entries.get(key, ()):
            if is_partial(entry):
                for needle in self.readings(entry).needles:
                    own = _key(needle.reduction, needle.value)
                    if own == key and needle.target.dtype == statement.target.dtype:
                        yield needle

    def readings(self, entry: Entry) -> Readings:
        """Return an entry's needles, or why it has none."""
        if entry.name not in self._readings:
            self._readings[entry.name] = read_entry(entry, self._kinds)
        return self._readings[entry.name]

    def automorphisms(self, needle: Needle) -> tuple[Renaming, ...]:
        """Return the permutations of operands under which an instruction is the same."""
        key = needle.name, needle.reduction, needle.tied, needle.value
        if key not in self._symmetries:
            self._symmetries[key] = automorphisms(needle, self._kinds)
        return self._symmetries[key]

    def is_immediate(self, needle: Needle, operand: str) -> bool:
        """Return whether an operand is a constant written into the instruction."""
        return self._kinds[needle.operand(operand).storage or ""] == "immediate"


def needles(accelerator: Accelerator) -> Needles:
    """Index the instructions of ``accelerator`` by the statements that they may stand for.

    It is made once, and remembers what was analysed.
    """
    return accelerator.answer("needles", lambda: _needles(accelerator))


def _needles(accelerator: Accelerator) -> Needles:
    found = Needles(accelerator, {s.name: s.kind for s in accelerator.storages})
    # Masked forms last, so that the full instruction is met first.
    for entry in sorted(accelerator.entries, key=_is_ranged):
        for key in _entry_keys(entry, found):
            found._entries.setdefault(key, []).append(entry)
    return found


def roots(
    statement: Statement, found: Needles, orders: OperandOrders | None = None
) -> tuple[tuple[Needle, Bindings], ...]:
    """Return each needle that computes the statement's body, with each way to bind its operands.

    Those that cover most operations of the body come first; operands may be bound to operations,
    which other instructions must compute before.  ``orders`` says which orders of operands count.
    Without it there is one of the bindings that only exchange like operands of a commutative
    operation: the others are the same program, element for element.
    """
    keys = [_key(statement.reduction, statement.value)]
    match statement.value:
        case Op(op, _, dtype) if statement.reduction != "=" or op in CASTS:
            keys.append((statement.reduction, "", dtype.name))
        case _:
            pass
    result: list[tuple[Needle, Bindings]] = []
    for key in keys:
        for needle in found.at(key):
            if needle.target.dtype != statement.target.dtype:
                continue
            result += [(needle, bound) for bound in programs(needle, statement, found, orders)]
    return tuple(sorted(result, key=lambda root: -covered(root[0])))


def programs(
    needle: Needle, statement: Statement, found: Needles, orders: OperandOrders | None = None
) -> tuple[Bindings, ...]:
    """Return the ways to bind a needle's operands that count, as in :func:`roots`."""
    order = [o.name for o in needle.entry.instruction.operands]
    order += [name for name, _ in needle.places]
    held: dict[str, Expr] = {access.buffer: literal for access, literal in needle.fixed}
    whole = ({**binding, **held} for binding in _bindings(statement, needle, found, orders))
    return tuple(
        tuple((name, binding[name]) for name in order if name in binding) for binding in whole
    )


def _bindings(
    statement: Statement, needle: Needle, found: Needles, orders: OperandOrders | None
) -> Iterator[dict[str, Expr]]:
    """Yield the bindings of one needle that count."""
    # Both of an exchange of like operands are one program; both of a symmetry are alike.
    symmetries = found.automorphisms(needle) if orders == "distinct" else ()
    seen: set[object] = set()
    for binding in bindings(needle.value, statement.value, as_written=orders == "given"):
        keys: list[object] = [
            frozenset((name, binding[other]) for name, other in renaming) for renaming in symmetries
        ]
        if orders in (None, "distinct"):
            keys.append(_program(needle, needle.value, binding))
        fits = not not_constant(found, needle, binding) and _parts_fit(needle, binding)
        if seen.isdisjoint(keys) and fits:
            seen.update(keys)
            yield binding


def covered(needle: Needle) -> int:
    """Return how many operations of a statement a needle does, the reduction's included."""
    return size(needle.value) + (needle.reduction != "=")


def operand_accesses(needle: Needle) -> dict[str, Access]:
    """Return the access of each operand that the needle reads, those that hold constants too."""
    found = {access.buffer: access for access in accesses(needle.value)}
    return found | {access.buffer: access for access, _ in needle.fixed}


def not_constant(found: Needles, needle: Needle, binding: dict[str, Expr]) -> dict[str, Expr]:
    """Return what operands that are constants written into the instruction stand for, if that is
    none.
    """
    return {
        name: expr
        for name, expr in binding.items()
        if not isinstance(expr, Literal | Coordinate)
        and not _is_table(needle, name)
        and found.is_immediate(needle, name)
    }


def _is_table(needle: Needle, operand: str) -> bool:
    return needle.operand(operand).contents is not None


def _parts_fit(needle: Needle, binding: dict[str, Expr]) -> bool:
    """Return whether tables of the instruction meet known numbers, and one register one value."""
    for name, expr in binding.items():
        if _is_table(needle, name):
            known = isinstance(expr, Literal) or (
                isinstance(expr, Access) and expr.contents is not None
            )
            if not known:
                return False
    shared = [binding[name] for name in needle.entry.same if name in binding]
    return all(expr == shared[0] for expr in shared[1:])


def _program(needle: Needle, value: Expr, binding: dict[str, Expr]) -> object:
    """Return what an instruction computes, in a form that commuting its arguments leaves alone."""
    match value:
        case Access(buffer, indices, _):
            operand = needle.operand(buffer)
            return operand.storage, operand.values, tuple(map(str, indices)), binding[buffer]
        case Op(op, args, dtype):
            parts = [_program(needle, arg, binding) for arg in args]
            if OPERATIONS[op].commutative:
                parts.sort(key=repr)
            return op, dtype, tuple(parts)
        case Reduce(reduction, _, body, _):
            return reduction, _program(needle, body, binding)
        case _:
            return value


# --- the index ----------------------------------------------------------------------------------
def _root(expr: Expr) -> str:
    match expr:
        case Op(op, _, _):
            return op
        case Reduce(reduction, _, _, _):
            return reduction
        case _:
            return ""


def _key(reduction: Reduction, value: Expr) -> Key:
    return reduction, _root(value), value.dtype.name


def _entry_keys(entry: Entry, found: Needles) -> tuple[Key, ...]:
    """Return the keys of an entry's readings; those of several statements are read at once."""
    if is_plain(entry.instruction):
        return _keys(entry.instruction.statements[0])
    readings = found.readings(entry).needles
    return tuple(dict.fromkeys(_key(n.reduction, n.value) for n in readings))


def _keys(statement: Statement) -> tuple[Key, ...]:
    """Return the keys of all readings that a statement may have; cheap, so it may say too much."""
    value, dtype = statement.value, statement.value.dtype.name
    keys = [_key(statement.reduction, value)]
    if statement.reduction != "=":
        keys.append(("=", REDUCTION_OPERATIONS[statement.reduction], dtype))
    elif isinstance(value, Op) and value.op in REDUCTIONS:
        keys += [_key(REDUCTIONS[value.op], arg) for arg in value.args]
    return tuple(dict.fromkeys(keys))


def _is_ranged(entry: Entry) -> bool:
    return any(extent.range for extent in entry.instruction.extents)


def signature(needle: Needle) -> object:
    """Return what two needles share that differ only in names and in being masked."""
    places: dict[str, str] = {}
    pieces = [piece for axis in needle.axes for piece in axis.pieces]
    axes = {name: var(f"y{n}") for n, (name, _) in enumerate(pieces)}

    def text(expr: Expr) -> object:
        match expr:
            case Access(buffer, indices, dtype):
                operand = needle.operand(buffer)
                name = places.setdefault(buffer, f"o{len(places)}")
                renamed = [str(i.substitute(axes)) for i in indices]
                return name, operand.storage, dtype.name, tuple(renamed)
            case Op(op, args, dtype):
                return op, dtype.name, tuple(text(arg) for arg in args)
            case Reduce(reduction, _, body, dtype):
                return reduction, dtype.name, text(body)
            case _:
                return expr

    extents = tuple((e, axis.open) for axis in needle.axes for _, e in axis.pieces)
    body = text(needle.target), text(needle.value), tuple(text(a) for a, _ in needle.fixed)
    shared = tuple((places.get(name), places.get(other)) for name, other in needle.places)
    held = tuple(e for _, e in needle.fixed)
    return needle.reduction, body, extents, needle.tied is None, held, shared
