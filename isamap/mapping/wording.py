"""Expressions as the short text that messages and listings use."""

from isamap.ir.nodes import Access, Coordinate, Expr, Literal, Op
from isamap.ir.operations import OPERATIONS


def expression_text(expr: Expr) -> str:
    """Return an expression in the language's notation, every operation in parentheses."""
    match expr:
        case Access(buffer, indices, _):
            return f"{buffer}[{', '.join(map(str, indices))}]"
        case Literal(text, _):
            return text
        case Coordinate(index, _):
            return str(index)
        case Op("cast", (arg,), dtype):
            return f"{dtype}({expression_text(arg)})"
        case Op("sat", (arg,), dtype):
            return f"sat[{dtype}]({expression_text(arg)})"
        case Op(op, args, _):
            texts = [expression_text(arg) for arg in args]
            if OPERATIONS[op].precedence is None:
                return f"{op}({', '.join(texts)})"
            if len(texts) == 1:
                return f"{'-' if op == 'neg' else op}{texts[0]}"
            return f"({texts[0]} {op} {texts[1]})"
