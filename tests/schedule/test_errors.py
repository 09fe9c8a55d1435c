"""Every wrong schedule in ``errors/`` gets exactly the messages beside it.

``NAME.schedule`` is taken for the kernel ``mm.ir`` on x86_avx512; a file's name begins with the
code that it shows.
"""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from isamap.diagnostics import ScheduleError
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.ir.nodes import Kernel
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.source import load_kernel
from isamap.schedule.reader import read_schedule

FOLDER = Path(__file__).parent / "errors"
FILES = sorted(FOLDER.glob("*.schedule"))


@cache
def subject() -> tuple[Kernel, Accelerator]:
    return load_kernel(FOLDER / "mm.ir"), load_hardware("x86_avx512")


@cache
def fault(path: Path) -> ScheduleError:
    with pytest.raises(ScheduleError) as caught:
        map_kernel(*subject(), Options(schedule=read_schedule(path)))
    return caught.value


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_error_of_a_schedule_is_told(path: Path, golden: Callable[[Path, str], None]) -> None:
    error = fault(path)
    text = "\n".join(diagnostic.render() for diagnostic in error.diagnostics)
    golden(path.with_suffix(".expect"), text.replace(f"{FOLDER}/", "") + "\n")
    assert f"error[{path.stem.partition('_')[0]}]" in text
    assert error.exit_code == 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_error_has_a_place(path: Path) -> None:
    for diagnostic in fault(path).diagnostics:
        assert diagnostic.span is not None
        assert re.match(rf"{re.escape(str(path))}:\d+:\d+: error\[E41\d\]: \S", diagnostic.render())
