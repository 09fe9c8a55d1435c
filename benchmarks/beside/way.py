"""A way in which a library computes a case."""

from collections.abc import Callable
from dataclasses import dataclass

from beside.inputs import Array


@dataclass(frozen=True)
class Way:
    """``run()`` computes a case once; ``answer()`` is its last answer, as ``reference.py`` has it.

    What may be done once for constant operands is done before.
    """

    name: str
    run: Callable[[], object]
    answer: Callable[[], Array]
