#ifndef ISAMAP_GEMM_H
#define ISAMAP_GEMM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kernel gemm.

   p_A: A, s8[256, 1024], read.
   p_B: B, u8[1024, 1024], read.
   p_Y: Y, s32[256, 1024], written.
   workspace: at least as many bytes as gemm_workspace tells, of any alignment and
     content; NULL if it tells 0.  One call at a time may use it.
   threads: how many threads compute, 1 or more.

   Arrays are dense, the last dimension contiguous, and must not overlap.
   Returns 0; -1 if an extent is below 1; -2 if the workspace is missing;
   -4 if the machine does not permit to use registers that it needs.
*/
int gemm(const int8_t *p_A, const uint8_t *p_B, int32_t *p_Y, void *workspace, int threads);

size_t gemm_workspace(int threads);

#ifdef __cplusplus
}
#endif

#endif
