"""Places in a scratchpad as a question to the solver: is there one for all, with how few clashes?

Two fragments clash that are operands of one call and have rows in one bank.  Where each fragment
fits into a bank, the solver is asked for banks first: none may hold more at a time than it has
rows.  Where there are no such banks there are no places either.  Rows within a bank are mostly
found without the solver; where they are not, it is asked for banks and rows at once.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Literal, TypeAlias

from isamap.solver.ask import ask, ask_choices

Verdict: TypeAlias = Literal["sat", "unsat", "unknown"]

LIMIT = 120
"""Fragments about which the solver is asked at most; there are a question for each pair."""

STEPS, BANK_STEPS = 20_000_000, 2_000_000
"""The solver's own count of steps after which it gives up, of rows and of banks: the same on every
machine, and some seconds."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Fragments to be placed in ``rows`` rows, of which ``bank`` are one bank.

    ``sizes`` are the rows that each takes, by name; ``together`` has those before it that are
    needed while it is, ``beside`` the pairs that are operands of one call.
    """

    rows: int
    bank: int
    sizes: Mapping[str, int]
    together: Mapping[str, Iterable[str]]
    beside: Set[tuple[str, str]]

    def banks(self, name: str, begin: int) -> range:
        """Return the banks in which a fragment lies from a row on: several if it is large."""
        return range(begin // self.bank, (begin + self.sizes[name] - 1) // self.bank + 1)

    def clashes(self, places: Mapping[str, int]) -> int:
        """Return how many pairs of operands have rows in one bank."""
        held = {name: self.banks(name, begin) for name, begin in places.items()}
        known = [(held[a], held[b]) for a, b in self.beside if a in held and b in held]
        return sum(a.start < b.stop and b.start < a.stop for a, b in known)

    def faults(self, places: Mapping[str, int]) -> tuple[str, ...]:
        """Return what is wrong with places: nothing, if they are a solution."""
        found = [f"{name} has no place" for name in self.sizes if name not in places]
        for name, begin in places.items():
            end = begin + self.sizes[name]
            if begin < 0 or end > self.rows:
                found.append(f"{name} lies outside")
            elif self.sizes[name] <= self.bank and begin // self.bank != (end - 1) // self.bank:
                found.append(f"{name} lies in two banks")
            for other in self.together[name]:
                start = places.get(other)
                if start is not None and begin < start + self.sizes[other] and start < end:
                    found.append(f"{name} and {other} overlap")
        return tuple(found)


def better(problem: Problem, known: Mapping[str, int]) -> dict[str, int] | None:
    """Return places for all fragments with fewer clashes than ``known`` ones, the fewest found.

    None if the solver finds none, or there are too many fragments to ask.
    """
    best: dict[str, int] | None = None
    if len(problem.sizes) > LIMIT:
        return None
    most = len(problem.beside)
    if len(known) == len(problem.sizes):
        most = problem.clashes(known) - 1
    while most >= 0:
        verdict, places = within(problem, most)
        if verdict != "sat":
            break
        assert not problem.faults(places)
        assert problem.clashes(places) <= most
        best, most = places, problem.clashes(places) - 1
    return best


def is_least(problem: Problem, clashes: int) -> bool:
    """Return whether it is proved that no places have fewer clashes than so many."""
    if not clashes:
        return True
    return len(problem.sizes) <= LIMIT and within(problem, clashes - 1)[0] == "unsat"


def within(problem: Problem, most: int) -> tuple[Verdict, dict[str, int]]:
    """Return whether there are places with at most so many clashes, and such places."""
    crowds = [_crowd(problem, name) for name in problem.sizes]
    if any(sum(problem.sizes[name] for name in crowd) > problem.rows for crowd in crowds):
        return "unsat", {}
    if all(size <= problem.bank for size in problem.sizes.values()):
        verdict, banks = _banks(problem, crowds, most)
        places = dict(_rows_in(problem, banks))
        if verdict != "sat":
            return verdict, {}
        # What a bank has no room for has its row in the next one, maybe beside an operand there.
        if not problem.faults(places) and problem.clashes(places) <= most:
            return verdict, places
    return _banks_and_rows(problem, most)


def _crowd(problem: Problem, name: str) -> list[str]:
    """Return fragments that are all needed when one begins to be: it is the last of them."""
    crowd = [name]
    for other in reversed([n for n in problem.sizes if n in set(problem.together[name])]):
        if all(other in problem.together[later] for later in crowd):
            crowd.append(other)
    return crowd


def _banks(
    problem: Problem, crowds: Iterable[list[str]], most: int
) -> tuple[Verdict, dict[str, int]]:
    """Return a bank for each fragment: none has a crowd in it that is larger than the bank is."""
    ends = [*range(problem.bank, problem.rows, problem.bank), problem.rows]
    room = [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
    numbers = {name: n for n, name in enumerate(problem.sizes)}
    choices = {
        name: {
            # Banks of one size are alike: the first fragments take the first ones.
            bank: f"in{n}_{bank}"
            for bank, rows in enumerate(room)
            if (bank <= n or rows != room[0]) and problem.sizes[name] <= rows
        }
        for name, n in numbers.items()
    }
    claims: list[str] = []
    for own in choices.values():
        terms = " ".join(f"|{choice}|" for choice in own.values())
        claims.append(f"((_ pbeq 1{' 1' * len(own)}) {terms})" if own else "false")
    for crowd in crowds:
        for bank, rows in enumerate(room):
            held = [name for name in crowd if bank in choices[name]]
            if sum(problem.sizes[name] for name in held) > rows:
                weights = " ".join(str(problem.sizes[name]) for name in held)
                terms = " ".join(f"|{choices[name][bank]}|" for name in held)
                claims.append(f"((_ pble {rows} {weights}) {terms})")
    clashes = [f"clash{n}" for n in range(len(problem.beside))]
    for clash, (a, b) in zip(clashes, sorted(problem.beside), strict=True):
        for bank in choices[a].keys() & choices[b].keys():
            claims.append(f"(or |{clash}| (not |{choices[a][bank]}|) (not |{choices[b][bank]}|))")
    if most < len(clashes):
        terms = " ".join(f"|{clash}|" for clash in clashes)
        claims.append(f"((_ pble {most}{' 1' * len(clashes)}) {terms})")
    names = [choice for own in choices.values() for choice in own.values()]
    answer = ask_choices([*names, *clashes], claims, BANK_STEPS)
    found = {
        name: bank
        for name, own in choices.items()
        for bank, choice in own.items()
        if answer.values.get(choice)
    }
    return answer.verdict, found


def _rows_in(problem: Problem, banks: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the least free row of each fragment in its bank, as they come."""
    places: dict[str, int] = {}
    for name, bank in banks.items():
        at = bank * problem.bank
        for begin, other in sorted((places[o], o) for o in problem.together[name] if o in places):
            if begin < at + problem.sizes[name]:
                at = max(at, begin + problem.sizes[other])
        places[name] = at
        yield name, at


