"""What this machine is found to be, and why code cannot run on it."""

from dataclasses import replace
from pathlib import Path

import pytest

from isamap.hw import native
from isamap.hw.accelerator import Accelerator, Toolchain
from isamap.hw.load import load_hardware, shipped_names


@pytest.fixture
def cpuinfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cpuinfo"
    monkeypatch.setattr(native, "_CPUINFO", path)
    return path


def test_features_of_x86_and_arm_are_read(cpuinfo: Path) -> None:
    cpuinfo.write_text("processor\t: 0\nflags\t\t: fpu avx2 fma\n\nprocessor\t: 1\nflags\t: x\n")
    assert native.cpu_features() == {"fpu", "avx2", "fma"}
    cpuinfo.write_text("processor\t: 0\nFeatures\t: asimd sve\n")
    assert native.cpu_features() == {"asimd", "sve"}


def test_a_machine_without_cpuinfo_has_no_features(cpuinfo: Path) -> None:
    assert native.cpu_features() == frozenset()
    assert native.best_shipped() == "portable_c"


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ("fpu sse2", "portable_c"),
        ("fpu avx2 fma f16c bmi2", "x86_avx2"),
        ("fpu avx2 fma f16c bmi2 avx512f avx512bw avx512dq avx512vl", "x86_avx2"),
        (
            "avx2 fma f16c bmi2 avx512f avx512bw avx512dq avx512vl avx512_vnni avx512vbmi"
            " avx512_bf16",
            "x86_avx512",
        ),
        (
            "avx2 fma f16c bmi2 avx512f avx512bw avx512dq avx512vl avx512_vnni avx512vbmi"
            " avx512_bf16"
            " amx_tile amx_bf16 amx_int8",
            "x86_amx",
        ),
    ],
)
def test_native_is_the_description_that_uses_most_of_the_cpu(
    cpuinfo: Path, flags: str, name: str
) -> None:
    cpuinfo.write_text(f"flags : {flags}\n")
    assert native.best_shipped() == name
    accelerator = load_hardware("native")
    assert accelerator.name == name
    assert accelerator.trusted


@pytest.mark.parametrize(
    ("vendor", "more", "name"),
    [
        ("GenuineIntel", "", "x86_avx512_intel"),
        ("GenuineIntel", "avx_vnni", "x86_avx512_intel"),
        ("AuthenticAMD", "", "x86_avx512_zen4"),
        ("AuthenticAMD", "avx_vnni", "x86_avx512"),
        ("", "", "x86_avx512"),
    ],
)
def test_native_has_the_figures_of_such_a_cpu(
    cpuinfo: Path, vendor: str, more: str, name: str
) -> None:
    flags = " ".join((*load_hardware("x86_avx512").features, more))
    cpuinfo.write_text(f"vendor_id\t: {vendor}\nflags : {flags}\n")
    assert native.cpu_vendor() == vendor
    assert native.best_shipped() == name
    for other in ("x86_avx512_intel", "x86_avx512_zen4"):
        assert native.runnable(load_hardware(other)) is None  # wherever it comes from


def machine(toolchain: Toolchain | None, *features: str) -> Accelerator:
    return replace(load_hardware("gemm16"), toolchain=toolchain, features=features)


def test_reasons_why_code_cannot_run(cpuinfo: Path) -> None:
    cpuinfo.write_text("flags : fpu\n")
    true = Toolchain(("true",))
    assert native.runnable(machine(true)) is None
    assert native.runnable(machine(None)) == "gemm16 has no toolchain"
    assert native.runnable(machine(true, "fpu", "sve", "amx")) == "this CPU lacks sve, amx"
    missing = Toolchain(("no-such-compiler",))
    assert native.runnable(machine(missing)) == "the compiler 'no-such-compiler' is not installed"
    emulated = Toolchain(("true",), runner=("true",))
    assert native.runnable(machine(emulated, "sve")) is None
    measured = Toolchain(("true",), runner=("no-such-emulator",), measure=("no-such-board",))
    assert native.runnable(machine(measured, "sve")) is None  # the command itself tells
    lost = Toolchain(("true",), runner=("no-such-emulator",))
    assert native.runnable(machine(lost)) == "the runner 'no-such-emulator' is not installed"
    assert native.runnable(machine(lost, "fpu", "amx")) == (
        "this CPU lacks amx, and the runner 'no-such-emulator' is not installed"
    )


def test_every_shipped_name_is_a_file() -> None:
    assert set(shipped_names()) >= {"portable_c", "x86_avx2", "x86_avx512", "x86_amx", "gemm16"}
