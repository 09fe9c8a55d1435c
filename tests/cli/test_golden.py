"""What is printed, as a whole: reviewed as a diff when it changes (pytest --update-golden)."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Run
    from tests.conftest import Golden

HERE = Path(__file__).parent
CASES = {
    "map": ["map", "mm.ir", "--hw", "toy.yaml"],
    "map_two_statements": ["map", "two.ir", "--hw", "toy.yaml", "--set", "N=20", "--all"],
    "map_rewritten": ["map", "chain.ir", "--hw", "gemm16"],
    "print_lowered": ["map", "two.ir", "--hw", "toy.yaml", "--set", "N=20", "--print", "lowered"],
    "prove": ["prove", "mm.ir", "--hw", "toy.yaml", "--all"],
    "match": ["match", "mm.ir", "--hw", "toy.yaml", "--all"],
    "nothing_maps": ["map", "exp.ir", "--hw", "toy.yaml"],
    "hw_show": ["hw", "show", "toy.yaml"],
    "no_machine": ["map", "mm.ir"],
    "unknown_machine": ["map", "mm.ir", "--hw", "avx512"],
    "check": ["check", "mm.ir", "two.ir", "toy.yaml", "wrong.ir"],
}


@pytest.mark.parametrize("name", CASES)
def test_output_is_the_golden_one(
    name: str, isamap: "Run", golden: "Golden", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(HERE / "golden")
    monkeypatch.setattr("isamap.cli.progress._PATIENCE", 3600.0)  # whatever the machine does
    done = isamap(*CASES[name])
    text = f"$ isamap {' '.join(CASES[name])}\n{done.out}"
    if done.err:
        text += f"--- stderr\n{done.err}"
    golden(HERE / "golden" / f"{name}.txt", f"{text}--- exit {done.code}\n")