def _banks_and_rows(problem: Problem, most: int) -> tuple[Verdict, dict[str, int]]:
    """Return the answer to :func:`within` by a question about banks and rows at once."""
    names = list(problem.sizes)
    row = {name: f"row{n}" for n, name in enumerate(names)}
    bank = {name: f"bank{n}" for n, name in enumerate(names)}
    # What does not fit into a bank reaches into another one.
    large = {name for name in names if problem.sizes[name] > problem.bank}
    last = bank | {name: f"last{n}" for n, name in enumerate(names) if name in large}
    claims: list[str] = []
    for name in names:
        at, size = f"|{row[name]}|", problem.sizes[name]
        claims.append(f"(and (<= 0 {at}) (<= {at} {problem.rows - size}))")
        low, high = (f"(* {problem.bank} |{own[name]}|)" for own in (bank, last))
        claims.append(f"(<= {low} {at})")
        claims.append(f"(<= (+ {at} {size}) (+ {high} {problem.bank}))")
        if name in large:
            claims.append(f"(and (< {at} (+ {low} {problem.bank})) (< {high} (+ {at} {size})))")
        for other in problem.together[name]:
            to, length = f"|{row[other]}|", problem.sizes[other]
            claims.append(f"(or (<= (+ {at} {size}) {to}) (<= (+ {to} {length}) {at}))")
    shared = [
        f"(ite (and (<= |{bank[a]}| |{last[b]}|) (<= |{bank[b]}| |{last[a]}|)) 1 0)"
        for a, b in sorted(problem.beside)
    ]
    if shared:
        claims.append(f"(<= (+ 0 {' '.join(shared)}) {most})")
    unknowns = dict.fromkeys([*row.values(), *bank.values(), *last.values()])
    answer = ask([*unknowns], claims, steps=STEPS)
    found = {name: answer.values[row[name]] for name in names} if answer.values else {}
    return answer.verdict, found
