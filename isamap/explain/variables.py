"""Why a variable of a statement can lie on no axis of any instruction."""

from isamap.explain.explanation import Reason
from isamap.explain.places import entangling, how_entangled, variable_span
from isamap.ir.nodes import Statement
from isamap.ir.printer import print_expr
from isamap.ir.statements import accesses


def stuck(statement: Statement, variable: str) -> Reason:
    """Return why ``variable`` stays in a loop around every instruction."""
    own = next(v for v in statement.variables if v.name == variable)
    if own.extent.constant == 1:
        return Reason("extent", "has one iteration", variable_span(statement, variable))
    if (found := entangling(statement, variable)) is not None:
        part, index = found
        text = f"is used {how_entangled(index, variable)} in {print_expr(part)}"
        return Reason("index", text, part.span)
    target = statement.target
    for access in accesses(statement.value):
        if access.buffer == target.buffer:
            text = f"iterations depend on each other: {print_expr(access)} is written here, too"
            return Reason("index", text, access.span)
    if any(r.buffer == target.buffer for i in target.indices for r in i.reads):
        text = f"iterations depend on each other: {print_expr(target)} reads what it writes"
        return Reason("index", text, target.span)
    text = "may not be placed: iterations of the statement depend on each other"
    return Reason("index", text, statement.span)
