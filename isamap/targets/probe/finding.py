"""What was found of an instruction."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Status: TypeAlias = Literal[
    "right", "wrong", "known wrong", "no longer wrong", "not built", "not tried"
]
"""``known wrong``: it differs, and the tool is recorded to be at fault.  ``no longer wrong``: it is
recorded, and does not differ.  ``not built``: the compiler refuses it.  ``not tried``: nothing can
be said, and the text says why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """An instruction, how often it was executed, and what came of it.

    ``combinations`` are those of its extents; ``variants`` counts immediates and templates.
    ``origin`` is the description that it is inherited from, '' if it is the tested one's own.
    """

    name: str
    generic: str
    sets: int
    combinations: int
    variants: int
    status: Status
    text: str = ""
    origin: str = ""

    @property
    def is_fault(self) -> bool:
        """Whether the description, or a tool of which that is not recorded, is at fault."""
        return self.status in ("wrong", "not built", "not tried")
