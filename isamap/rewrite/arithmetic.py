"""Expressions on elements as terms of SMT-LIB: what lemmas are made of.

Two models of arithmetic:

- ``bits``: every type as the machine has it.  Integers are bit-vectors that wrap, floats are IEEE
  numbers (f8e4m3, which is none, has no term).
- ``reals``: integers as before; floats are exact rational numbers, with two infinities and NaN.
  A law that only holds there needs a permission of the kernel's.

An operation without an exact counterpart is an uninterpreted function: what is proved with it holds
for every function.  Elements are unknown values, named by their accesses; under ``reals`` they are
finite unless the kernel says otherwise.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import TypeAlias

from isamap.ir.dtype import DType
from isamap.ir.literal import LiteralFault, canonical, exact, value
from isamap.ir.nodes import Access, Coordinate, Expr, Literal, Op, Reduce
from isamap.ir.printer import print_expr
from isamap.solver.lemma import Lemma

Model: TypeAlias = OneOf["bits", "reals"]

_EXTENDED = """\
(declare-datatypes ((Extended 0)) (((finite (value Real)) (above) (below) (undefined))))
(define-fun sign ((x Extended)) Int
  (ite (= x above) 1 (ite (= x below) (- 1)
  (ite (> (value x) 0.0) 1 (ite (< (value x) 0.0) (- 1) 0)))))
(define-fun negated ((x Extended)) Extended
  (ite ((_ is finite) x) (finite (- (value x))) (ite (= x above) below
  (ite (= x below) above undefined))))
(define-fun plus ((x Extended) (y Extended)) Extended
  (ite (and ((_ is finite) x) ((_ is finite) y)) (finite (+ (value x) (value y)))
  (ite (or (= x undefined) (= y undefined)) undefined
  (ite ((_ is finite) x) y (ite ((_ is finite) y) x (ite (= x y) x undefined))))))
(define-fun times ((x Extended) (y Extended)) Extended
  (ite (and ((_ is finite) x) ((_ is finite) y)) (finite (* (value x) (value y)))
  (ite (or (= x undefined) (= y undefined) (= (sign x) 0) (= (sign y) 0)) undefined
  (ite (= (sign x) (sign y)) above below))))
(define-fun less ((x Extended) (y Extended)) Bool
  (and (not (= x undefined)) (not (= y undefined)) (not (= x y))
  (or (= x below) (= y above)
  (and ((_ is finite) x) ((_ is finite) y) (< (value x) (value y))))))
(define-fun greatest ((x Extended) (y Extended)) Extended
  (ite (or (= x undefined) (= y undefined)) undefined (ite (less x y) y x)))
(define-fun least ((x Extended) (y Extended)) Extended
  (ite (or (= x undefined) (= y undefined)) undefined (ite (less x y) x y)))
