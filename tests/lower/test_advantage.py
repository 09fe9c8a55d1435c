"""What is told of an alternative that is chosen though another one has the lowest estimate."""

from dataclasses import replace

import pytest

from isamap.lower.alternative import Alternative, advantage, by_preference
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.result import Result
from isamap.pipeline.source import load_hardware
from isamap.text.load import parse_module

PRODUCT = """
kernel product(M = 7, N = 19, K = 33) {
  in A : f32[M, K]  in B : f32[K, N]  out C : f32[M, N]
  C[m, n] += A[m, k] * B[k, n]
}
"""


DEPTHWISE = """
kernel depthwise {
  in X : f32[9, 9, 20] pad 0  const F : f32[3, 3, 20]  out Y : f32[9, 9, 20]
  Y[p, q, c] += X[p + r - 1, q + s - 1, c] * F[r, s, c]
}
"""


@pytest.fixture(scope="module")
def result() -> Result:
    return map_kernel(parse_module(PRODUCT).kernels[0], load_hardware("vector_c"))


def alternative(result: Result, name: str, cycles: float, busy: float) -> Alternative:
    """Return an alternative by an instruction of this name, said to take so long."""
    mappings = result.statements[0].enumeration.mappings
    mapping = next(m for m in mappings if m.matching.needle.name == name)
    estimate = replace(result.estimate, cycles=cycles, busy=busy)
    schedule = replace(result.schedule.statements[0], mapping=mapping)
    return Alternative(mapping, schedule, estimate)


def test_it_does_more_at_once(result: Result) -> None:
    one = alternative(result, "v_mac_f32", 105, 100)
    several = alternative(result, "v_add_f32", 100, 90)
    assert by_preference([several, one])[0] == one.schedule
    assert advantage(one, several) == "does more of the statement at once"


def test_it_is_busy_for_less_time(result: Result) -> None:
    light = alternative(result, "v_mac_f32", 105, 50)
    fast = alternative(result, "v_mac_f32", 100, 90)
    assert by_preference([fast, light])[0] == light.schedule
    assert advantage(light, fast) == "keeps the units busy for less time, wherever the data are"
    assert advantage(fast, light) == ""


def test_what_is_busy_for_much_less_time_comes_before_what_does_more(result: Result) -> None:
    much = alternative(result, "v_mac_f32", 100, 100)
    light = alternative(result, "v_add_f32", 105, 50)
    assert by_preference([much, light])[0] == light.schedule
    assert advantage(light, much) == "keeps the units busy for less time, wherever the data are"


def test_the_report_says_which() -> None:
    kernel = parse_module(DEPTHWISE.replace("[9, 9, 20]", "[8, 8, 20]")).kernels[0]
    (statement,) = map_kernel(kernel, load_hardware("x86_avx2")).statements
    least = min(s.cycles for s in statement.scheduled if s.cycles is not None)
    own = next(s.cycles for s in statement.scheduled if s.mapping == statement.chosen)
    assert own is not None
    assert least < own < 1.1 * least
    told = "about as fast as the lowest estimate, and does more of the statement at once"
    assert statement.why == told
