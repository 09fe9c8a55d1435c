/* Functions of <math.h> that compilers' own libraries lack, from arithmetic and exp.

   Errors of doubles are less than 1.5 units of the last place where those of exp are less than one
   (the largest found are 0.96 of tanh and 1.23 of erf); floats are rounded from doubles, with errors
   of less than 0.51. */
#pragma once
#include <math.h>

/* Polynomials, the constant first. */
static double isamap_polynomial(const double *c, int degree, double x)
{
    double value = c[degree];
    for (int i = degree - 1; i >= 0; --i) value = value * x + c[i];
    return value;
}

/* Up to 1 Lambert's fraction x / (1 + z / (3 + z / (5 + ... + z / 19))) with z = x * x, as a quotient
   of polynomials that is taken from x; beyond, from e^2x, of which ever less matters. */
double tanh(double x)
{
    static const double over[] = {218243025, 16081065, 289575, 1430, 1};
    static const double under[] = {654729075, 310134825, 18918900, 315315, 1485, 1};
    const double size = __builtin_fabs(x);
    if (size <= 1) {
        const double z = x * x;
        const double less = z * isamap_polynomial(over, 4, z) / isamap_polynomial(under, 5, z);
        return __builtin_copysign(size - size * less, x);
    }
    if (size > 22) return __builtin_copysign(1, x);
    return __builtin_copysign(1 - 2 / (exp(2 * size) + 1), x); /* also what is no number */
}

/* Up to 1 an odd polynomial, interpolated at Chebyshev's points; beyond, 1 less erfc(x), which is
   e^-xx times a polynomial in (x - 2) / (x + 2). */
double erf(double x)
{
    static const double near[] = {
        0x1.06eba8214db69p-3, -0x1.812746b0379e6p-2, 0x1.ce2f21a042b30p-4, -0x1.b82ce31284e00p-6,
        0x1.565bcd0dbaa38p-8, -0x1.c02db3dac435fp-11, 0x1.f9a321d5b8e1ep-14,
        -0x1.f4d1e3183f7aep-17, 0x1.b9df224ca4b97p-20, -0x1.5f1ecb6f0764cp-23,
        0x1.f7b4bf3b13964p-27, -0x1.389d4f2641625p-30, 0x1.05ffd737fb32ep-34};
    static const double far[] = {
        0x1.058671b52c776p-2, -0x1.b57034efd3f69p-2, 0x1.eeea7dc8a7932p-3, -0x1.437f0b68c2dc0p-4,
        0x1.e9471595c0b9dp-9, 0x1.ca95ed5c92a4bp-8, -0x1.bc25a2a5685b8p-11, -0x1.016b61e9c90a9p-10,
        0x1.6d5bf00483674p-15, 0x1.6dac8e32716eep-13, 0x1.ce18d5b499621p-16,
        -0x1.cfd845cfda3f9p-16, -0x1.d8072f8b2af1ep-17, 0x1.e89749bb276c3p-20,
        0x1.06de90fce20e3p-18};
    const double size = __builtin_fabs(x);
    if (size <= 1) return x + x * isamap_polynomial(near, 12, x * x);
    if (size > 6) return __builtin_copysign(1, x);
    const double rest = exp(-size * size) * isamap_polynomial(far, 14, (size - 2) / (size + 2));
    return __builtin_copysign(1 - rest, x);
}

float tanhf(float x)
{
    return (float)tanh(x);
}

float erff(float x)
{
    return (float)erf(x);
}
