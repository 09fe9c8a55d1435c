"""The lines of a report."""

from dataclasses import replace

from isamap.cli.text import rewriting_lines
from isamap.ir.statements import bind_extents
from isamap.rewrite.positions import NAME, positions_from_memory
from isamap.text.load import parse_module

TEXT = """kernel k(M = 7, N = 43) {
  in A : s32[M, N]  out C : s32[M, N]
  for k in 0..N
  C[m, n] += select(k <= n, A[m, k], 0)
}"""


def test_nothing_is_said_of_proofs_where_a_rule_has_none_to_give() -> None:
    kernel = bind_extents(parse_module(TEXT).kernels[0])
    proved = next(iter(positions_from_memory(kernel, 0)))
    told = rewriting_lines(kernel.statements[0], proved)
    assert told[0].startswith(f"rewritten by {NAME}: ")
    assert [line for line in told if line.startswith("  proved: ")] != []
    plain = rewriting_lines(kernel.statements[0], replace(proved, lemmas=()))
    assert plain == told[: len(plain)]
    assert not any(line.startswith("  proved:") for line in plain)
