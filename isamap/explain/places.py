"""Where variables and axes stand in the user's files."""

from isamap.diagnostics import Span
from isamap.ir.index import Div, Index, Mod, Name, Read
from isamap.ir.nodes import Access, Coordinate, Expr, Statement
from isamap.ir.statements import accesses
from isamap.mapping.axes.rows import entangled
from isamap.mapping.matching import Needle


def axis_span(needle: Needle, axis: str) -> Span | None:
    """Return where an axis first occurs in the instruction's statement."""
    own = next((a for a in needle.axes if a.name == axis), None)
    names = frozenset(name for name, _ in own.pieces) if own else frozenset((axis,))
    for access in (needle.target, *accesses(needle.value)):
        if any(names & index.names for index in access.indices):
            return access.span
    return needle.entry.span


def variable_span(statement: Statement, variable: str) -> Span | None:
    """Return where a variable first occurs in a statement, the target first."""
    for part in leaves(statement):
        if any(variable in index.names for index in _indices(part)):
            return part.span
    return statement.span


def leaves(statement: Statement) -> tuple[Access | Coordinate, ...]:
    """Return the accesses and positions of a statement, the target first."""
    return (statement.target, *_leaves(statement.value))


def entangling(statement: Statement, variable: str) -> tuple[Access | Coordinate, Index] | None:
    """Return the first index that uses a variable other than with a number as coefficient."""
    for part in leaves(statement):
        for index in _indices(part):
            if variable in entangled(index, frozenset((variable,))):
                return part, index
    return None


def how_entangled(index: Index, variable: str) -> str:
    """Return in words how an index uses a variable that it entangles."""
    for monomial, _ in index.terms:
        names = [atom for atom in monomial if isinstance(atom, Name)]
        for atom in monomial:
            match atom:
                case Div(value, divisor) if variable in value.names:
                    return f"inside '// {divisor}'"
                case Mod(value, divisor) if variable in value.names:
                    return f"inside '% {divisor}'"
                case Read(buffer, inner) if any(variable in i.names for i in inner):
                    return f"through {buffer}, whose values are known only when the code runs"
                case Name(name) if name == variable and len(monomial) > 1:
                    others = [a.name for a in names if a.name != variable]
                    return f"with the factor {'*'.join(others) or name}, which has no value here,"
    return "not linearly"


def _leaves(expr: Expr) -> tuple[Access | Coordinate, ...]:
    if isinstance(expr, Access | Coordinate):
        return (expr,)
    return tuple(leaf for arg in getattr(expr, "args", ()) for leaf in _leaves(arg))


def _indices(part: Access | Coordinate) -> tuple[Index, ...]:
    return part.indices if isinstance(part, Access) else (part.index,)
