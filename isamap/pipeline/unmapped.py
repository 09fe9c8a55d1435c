"""The legal mappings of all statements of a kernel, and why one has none."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from isamap.diagnostics import Diagnostic, NoMappingError
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.ir.statements import statement_names
from isamap.lower.grouping import group_reasons
from isamap.mapping.find import enumerate_statement, enumerate_with
from isamap.mapping.matching import Enumeration
from isamap.mapping.needles.needles import needles
from isamap.mapping.reasons import reasons


def enumerate_each(
    kernel: Kernel, hardware: Accelerator, instruction: str | None = None
) -> tuple[Enumeration, ...]:
    """Return the legal mappings of every statement, which may be none.

    With ``instruction`` only those to it, and to compositions in which it takes part.
    """
    index, numbers = needles(hardware), range(len(kernel.statements))
    if instruction is not None:
        return tuple(enumerate_with(kernel, number, index, instruction) for number in numbers)
    return tuple(enumerate_statement(kernel, number, index) for number in numbers)


def nothing(
    kernel: Kernel,
    hardware: Accelerator,
    enumerations: Sequence[Enumeration],
    refused: Sequence[str] = (),
    left: AbstractSet[str] = frozenset(),
) -> NoMappingError:
    """Return the error that names the statements without a mapping.

    ``left`` are the buffers that those write for which rules found nothing either, if any are
    known.
    """
    names = statement_names(kernel)
    unmapped = [i for i, found in enumerate(enumerations) if not found.mappings]
    still = [i for i in unmapped if kernel.statements[i].target.buffer in left]
    unmapped = still or unmapped
    return NoMappingError(
        [
            _unmapped(kernel, hardware, names[i], i, (*enumerations[i].refused, *refused))
            for i in unmapped
        ]
    )


def _unmapped(
    kernel: Kernel, hardware: Accelerator, name: str, index: int, refused: Sequence[str]
) -> Diagnostic:
    text = f"nothing on '{hardware.name}' computes statement {name} of kernel '{kernel.name}'"
    statement = kernel.statements[index]
    together = group_reasons(kernel, needles(hardware), index)
    addition = "; portable_c has every operation: 'extends: portable_c' adds it to a description"
    if hardware.queues == "tokens" or any(state.count > 1 for state in hardware.states):
        addition = ""  # instructions in C wait for no token, and choose none of several values
    near = bool(together or refused)
    others = reasons(statement, hardware, kernel.permissions, movements=not near)
    nearest = dict.fromkeys((*together, *refused, *others))
    return Diagnostic(
        "E721",
        text,
        statement.span,
        hint="'isamap explain' says more and tries changes" + addition,
        notes=tuple(Diagnostic("", line, severity="note") for line in nearest),
    )
