"""The kernels of the sweep: texts with extents, and the sizes that these take."""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

Sizes = Mapping[str, int]

LONGEST = 70
"""Every extent goes from 1 to this."""

MOST_ITERATIONS = 4_000_000
"""Of a random combination: the interpreter takes a few tenths of a second for them."""


@dataclass(frozen=True)
class Family:
    """Kernels that differ in their sizes.

    ``text`` makes one from its sizes; ``usual`` has each extent's size while another one varies,
    and ``most`` what an extent is at most where all vary.
    """

    name: str
    text: Callable[[Sizes], str]
    usual: Sizes
    most: Sizes = field(default_factory=dict)

    def alone(self) -> Iterator[dict[str, int]]:
        """Yield the sizes in which one extent differs from the usual."""
        for name in self.usual:
            for size in range(1, LONGEST + 1):
                yield {**self.usual, name: size}

    def random(self, generator: random.Random) -> dict[str, int]:
        """Return a random combination: sizes of every order of magnitude alike."""
        while True:
            found = {}
            for name in self.usual:
                most = self.most.get(name, LONGEST)
                found[name] = min(most, int(2 ** generator.uniform(0, most.bit_length())))
            if prod(found.values()) <= MOST_ITERATIONS:
                return found


def _gemm(a: str, b: str, c: str, cast: str, constant: bool) -> Callable[[Sizes], str]:
    role = "const" if constant else "in"
    product = f"{cast}(A[m, k]) * {cast}(B[k, n])" if cast else "A[m, k] * B[k, n]"

    def text(sizes: Sizes) -> str:
        return f"""kernel gemm({_extents(sizes)}) {{
          in A : {a}[M, K]
          {role} B : {b}[K, N]
          out C : {c}[M, N]
          C[m, n] += {product}
        }}"""

    return text


def _convolution(stride: int, pad: int, a: str, b: str, c: str) -> Callable[[Sizes], str]:
    cast = "" if a == c else c

    def text(sizes: Sizes) -> str:
        height, rows = _window("H", "R", stride, pad, sizes)
        width, columns = _window("W", "S", stride, pad, sizes)
        return f"""kernel convolution({_extents(sizes)}) {{
          in X : {a}[{height}, {width}, C] pad 0
          const F : {b}[R, S, C, K]
          out Y : {c}[H, W, K]
          Y[h, w, k] += {cast}(X[{rows}, {columns}, c]) * {cast}(F[r, s, c, k])
        }}"""

    return text


def _depthwise(
    stride: int, pad: int, a: str = "f32", b: str = "f32", c: str = "f32"
) -> Callable[[Sizes], str]:
    cast = "" if a == c else c

    def text(sizes: Sizes) -> str:
        height, rows = _window("H", "R", stride, pad, sizes)
        width, columns = _window("W", "S", stride, pad, sizes)
        return f"""kernel depthwise({_extents(sizes)}) {{
          in X : {a}[{height}, {width}, C] pad 0
          const F : {b}[R, S, C]
          out Y : {c}[H, W, C]
          Y[h, w, c] += {cast}(X[{rows}, {columns}, c]) * {cast}(F[r, s, c])
        }}"""

    return text


def _separable(sizes: Sizes) -> str:
    height, rows = _window("H", "R", 1, 1, sizes)
    width, columns = _window("W", "S", 1, 1, sizes)
    return f"""kernel separable({_extents(sizes)}) {{
      in X : f32[{height}, {width}, C] pad 0
      const F : f32[R, S, C]
      const G : f32[C, K]
      local T : f32[H, W, C]
      local U : f32[H, W, K]
      out Y : f32[H, W, K]
      T[h, w, c] += X[{rows}, {columns}, c] * F[r, s, c]
      U[h, w, k] += max(T[h, w, c], 0) * G[c, k]
      Y[h, w, k] = max(U[h, w, k], 0)
    }}"""


def _requantised(sizes: Sizes) -> str:
    height, rows = _window("H", "R", 1, 1, sizes)
    width, columns = _window("W", "S", 1, 1, sizes)
    return f"""kernel requantised({_extents(sizes)}) {{
      in X : u8[{height}, {width}, C] pad 0
      const F : s8[R, S, C, K]
      const A : f32[K]
      local T : s32[H, W, K]
      out Y : u8[H, W, K]
      T[h, w, k] += s32(X[{rows}, {columns}, c]) * s32(F[r, s, c, k])
      Y[h, w, k] = sat[u8](f32(T[h, w, k]) * A[k] * 0.0001 + 100.0)
    }}"""


def _rounded(sizes: Sizes) -> str:
    return f"""kernel rounded({_extents(sizes)}) {{
      in A : bf16[M, K]
      const B : bf16[K, N]
      local T : f32[M, N]
      out C : bf16[M, N]
      T[m, n] += f32(A[m, k]) * f32(B[k, n])
      C[m, n] = bf16(T[m, n])
    }}"""


def _distributed(sizes: Sizes) -> str:
    return f"""kernel distributed({_extents(sizes)}) permit distribute {{
      in X : f32[H, W, C] pad 0
      const F : f32[3, 3, C, K]
      out Y : f32[H, W, K]
      Y[h, w, k] += X[h + r - 1, w + s - 1, c] * F[r, s, c, k]
    }}"""


