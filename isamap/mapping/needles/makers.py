"""The instructions that make operands afresh, by storage and type: what compositions begin with."""

from typing import TypeAlias

from isamap.hw.accelerator import Accelerator, Entry
from isamap.ir.nodes import Access, Buffer, Op
from isamap.mapping.needles.pieces import Piece, read_piece
from isamap.mapping.needles.unrolled import is_unrolled

Kind: TypeAlias = tuple[str, str]
"""Storage and type of an operand."""

PASSING = ("cast", "sat", "neg", "*")
"""Operations that pass on an operand, if the other one is 1."""


class Makers:
    """The entries that write an operand afresh, by its storage and type.

    What is written to memory is no operand of an instruction in sequence.
    """

    def __init__(self, accelerator: Accelerator) -> None:
        far = {s.name for s in accelerator.storages if s.kind in ("memory", "cache")}
        self._all: dict[Kind, list[Entry]] = {}
        self._reducing: dict[Kind, list[Entry]] = {}
        self._passing: dict[Kind, list[Entry]] = {}
        self._sources: dict[Kind, set[Kind]] = {}
        self._pieces: dict[str, Piece | None] = {}
        for entry in accelerator.entries:
            statement = entry.instruction.statements[-1]
            target = entry.instruction.operand(statement.target.buffer)
            if target.role != "out" or target.storage in far:
                continue
            key = kind_of(target)
            self._all.setdefault(key, []).append(entry)
            written_out = is_unrolled(statement.value)
            if written_out or _reduces(entry):
                self._reducing.setdefault(key, []).append(entry)
            if (
                isinstance(statement.value, Access)
                or written_out
                or (isinstance(statement.value, Op) and statement.value.op in PASSING)
            ):
                self._passing.setdefault(key, []).append(entry)
                inputs = (o for o in entry.instruction.operands if o.role == "in")
                self._sources.setdefault(key, set()).update(kind_of(o) for o in inputs)

    def at(self, key: Kind, reducing: bool = False, passing: bool = False) -> tuple[Entry, ...]:
        """Return the entries that write a kind of operand: all, or those that reduce or pass."""
        table = self._reducing if reducing else self._passing if passing else self._all
        return tuple(table.get(key, ()))

    def piece(self, entry: Entry) -> Piece | None:
        """Return an entry as a piece, read when it is first needed; None if it is none."""
        if entry.name not in self._pieces:
            self._pieces[entry.name] = read_piece(entry)
        return self._pieces[entry.name]

    def leads(self, key: Kind, steps: int) -> bool:
        """Return whether something that reduces comes before a kind of operand within steps."""
        if key in self._reducing:
            return True
        return steps > 0 and any(self.leads(k, steps - 1) for k in self._sources.get(key, ()))


def kind_of(operand: Buffer) -> Kind:
    """Return the storage and the type of an operand."""
    return operand.storage or "", operand.dtype.name


def _reduces(entry: Entry) -> bool:
    """Return whether some statement reduces over an axis that its target does not have."""
    for statement in entry.instruction.statements:
        indices, variables = statement.target.indices, statement.variables
        if not variables:
            continue
        # Most have one variable for each index, which is quicker to see.
        if len(indices) == len(variables) and None not in [index.name for index in indices]:
            continue
        names = frozenset().union(*(index.names for index in indices))
        if any(variable.name not in names for variable in variables):
            return True
    return False
