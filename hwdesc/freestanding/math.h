/* What descriptions need of <math.h>, where there is no C library: what compilers have themselves. */
#pragma once

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define signbit(x) __builtin_signbit(x)

double fabs(double x);
double copysign(double x, double sign);
double sqrt(double x);
double floor(double x);
double ceil(double x);
double trunc(double x);
double round(double x);
double rint(double x);
double fma(double x, double y, double z);
double exp(double x);
double log(double x);
double tanh(double x);
double erf(double x);
float fabsf(float x);
float copysignf(float x, float sign);
float sqrtf(float x);
float fmaf(float x, float y, float z);

/* Without a library a compiler does not take the names for its own functions, many of them one instruction. */
#define fabs(x) __builtin_fabs(x)
#define copysign(x, sign) __builtin_copysign(x, sign)
#define sqrt(x) __builtin_sqrt(x)
#define floor(x) __builtin_floor(x)
#define ceil(x) __builtin_ceil(x)
#define trunc(x) __builtin_trunc(x)
#define rint(x) __builtin_rint(x)
#define fma(x, y, z) __builtin_fma(x, y, z)
#define fabsf(x) __builtin_fabsf(x)
#define copysignf(x, sign) __builtin_copysignf(x, sign)
#define sqrtf(x) __builtin_sqrtf(x)
#define fmaf(x, y, z) __builtin_fmaf(x, y, z)
