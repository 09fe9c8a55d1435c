"""What constants alone decide may run ahead; nothing else may."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.ir.ahead import Uses, ahead, statement_kernel, statements_ahead
from isamap.ir.nodes import Kernel
from isamap.text.load import parse_module

HEAD = "kernel k(N = 8) { const W : f32[N] in X : f32[N] out Y : f32[N] local T : f32[N] "
FIRST = HEAD + "local U : f32[N] "


def kernel(text: str) -> Kernel:
    (found,) = parse_module(text + " }").kernels
    return found


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (HEAD + "T[i] = W[i] * W[i]\n Y[i] = X[i] * T[i]", (0,)),
        (FIRST + "T[i] = W[i] * W[i]\n U[i] = T[i] + W[N - 1 - i]\n Y[i] = X[i] * U[i]", (0, 1)),
        # A sum over what is decided, begun by another statement.
        (HEAD + "T[i] = W[i]\n T[i] += W[i] * W[j]\n Y[i] = X[i] * T[i]", (0, 1)),
        (HEAD + "T[i] = X[i] * W[i]\n Y[i] = T[i]", ()),
        (HEAD + "Y[i] = W[i]\n T[i] = W[i]", (1,)),
        # A call changes it later, or read something else there before.
        (HEAD + "T[i] = W[i]\n Y[i] = X[i] * T[i]\n T[i] = X[i]\n Y[i] += T[i]", ()),
        (HEAD + "T[i] = X[i]\n Y[i] = T[i]\n T[i] = W[i]\n Y[i] += T[i]", ()),
        (FIRST + "T[i] = W[i]\n U[i] = X[i]\n T[i] += U[i]\n Y[i] = T[i]", ()),
        # Decided by nothing at all.
        (HEAD + "T[i] = 2\n Y[i] = X[i] * T[i] * W[i]", (0,)),
    ],
)
def test_statements_that_run_ahead(text: str, numbers: tuple[int, ...]) -> None:
    assert statements_ahead(kernel(text)) == numbers


def test_indices_that_arrays_hold_count_as_read() -> None:
    text = "kernel k { const W : f32[9] {} I : s32[4] out Y : f32[4] local T : f32[4] "
    text += "T[i] = W[I[i]]\n Y[i] = T[i] }}"
    for role, numbers in (("const", (0,)), ("in", ())):
        assert statements_ahead(kernel(text.replace("{}", role)[:-2])) == numbers


def test_a_kernel_without_constants_has_nothing_ahead() -> None:
    text = "kernel k { in X : f32[4] out Y : f32[4] local T : f32[4] T[i] = 2\n Y[i] = X[i] * T[i]"
    assert statements_ahead(kernel(text)) == ()


def test_a_statement_alone_sees_what_runs_ahead_as_constant() -> None:
    whole = kernel(HEAD + "T[i] = W[i] * W[i]\n Y[i] = X[i] * T[i]")
    roles = [{b.name: b.role for b in statement_kernel(whole, n).buffers} for n in (0, 1)]
    assert roles[0] == {"W": "in", "X": "in", "Y": "out", "T": "out"}
    assert roles[1] == {"W": "const", "X": "in", "Y": "out", "T": "const"}


STEPS = st.lists(
    st.builds(
        Uses,
        st.frozensets(st.sampled_from("WXTUV"), max_size=3),
        st.frozensets(st.sampled_from("YTUV"), min_size=1, max_size=2),
    ),
    max_size=6,
)


@given(STEPS)
def test_no_step_sees_a_difference(steps: list[Uses]) -> None:
    """Execute with symbols: what a step writes is made of all it reads and of what was there."""
    first = ahead(steps, frozenset("W"), frozenset("TUV"))

    def run(order: list[int], memory: dict[str, object]) -> dict[str, object]:
        seen: dict[int, object] = {}
        for n in order:
            seen[n] = tuple((name, memory.get(name)) for name in sorted(steps[n].reads))
            for name in sorted(steps[n].writes):
                memory[name] = n, name, seen[n], memory.get(name)
        return {**memory, **{str(n): held for n, held in seen.items()}}

    rest = [n for n in range(len(steps)) if n not in first]
    written = run(list(range(len(steps))), {"W": "w", "X": "x"})
    prepared = run(first, {"W": "w"})
    kept = {name: prepared[name] for name in "TUV" if name in prepared}
    once = run(rest, {"W": "w", "X": "x", **kept})
    for n in rest:
        assert once[str(n)] == written[str(n)]
    # A second call finds what the first one found.
    assert {name: once.get(name) for name in kept} == kept
