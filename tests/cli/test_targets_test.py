"""``isamap targets test``: what its exit code tells."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Run

MACHINE = """\
format: 1
name: twice
extends: portable_c
clock: 1 GHz
units: {{alu: 1}}
instructions:
  - semantics: |
      instruction twice {{ in a : s32[] @ reg    out r : s32[] @ reg    r[] = a[] + a[] }}
    {emit}
    throughput: 1
    latency: 1
    units: alu
"""


@pytest.mark.parametrize(
    ("emit", "code", "status"),
    [
        ('emit: "{r} = 2 * (uint32_t){a};"', 0, ": right"),
        ('emit: "{r} = 3 * (uint32_t){a};"', 4, "1 wrong"),
        ("", 6, "1 not tried"),
    ],
)
def test_the_exit_code_tells_what_differs_from_what_is_not_tried(
    emit: str, code: int, status: str, isamap: "Run", tmp_path: Path
) -> None:
    path = tmp_path / "twice.yaml"
    path.write_text(MACHINE.format(emit=emit), encoding="utf-8")
    done = isamap("targets", "test", str(path), "--trust", "--own", "--samples", "50")
    assert done.code == code
    assert status in done.out


OTHER = """\
  - semantics: |
      instruction same { in a : s32[] @ reg    out r : s32[] @ reg    r[] = a[] }
    emit: "{r} = {a};"
    throughput: 1
    latency: 1
    units: alu
toolchain:
  prelude: |
    %s
    static int fine(int a) { return a; }
    static int broken(int a)
    {
        return a +
    }
"""


@pytest.mark.parametrize(
    ("conditional", "own", "told"),
    [
        ("#pragma once", [], " more (--json names them): not built"),
        ("", ["--own"], "1 not built, 1 right\n  twice: not built"),
        ("#define add(a) ((a) + absent)", ["--own"], "1 not built, 1 right\n  twice: not built"),
    ],
)
def test_what_programs_do_not_compile_with_is_told_once(
    conditional: str, own: list[str], told: str, isamap: "Run", tmp_path: Path
) -> None:
    """A prelude with conditions is in all programs, of others only what they use."""
    path = tmp_path / "twice.yaml"
    name = "add" if "add" in conditional else "broken"
    machine = MACHINE.format(emit=f'emit: "{{r}} = {name}({{a}});"')
    path.write_text(machine + OTHER % conditional, encoding="utf-8")
    done = isamap("targets", "test", str(path), "--trust", "--samples", "1", *own)
    assert done.code == 4
    assert done.out.count(" error: ") == 1
    assert told in done.out
    assert str(tmp_path.parent) not in done.out
