"""Trees as text that parses to the same trees."""

from collections.abc import Sequence
from fractions import Fraction

from isamap.ir.index import Div, Index, Mod
from isamap.ir.nodes import (
    Access,
    Buffer,
    Coordinate,
    Expr,
    Extent,
    Instruction,
    Invocation,
    Kernel,
    Literal,
    Module,
    Op,
    Permissions,
    Program,
    Range,
    Reduce,
    Statement,
    TimeLoop,
)
from isamap.ir.operations import OPERATIONS

_UNARY = {"neg": "-", "~": "~"}
_CASTS = {"cast": "{}({})", "sat": "sat[{}]({})"}
_PERMITTED = ("reassociate", "finite", "distribute")


def print_module(module: Module) -> str:
    """Return a file with everything in a module, its includes written out."""
    items = [print_kernel(kernel) for kernel in module.kernels]
    items += [print_instruction(instruction) for instruction in module.instructions]
    items += [print_program(program) for program in module.programs]
    return f"isamap {module.version}\n" + "".join(f"\n{item}" for item in items)


def print_kernel(kernel: Kernel) -> str:
    """Return a kernel's text, with a line end."""
    head = f"kernel {kernel.name}{_extents(kernel.extents)}{_permissions(kernel.permissions)}"
    return _block(head, [*_buffers(kernel.buffers), *_body(kernel.ranges, kernel.statements)])


def print_instruction(instruction: Instruction, body: str | None = None) -> str:
    """Return an instruction's text, with a line end; its type parameters are those it was bound
    to.  ``body`` is put in place of locals, ranges and statements.
    """
    states = [f"state {s.role} {s.name} : {s.dtype}" for s in instruction.states]
    if body is None:
        lines = [*_buffers(instruction.operands), *states]
        lines += _body(instruction.ranges, instruction.statements)
    else:
        operands = [o for o in instruction.operands if o.role != "local"]
        lines = [*_buffers(operands), *states, *body.splitlines()]
    name, parameters = instruction.name, ""
    if instruction.types:
        name = instruction.generic
        parameters = f"<{', '.join(f'{n} = {dtype}' for n, dtype in instruction.types)}>"
    return _block(f"instruction {name}{parameters}{_extents(instruction.extents)}", lines)


def print_program(program: Program) -> str:
    """Return a program's text, with a line end."""
    lines = _buffers(program.buffers)
    for step in program.body:
        lines += _step(step)
    return _block(f"program {program.name}{_extents(program.extents)}", lines)


def print_statement(statement: Statement) -> str:
    """Return a statement's text; the ranges of its variables are not part of it."""
    target = print_expr(statement.target)
    return f"{target} {statement.reduction} {_text(statement.value, 0, typed=True)}"


def print_expr(expr: Expr) -> str:
    """Return an expression's text."""
    return _text(expr, 0, typed=True)


def print_buffer(buffer: Buffer) -> str:
    """Return a buffer's declaration."""
    role = "const" if buffer.role == "table" else buffer.role
    text = f"{role} {buffer.name} : {buffer.dtype}[{_list(buffer.shape)}]"
    if buffer.storage is not None:
        text += f" @ {buffer.storage}"
    if buffer.strides is not None:
        text += f" strides [{_list(buffer.strides)}]"
    if buffer.pad is not None:
        text += f" pad {buffer.pad.text}"
    if buffer.values is not None:
        low, high = buffer.values
        text += f" values {low.text} .. {high.text}"
    if buffer.order != "little":
        text += f" order {buffer.order}"
    if buffer.contents is not None:
        texts = [literal.text for literal in buffer.contents.elements]
        text += f" = {_contents(texts, buffer.contents.shape)}"
    return text


def _contents(texts: Sequence[str], shape: Sequence[int]) -> str:
    """Return elements in row-major order as rows in brackets."""
    if not shape:
        return texts[0]
    size = len(texts) // shape[0]
    rows = (texts[at : at + size] for at in range(0, len(texts), size))
    return f"[{', '.join(_contents(row, shape[1:]) for row in rows)}]"


def _block(head: str, lines: Sequence[str]) -> str:
    return f"{head} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


def _buffers(buffers: Sequence[Buffer]) -> list[str]:
    return [print_buffer(buffer) for buffer in buffers]


def _body(ranges: Sequence[Range], statements: Sequence[Statement]) -> list[str]:
    lines = [f"for {r.name} in {r.lower}..{r.upper}" for r in ranges]
    return lines + [print_statement(statement) for statement in statements]


def _step(step: Invocation | TimeLoop) -> list[str]:
    match step:
        case Invocation(kernel, arguments):
            return [f"{kernel}({', '.join(arguments)})"]
        case TimeLoop(name, lower, upper, body):
            inner = [f"  {line}" for part in body for line in _step(part)]
            return [f"for {name} in {lower}..{upper} {{", *inner, "}"]


