"""Expressions read as typed values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from isamap.diagnostics import Span
from isamap.ir.dtype import DTYPES, DType
from isamap.ir.index import Index, const, var
from isamap.ir.literal import LiteralFault, canonical
from isamap.ir.nodes import Access, Buffer, Coordinate, Expr, Literal, Op
from isamap.ir.operations import OPERATIONS, Operation
from isamap.text.context import Placed, Scope, listed
from isamap.text.indices import element_indices
from isamap.text.syntax import (
    Apply,
    Broken,
    Convert,
    Element,
    Expression,
    Named,
    Number,
    Word,
)

COORDINATE = DTYPES["s64"]
"""The type of a variable or an extent used as a value."""

_BOOL = DTYPES["bool"]
_WRAPPING = frozenset({"+", "-", "*", "neg", "abs", "<<"})
_WIDER = (DTYPES["s32"], DTYPES["s64"])
_SUITS = {
    "float": "floats",
    "integer": "integers",
    "bits": "integers and bool",
    "same": "numbers",
}


@dataclass(slots=True)
class Typing:
    """Types of one instance of a definition: its buffers, with type parameters bound.

    ``elements`` keeps the indices of every access, which all instances share, and ``spans`` the
    places of nodes.
    """

    scope: Scope
    types: Mapping[str, DType]
    buffers: dict[str, Buffer] = field(default_factory=dict)
    elements: dict[int, tuple[Index, ...] | None] = field(default_factory=dict)
    spans: dict[int, Span] = field(default_factory=dict)

    def dtype(self, word: Word) -> DType | None:
        """Return the type that a word names; None after reporting that it names none."""
        found = DTYPES.get(word.text) or self.types.get(word.text)
        if found is None:
            hint = f"the types are: {' '.join(DTYPES)}"
            self.scope.fail("E013", f"unknown type '{word.text}'", word, hint)
        return found

    def span(self, node: Placed) -> Span:
        """Return where a node stands."""
        if (found := self.spans.get(id(node))) is None:
            found = self.spans[id(node)] = self.scope.span(node)
        return found

    # --- expressions ------------------------------------------------------------------------------
    def expr(self, node: Expression, expected: DType | None) -> Expr | None:
        """Return a typed expression, or None after reporting what is wrong.

        ``expected`` is the type of literals that nothing in the expression gives a type.
        """
        match node:
            case Broken():
                return None
            case Number(text):
                return self.literal(node, text, expected)
            case Named(name):
                return self._coordinate(node, name)
            case Element():
                return self.access(node)
            case Convert():
                return self._convert(node)
            case Apply():
                return self._apply(node, expected)

    def literal(self, node: Placed, text: str, dtype: DType | None) -> Literal | None:
        """Return a number as a literal of a type."""
        if dtype is None:
            hint = f"write its type: f32({text[:20]})"
            self.scope.fail("E016", "nothing here tells the type of this number", node, hint)
            return None
        try:
            return Literal(canonical(text, dtype), dtype, self.span(node))
        except LiteralFault as fault:
            self.scope.fail("E016", str(fault), node)
            return None

    def access(self, node: Element) -> Access | None:
        """Return an access to a buffer."""
        key = id(node)
        if key not in self.elements:
            self.elements[key] = element_indices(self.scope, node)
        indices = self.elements[key]
        buffer = self.buffers.get(node.buffer.text)
        if indices is None or buffer is None:
            return None
        for index in indices:
            for read in index.reads:
                inner = self.buffers.get(read.buffer)
                if inner is not None and not inner.dtype.is_integer:
                    message = f"{read.buffer} holds {inner.dtype}; an index must be an integer"
                    self.scope.fail("E033", message, node)
                    return None
        return Access(buffer.name, indices, buffer.dtype, self.span(node), buffer.contents)

    def _coordinate(self, node: Placed, name: str) -> Coordinate | None:
        scope = self.scope
        if name in scope.broken:
            return None
        if name in scope.derived:
            return Coordinate(scope.derived[name], COORDINATE, self.span(node))
        if name in scope.buffers:
            rank = len(scope.buffers[name].shape)
            hint = f"an element is written {name}[{', '.join('ijklmn'[:rank])}]"
            scope.fail("E012", f"{name} is a buffer of {rank} dimensions", node, hint)
            return None
        if name in scope.parameters:
            scope.fail("E015", f"{name} is a type, not a value", node)
            return None
        return Coordinate(var(name), COORDINATE, self.span(node))

    def _convert(self, node: Convert) -> Expr | None:
        dtype = self._cast_type(node)
        if dtype is None:
            self.expr(node.arg, COORDINATE)  # for the errors in it
            return None
        op = OPERATIONS["sat" if node.saturate else "cast"]
        if isinstance(node.arg, Number):
            if not node.saturate:
                return self.literal(node.arg, node.arg.text, dtype)
            message = "a number has no type to saturate from"
            hint = f"write the value itself, or its type: sat[{dtype}](f32({node.arg.text[:20]}))"
            self.scope.fail("E017", message, node, hint)
            return None
        arg = self.expr(node.arg, None)
        if arg is None:
            return None
        # Between equal types both leave a value as it is, but a saturated float is never infinite.
        same = arg.dtype == dtype and not (node.saturate and dtype.is_float)
        # The absolute value of what has no sign is as it was.
        wrapping = _WRAPPING - {"abs"} if dtype.kind == "unsigned" else _WRAPPING
        if same and node.saturate and isinstance(arg, Op) and arg.op in wrapping:
            message = f"'{arg.op}' of {dtype} wraps, and leaves nothing to saturate to {dtype}"
            wider = next((t for t in _WIDER if t.bits > dtype.bits), None)
            remedy = f"give its operands a wider type first: {wider}(x)" if wider else None
            self.scope.fail("E017", message, node, remedy)
            return None
        return arg if same else Op(op.name, (arg,), dtype, self.span(node))

    def _cast_type(self, node: Convert) -> DType | None:
        word = node.dtype
        found = DTYPES.get(word.text) or self.types.get(word.text)
        if found is None:
            hint = f"the functions are: {listed(_functions())}; buffers are read with [ ]"
            self.scope.fail("E013", f"unknown function or type '{word.text}'", word, hint)
        elif node.others:
            message = f"a cast takes 1 value, found {node.others + 1}"
            self.scope.fail("E034", message, node)
            return None
        return found

    def _apply(self, node: Apply, expected: DType | None) -> Expr | None:
        op = OPERATIONS[node.op]
        if len(node.args) != op.arity:
            plural = "" if op.arity == 1 else "s"
            message = f"{op.name} takes {op.arity} value{plural}, found {len(node.args)}"
            self.scope.fail("E034", message, node)
            for arg in node.args:
                if not arg.loose:
                    self.expr(arg, expected)
            return None
        condition: tuple[Expr, ...] = ()
        args = node.args
        if op.rule == "select":
            first = self.expr(args[0], _BOOL)
            if first is not None and first.dtype != _BOOL:
                message = f"{op.name} needs a bool first, found {first.dtype}"
                self.scope.fail("E015", message, args[0], "compare: x != 0")
                first = None
            condition, args = (first,) if first is not None else (), args[1:]
        same = self._same(node, op, args, None if op.rule == "compare" else expected)
        if same is None or (op.rule == "select" and not condition):
            return None
        return self._made(node, op, condition + same)

    def _same(
        self, node: Apply, op: Operation, args: tuple[Expression, ...], expected: DType | None
    ) -> tuple[Expr, ...] | None:
        """Return arguments of one type: those that are no literals tell that of those that are."""
        typed = {id(arg): self.expr(arg, None) for arg in args if not arg.loose}
        if any(found is None for found in typed.values()):
            return None
        kinds = [found.dtype for found in typed.values() if found is not None]
        if any(kind != kinds[0] for kind in kinds):
            other = next(kind for kind in kinds if kind != kinds[0])
            message = f"'{_shown(op)}' needs values of one type, found {kinds[0]} and {other}"
            self.scope.fail("E015", message, node, self._mixed(args, kinds[0], other))
            return None
        dtype = kinds[0] if kinds else expected
        found = []
        for arg in args:
            value = typed[id(arg)] if id(arg) in typed else self.expr(arg, dtype)
            if value is None:
                return None
            found.append(value)
        return tuple(found)

    def _mixed(self, args: tuple[Expression, ...], one: DType, other: DType) -> str:
        wanted = one if other == COORDINATE else other
        for arg in args:
            if isinstance(arg, Named):
                return f"{arg.name} is an index of type {COORDINATE}; cast it: {wanted}({arg.name})"
        return f"cast one: {one}(...) or {other}(...)"

    def _made(self, node: Apply, op: Operation, args: tuple[Expr, ...]) -> Expr | None:
        dtype = args[-1].dtype
        if not applies(op, dtype):
            suits = _SUITS[op.rule]
            message = f"'{_shown(op)}' cannot be applied to {dtype}: it is for {suits}"
            self.scope.fail("E018", message, node, _remedy(op, dtype))
            return None
        if op.rule == "compare":
            return Op(op.name, args, _BOOL, self.span(node))
        folded = _folded(op.name, args, self.scope)
        if folded is not None:
            return Coordinate(folded, dtype, self.span(node))
        return Op(op.name, args, dtype, self.span(node))


def applies(op: Operation, dtype: DType) -> bool:
    """Return whether an operation has a meaning on values of a type."""
    match op.rule:
        case "float":
            return dtype.is_float
        case "integer":
            return dtype.is_integer
        case "bits":
            return not dtype.is_float
        case "same":
            return dtype.kind != "bool" or op.on_bool
        case _:
            return True


def _remedy(op: Operation, dtype: DType) -> str | None:
    if op.rule == "float" and dtype.is_integer and op.precedence is not None:
        return "integers are divided with //, which rounds down; or cast: f32(...)"
    if op.rule == "float":
        return "cast the value: f32(...)"
    if dtype.kind == "bool":
        return "bools are combined with & | ^ ~"
    return None


def _shown(op: Operation) -> str:
    return "-" if op.name == "neg" else op.name


def _functions() -> list[str]:
    return [o.name for o in OPERATIONS.values() if o.precedence is None and o.name not in ("cast",)]


def _folded(op: str, args: tuple[Expr, ...], scope: Scope) -> Index | None:
    """Return an operation on coordinates as one index expression, where it is quasi-affine."""
    if not any(isinstance(arg, Coordinate) for arg in args):
        return None
    parts = [_as_index(arg) for arg in args]
    match op, parts:
        case "neg", [Index() as a]:
            return -a
        case "+", [Index() as a, Index() as b]:
            return a + b
        case "-", [Index() as a, Index() as b]:
            return a - b
        case "*", [Index() as a, Index() as b]:
            moving = [part.names - scope.extents.keys() for part in (a, b)]
            return None if all(moving) else a * b
        case (("//" | "%"), [Index() as a, Index() as b]):
            divisor = b.substitute(scope.known).constant
            if divisor is None or divisor <= 0:
                return None
            return a // divisor if op == "//" else a % divisor
    return None


def _as_index(expr: Expr) -> Index | None:
    match expr:
        case Coordinate(index, _):
            return index
        case Literal(text, dtype) if dtype == COORDINATE:
            return const(int(text))
        case _:
            return None
