"""Where the sign of a zero is a part of what a kernel computes."""

from isamap.ir.nodes import Expr, Kernel, Literal, Op


def tells_zeros_apart(kernel: Kernel) -> bool:
    """Return whether something in a kernel depends on the sign of a zero.

    Only what divides by one does, and it gives an infinity: where all values are finite, nothing.
    """
    return not kernel.permissions.finite and any(_divides(s.value) for s in kernel.statements)


def _divides(expr: Expr) -> bool:
    """Return whether a value or a part of it is infinite where an unknown float is zero."""
    match expr:
        case Op("/", (_, divisor), dtype) if dtype.is_float and not isinstance(divisor, Literal):
            return True
        case Op("rsqrt"):
            return True
        case Op(_, args):
            return any(map(_divides, args))
        case _:
            return False
