"""Places in a scratchpad as a question to the solver: is there one for all, with how few clashes?

Two fragments clash that are operands of one call and lie in one bank.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Literal

from isamap.solver.ask import ask

LIMIT = 120
"""Fragments about which the solver is asked at most; there are a question for each pair."""

STEPS = 20_000_000
"""The solver's own count of steps after which it gives up: the same on every machine."""


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

    def clashes(self, places: Mapping[str, int]) -> int:
        """Return how many pairs of operands lie in one bank."""
        known = [(a, b) for a, b in self.beside if a in places and b in places]
        return sum(places[a] // self.bank == places[b] // self.bank for a, b in known)

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
        best, most = places, problem.clashes(places) - 1
    return best


def is_least(problem: Problem, clashes: int) -> bool:
    """Return whether it is proved that no places have fewer clashes than so many."""
    if not clashes:
        return True
    return len(problem.sizes) <= LIMIT and within(problem, clashes - 1)[0] == "unsat"


def within(
    problem: Problem, most: int
) -> tuple[Literal["sat", "unsat", "unknown"], dict[str, int]]:
    """Return whether there are places with at most so many clashes, and such places."""
    names = list(problem.sizes)
    row = {name: f"row{n}" for n, name in enumerate(names)}
    bank = {name: f"bank{n}" for n, name in enumerate(names)}
    claims: list[str] = []
    for name in names:
        at, size = f"|{row[name]}|", problem.sizes[name]
        claims.append(f"(and (<= 0 {at}) (<= {at} {problem.rows - size}))")
        low = f"(* {problem.bank} |{bank[name]}|)"
        if size <= problem.bank:
            claims.append(f"(and (<= {low} {at}) (<= (+ {at} {size}) (+ {low} {problem.bank})))")
        else:
            claims.append(f"(and (<= {low} {at}) (< {at} (+ {low} {problem.bank})))")
        for other in problem.together[name]:
            to, length = f"|{row[other]}|", problem.sizes[other]
            claims.append(f"(or (<= (+ {at} {size}) {to}) (<= (+ {to} {length}) {at}))")
    equal = [f"(ite (= |{bank[a]}| |{bank[b]}|) 1 0)" for a, b in sorted(problem.beside)]
    if equal:
        claims.append(f"(<= (+ 0 {' '.join(equal)}) {most})")
    answer = ask([*row.values(), *bank.values()], claims, steps=STEPS)
    found = {name: answer.values[row[name]] for name in names} if answer.values else {}
    return answer.verdict, found
