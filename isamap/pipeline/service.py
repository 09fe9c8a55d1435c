"""What is known of a call that another machine serves."""

from dataclasses import dataclass

from isamap.ir.nodes import Kernel
from isamap.lower.choose import Choice


@dataclass(frozen=True, slots=True)
class Service:
    """A distinct call of an instruction, and what computes it.

    ``extents`` are those of the instruction, None where they are known only when the code runs;
    ``function`` is the C function, ``stack`` the bytes of its workspace.  ``kernel`` is what the
    call computes, ``mapped`` what the server's rules made of it, and ``choice`` how that is mapped:
    to the instructions ``used``, those that follow each other with a ``+`` between them.
    """

    function: str
    instruction: str
    extents: tuple[tuple[str, int | None], ...]
    kernel: Kernel
    mapped: Kernel
    choice: Choice
    used: tuple[str, ...]
    stack: int
