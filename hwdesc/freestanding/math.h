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
float tanhf(float x);
float erff(float x);
