"""Counting the instructions that a program executes, as its emulator or the machine tells them."""

import platform
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from isamap.diagnostics import ToolError, fail
from isamap.emit.source import CSource
from isamap.hw.accelerator import Accelerator
from isamap.hw.catalogue import Executed, Native, catalogue, native_ways
from isamap.run.build import build_program, compiler_remarks, require_toolchain
from isamap.run.outcome import Crash
from isamap.run.program import run_program
from isamap.targets.native import listed_texts, making, read_times

_CALLER = "main"
"""The function of a program that calls the kernel's."""


@dataclass(frozen=True, slots=True)
class Step:
    """What stands at an address: its instructions, how often they were executed, their text."""

    address: int
    instructions: int
    times: int
    text: str


@dataclass(frozen=True, slots=True)
class Counted:
    """The instructions that one call of a kernel executed, with what it calls.

    ``steps`` are in the order of their addresses.
    """

    steps: tuple[Step, ...]

    @property
    def instructions(self) -> int:
        """How many were executed."""
        return sum(step.instructions * step.times for step in self.steps)


def way_to_count(accelerator: Accelerator) -> Executed | Native | None:
    """Return how the emulator of a description, or this machine, tells what it executes.

    None if it does not.
    """
    tools = accelerator.toolchain
    if tools is None or tools.measure:
        return None
    if not tools.runner:
        return native_ways().get(platform.machine())
    tool = catalogue().get(tools.runner[0])
    return tool.executed if tool else None


def count_instructions(
    source: CSource,
    accelerator: Accelerator,
    arrays: Mapping[str, np.ndarray],
    symbols: Mapping[str, int] | None = None,
) -> Counted:
    """Run a kernel once as a program, and return what it executed between call and return.

    ``symbols`` are the sizes of extents without a value.  What prepares constants is left out.
    ToolError if nothing tells what programs of the description execute, or the program fails.
    """
    way = way_to_count(accelerator)
    tools = require_toolchain(accelerator)
    if way is None:
        message = f"what runs code of {accelerator.name} counts no instructions"
        raise ToolError(fail("E538", message))
    path = build_program(source, accelerator)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        if isinstance(way, Native):
            runner = making(way, Path(folder), source.entry, log)
        else:
            more = tuple(word.replace("{log}", str(log)) for word in way.arguments)
            runner = (*tools.runner, *more)
        telling = replace(accelerator, toolchain=replace(tools, runner=runner))
        outcome = run_program(path, source, telling, arrays, symbols or {}, seconds=600.0)
        if isinstance(outcome, Crash):
            raise ToolError(fail("E538", f"{source.entry} cannot be counted: {outcome.detail}"))
        if isinstance(way, Executed):
            return _read(log, source.entry, way, tools.runner[0] in way.packets)
        times, texts = read_times(log, source.entry, way), listed_texts(path, way)
        return Counted(
            tuple(Step(at, 1, count, texts.get(at, "")) for at, count in sorted(times.items()))
        )


def spills(source: CSource, accelerator: Accelerator) -> str | None:
    """Return what the compiler tells of innermost loops that lack registers, '' if none does.

    None if it does not tell such things.
    """
    tools = require_toolchain(accelerator)
    tool = catalogue().get(tools.compiler[0])
    if tool is None or tool.spills is None:
        return None
    told = compiler_remarks(source, accelerator, tool.spills.arguments)
    inner = innermost_loops(source.text)
    found = re.finditer(tool.spills.line, told, re.MULTILINE)
    return ", ".join(line["told"] for line in found if int(line["place"]) in inner)


def on_stack(counted: Counted, accelerator: Accelerator) -> str | None:
    """Return how many instructions of the inner loop read or write the stack, '' if none does.

    The loop is what is executed at least half as often as anything else.  None if no text says it.
    """
    way = way_to_count(accelerator)
    if not isinstance(way, Native):
        return None
    most = max(step.times for step in counted.steps)
    inner = (step.text for step in counted.steps if 2 * step.times >= most)
    found = sum(re.search(way.stack, text) is not None for text in inner)
    return f"{found} spills or reloads" if found else ""


def innermost_loops(text: str) -> frozenset[int]:
    """Return the numbers of the lines, counted from 1, that begin a loop with none inside."""
    found: set[int] = set()
    opened: list[tuple[int, int]] = []
    depth = 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("for ("):
            if opened and opened[-1][0] < depth + 1:
                found -= {before for _, before in opened}
            opened.append((depth, number))
            found.add(number)
        depth += line.count("{") - line.count("}")
        while opened and opened[-1][0] >= depth:
            opened.pop()
    return frozenset(found)


def _read(log: Path, entry: str, executed: Executed, packets: bool) -> Counted:
    """Return what a log tells of the function ``entry`` and what it calls."""
    step, listed = re.compile(executed.step), re.compile(executed.listed)
    times: dict[int, int] = {}
    texts: dict[int, list[str]] = {}
    block: list[str] = []
    inside = False
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if found := step.match(line):
                name = found["function"]
                inside = name == entry or (inside and name != _CALLER)
                address = int(found["address"], 16)
                if block:
                    texts[address], block = block, []
                texts.setdefault(address, [])
                if inside:
                    times[address] = times.get(address, 0) + 1
            elif found := listed.match(line):
                block.append(found["text"].strip())
    if not times:
        raise ToolError(fail("E538", f"the emulator tells of no function {entry}"))
    return Counted(
        tuple(
            Step(address, _length(texts[address], packets), count, "; ".join(texts[address]))
            for address, count in sorted(times.items())
        )
    )


def _length(texts: list[str], packets: bool) -> int:
    """Return how many instructions there are at an address: in a packet several, also in a line."""
    return sum(text.count(";") + 1 for text in texts) if packets else 1
