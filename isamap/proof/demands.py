"""What instructions demand of their uses: constraints, tables, operands that are one register."""

from collections.abc import Iterable, Iterator, Mapping

from isamap.hw.accelerator import Accelerator, Entry
from isamap.ir.constraint import Constraint
from isamap.ir.index import Index
from isamap.ir.nodes import Kernel, Permissions
from isamap.ir.statements import accesses
from isamap.lower.nodes import Call, LoweredKernel
from isamap.mapping.matching import Mapping as Mapped
from isamap.mapping.tiles.allowed import broken_constraint, refusal
from isamap.proof.bounds import in_parts
from isamap.proof.claim import CODE, Claim, Decision, Obligation, Open
from isamap.proof.touched import bound_symbols
from isamap.proof.walk import Site, Terms, conjunction


# --- a mapping ------------------------------------------------------------------------------------
def mapping_demands(
    mapping: Mapped,
    steps: Mapping[str, tuple[int, ...]],
    permissions: Permissions,
    name: str,
) -> Iterator[Claim]:
    """Yield that a mapping is a use that its instruction allows, in whole tiles and in short ones.

    ``steps`` are those into which a schedule cuts the range of a variable, outermost first.
    """
    needle = mapping.matching.needle
    entry = needle.entry
    if any(operand.contents for operand in entry.instruction.operands):
        told = refusal(mapping, permissions)
        text = f"the kernel has the numbers that are built into {entry.name}"
        yield Claim(name, "tables", text, "checker", _decided(not told), detail=told)
    if entry.constraints:
        cut = {v: steps.get(v, ()) for v in mapping.matching.inner}
        broken = broken_constraint(mapping, cut)
        told = ", ".join(constraint.text for constraint in entry.constraints)
        text = f"{told} of {entry.name} in every tile, whole or short"
        if broken is None:
            detail = "too many short tiles to look at"
            yield Claim(name, "constraints", text, "checker", "unknown", detail=detail)
        else:
            yield Claim(name, "constraints", text, "checker", _decided(not broken), detail=broken)


def _decided(holds: bool) -> Decision:
    return "proved" if holds else "refuted"


# --- the code -------------------------------------------------------------------------------------
def code_demands(
    kernel: Kernel,
    machine: Accelerator,
    lowered: LoweredKernel,
    found: Iterable[Site],
    mapped: frozenset[str],
) -> Iterator[Obligation]:
    """Yield what is claimed of the calls of instructions that demand something.

    ``mapped`` are the instructions of the mappings, of which the tiles were looked at.
    """
    entries = {entry.name: entry for entry in machine.entries}
    calls = [
        (site, site.node, entries[site.node.instruction])
        for site in found
        if isinstance(site.node, Call)
    ]
    yield from _one_register(calls)
    terms = Terms(lowered.symbols, kernel)
    cases: dict[str, None] = {}
    names: dict[str, None] = {}
    hidden: dict[str, None] = {}
    for site, call, entry in calls:
        values = _values(call, entry)
        for constraint in entry.constraints:
            told = f"{constraint.text} of {entry.name}"
            if constraint.names <= values.keys():
                names.setdefault(told)
                broken = f"(not {_term(terms, constraint, values)})"
                cases.setdefault(conjunction([*terms.context(site.context), broken]))
            elif entry.name not in mapped:
                hidden.setdefault(told)
    if cases:
        claim = f"{', '.join(names)} holds in each call"
        for lemma in in_parts("constraints", claim, [*cases], terms, lowered):
            yield Open(CODE, lemma)
    if hidden:
        text = f"{', '.join(hidden)} holds in each call"
        detail = "it speaks of positions in use, which calls without lengths do not show"
        yield Claim(CODE, "constraints", text, "none", "assumed", detail=detail)


def _one_register(calls: Iterable[tuple[Site, Call, Entry]]) -> Iterator[Claim]:
    wrong: dict[str, None] = {}
    names: dict[str, None] = {}
    for _, call, entry in calls:
        if entry.same:
            told = f"{' and '.join(entry.same)} of {entry.name}"
            names.setdefault(told)
            given = dict(call.operands)
            if len({given.get(name) for name in entry.same}) != 1:
                wrong.setdefault(told)
    if names:
        text = f"{', '.join(names)} are one register in each call"
        yield Claim(CODE, "same", text, "checker", _decided(not wrong), detail=", ".join(wrong))


def _values(call: Call, entry: Entry) -> dict[str, Index]:
    """Return what extents are in a call, and how many positions of an axis that they bound."""
    given = bound_symbols(call, entry)
    found = dict(given)
    for statement in entry.instruction.statements:
        axes = {v.name: v.extent.name for v in statement.variables}
        for access in (statement.target, *accesses(statement.value)):
            operand = entry.instruction.operand(access.buffer)
            for index, size in zip(access.indices, operand.shape, strict=True):
                if index.name in axes and size.name in given:
                    axes[index.name] = size.name
        found |= {a: given[e] for a, e in axes.items() if e in given and a not in given}
    return found


def _term(terms: Terms, constraint: Constraint, values: Mapping[str, Index]) -> str:
    left, right = (
        terms.term(side.substitute(values)) for side in (constraint.left, constraint.right)
    )
    match constraint.op:
        case "==":
            return f"(= {left} {right})"
        case "!=":
            return f"(not (= {left} {right}))"
        case _:
            return f"({constraint.op} {left} {right})"
