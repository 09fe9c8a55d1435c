"""Only what a kernel uses of a prelude is written."""

import pytest

from isamap.emit.prelude import used_part

PRELUDE = """\
/* Four lanes. */
typedef float lanes __attribute__((vector_size(16)));
/* Adds, over
   two lines. */
static inline lanes add(lanes a, lanes b) {
    return a + b;
}
static inline __attribute__((always_inline)) float twice(float x) { return 2 * x; }
#define FOUR(x) \\
    twice(twice(x))
static inline int alone(void) { return 1; }
enum { width = 4 };"""


def test_nothing_used_leaves_what_cannot_be_named() -> None:
    assert used_part(PRELUDE, "int main;") == "enum { width = 4 };"


def test_definitions_draw_in_what_they_use() -> None:
    found = used_part(PRELUDE, "r = add(a, b);")
    assert "/* Four lanes. */\ntypedef float lanes" in found
    assert "/* Adds, over\n   two lines. */\nstatic inline lanes add" in found
    assert "twice" not in found
    assert "alone" not in found


def test_macros_are_followed() -> None:
    found = used_part(PRELUDE, "FOUR(1)")
    assert "#define FOUR(x) \\\n    twice(twice(x))" in found
    assert "float twice(float x)" in found
    assert "add" not in found


@pytest.mark.parametrize("line", ["#if X", "# ifdef Y", "#undef Z", "#pragma once"])
def test_conditional_parts_are_kept_whole(line: str) -> None:
    whole = f"{PRELUDE}\n{line}"
    assert used_part(whole, "") == whole


def test_names_that_macros_paste_are_followed() -> None:
    pasted = """\
typedef int v_int;
typedef char v_char;
#define MAKE(T) \\
    static inline T get_##T(v_##T x) { return x; } \\
    static inline T set_##T(v_##T x) { return x; }
MAKE(int)
MAKE(char)"""
    assert used_part(pasted, "set_int(1)") == pasted.replace("\nMAKE(char)", "").replace(
        "typedef char v_char;\n", ""
    )
    assert used_part(pasted, "") == ""


def test_all_types_that_a_macro_makes_are_found() -> None:
    kinds = """\
#define KINDS(T) \\
    typedef T v_##T __attribute__((vector_size(16))); \\
    typedef T h_##T __attribute__((vector_size(8)));
KINDS(int)
KINDS(char)"""
    for name in ("v_int", "h_int"):
        assert used_part(kinds, f"{name} x;") == kinds.replace("\nKINDS(char)", "")


def test_a_structure_is_known_by_its_name() -> None:
    pair = "typedef struct {\n    int even;\n    int odd;\n} pair;"
    assert used_part(pair, "pair p;") == pair
    assert used_part(pair, "int odd;") == ""
