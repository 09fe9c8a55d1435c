"""Kernels named like functions of the C library are called, and not those."""

import ctypes
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from isamap.emit.c import emit_c
from isamap.emit.source import CSource
from isamap.run.build import build_program, build_shared
from isamap.run.callable import Compiled
from isamap.run.outcome import Crash
from isamap.run.program import run_program
from tests.emit.building import MACHINE
from tests.emit.samples import gemm
from tests.emit.test_head import command

A = np.arange(12, dtype=np.float32).reshape(3, 4)
B = np.arange(20, dtype=np.float32).reshape(4, 5)
SIZES = {"M": 3, "N": 5, "K": 4}

# glibc has them, some for loaders only.  A call of those by mistake crashes or computes nothing.
each_name = pytest.mark.parametrize("name", ["step", "send", "advance", "xdr_int", "listen"])


def named(name: str) -> CSource:
    """Return a product called ``name``, which is no word of the headers."""
    sample = gemm()
    lowered, kernel = replace(sample.lowered, name=name), replace(sample.kernel, name=name)
    source = emit_c(lowered, MACHINE, kernel)
    assert source.entry == name
    return source


@each_name
def test_a_shared_library_calls_its_own(name: str) -> None:
    source = named(name)
    got = Compiled(source, build_shared(source, MACHINE))(A, B)
    np.testing.assert_array_equal(got["C"], A @ B)


@each_name
def test_a_program_calls_its_own(name: str) -> None:
    source = named(name)
    program = build_program(source, MACHINE)
    got = run_program(program, source, MACHINE, {"A": A, "B": B}, SIZES, 1)
    assert not isinstance(got, Crash)
    np.testing.assert_array_equal(got["C"], A @ B)


def test_other_files_of_a_users_library_call_it(tmp_path: Path) -> None:
    source = named("step")
    (tmp_path / "step.c").write_text(source.text)
    (tmp_path / "step.h").write_text(source.header)
    (tmp_path / "own.c").write_text(
        '#include "step.h"\n'
        "int own(const float *a, const float *b, float *c, void *space)\n"
        "{ return step(a, b, c, 3, 5, 4, space, 1); }\n"
        "size_t room(void) { return step_workspace(3, 5, 4, 1); }\n"
    )
    made = [*command(source.text), "-shared", "-fPIC", "step.c", "own.c", "-o", "own.so"]
    subprocess.run(made, check=True, cwd=tmp_path)
    library = ctypes.CDLL(str(tmp_path / "own.so"))
    space = np.empty(library.room(), np.uint8)
    c = np.empty((3, 5), np.float32)
    places = (ctypes.c_void_p(x.ctypes.data) for x in (A, B, c, space))
    assert library.own(*places) == 0
    np.testing.assert_array_equal(c, A @ B)
