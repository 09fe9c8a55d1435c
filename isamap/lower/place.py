"""Where fragments lie in scratchpads: a row for each, as long as it is needed.

Two fragments that are needed together do not overlap, none lies across the end of a bank that it
fits into, and operands of one call lie in different banks where that can be.  Fragments take the
rows of all banks in turn, or of the first bank that can be, or, where there is little room, the
least row that is free.  Where all three leave a fragment without a place, or operands of a call in
one bank, the solver says what can be (``exact.py``).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Literal

from isamap.hw.accelerator import Accelerator, Storage
from isamap.lower.exact import Problem, better, is_least
from isamap.lower.nodes import Call, Guard, Loop, LoweredKernel, Node, Register, Scope
from isamap.lower.number import used

Interval = tuple[int, int]
"""The first row of a fragment, and the first after it."""


def place_fragments(lowered: LoweredKernel, accelerator: Accelerator) -> LoweredKernel:
    """Return the lowered kernel with the first row of each fragment that lies in a scratchpad.

    One for which no place is found stays without.
    """
    pads = {s.name: s for s in accelerator.scratchpads}
    if not any(register.storage in pads for register in used(lowered.code)):
        return lowered
    found: dict[str, int] = {}
    for pad in pads.values():
        problem = problem_of(lowered, accelerator, pad)
        if problem.sizes:
            places = min(
                (_fit(problem, order) for order in ("banks", "rows", "least")),
                key=lambda places: (-len(places), problem.clashes(places)),
            )
            if len(places) < len(problem.sizes) or problem.clashes(places):
                places = better(problem, places) or places
            found |= places
    return replace(lowered, prepare=_with(lowered.prepare, found), body=_with(lowered.body, found))


def problem_of(lowered: LoweredKernel, accelerator: Accelerator, pad: Storage) -> Problem:
    """Return what must be placed in a scratchpad, in the order in which it is first needed."""
    lives = _Lives(accelerator, pad)
    for nodes in (lowered.prepare, lowered.body):
        lives.nodes(nodes, ())
    rows = accelerator.rows(pad) or 0
    return Problem(rows, rows // pad.banks, lives.sizes, lives.together, lives.beside)


@dataclass(slots=True)
class _Lives:
    """Walks nodes, and notes which fragments of a storage are needed together."""

    accelerator: Accelerator
    pad: Storage
    sizes: dict[str, int] = field(default_factory=dict)
    together: dict[str, list[str]] = field(default_factory=dict)
    beside: set[tuple[str, str]] = field(default_factory=set)

    def nodes(self, nodes: tuple[Node, ...], alive: tuple[str, ...]) -> None:
        """Take note of nodes while the fragments ``alive`` are needed around them."""
        for node in nodes:
            match node:
                case Call():
                    self._call(node)
                case Loop(body=body):
                    self.nodes(body, alive)
                case Guard(_, body, otherwise):
                    self.nodes((*body, *otherwise), alive)
                case Scope():
                    self._scope(node, alive)
                case _:
                    pass

    def _call(self, call: Call) -> None:
        if self.pad.banks == 1:
            return  # no operand could lie in another one
        own = dict.fromkeys(
            place.name
            for _, place in call.operands
            if isinstance(place, Register) and place.storage == self.pad.name
        )
        names = sorted(own)
        self.beside |= {(a, b) for n, a in enumerate(names) for b in names[n + 1 :]}

    def _scope(self, scope: Scope, alive: tuple[str, ...]) -> None:
        own = {r.name: r for r in scope.registers if r.storage == self.pad.name}
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        for position, node in enumerate(scope.body):
            for register in used((node,)):
                if register.name in own:
                    first.setdefault(register.name, position)
                    last[register.name] = position
        begins: dict[int, list[str]] = {}
        for name, position in first.items():
            begins.setdefault(position, []).append(name)
        here: list[str] = []
        for position, node in enumerate(scope.body):
            here = [name for name in here if last[name] >= position]
            for name in begins.get(position, ()):
                register = own[name]
                size = prod(register.shape) * register.dtype.bytes
                self.sizes[name] = self.accelerator.rows_for(self.pad, size) * register.places
                self.together[name] = [*alive, *here]
                here.append(name)
            self.nodes((node,), (*alive, *here))


def _fit(problem: Problem, order: Literal["banks", "rows", "least"]) -> dict[str, int]:
    """Return a row for each fragment that has room, one after the other.

    Each takes the ``least`` row that is free; or, of the ``rows`` of the first bank, the next one
    after the last that was taken; or that of the bank where it was longest unused, so that what a
    fragment leaves in one of the ``banks`` is overwritten as late as can be.
    """
    wishes: dict[str, list[str]] = {}
    for a, b in problem.beside:
        wishes.setdefault(a, []).append(b)
        wishes.setdefault(b, []).append(a)
    places: dict[str, int] = {}
    reached: dict[int, int] = {}
    taken: list[Interval] = []
    for name, size in problem.sizes.items():
        busy = sorted(
            (places[other], places[other] + problem.sizes[other])
            for other in problem.together[name]
            if other in places
        )
        avoided = {
            bank
            for other in wishes.get(name, ())
            if other in places
            for bank in problem.banks(other, places[other])
        }
        free = list(_gaps(problem, busy, size, {} if order == "least" else reached))
        own = [row for row in free if avoided.isdisjoint(problem.banks(name, row))]
        if free:
            row, *others = own or free
            if order == "banks":
                row = min((row, *others), key=lambda row: _latest(taken, row, row + size))
            places[name] = row
            reached[row // problem.bank] = row + size
            taken.append((row, row + size))
    return places


def _latest(taken: Sequence[Interval], begin: int, end: int) -> int:
    """Return the last of the intervals that overlap with rows, -1 if none does."""
    found = (n for n in range(len(taken) - 1, -1, -1) if begin < taken[n][1] and taken[n][0] < end)
    return next(found, -1)


def _gaps(
    problem: Problem, busy: list[Interval], size: int, reached: Mapping[int, int]
) -> Iterator[int]:
    """Yield a free row of each bank from which ``size`` rows are free.

    It is the first one from where the bank was ``reached``, else the first of all.
    """
    step = problem.bank if size <= problem.bank else problem.rows
    for low in range(0, problem.rows - size + 1, step):
        for start in dict.fromkeys((reached.get(low // problem.bank, low), low)):
            at = start
            for begin, end in busy:
                if end <= at:
                    continue
                if begin >= at + size:
                    break
                at = end
            if at + size <= low + step:
                yield at
                break


@dataclass(frozen=True, slots=True)
class Placement:
    """What lies in a scratchpad: ``used`` of its ``size`` bytes, in so many of its ``banks``.

    ``clashes`` pairs of operands of one call have rows in one bank where there are several;
    ``least`` if no placement has fewer, which is not known where the solver was not asked or gave
    up.
    """

    storage: str
    used: int
    size: int
    banks: int
    clashes: int
    least: bool


def placements(lowered: LoweredKernel, accelerator: Accelerator) -> tuple[Placement, ...]:
    """Return what lies in each scratchpad that is used; it is checked that nothing overlaps."""
    found: list[Placement] = []
    numbers = {r.name: r.number for r in used(lowered.code) if r.number is not None}
    for pad in accelerator.storages:
        if pad.kind != "scratchpad":
            continue
        problem = problem_of(lowered, accelerator, pad)
        if not problem.sizes:
            continue
        places = {name: numbers[name] for name in problem.sizes}
        assert not (wrong := problem.faults(places)), wrong
        clashes = problem.clashes(places)
        ends = [row + problem.sizes[name] for name, row in places.items()]
        banks = {bank for name, row in places.items() for bank in problem.banks(name, row)}
        least = is_least(problem, clashes)
        size = pad.size or 0
        bytes_ = min(size, max(ends) * pad.alignment)
        found.append(Placement(pad.name, bytes_, size, len(banks), clashes, least))
    return tuple(found)


def _with(nodes: tuple[Node, ...], places: Mapping[str, int]) -> tuple[Node, ...]:
    """Return nodes whose fragments have the rows that are given by name."""

    def each(node: Node) -> Node:
        match node:
            case Call(operands=operands):
                moved = tuple(
                    (n, _placed(p, places) if isinstance(p, Register) else p) for n, p in operands
                )
                return replace(node, operands=moved)
            case Loop(body=body):
                return replace(node, body=_with(body, places))
            case Guard(_, body, otherwise):
                return replace(node, body=_with(body, places), otherwise=_with(otherwise, places))
            case Scope(registers, body):
                own = tuple(_placed(register, places) for register in registers)
                return Scope(own, _with(body, places))
            case _:
                return node

    return tuple(map(each, nodes))


def _placed(register: Register, places: Mapping[str, int]) -> Register:
    if register.name not in places:
        return register
    return replace(register, number=places[register.name])
