import pytest

from isamap.emit import names


@pytest.mark.parametrize("name", ["gemm", "conv3x3", "GEMM", "strided", "total", "island"])
def test_an_ordinary_kernel_keeps_its_name(name: str) -> None:
    assert names.entry_point(name, "static inline int isamap_div(int a);") == name


@pytest.mark.parametrize(
    "name", ["int", "main", "memcpy", "expf", "y1", "linux", "NULL", "_mm", "isamap_div"]
)
def test_a_kernel_named_like_something_of_c_is_renamed(name: str) -> None:
    assert names.entry_point(name, "") == f"kernel_{name}"


def test_a_kernel_named_like_something_of_the_prelude_is_renamed() -> None:
    assert names.entry_point("helper", "static int helper(void);") == "kernel_helper"
    assert names.entry_point("help", "static int helper(void);") == "help"
    for text in ("#define taken 1", "typedef int taken;", "static const int taken[4] = {0};"):
        assert names.entry_point("taken", text) == "kernel_taken"
    assert names.entry_point("first", "/* the first of the lanes */") == "first"


def test_name_spaces_are_apart() -> None:
    assert len({f("c0") for f in (names.counter, names.register, names.buffer, names.symbol)}) == 4


def test_mangling_leaves_nothing_that_c_forbids_and_keeps_names_apart() -> None:
    odd = ["a.b", "a'b", "a b", "a*/b", 'a"b', "a\\b", "ä"]
    mangled = [names.buffer(name) for name in odd]
    assert all(name.isidentifier() and name.isascii() for name in mangled)
    assert len(set(mangled)) == len(odd)


def test_text_cannot_end_a_comment() -> None:
    assert "*/" not in names.comment("x */ int evil; /*")
    assert "\n" not in names.comment("x\n#include")
    assert not names.comment("x\\").endswith("\\")
