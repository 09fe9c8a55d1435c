"""How far functions are off: worked by hand."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
script: Any = import_module("last_places")


@pytest.mark.parametrize(
    ("got", "at", "units"),
    [
        (1.0, 0.0, 0),
        (1 + 2.0**-23, 0.0, 1),
        (1 + 3 * 2.0**-23, 0.0, 3),
        (1 - 2.0**-24, 0.0, 0.5),
        (np.inf, 1e9, 0),
        (-np.inf, 1e9, np.inf),
        (0.0, -1e9, 0),
        (-0.0, -1e9, np.inf),
        (2.0**-149, -1e9, 1),
        (np.nan, np.nan, 0),
        (0.0, np.nan, np.inf),
        (np.nan, 0.0, np.inf),
    ],
)
def test_distances_count_floats_between(got: float, at: float, units: float) -> None:
    results, arguments = (np.array([one], np.float32) for one in (got, at))
    off = script.distances(results, arguments, script.FUNCTIONS["exp"])
    if np.isinf(units):
        assert off[0] > 2.0**24
    else:
        assert off[0] == units
