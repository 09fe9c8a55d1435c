"""Whether registers hold between statements what nothing takes through memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from isamap.diagnostics import NoMappingError, ScheduleError
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents, read_by
from isamap.lower.alternative import Alternative
from isamap.lower.alternatives import alternatives
from isamap.lower.choose import check_possible
from isamap.lower.judge import Judge
from isamap.lower.taken import may_be_taken
from isamap.mapping.find import enumerate_statement
from isamap.mapping.fragments.produce import Producers
from isamap.mapping.matching import Enumeration
from isamap.mapping.needles.needles import Needles
from isamap.pipeline.sizes import TYPICAL_SIZE

_Tried: TypeAlias = tuple[Enumeration, tuple[Alternative, ...]]


@dataclass(slots=True)
class Handing:
    """Looks at what statements hand to each other on one machine; ``most`` mappings of each.

    What was found is remembered: rewritten kernels have many statements in common.
    """

    machine: Accelerator
    producers: Producers
    index: Needles
    most: int
    _tried: dict[tuple[Kernel, bool], _Tried] = field(default_factory=dict)
    _refused: dict[tuple[Kernel, int, str], str] = field(default_factory=dict)

    def refused(self, kernel: Kernel, statement: int, found: Enumeration, last: int) -> str:
        """Return why no registers hold what has to be there for statement ``last``, '' if some do.

        ``found`` are the mappings of ``statement``, which is the last one or one that it needs.
        What is wrong with other statements alone is told where they stand.
        """
        numbers = _needed(kernel, last)
        part = only(kernel, numbers)
        # What is made in the registers of an earlier statement needs no mapping of its own.
        name = found.mappings[0].matching.needle.name if found.mappings else ""
        key = part, numbers.index(statement), name
        if key not in self._refused:
            self._refused[key] = self._look(part, numbers.index(statement), found)
        return self._refused[key]

    def _look(self, part: Kernel, statement: int, found: Enumeration) -> str:
        symbols = dict.fromkeys(part.symbols, TYPICAL_SIZE)
        judge = Judge(self.machine, self.producers, symbols)
        every: list[_Tried] = []
        for number in range(len(part.statements)):
            if number == statement:
                every.append((found, alternatives(part, judge, number, found)))
            else:
                every.append(self._other(part, judge, number))
            tried = every[-1][1]
            if not any(a.schedule for a in tried):
                return tried[0].reason if number == statement and tried else ""
        enumerations, considered = zip(*every, strict=True)
        try:
            check_possible(part, judge, enumerations, considered)
        except NoMappingError as error:
            first = error.diagnostics[0]
            return first.notes[0].message.partition(": ")[2] if first.notes else first.message
        except ScheduleError as error:
            return error.diagnostics[0].message
        return ""

    def _other(self, part: Kernel, judge: Judge, number: int) -> _Tried:
        """Return the mappings of another statement, and what was tried of them."""
        # A change may ask for another extent alone, of which statements know the name.
        upto = bind_extents(only(part, range(number + 1)))
        key = upto, may_be_taken(part, number)
        if key not in self._tried:
            found = enumerate_statement(part, number, self.index, self.most)
            self._tried[key] = found, alternatives(part, judge, number, found)
        return self._tried[key]


def only(kernel: Kernel, numbers: Sequence[int]) -> Kernel:
    """Return a kernel of some statements; what others compute is given to them.

    What the last one of them computes is what the kernel computes.
    """
    statements = tuple(kernel.statements[number] for number in numbers)
    written = {statement.target.buffer for statement in statements}
    last = statements[-1].target.buffer
    read = {name for statement in statements for name in read_by(statement)}
    buffers = []
    for buffer in kernel.buffers:
        if buffer.name in written:
            out = buffer.role == "local" and buffer.name == last
            buffers.append(replace(buffer, role="out") if out else buffer)
        elif buffer.name in read:
            given = buffer.role in ("in", "const", "table")
            buffers.append(buffer if given else replace(buffer, role="in"))
    return replace(kernel, buffers=tuple(buffers), statements=statements)


def takers(kernel: Kernel, number: int) -> list[int]:
    """Return the statements after one that need what it computes, the first ones first."""
    later = range(number + 1, len(kernel.statements))
    return [n for n in later if number in _needed(kernel, n)]


def _needed(kernel: Kernel, number: int) -> tuple[int, ...]:
    """Return a statement and those before it whose results it needs, in their order."""
    wanted, found = read_by(kernel.statements[number]), [number]
    for other in range(number - 1, -1, -1):
        if kernel.statements[other].target.buffer in wanted:
            found.append(other)
            wanted |= read_by(kernel.statements[other])
    return tuple(reversed(found))
