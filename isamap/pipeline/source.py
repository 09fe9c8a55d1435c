"""Kernels and hardware, by path or name."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from isamap.diagnostics import ArgumentsError, fail
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel, Module
from isamap.schedule.written import WrittenSchedule


def load_kernel(
    path: str | Path, set: Mapping[str, int] | None = None, name: str | None = None
) -> Kernel:
    """Return a kernel of a file; includes are read, everything is checked.

    ``set`` gives its extents other values.  ``name`` chooses among several: the others must be
    readable, and what they mean is not checked.  Raises ParseError or VerifyError with every fault
    of the text and its place, ArgumentsError when the file does not hold exactly one kernel (of
    that name).
    """
    from isamap.text.load import load_module  # Lark: not needed to print help

    return choose_kernel(load_module(Path(path), set or {}, name), str(path), name)


def load_kernels(
    path: str | Path, set: Mapping[str, int] | None = None, name: str | None = None
) -> tuple[Kernel, ...]:
    """Return all kernels of a file, at least one, or the one called ``name``.

    Errors are those of :func:`load_kernel`.
    """
    from isamap.text.load import load_module  # Lark: not needed to print help

    module = load_module(Path(path), set or {}, name)
    if name is None and module.kernels:
        return module.kernels
    return (choose_kernel(module, str(path), name),)


def load_schedule(path: str | Path) -> WrittenSchedule:
    """Return the schedule of a file, for ``Options(schedule=...)``.

    It fits a kernel and a machine or not only once it is used.  Raises ScheduleError with every
    fault of the text and its place, ParseError when the file cannot be read.
    """
    from isamap.schedule.reader import read_schedule

    return read_schedule(Path(path))


def choose_kernel(module: Module, path: str, name: str | None) -> Kernel:
    """Return the only kernel of a module, or the one called ``name``; else ArgumentsError."""
    names = [kernel.name for kernel in module.kernels]
    if name is None and len(names) == 1:
        return module.kernels[0]
    if name in names:
        return module.kernels[names.index(name)]
    if not names:
        raise ArgumentsError(fail("E701", f"'{path}' holds no kernel"))
    listed = ", ".join(names)
    if name is None:
        text = f"'{path}' holds {len(names)} kernels: {listed}"
        raise ArgumentsError(fail("E702", text, hint="name one: --kernel NAME, in Python name="))
    raise ArgumentsError(fail("E703", f"'{path}' holds no kernel '{name}'; it holds: {listed}"))


def load_hardware(name_or_path: str | Path, trust: bool = False) -> Accelerator:
    """Return a described machine: a YAML file, a shipped name, or ``native`` for this CPU.

    ``trust`` lets a description that does not ship with isamap name compilers and C templates that
    are executed.  Raises HardwareError with every fault and its line.
    """
    from isamap.hw.load import load_hardware as load  # pydantic and YAML

    return load(str(name_or_path), trust)


def files_read(kernel: Path | None, hardware: str | None) -> Iterator[Path]:
    """Yield the files that a kernel and a machine are read from, all that they include or extend.

    Shipped descriptions are left out.  Errors are those of loading them.
    """
    from isamap.hw.load import files_read as of_machine
    from isamap.text.files import files_read as of_kernel

    if kernel is not None:
        yield from of_kernel(kernel)
    if hardware is not None:
        yield from of_machine(hardware)
