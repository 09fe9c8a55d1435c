import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from isamap.diagnostics import ArgumentsError
from isamap.pipeline.arrays import check_shapes, read_arrays, typed_arrays, write_arrays
from isamap.text.load import parse_module

KERNEL = parse_module(
    "kernel k(N = 4) { in A : f32[N] in B : bf16[N] out C : f32[N] C[n] = A[n] + f32(B[n]) }"
).kernels[0]
A = np.arange(4, dtype=np.float32)
B = A.astype(ml_dtypes.bfloat16)


def test_arrays_survive_a_file(tmp_path: Path) -> None:
    write_arrays(tmp_path / "x.npz", {"A": A, "B": B})
    found = typed_arrays(KERNEL, read_arrays(tmp_path / "x.npz"))
    assert found["B"].dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(found["A"], A)
    np.testing.assert_array_equal(found["B"], B)


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn", "bfloat16", "int4", "uint4"])
def test_numpy_reads_what_is_written_and_so_do_we_what_numpy_writes(
    name: str, tmp_path: Path
) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3).astype(getattr(ml_dtypes, name))
    write_arrays(tmp_path / "x.npz", {"A": array, "B": array.astype(np.float64)})
    with np.load(tmp_path / "x.npz") as found:
        np.testing.assert_array_equal(found["A"].view(array.dtype), array)
        np.testing.assert_array_equal(found["B"], array.astype(np.float64))
    np.savez(tmp_path / "y.npz", A=array)
    np.testing.assert_array_equal(read_arrays(tmp_path / "y.npz")["A"].view(array.dtype), array)


def test_names_of_parameters_are_names_of_arrays(tmp_path: Path) -> None:
    write_arrays(tmp_path / "x.npz", {"file": A, "args": B, "allow_pickle": A})
    assert read_arrays(tmp_path / "x.npz").keys() == {"file", "args", "allow_pickle"}


def test_what_is_no_array_in_an_archive_is_told(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("A.txt", "1 2 3")
    with pytest.raises(ArgumentsError, match=r"'A.txt' in .* is no array"):
        read_arrays(tmp_path / "x.npz")


def test_nobody_is_told_to_unpickle(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(b"text")
    with pytest.raises(ArgumentsError, match=r"is no \.npz archive"):
        read_arrays(tmp_path / "x.npz")


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ArgumentsError, match="cannot read arrays from"):
        read_arrays(tmp_path / "none.npz")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"text", b"\x93NUMPY", b"\x80\x04N."])
def test_a_file_that_is_no_archive_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(ArgumentsError, match="E731"):
        read_arrays(tmp_path / "x.npz")


def test_a_single_array_is_told(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", A)
    with pytest.raises(ArgumentsError, match="holds one array"):
        read_arrays(tmp_path / "x.npy")


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", A=np.array([None, print], dtype=object))
    with pytest.raises(ArgumentsError, match="E731"):
        read_arrays(tmp_path / "x.npz")


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(ArgumentsError) as caught:
        typed_arrays(KERNEL, {"B": A, "X": A})
    assert [d.code for d in caught.value.diagnostics] == ["E733", "E734", "E735"]


def test_tables_and_locals_are_told_not_to_be_given() -> None:
    text = (
        "kernel k { in X : f32[4] const W : f32[2] = [1, 2] local T : f32[4] out Y : f32[4] "
        "T[i] = X[i] * W[1]\n Y[i] = T[i] }"
    )
    (kernel,) = parse_module(text).kernels
    x = np.ones(4, np.float32)
    with pytest.raises(ArgumentsError) as caught:
        typed_arrays(kernel, {"X": x, "W": x, "T": x, "Z": x})
    assert [(d.code, d.hint) for d in caught.value.diagnostics] == [
        ("E734", "W is a table: its elements are written in the kernel, leave it out"),
        ("E734", "T is local: it exists within the kernel only, leave it out"),
        ("E734", None),
    ]


def test_wrong_types_name_the_conversion() -> None:
    with pytest.raises(ArgumentsError, match=r"A.astype\('float32'\)"):
        typed_arrays(KERNEL, {"A": A.astype(np.float64), "B": B})


def test_wrong_shapes_are_told() -> None:
    with pytest.raises(ArgumentsError, match=r"'A' has shape \[4\] in the kernel but \[3\] here"):
        check_shapes(KERNEL, {"A": A[:3]}, {})


def test_wrong_shapes_say_what_the_extents_are() -> None:
    text = "kernel k(M, N = 8) { in A : f32[M, N + 1] out B : f32[M] B[i] = A[i, 0] }"
    (kernel,) = parse_module(text).kernels
    with pytest.raises(ArgumentsError) as caught:
        check_shapes(kernel, {"A": np.zeros((3, 8), np.float32)}, {"M": 3})
    (told,) = caught.value.diagnostics
    assert told.hint == "it is A[M, N + 1], where M is 3, N is 8; --set gives an extent a size"


def test_a_folder_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ArgumentsError, match="cannot write"):
        write_arrays(tmp_path, {"A": A})
