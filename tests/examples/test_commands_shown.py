"""Every command line that a page shows has options that the command has."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from isamap.cli.group import group

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/*.md", "hwdesc/*.md", "examples/*/README.md")
    for page in ROOT.glob(pattern)
    if page.name != "CHANGELOG.md"
)


def commands(words: list[str]) -> tuple[click.Command, list[str]]:
    """Return the command that words begin with, and what follows its name."""
    found: click.Command = group
    context = click.Context(group)
    while words and isinstance(found, click.Group):
        inner = found.get_command(context, words[0])
        if inner is None:
            break
        found, words = inner, words[1:]
    return found, words


def shown(page: Path) -> Iterator[tuple[str, click.Command, list[str]]]:
    """Yield each line of a page that is a command, the command, and its options."""
    for line in re.findall(r"\bisamap (?:[a-z]+ )+[^`\n]*", page.read_text("utf-8")):
        text = re.split(r" #| \| ", line)[0]
        command, words = commands(text.split()[1:])
        yield line, command, [w.partition("=")[0] for w in words if re.match("--[a-z]", w)]


def known(command: click.Command) -> set[str]:
    options = {o for p in command.params for o in (*p.opts, *p.secondary_opts)}
    return options | {"--help"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_that_a_page_shows_exist(page: Path) -> None:
    unknown = [
        (line, option)
        for line, command, options in shown(page)
        for option in options
        if option.strip(".,;:)'\"") not in known(command)
    ]
    assert unknown == []


def test_there_are_command_lines_to_look_at() -> None:
    assert sum(len(options) for page in PAGES for _, _, options in shown(page)) > 40
