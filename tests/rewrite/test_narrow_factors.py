"""Factors in a narrower type, multiplied in the wide one, give the same integers."""

from hypothesis import given
from hypothesis import strategies as st

from isamap.hw.load import load_hardware
from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_statement
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.rewrite.apply import rewritings
from isamap.rewrite.narrow_factors import narrow_factors
from isamap.rewrite.rule import Rewriting
from tests.profiles import examples
from tests.rewrite.products import Drawn, assert_equal, boxes, buffers, kernel_of

RULES = [("narrow-factors", narrow_factors)]


def _offered(kernel: Kernel) -> tuple[Rewriting, ...]:
    found = rewritings(kernel, 0, RULES)
    assert found.refused == ()
    return found.proved


def _texts(kernel: Kernel) -> list[list[str]]:
    return [[print_statement(s).strip() for s in r.kernel.statements] for r in _offered(kernel)]


@st.composite
def _kernels(draw: st.DrawFn) -> str:
    """Products of differences and sums of values of declared ranges."""
    drawn: Drawn = draw(boxes())
    wide = draw(st.sampled_from(["s32", "u32", "s64", "s16"]))
    factors = []
    for name in "AB":
        dtype = draw(st.sampled_from(["s8", "u8", "s16", "s32"]))
        low = draw(st.integers(0 if dtype[0] == "u" else -90, 20))
        high = draw(st.integers(max(low, 0), 120))
        names = draw(st.sampled_from(["mk", "nk", "mnk", "k"]))
        access = draw(buffers(drawn, name, dtype, names, f" values {low} .. {high}"))
        factor = access if dtype == wide else f"{wide}({access})"
        more = draw(st.sampled_from(["{}", "({} - 3)", "({} + 120)", "abs({})", "max({}, 4)"]))
        factors.append(more.format(factor))
    m, n = drawn.sizes["m"], drawn.sizes["n"]
    drawn.lines += [f"out C : {wide}[{m}, {n}]"]
    drawn.used |= {"m", "n"}
    reduction = draw(st.sampled_from(["+=", "max=", "min="]))
    value = draw(st.sampled_from(["{} * {}", "{} * {} + 1", "-({} * {})"])).format(*factors)
    return drawn.text(f"C[m, n] {reduction} {value}")


@given(_kernels(), st.integers(0, 99))
@examples(1)
def test_narrower_factors_compute_the_same(text: str, seed: int) -> None:
    kernel = kernel_of(text)
    for rewriting in _offered(kernel):
        assert_equal(rewriting, kernel, seed)


def _product(a: str, b: str, value: str = "s32(A[m, k]) * s32(B[k])") -> Kernel:
    return kernel_of(f"""kernel k {{
      in A : {a}
      in B : {b}
      in Z : u8[]
      out C : s32[4]
      for k in 0..5
      C[m] += {value}
    }}""")


def test_bytes_are_factors_of_sixteen_bits() -> None:
    texts = _texts(_product("s8[4, 5]", "s8[5]"))
    assert ["C[m] += s32(s16(A[m, k])) * s32(s16(B[k]))"] in texts
    assert [
        "B_s16[i] = s16(B[i])",
        "A_s16[i2, j] = s16(A[i2, j])",
        "C[m] += s32(A_s16[m, k]) * s32(B_s16[k])",
    ] in texts


def test_differences_are_computed_before_where_they_have_fewer_variables() -> None:
    value = "(s32(B[k]) - s32(Z[])) * s32(A[m, k])"
    texts = _texts(_product("s16[4, 5]", "u8[5]", value))
    assert [
        "C_s16[k] = s16(B[k]) - s16(Z[])",
        "C[m] += s32(C_s16[k]) * s32(A[m, k])",
    ] in texts


def test_values_reach_the_edge_of_a_type_and_not_beyond() -> None:
    value = "(s32(A[m, k]) + 3) * s32(B[k])"
    narrow = "C[m] += s32(A[m, k] + 3) * s32(B[k])"
    assert [narrow] in _texts(_product("s8[4, 5] values -128 .. 124", "s8[5]", value))
    assert [narrow] not in _texts(_product("s8[4, 5] values -128 .. 125", "s8[5]", value))
    wide = "C[m] += s32(s16(A[m, k]) + 3) * s32(s16(B[k]))"
    assert [wide] in _texts(_product("s8[4, 5] values -128 .. 125", "s8[5]", value))


def test_padding_is_that_of_the_copy() -> None:
    kernel = _product("s32[4, 4] pad 300 values 0 .. 9", "s16[5]")
    copied = [r for r in _offered(kernel) if any(b.name == "A_s16" for b in r.kernel.buffers)]
    assert copied
    for rewriting in copied:
        assert rewriting.kernel.buffer("A_s16").pad is not None
        assert_equal(rewriting, kernel)


ZERO_POINT = """kernel zp {
  in    A : u8[8, 16]
  const B : s8[16, 8]
  in    Z : u8[]
  out   Y : s32[8, 8]
  Y[m, n] += (s32(A[m, k]) - s32(Z[])) * s32(B[k, n])
}"""


def test_a_product_of_pairs_takes_what_has_a_zero_point() -> None:
    options = Options(instruction="vpmaddwd", simulate=True)
    report = make_report(kernel_of(ZERO_POINT), load_hardware("x86_avx2"), options)
    assert report.check is not None
    assert report.check.ok
    # The zero point may be taken out of the sum besides.
    assert "narrow-factors" in [r.rule for r in report.result.rewritings]
    chosen = report.result.mappings[-1].matching.needle.name
    assert chosen == "vpmaddwd + vadd_s32"


def test_the_largest_copy_is_made_last() -> None:
    # What is straight before the product may be made in its rounds.
    for rows, columns, last in [(64, 8, "A_s16"), (8, 64, "B_s16")]:
        kernel = kernel_of(
            f"""kernel k {{
              in A : s8[{rows}, 16]
              in B : u8[16, {columns}]
              out C : s32[{rows}, {columns}]
              C[m, n] += s32(A[m, k]) * s32(B[k, n])
            }}"""
        )
        held = [r.kernel.statements for r in _offered(kernel) if len(r.kernel.statements) == 3]
        assert held
        assert {statements[1].target.buffer for statements in held} == {last}


def test_a_factor_may_have_a_variable_that_is_only_a_value() -> None:
    # Each bit of A: the variable b is in no index.
    kernel = kernel_of(
        """kernel bits {
          in A : u8[12]
          in W : u8[6]
          out C : s32[6]
          for b in 0..8
          C[m] += s32(A[k] >> u8(b)) * s32(W[m])
        }"""
    )
    held = [r for r in _offered(kernel) if len(r.kernel.statements) > 2]
    assert held
    for rewriting in held:
        extents = [len(s.variables) for s in rewriting.kernel.statements]
        assert extents[:-1] in ([1, 2], [2, 1])
        assert_equal(rewriting, kernel)
