#ifndef ISAMAP_REVERSAL_H
#define ISAMAP_REVERSAL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kernel reversal.

   p_X: X, s32[9, N], read.
   p_Y: Y, s32[9, N], written.
   n_N: the extent N.
   workspace: at least as many bytes as reversal_workspace tells, of any alignment and
     content; NULL if it tells 0.  One call at a time may use it.
   threads: how many threads compute, 1 or more.

   Arrays are dense, the last dimension contiguous, and must not overlap.
   Returns 0; -1 if an extent is below 1; -2 if the workspace is missing.
*/
int reversal(const int32_t *p_X, int32_t *p_Y, int64_t n_N, void *workspace, int threads);

size_t reversal_workspace(int64_t n_N, int threads);

#ifdef __cplusplus
}
#endif

#endif
