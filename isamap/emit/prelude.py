"""The part of a description's prelude that a kernel uses."""

import re
from collections.abc import Iterator

_LITERAL = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*")
_ATTRIBUTE = re.compile(r"__attribute__\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
_MACRO = re.compile(r"#\s*define\s+(\w+)\(([^)]*)\)(.*)", re.DOTALL)
_USE = re.compile(r"(\w+)\s*\(([^;{]*)\)\s*;?$")
_NAME = (
    re.compile(r"#\s*define\s+(\w+)"),
    re.compile(r"typedef\b.*?\b(\w+)\s*;", re.DOTALL),
    re.compile(r"static\b[^(;{=]*?\b(\w+)\s*\("),
)


def used_part(prelude: str, text: str) -> str:
    """Return the definitions of ``prelude`` that ``text`` needs, themselves or through others.

    A definition is a macro, a typedef or a static function that begins in the first column;
    whatever else stands there is kept, and a prelude with conditional parts is kept whole.
    Comments go with what they precede.
    """
    conditional = r"^#\s*(if|ifdef|ifndef|else|elif|endif|undef|pragma)\b"
    bare = _LITERAL.sub("", prelude)
    if re.search(conditional, prelude, re.MULTILINE) or _depth(bare) != 0:
        return prelude
    items = tuple(_items(prelude))
    meant = _expanded(items)
    defined = {name: n for n, item in enumerate(meant) for name in _defines(item)}
    kept = {n for n in range(len(items)) if n not in defined.values()}
    pending = [text, *(meant[n] for n in kept)]
    while pending:
        for word in set(_WORD.findall(pending.pop())):
            number = defined.get(word)
            if number is not None and number not in kept:
                kept.add(number)
                pending.append(f"{items[number]} {meant[number]}")
    return "\n".join(items[n] for n in sorted(kept))


def _items(prelude: str) -> Iterator[str]:
    """Yield the pieces that begin in the first column, each with the comment before it."""
    lines: list[str] = []
    comment = continued = False
    depth = 0
    for line in prelude.splitlines():
        first = bool(line) and not line[0].isspace() and line[0] not in "{})"
        begins = first and not continued and depth == 0
        if begins and not comment and any(entry.strip() for entry in lines):
            yield "\n".join(lines).strip("\n")
            lines = []
        if begins or line.strip():
            # A comment belongs to what follows it.
            opens = line.lstrip().startswith(("/*", "//")) or (
                comment and "*/" not in "".join(lines)
            )
            comment = opens if begins or comment else False
        continued = line.endswith("\\")
        depth += 0 if comment else _depth(_LITERAL.sub("", line))
        lines.append(line)
    if any(entry.strip() for entry in lines):
        yield "\n".join(lines).strip("\n")


def _depth(text: str) -> int:
    """Return how many brackets a text opens and does not close."""
    return sum(text.count(c) for c in "{(") - sum(text.count(c) for c in "})")


def _expanded(items: tuple[str, ...]) -> tuple[str, ...]:
    """Return the items with the macros that make definitions replaced by what they make."""
    bare = [_ATTRIBUTE.sub("", _LITERAL.sub("", item)).strip() for item in items]
    macros: dict[str, tuple[list[str], str]] = {}
    for item in bare:
        if match := _MACRO.match(item):
            parameters = [p.strip() for p in match[2].split(",")]
            macros[match[1]] = (parameters, match[3].replace("\\\n", "\n"))
    meant = []
    for item in bare:
        use = _USE.match(item)
        if use is not None and use[1] in macros:
            parameters, body = macros[use[1]]
            values = dict(zip(parameters, (v.strip() for v in use[2].split(",")), strict=False))
            words = (values.get(word, word) for word in re.split(r"(\W+)", body))
            made = re.sub(r"\s*##\s*", "", "".join(words)).strip()
            item = f"{made} /* {use[1]} */"
        meant.append(item)
    return tuple(meant)


def _defines(item: str) -> tuple[str, ...]:
    """Return the names that an item defines; none if that cannot be told."""
    macro, typedef, function = _NAME
    if match := macro.match(item):
        return (match[1],)
    if not typedef.match(item) and not function.match(item):
        return ()
    outside = _outside(item)
    return tuple(match[1] for kind in (typedef, function) for match in kind.finditer(outside))


def _outside(item: str) -> str:
    """Return what stands outside of all braces."""
    kept, depth = [], 0
    for piece in re.split(r"([{}])", item):
        depth -= piece == "}"
        if depth == 0:
            kept.append(piece)
        depth += piece == "{"
    return "".join(kept)
