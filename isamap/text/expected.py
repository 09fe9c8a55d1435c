"""What the parser expected and what it found, in words."""

from collections.abc import Iterable

from isamap.text.tables import Tables
from isamap.text.tokens import Token

_WORDS = {
    "TYPE": "a type",
    "FUNCTION": "a function",
    "LICENCE": "a permission (reassociate, finite, distribute)",
    "ASSIGN": "another assignment",
    "EQUAL": "'='",
    "NAME": "a name",
    "STRING": "a file name in quotes",
    "INT": "a whole number",
    "$END": "the end of the file",
}
_HIDDEN = frozenset(("BAD_NUMBER", "BAD_CHARACTER", "FLOAT", "SPECIAL"))
_ROLES = frozenset(("IN", "CONST", "OUT", "INOUT", "LOCAL"))
_DEFINITIONS = frozenset(("KERNEL", "INSTRUCTION", "PROGRAM", "INCLUDE", "ISAMAP"))
_ATTRIBUTES = frozenset(("PAD", "VALUES", "STRIDES", "ORDER", "AT"))
_PERMISSIONS = frozenset(("LICENCE", "NO", "APPROXIMATE"))
_AFTER_PERMISSION = frozenset(("COMMA", "LBRACE"))
_OPERATORS = frozenset(("STAR", "SLASH", "PERCENT", "PLUS", "MINUS", "VBAR", "CIRCUMFLEX"))


def describe_found(token: Token) -> str:
    """Return how a token is called in a message."""
    if token.kind == "$END":
        return "the end of the file"
    text = token.text if len(token.text) <= 30 else f"{token.text[:30]}..."
    return f"'{text}'"


def describe_expected(kinds: Iterable[str], tables: Tables) -> str:
    """Return in words what terminals may stand at a place; groups of them get one word."""
    left = set(kinds) - _HIDDEN
    parts: list[str] = []
    if {"INT", "LPAR", "NAME", "FUNCTION"} <= left:
        parts.append("an expression")
        left -= {"INT", "LPAR", "NAME", "FUNCTION", "TYPE", "SAT", "MINUS", "TILDE"}
    elif {"INT", "MINUS"} <= left and "STAR" not in left:
        parts.append("a number")
        left -= {"INT", "MINUS"}
    if "STAR" in left or {"LESSTHAN", "VBAR"} <= left:
        parts.append("an operator")
        fixed = (k for k in left if not tables.shown.get(k, "a").isalnum())
        left -= {k for k in fixed if k in _OPERATORS or k.startswith("__ANON") or "THAN" in k}
        left -= {"AMPERSAND", "TILDE"}
    if "FOR" in left and "RBRACE" in left:
        parts += ["a declaration", "a statement", "'}'"]
        left -= _ROLES | {"FOR", "RBRACE", "STATE", "NAME"}
    elif left >= _ROLES:
        parts += ["'in'", "'const'", "'out'", "'inout'", "'local'"]
        left -= _ROLES
    if "KERNEL" in left:
        parts += ["'kernel'", "'instruction'", "'program'", "'include'"]
        left -= _DEFINITIONS
    if {"ASSIGN", "EQUAL"} <= left:
        parts += ["'='", "another assignment"]
        left -= {"ASSIGN", "EQUAL"}
    if left >= _ATTRIBUTES - {"AT"}:
        parts.append("an attribute")
        left -= _ATTRIBUTES | {"EQUAL"}
    parts += sorted(_word(kind, tables) for kind in left)
    if len(parts) == 1:
        return parts[0]
    return f"{', '.join(parts[:-1])} or {parts[-1]}" if parts else "nothing more"


def permission_hint(token: Token, expected: frozenset[str]) -> str | None:
    """Return where permissions stand and how they are written, for an error that is about them."""
    among = expected == _AFTER_PERMISSION
    if among and token.kind in _PERMISSIONS | {"PERMIT"}:
        return "one 'permit' and commas: permit distribute, no finite, approximate(1e-3)"
    if among and token.kind == "LPAR":
        return "extents stand before the permissions: kernel k(N = 8) permit distribute {"
    if token.kind == "PERMIT":
        return "permissions stand before the '{': kernel k(N = 8) permit distribute {"
    return None


def _word(kind: str, tables: Tables) -> str:
    if kind in _WORDS:
        return _WORDS[kind]
    return f"'{tables.shown[kind]}'"
