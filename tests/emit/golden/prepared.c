ISAMAP_COPY void prepared_copy0(int32_t *restrict p_row, const int32_t *restrict p_W, int64_t n_N)
{
    memcpy(p_row, p_W,
           (size_t)n_N * sizeof(int32_t));
}

ISAMAP_COPY void prepared_copy1(
    int32_t *restrict p_turned,
    const int32_t *restrict p_row,
    int64_t n_N)
{
    for (int64_t i_j = 0; i_j < n_N; ++i_j) {
        p_turned[i_j] = p_row[n_N - i_j - 1];
    }
}

ISAMAP_COPY void prepared_copy2(
    int32_t *restrict p_stage,
    const int32_t *restrict p_turned,
    int64_t n_N)
{
    memcpy(p_stage, p_turned,
           (size_t)n_N * sizeof(int32_t));
}

ISAMAP_COPY void prepared_copy3(
    int32_t *restrict p_Y,
    const int32_t *restrict p_stage,
    int64_t n_M,
    int64_t n_N)
{
    for (int64_t i_m = 0; i_m < n_M; ++i_m) {
        memcpy(p_Y + n_N * i_m, p_stage,
               (size_t)n_N * sizeof(int32_t));
    }
}

ISAMAP_COPY void prepared_copy4(
    int32_t *restrict p_Z,
    const int32_t *restrict p_V,
    int64_t n_M,
    int64_t n_N)
{
    for (int64_t i_m = 0; i_m < n_M; ++i_m) {
        memcpy(p_Z + n_N * i_m, p_V,
               (size_t)n_N * sizeof(int32_t));
    }
}

ISAMAP_EXPORTED size_t prepared_prepared(int64_t n_N)
{
    size_t bytes = 64;  /* to align the start */
    bytes += isamap_room(n_N * 4, 64);
    return bytes;
}

ISAMAP_EXPORTED size_t prepared_prepare_workspace(int64_t n_N, int threads)
{
    (void)threads;
    size_t bytes = 64;  /* to align the start */
    bytes += isamap_room(n_N * 4, 64);
    return bytes;
}

ISAMAP_EXPORTED int prepared_prepare(
    const int32_t *restrict p_W,
    int64_t n_N,
    void *prepared,
    void *workspace,
    int threads)
{
    (void)threads;
    if (n_N < 1) return -1;
    if (prepared == NULL) return -3;
    if (workspace == NULL) return -2;
    char *kept = (char *)(((uintptr_t)prepared + 63) & ~(uintptr_t)63);
    int32_t *const p_turned = (int32_t *)kept;
    char *room = (char *)(((uintptr_t)workspace + 63) & ~(uintptr_t)63);
    int32_t *const p_row = (int32_t *)room;
    prepared_copy0(p_row, p_W, n_N);
    prepared_copy1(p_turned, p_row, n_N);
    return 0;
}

ISAMAP_EXPORTED size_t prepared_workspace(int64_t n_M, int64_t n_N, int threads)
{
    (void)n_M;
    (void)threads;
    size_t bytes = 64;  /* to align the start */
    bytes += isamap_room(n_N * 4, 64);
    return bytes;
}

/*
 * kernel prepared(M, N) {
 *   const W : s32[N]
 *   const V : s32[N]
 *   in X : s32[M]
 *   out Y : s32[M, N]
 *   out Z : s32[M, N]
 * }
 */
ISAMAP_EXPORTED int prepared(
    const int32_t *restrict p_V,
    const int32_t *restrict p_X,
    int32_t *restrict p_Y,
    int32_t *restrict p_Z,
    int64_t n_M,
    int64_t n_N,
    const void *prepared,
    void *workspace,
    int threads)
{
    (void)p_X;
    (void)threads;
    if (n_M < 1) return -1;
    if (n_N < 1) return -1;
    if (prepared == NULL) return -3;
    if (workspace == NULL) return -2;
    const char *kept = (const char *)(((uintptr_t)prepared + 63) & ~(uintptr_t)63);
    const int32_t *const p_turned = (const int32_t *)kept;
    char *room = (char *)(((uintptr_t)workspace + 63) & ~(uintptr_t)63);
    int32_t *const p_stage = (int32_t *)room;
    prepared_copy2(p_stage, p_turned, n_N);
    prepared_copy3(p_Y, p_stage, n_M, n_N);
    prepared_copy4(p_Z, p_V, n_M, n_N);
    return 0;
}
