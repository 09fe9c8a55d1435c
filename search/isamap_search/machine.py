"""Which machine a measurement is from: processor, cores, compiler."""

import functools
import os
import platform
import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from isamap.hw.accelerator import Accelerator
from isamap.run.process import command_text, run_limited

_CPUINFO = Path("/proc/cpuinfo")
# 'model name' on x86, 'Hardware' or 'CPU part' on Arm.
_MODEL = re.compile(r"^(?:model name|Hardware|CPU part)\s*:\s*(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Machine:
    """What seconds depend on besides kernel, description and schedule."""

    cpu: str
    cores: int
    compiler: str

    @property
    def digest(self) -> str:
        """A short hash of all of it."""
        text = "\n".join((self.cpu, str(self.cores), self.compiler))
        return sha256(text.encode()).hexdigest()[:16]


def this_machine(accelerator: Accelerator) -> Machine:
    """Return the machine that measures, with the compiler of a description that may be executed.

    That is this one, or the one behind the description's measuring command.
    """
    tools = accelerator.toolchain
    if tools is None or not accelerator.trusted:
        return Machine(_cpu(), os.cpu_count() or 1, "")
    compiler = _version(tools.compiler)
    if tools.measure:
        return Machine(f"behind {command_text(tools.measure)}", accelerator.cores, compiler)
    return Machine(_cpu(), os.cpu_count() or 1, compiler)


def _cpu() -> str:
    try:
        text = _CPUINFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    match = _MODEL.search(text)
    return match[1].strip() if match else platform.machine()


@functools.cache
def _version(compiler: tuple[str, ...]) -> str:
    """Return the first line of what a compiler says of itself; its name where it says nothing."""
    try:
        done = run_limited([*compiler, "--version"], 10.0, environment={"LC_ALL": "C"})
    except OSError:
        return compiler[0]
    lines = done.stdout.decode(errors="replace").splitlines()
    return lines[0].strip() if done.code == 0 and lines else compiler[0]
