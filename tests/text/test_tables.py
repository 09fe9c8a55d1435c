"""The shipped tables are those of the grammar, and its terminals do not surprise."""

from lark import Lark

from isamap.text.tables import TABLES, build, dump, grammar_text, load_tables


def test_the_tables_are_fresh() -> None:
    assert TABLES.read_text(encoding="utf-8") == dump(build(grammar_text())), (
        "the grammar has changed: run python -m isamap.text.tables"
    )


def test_the_lexer_agrees_with_larks_basic_lexer() -> None:
    text = (
        "isamap 1 kernel k(H = 4) permit no reassociate, approximate(1e-3) { in X : f32[H] "
        "pad -inf out Y : s8[2] @ zmm strides [P, 1] order big for r in 0..3 "
        "Y[i] max= sat[s8](max(X[i], 2)) "
        'local in2 : bool[] inner[] = 1.5e+3 // 2 <= ~x state include "a b" maximum = 0..1 }'
    )
    lark = Lark(grammar_text(), parser="lalr", lexer="basic", start="file")
    tables = load_tables()
    found = []
    for match in tables.lexer.finditer(text):
        kind = match.lastgroup
        if kind not in tables.ignored:
            word = match.group()
            found.append((tables.keywords.get(word, kind) if kind == "NAME" else kind, word))
    assert found == [(token.type, str(token)) for token in lark.lex(text)]


def test_the_grammar_has_no_conflict_and_no_colliding_terminals() -> None:
    # Lark reports conflicts as errors; reduce/reduce and shift/reduce alike in strict mode.
    states = load_tables().actions
    assert all(isinstance(action, int) for row in states for action in row.values())
