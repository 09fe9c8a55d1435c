"""Options that mean the same in every command that takes a kernel."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from isamap.cli.output import check_file
from isamap_search.budget import Budget
from isamap_search.settings import OBJECTIVES, SAMPLERS, Place, Settings, state_folder

_F = TypeVar("_F", bound=Callable[..., Any])
_SIZE = re.compile(r"([A-Za-z_][A-Za-z_0-9]*)=([0-9]+)")
_BUDGET = re.compile(r"([0-9]+)(s|m|h)?")
_SECONDS = {"s": 1, "m": 60, "h": 3600}


class MachineType(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.5
    """``x86_avx512``, ``native`` or the path of a description: what ``load_hardware`` takes."""

    name = "HW"

    def get_missing_message(
        self, param: click.Parameter, ctx: click.Context | None = None
    ) -> str | None:
        """Return what a beginner may give."""
        return "'native' is the best description for this CPU; 'isamap hw list' lists what ships."


class SizeType(click.ParamType):  # type: ignore[type-arg]
    """``N=64``: an extent and its value."""

    name = "NAME=SIZE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Return the name and the size."""
        if isinstance(value, tuple):
            return value
        if not (match := _SIZE.fullmatch(value)):
            self.fail(f"'{value}' is not of the form NAME=SIZE, for example N=64", param, ctx)
        # Python refuses to convert longer numbers; no extent needs them.
        if len(match[2]) > 18:
            self.fail(f"'{match[2][:18]}...' is too large for an extent", param, ctx)
        return match[1], int(match[2])


def _once(
    ctx: click.Context, param: click.Parameter, sizes: tuple[tuple[str, int], ...]
) -> tuple[tuple[str, int], ...]:
    """Return the sizes, if no extent is given two."""
    for at, (name, size) in enumerate(sizes):
        if (other := dict(sizes[:at]).get(name, size)) != size:
            text = f"{name} is given two values, {other} and {size}"
            raise click.BadParameter(text, ctx=ctx, param=param)
    return sizes


class BudgetType(click.ParamType):  # type: ignore[type-arg]
    """``50`` trials or ``30s``, ``2m``, ``1h`` of time."""

    name = "N|30s"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Budget:
        """Return the budget."""
        if isinstance(value, Budget):
            return value
        match = _BUDGET.fullmatch(value)
        if not match or len(match[1]) > 9 or int(match[1]) == 0:
            self.fail(f"'{value}' is neither a number of trials (50) nor a time (30s)", param, ctx)
        if match[2]:
            return Budget(seconds=float(int(match[1]) * _SECONDS[match[2]]))
        return Budget(trials=int(match[1]))


