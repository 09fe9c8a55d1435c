"""Equalities of expressions in which identity elements were put, taken apart into small ones.

That ``a + b`` is ``b*1.0 + a`` follows from ``x + y = y + x`` and ``x = x*1.0``, each of which a
solver shows at once; of the whole it has to look at the bits of sums.
"""

from collections.abc import Sequence
from itertools import permutations

from isamap.ir.nodes import Access, Expr, Literal, Op
from isamap.ir.operations import OPERATIONS

Pair = tuple[Expr, Expr]

_TELLS_ZEROS_APART = frozenset({"/", "rsqrt"})
"""Operations that make other numbers, not only another zero, of the other zero."""


def parted(left: Expr, right: Expr, signed_zeros: bool) -> list[Pair] | None:
    """Return pairs of which two expressions are equal if those of each pair are, whatever their
    elements; None where they are not alike but for the order of arguments and for identities.

    Pairs are equal as expressions are: the two zeros are, unless ``signed_zeros``.
    """
    if left == right:
        return []
    if _is_identity(left, right) or _is_identity(right, left):
        return [(_unknown(left, right), _unknown(right, left))]
    if not (isinstance(left, Op) and isinstance(right, Op)):
        return None
    if left.op != right.op or left.dtype != right.dtype or len(left.args) != len(right.args):
        return None
    if left.op in _TELLS_ZEROS_APART and not signed_zeros:
        return None
    found = _arguments(left.args, right.args, signed_zeros)
    if found is None and OPERATIONS[left.op].commutative:
        for order in permutations(right.args):
            found = _arguments(left.args, order, signed_zeros)
            if found is not None:
                return [*found, _swapped(left)]
    return found


def _arguments(
    left: Sequence[Expr], right: Sequence[Expr], signed_zeros: bool
) -> list[Pair] | None:
    pairs: list[Pair] = []
    for one, other in zip(left, right, strict=True):
        found = parted(one, other, signed_zeros)
        if found is None:
            return None
        pairs += found
    return pairs


def _is_identity(plain: Expr, whole: Expr) -> bool:
    """Return whether an expression is an operation on another one and a literal."""
    if not isinstance(whole, Op) or whole.dtype != plain.dtype or plain not in whole.args:
        return False
    return all(arg == plain or isinstance(arg, Literal) for arg in whole.args)


def _unknown(expr: Expr, other: Expr) -> Expr:
    """Return one of two expressions with what both hold as an unknown element."""
    plain = expr if _is_identity(expr, other) else other
    place = _element("x", plain)
    if expr == plain:
        return place
    assert isinstance(expr, Op)
    return Op(expr.op, tuple(place if arg == plain else arg for arg in expr.args), expr.dtype)


def _swapped(whole: Op) -> Pair:
    """Return an operation on two unknown elements, and on the same in the other order."""
    places = tuple(_element(name, arg) for name, arg in zip("xy", whole.args, strict=True))
    return Op(whole.op, places, whole.dtype), Op(whole.op, places[::-1], whole.dtype)


def _element(name: str, expr: Expr) -> Access:
    return Access(f"{name}:{expr.dtype}", (), expr.dtype)
