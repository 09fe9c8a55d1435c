"""What an instruction does to the bits of a result beyond what its statements say."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Order: TypeAlias = Literal["ascending", "descending", "apart", "once", "halves", "pairs"]
"""How the terms of a sum over one variable are added.

``ascending`` and ``descending``: one after the other to what there is.  ``apart``: one after the
other, by themselves, and their sum to what there is.  ``once``: the same, products and sum exact
and rounded once.  ``halves`` and ``pairs``, by themselves too: each with that half the number away,
or with its neighbour, until one is left.
"""

Flush: TypeAlias = Literal["never", "before", "after"]
"""Whether subnormal numbers are zero, and whether a result is one ``before`` it is rounded, or
``after``, when exponents had no bound: what rounds up to the least normal number tells them apart.
"""

Rounding: TypeAlias = Literal["nearest", "odd"]
"""``nearest``: ties to even.  ``odd``: an inexact result is truncated and its last bit set."""


@dataclass(frozen=True, slots=True)
class Numeric:
    """How an instruction computes with floats, where that decides bits.

    ``fused``: a product that is added is not rounded first.  ``sums`` says how terms are added over
    reduction variables, the outermost first; the others are outside of these and ascending.  A sum
    of its own begins with its first term, or with zero (``zero``), one of sums with the first of
    these in any case.  ``groups``: so many terms over a variable, neighbours, have a sum of their
    own, which is then added; the groups are ascending.
    Each step (a sum, product, quotient or root) has this ``rounding``.  ``flush``, unless it is
    ``never``: subnormal arguments and results of each step, of ``min`` and ``max`` as well, and
    arguments of conversions to shorter floats, are zero, of their sign.
    """

    fused: bool = False
    sums: tuple[tuple[str, Order], ...] = ()
    groups: tuple[tuple[str, int], ...] = ()
    zero: bool = False
    rounding: Rounding = "nearest"
    flush: Flush = "never"

    @property
    def roundoffs(self) -> int:
        """How many unit roundoffs a step may be off."""
        return 1 if self.rounding == "nearest" else 2
