"""Static programs for Linux in an emulated machine: what they read, write, and how they end."""

import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from isamap.cli.group import group
from isamap.hw.load import load_hardware
from isamap.hw.native import cpu_features
from isamap.hw.tools import find_tool
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.pipeline.result import Report
from isamap.targets.test import check_target
from isamap.text.load import parse_module

RUNNER = find_tool("bochs-x86_64")
WANTING = "isamap targets install bochs-x86_64"
pytestmark = pytest.mark.skipif(RUNNER is None or shutil.which("gcc") is None, reason=WANTING)


def run(folder: Path, text: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    (folder / "program.c").write_text(text)
    subprocess.run(["gcc", "-O1", "-static", "-o", "program", "program.c"], check=True, cwd=folder)
    assert RUNNER is not None
    command = [RUNNER, "sapphire_rapids", str(folder / "program")]
    environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(folder)}
    done = subprocess.run(
        command, input=given, capture_output=True, timeout=600, env=environment, check=False
    )
    assert {p.name for p in folder.iterdir()} == {"program", "program.c"}, "files are left"
    return done


COPY = """
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    char *bytes = malloc(1 << 20);
    size_t count = fread(bytes, 1, 1 << 20, stdin);
    fwrite(bytes, 1, count, stdout);
    fprintf(stderr, "%zu\\n", count);
    return 7;
}
"""


