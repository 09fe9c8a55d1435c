ISAMAP_COPY void reversal_copy0(
    int32_t *restrict p_row,
    const int32_t *restrict p_X,
    int64_t n_N,
    ptrdiff_t i_i)
{
    for (int64_t i_j = 0; i_j < n_N; ++i_j) {
        p_row[i_j] = p_X[n_N * i_i + n_N - i_j - 1];
    }
}

ISAMAP_COPY void reversal_copy1(
    int32_t *restrict p_Y,
    const int32_t *restrict p_row,
    int64_t n_N,
    ptrdiff_t i_i)
{
    memcpy(p_Y + n_N * i_i, p_row,
           (size_t)n_N * sizeof(int32_t));
}

ISAMAP_EXPORTED size_t reversal_workspace(int64_t n_N, int threads)
{
    if (threads < 1) threads = 1;
    size_t bytes = 64;  /* to align the start */
    bytes += (size_t)threads * isamap_room(n_N * 4, 64);
    return bytes;
}

/*
 * kernel reversal(N) {
 *   in X : s32[9, N]
 *   out Y : s32[9, N]
 * }
 */
static void reversal_part(
    const int32_t *restrict p_X,
    int32_t *restrict p_Y,
    int64_t n_N,
    void *workspace,
    uint64_t *loops,
    int thread,
    int threads)
{
    char *room = (char *)(((uintptr_t)workspace + 63) & ~(uintptr_t)63);
    char *const all_p_row = room;
    const size_t room_p_row = isamap_room(n_N * 4, 64);
    int32_t *const p_row = (int32_t *)(all_p_row + (size_t)thread * room_p_row);
    for (struct isamap_turn turn_i = isamap_at(9, loops, thread, threads);
         isamap_take(&turn_i);)
    for (ptrdiff_t i_i = turn_i.from; i_i < turn_i.past; ++i_i) {
        reversal_copy0(p_row, p_X, n_N, i_i);
        reversal_copy1(p_Y, p_row, n_N, i_i);
    }
}

struct reversal_call {
    const int32_t *p_X;
    int32_t *p_Y;
    int64_t n_N;
    void *workspace;
};

static void reversal_share(const void *given, uint64_t *loops, int thread, int threads)
{
    const struct reversal_call *const call = given;
    reversal_part(call->p_X, call->p_Y, call->n_N, call->workspace, loops, thread, threads);
}

ISAMAP_EXPORTED int reversal(
    const int32_t *restrict p_X,
    int32_t *restrict p_Y,
    int64_t n_N,
    void *workspace,
    int threads)
{
    if (n_N < 1) return -1;
    if (workspace == NULL) return -2;
    if (threads < 1) threads = 1;
    const struct reversal_call call = {p_X, p_Y, n_N, workspace};
    isamap_together(reversal_share, &call, threads);
    return 0;
}
