"""Rules that put other operations in the place of some of a value, each by a lemma of its own."""

from collections.abc import Callable, Iterator

from isamap.ir.nodes import Expr, Kernel, Op
from isamap.ir.printer import print_expr
from isamap.rewrite.build import Draft, extents, remade, replaced
from isamap.rewrite.rule import Rewriting
from isamap.solver.lemma import Lemma


def by_operations(
    name: str,
    kernel: Kernel,
    number: int,
    change: Callable[[Op], Expr | None],
    lemma: Callable[[Op], Lemma],
    why: str,
) -> Iterator[Rewriting]:
    """Yield the kernel with what ``change`` makes of a statement's operations, if it does of any.

    ``change`` gives None for those that stay; ``lemma`` says of one that its stand-in is the same,
    ``why`` in words.
    """
    statement = kernel.statements[number]
    found: dict[Op, None] = {}

    def noted(operation: Op) -> Expr | None:
        after = change(operation)
        if after is not None:
            found[operation] = None
        return after

    own = remade(statement.value, noted)
    if not found:
        return
    draft = Draft(statement.target, statement.reduction, own, extents(statement))
    lemmas = tuple(dict.fromkeys(map(lemma, found)))
    note = f"{', '.join(map(print_expr, found))}: {why}"
    yield Rewriting(name, number, replaced(kernel, number, [draft]), lemmas, note)