class ObjectiveType(click.ParamType):  # type: ignore[type-arg]
    """``time``, or ``time,size``: what a schedule should be good at."""

    name = "time,size,memory"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Return the objectives."""
        if isinstance(value, tuple):
            return value
        names = tuple(value.split(","))
        for name in names:
            if name not in OBJECTIVES:
                text = f"'{name}' is no objective; there are {', '.join(OBJECTIVES)}"
                self.fail(text, param, ctx)
        if names[0] != "time" or len(set(names)) < len(names):
            self.fail(f"'{value}': each objective once, and time first", param, ctx)
        return names


class RewriteType(click.ParamType):  # type: ignore[type-arg]
    """``none``, ``all``, or names of rules separated by commas."""

    name = "none|RULE,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...] | None:
        """Return the names; None for all of them."""
        from isamap.rewrite.rules import NAMES

        if value is None or isinstance(value, tuple) or value == "all":
            return None if value == "all" else value
        names = () if value == "none" else tuple(value.split(","))
        for name in names:
            if name not in NAMES:
                self.fail(f"'{name}' is no rule; there are {', '.join(NAMES)}", param, ctx)
        return names


def kernel_options(command: _F) -> _F:
    """Add KERNEL.ir, --hw, --set, --kernel and --trust."""
    return _with_kernel(command, required=True)


def optional_kernel_options(command: _F) -> _F:
    """Add the same for a command that something else may be given than a kernel."""
    return _with_kernel(command, required=False)


def free_kernel_options(command: _F) -> _F:
    """Add the same for a command that neither kernel nor machine need be given."""
    return _with_kernel(command, required=False, hardware=False)


def _with_kernel(command: _F, required: bool, hardware: bool = True) -> _F:
    path = click.argument(
        "path",
        metavar="KERNEL.ir" if required else "[KERNEL.ir]",
        required=required,
        type=click.Path(path_type=Path),
    )
    return path(_with_machine(command, hardware))


def machine_options(command: _F) -> _F:
    """Add --hw, --set, --kernel and --trust, for a command that takes several files."""
    return _with_machine(command, hardware=True)


def _with_machine(command: _F, hardware: bool) -> _F:
    decorators = [
        click.option(
            "--hw",
            "hardware",
            required=hardware,
            type=MachineType(),
            help="A description: a YAML file, a shipped name (see 'isamap hw list'), or 'native' "
            "for the best shipped one that this CPU runs. ':VL=512' after it gives a parameter of "
            "the description another value.",
        ),
        click.option(
            "--set",
            "sizes",
            multiple=True,
            type=SizeType(),
            callback=_once,
            help="Give an extent a value, for example --set N=64; repeat it for several.",
        ),
        click.option(
            "--kernel", "name", metavar="NAME", help="Which kernel, where the file holds several."
        ),
        click.option(
            "--trust",
            is_flag=True,
            help="Compile with, and run, what a description that does not ship with isamap says. "
            "Without it such a machine is simulated.",
        ),
    ]
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def measure_options(command: _F) -> _F:
    """Add --seed, --threads, --simulate and --rewrite."""
    decorators = [
        click.option(
            "--rewrite",
            type=RewriteType(),
            default="all",
            help="Rules that may rewrite the kernel before it is mapped: all of them, none, or the "
            "named ones (see docs/rewrites.md).",
        ),
        click.option(
            "--seed",
            type=click.IntRange(0, 2**32 - 1),
            metavar="N",
            default=0,
            show_default=True,
            help="Fixes the random inputs and the search.",
        ),
        click.option(
            "--threads",
            type=click.IntRange(1, 1024),
            metavar="N",
            default=1,
            show_default=True,
            help="Threads that the compiled function may use.",
        ),
        click.option(
            "--simulate",
            is_flag=True,
            help="Run on the simulator of the description, however long it takes.",
        ),
    ]
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def run_options(command: _F) -> _F:
    """Add those of measuring, --schedule, and --tune with what belongs to it."""
    decorators = [
        click.option(
            "--schedule",
            "written",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="Take the schedule that is written in FILE, which --save-schedule makes and which "
            "can be written by hand (see docs/scheduling.md); what it leaves out is as without "
            "it. With --tune the search begins there.",
        ),
        click.option(
            "--tune",
            type=BudgetType(),
            metavar="N|30s",
            help="Look for a better schedule: 50 trials, or 30s (2m, 1h) of time. Candidates are "
            "timed where the code runs natively, counted where the description has a measuring "
            "command, and judged by the cost model where neither is so.",
        ),
        click.option(
            "--records",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="Append what tuning measures to FILE and learn from what it holds; without it, "
            "that is the user's own file of records.",
        ),
        click.option(
            "--no-records", "forget", is_flag=True, help="Neither read nor write any records."
        ),
        click.option(
            "--objective",
            "objectives",
            type=ObjectiveType(),
            default="time",
            show_default=True,
            help="What to look for: time, or time,size (of the code), time,memory (beyond inputs "
            "and outputs), or all three. With several the Pareto front is printed; the fastest is "
            "taken.",
        ),
        click.option(
            "--sampler",
            type=click.Choice(SAMPLERS),
            help="Which of Optuna's samplers proposes schedules: tpe unless given, nsga2 for "
            "several objectives.",
        ),
        click.option(
            "--study",
            metavar="FILE|NAME",
            help="Keep the study in the journal FILE and go on with what it holds; with --storage, "
            "the study's NAME there.",
        ),
        click.option(
            "--storage",
            metavar="URL",
            help="Keep the study in a database, shared by all workers that name it: "
            "postgresql://user@host/database, or any other storage of Optuna's.",
        ),
        click.option(
            "--log",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="Write what 'isamap replay' needs to come to the same decisions.",
        ),
    ]
    for decorate in reversed(decorators):
        command = decorate(command)
    return measure_options(command)


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """What was said about a search, apart from its budget."""

    records: Path | None
    settings: Settings

    @property
    def written(self) -> dict[str, tuple[Path | None, ...]]:
        """The files that a search writes, by option."""
        return {
            "--records": (self.records,),
            "--study": (self.settings.place.path,),
            "--log": (self.settings.log,),
        }


def search_options(
    tune: Budget | None,
    records: Path | None,
    forget: bool,
    objectives: tuple[str, ...],
    sampler: str | None,
    study: str | None,
    storage: str | None,
    log: Path | None,
) -> SearchOptions:
    """Return the options of a search; UsageError where they contradict, or nothing is searched."""
    given = {
        "--records": records,
        "--no-records": forget,
        "--sampler": sampler,
        "--study": study,
        "--storage": storage,
        "--log": log,
        "--objective": objectives != ("time",),
    }
    check_file(records)
    named = [name for name, value in given.items() if value]
    if tune is None:
        if named and named != ["--records"]:
            raise click.UsageError(f"{named[0]} is about a search: add --tune 30s")
        return SearchOptions(records, Settings())
    if records and forget:
        raise click.UsageError("--records and --no-records contradict")
    if storage is not None:
        place = Place(url=storage, name=study)
    else:
        place = Place(path=Path(study)) if study is not None else Place()
    check_file(log)
    check_file(place.path, folders=True)
    folder = state_folder()
    kept = None if forget else records or folder / "records.jsonl"
    return SearchOptions(kept, Settings(sampler, objectives, place, folder, log))
