"""The differential test of whole descriptions: what it found, and what is told of it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from isamap.diagnostics import HardwareError, ToolError, fail
from isamap.hw.accelerator import Accelerator, Entry
from isamap.hw.faults import Fault, recorded_faults
from isamap.hw.load import load_hardware
from isamap.hw.native import remedy, runnable
from isamap.hw.needed import Needed, needed
from isamap.hw.parameters import split_name
from isamap.run.process import command_text
from isamap.targets.known import known_faults
from isamap.targets.probe.deviation import deviation_of
from isamap.targets.probe.finding import Finding
from isamap.targets.probe.probe import SAMPLES, probe
from isamap.targets.state import with_version

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found of a description's instructions.

    ``tools`` are those of the catalogue that it was compiled and run with; ``runner`` is the name
    of the emulator or the measuring command, '' where the code ran on this CPU.
    """

    name: str
    compiler: str
    runner: str
    tools: tuple[Needed, ...]
    samples: int
    seed: int
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing differs but what is recorded to."""
        return not self.faults

    @property
    def faults(self) -> tuple[Finding, ...]:
        """What differs, or could not be tried."""
        return tuple(finding for finding in self.findings if finding.is_fault)

    @property
    def sets(self) -> int:
        """The operand sets of all instructions together."""
        return sum(finding.sets for finding in self.findings)


def every(names: Iterable[str]) -> list[str]:
    """Return descriptions with the names of those of another size beside them.

    Where a parameter may have several values that is its first one that is not the default.
    """
    found = []
    for name in names:
        found.append(name)
        for parameter in load_hardware(name).parameters:
            others = [value for value in parameter.values if value != parameter.value]
            found += [f"{name}:{parameter.name}={value}" for value in others[:1]]
    return found


def is_other_size(machine: Accelerator) -> bool:
    """Whether a parameter has another value than its default."""
    return machine.name != split_name(machine.name)[0]


def why_untested(machine: Accelerator) -> str | None:
    """Return why instructions of a description cannot be tested here, None if they can."""
    if (reason := runnable(machine)) is not None:
        return reason
    if machine.server is not None:
        return f"{machine.server.name} executes it by code that is made for each call"
    return None


def check_target(
    machine: Accelerator,
    samples: int = SAMPLES,
    seed: int = 0,
    instruction: str | None = None,
    own: bool = False,
    faults: Iterable[Fault] | None = None,
    tell: Tell = lambda _: None,
    folder: Path | None = None,
) -> Outcome:
    """Execute instructions of a description and compare them with what their statements say.

    All of them: what is inherited may have another compiler here, and another machine.  With
    ``own`` only those of its own file; or those called ``instruction`` (a name, with or without the
    types bound to it).  ``faults`` are the recorded ones unless they are given.
    ToolError if it cannot be run here, or has no such instruction.
    """
    if (reason := why_untested(machine)) is not None:
        told = f"'{machine.name}' cannot be tested here: {reason}"
        raise ToolError(fail("E543", told, hint=remedy(machine) or None))
    tools = needed(machine)
    entries = _chosen(machine, instruction, own)
    known = tuple(recorded_faults() if faults is None else faults)
    deviations = {
        e.name: found
        for e in machine.entries
        if (found := deviation_of(e, known_faults(e, machine, tools, known))) is not None
    }
    first = {entry.name for entry in machine.own_entries}
    wanted = sorted((entry.name for entry in entries), key=lambda name: name not in first)
    findings = probe(machine, wanted, samples, seed, tell, folder, deviations)
    assert machine.toolchain is not None
    return Outcome(
        machine.name,
        machine.toolchain.compiler[0],
        command_text(machine.toolchain.measure or machine.toolchain.runner[:1]),
        tools,
        samples,
        seed,
        tuple(
            _with_faults(f, known_faults(machine.entry(f.name), machine, tools, known))
            for f in findings
        ),
    )


def _chosen(machine: Accelerator, name: str | None, own: bool) -> Sequence[Entry]:
    if name is None:
        return machine.own_entries if own else machine.entries
    found = [e for e in machine.entries if name in (e.name, e.instruction.generic)]
    if not found:
        raise HardwareError(fail("E544", f"'{machine.name}' has no instruction '{name}'"))
    return found


def _with_faults(finding: Finding, faults: Sequence[Fault]) -> Finding:
    if not faults:
        return finding
    text = "; ".join(f"{fault.tool}: {fault.what}" for fault in faults)
    exact = any(fault.is_exact for fault in faults)
    if finding.status == "known wrong" or (finding.status == "wrong" and not exact):
        return replace(finding, status="known wrong", text=text)
    if finding.status == "right":
        return replace(finding, status="no longer wrong", text=text)
    return finding


def compiler_version(tested: Outcome) -> str:
    """Return what a description was compiled with, and the version if that is known."""
    return with_version(tested.compiler, tested.tools)


def runner_version(tested: Outcome) -> str:
    """Return what a description's code ran on, and the version of an emulator."""
    return with_version(tested.runner, tested.tools) if tested.runner else "this CPU"
