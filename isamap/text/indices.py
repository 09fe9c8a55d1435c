"""Expressions read as integer indices: polynomials of variables and extents."""

from isamap.ir.index import Index, const, read, var
from isamap.text.context import Placed, Scope, listed
from isamap.text.syntax import Apply, Broken, Convert, Element, Expression, Named, Number

_MAX_TERMS = 64
_MAX_NUMBER = 1 << 62


def to_index(scope: Scope, node: Expression, extents_only: bool = False) -> Index | None:
    """Return an index expression, or None after reporting why it is none.

    With ``extents_only`` a name must be an extent; otherwise any other name is a variable.
    """
    match node:
        case Broken():
            return None
        case Number(text):
            return _number(scope, node, text)
        case Named(name):
            return _name(scope, node, name, extents_only)
        case Element():
            return _read(scope, node, extents_only)
        case Apply(op, args):
            parts = [to_index(scope, arg, extents_only) for arg in args]
            whole = [part for part in parts if part is not None]
            if len(whole) < len(parts):
                return None
            return _limited(scope, node, _apply(scope, node, op, whole))
        case Convert():
            hint = "indices are integers: leave the cast out"
            scope.fail("E019", "a cast cannot stand in an index", node, hint)
            return None


def _number(scope: Scope, node: Placed, text: str) -> Index | None:
    digits = text.removeprefix("-")
    if not digits.isdigit():
        scope.fail("E019", f"expected a whole number, found {text}", node)
        return None
    number = int(text)
    if abs(number) > _MAX_NUMBER:
        scope.fail("E016", f"{text[:40]} is too large for an index", node)
        return None
    return const(number)


def _name(scope: Scope, node: Placed, name: str, extents_only: bool) -> Index | None:
    if name in scope.broken:
        return None
    if name in scope.constants:
        return const(scope.constants[name])
    if name in scope.derived:
        return scope.derived[name]
    if name in scope.extents:
        return var(name)
    if name in scope.buffers:
        rank = len(scope.buffers[name].shape)
        hint = f"an element is written {name}[{', '.join('ijklmn'[:rank])}]"
        scope.fail("E019", f"{name} is a buffer, not an index", node, hint)
        return None
    if name in scope.parameters:
        scope.fail("E019", f"{name} is a type, not an index", node)
        return None
    if extents_only:
        hint = f"the extents are: {listed(scope.extents)}; declare it, ({name} = 64)"
        scope.fail("E013", f"unknown extent '{name}'", node, hint)
        return None
    return var(name)


def _read(scope: Scope, node: Element, extents_only: bool) -> Index | None:
    name = node.buffer.text
    if name in scope.broken:
        return None
    if extents_only:
        scope.fail("E019", "an extent cannot be read from a buffer", node)
        return None
    indices = element_indices(scope, node)
    if indices is None:
        return None
    dtype = scope.buffers[name].item.dtype.text
    if dtype not in scope.parameters and dtype[0] not in "su":
        scope.fail("E033", f"{name} holds {dtype}; an index must be an integer", node)
        return None
    return read(name, indices)


def element_indices(scope: Scope, node: Element) -> tuple[Index, ...] | None:
    """Return the indices of ``buffer[...]``; None after reporting what is wrong with it."""
    name = node.buffer.text
    if name not in scope.buffers:
        if name not in scope.broken:
            hint = f"the buffers are: {listed(scope.buffers)}"
            scope.fail("E013", f"unknown buffer '{name}'", node.buffer, hint)
        for index in node.indices:
            to_index(scope, index)
        return None
    found = [to_index(scope, index) for index in node.indices]
    declared = scope.buffers[name]
    if len(found) != len(declared.shape):
        rank = len(declared.shape)
        message = f"{name} has {_counted(rank)} but is indexed with {len(found)}"
        note = scope.note(f"{name} is declared here", declared.item.name)
        scope.fail("E012", message, node, notes=(note,))
        return None
    indices = tuple(index for index in found if index is not None)
    return indices if len(indices) == len(found) else None


def _counted(rank: int) -> str:
    return "1 dimension" if rank == 1 else f"{rank} dimensions"


def _apply(scope: Scope, node: Apply, op: str, parts: list[Index]) -> Index | None:
    match op, parts:
        case "neg", [a]:
            return -a
        case "+", [a, b]:
            return a + b
        case "-", [a, b]:
            return a - b
        case "*", [a, b]:
            return _product(scope, node, a, b)
        case (("//" | "%"), [a, b]):
            divisor = b.substitute(scope.known).constant
            if divisor is not None and 0 < divisor <= _MAX_NUMBER:
                return a // divisor if op == "//" else a % divisor
            message = f"the divisor {b} is not a positive constant"
            scope.fail("E020", message, node.args[1])
            return None
    message = f"'{op}' cannot stand in an index"
    hint = "indices are made with + - *, and with // and % by a constant"
    scope.fail("E019", message, node, "round down with //" if op == "/" else hint)
    return None


def _product(scope: Scope, node: Apply, a: Index, b: Index) -> Index | None:
    one, other = (sorted(_variables(scope, part)) for part in (a, b))
    if one and other:
        message = f"({a}) * ({b}) is not affine: {one[0]} and {other[0]} are both variables"
        scope.fail("E019", message, node, "of a product only one factor may have variables")
        return None
    return a * b


def _variables(scope: Scope, index: Index) -> frozenset[str]:
    found = index.names - scope.extents.keys()
    return found | frozenset(read.buffer for read in index.reads)


def _limited(scope: Scope, node: Placed, index: Index | None) -> Index | None:
    if index is None:
        return None
    if len(index.terms) > _MAX_TERMS:
        scope.fail("E010", f"the index has more than {_MAX_TERMS} terms", node)
        return None
    if any(abs(c) > _MAX_NUMBER for _, c in index.terms):
        scope.fail("E016", "a number of the index does not fit 64 bits", node)
        return None
    return index
