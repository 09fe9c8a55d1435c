import click
import pytest

from isamap.cli.options import BudgetType, SizeType
from isamap_search.budget import Budget


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("50", Budget(trials=50)),
        ("30s", Budget(seconds=30.0)),
        ("2m", Budget(seconds=120.0)),
        ("1h", Budget(seconds=3600.0)),
    ],
)
def test_budgets_are_trials_or_time(text: str, budget: Budget) -> None:
    assert BudgetType().convert(text, None, None) == budget


@pytest.mark.parametrize("text", ["", "0", "0s", "-1", "1.5", "30 s", "s", "9999999999"])
def test_other_budgets_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="neither a number of trials"):
        BudgetType().convert(text, None, None)


def test_sizes_are_a_name_and_a_number() -> None:
    assert SizeType().convert("N_1=64", None, None) == ("N_1", 64)


@pytest.mark.parametrize("text", ["", "N", "N=", "=3", "N=x", "1=2", "N=1=2", "N=0x10"])
def test_other_sizes_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="NAME=SIZE"):
        SizeType().convert(text, None, None)
