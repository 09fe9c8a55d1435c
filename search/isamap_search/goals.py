"""What a schedule may be good at besides time."""

from collections.abc import Mapping, Sequence

from isamap.lower.nodes import Call, Copy, Guard, Loop, LoweredKernel, Node, Prefetch, Scope, Token


def workspace_bytes(lowered: LoweredKernel, symbols: Mapping[str, int], threads: int) -> int:
    """Return the bytes of the arrays beyond inputs and outputs, what is kept between calls too."""
    return sum(
        int(array.size.evaluate(symbols)) * array.dtype.bytes * (threads if array.private else 1)
        for array in lowered.arrays
        if array.role in ("local", "prepared")
    )


def written_calls(nodes: Sequence[Node]) -> int:
    """Return how many instruction calls and copies the code holds, wherever they stand."""
    count = 0
    for node in nodes:
        match node:
            case Call() | Copy() | Prefetch() | Token():
                count += 1
            case Loop(body=body) | Scope(body=body):
                count += written_calls(body)
            case Guard(body=body, otherwise=otherwise):
                count += written_calls(body) + written_calls(otherwise)
    return count


def dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    """Return whether ``one`` is nowhere worse than ``other`` and somewhere better."""
    return all(a <= b for a, b in zip(one, other, strict=True)) and tuple(one) != tuple(other)
