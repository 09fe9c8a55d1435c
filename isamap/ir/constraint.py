"""What a description demands of the numbers of an instruction: comparisons of index expressions."""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne
from typing import Literal, TypeAlias, get_args

from isamap.ir.index import Index

Comparison: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">="]

COMPARISONS: tuple[Comparison, ...] = get_args(Comparison)

_COMPARE = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


@dataclass(frozen=True, slots=True)
class Constraint:
    """``left op right`` over axes and extents of an instruction; ``text`` is as it was written.

    An axis stands for how many of its positions are used, an extent for its value.
    """

    left: Index
    op: Comparison
    right: Index
    text: str

    @property
    def names(self) -> frozenset[str]:
        """The axes and extents that it speaks of."""
        return self.left.names | self.right.names

    def holds(self, values: Mapping[str, int]) -> bool:
        """Return whether it holds for some numbers, one for each name."""
        compare = _COMPARE[self.op]
        return bool(compare(self.left.evaluate(values), self.right.evaluate(values)))

    def decided(self, values: Mapping[str, Index]) -> bool | None:
        """Return whether it holds for all values of the symbols in ``values``, None if unknown."""
        left, right = self.left.substitute(values), self.right.substitute(values)
        if left.constant is not None and right.constant is not None:
            return bool(_COMPARE[self.op](left.constant, right.constant))
        return True if left == right and self.op in ("==", "<=", ">=") else None
