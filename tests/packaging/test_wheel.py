"""The wheel holds everything that the checkout offers."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel_files(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """Return the paths inside a wheel built from the checkout, without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "--quiet"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "--wheel-dir", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("isamap-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return frozenset(archive.namelist())


def shipped(folder: str) -> set[str]:
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.parametrize("folder", ["grammars", "hwdesc"])
def test_wheel_contains_every_data_file(wheel_files: frozenset[str], folder: str) -> None:
    files = shipped(folder)
    assert files, f"{folder}/ is empty"
    assert {f"isamap/{name}" for name in files} <= wheel_files


def test_wheel_contains_the_suites(wheel_files: frozenset[str]) -> None:
    suites = {name for name in shipped("isamap/suite") if name.endswith(".ir")}
    assert suites
    assert suites <= wheel_files


def test_wheel_contains_every_module(wheel_files: frozenset[str]) -> None:
    modules = {n for n in shipped("isamap") if n.endswith(".py")}
    search = {n.removeprefix("search/") for n in shipped("search") if n.endswith(".py")}
    assert modules | search <= wheel_files


def test_wheel_tells_type_checkers_that_it_is_typed(wheel_files: frozenset[str]) -> None:
    assert {"isamap/py.typed", "isamap_search/py.typed"} <= wheel_files


def test_wheel_puts_nothing_else_at_top_level(wheel_files: frozenset[str]) -> None:
    tops = {name.partition("/")[0] for name in wheel_files}
    assert {t for t in tops if not t.endswith(".dist-info")} == {"isamap", "isamap_search"}


def test_wheel_carries_the_licence(wheel_files: frozenset[str]) -> None:
    assert any(name.endswith("licenses/LICENSE") for name in wheel_files)