@pytest.mark.parametrize("size", [0, 1, 512, 131071, 131072, 300001])
def test_all_bytes_come_and_go(tmp_path: Path, size: int) -> None:
    given = bytes((i * 7 + i // 251) % 256 for i in range(size))
    done = run(tmp_path, COPY, given)
    assert done.stdout == given
    assert done.stderr == f"{size}\n".encode()
    assert done.returncode == 7


PARTS = """
#include <sys/uio.h>
int main(void)
{
    char first[3], second[100];
    struct iovec to[] = {{first, 3}, {second, 100}};
    long count = readv(0, to, 2);
    struct iovec from[] = {{second, count > 3 ? count - 3 : 0}, {first, count > 3 ? 3 : count}};
    return writev(1, from, 2) == count && readv(1, to, 2) < 0 ? 0 : 1;
}
"""


@pytest.mark.parametrize("given", [b"", b"ab", b"abcdefg"])
def test_bytes_come_and_go_in_parts(tmp_path: Path, given: bytes) -> None:
    """As the C library of musl reads and writes."""
    done = run(tmp_path, PARTS, given)
    assert (done.stdout, done.returncode) == (given[3:] + given[:3], 0)


PAGES = """
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
    char *room = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED || mprotect(room + 4096, 4096, PROT_NONE) != 0) return 1;
    for (int i = 0; i < 4096; i++)
        if (room[i] != 0) return 2;
    room[4095] = 1;
    write(1, "here", 4);
    ACT;
    return 0;
}
"""


@pytest.mark.parametrize(
    ("act", "end"),
    [
        ("", 0),
        ("room[4096] = 1", -signal.SIGSEGV),
        ("return *(volatile char *)0", -signal.SIGSEGV),
        ("*(volatile char *)main = 1", -signal.SIGSEGV),
        ('__asm__ volatile("cli")', -signal.SIGSEGV),
        ('__asm__ volatile("ud2")', -signal.SIGILL),
        ("volatile int zero = 0, some = 7; return some / zero", -signal.SIGFPE),
        ("abort()", -signal.SIGABRT),
        ("munmap(room, 8192); room[0] = 1", -signal.SIGSEGV),
        ("return malloc(3ul << 30) != 0", 0),
        ("for (int i = 0; i < 9; i++) if (calloc(64 << 20, 1) == 0) return 3", 0),
    ],
)
def test_ends_are_those_of_linux(tmp_path: Path, act: str, end: int) -> None:
    done = run(tmp_path, PAGES.replace("ACT", act))
    assert done.returncode == end, done.stderr
    assert done.stdout == b"here"


def test_a_program_that_needs_libraries_is_refused(tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text("int main(void) { return 0; }")
    subprocess.run(["gcc", "-o", "program", "program.c"], check=True, cwd=tmp_path)
    command = [str(RUNNER), "sapphire_rapids", str(tmp_path / "program")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == 126
    assert b"statically" in done.stderr


def test_what_cannot_begin_is_told(tmp_path: Path) -> None:
    command = [str(RUNNER), "no_such_model", str(tmp_path)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == 125
    assert b"no program" in done.stderr
    (tmp_path / "program").write_bytes(b"x")
    command[2] = str(tmp_path / "program")
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == 125
    assert b"no_such_model" in done.stderr


# --- tiles ---------------------------------------------------------------------------------------
GEMM = """kernel product {{ in A : {a}[37, {k}]  const B : {b}[{k}, 35]  out C : {c}[37, 35]
  C[i, j] += {c}(A[i, k]) * {c}(B[k, j]) }}
"""


@pytest.fixture
def without_tiles(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let this be a CPU that has no tiles, as most are: their code is run by the emulator."""
    others = sorted(name for name in cpu_features() if not name.startswith("amx"))
    place = tmp_path_factory.mktemp("proc") / "cpuinfo"
    place.write_text(f"flags : {' '.join(others)}\n")
    monkeypatch.setattr("isamap.hw.native._CPUINFO", place)


def product(a: str, b: str, c: str, k: int, instruction: str) -> Report:
    machine = load_hardware("x86_amx")
    assert machine.toolchain is not None
    assert machine.toolchain.runner[0] == "bochs-x86_64"
    (kernel,) = parse_module(GEMM.format(a=a, b=b, c=c, k=k), "product.ir").kernels
    return make_report(kernel, machine, Options(prove=False, instruction=instruction))


@pytest.mark.parametrize(
    ("types", "k", "instruction"),
    [(("u8", "u8", "s32"), 130, "tdpbuud"), (("bf16", "bf16", "f32"), 71, "tdpbf16ps")],
)
@pytest.mark.usefixtures("without_tiles")
def test_tiles_multiply(types: tuple[str, str, str], k: int, instruction: str) -> None:
    report = product(*types, k, instruction)
    assert report.fault is None, report.fault
    assert report.result.source is not None
    assert f"isamap_tile_multiply({instruction}" in report.result.source.text
    assert report.check is not None
    assert report.check.ok, report.check


@pytest.mark.usefixtures("without_tiles")
def test_a_wrong_result_is_told_with_what_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "product.ir"
    path.write_text(GEMM.format(a="s8", b="s8", c="s32", k=64))
    options = ["map", str(path), "--hw", "x86_amx", "--instruction", "tdpbssd"]
    done = CliRunner().invoke(group, options, standalone_mode=False)
    assert done.return_value == 4
    assert "bochs-x86_64 is known to compute tdpbssd wrongly: bytes with a sign" in done.output


ROUNDED = """kernel product { in A : bf16[32, 64]  const B : bf16[64, 32]  local C : f32[32, 32]
  out Y : bf16[32, 32]
  C[i, j] += f32(A[i, k]) * f32(B[k, j])
  Y[i, j] = bf16(C[i, j]) }
"""


@pytest.mark.usefixtures("without_tiles")
def test_of_rows_that_become_one_vector_the_wrong_half_is_told(tmp_path: Path) -> None:
    path = tmp_path / "product.ir"
    path.write_text(ROUNDED)
    done = CliRunner().invoke(
        group, ["map", str(path), "--hw", "x86_amx", "--no-proof"], standalone_mode=False
    )
    assert done.return_value == 4
    assert "bochs-x86_64 is known to compute rows_bf16_of_f32 wrongly: of two" in done.output


ANYWHERE = Path(__file__).parents[2] / "examples" / "machines" / "avx512_anywhere.yaml"


@pytest.mark.skipif("avx512f" in cpu_features(), reason="this CPU computes with AVX-512 itself")
def test_instructions_that_this_cpu_lacks_do_what_they_say() -> None:
    machine = load_hardware(str(ANYWHERE), trust=True)
    tested = check_target(machine, 100)
    assert [(f.name, f.text) for f in tested.findings if f.status != "right"] == []
    assert len(tested.findings) == len(load_hardware("x86_avx512").entries)


@pytest.mark.parametrize(
    ("types", "instruction"),
    [
        (("u8", "s8", "s32"), "vpdpbusd"),
        (("bf16", "bf16", "f32"), "vdpbf16ps"),
        (("f64", "f64", "f64"), "vfmadd_f64"),
    ],
)
@pytest.mark.skipif("avx512f" in cpu_features(), reason="this CPU computes with AVX-512 itself")
def test_products_of_instructions_that_this_cpu_lacks(
    types: tuple[str, str, str], instruction: str
) -> None:
    a, b, c = types
    (kernel,) = parse_module(GEMM.format(a=a, b=b, c=c, k=71), "product.ir").kernels
    machine = load_hardware(str(ANYWHERE), trust=True)
    report = make_report(kernel, machine, Options(prove=False, instruction=instruction))
    assert report.fault is None, report.fault
    assert report.execution.way == "program"
    assert report.check is not None
    assert report.check.ok, report.check
