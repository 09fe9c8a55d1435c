"""What is told where nothing brings an operand: what has to be computed first, in few words."""

from pathlib import Path

import pytest

from isamap.diagnostics import NoMappingError
from isamap.hw.load import load_hardware
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.text.load import parse_module
from tests.lower.test_counted import TREE

SPREAD = """\
  - semantics: |
      instruction spread {
        in m : f32[] @ near    out r : f32[8] @ v
        r[i] = m[]
      }
    throughput: 1
    latency: 2
    units: work
"""

WHOLE = TREE.replace("(n in 1..9) {\n        in a", " {\n        in a").replace(
    "for i in 0..n\n        r[] ", "r[] "
)


def told(folder: Path, machine: str, text: str) -> list[str]:
    """Return the notes of the error that a kernel ends with."""
    path = folder / "tree.yaml"
    path.write_text(machine)
    with pytest.raises(NoMappingError) as caught:
        map_kernel(parse_module(text).kernels[0], load_hardware(str(path)), Options())
    return [note.message for note in caught.value.diagnostics[0].notes]


def test_an_operation_that_nothing_computes_is_told_and_not_the_ways_to_move_it(
    tmp_path: Path,
) -> None:
    """It could be moved from v to near and back, for ever, and spread from near."""
    notes = told(
        tmp_path,
        TREE + SPREAD,
        """kernel k(R = 3, C = 16) {
          in X : f32[R, C]  out Y : f32[R]
          Y[r] max= abs(X[r, c])
        }""",
    )
    assert notes == [
        "greatest: operand 'a' of greatest cannot be brought to it: no instruction that writes "
        "f32[8] in v computes abs(X[r, c]); missing is one that leaves it as f32[8] in v"
    ]


def test_what_must_lie_behind_the_elements_in_use_is_told(tmp_path: Path) -> None:
    notes = told(
        tmp_path,
        WHOLE,
        """kernel k(R = 3, C = 5) {
          in X : f32[R, C]  in G : f32[R, C]  out Y : f32[R]
          Y[r] max= X[r, c] * G[r, c]
        }""",
    )
    assert notes == [
        "greatest: operand 'a' of greatest cannot be brought to it: multiply does not leave -inf "
        "in elements that are not in use; missing is one that leaves it as f32[8] in v"
    ]


def test_a_count_that_does_not_reach_the_width_is_told_with_the_range_that_does(
    tmp_path: Path,
) -> None:
    """The end of a range is no element of it."""
    notes = told(
        tmp_path,
        TREE.replace("fetch(n in 1..9, P)", "fetch(n in 1..8, P)"),
        """kernel k(R = 3, C = 16) {
          in X : f32[R, C]  out Y : f32[R]
          Y[r] max= X[r, c]
        }""",
    )
    text = "m takes 1 to 7 elements along i, and has to take 1 to 8: n in 1..9"
    assert any(text in note for note in notes), notes


@pytest.mark.parametrize(("span", "taken"), [("1..9", "1 to 8"), ("2..17", "2 to 16")])
def test_why_a_store_does_not_take_what_it_could_is_told(
    tmp_path: Path, span: str, taken: str
) -> None:
    tiles = Path(__file__).parent.parent / "pipeline" / "tiles_of_words.yaml"
    before, after = tiles.read_text().split("instruction st(")
    notes = told(
        tmp_path,
        f"{before}instruction st({after.replace('cols in 1..17', f'cols in {span}', 1)}",
        """kernel k(M = 64, N = 64) {
          in A : f32[M, N]  in B : f32[M, N]  out C : f32[M, N]
          C[m, n] = A[m, n] * B[m, n]
        }""",
    )
    assert notes == [
        f"mul: st takes f32[16, 16] from acc to memory, but m takes {taken} elements along j, and "
        "has to take 1 to 16: cols in 1..17"
    ]
