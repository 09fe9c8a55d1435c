import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.cli.tables import WIDTH, duration, listed, repeats, short, size, table, wrap

WORDS = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=60)
ROWS = st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=5)


@given(ROWS)
def test_tables_are_never_wider_than_the_screen(rows: list[tuple[str, str, str]]) -> None:
    lines = [click.unstyle(line) for line in table(("a", "b", "c"), rows, frozenset({2}), 0)]
    assert max(map(len, lines)) <= WIDTH


@given(ROWS)
def test_tables_lose_no_character(rows: list[tuple[str, str, str]]) -> None:
    lines = [click.unstyle(line) for line in table(("a", "b", "c"), rows)][1:]
    kept = sorted("".join(lines).replace(" ", ""))
    assert kept == sorted("".join("".join(row) for row in rows))


def test_the_marked_row_has_a_star() -> None:
    lines = [click.unstyle(line) for line in table(("x",), [("one",), ("two",)], marked=1)]
    assert lines == ["    x", "    one", "  * two"]


def test_numbers_are_aligned_to_the_right() -> None:
    lines = [click.unstyle(line) for line in table(("n",), [("7",), ("123",)], frozenset({0}))]
    assert lines == ["      n", "      7", "    123"]


def test_paragraphs_hang() -> None:
    lines = wrap("word " * 30, "a ", "b ")
    assert lines[0].startswith("a word")
    assert all(line.startswith("b word") for line in lines[1:])
    assert max(map(len, lines)) <= WIDTH


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (0.5, "0.5"), (999, "999"), (999.9, "1K"), (16_777_216, "16.8M"), (1.07e9, "1.07G")],
)
def test_numbers_are_short(number: float, text: str) -> None:
    assert short(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0 ns"), (1.5e-9, "1.5 ns"), (2e-6, "2 us"), (0.0141, "14.1 ms"), (0.9999, "1 s")],
)
def test_durations_have_a_fitting_unit(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (2_754_560, "2.627 MiB"),
        (3_670_016, "3.5 MiB"),
        (5 << 30, "5120 MiB"),
    ],
)
def test_sizes_have_a_fitting_unit(count: int, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("samples", "text"),
    [
        ((2.0,), "one sample"),
        ((2.0, 2.0001), "the same in 2 samples"),
        ((2.0, 1.0, 2500.0), "the median of 3 samples from 1 to 2.5K"),
    ],
)
def test_how_far_samples_lie_apart(samples: tuple[float, ...], text: str) -> None:
    assert repeats(samples, short) == text


def test_words_are_listed_as_they_are_said() -> None:
    assert [listed("abc"[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
