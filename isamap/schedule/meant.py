"""Which access of a statement's body is meant by what a schedule's text says."""

from isamap.ir.nodes import Access
from isamap.ir.printer import print_expr
from isamap.schedule.reader import squeezed
from isamap.schedule.written import WrittenBuffers, WrittenLoads, WrittenOperand


def means(
    own: WrittenBuffers | WrittenLoads | WrittenOperand, operand: str, access: Access
) -> bool:
    """Return whether an access that an operand of the instruction reads is meant.

    It is named by itself or by its buffer, and told from others by the operand.
    """
    if own.operand is not None and own.operand.text != operand:
        return False
    text = squeezed(print_expr(access))
    return own.what.text in (text, text.partition("[")[0])
