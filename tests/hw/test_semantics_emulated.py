"""Every template of a machine that is emulated does what its statement says, bit for bit."""

from pathlib import Path

import pytest

from isamap.hw.load import load_hardware
from isamap.hw.native import runnable
from isamap.hw.shipped import shipped_names
from tests.hw.emulated_calls import emulated
from tests.hw.test_semantics_native import Caller, check_cases, chosen_cases


def emulated_names() -> list[str]:
    """Return the shipped descriptions whose programs have an emulator and need no C library."""
    tools = {name: load_hardware(name).toolchain for name in shipped_names()}
    return [name for name, own in tools.items() if own is not None and own.runner and own.start]


@pytest.mark.parametrize("name", emulated_names())
def test_templates_do_what_their_statements_say(name: str, tmp_path: Path) -> None:
    accelerator = load_hardware(name)
    if missing := runnable(accelerator):
        pytest.skip(f"{missing}: isamap targets install {name}")
    inherited = frozenset(entry.name for entry in load_hardware("portable_c").entries)
    chosen = chosen_cases(accelerator, inherited)
    with emulated(accelerator, chosen, tmp_path) as call:
        assert check_cases(Caller(accelerator, call), chosen) > 50
