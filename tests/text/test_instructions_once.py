"""Blocks of instructions that several machines have are read once."""

import pytest

from isamap.diagnostics import IsamapError, Source
from isamap.text.load import parse_instructions

ADD = "instruction add { in a : f32[N] @ v  out r : f32[N] @ v  r[i] = a[i] + a[i] }"


def test_names_that_do_not_occur_make_no_difference() -> None:
    first = parse_instructions(Source("one", ADD), frozenset({"v", "memory"}), {"N": 4})
    again = parse_instructions(Source("one", ADD), frozenset({"v", "tile"}), {"N": 4, "M": 2})
    assert again is first


def test_what_occurs_makes_one() -> None:
    first = parse_instructions(Source("one", ADD), frozenset({"v"}), {"N": 4})
    other = parse_instructions(Source("one", ADD), frozenset({"v"}), {"N": 8})
    assert other != first
    elsewhere = parse_instructions(Source("two", ADD), frozenset({"v"}), {"N": 4})
    place = elsewhere[0].span
    assert place is not None
    assert place.source.name == "two"


def test_messages_tell_all_storages() -> None:
    for storages in ({"w", "memory"}, {"w", "tile"}):
        with pytest.raises(IsamapError) as caught:
            parse_instructions(Source("one", ADD), frozenset(storages), {"N": 4})
        assert all(name in str(caught.value) for name in storages)
