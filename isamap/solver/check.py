"""Asking the solver while somebody may interrupt."""

from typing import Any

_INTERRUPTED = "interrupted from keyboard"


def check(solver: Any, *assumptions: Any) -> Any:
    """Return what a Z3 solver answers.

    KeyboardInterrupt if it was interrupted: Z3 takes the signal while it works, and would answer
    that it does not know.
    """
    import z3

    answer = solver.check(*assumptions)
    if answer == z3.unknown and solver.reason_unknown() == _INTERRUPTED:
        raise KeyboardInterrupt
    return answer
