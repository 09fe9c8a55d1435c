"""Units whose operands see sums of axes, and twin axes: what is mapped to them runs right."""

from collections.abc import Iterator

import numpy as np
import pytest

from isamap.diagnostics import NoMappingError
from isamap.emit.c import emit_c
from isamap.interp.run import interpret
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents, zero_based
from isamap.lower.choose import Choice, choose
from isamap.mapping.checks.legal import violations
from isamap.mapping.checks.on_tile import legal_on_tile
from isamap.mapping.find import describe, enumerate_mappings
from isamap.mapping.matching import Enumeration, Mapping
from isamap.run.build import build_shared
from isamap.run.worker import Loaded, Worker
from isamap.sim.lowered import run_lowered
from isamap.text.load import parse_module
from tests.lower.stencils import UNITS, machine

KERNELS = {
    "conv": "in X : s32[23] in W : s32[3] out Y : s32[21] Y[w] += X[w + s] * W[s]",
    "dilated": "in X : s32[25] in W : s32[3] out Y : s32[21] Y[w] += X[w + 2*s] * W[s]",
    "strided": "in X : s32[23] in W : s32[5] out Y : s32[10] Y[w] += X[2*w + s] * W[s]",
    "flipped": "in X : s32[23] in W : s32[4] out Y : s32[20] Y[w] += X[w - s + 3] * W[s]",
    "turned": "in X : s32[23] in W : s32[3] out Y : s32[21] Y[w] += X[w + s] * W[2 - s]",
    "same": "in X : s32[21] pad 0 in W : s32[3] out Y : s32[21] Y[w] += X[w + s - 1] * W[s]",
    "conv2d": "in X : s32[11, 13] in W : s32[3, 3] out Y : s32[9, 11] "
    "Y[h, w] += X[h + r, w + s] * W[r, s]",
    "depthwise": "in X : s32[13, 5] in W : s32[3, 5] out Y : s32[11, 5] "
    "Y[w, c] += X[w + s, c] * W[s, c]",
    "channels": "in X : s32[3, 12] in W : s32[2, 3, 3] out Y : s32[2, 10] "
    "Y[k, w] += X[c, w + r] * W[k, c, r]",
    "matvec": "in A : s32[11, 7] in B : s32[7] out Y : s32[11] Y[m] += A[m, k] * B[k]",
    "matmul": "in A : s32[5, 7] in B : s32[7, 6] out C : s32[5, 6] C[m, n] += A[m, k] * B[k, n]",
    "polynomial": "in A : s32[9] in B : s32[5] inout C : s32[13] C[i + j] += A[i] * B[j]",
    "elements": "in A : s32[5, 13] in B : s32[13, 5] out Y : s32[5, 13] "
    "Y[p, q] += A[p, q] * B[q, p]",
    "vector": "in A : s32[75] in B : s32[75] out Y : s32[75] Y[v] += A[v] * B[v]",
}  # fmt: skip


def kernel(name: str) -> Kernel:
    (found,) = parse_module(f"kernel k {{ {KERNELS[name]} }}").kernels
    return found


def enumerated(name: str, unit: str) -> Enumeration:
    bound = bind_extents(kernel(name))
    found = enumerate_mappings(zero_based(bound.statements[0]), machine(unit), bound.permissions)
    own = tuple(m for m in found.mappings if m.matching.needle.name == unit)
    return Enumeration(found.statement, own, found.complete, found.reason)


def arrays(name: str) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    own = kernel(name)
    rng = np.random.default_rng(3)
    given = {
        b.name: rng.integers(-9, 10, [e.constant or 0 for e in b.shape]).astype(np.int32)
        for b in own.buffers
        if b.role in ("in", "inout")
    }
    results = interpret(own, given, {})
    return given, {b.name: results[b.name] for b in own.buffers if b.role in ("out", "inout")}


def lowered(name: str, unit: str, mapping: Mapping, statement: Enumeration) -> Choice | None:
    one = Enumeration(statement.statement, (mapping,), True)
    try:
        return choose(kernel(name), machine(unit), [one])
    except NoMappingError:
        return None


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", KERNELS)
def test_mappings_run_right(name: str, unit: str) -> None:
    found = enumerated(name, unit)
    given, wanted = arrays(name)
    step = -(-len(found.mappings) // 6)
    for mapping in found.mappings[::step]:
        assert violations(mapping.matching) == (), describe(mapping)
        assert legal_on_tile(mapping.matching, mapping.tile), describe(mapping)
        choice = lowered(name, unit, mapping, found)
        assert choice is not None, describe(mapping)
        actual = run_lowered(choice.lowered, machine(unit), given, {}, kernel=kernel(name))
        for buffer, values in wanted.items():
            np.testing.assert_array_equal(actual[buffer], values, err_msg=describe(mapping))


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """Yield a process that runs compiled code."""
    with Worker() as process:
        yield process


@pytest.mark.parametrize(
    ("name", "unit"),
    [("conv", "tap"), ("flipped", "tap"), ("strided", "strided"), ("conv2d", "stencil"),
     ("depthwise", "tap"), ("polynomial", "scatter"), ("vector", "lanes"), ("turned", "reversed")],
)  # fmt: skip
def test_compiled_code_runs_right(worker: Worker, name: str, unit: str) -> None:
    found = enumerated(name, unit)
    given, wanted = arrays(name)
    choice = lowered(name, unit, found.mappings[0], found)
    assert choice is not None
    source = emit_c(choice.lowered, machine(unit), kernel(name))
    outputs = worker.run(Loaded(build_shared(source, machine(unit)), source), given, {})
    assert isinstance(outputs, dict), outputs
    for buffer, values in wanted.items():
        np.testing.assert_array_equal(outputs[buffer], values)
