"""Why nothing brings a fragment into its storage, or from there to memory: what is missing."""

from collections.abc import Mapping, Set

from isamap.ir.nodes import Access, Expr, Literal, Op
from isamap.ir.printer import print_expr
from isamap.mapping.fragments.fit import fit_or_why
from isamap.mapping.fragments.fragment import Fragment, Reference
from isamap.mapping.fragments.produce import Producers
from isamap.mapping.fragments.producer import Kind, Producer, access_of
from isamap.mapping.fragments.producer import kind_of as fragment_kind
from isamap.mapping.fragments.storing import taken_or_why
from isamap.mapping.needles.pattern import bindings

DEPTH = 4
"""Movements and instructions one after the other that are looked through."""

OTHERS = 3
"""Further ones that are named beside the nearest."""


_OTHER_KIND = 2
"""How far from it is what takes no element in memory, or a constant only."""


def missing(
    producers: Producers,
    expr: Expr,
    wanted: Fragment,
    references: Mapping[Access, Reference],
    depth: int = DEPTH,
) -> str:
    """Return what a machine lacks to make a fragment of ``expr`` that it cannot make.

    Names the movement that is missing (from where, into which storage, of which type and shape),
    or the nearest one and why it does not take the elements as they lie.
    """
    kind = kind_of(wanted)
    if not producers.making(wanted):
        return f"no instruction writes {kind} in {wanted.storage}; {_needed(expr, kind, wanted)}"
    found = _obstacles(producers, expr, wanted, references, depth, frozenset())
    if not found:
        verb = "loads" if isinstance(expr, Access | Literal) else "computes"
        return (
            f"no instruction that writes {kind} in {wanted.storage} {verb} {print_expr(expr)}; "
            f"{_needed(expr, kind, wanted)}"
        )
    nearest = min(found)  # movements that reach memory come nearest
    others = {name for _, _, name in found} - {nearest[2]}
    # What takes something of another kind tells nothing of what would do.
    lacking = f"; {_needed(expr, kind, wanted)}" if nearest[0] >= _OTHER_KIND else ""
    return f"{nearest[1]}{_nor(others, 'bring it there')}{lacking}"


def not_stored(producers: Producers, fragment: Fragment, reference: Reference) -> str:
    """Return why nothing takes a fragment from its storage to where it shall lie in memory."""
    way = f"{kind_of(fragment)} from {fragment.storage} to memory"
    found = [
        (store.entry.name, why)
        for store in producers.storing(fragment)
        if isinstance(why := taken_or_why(store, fragment, reference), str)
    ]
    if not found:
        return f"no instruction takes {way}"
    (name, why), *others = found
    return f"{name} takes {way}, but {why}{_nor({n for n, _ in others}, 'take it there')}"


def _nor(others: Set[str], does: str) -> str:
    """Return that some others do not do it either."""
    if not others:
        return ""
    shown = ", ".join(sorted(others)[:OTHERS]) + (", ..." if len(others) > OTHERS else "")
    return f"; nor does {shown} {does}"


def _obstacles(
    producers: Producers,
    expr: Expr,
    wanted: Fragment,
    references: Mapping[Access, Reference],
    depth: int,
    visited: frozenset[Kind],
) -> list[tuple[int, str, str]]:
    """Return how far each producer that may make a fragment is from it, why, and its name.

    What is only moved has to be computed first: of an operation those movements tell something
    that begin where something computes it.  ``visited`` are the kinds of fragment from which this
    same expression is moved already.
    """
    found: list[tuple[int, str, str]] = []
    kind = fragment_kind(wanted)
    if kind in visited:
        return found
    for maker in producers.making(wanted):
        moves = isinstance(maker.value, Access)
        if moves and isinstance(expr, Op):
            found += _moved(producers, maker, expr, wanted, references, depth, visited | {kind})
            continue
        for bound in bindings(maker.value, expr):
            if (why := _fails(producers, maker, bound, wanted, references, depth)) is not None:
                found.append((*why, maker.entry.name))
    return found


def _moved(
    producers: Producers,
    mover: Producer,
    expr: Op,
    wanted: Fragment,
    references: Mapping[Access, Reference],
    depth: int,
    visited: frozenset[Kind],
) -> list[tuple[int, str, str]]:
    """Return the obstacle to computing an operation where a movement would take it from."""
    assert isinstance(mover.value, Access)
    if not depth or _only_loads(producers, mover):
        return []  # What is still to be computed is neither in memory nor a constant.
    operand = mover.entry.instruction.operand(mover.value.buffer)
    inner = producers.operand_fragment(mover, operand, mover.value, wanted, expr)
    if inner is None:
        return []
    found = _obstacles(producers, expr, inner, references, depth - 1, visited)
    return [(*min(found)[:2], mover.entry.name)] if found else []


def _only_loads(producers: Producers, maker: Producer) -> bool:
    """Return whether a producer only moves what lies in memory, or a constant."""
    if not isinstance(maker.value, Access):
        return False
    storage = maker.entry.instruction.operand(maker.value.buffer).storage
    assert storage is not None
    return producers.is_memory(storage) or producers.is_immediate(storage)


def kind_of(wanted: Fragment) -> str:
    """Return the type and shape of a fragment as a declaration has them."""
    return f"{wanted.dtype}[{', '.join(map(str, wanted.shape))}]"


def _needed(expr: Expr, kind: str, wanted: Fragment) -> str:
    match expr:
        case Access():
            return f"missing is a movement of {kind} from memory to {wanted.storage}"
        case Literal():
            return f"missing is one that sets {kind} in {wanted.storage} to {expr.text}"
        case _:
            return f"missing is one that leaves it as {kind} in {wanted.storage}"


def _lost(producers: Producers, maker: Producer, wanted: Fragment) -> Literal | None:
    """Return what dead elements of a fragment must hold where a producer does not leave it."""
    dead = any(wanted.has_dead(d) for d in wanted.filled)
    return wanted.filler if dead and producers.filler(maker, wanted) is None else None


def _fails(
    producers: Producers,
    maker: Producer,
    bound: Mapping[str, Expr],
    wanted: Fragment,
    references: Mapping[Access, Reference],
    depth: int,
) -> tuple[int, str] | None:
    """Return how far a producer is from making a fragment, and why it does not."""
    entry = maker.entry
    for name, expr in bound.items():
        operand = entry.instruction.operand(name)
        assert operand.storage is not None
        if producers.is_immediate(operand.storage):
            if not isinstance(expr, Literal):
                return _OTHER_KIND, f"{entry.name} takes only a constant as {name}"
        elif producers.is_memory(operand.storage):
            if not isinstance(expr, Access) or expr not in references:
                return (
                    _OTHER_KIND,
                    f"{entry.name} reads {name} from memory, where {print_expr(expr)} is not",
                )
            access = access_of(maker.value, name)
            filler = producers.filler(maker, wanted)
            reference = references[expr]
            fits = fit_or_why(entry, operand, access, maker.axes, wanted, reference, filler)
            if isinstance(fits, str):
                return 0, f"{entry.name} moves {kind_of(wanted)} to {wanted.storage}, but {fits}"
        else:
            access = access_of(maker.value, name)
            inner = producers.operand_fragment(maker, operand, access, wanted, expr)
            if inner is None:
                if (filler := _lost(producers, maker, wanted)) is not None:
                    unused = "elements that are not in use"
                    return 3, f"{entry.name} does not leave {filler.text} in {unused}"
                return 3, f"{entry.name} takes another shape as {name}"
            if depth and producers.make(expr, inner, references) is None:
                return 1, missing(producers, expr, inner, references, depth - 1)
    return None
