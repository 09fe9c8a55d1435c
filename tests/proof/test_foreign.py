"""Whether a certificate is about a machine is known without a proof, and from any document."""

from typing import Any

import pytest

from isamap.hw.load import load_hardware
from isamap.proof.recheck import foreign

MACHINE = load_hardware("gemm16")


@pytest.mark.parametrize(
    "hardware",
    [None, [], {"instructions": 1}, {"instructions": [1, {}, {"name": []}]}],
)
def test_parts_that_cannot_be_read_are_left_to_the_proof(hardware: Any) -> None:
    data = {} if hardware is None else {"hardware": hardware}
    assert [d for d in foreign(data, None, MACHINE) if "instructions" in d] == []


def test_an_instruction_that_a_machine_lacks_is_told() -> None:
    data = {"hardware": {"instructions": [{"name": "spin"}]}}
    told = "hardware.instructions[0]: gemm16 has no spin"
    assert list(foreign(data, None, MACHINE)) == ["hardware.storages: gemm16 has others", told]