def _extents(extents: Sequence[Extent]) -> str:
    return f"({', '.join(map(print_extent, extents))})" if extents else ""


def print_extent(extent: Extent) -> str:
    """Return an extent's declaration."""
    if extent.range is not None:
        return f"{extent.name} in {extent.range[0]}..{extent.range[1]}"
    if extent.least is not None:
        return f"{extent.name} >= {extent.least}{' pow2' * extent.power}"
    return extent.name if extent.value is None else f"{extent.name} = {extent.value}"


def _permissions(permissions: Permissions) -> str:
    usual = Permissions()
    changed = []
    for name in _PERMITTED:
        if (value := getattr(permissions, name)) != getattr(usual, name):
            changed.append(name if value else f"no {name}")
    if permissions.approximate is not None:
        changed.append(f"approximate({_decimal(permissions.approximate)})")
    return f" permit {', '.join(changed)}" if changed else ""


def _decimal(value: Fraction) -> str:
    """Return the exact decimal of a fraction that has one."""
    digits, power = value.numerator, 0
    denominator = value.denominator
    while denominator > 1:
        digits, power = digits * 10, power - 1
        shared = Fraction(digits, denominator)
        digits, denominator = shared.numerator, shared.denominator
    return f"{digits}e{power}" if power else str(digits)


def _list(indices: Sequence[Index]) -> str:
    return ", ".join(map(str, indices))


def _text(expr: Expr, level: int, typed: bool) -> str:
    """Return an expression's text as an operand at a level of precedence.

    ``typed``: its type can be seen from what stands around it; a literal needs no type then.
    """
    match expr:
        case Literal(text, dtype):
            return text if typed else f"{dtype}({text})"
        case Access(buffer, indices, _):
            return f"{buffer}[{_list(indices)}]"
        case Coordinate(index, dtype):
            return _coordinate(index, str(dtype), level)
        case Op():
            return _operation(expr, level, typed)
        case Reduce(reduction, variables, body, _):
            return f"({reduction} over {', '.join(variables)}: {_text(body, 0, typed)})"


def _coordinate(index: Index, dtype: str, level: int) -> str:
    if index.constant is not None:
        return f"{dtype}({index})"
    return _wrapped(str(index), _precedence(index), level)


def _precedence(index: Index) -> int:
    """Return the precedence of the loosest operator in the text of an index."""
    if len(index.terms) > 1:
        return _level("+")
    ((monomial, factor),) = index.terms
    if len(monomial) > 1 or abs(factor) != 1:
        return _level("*")
    if factor == -1:
        return _level("neg")
    return _level("//") if isinstance(monomial[0], Div | Mod) else _level("neg") + 1


def _level(op: str) -> int:
    precedence = OPERATIONS[op].precedence
    assert precedence is not None
    return precedence


def _operation(expr: Op, level: int, typed: bool) -> str:
    if form := _CASTS.get(expr.op):
        return form.format(expr.dtype, _text(expr.args[0], 0, typed=False))
    facts = OPERATIONS[expr.op]
    args = expr.args
    if facts.rule == "select":
        condition = _text(args[0], 0, typed=True)
        return f"{expr.op}({condition}, {', '.join(_arguments(args[1:], 0, 0, typed))})"
    known = typed and facts.rule != "compare"
    if facts.precedence is None:
        return f"{expr.op}({', '.join(_arguments(args, 0, 0, known))})"
    if facts.arity == 1:
        (arg,) = args
        text = _text(arg, facts.precedence, known)
        # Without parentheses the sign would become part of the number.
        signed = expr.op == "neg" and isinstance(arg, Literal) and known
        inner = f"({text})" if signed else text
        return _wrapped(f"{_UNARY[expr.op]}{inner}", facts.precedence, level)
    # Comparisons do not associate; the others do to the left.
    first = facts.precedence + (facts.rule == "compare")
    left, right = _arguments(args, first, facts.precedence + 1, known)
    return _wrapped(f"{left} {expr.op} {right}", facts.precedence, level)


def _arguments(args: Sequence[Expr], first: int, others: int, typed: bool) -> list[str]:
    """Return arguments of one type: one that is no literal tells the type of those that are."""
    loose = [_is_loose(arg) for arg in args]
    texts = []
    for n, arg in enumerate(args):
        # If all are literals, the first one is written with its type.
        known = typed or (not all(loose) if loose[n] else False) or (all(loose) and n > 0)
        texts.append(_text(arg, others if n else first, known))
    return texts


def _is_loose(expr: Expr) -> bool:
    """Return whether an expression shows no type: it is made of literals alone."""
    if isinstance(expr, Literal):
        return True
    if not isinstance(expr, Op) or expr.op in _CASTS:
        return False
    rule = OPERATIONS[expr.op].rule
    args = expr.args[1:] if rule == "select" else expr.args
    return rule != "compare" and all(_is_loose(arg) for arg in args)


def _wrapped(text: str, precedence: int, level: int) -> str:
    return f"({text})" if precedence < level else text
