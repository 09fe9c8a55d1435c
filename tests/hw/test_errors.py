"""Every message that the author of a description can see: ``errors/x.yaml`` and ``x.expect``."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from isamap.diagnostics import HardwareError
from isamap.hw.load import load_hardware

FOLDER = Path(__file__).parent / "errors"
FILES = sorted(FOLDER.glob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_messages(path: Path, golden: Callable[[Path, str], None]) -> None:
    with pytest.raises(HardwareError) as error:
        load_hardware(str(path))
    assert error.value.exit_code == 1
    text = str(error.value).replace(f"{FOLDER}/", "")
    golden(path.with_suffix(".expect"), text + "\n")


def test_every_code_of_descriptions_is_documented_and_seen() -> None:
    page = (Path(__file__).parents[2] / "docs" / "hardware.md").read_text(encoding="utf-8")
    sources = Path(__file__).parents[2] / "isamap" / "hw"
    codes = {
        word.strip('",')
        for file in sources.glob("*.py")
        for word in file.read_text(encoding="utf-8").replace("(", " ").split()
        if word.startswith('"E1')
    }
    seen = "".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.expect"))
    assert codes
    for code in sorted(codes):
        assert code in page, f"{code} is not in docs/hardware.md"
        # A file that cannot be read, or is not there, or that nothing serves, has no file here.
        assert code in ("E100", "E120", "E133") or code in seen, f"no golden file shows {code}"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("portable_d", "E120"),
        ("missing.yaml", "E100"),
        (".", "E100"),
        ("no/such/folder.yaml", "E100"),
        ("nul\0.yaml", "E100"),
        ("", "E120"),
        ("gemm16@nothing", "E120"),
        ("gemm16@vta", "E133"),
        ("portable_c@portable_c", "E133"),
        ("gemm16@gemm16@portable_c", "E133"),
    ],
)
def test_what_cannot_be_read(name: str, says: str) -> None:
    with pytest.raises(HardwareError) as error:
        load_hardware(name)
    assert [d.code for d in error.value.diagnostics] == [says]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("x86_avx51", "did you mean x86_avx512, x86_avx2"),
        ("neon", "did you mean aarch64_neon?"),
        ("AVX512:VL=4", "did you mean x86_avx512,"),
        ("Native", "did you mean native?"),
        ("gemini@portable_c", "did you mean gemmini?"),
        ("qqq", "shipped are: aarch64_neon, "),
        ("", "shipped are: aarch64_neon, "),
    ],
)
def test_names_that_may_be_meant(name: str, near: str) -> None:
    with pytest.raises(HardwareError, match=re.escape(near)):
        load_hardware(name)
