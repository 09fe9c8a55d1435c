#ifndef ISAMAP_PREPARED_H
#define ISAMAP_PREPARED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Prepares constants, once for all calls with them and with these extents.

   p_W: W, s32[N], read.
   n_N: the extent N.
   prepared: receives as many bytes as prepared_prepared tells, at any address.
   workspace: as many bytes as prepared_prepare_workspace tells, needed for this call
     alone; NULL if it tells 0.
   threads: how many threads compute, 1 or more.

   Returns what the kernel's function returns.
*/
int prepared_prepare(const int32_t *p_W, int64_t n_N, void *prepared, void *workspace, int threads);

size_t prepared_prepared(int64_t n_N);

size_t prepared_prepare_workspace(int64_t n_N, int threads);

/* Kernel prepared.

   p_V: V, s32[N], read.
   p_X: X, s32[M], read.
   p_Y: Y, s32[M, N], written.
   p_Z: Z, s32[M, N], written.
   n_M: the extent M.
   n_N: the extent N.
   prepared: what prepared_prepare wrote, where it wrote it.  Several calls may
     read it at once.
   workspace: at least as many bytes as prepared_workspace tells, of any alignment and
     content; NULL if it tells 0.  One call at a time may use it.
   threads: how many threads compute, 1 or more.

   Arrays are dense, the last dimension contiguous, and must not overlap.
   Returns 0; -1 if an extent is below 1; -2 if the workspace is missing, -3 if what was prepared is.
*/
int prepared(
    const int32_t *p_V,
    const int32_t *p_X,
    int32_t *p_Y,
    int32_t *p_Z,
    int64_t n_M,
    int64_t n_N,
    const void *prepared,
    void *workspace,
    int threads);

size_t prepared_workspace(int64_t n_M, int64_t n_N, int threads);

#ifdef __cplusplus
}
#endif

#endif
