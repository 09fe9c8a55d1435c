import pytest

from isamap.text.load import parse_module
from isamap_search.family import family

MM = "kernel mm(M = 24, N = 20, K = 32) { in A : f32[M, K] in B : f32[K, N] out C : f32[M, N] %s }"
SUM = "C[m, n] += A[m, k] * B[k, n]"


def _family(text: str) -> str:
    return family(parse_module(text).kernels[0])


@pytest.mark.parametrize(
    "same",
    [
        MM.replace("24", "7") % SUM,
        MM.replace("M = 24", "M") % SUM,
        MM.replace("mm(", "other(") % SUM,
        MM % "C[i, j] += A[i, r] * B[r, j]",
        MM.replace("C :", "Z :") % SUM.replace("C[", "Z["),
        MM.replace("M = 24", "Rows = 24").replace("[M", "[Rows") % SUM,
    ],
)
def test_sizes_and_names_are_no_part_of_a_family(same: str) -> None:
    assert _family(same) == _family(MM % SUM)


@pytest.mark.parametrize(
    "other",
    [
        MM.replace("f32", "f64") % SUM,
        MM % "C[m, n] += A[m, k] + B[k, n]",
        MM % "C[m, n] max= A[m, k] * B[k, n]",
        MM % "C[m, n] += B[k, n] * A[m, k]",
        MM.replace("[M, K]", "[K, M]") % "C[m, n] += A[k, m] * B[k, n]",
        MM.replace("in A", "const A") % SUM,
        MM % f"{SUM}\n C[m, n] += A[m, k] * B[k, n]",
    ],
)
def test_structure_is(other: str) -> None:
    assert _family(other) != _family(MM % SUM)
