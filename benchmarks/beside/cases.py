"""The cases: which sizes each family is timed at, read from ``shapes/``."""

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

Case: TypeAlias = Mapping[str, Any]
Row: TypeAlias = Mapping[str, str]
T = TypeVar("T")

SHAPES = Path(__file__).parent / "shapes"
KINDS = ("f32", "bf16", "u8s8")


def _matrices(row: Row) -> dict[str, int]:
    return {key: int(row[key]) for key in ("m", "n", "k")}


def _layer(row: Row) -> dict[str, int]:
    return {key: int(row[key]) for key in ("ci", "h", "co", "r", "s", "p")} | {"g": 1}


def _depthwise(row: Row) -> dict[str, int]:
    ci, h, s = (int(row[key]) for key in ("ci", "h", "s"))
    return {"ci": ci, "h": h, "co": ci, "r": 3, "s": s, "p": 1, "g": ci}


def _pointwise(row: Row) -> dict[str, int]:
    ci, h, co, s = (int(row[key]) for key in ("ci", "h", "co", "s"))
    return {"ci": ci, "h": h // s, "co": co, "r": 1, "s": 1, "p": 0, "g": 1}


def _block(row: Row) -> dict[str, int]:
    return {key: int(row[key]) for key in ("ci", "h", "co", "s")}


def _rows(row: Row) -> dict[str, int]:
    return {key: int(row[key]) for key in ("rows", "cols")}


SOURCES: dict[str, tuple[str, Callable[[Row], dict[str, int]], tuple[str, ...]]] = {
    "gemm": ("gemm", _matrices, KINDS),
    "linear": ("gemm", _matrices, KINDS),
    "conv": ("resnet50", _layer, KINDS),
    "conv3x3": ("conv3x3", _layer, ("f32",)),
    "pw": ("mobilenet_v1", _pointwise, KINDS),
    "dw": ("mobilenet_v1", _depthwise, KINDS),
    "dsblock": ("mobilenet_v1", _block, ("f32",)),
    "softmax": ("softmax", _rows, ("f32",)),
    "layernorm": ("layernorm", _rows, ("f32",)),
    **{kind: ("elements", _rows, ("f32",)) for kind in ("silu", "residual", "chain")},
}
"""The file of each kind of case, what a row of it means, and the types of elements."""

MEANING = {
    "gemm": "product of two matrices, nothing packed ahead; DeepBench and squares",
    "linear": "product with constant weights, packed ahead; the same sizes",
    "conv": "the convolutions of ResNet-50, one image, constant weights",
    "conv3x3": "3x3 convolutions of stride 1 that may distribute products over sums (Winograd)",
    "pw": "the pointwise convolutions of MobileNet v1",
    "dw": "the depthwise convolutions of MobileNet v1",
    "dsblock": "the separable blocks of MobileNet v1, each with bias and clamp at 0",
    "softmax": "soft-max over the rows of a matrix",
    "layernorm": "layer norm over the rows of a matrix",
    "silu": "x + b for each column, and that times its logistic function",
    "residual": "the sum of two matrices, halved and cut off at 0",
    "chain": "four statements on the elements of a matrix: scaled, moved, cut off at 0, squared",
}


def families() -> tuple[str, ...]:
    """Return the names of all families, ``KIND_TYPE``."""
    return tuple(f"{kind}_{t}" for kind, (_, _, types) in SOURCES.items() for t in types)


def cases(family: str, folder: Path = SHAPES) -> list[Case]:
    """Return the cases of a family, each once, in the order of its file in ``folder``; none where
    that has no such file.  KeyError for another family.
    """
    if family not in families():
        raise KeyError(family)
    kind = family.partition("_")[0]
    name, meaning, _ = SOURCES[kind]
    path = folder / f"{name}.csv"
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        found = [{"family": family, **meaning(row)} for row in csv.DictReader(file)]
    return [case for i, case in enumerate(found) if case not in found[:i]]


def spread(items: Sequence[T], limit: int) -> list[T]:
    """Return at most so many items at even distances, the first and the last among them."""
    if limit >= len(items):
        return list(items)
    if limit == 1:
        return [items[0]]
    return [items[round(i * (len(items) - 1) / (limit - 1))] for i in range(limit)]


def title(case: Case) -> str:
    """Return a case in a line: ``gemm_f32 m=64 n=64 k=64``."""
    sizes = " ".join(f"{key}={value}" for key, value in case.items() if key != "family")
    return f"{case['family']} {sizes}"


def element_kind(case: Case) -> str:
    """Return ``f32``, ``bf16`` or ``u8s8``."""
    return str(case["family"]).partition("_")[2]


def side(case: Case) -> int:
    """Return the height, and the width, of the output of a convolution or of a block."""
    r, p = case.get("r", 3), case.get("p", 1)
    return int((case["h"] + 2 * p - r) // case["s"] + 1)


def operations(case: Case) -> float | None:
    """Return the multiplications and additions of a case; None where memory is what counts."""
    match str(case["family"]).partition("_")[0]:
        case "gemm" | "linear":
            return 2.0 * case["m"] * case["n"] * case["k"]
        case "conv" | "conv3x3" | "dw" | "pw":
            return 2.0 * side(case) ** 2 * case["co"] * case["ci"] / case["g"] * case["r"] ** 2
        case "dsblock":
            return 2.0 * side(case) ** 2 * case["ci"] * (9 + case["co"])
        case _:
            return None


def needed(case: Case) -> float | None:
    """Return the operations that no method which is known here does without.

    Products with the padding of an image are none.  Winograd's method has a quarter of the products
    for 4x4 outputs of a window of 3x3.
    """
    match str(case["family"]).partition("_")[0]:
        case "conv" | "dw" | "pw":
            return 2.0 * _inside(case) ** 2 * case["co"] * case["ci"] / case["g"]
        case "conv3x3":
            return 2.0 * _inside(case) ** 2 * case["co"] * case["ci"] / case["g"] / 4
        case "dsblock":
            return 2.0 * case["ci"] * (_inside(case) ** 2 + side(case) ** 2 * case["co"])
        case _:
            return operations(case)


def _inside(case: Case) -> int:
    """Return how many pairs of a row of the output and one of the window meet one of the image."""
    r, p = int(case.get("r", 3)), int(case.get("p", 1))
    rows = (case["s"] * out + tap - p for out in range(side(case)) for tap in range(r))
    return sum(0 <= row < case["h"] for row in rows)


def traffic(case: Case) -> int:
    """Return the bytes that a case over rows must read and write: inputs and output once."""
    matrices = 3 if str(case["family"]).startswith("residual") else 2
    return matrices * 4 * int(case["rows"]) * int(case["cols"])


def touched(case: Case) -> int:
    """Return the bytes of the inputs and the output of a case that counts operations."""
    family, _, kind = str(case["family"]).partition("_")
    each = {"f32": 4, "bf16": 2, "u8s8": 1}[kind]
    if family in ("gemm", "linear"):
        m, n, k = case["m"], case["n"], case["k"]
        return int(each * (m * k + k * n) + (4 if kind == "u8s8" else each) * m * n)
    out = side(case) ** 2 * case["co"]
    if family == "dsblock":
        weights = case["ci"] * (9 + case["co"])
    else:
        weights = case["co"] * case["ci"] // case["g"] * case["r"] ** 2
    return int(each * (case["ci"] * case["h"] ** 2 + weights + out))
