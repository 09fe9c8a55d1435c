#ifndef ISAMAP_GEMM_H
#define ISAMAP_GEMM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kernel gemm.

   p_A: A, f32[M, K], read.
   p_B: B, f32[K, N], read.
   p_C: C, f32[M, N], written.
   n_M: the extent M.
   n_N: the extent N.
   n_K: the extent K.
   workspace: at least as many bytes as gemm_workspace tells, of any alignment and
     content; NULL if it tells 0.  One call at a time may use it.
   threads: how many threads compute, 1 or more.

   Arrays are dense, the last dimension contiguous, and must not overlap.
   Returns 0; -1 if an extent is below 1; -2 if the workspace is missing.
*/
int gemm(
    const float *p_A,
    const float *p_B,
    float *p_C,
    int64_t n_M,
    int64_t n_N,
    int64_t n_K,
    void *workspace,
    int threads);

size_t gemm_workspace(int64_t n_M, int64_t n_N, int64_t n_K, int threads);

#ifdef __cplusplus
}
#endif

#endif
