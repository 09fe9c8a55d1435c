"""A logged search, run again on its own measurements."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isamap.diagnostics import ArgumentsError, Source, fail
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options, Tell, silent
from isamap.pipeline.result import Result
from isamap.pipeline.source import load_hardware
from isamap.rewrite.rules import NAMES
from isamap.schedule.reader import parse_schedule
from isamap.text.load import parse_module
from isamap_search.budget import Budget
from isamap_search.logged import is_count, is_time
from isamap_search.settings import OBJECTIVES, SAMPLERS, Settings
from isamap_search.tape import read_log


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay came to: the mapped kernel, and that it decided as logged."""

    kernel: Kernel
    hardware: Accelerator
    result: Result


def replay(path: Path, hardware: Accelerator | None = None, tell: Tell = silent) -> Replayed:
    """Run a logged search again; nothing is compiled or executed.

    ``hardware`` is needed where the log's description does not ship with isamap.  ReplayError when
    another decision is made, or other C comes out, than the log says; ArgumentsError when the log
    cannot be read or is about another description.
    """
    header, events = read_log(path)
    if not events:
        raise ArgumentsError(fail("E746", f"'{path}' ends before the search begins"))
    try:
        kernel = parse_module(str(header["kernel"]), str(path)).kernels[0]
        options = _options(header, path)
        name, digest = str(header["hardware"]), str(header["description"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ArgumentsError(fail("E746", f"the header of '{path}' is damaged")) from error
    machine = hardware or load_hardware(name)
    if machine.digest != digest:
        text = f"'{path}' was logged with another version of the description '{name}'"
        raise ArgumentsError(fail("E749", text, hint="--hw names the one that it was logged with"))
    return Replayed(kernel, machine, map_kernel(kernel, machine, options, tell))


def _options(header: Any, path: Path) -> Options:
    rewrite, instruction = header["rewrite"], header["instruction"]
    if rewrite is not None:
        rewrite = tuple(name for name in NAMES if name in rewrite)
    objectives = tuple(name for name in OBJECTIVES if name in header["objectives"])
    if header["sampler"] not in SAMPLERS or not objectives:
        raise ValueError("sampler")
    trials, seconds, threads = header["trials"], header["seconds"], header["threads"]
    counts = [threads, *([] if trials is None else [trials])]
    is_bounded = trials is not None or seconds is not None
    if not is_bounded or not all(is_count(n) and n for n in counts):
        raise ValueError("budget or threads")
    if seconds is not None and not is_time(seconds):
        raise ValueError("seconds")
    budget = Budget(trials, seconds)
    settings = Settings(str(header["sampler"]), objectives, replayed=path)
    # Logs of before there were written schedules have none.
    text = header.get("schedule")
    schedule = None if text is None else parse_schedule(Source(f"{path}: schedule", str(text)))
    return Options(
        threads=threads,
        seed=int(header["seed"]),
        tune=budget,
        simulate=not header["measured"],
        rewrite=rewrite,
        instruction=None if instruction is None else str(instruction),
        search=settings,
        schedule=schedule,
    )
