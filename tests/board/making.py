"""Descriptions with measuring commands that are shell scripts."""

from pathlib import Path

RIGHT = '"$1" && echo $((1000 + RUNS * 500)) >"$2"'
"""Counts 1000 cycles for a program that does not compute, and 500 each time it does."""

# The number of times it computes is the third number that the program reads.
_READ = (
    "cat >input\nRUNS=$(tail -c +17 input | head -c 8 | od -An -t d8 | tr -d ' ')\nexec <input\n"
)


def board(folder: Path, script: str, command: str = "[sh, measure.sh]", seconds: int = 60) -> Path:
    """Write a description, and what its command executes on it: $1 program, $2 count, RUNS."""
    (folder / "measure.sh").write_text(f"#!/bin/sh\n{_READ}{script}\n")
    path = folder / "mine.yaml"
    path.write_text(
        "format: 1\nname: mine\nextends: portable_c\nclock: 1 GHz\ntoolchain:\n"
        f"  measure: {command}\n  seconds: {seconds}\n"
    )
    return path
