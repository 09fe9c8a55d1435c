"""Lemmas over the reals about numbers split into terms."""

from collections.abc import Sequence
from fractions import Fraction

from isamap.solver.lemma import Lemma


def real(number: Fraction | int) -> str:
    """Return a rational number in SMT-LIB."""
    number = Fraction(number)
    size = f"(/ {abs(number.numerator)}.0 {number.denominator}.0)"
    return size if number >= 0 else f"(- {size})"


def remainder(terms: int, unit: Fraction) -> Lemma:
    """Return the lemma that ``terms`` roundings leave ``unit**terms`` of a number.

    Each term is the rest of the number, rounded: off by at most ``unit`` times that rest.
    """
    lines = ["(declare-const x Real)"]
    rest, claims = "x", []
    for k in range(terms):
        lines.append(f"(declare-const h{k} Real)")
        lines.append(f"(assert (<= (abs (- {rest} h{k})) (* {real(unit)} (abs {rest}))))")
        claims.append(f"(<= (abs h{k}) (* {real(unit**k * (1 + unit))} (abs x)))")
        rest = f"(- {rest} h{k})"
    claims.append(f"(<= (abs {rest}) (* {real(unit**terms)} (abs x)))")
    lines.append(f"(assert (not (and {' '.join(claims)})))")
    claim = (
        f"x less its {terms} terms is at most {unit}**{terms} |x|, and term k at most "
        f"{unit}**k (1 + {unit}) |x|, each off by at most {unit} of what it rounds"
    )
    return Lemma("remainder", claim, "\n".join(lines) + "\n")


def dropped_products(counts: Sequence[int], kept: Sequence[tuple[int, int]]) -> Lemma:
    """Return the lemma that a product less the kept products of terms is the dropped ones.

    ``counts`` are the terms of both factors, the remainder included.
    """
    one, other = ([f"{name}{k}" for k in range(n)] for name, n in zip("hg", counts, strict=True))
    lines = [f"(declare-const {name} Real)" for name in (*one, *other)]
    pairs = [(i, j) for i in range(len(one)) for j in range(len(other))]

    def total(chosen: Sequence[tuple[int, int]]) -> str:
        return f"(+ 0.0 {' '.join(f'(* {one[i]} {other[j]})' for i, j in chosen)})"

    whole = f"(* (+ 0.0 {' '.join(one)}) (+ 0.0 {' '.join(other)}))"
    dropped = [pair for pair in pairs if pair not in kept]
    lines.append(f"(assert (not (= (- {whole} {total(kept)}) {total(dropped)})))")
    shown = " + ".join(f"h{i} g{j}" for i, j in kept)
    claim = f"(sum h) (sum g) - ({shown}) is the sum of the other {len(dropped)} products"
    return Lemma("dropped products", claim, "\n".join(lines) + "\n")


def product_bound() -> Lemma:
    """Return the lemma that bounds of factors bound their product."""
    lines = [f"(declare-const {name} Real)" for name in "abxy"]
    lines.append("(assert (<= (abs x) a))")
    lines.append("(assert (<= (abs y) b))")
    lines.append("(assert (not (<= (abs (* x y)) (* a b))))")
    claim = "|x| <= a and |y| <= b give |x y| <= a b"
    return Lemma("product of bounds", claim, "\n".join(lines) + "\n")


def error_of_two(digits: int) -> Fraction:
    """Return the relative error of what is rounded twice to some digits."""
    return (1 + Fraction(1, 1 << digits)) ** 2 - 1


def twice_rounded(name: str, digits: int) -> Lemma:
    """Return the lemma that a product with a reciprocal, both rounded, is off by no more than
    :func:`error_of_two`.
    """
    unit, bound = Fraction(1, 1 << digits), error_of_two(digits)
    lines = [f"(declare-const {n} Real)" for n in ("x", "y", "a", "b", "q")]
    # q is the quotient, and x/y = x * (1/y) = q over the reals.
    lines.append("(assert (and (not (= y 0.0)) (= (* q y) x)))")
    lines += [f"(assert (<= (abs {d}) {real(unit)}))" for d in "ab"]
    lines.append("(declare-const r Real)")
    lines.append("(assert (= (* r y) 1.0))")
    product = "(* x r (+ 1.0 a) (+ 1.0 b))"
    lines.append(f"(assert (> (abs (- {product} q)) (* {real(bound)} (abs q))))")
    size = f"2^-{digits}"
    claim = f"x * (1 / y), rounded twice by at most {size}, is off by at most (2 + {size}) {size}"
    return Lemma(name, claim, "\n".join(lines) + "\n")
