"""The schedule of a mapped kernel as text, rewritings included."""

from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_kernel
from isamap.ir.statements import statement_names
from isamap.pipeline.offered import statements as bodies
from isamap.pipeline.result import Result
from isamap.rewrite.build import normal
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.rules import rules_for
from isamap.schedule.printed import Named, print_schedule


def schedule_text(result: Result) -> str:
    """Return the schedule of a mapped kernel as text that ``--schedule`` reads."""
    sizes = [f"{e.name} = {e.value}" for e in result.kernel.extents if e.value is not None]
    return print_schedule(
        result.kernel.name,
        result.accelerator.name,
        kernel_lines(result),
        [Named(s.name, s.mappings) for s in result.statements],
        result.schedule,
        [f"made for {', '.join(sizes)}"] if sizes else [],
    )


def kernel_lines(result: Result) -> list[str]:
    """Return what becomes of the kernel's statements before they are mapped, as it is written:
    ``rewrite winograd of Y way 2``, ``together T, C``.
    """
    lines, before = [], result.kernel
    current = normal(result.kernel)
    for rewriting in result.rewritings:
        name = statement_names(current)[rewriting.statement]
        ways = ways_of(current, result.accelerator, rewriting.rule, rewriting.statement)
        texts = [print_kernel(one.kernel) for one in ways]
        number = texts.index(print_kernel(rewriting.kernel)) + 1
        lines.append(f"rewrite {rewriting.rule} of {name}" + f" way {number}" * (len(ways) > 1))
        before = current = rewriting.kernel
    at = 0
    for own, statement in zip(result.statements, result.mapped.statements, strict=True):
        count = max(1, len(own.covers))
        if count > 1 or statement != before.statements[at]:
            lines.append(f"together {', '.join(own.covers)}")
        at += count
    return lines


def ways_of(kernel: Kernel, hardware: Accelerator, rule: str, number: int) -> tuple[Rewriting, ...]:
    """Return what a rule makes of a statement of a normal kernel, in its order."""
    rules = rules_for(bodies(hardware), (rule,))
    return tuple(found for _, apply in rules for found in apply(kernel, number))
