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
double tanh(double x);
double erf(double x);
float sqrtf(float x);
float fmaf(float x, float y, float z);

/* Without a C library a compiler takes the names for functions like any other. */
#define fabs(x) __builtin_fabs(x)
#define fabsf(x) __builtin_fabsf(x)
#define copysign(x, sign) __builtin_copysign(x, sign)
#define copysignf(x, sign) __builtin_copysignf(x, sign)
#define sqrt(x) __builtin_sqrt(x)
#define sqrtf(x) __builtin_sqrtf(x)
#define floor(x) __builtin_floor(x)
#define ceil(x) __builtin_ceil(x)
#define trunc(x) __builtin_trunc(x)
#define fma(x, y, z) __builtin_fma(x, y, z)
#define fmaf(x, y, z) __builtin_fmaf(x, y, z)

/* Ties to even, as additions have them. */
static inline double isamap_rint(double x)
{
    const double size = fabs(x);
    return size < 0x1p52 ? copysign((size + 0x1p52) - 0x1p52, x) : x;
}
#define rint(x) isamap_rint(x)
