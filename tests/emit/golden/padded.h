#ifndef ISAMAP_PADDED_H
#define ISAMAP_PADDED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kernel padded.

   p_X: X, bf16[5, 5], read.
   p_Y: Y, bf16[7, 9], written.
   workspace: at least as many bytes as padded_workspace tells, of any alignment and
     content; NULL if it tells 0.  One call at a time may use it.
   threads: how many threads compute, 1 or more.

   Arrays are dense, the last dimension contiguous, and must not overlap.
   Returns 0; -1 if an extent is below 1; -2 if the workspace is missing.
*/
int padded(const uint16_t *p_X, uint16_t *p_Y, void *workspace, int threads);

size_t padded_workspace(int threads);

#ifdef __cplusplus
}
#endif

#endif
