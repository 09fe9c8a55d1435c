"""What each statement of a kernel can be rewritten to, and the mappings that this enables."""

from dataclasses import dataclass

from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel, Statement
from isamap.mapping.find import enumerate_statement
from isamap.mapping.matching import Enumeration
from isamap.mapping.needles.needles import needles
from isamap.rewrite.apply import rewritings
from isamap.rewrite.build import normal
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.rules import UNMAPPED, rules_for


@dataclass(frozen=True, slots=True)
class Offered:
    """A proved rewriting of a statement, and the mappings of the statements that stand for it."""

    before: Statement
    rewriting: Rewriting
    enumerations: tuple[Enumeration, ...]


def offered(kernel: Kernel, hardware: Accelerator) -> tuple[tuple[Offered, ...], tuple[str, ...]]:
    """Return what one rule makes of one statement so that all of it has mappings.

    Rules that gain nothing for a statement that has mappings are tried on the others only.  The
    second part says which rewritings were refused, and why.
    """
    index, own = needles(hardware), normal(kernel)
    rules = rules_for(statements(hardware))
    found: list[Offered] = []
    refused: list[str] = []
    for number, before in enumerate(own.statements):
        mapped = bool(enumerate_statement(own, number, index).mappings)
        useful = [(name, rule) for name, rule in rules if not (mapped and name in UNMAPPED)]
        judged = rewritings(kernel, number, useful)
        refused += [one.text for one in judged.refused]
        for rewriting in judged.proved:
            more = len(rewriting.kernel.statements) - len(own.statements)
            stop = number + 1 + more
            enumerations = tuple(
                enumerate_statement(rewriting.kernel, at, index) for at in range(number, stop)
            )
            if all(one.mappings for one in enumerations):
                found.append(Offered(before, rewriting, enumerations))
    return tuple(found), tuple(refused)


def statements(hardware: Accelerator) -> tuple[Statement, ...]:
    """Return the statements of the instructions that have one."""
    every = (entry.instruction.statements for entry in hardware.entries)
    return tuple(own[0] for own in every if len(own) == 1)
