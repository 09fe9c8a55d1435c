"""The libraries that are timed beside isamap: each way in which one computes a case is right."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@contextmanager
def reachable() -> Iterator[None]:
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))


with reachable():
    peers, places, reference, worker = (
        import_module(f"beside.{name}") for name in ("peers", "places", "reference", "worker")
    )


def product(family: str, m: int, n: int, k: int) -> dict[str, Any]:
    return {"family": family, "m": m, "n": n, "k": k}


def conv(family: str, *sizes: int) -> dict[str, Any]:
    return {
        "family": family,
        **dict(zip(("ci", "h", "co", "r", "s", "p", "g"), sizes, strict=True)),
    }


PRODUCTS = [
    product(f"{kind}_{element}", *sizes)
    for kind in ("gemm", "linear")
    for element in ("f32", "bf16", "u8s8")
    for sizes in ((5, 7, 12), (53, 131, 68))  # less than a tile, and several with smaller ones
]
POINTWISE = [
    conv(f"pw_{t}", ci, h, co, 1, 1, 0, 1)
    for t in ("f32", "bf16", "u8s8")
    for ci, h, co in ((4, 5, 6), (72, 7, 70))
]
OTHERS = [
    *(conv(f"conv_{t}", 3, 9, 20, 3, 2, 1, 1) for t in ("f32", "bf16", "u8s8")),
    *(conv(f"dw_{t}", 20, 7, 20, 3, 1, 1, 20) for t in ("f32", "bf16", "u8s8")),
    conv("conv3x3_f32", 16, 12, 32, 3, 1, 1, 1),
    {"family": "dsblock_f32", "ci": 20, "h": 7, "co": 18, "s": 2},
    *({"family": f"{kind}_f32", "rows": 3, "cols": 20} for kind in ("softmax", "layernorm")),
    *({"family": f"{kind}_f32", "rows": 3, "cols": 20} for kind in ("silu", "residual", "chain")),
]
WITHOUT_SHORT_ELEMENTS = (b"wsm", b"snb", b"hsw")
"""CPUs that libxsmm has products of f32 for only: those without AVX-512."""

ODD = [product("gemm_bf16", 5, 7, 9), product("linear_u8s8", 5, 7, 9)]


def library(name: str) -> Any:
    """Return the module of a peer; skip the test, with what installs it, where it is missing."""
    (peer,) = peers.chosen(name)
    with reachable():
        try:
            return import_module(f"beside.libraries.{peer.module}")
        except ModuleNotFoundError as error:
            pytest.skip(f"{error.name} is missing: {peer.install}")


def found(module: Any, case: dict[str, Any], threads: int) -> tuple[list[Any], list[Exception]]:
    """Return the ways of a library, and why those that it has not are none."""
    ways: list[Any] = []
    faults: list[Exception] = []
    asked = module.ways(case, threads)
    while True:
        try:
            way = next(asked, None)
        except Exception as error:
            faults.append(error)
            continue
        if way is None:
            return ways, faults
        ways.append(way)


def named(case: dict[str, Any]) -> str:
    return "-".join(map(str, case.values()))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", [*PRODUCTS, *POINTWISE, *OTHERS, *ODD], ids=named)
def test_every_way_of_onednn_is_right(case: dict[str, Any], threads: int) -> None:
    ways, faults = found(library("onednn"), case, threads)
    assert ways
    refused = "dnnl_convolution_forward_primitive_desc_create: unimplemented"
    assert {str(fault) for fault in faults} <= {refused}
    assert not faults or case["family"] == "conv3x3_f32"  # a method that is not for all CPUs
    assert len({way.name for way in ways}) == len(ways)
    for way in ways:
        right(case, way)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", [*PRODUCTS, *POINTWISE], ids=named)
def test_every_way_of_libxsmm_is_right(case: dict[str, Any], threads: int) -> None:
    xsmm = library("xsmm")
    ways, faults = found(xsmm, case, threads)
    if xsmm.LIBRARY.xsmm_target() in WITHOUT_SHORT_ELEMENTS and not case["family"].endswith("f32"):
        assert faults
        assert all(isinstance(fault, xsmm.Refused) for fault in faults)
        assert not ways
        return
    assert ways
    assert not faults
    for way in ways:
        right(case, way)


def right(case: dict[str, Any], way: Any) -> None:
    """Assert that the answer of each call is right: none adds to what another one left."""
    for _ in range(2):
        way.run()
        assert reference.expected(case).fault(way.answer()) is None, way.name


@pytest.mark.parametrize("case", ODD, ids=named)
def test_libxsmm_has_no_kernel_where_neighbours_in_depth_are_not_whole_groups(
    case: dict[str, Any],
) -> None:
    timed, faults = worker.ready(library("xsmm"), {"case": case, "window": 0.0}, 1)
    assert timed is None
    assert len(faults) == 2
    assert all(fault.startswith("Refused: libxsmm has no kernel of ") for fault in faults)


def test_libxsmm_has_products_only() -> None:
    ways, faults = found(library("xsmm"), OTHERS[0], 1)
    assert (ways, faults) == ([], [])


@pytest.mark.parametrize("name", ["onednn", "xsmm"])
def test_a_call_needs_nothing_but_itself(name: str) -> None:
    """What only the call refers to is not freed: it would write into memory of others."""
    case = product("gemm_f32", 64, 64, 64)
    asked = library(name).ways(case, 1)
    for run in [way.run for way in asked]:
        rooms = [places.room((64, 64), np.float32, places.RESULT) for _ in range(8)]
        run()
        assert not any(room.any() for room in rooms)


def test_what_is_missing_is_told_with_what_installs_it(tmp_path: Path) -> None:
    """A package without its library, and a compiler that finds no header."""
    package = tmp_path / "onednn_cpu_gomp-0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: onednn-cpu-gomp\nVersion: 0\n")
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\nexit 1\n")
    compiler.chmod(0o755)
    command = [sys.executable, str(BENCHMARKS / "side_by_side.py"), "--peers", "onednn,xsmm"]
    command += ["--families", "gemm_f32", "--grep", "m=64 ", "--rounds", "1"]
    command += ["--env", f"PYTHONPATH={tmp_path}", "--env", f"PATH={tmp_path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "# onednn: left out, onednn-cpu-gomp is missing: pip install 'isamap[peers]'" in (
        done.stdout
    )
    assert "# xsmm: left out, libxsmm is missing: apt-get install libxsmm-dev gcc" in done.stdout


def test_memory_begins_where_it_is_asked_to() -> None:
    for at in (places.INPUT, places.CONSTANT, places.RESULT):
        array = places.room((3, 5), np.int8, at)
        assert array.ctypes.data % places.PAGE == at
        assert not array.any()
        copy = places.copied(np.arange(15, dtype=np.int8).reshape(5, 3).T, at)
        assert copy.ctypes.data % places.PAGE == at
        assert copy.flags.c_contiguous
        assert copy.tolist() == np.arange(15).reshape(5, 3).T.tolist()
    assert places.at(places.room((0,), np.int8, 0)).value is None