def _pointwise(sizes: Sizes) -> str:
    return f"""kernel pointwise({_extents(sizes)}) {{
      in X : f32[H, W, C]
      const F : f32[C, K]
      const B : f32[K]
      local T : f32[H, W, K]
      out Y : f32[H, W, K]
      T[h, w, k] += X[h, w, c] * F[c, k]
      Y[h, w, k] = max(T[h, w, k] + B[k], 0)
    }}"""


def _softmax(sizes: Sizes) -> str:
    return f"""kernel softmax({_extents(sizes)}) {{
      in X : f32[R, C]
      local M : f32[R]
      local E : f32[R, C]
      local S : f32[R]
      out Y : f32[R, C]
      M[r] max= X[r, c]
      E[r, c] = exp(X[r, c] - M[r])
      S[r] += E[r, c]
      Y[r, c] = E[r, c] / S[r]
    }}"""


def _layer_norm(sizes: Sizes) -> str:
    return f"""kernel layer_norm({_extents(sizes)}) {{
      in X : f32[T, C]
      const G : f32[C]
      const B : f32[C]
      local S : f32[T]
      local D : f32[T, C]
      local V : f32[T]
      out Y : f32[T, C]
      S[t] += X[t, c]
      D[t, c] = X[t, c] - S[t] / f32(C)
      V[t] += D[t, c] * D[t, c]
      Y[t, c] = D[t, c] * rsqrt(V[t] / f32(C) + 0.00001) * G[c] + B[c]
    }}"""


def _elementwise(sizes: Sizes) -> str:
    return f"""kernel chain({_extents(sizes)}) {{
      in X : f32[P, C]
      in R : f32[P, C]
      const A : f32[C]
      const B : f32[C]
      out Y : f32[P, C]
      Y[p, c] = max(X[p, c] * A[c] + B[c] + R[p, c], 0)
    }}"""


def _extents(sizes: Sizes) -> str:
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())


def _window(outer: str, inner: str, stride: int, pad: int, sizes: Sizes) -> tuple[str, str]:
    """Return how long the input is along a dimension, and the index there."""
    length = max(1, stride * (sizes[outer] - 1) + sizes[inner] - 2 * pad)
    step = f"{stride}*{outer.lower()}" if stride > 1 else outer.lower()
    return str(length), f"{step} + {inner.lower()}" + f" - {pad}" * (pad > 0)


_GEMM = {"M": 13, "N": 35, "K": 18}
_IMAGE = {"H": 5, "W": 9, "C": 18, "K": 17, "R": 3, "S": 3}
_WINDOW = {"R": 5, "S": 5}
_PLANES = {"H": 6, "W": 11, "C": 19, "R": 3, "S": 3}

FAMILIES = (
    Family("gemm_f32", _gemm("f32", "f32", "f32", "", False), _GEMM),
    Family("gemm_f32_const", _gemm("f32", "f32", "f32", "", True), _GEMM),
    Family("gemm_bf16", _gemm("bf16", "bf16", "f32", "f32", True), _GEMM),
    Family("gemm_u8s8", _gemm("u8", "s8", "s32", "s32", True), _GEMM),
    Family("convolution_f32", _convolution(1, 1, "f32", "f32", "f32"), _IMAGE, _WINDOW),
    Family("convolution_f32_stride_2", _convolution(2, 1, "f32", "f32", "f32"), _IMAGE, _WINDOW),
    Family("convolution_u8s8", _convolution(1, 1, "u8", "s8", "s32"), _IMAGE, _WINDOW),
    Family("convolution_bf16_stride_3", _convolution(3, 0, "bf16", "bf16", "f32"), _IMAGE, _WINDOW),
    Family("depthwise", _depthwise(1, 1), _PLANES, _WINDOW),
    Family("depthwise_stride_2", _depthwise(2, 1), _PLANES, _WINDOW),
    Family("depthwise_bf16", _depthwise(1, 1, "bf16", "bf16"), _PLANES, _WINDOW),
    Family("depthwise_u8s8", _depthwise(1, 1, "u8", "s8", "s32"), _PLANES, _WINDOW),
    Family("separable", _separable, {**_PLANES, "K": 17}, _WINDOW),
    Family("requantised", _requantised, _IMAGE, _WINDOW),
    Family("rounded", _rounded, _GEMM),
    Family("distributed", _distributed, {"H": 6, "W": 9, "C": 18, "K": 17}, {"H": 20, "W": 20}),
    Family("pointwise", _pointwise, {"H": 5, "W": 7, "C": 18, "K": 35}),
    Family("softmax", _softmax, {"R": 9, "C": 37}),
    Family("layer_norm", _layer_norm, {"T": 9, "C": 37}),
    Family("elementwise", _elementwise, {"P": 9, "C": 37}),
)
"""All families, by their names."""


def alone() -> Iterator[tuple[Family, dict[str, int]]]:
    """Yield every family with each of its extents alone from 1 to 70."""
    for family in FAMILIES:
        for sizes in family.alone():
            yield family, sizes


def combinations(count: int, seed: int) -> Iterator[tuple[Family, dict[str, int]]]:
    """Yield different random combinations of sizes, families in turn."""
    seen = set()
    for number in range(count):
        family, generator = FAMILIES[number % len(FAMILIES)], random.Random(f"{seed}-{number}")
        sizes = family.random(generator)
        while (family.name, *sizes.values()) in seen:
            sizes = family.random(generator)
        seen.add((family.name, *sizes.values()))
        yield family, sizes
