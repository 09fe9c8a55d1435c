ISAMAP_COPY void mm_copy0(uint16_t *restrict p_B_packed, const uint16_t *restrict p_B)
{
    for (ptrdiff_t i_B_packed_n = 0; i_B_packed_n < 1; ++i_B_packed_n) {
        for (ptrdiff_t i_B_packed_k = 0; i_B_packed_k < 1; ++i_B_packed_k) {
            for (ptrdiff_t i_B_packed_n_tile = 0; i_B_packed_n_tile < 2; ++i_B_packed_n_tile) {
                for (ptrdiff_t i_B_packed_k_tile = 0; i_B_packed_k_tile < 2; ++i_B_packed_k_tile) {
                    for (ptrdiff_t i_B_packed_k_in = 0; i_B_packed_k_in < 16; ++i_B_packed_k_in) {
                        for (ptrdiff_t i_B_packed_n_in = 0; i_B_packed_n_in < 16; ++i_B_packed_n_in) {
                            for (ptrdiff_t i_B_packed_k_in_2 = 0; i_B_packed_k_in_2 < 2; ++i_B_packed_k_in_2) {
                                p_B_packed[i_B_packed_k * 2048 + i_B_packed_k_in * 32 + i_B_packed_k_in_2 + i_B_packed_k_tile * 512 + i_B_packed_n * 2048 + i_B_packed_n_in * 2 + i_B_packed_n_tile * 1024] = p_B[i_B_packed_k * 2048 + i_B_packed_k_in * 64 + i_B_packed_k_in_2 * 32 + i_B_packed_k_tile * 1024 + i_B_packed_n * 32 + i_B_packed_n_in + i_B_packed_n_tile * 16];
                            }
                        }
                    }
                }
            }
        }
    }
}

ISAMAP_EXPORTED size_t mm_prepared(void)
{
    size_t bytes = 64;  /* to align the start */
    bytes += isamap_room(2048 * 2, 64);
    return bytes;
}

ISAMAP_EXPORTED size_t mm_prepare_workspace(int threads)
{
    (void)threads;
    return 0;
}

ISAMAP_EXPORTED int mm_prepare(const uint16_t *restrict p_B, void *prepared, void *workspace, int threads)
{
    (void)workspace;
    (void)threads;
    if (prepared == NULL) return -3;
    char *kept = (char *)(((uintptr_t)prepared + 63) & ~(uintptr_t)63);
    uint16_t *const p_B_packed = (uint16_t *)kept;
    mm_copy0(p_B_packed, p_B);
    return 0;
}

ISAMAP_EXPORTED size_t mm_workspace(int threads)
{
    (void)threads;
    return 0;
}

/*
 * kernel mm(M = 40, N = 32, K = 64) {
 *   in A : bf16[40, 64]
 *   const B : bf16[64, 32]
 *   out C : f32[40, 32]
 *   C[m, n] += f32(A[m, k]) * f32(B[k, n])
 * }
 */
ISAMAP_EXPORTED int mm(
    const uint16_t *restrict p_A,
    float *restrict p_C,
    const void *prepared,
    void *workspace,
    int threads)
{
    (void)workspace;
    (void)threads;
    if (prepared == NULL) return -3;
    if (!(isamap_tiles_permitted())) return -4;
    const char *kept = (const char *)(((uintptr_t)prepared + 63) & ~(uintptr_t)63);
    const uint16_t *const p_B_packed = (const uint16_t *)kept;
    isamap_tiles_begin();
    for (ptrdiff_t i_m_0 = 0; i_m_0 + 1 < 2; i_m_0 += 2) {
        {
            isamap_tile_set_f32(0, 0.0f);
            isamap_tile_set_f32(1, 0.0f);
            {
                isamap_tile_load(2, (p_A + i_m_0 * 1024), 2 * 0, 2 * 64);
                isamap_tile_load(3, p_B_packed, 2 * 0, 2 * 32);
                isamap_tile_multiply(tdpbf16ps, 0, 2, 3);
                isamap_tile_load(4, p_B_packed, 2 * 1024, 2 * 32);
                isamap_tile_multiply(tdpbf16ps, 1, 2, 4);
                isamap_tile_load(5, (p_A + i_m_0 * 1024), 2 * 32, 2 * 64);
                isamap_tile_load(6, p_B_packed, 2 * 512, 2 * 32);
                isamap_tile_multiply(tdpbf16ps, 0, 5, 6);
                isamap_tile_load(7, p_B_packed, 2 * 1536, 2 * 32);
                isamap_tile_multiply(tdpbf16ps, 1, 5, 7);
            }
            isamap_tile_store(0, (p_C + i_m_0 * 512), 4 * 0, 4 * 32);
            isamap_tile_store(1, (p_C + i_m_0 * 512), 4 * 16, 4 * 32);
        }
        {
            isamap_tile_set_f32(0, 0.0f);
            isamap_tile_set_f32(1, 0.0f);
            {
                isamap_tile_load(2, (p_A + i_m_0 * 1024), 2 * 1024, 2 * 64);
                isamap_tile_load(3, p_B_packed, 2 * 0, 2 * 32);
                isamap_tile_multiply(tdpbf16ps, 0, 2, 3);
                isamap_tile_load(4, p_B_packed, 2 * 1024, 2 * 32);
                isamap_tile_multiply(tdpbf16ps, 1, 2, 4);
                isamap_tile_load(5, (p_A + i_m_0 * 1024), 2 * 1056, 2 * 64);
                isamap_tile_load(6, p_B_packed, 2 * 512, 2 * 32);
                isamap_tile_multiply(tdpbf16ps, 0, 5, 6);
                isamap_tile_load(7, p_B_packed, 2 * 1536, 2 * 32);
                isamap_tile_multiply(tdpbf16ps, 1, 5, 7);
            }
            isamap_tile_store(0, (p_C + i_m_0 * 512), 4 * 512, 4 * 32);
            isamap_tile_store(1, (p_C + i_m_0 * 512), 4 * 528, 4 * 32);
        }
    }
    {
        isamap_tile_set_f32(3, 0.0f);
        isamap_tile_set_f32(2, 0.0f);
        {
            isamap_tile_load(4, p_A, 2 * 1536, 2 * 64);
            isamap_tile_load(6, p_B_packed, 2 * 0, 2 * 32);
            isamap_tile_multiply(tdpbf16ps, 3, 4, 6);
            isamap_tile_load(5, p_B_packed, 2 * 1024, 2 * 32);
            isamap_tile_multiply(tdpbf16ps, 2, 4, 5);
            isamap_tile_load(7, p_A, 2 * 1568, 2 * 64);
            isamap_tile_load(0, p_B_packed, 2 * 512, 2 * 32);
            isamap_tile_multiply(tdpbf16ps, 3, 7, 0);
            isamap_tile_load(1, p_B_packed, 2 * 1536, 2 * 32);
            isamap_tile_multiply(tdpbf16ps, 2, 7, 1);
        }
        isamap_tile_store(3, p_C, 4 * 768, 4 * 32);
        isamap_tile_store(2, p_C, 4 * 784, 4 * 32);
    }
    isamap_tiles_end();
    return 0;
}
