"""Accumulators stay in registers: their C types must be those that the compiler works on."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from isamap.emit.literals import memory_type
from isamap.hw.load import load_hardware
from isamap.hw.template import render

ROWS, COLUMNS = 8, 3


@pytest.mark.parametrize("name", ["vfmadd_f32", "vpdpbusd", "vpdpwssd", "vdpbf16ps", "vmac_s32"])
def test_a_block_of_accumulators_never_meets_the_stack(name: str, tmp_path: Path) -> None:
    machine = load_hardware("x86_avx512")
    toolchain = machine.toolchain
    assert toolchain is not None
    if shutil.which(toolchain.compiler[0]) is None:
        pytest.skip(f"{toolchain.compiler[0]} is not installed")
    entry = machine.entry(name)
    assert entry.emit is not None
    a, b, c = (entry.instruction.operand(operand) for operand in "abc")
    types = {o.name: machine.register_type("zmm", o.dtype) for o in (a, b, c)}
    blocks = [(i, j) for i in range(ROWS) for j in range(COLUMNS)]
    lines = [f"#include <{header}>" for header in toolchain.headers]
    lines += [
        toolchain.prelude,
        f"void block(const {memory_type(a.dtype)} *p, const {memory_type(b.dtype)} *q,",
        f"           {types['c']} *to, int64_t n)",
        "{",
        *(f"    {types['c']} c{i}_{j} = to[{i * COLUMNS + j}];" for i, j in blocks),
        "    for (int64_t k = 0; k < n; k++, p += 64, q += 1024) {",
        *(f"        {types['b']} b{j}; memcpy(&b{j}, q + {64 * j}, 64);" for j in range(COLUMNS)),
    ]
    for i in range(ROWS):
        lines.append(f"        {types['a']} a{i}; memcpy(&a{i}, p + {4096 * i}, 64);")
        for j in range(COLUMNS):
            values = {"a": f"a{i}", "b": f"b{j}", "c": f"c{i}_{j}"}
            lines.append("        " + render(entry.emit, values))
    lines += ["    }", *(f"    to[{i * COLUMNS + j}] = c{i}_{j};" for i, j in blocks), "}"]
    source = tmp_path / "block.c"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [*toolchain.compiler, *toolchain.flags, "-S", "-o", "-", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if "unrecognized command-line option" in done.stderr:
        pytest.skip("the compiler is for another machine")
    assert done.returncode == 0, done.stderr
    wide = [line for line in done.stdout.splitlines() if "%zmm" in line]
    assert len(wide) >= len(blocks)
    assert not [line for line in wide if re.search(r"%r[sb]p\b", line)]
