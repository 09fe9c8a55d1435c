"""Kernels on units that read an operand at several places: mapped, simulated, compared."""

import json
from pathlib import Path

import pytest

from isamap.diagnostics import NoMappingError
from isamap.mapping.find import describe
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.prove import prove_result
from isamap.proof.recheck import recheck
from isamap.proof.saved import certificate_json
from tests.mapping.machines import kernel, machine, moves, names, simulate

UNITS = {
    "taps": "in x : f32[10] @ v  in t : f32[3] @ v  out o : f32[8] @ v  for i in 0..8 "
    "o[i] = t[0] * x[i] + t[1] * x[i + 1] + t[2] * x[i + 2]",
    "norm": "in a : f32[8] @ v  inout c : f32[] @ v  c[] += a[i] * a[i]",
    "gram": "in a : f32[4] @ v  inout c : f32[4, 4] @ v  c[i, j] += a[i] * a[j]",
    "syrk": "in a : f32[4, 2] @ v  inout c : f32[4, 4] @ v  c[i, j] += a[i, k] * a[j, k]",
    "lag": "in a : f32[9] @ v  inout c : f32[] @ v  for i in 0..8  c[] += a[i] * a[i + 1]",
    "pairs": "in a : f32[8] @ v  in b : f32[8] @ v  inout c : f32[4] @ v "
    "c[i] += a[2*i] * b[2*i] + a[2*i + 1] * b[2*i + 1]",
    "square": "in a : f32[4, 4] @ v  inout c : f32[4, 4] @ v  c[i, j] += a[i, k] * a[k, j]",
    "sym": "in a : f32[4, 4] @ v  out c : f32[4, 4] @ v  c[i, j] = a[i, j] * a[j, i]",
    "flip": "in a : f32[8] @ v  out c : f32[8] @ v  c[i] = a[i] * a[7 - i]",
    "cross": "in x : f32[4, 4] @ v  out o : f32[2, 2] @ v  for i in 0..2  for j in 0..2 "
    "o[i, j] = x[i + 1, j] + x[i, j + 1] + x[i + 1, j + 1] + x[i + 2, j + 1] + x[i + 1, j + 2]",
    "gap": "in a : f32[9] @ v  inout c : f32[] @ v  for i in 0..8  c[] += abs(a[i] - a[i + 1])",
}


def tile_moves(rows: int, columns: int) -> str:
    size, name = f"[{rows}, {columns}]", f"{rows}_{columns}"
    return (
        f"instruction load_{name} {{ in m : f32{size} @ memory  out r : f32{size} @ v "
        " r[i, j] = m[i, j] }\n"
        f"instruction store_{name} {{ in r : f32{size} @ v  out m : f32{size} @ memory "
        " m[i, j] = r[i, j] }\n"
        f"instruction set_{name} {{ in x : f32[] @ imm  out r : f32{size} @ v  r[i, j] = x[] }}\n"
    )


SCALARS = """\
instruction load_0 { in m : f32[] @ memory  out r : f32[] @ v  r[] = m[] }
instruction store_0 { in r : f32[] @ v  out m : f32[] @ memory  m[] = r[] }
instruction set_0 { in x : f32[] @ imm  out r : f32[] @ v  r[] = x[] }
"""
MOVES = (
    SCALARS,
    *(moves("f32", n) for n in (3, 4, 8, 9, 10)),
    *(tile_moves(*shape) for shape in ((4, 4), (4, 2), (2, 2))),
)

LINE = "in X : f32[N + 2]  in T : f32[3]  out Y : f32[N]  for i in 0..N "
ROWS = "in X : f32[H, W + 2]  in T : f32[3]  out Y : f32[H, W]  for w in 0..W "
PADDED = "in X : f32[N] pad 0  in T : f32[3]  out Y : f32[N] "
THREE = "in X : f32[N]  in Z : f32[N]  in U : f32[N]  in T : f32[5]  out Y : f32[N] "
FOUR = "in X : f32[N]  in Z : f32[N]  in U : f32[N]  in V : f32[N]  inout Y : f32[N] "
SQUARE = "in X : f32[N, N]  out Y : f32[N, N] "
IMAGE = "in X : f32[N, N] pad 0  out Y : f32[N, N] "
NEXT = "in X : f32[N + 1]  out Y : f32[]  for i in 0..N "

