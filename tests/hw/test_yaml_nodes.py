"""Reading YAML: positions are exact, and nothing that the text can hold does harm."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.diagnostics import HardwareError
from isamap.hw.yaml_nodes import MAX_BYTES, Mapping, Scalar, decode, find, plain, read_nodes


def nodes(text: str) -> Mapping:
    return read_nodes(decode("h.yaml", text.encode()))


def codes(text: str) -> list[str]:
    with pytest.raises(HardwareError) as error:
        nodes(text)
    return [d.code for d in error.value.diagnostics]


def test_scalars_stay_as_written() -> None:
    text = "a: on\nb: 1e3\nc: 12:30\nd: 017\ne: ~\nf: 2024-01-01\nno: yes\n"
    assert plain(nodes(text)) == {
        "a": "on",
        "b": "1e3",
        "c": "12:30",
        "d": "017",
        "e": "~",
        "f": "2024-01-01",
        "no": "yes",
    }


HEADERS = ["|", "|-", "|+", "| # a note", "|2"]


@given(
    header=st.sampled_from(HEADERS),
    depth=st.integers(0, 3),
    blank=st.integers(0, 2),
    lines=st.lists(st.text("abc {}:#@\t", min_size=1, max_size=12), min_size=1, max_size=6),
    ending=st.sampled_from(["\n", "\r\n"]),
    data=st.data(),
)
def test_a_place_in_a_block_is_where_it_was_written(
    header: str, depth: int, blank: int, lines: list[str], ending: str, data: st.DataObject
) -> None:
    row = data.draw(st.integers(0, len(lines) - 1))
    lines[row] += "X"
    lines[0] = "s" + lines[0]
    outer = "".join("  " * level + f"k{level}:\n" for level in range(depth))
    block = "".join("\n" for _ in range(blank)) + "".join(
        "  " * (depth + 1) + line + "\n" for line in lines
    )
    text = f"{outer}{'  ' * depth}t: {header}\n{block}{'  ' * depth}u: end\n"
    root = nodes(text.replace("\n", ending))
    node, _ = find(root, (*(f"k{level}" for level in range(depth)), "t"))
    assert isinstance(node, Scalar)
    assert node.excerpt is not None
    offset = node.text.index("X")
    before = node.text[:offset]
    line = node.excerpt.first_line + before.count("\n")
    column = node.excerpt.indent + offset - (before.rfind("\n") + 1)
    assert text.splitlines()[line - 1][column] == "X"


@pytest.mark.parametrize(
    "text",
    [
        "t: >\n  a\n  b\n",  # folded
        't: "a\\nb"\n',  # an escape
        "t: 'it''s'\n",  # a doubled quote
        "t: a\n  b\n",  # two lines
    ],
)
def test_a_scalar_that_differs_from_its_text_has_no_place_inside(text: str) -> None:
    node = nodes(text).get("t")
    assert isinstance(node, Scalar)
    assert node.excerpt is None


def test_all_refusals_come_in_one_go() -> None:
    text = "a: &x 1\nb: *x\nc: !!int 3\nd: 4\n"
    assert codes(text) == ["E102", "E102", "E102"]


def test_duplicate_keys_point_at_both() -> None:
    with pytest.raises(HardwareError) as error:
        nodes("a: 1\nb:\n  c: 1\n  c: 2\na: 2\n")
    text = str(error.value)
    assert "h.yaml:4:3: error[E103]: 'c' is given twice" in text
    assert "h.yaml:5:1: error[E103]: 'a' is given twice" in text
    assert "h.yaml:1:1: note: first here" in text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "E106"),
        ("- a\n", "E106"),
        ("a\n", "E106"),
        ("a: 1\n---\nb: 2\n", "E102"),
        ("<<: {a: 1}\n", "E102"),
        ("? [a]\n: 1\n", "E106"),
        ("a: [1\n", "E101"),
        ("a: b: c\n", "E101"),
        ("a: @x\n", "E101"),
        ("\tb: 1\n", "E101"),
        ("a: \x01\n", "E101"),
        ("%YAML 9.9\n---\na: 1\n", "E101"),
    ],
)
def test_what_is_no_description(text: str, code: str) -> None:
    assert code in codes(text)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"a: \xff\n", "is not UTF-8 text: byte 0xff at 3"),
        (b"\xff\xfea\x00", "is not UTF-8"),
        (b"a: \x00\n", "NUL"),
        (b"#" * (MAX_BYTES + 1), "larger than 1 MiB"),
    ],
)
def test_what_is_no_text(data: bytes, says: str) -> None:
    with pytest.raises(HardwareError, match=says):
        decode("h.yaml", data)


def test_a_byte_order_mark_is_skipped() -> None:
    assert plain(read_nodes(decode("h.yaml", "\ufeffa: 1\n".encode()))) == {"a": "1"}


# Each of these ends a careless reader: in a process of its own, so that a crash is seen as one.
BOMBS = {
    "deep": "'a: ' + '[' * 300_000",
    "deep mapping": "''.join(' ' * i + 'a:\\n' for i in range(1000))",
    "aliases": "'a0: &a0 x\\n' + ''.join(f'a{i}: &a{i} [' + f'*a{i-1},' * 9 + ']\\n' "
    "for i in range(1, 12))",
    "many": "'a: [' + '1,' * 400_000 + ']'",
    "tag": "'a: !!python/object/apply:os.system [false]'",
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_quickly(name: str) -> None:
    program = (
        "from isamap.hw.yaml_nodes import *\n"
        "from isamap.diagnostics import HardwareError\n"
        f"text = {BOMBS[name]}\n"
        "try:\n"
        "    read_nodes(decode('h.yaml', text.encode()))\n"
        "except HardwareError as error:\n"
        "    print(error.diagnostics[0].code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "E102"


@given(st.text(st.sampled_from("ab:-[]{}|>&*!#'\"%@\n\t ,?~\\"), max_size=60))
def test_no_text_crashes_the_reader(text: str) -> None:
    found = []
    try:
        plain(nodes(text))
    except HardwareError as error:
        found = [d.code for d in error.diagnostics]
    assert all(code.startswith("E1") for code in found)
