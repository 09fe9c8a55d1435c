"""What a rewriting rule yields."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from isamap.ir.nodes import Kernel
from isamap.solver.lemma import Lemma


@dataclass(frozen=True, slots=True)
class Rewriting:
    """One way to apply a rule to one statement of a kernel.

    ``rule`` is the rule's name and ``statement`` the number of the statement that it was applied
    to.  ``kernel`` is the whole kernel after it: of the same name, with the same buffers that a
    caller sees, perhaps with more locals and statements.  It computes what the original computes
    if every one of ``lemmas`` holds.  ``note`` says in one line and in the user's names what
    changed, why that is allowed, and the error bound if there is one.  ``error`` is the relative
    error of products that the comparison of results allows beside the roundings of the kernel that
    is run (of constants that had to be rounded, of terms that are left out); None for none.
    """

    rule: str
    statement: int
    kernel: Kernel
    lemmas: tuple[Lemma, ...]
    note: str
    error: Fraction | None = None


Rule: TypeAlias = Callable[[Kernel, int], Iterator[Rewriting]]
"""Yields every way to apply a rule to one statement, none where its precondition does not hold.

The kernel's extents are bound and its statements start their variables at 0
(:func:`isamap.rewrite.build.normal`).  What a rule yields need not be proved: see
:mod:`isamap.rewrite.apply`.
"""
