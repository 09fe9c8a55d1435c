/* Vectors of a compute core: four numbers, of 64 bits or of 32. */
#ifndef ISAMAP_SUNWAY_SIMD_H
#define ISAMAP_SUNWAY_SIMD_H

typedef double doublev4 __attribute__((vector_size(32)));
typedef float floatv4 __attribute__((vector_size(16)));

#define simd_load(value, from) ((value) = *(const __typeof__(value) *)(from))
#define simd_store(value, to) (*(__typeof__((value) + (value)) *)(to) = (value))
#define simd_vmad(a, b, c) ((a) * (b) + (c))
#define simd_vmad_s simd_vmad

#endif
