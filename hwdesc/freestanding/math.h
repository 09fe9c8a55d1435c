/* What descriptions need of <math.h>, where there is no C library: what compilers have themselves. */
#pragma once

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define signbit(x) __builtin_signbit(x)

double sqrt(double x);
double floor(double x);
double ceil(double x);
double trunc(double x);
double round(double x);
double fma(double x, double y, double z);
double exp(double x);
double log(double x);
float sqrtf(float x);
float fmaf(float x, float y, float z);

/* Without a library a compiler does not take the names for its own functions, many of them one instruction. */
#define fabs(x) __builtin_fabs(x)
#define copysign(x, sign) __builtin_copysign(x, sign)
#define sqrt(x) __builtin_sqrt(x)
#define floor(x) __builtin_floor(x)
#define ceil(x) __builtin_ceil(x)
#define trunc(x) __builtin_trunc(x)
#define fma(x, y, z) __builtin_fma(x, y, z)
#define fabsf(x) __builtin_fabsf(x)
#define copysignf(x, sign) __builtin_copysignf(x, sign)
#define sqrtf(x) __builtin_sqrtf(x)
#define fmaf(x, y, z) __builtin_fmaf(x, y, z)

/* Ties to even, as additions have them. */
static inline double isamap_rint(double x)
{
    const double size = fabs(x);
    return size < 0x1p52 ? copysign((size + 0x1p52) - 0x1p52, x) : x;
}
#define rint(x) isamap_rint(x)

/* Near zero the quotient of the series of sinh and cosh, elsewhere by exp: within a few units. */
static inline double isamap_tanh(double x)
{
    const double size = fabs(x), square = x * x;
    double sinh = 0, cosh = 0;
    if (!(size < 0.6)) return copysign(isnan(x) ? x : 1 - 2 / (exp(2 * size) + 1), x);
    for (int n = 20; n > 1; n -= 2) {
        sinh = (1 + sinh) * square / (n * (n + 1));
        cosh = (1 + cosh) * square / (n * (n - 1));
    }
    return x + x * ((sinh - cosh) / (1 + cosh));
}
#define tanh(x) isamap_tanh(x)

/* The series of the error function, and from 1.25 on the continued fraction of its complement. */
static inline double isamap_erf(double x)
{
    const double size = fabs(x), square = x * x;
    double sum = 0, rest = size;
    if (isnan(x)) return x;
    if (size > 6) return copysign(1, x);
    if (size < 1.25) {
        for (int n = 24; n >= 0; --n) sum = 1.0 / (2 * n + 1) - square / (n + 1) * sum;
        return 0x1.20dd750429b6dp+0 * x * sum; /* 2 / sqrt(pi) */
    }
    for (int n = 160; n > 0; --n) rest = size + n / (2 * rest);
    return copysign(1 - exp(-square) / (rest * 0x1.c5bf891b4ef6ap+0), x); /* sqrt(pi) */
}
#define erf(x) isamap_erf(x)
