"""Writes one kernel for every layer in the tables of examples/data.

python examples/make_layers.py            # write
python examples/make_layers.py --check    # exit 1 if a file is missing, stale or left over
"""

import argparse
import csv
import sys
from pathlib import Path

HERE = Path(__file__).parent
LARGEST_N = 700  # DeepBench's GEMMs with more columns take minutes each
TITLES = {"mobilenet_v1": "MobileNet v1", "resnet50": "ResNet-50"}


def convolution(model: str, row: dict[str, str]) -> tuple[str, str]:
    """Return the name and the text of a layer; activations are [H, W, C], weights [R, S, C, K]."""
    name = row["first_layer"].replace(".", "_")
    channels, size = int(row["cin"]), int(row["hin(=win)"])
    filters, out = int(row["cout"]), int(row["hout(=wout)"])
    kernel, stride, groups = int(row["kernel"]), int(row["stride"]), int(row["groups"])
    title = f"# {TITLES[model]} {row['first_layer']}"
    if out == size == kernel == 1:
        return name, fully_connected(title, name, channels, filters)
    if kernel == 1:
        return name, pointwise(title, name, size, channels, out, filters, stride)
    if groups == channels == filters:
        return name, depthwise(title, name, size, channels, out, kernel, stride)
    if groups != 1:
        raise ValueError(f"{model} {name}: {groups} groups of {channels} channels")
    return name, dense(title, name, size, channels, out, filters, kernel, stride)


def index(variable: str, offset: str, stride: int, kernel: int) -> str:
    """Return the input coordinate of an output coordinate and a filter coordinate."""
    scaled = variable if stride == 1 else f"{stride}*{variable}"
    return f"{scaled} + {offset} - {kernel // 2}" if kernel > 1 else scaled


def dense(
    title: str, name: str, size: int, c: int, out: int, k: int, kernel: int, stride: int
) -> str:
    rows, columns = index("p", "r", stride, kernel), index("q", "s", stride, kernel)
    return f"""\
{title}: {kernel}x{kernel} convolution, stride {stride}, {c} -> {k} channels
kernel {name}(H = {size}, W = {size}, C = {c}, P = {out}, Q = {out}, K = {k}) {{
  in    X : f32[H, W, C] pad 0
  const F : f32[{kernel}, {kernel}, C, K]
  out   Y : f32[P, Q, K]
  Y[p, q, k] += X[{rows}, {columns}, c] * F[r, s, c, k]
}}
"""


def depthwise(title: str, name: str, size: int, c: int, out: int, kernel: int, stride: int) -> str:
    rows, columns = index("p", "r", stride, kernel), index("q", "s", stride, kernel)
    return f"""\
{title}: {kernel}x{kernel} depthwise convolution, stride {stride}, {c} channels
kernel {name}(H = {size}, W = {size}, C = {c}, P = {out}, Q = {out}) {{
  in    X : f32[H, W, C] pad 0
  const D : f32[{kernel}, {kernel}, C]
  out   Y : f32[P, Q, C]
  Y[p, q, c] += X[{rows}, {columns}, c] * D[r, s, c]
}}
"""


def pointwise(title: str, name: str, size: int, c: int, out: int, k: int, stride: int) -> str:
    rows, columns = index("p", "", stride, 1), index("q", "", stride, 1)
    return f"""\
{title}: 1x1 convolution, stride {stride}, {c} -> {k} channels
kernel {name}(H = {size}, W = {size}, C = {c}, P = {out}, Q = {out}, K = {k}) {{
  in    X : f32[H, W, C]
  const F : f32[C, K]
  out   Y : f32[P, Q, K]
  Y[p, q, k] += X[{rows}, {columns}, c] * F[c, k]
}}
"""


def fully_connected(title: str, name: str, c: int, k: int) -> str:
    return f"""\
{title}: fully connected, {c} -> {k}
kernel {name}(C = {c}, K = {k}) {{
  in    X : f32[C]
  const F : f32[C, K]
  out   Y : f32[K]
  Y[k] += X[c] * F[c, k]
}}
"""


def gemm(row: dict[str, str]) -> tuple[str, str]:
    """Return the name and the text of a GEMM; a transposed operand is read with indices swapped."""
    m, n, k = row["m"], row["n"], row["k"]
    sides = row["ta"] + row["tb"]
    a = ("K, M", "k, m") if row["ta"] == "T" else ("M, K", "m, k")
    b = ("N, K", "n, k") if row["tb"] == "T" else ("K, N", "k, n")
    name = f"gemm_{m}x{n}x{k}_{sides.lower()}"
    return (
        name,
        f"""\
# DeepBench training GEMM {m} x {n} x {k}, operands stored {sides}
kernel {name}(M = {m}, N = {n}, K = {k}) {{
  in  A : f32[{a[0]}]
  in  B : f32[{b[0]}]
  out C : f32[M, N]
  C[m, n] += A[{a[1]}] * B[{b[1]}]
}}
""",
    )


def table(name: str) -> list[dict[str, str]]:
    with (HERE / "data" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def generated() -> dict[Path, str]:
    """Return every generated file with its text."""
    files = {}
    for model in TITLES:
        for name, text in (convolution(model, row) for row in table(model)):
            files[HERE / model / f"{name}.ir"] = text
    for row in table("deepbench_gemm"):
        if int(row["n"]) <= LARGEST_N:
            name, text = gemm(row)
            files[HERE / "deepbench" / f"{name}.ir"] = text
    return files


def stale() -> list[Path]:
    """Return the files that are missing, differ, or belong to no row any more."""
    wanted = generated()
    folders = {path.parent for path in wanted}
    left_over = [p for folder in folders for p in folder.glob("*.ir") if p not in wanted]
    differing = [p for p, text in wanted.items() if not p.exists() or p.read_text() != text]
    return sorted(left_over + differing)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, name stale files")
    if parser.parse_args().check:
        for path in (found := stale()):
            print(f"{path} is stale: run python examples/make_layers.py")
        return 1 if found else 0
    for path, text in generated().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
