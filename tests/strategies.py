"""Random kernels, instructions and expressions: small, well typed, every access in bounds.

They are trees, in the form in which the parser makes them: printing and parsing one gives it back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from hypothesis import strategies as st

from isamap.ir.dtype import DTYPES, DType
from isamap.ir.index import Index, const, var
from isamap.ir.literal import LiteralFault, canonical
from isamap.ir.nodes import (
    Access,
    Buffer,
    Contents,
    Coordinate,
    Expr,
    Extent,
    Instruction,
    Kernel,
    Literal,
    Op,
    Permissions,
    Range,
    Reduction,
    Role,
    Statement,
    Variable,
)
from isamap.ir.operations import OPERATIONS, REDUCTION_OPERATIONS, Operation
from isamap.ir.statements import used_names

ALL = tuple(DTYPES.values())
"""Every type."""

EXACT = frozenset(
    o.name for o in OPERATIONS.values() if o.precedence is not None or o.rule in ("same", "select")
)
"""Operations whose result does not depend on a library of functions; casts are not among them."""

EVERY = frozenset(OPERATIONS)
"""Every operation."""

_BOOL = DTYPES["bool"]
_S64 = DTYPES["s64"]
_REDUCTIONS: tuple[Reduction, ...] = ("+=", "*=", "max=", "min=", "or=", "and=", "xor=")
_NUMBERS = ("0", "1", "2", "3", "7", "0.5", "1.25", "-1", "-2", "-0.75", "-3", "100", "0.1")


def applies(operation: Operation, dtype: DType) -> bool:
    """Return whether an operation that is no cast can have arguments of a type."""
    match operation.rule:
        case "float":
            return dtype.is_float
        case "integer":
            return dtype.is_integer
        case "bits":
            return not dtype.is_float
        case "same":
            return dtype.kind != "bool" or operation.on_bool
        case _:
            return operation.rule != "cast"


@st.composite
def literals(draw: st.DrawFn, dtype: DType) -> Literal:
    """A literal of a type."""
    texts = ["true", "false"] if dtype.kind == "bool" else list(_NUMBERS)
    if dtype.is_float:
        texts += ["inf", "-inf", "nan", "-0.0", "1e-3"]
    found = []
    for text in texts:
        try:
            found.append(canonical(text, dtype))
        except LiteralFault:
            continue
    return Literal(draw(st.sampled_from(found)), dtype)


@st.composite
def exprs(
    draw: st.DrawFn,
    dtype: DType,
    leaves: Sequence[Access | Coordinate] = (),
    operations: frozenset[str] = EVERY,
    depth: int = 3,
) -> Expr:
    """An expression of a type over some leaves; those of other types are cast."""
    own = [leaf for leaf in leaves if leaf.dtype == dtype]
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        if own and draw(st.sampled_from([True, True, True, False])):
            return draw(st.sampled_from(own))
        others = [leaf for leaf in leaves if leaf.dtype != dtype]
        if others and "cast" in operations and draw(st.booleans()):
            return Op("cast", (draw(st.sampled_from(others)),), dtype)
        return draw(st.sampled_from(own)) if own else draw(literals(dtype))
    name = draw(st.sampled_from(sorted(operations)))
    operation = OPERATIONS[name]

    def inner(wanted: DType) -> Expr:
        return draw(exprs(wanted, leaves, operations, depth - 1))

    if operation.rule == "cast":
        source = draw(st.sampled_from([leaf.dtype for leaf in leaves] or list(ALL)))
        arg = inner(source)
        if source == dtype or isinstance(arg, Literal):
            return arg if source == dtype else draw(literals(dtype))
        return Op(name, (arg,), dtype)
    if operation.rule == "select":
        return Op(name, (inner(_BOOL), inner(dtype), inner(dtype)), dtype)
    if operation.rule == "compare":
        if dtype != _BOOL:
            return inner(dtype)
        source = draw(st.sampled_from([leaf.dtype for leaf in leaves] or list(ALL)))
        return Op(name, (inner(source), inner(source)), dtype)
    if not applies(operation, dtype):
        return inner(dtype)
    args = tuple(inner(dtype) for _ in range(operation.arity))
    if any(isinstance(arg, Coordinate) for arg in args):
        return draw(literals(dtype))  # the parser would fold it into one coordinate
    return Op(name, args, dtype)


@dataclass(frozen=True, slots=True)
class _Box:
    """Variables with explicit ranges."""

    ranges: dict[str, tuple[int, int]]

    def upper(self, name: str) -> int:
        return self.ranges[name][1]


@st.composite
def _indices(draw: st.DrawFn, box: _Box, names: Sequence[str], padded: bool) -> tuple[Index, int]:
    """An index over some variables, and an extent in which it stays unless it is padded."""
    index = const(0)
    count = draw(st.integers(0, min(2, len(names))))
    for name in draw(st.permutations(list(names)))[:count]:
        index = index + draw(st.sampled_from([1, 1, 1, 1, 2, 3, -1, -2])) * var(name)
    form = draw(st.integers(0, 9))
    if index.names and form == 0:
        index = index // draw(st.integers(2, 4))
    elif index.names and form == 1:
        index = index % draw(st.integers(2, 4))
    ends = index.bounds({n: (low, high - 1) for n, (low, high) in box.ranges.items()})
    assert ends is not None
    if padded:
        return index + draw(st.integers(-2, 2)), draw(st.integers(1, 6))
    shift = -min(0, ends[0]) + draw(st.integers(0, 1))
    return index + shift, ends[1] + shift + 1 + draw(st.integers(0, 1))


@st.composite
def _inputs(
    draw: st.DrawFn, box: _Box, names: Sequence[str], buffer: str, dtype: DType
) -> tuple[Buffer, Access]:
    """A buffer that is read, and one access to it."""
    padded = draw(st.integers(0, 3)) == 0
    dimensions = [draw(_indices(box, names, padded)) for _ in range(draw(st.integers(0, 3)))]
    indices = tuple(index for index, _ in dimensions)
    shape = tuple(const(extent) for _, extent in dimensions)
    roles: list[Role] = ["in", "in", "const"]
    role = draw(st.sampled_from(roles))
    pad = draw(literals(dtype)) if padded else None
    access = Access(buffer, indices, dtype)
    if prod(extent for _, extent in dimensions) <= 12 and draw(st.integers(0, 5)) == 0:
        contents = draw(tables(tuple(extent for _, extent in dimensions), dtype))
        return Buffer(buffer, "table", dtype, shape, pad=pad, contents=contents), access
    return Buffer(buffer, role, dtype, shape, pad=pad), access


@st.composite
def tables(draw: st.DrawFn, shape: tuple[int, ...], dtype: DType) -> Contents:
    """What a table of a shape holds."""
    return Contents(shape, tuple(draw(literals(dtype)) for _ in range(prod(shape))))


@st.composite
def kernels(
    draw: st.DrawFn,
    dtypes: Sequence[DType] = ALL,
    operations: frozenset[str] = EVERY,
    max_statements: int = 3,
) -> Kernel:
    """A kernel of up to ``max_statements`` statements over up to four variables.

    All ranges are explicit.  Inputs have permuted, strided, shifted, reversed, divided and padded
    indices; each statement but the last writes a local buffer that later ones may read.
    """
    names = ("c", "h", "k", "w")[: draw(st.integers(1, 4))]
    ranges = {name: (0, draw(st.integers(1, 5))) for name in names}
    if draw(st.integers(0, 3)) == 0:
        ranges["r"] = (low := draw(st.integers(-2, 2)), low + draw(st.integers(1, 3)))
    box = _Box(ranges)
    buffers: list[Buffer] = []
    written: list[Access] = []
    statements: list[Statement] = []
    count = draw(st.integers(1, max_statements))
    for number in range(count):
        last = number == count - 1
        dtype = draw(st.sampled_from(list(dtypes)))
        size = draw(st.integers(0, len(names)))
        own = tuple(draw(st.permutations(list(names)))[:size])
        target = Access("Y" if last else f"T{number}", tuple(map(var, own)), dtype)
        reduction = draw(st.sampled_from(("=", *_reductions(dtype))))
        usable = own if reduction == "=" else tuple(ranges)
        reads = [access for access in written if _only(access, usable)]
        for part in range(draw(st.integers(1, 2))):
            kind = draw(st.sampled_from(list(dtypes)))
            made = draw(_inputs(box, usable, f"X{number}{part}", kind))
            buffers.append(made[0])
            reads.append(made[1])
        places: list[Coordinate] = [Coordinate(var(name), _S64) for name in usable]
        if "cast" not in operations:
            places = []
        value = draw(exprs(dtype, [*reads, *places], operations))
        shape = tuple(const(box.upper(name)) for name in own)
        roles: list[Role] = ["out", "out", "inout"] if last else ["local"]
        buffers.append(Buffer(target.buffer, draw(st.sampled_from(roles)), dtype, shape))
        written.append(target)
        statements.append(_statement(box, target, reduction, value))
    used = {v.name for s in statements for v in s.variables}
    return Kernel(
        "random",
        (),
        draw(permissions()),
        tuple(buffers),
        tuple(Range(n, const(a), const(b)) for n, (a, b) in ranges.items() if n in used),
        tuple(statements),
    )


def _statement(box: _Box, target: Access, reduction: Reduction, value: Expr) -> Statement:
    variables = tuple(
        Variable(name, const(box.ranges[name][0]), const(box.upper(name) - box.ranges[name][0]))
        for name in used_names(target, value)
    )
    return Statement(target, reduction, value, variables)


def _reductions(dtype: DType) -> tuple[Reduction, ...]:
    return tuple(r for r in _REDUCTIONS if applies(OPERATIONS[REDUCTION_OPERATIONS[r]], dtype))


def _only(access: Access, names: Sequence[str]) -> bool:
    return all(index.names <= set(names) for index in access.indices)


@st.composite
def permissions(draw: st.DrawFn) -> Permissions:
    """What a kernel may permit."""
    if draw(st.booleans()):
        return Permissions()
    reassociate, finite, distribute = (draw(st.booleans()) for _ in range(3))
    bound = draw(st.sampled_from([None, "1e-3", "0.25", "0.0000001"]))
    approximate = None if bound is None else Fraction(bound)
    return Permissions(reassociate, finite, distribute, approximate)


@st.composite
def instructions(draw: st.DrawFn, dtypes: Sequence[DType] = ALL) -> Instruction:
    """An instruction: a reduction or an operation on registers, or a movement from memory.

    A movement may be of a part, whose size is an extent with a range, and may have a free pitch.
    """
    if draw(st.booleans()):
        return draw(_movements(dtypes))
    names = ("i", "j", "k")[: draw(st.integers(1, 3))]
    box = _Box({name: (0, draw(st.integers(1, 4))) for name in names})
    source, dtype = draw(st.sampled_from(list(dtypes))), draw(st.sampled_from(list(dtypes)))
    reduction = draw(st.sampled_from(("=", *_reductions(dtype))))
    own = names if reduction == "=" else names[: draw(st.integers(0, len(names)))]
    operands = [_register(box, "a", "in", source, names), _register(box, "b", "in", source, names)]
    if draw(st.integers(0, 3)) == 0:
        sizes = tuple(box.upper(n) for n in names)
        contents = draw(tables(sizes, source))
        operands.append(Buffer("g", "table", source, tuple(map(const, sizes)), contents=contents))
    reads = [Access(b.name, tuple(map(var, names)), source) for b in operands]
    target = Access("r", tuple(map(var, own)), dtype)
    roles: list[Role] = ["out"] if reduction == "=" else ["out", "inout"]
    role = draw(st.sampled_from(roles))
    operands.append(_register(box, "r", role, dtype, own))
    value = draw(exprs(dtype, reads, depth=2))
    statement = _statement(box, target, reduction, value)
    used = [v.name for v in statement.variables]
    ranges = tuple(Range(n, const(0), const(box.upper(n))) for n in names if n in used)
    return Instruction("random", (), tuple(operands), (), ranges, (statement,), (), "random")


def _register(box: _Box, name: str, role: Role, dtype: DType, names: Sequence[str]) -> Buffer:
    shape = tuple(const(box.upper(n)) for n in names)
    return Buffer(name, role, dtype, shape, storage="reg")


@st.composite
def _movements(draw: st.DrawFn, dtypes: Sequence[DType]) -> Instruction:
    rank = draw(st.integers(1, 2))
    names = ("i", "j")[:rank]
    box = _Box({name: (0, draw(st.integers(1, 5))) for name in names})
    dtype = draw(st.sampled_from(list(dtypes)))
    full = tuple(const(box.upper(n)) for n in names)
    part = draw(st.booleans())
    sizes = tuple(Extent(f"n{n}", None, (1, box.upper(n) + 1)) for n in names) if part else ()
    free = draw(st.booleans())
    extents = (*sizes, *((Extent("P"),) if free else ()))
    shape = tuple(var(e.name) for e in sizes) if part else full
    strides = (var("P"), const(1))[-rank:] if free else None
    if free and rank == 1:
        strides = (var("P"),)
    load = draw(st.booleans())
    pad = draw(literals(dtype)) if part and load else None
    memory = Buffer(
        "m", "in" if load else "out", dtype, shape, storage="memory", pad=pad, strides=strides
    )
    register = Buffer("r", "out" if load else "in", dtype, full, storage="reg")
    indices = tuple(map(var, names))
    reads, writes = (memory, register) if load else (register, memory)
    target, value = Access(writes.name, indices, dtype), Access(reads.name, indices, dtype)
    ends = full if load or not part else shape
    variables = tuple(Variable(n, const(0), end) for n, end in zip(names, ends, strict=True))
    ranges = tuple(Range(n, const(0), end) for n, end in zip(names, ends, strict=True))
    statement = Statement(target, "=", value, variables)
    return Instruction(
        "random", extents, (memory, register), (), ranges, (statement,), (), "random"
    )
