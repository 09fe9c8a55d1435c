"""Files: what cannot be read is told, and includes stay in their folder."""

import os
from pathlib import Path

import pytest

from isamap.diagnostics import IsamapError, ParseError
from isamap.text.load import load_module

KERNEL = "kernel {} {{ out Y : f32[4]\n  Y[i] = 1\n}}\n"


def told(path: Path) -> list[tuple[str, str, str]]:
    with pytest.raises(IsamapError) as caught:
        load_module(path)
    assert caught.value.exit_code == 1
    return [(d.code, str(d.span).rpartition("/")[2], d.message) for d in caught.value.diagnostics]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    ((code, place, message),) = told(tmp_path / "none.ir")
    assert (code, place) == ("E001", "none.ir:1:1")
    assert "No such file" in message


def test_a_folder(tmp_path: Path) -> None:
    assert told(tmp_path)[0][0] == "E001"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "secret.ir"
    path.write_text("")
    path.chmod(0)
    assert told(path)[0][0] == "E001"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.ir")
    assert told(tmp_path / "pipe.ir")[0][0] == "E001"


@pytest.mark.parametrize(
    ("data", "place", "message"),
    [
        (b"kernel k {\n  ab\xffcd", "f.ir:2:5", "the byte 0xff, which is not UTF-8"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "f.ir:1:8", "a zero byte: it is no text"),
        ("k\0".encode("utf-16"), "f.ir:1:4", "a zero byte: it is no text"),
        ("kernel é".encode("latin-1"), "f.ir:1:8", "the byte 0xe9, which is not UTF-8"),
    ],
)
def test_a_file_that_is_no_text(tmp_path: Path, data: bytes, place: str, message: str) -> None:
    path = tmp_path / "f.ir"
    path.write_bytes(data)
    ((code, where, what),) = told(path)
    assert (code, where) == ("E002", place)
    assert what.endswith(message)


def test_a_file_that_is_too_long(tmp_path: Path) -> None:
    path = tmp_path / "f.ir"
    path.write_bytes(b"#" * (1 << 20) + b"\n")
    assert told(path)[0][0] == "E003"
    path.write_bytes(b"#" * (1 << 23))
    assert told(path)[0][0] == "E003"


def test_includes_are_read_once_and_first(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.ir").write_text(KERNEL.format("a"))
    (tmp_path / "b.ir").write_text('include "sub/a.ir"\n' + KERNEL.format("b"))
    main = tmp_path / "main.ir"
    main.write_text('include "b.ir"\ninclude "sub/a.ir"\n' + KERNEL.format("c"))
    assert [k.name for k in load_module(main).kernels] == ["a", "b", "c"]


def test_a_kernel_that_is_named_takes_sizes_wherever_it_lies(tmp_path: Path) -> None:
    sized = "kernel {}(N = 4) {{ out Y : f32[N]\n  Y[i] = 1\n}}\n"
    (tmp_path / "a.ir").write_text(sized.format("a"))
    main = tmp_path / "main.ir"
    main.write_text('include "a.ir"\n' + sized.format("b"))
    for name in ("a", "b"):
        (kernel,) = load_module(main, overrides={"N": 7}, only=name).kernels
        assert [extent.value for extent in kernel.extents] == [7]


def test_an_error_in_an_included_file_is_placed_there(tmp_path: Path) -> None:
    (tmp_path / "a.ir").write_text("kernel a { out Y : f32[4]\n  Y[i] = Z[i]\n}\n")
    main = tmp_path / "main.ir"
    main.write_text('include "a.ir"\n' + KERNEL.format("c") + KERNEL.format("c"))
    assert [(code, place) for code, place, _ in told(main)] == [
        ("E013", "a.ir:2:10"),
        ("E014", "main.ir:5:8"),
    ]


def test_includes_do_not_leave_the_folder(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out.ir").write_text(KERNEL.format("a"))
    (tmp_path / "in" / "link.ir").symlink_to(tmp_path / "out.ir")
    main = tmp_path / "in" / "main.ir"
    for path in ("../out.ir", str(tmp_path / "out.ir"), "link.ir", "\\0", "a" * 5000):
        main.write_text(f'include "{path}"\n' + KERNEL.format("c"))
        assert [code for code, _, _ in told(main)] == ["E031"]


def test_includes_in_a_circle(tmp_path: Path) -> None:
    main = tmp_path / "a.ir"
    main.write_text('include "b.ir"\n' + KERNEL.format("a"))
    (tmp_path / "b.ir").write_text('include "a.ir"\n' + KERNEL.format("b"))
    ((code, place, message),) = told(main)
    assert (code, place) == ("E032", "b.ir:1:9")
    assert message.endswith("a.ir -> b.ir -> a.ir")


def test_too_many_includes(tmp_path: Path) -> None:
    for n in range(80):
        (tmp_path / f"f{n}.ir").write_text(f'include "f{n + 1}.ir"\n' + KERNEL.format(f"k{n}"))
    assert told(tmp_path / "f0.ir")[0][0] == "E032"


def test_errors_of_reading_are_errors_of_parsing(tmp_path: Path) -> None:
    with pytest.raises(ParseError):
        load_module(tmp_path / "none.ir")
