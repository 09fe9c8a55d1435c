"""Functions of <math.h> for programs without a C library, compiled here, against this host's."""

import ctypes
import math
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from importlib.resources import as_file
from pathlib import Path

import pytest

from isamap.resources import shipped

FUNCTIONS: dict[str, Callable[[float], float]] = {"tanh": math.tanh, "erf": math.erf}

# Those of the file and those of this host may be off to different sides.
UNITS = 1.5 + 2.0


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    folder = tmp_path_factory.mktemp("math")
    names = [name for base in FUNCTIONS for name in (base, f"{base}f")]
    text = "".join(f"#define {name} own_{name}\n" for name in names)
    (folder / "own.c").write_text(f"{text}#include <isamap_math.h>\n")
    with as_file(shipped("hwdesc") / "freestanding") as headers:
        options = ["-std=gnu11", "-O2", "-ffp-contract=off", "-ffreestanding", "-Werror"]
        command = [compiler, *options, "-isystem", str(headers), "-shared", "-fPIC", "own.c", "-lm"]
        subprocess.run([*command, "-o", "own.so"], check=True, cwd=folder)
    return ctypes.CDLL(str(Path(folder, "own.so")))


def own(library: ctypes.CDLL, name: str, kind: type) -> Callable[[float], float]:
    function = library[f"own_{name}"]
    function.restype = kind
    function.argtypes = [kind]
    return lambda x: float(function(x))


def arguments() -> Iterator[float]:
    chosen = random.Random(1)
    for low, high in ((0.0, 1.0), (0.9, 1.1), (1.0, 7.0), (5.0, 25.0)):
        yield from (chosen.uniform(low, high) * chosen.choice((-1, 1)) for _ in range(5000))
    yield from (10 ** chosen.uniform(-307, 300) for _ in range(1000))
    yield from (1.0, 6.0, 22.0, math.nextafter(1, 2), 5e-324, 1e308)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_doubles_are_within_the_bound(library: ctypes.CDLL, name: str) -> None:
    function, reference = own(library, name, ctypes.c_double), FUNCTIONS[name]
    for x in arguments():
        right = reference(x)
        assert abs(function(x) - right) <= UNITS * math.ulp(right), x


@pytest.mark.parametrize("name", FUNCTIONS)
def test_floats_are_rounded_from_doubles(library: ctypes.CDLL, name: str) -> None:
    function, reference = own(library, f"{name}f", ctypes.c_float), FUNCTIONS[name]
    for x in (ctypes.c_float(x).value for x in arguments() if 1e-30 < abs(x) < 1e30):
        right = reference(x)
        unit = 2.0 ** (math.frexp(right)[1] - 24)
        assert abs(function(x) - right) <= 0.51 * unit, x


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("kind", [ctypes.c_double, ctypes.c_float])
def test_ends_signs_and_what_is_no_number(library: ctypes.CDLL, name: str, kind: type) -> None:
    function = own(library, name if kind is ctypes.c_double else f"{name}f", kind)
    assert (function(math.inf), function(-math.inf)) == (1, -1)
    assert math.isnan(function(math.nan))
    assert math.copysign(1, function(-0.0)) == -1
    assert math.copysign(1, function(0.0)) == 1
