"""Constraints of a description, in the language's own expressions."""

from isamap.diagnostics import Collector, Source
from isamap.ir.constraint import COMPARISONS, Constraint
from isamap.text.context import Scope
from isamap.text.indices import to_index
from isamap.text.parse import parse_text
from isamap.text.syntax import Apply, StatementItem


class ConstraintError(ValueError):
    """A text is no constraint; the message says why."""


def parse_constraint(text: str) -> Constraint:
    """Return ``k % 4 == 0`` and the like; ConstraintError if it is none."""
    errors = Collector()
    # The grammar has one beginning: the comparison is read as the value of a statement.
    file, places = parse_text(Source("<constraint>", f"kernel k {{ x[] = {text}\n }}"), errors)
    items = [item for definition in file.definitions for item in definition.items]
    if errors.found:
        raise ConstraintError(errors.found[0].message)
    match items:
        case [StatementItem(_, _, Apply(op, (one, other)))] if op in COMPARISONS:
            pass
        case _:
            raise ConstraintError("expected a comparison, as in 'k % 4 == 0'")
    scope = Scope(places, errors, errors)
    left, right = to_index(scope, one), to_index(scope, other)
    if left is None or right is None:
        raise ConstraintError(errors.found[0].message)
    if left.reads or right.reads:
        raise ConstraintError("a constraint speaks of axes and extents, not of elements")
    return Constraint(left, op, right, " ".join(text.split()))
