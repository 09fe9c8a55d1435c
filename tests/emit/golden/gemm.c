ISAMAP_COPY void gemm_copy0(
    float *restrict p_packed,
    const float *restrict p_B,
    int64_t n_N,
    int64_t n_K)
{
    for (int64_t i_j = 0; i_j < ((n_N + 15) / 16); ++i_j) {
        for (int64_t i_k = 0; i_k < n_K; ++i_k) {
            int64_t past_i = 16;
            past_i = isamap_min(past_i, n_N - i_j * 16);
            past_i = isamap_max(past_i, 0);
            if (past_i == 16) {
                memcpy(p_packed + n_K * i_j * 16 + i_k * 16, p_B + n_N * i_k + i_j * 16,
                       (size_t)16 * sizeof(float));
            } else {
                memcpy(p_packed + n_K * i_j * 16 + i_k * 16, p_B + n_N * i_k + i_j * 16,
                       (size_t)past_i * sizeof(float));
                for (ptrdiff_t i_i = past_i; i_i < 16; ++i_i) {
                    p_packed[n_K * i_j * 16 + i_i + i_k * 16] = 0.0f;
                }
            }
        }
    }
}

ISAMAP_EXPORTED size_t gemm_workspace(int64_t n_M, int64_t n_N, int64_t n_K, int threads)
{
    (void)n_M;
    (void)threads;
    size_t bytes = 64;  /* to align the start */
    bytes += isamap_room((n_K * ((n_N + 15) / 16) * 16) * 4, 64);
    return bytes;
}

/*
 * kernel gemm(M, N, K) {
 *   in A : f32[M, K]
 *   in B : f32[K, N]
 *   out C : f32[M, N]
 * }
 */
static void gemm_part(
    const float *restrict p_A,
    const float *restrict p_B,
    float *restrict p_C,
    int64_t n_M,
    int64_t n_N,
    int64_t n_K,
    void *workspace,
    uint64_t *loops,
    int thread,
    int threads)
{
    char *room = (char *)(((uintptr_t)workspace + 63) & ~(uintptr_t)63);
    float *const p_packed = (float *)room;
    if (thread == 0) {
        gemm_copy0(p_packed, p_B, n_N, n_K);
    }
    isamap_meet(threads);
    for (struct isamap_turn turn_m = isamap_at(n_M, loops, thread, threads);
         isamap_take(&turn_m);)
    for (int64_t i_m = turn_m.from; i_m < turn_m.past; ++i_m) {
        for (int64_t i_j = 0; i_j < ((n_N + 15) / 16); ++i_j) {
            v16 r_acc, r_a, r_b;
            {
                for (int lane = 0; lane < 16; ++lane) r_acc[lane] = 0.0f;
            }
            for (int64_t i_k = 0; i_k < n_K; ++i_k) {
                {
                    const float one = *(p_A + n_K * i_m + i_k);
                    r_a = (v16){one, one, one, one, one, one, one, one,
                        one, one, one, one, one, one, one, one};
                }
                r_b = *(const v16u *)(p_packed + n_K * i_j * 16 + i_k * 16);
                r_acc += r_a * r_b;
            }
            if (n_N >= i_j * 16 + 16) {
                *(v16u *)(p_C + n_N * i_m + i_j * 16) = r_acc;
            } else {
                v16_store((p_C + n_N * i_m + i_j * 16), r_acc, (n_N - i_j * 16));
            }
        }
    }
}

struct gemm_call {
    const float *p_A;
    const float *p_B;
    float *p_C;
    int64_t n_M;
    int64_t n_N;
    int64_t n_K;
    void *workspace;
};

static void gemm_share(const void *given, uint64_t *loops, int thread, int threads)
{
    const struct gemm_call *const call = given;
    gemm_part(
        call->p_A, call->p_B, call->p_C, call->n_M, call->n_N, call->n_K, call->workspace,
        loops, thread, threads);
}

ISAMAP_EXPORTED int gemm(
    const float *restrict p_A,
    const float *restrict p_B,
    float *restrict p_C,
    int64_t n_M,
    int64_t n_N,
    int64_t n_K,
    void *workspace,
    int threads)
{
    if (n_M < 1) return -1;
    if (n_N < 1) return -1;
    if (n_K < 1) return -1;
    if (workspace == NULL) return -2;
    if (threads < 1) threads = 1;
    const struct gemm_call call = {p_A, p_B, p_C, n_M, n_N, n_K, workspace};
    isamap_together(gemm_share, &call, threads);
    return 0;
}
