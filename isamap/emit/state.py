"""What code needs besides to use registers of a storage: a permission, statements around it."""

from collections.abc import Sequence
from dataclasses import dataclass

from isamap.emit.liveness import calls
from isamap.emit.templates import Machine
from isamap.hw.accelerator import Storage
from isamap.lower.nodes import Node, Register

REFUSED = -4
"""What a function returns where registers that it needs may not be used."""


@dataclass(frozen=True, slots=True)
class State:
    """The storages of the registers that a function uses, and those that they lie within.

    ``needs`` are the conditions of the instructions themselves.
    """

    storages: Sequence[Storage]
    needs: tuple[str, ...] = ()

    @classmethod
    def of(cls, nodes: tuple[Node, ...], machine: Machine) -> "State":
        """Return the state that some nodes need."""
        used = {
            place.storage
            for call in calls(nodes)
            for _, place in call.operands
            if isinstance(place, Register)
        }
        every = machine.accelerator.storages
        used |= {s.within for s in every if s.name in used and s.within is not None}
        called = dict.fromkeys(call.instruction for call in calls(nodes))
        needs = tuple(permit for name in called for permit in machine.entries[name].permits)
        return cls([storage for storage in every if storage.name in used], needs)

    @property
    def permits(self) -> tuple[str, ...]:
        """The conditions without which something may not be used, each once."""
        own = (s.permit for s in self.storages if s.permit)
        return tuple(dict.fromkeys((*own, *self.needs)))

    def permit_lines(self) -> list[str]:
        """Return the statements that end a call where something may not be used."""
        return [f"if (!({permit})) return {REFUSED};" for permit in self.permits]

    @property
    def attributes(self) -> str:
        """The attributes of each function that uses the registers, each once and with a space."""
        found = dict.fromkeys(word for s in self.storages for word in s.function)
        return "".join(f"{word} " for word in found)

    def enter_lines(self) -> list[str]:
        """Return the statements of a thread before it uses the registers."""
        return [line for s in self.storages for line in s.enter.splitlines()]

    def leave_lines(self) -> list[str]:
        """Return the statements of a thread that has used the registers."""
        return [line for s in reversed(self.storages) for line in s.leave.splitlines()]
