"""The layers of networks are what examples/make_layers.py writes."""

from pathlib import Path

from examples.make_layers import generated, stale

ROOT = Path(__file__).parents[2]


def test_every_generated_example_is_fresh() -> None:
    assert stale() == []


def test_tables_give_every_distinct_layer() -> None:
    folders = [path.parent.name for path in generated()]
    counts = {folder: folders.count(folder) for folder in set(folders)}
    assert counts == {"mobilenet_v1": 20, "resnet50": 24, "deepbench": 78}


def test_transposed_operands_are_read_transposed() -> None:
    files = {path.stem: text for path, text in generated().items()}
    assert "A[k, m] * B[k, n]" in files["gemm_1760x16x1760_tn"]
    assert "A[m, k] * B[n, k]" in files["gemm_512x16x512_nt"]


def test_documentation_lists_every_operator() -> None:
    page = (ROOT / "docs" / "examples.md").read_text()
    operators = [path.stem for path in (ROOT / "examples" / "operators").glob("*.ir")]
    assert operators
    assert [name for name in operators if f"`{name}`" not in page] == []


def test_every_example_says_what_it_is() -> None:
    silent = [p for p in (ROOT / "examples").rglob("*.ir") if not p.read_text().startswith("# ")]
    assert silent == []