"""

_REALS = {"+": "plus", "*": "times", "max": "greatest", "min": "least", "neg": "negated"}
_FLOATS = {"+": "fp.add RNE", "-": "fp.sub RNE", "*": "fp.mul RNE", "/": "fp.div RNE"}
_FLOATS |= {"neg": "fp.neg", "abs": "fp.abs", "sqrt": "fp.sqrt RNE", "fma": "fp.fma RNE"}
_INTEGERS = {"+": "bvadd", "-": "bvsub", "*": "bvmul", "&": "bvand", "|": "bvor", "^": "bvxor"}
_INTEGERS |= {"neg": "bvneg", "~": "bvnot"}
_BOOLS = {"&": "and", "|": "or", "^": "xor", "~": "not", "max": "or", "min": "and"}
_ORDERS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


class NoTermError(ValueError):
    """An expression has no term in a model; the rule does not apply."""


def equal(
    name: str,
    claim: str,
    pairs: Iterable[tuple[Expr, Expr]],
    model: Model = "bits",
    finite: bool = True,
    signed_zeros: bool = False,
) -> Lemma:
    """Return the lemma that in each pair both expressions have one value, whatever their elements.

    An access stands for an unknown element, equal accesses for one element.  NaN equals NaN, and
    the two zeros are equal unless ``signed_zeros``; it matters under ``bits`` only.  ``finite``
    says that elements are no infinities and not NaN; it matters under ``reals`` only.  NoTermError
    if something has no term.
    """
    pairs = tuple(pairs)
    exact = not any(has_floats(expr) for pair in pairs for expr in pair)
    terms = Terms("bits" if exact else model, finite, signed_zeros)
    same = [terms.same(terms.of(left), terms.of(right), left.dtype) for left, right in pairs]
    whole = same[0] if len(same) == 1 else f"(and {' '.join(same)})"
    return Lemma(name, claim, f"{terms.declarations()}(assert (not {whole}))\n")


def has_floats(expr: Expr) -> bool:
    """Return whether an expression or a part of it is a float."""
    args = expr.args if isinstance(expr, Op) else ()
    return expr.dtype.is_float or any(map(has_floats, args))


def _exact(given: Literal, dtype: DType) -> Literal | None:
    """Return a literal of another type with the very value of one; None if it has none."""
    try:
        found = Literal(canonical(given.text, dtype), dtype)
    except LiteralFault:
        return None
    return found if value(found) == value(given) else None


@dataclass(slots=True)
class Terms:
    """Terms of expressions under one model, and what they need declared."""

    model: Model
    finite: bool = True
    signed_zeros: bool = False
    _declared: dict[str, str] = field(default_factory=dict)

    def declarations(self) -> str:
        """Return the declarations of everything that the terms so far use."""
        head = _EXTENDED if self.model == "reals" else ""
        return head + "".join(f"{line}\n" for line in self._declared.values())

    def of(self, expr: Expr) -> str:
        """Return the term of an expression; NoTermError if it has none."""
        match expr:
            case Literal():
                return self._literal(expr)
            case Access() | Coordinate() | Reduce():
                return self._element(print_expr(expr), expr.dtype)
            case Op("cast", (Literal() as given,), dtype) if same := _exact(given, dtype):
                # The shortest text of a value in a wider type is another real number.
                between = given.dtype.is_float and dtype.is_float
                return self._literal(given if between and self.model == "reals" else same)
            case Op(op, args, dtype):
                terms = [self.of(arg) for arg in args]
                known = self._operation(op, terms, [arg.dtype for arg in args], dtype)
                return known or self._unknown(op, terms, [arg.dtype for arg in args], dtype)

    def same(self, left: str, right: str, dtype: DType) -> str:
        """Return the claim that two terms of a type have one value."""
        # Of the sort of floats, = tells the zeros apart and holds of NaN and NaN.
        if dtype.is_float and self.model == "bits" and not self.signed_zeros:
            both = f"(and (fp.isNaN {left}) (fp.isNaN {right}))"
            return f"(or (fp.eq {left} {right}) {both})"
        return f"(= {left} {right})"

    def _element(self, text: str, dtype: DType) -> str:
        # A quoted symbol holds everything but bars and backslashes.
        name = f"|{text.replace('|', '!')}|"
        if self.model == "reals" and dtype.is_float and self.finite:
            self._declared[name] = f"(declare-const {name} Real)"
            return f"(finite {name})"
        self._declared[name] = f"(declare-const {name} {self._sort(dtype)})"
        return name

    def _sort(self, dtype: DType) -> str:
        if dtype.kind == "bool":
            return "Bool"
        if not dtype.is_float:
            return f"(_ BitVec {dtype.bits})"
        return "Extended" if self.model == "reals" else _float_sort(dtype)

    def _literal(self, literal: Literal) -> str:
        text, dtype = literal.text, literal.dtype
        if dtype.kind == "bool":
            return text
        if not dtype.is_float:
            return f"(_ bv{int(exact(text)) % (1 << dtype.bits)} {dtype.bits})"
        if self.model == "reals":
            if text in _SPECIAL:
                return _SPECIAL[text][0]
            number = exact(text)
            size = f"(/ {abs(number.numerator)}.0 {number.denominator}.0)"
            return f"(finite {size})" if number >= 0 else f"(finite (- {size}))"
        if text in _SPECIAL:
            return f"(_ {_SPECIAL[text][1]} {dtype.bits - dtype.precision} {dtype.precision})"
        if text == "-0.0":
            return f"(_ -zero {dtype.bits - dtype.precision} {dtype.precision})"
        number = exact(text)
        size = f"(/ {abs(number.numerator)}.0 {number.denominator}.0)"
        real = size if number >= 0 else f"(- {size})"
        return _to_float(real, dtype)

    def _operation(self, op: str, terms: list[str], types: list[DType], dtype: DType) -> str | None:
        """Return the term of an operation, None where the model has no counterpart."""
        joined = " ".join(terms)
        source = types[-1]
        if op == "select":
            return f"(ite {joined})"
        if op in ("cast", "sat"):
            return self._convert(op, terms[0], types[0], dtype)
        if op in ("==", "!="):
            same = f"(fp.eq {joined})" if self._is_ieee(source) else f"(= {joined})"
            return same if op == "==" else f"(not {same})"
        if op in _ORDERS:
            return self._order(op, terms, source)
        if dtype.kind == "bool":
            return f"({_BOOLS[op]} {joined})" if op in _BOOLS else None
        if not dtype.is_float:
            return self._integer(op, terms, dtype)
        if self.model == "bits":
            if op in ("min", "max"):
                return _extreme(op, terms, dtype)
            return f"({_FLOATS[op]} {joined})" if op in _FLOATS else None
        match op:
            case "-":
                return f"(plus {terms[0]} (negated {terms[1]}))"
            case "abs":
                return f"(greatest {terms[0]} (negated {terms[0]}))"
            case "fma":
                return f"(plus (times {terms[0]} {terms[1]}) {terms[2]})"
            case _:
                return f"({_REALS[op]} {joined})" if op in _REALS else None

    def _integer(self, op: str, terms: list[str], dtype: DType) -> str | None:
        joined = " ".join(terms)
        if op in ("min", "max"):
            return f"(ite {self._order('<' if op == 'min' else '>', terms, dtype)} {joined})"
        if op == "abs":
            negative = self._order("<", [terms[0], f"(_ bv0 {dtype.bits})"], dtype)
            return f"(ite {negative} (bvneg {terms[0]}) {terms[0]})"
        return f"({_INTEGERS[op]} {joined})" if op in _INTEGERS else None

    def _order(self, op: str, terms: list[str], dtype: DType) -> str | None:
        if dtype.kind == "bool":
            return None
        if not dtype.is_float:
            prefix = "bvs" if dtype.kind == "signed" else "bvu"
            return f"({prefix}{_ORDERS[op]} {' '.join(terms)})"
        if self.model == "bits":
            names = {"<": "fp.lt", "<=": "fp.leq", ">": "fp.gt", ">=": "fp.geq"}
            return f"({names[op]} {' '.join(terms)})"
        one, other = terms if op in ("<", "<=") else reversed(terms)
        less = f"(less {one} {other})"
        valid = f"(and (= {one} {other}) (not (= {one} undefined)))"
        return less if op in ("<", ">") else f"(or {less} {valid})"

    def _convert(self, op: str, term: str, source: DType, dtype: DType) -> str | None:
        if source == dtype:
            return term
        if source.kind == "bool":
            one, zero = (self.of(Literal(canonical(text, dtype), dtype)) for text in "10")
            return f"(ite {term} {one} {zero})"
        if source.is_float and dtype.is_float:
            wider = dtype.precision >= source.precision and dtype.max_exponent >= (
                source.max_exponent
            )
            if op == "sat" or (not wider and self.model == "reals"):
                return None
            if self.model == "reals":
                return term
            return _to_float(term, dtype)
        if op == "cast" and source.is_integer and dtype.is_integer:
            return _resized(term, source, dtype)
        if op == "sat" and source.is_integer and dtype.is_integer:
            return _saturated(term, source, dtype)
        if op == "sat" and dtype.is_integer and self._is_ieee(source):
            return _rounded(term, source, dtype)
        return None

    def _is_ieee(self, dtype: DType) -> bool:
        return dtype.is_float and self.model == "bits"

    def _unknown(self, op: str, terms: list[str], types: list[DType], dtype: DType) -> str:
        """Return the term of a function of which nothing is known."""
        name = f"|{op} {' '.join(map(str, types))} {dtype}|"
        sorts = " ".join(self._sort(t) for t in types)
        self._declared[name] = f"(declare-fun {name} ({sorts}) {self._sort(dtype)})"
        return f"({name} {' '.join(terms)})"


_SPECIAL = {"inf": ("above", "+oo"), "-inf": ("below", "-oo"), "nan": ("undefined", "NaN")}


def _float_sort(dtype: DType) -> str:
    exponent = dtype.bits - dtype.precision
    if dtype.max_exponent != (1 << (exponent - 1)) - 1:
        raise NoTermError(f"{dtype} is no IEEE format")
    return f"(_ FloatingPoint {exponent} {dtype.precision})"


def _extreme(op: str, terms: list[str], dtype: DType) -> str:
    """Return the term of a maximum or minimum: NaN if anything is, and -0 is less than +0.

    Hardware takes either zero; with one choice for all, the laws of maxima hold of zeros, too.
    """
    nan = f"(_ NaN {dtype.bits - dtype.precision} {dtype.precision})"
    invalid = " ".join(f"(fp.isNaN {term})" for term in terms)
    one, other = terms
    first = f"(or (fp.lt {one} {other}) (and (fp.eq {one} {other}) (fp.isNegative {one})))"
    chosen = f"{one} {other}" if op == "min" else f"{other} {one}"
    return f"(ite (or {invalid}) {nan} (ite {first} {chosen}))"


def _saturated(term: str, source: DType, dtype: DType) -> str:
    """Return the term of the nearest value of an integer type."""
    bits = max(source.bits, dtype.bits) + 1
    extend = "sign_extend" if source.kind == "signed" else "zero_extend"
    whole = f"((_ {extend} {bits - source.bits}) {term})"
    low, high = (f"(_ bv{n % (1 << bits)} {bits})" for n in (dtype.lowest, dtype.highest))
    least = f"(ite (bvslt {whole} {low}) {low} (ite (bvsgt {whole} {high}) {high} {whole}))"
    return f"((_ extract {dtype.bits - 1} 0) {least})"


def _rounded(term: str, source: DType, dtype: DType) -> str:
    """Return the term of the integer nearest to a float, ties to even; 0 for NaN."""
    low, high = dtype.lowest, dtype.highest
    # The least number of the float type from which on all are too large: a power of two fits.
    end = high if high < 1 << source.precision else high + 1
    start = _to_float(f"(- {-low}.0)" if low else "0.0", source)
    stop = _to_float(f"{end}.0", source)
    convert = "fp.to_sbv" if dtype.kind == "signed" else "fp.to_ubv"
    least, most, none = (f"(_ bv{n % (1 << dtype.bits)} {dtype.bits})" for n in (low, high, 0))
    inside = f"((_ {convert} {dtype.bits}) RNE {term})"
    inside = f"(ite (fp.leq {term} {start}) {least} (ite (fp.geq {term} {stop}) {most} {inside}))"
    return f"(ite (fp.isNaN {term}) {none} {inside})"


def _to_float(term: str, dtype: DType) -> str:
    """Return the term of the value of a float type that is nearest to a real number or a float."""
    exponent = _float_sort(dtype).split()[-2]
    return f"((_ to_fp {exponent} {dtype.precision}) RNE {term})"


def _resized(term: str, source: DType, dtype: DType) -> str:
    if dtype.bits < source.bits:
        return f"((_ extract {dtype.bits - 1} 0) {term})"
    if dtype.bits == source.bits:
        return term
    kind = "sign" if source.kind == "signed" else "zero"
    return f"((_ {kind}_extend {dtype.bits - source.bits}) {term})"