RUN = [
    ("taps", "N = 30", LINE + "Y[i] = T[0] * X[i] + T[1] * X[i + 1] + T[2] * X[i + 2]",
     "i <- i [i 8]"),
    ("taps", "N = 30", PADDED + "Y[i] = T[2] * X[i - 1] + T[0] * X[i] + T[1] * X[i + 1]",
     "i <- i [i 8]"),
    ("taps", "H = 5, W = 3",
     ROWS + "Y[h, w] = T[0] * X[h, w] + T[1] * X[h, w + 1] + T[2] * X[h, w + 2]",
     "i <- 5*h + w [h 2, w 3]"),
    # Three buffers beside each other in one register.
    ("taps", "N = 9", THREE + "Y[i] = T[0] * X[i] + T[4] * Z[i] + T[2] * U[i]",
     "i <- 3*i [i 3]"),
    ("norm", "N = 30", "in X : f32[N]  out Y : f32[]  Y[] += X[i] * X[i]", "i <- i [i 8]"),
    ("gram", "N = 4", "in X : f32[N]  out Y : f32[N, N]  Y[i, j] += X[i] * X[j]",
     "i <- i; j <- j [i 4, j 4]"),
    ("gram", "N = 3, B = 5",
     "in X : f32[B, N]  out Y : f32[N, N]  Y[i, j] += X[b, i] * X[b, j]",
     "i <- i; j <- j [i 3, j 3]"),
    ("gram", "N = 6", "in X : f32[N]  inout Y : f32[N]  Y[i] += X[i] * X[i]",
     "i <- i; j <- i [i 4]"),
    ("syrk", "N = 4, K = 7", "in X : f32[N, K]  out Y : f32[N, N]  Y[i, j] += X[i, k] * X[j, k]",
     "i <- i; j <- j; k <- k [i 4, j 4, k 2]"),
    ("syrk", "N = 3, K = 7", "in X : f32[K, N]  out Y : f32[N, N]  Y[i, j] += X[k, i] * X[k, j]",
     "i <- i; j <- j; k <- k [i 3, j 3, k 2]"),
    ("lag", "N = 30", NEXT + "Y[] += X[i] * X[i + 1]", "i <- i [i 8]"),
    ("pairs", "N = 13",
     "in X : f32[2*N]  in Z : f32[2*N]  inout Y : f32[N]"
     "  Y[i] += X[2*i] * Z[2*i] + X[2*i + 1] * Z[2*i + 1]", "i <- i [i 4]"),
    ("pairs", "N = 13", FOUR + "Y[i] += X[i] * Z[i] + U[i] * V[i]", "i <- i [i 4]"),
    ("square", "N = 4", SQUARE + "Y[i, j] += X[i, k] * X[k, j]",
     "i <- i; j <- j; k <- k [i 4, j 4, k 4]"),
    ("square", "N = 3", SQUARE + "Y[i, j] += X[i, k] * X[k, j]",
     "i <- i; j <- j; k <- k [i 3, j 3, k 3]"),
    ("sym", "N = 4", SQUARE + "Y[i, j] = X[i, j] * X[j, i]", "i <- i; j <- j [i 4, j 4]"),
    ("flip", "N = 8", "in X : f32[N]  out Y : f32[N]  Y[i] = X[i] * X[7 - i]", "i <- i [i 8]"),
    ("cross", "N = 7",
     IMAGE + "Y[i, j] = X[i, j-1] + X[i-1, j] + X[i, j] + X[i+1, j] + X[i, j+1]", ""),
    ("cross", "N = 8",
     IMAGE + "Y[i, j] = X[i-1, j] + X[i, j-1] + X[i, j] + X[i, j+1] + X[i+1, j]",
     "[i 2, j 2]"),
]  # fmt: skip


@pytest.mark.parametrize(("unit", "extents", "text", "placed"), RUN)
def test_what_is_mapped_computes_the_kernel(
    unit: str, extents: str, text: str, placed: str, tmp_path: Path
) -> None:
    hardware = machine(tmp_path, f"instruction {unit} {{ {UNITS[unit]} }}", *MOVES)
    result = simulate(kernel(f"kernel k({extents}) {{ {text} }}"), hardware)
    assert names(result) == [unit]
    (found,) = result.statements
    assert placed in describe(found.mappings[found.chosen])
    certificate = prove_result(result)
    assert certificate.verdict == "proved"
    assert ("law 5" in {claim.name for claim in certificate.claims}) == (unit != "norm")
    assert recheck(json.loads(json.dumps(certificate_json(certificate)))).differences == ()


REFUSED = [
    ("gram", "N = 6", "in X : f32[N]  out Y : f32[N, N]  Y[i, j] += X[i] * X[j]",
     "it would take all of i (6 steps) and j (6 steps) at once"),
    # One register holds X, but what is beyond k at one place is in use at the other.
    ("square", "N = 3, K = 2", SQUARE + "for k in 0..K  Y[i, j] += X[i, k] * X[k, j]",
     "what would have to be unused at one place of an operand is in use at another"),
    ("square", "N = 3", "in X : f32[N, N]  in Z : f32[N, N]  out Y : f32[N, N] "
     "Y[i, j] += X[i, k] * Z[k, j]",
     "operand a is one register, and would hold X[i, k] as a[i, k] and Z[k, j] as a[k, j]"),
    ("sym", "N = 4", "in X : f32[N, N]  in Z : f32[N, N]  out Y : f32[N, N] "
     "Y[i, j] = X[i, j] * Z[i, j]",
     "operand a is one register, and would hold X[i, j] as a[i, j] and Z[i, j] as a[j, i]"),
    ("gap", "N = 30", NEXT + "Y[] += abs(X[i] - X[i + 1])",
     "what would have to be unused at one place of an operand is in use at another"),
]  # fmt: skip


@pytest.mark.parametrize(("unit", "extents", "text", "reason"), REFUSED)
def test_what_one_register_cannot_hold_is_refused(
    unit: str, extents: str, text: str, reason: str, tmp_path: Path
) -> None:
    hardware = machine(tmp_path, f"instruction {unit} {{ {UNITS[unit]} }}", *MOVES)
    with pytest.raises(NoMappingError) as caught:
        map_kernel(kernel(f"kernel k({extents}) {{ {text} }}"), hardware)
    notes = [note.message for d in caught.value.diagnostics for note in d.notes]
    assert any(note.startswith(f"{unit}: ") and reason in note for note in notes), notes
