ISAMAP_COPY void padded_copy0(uint16_t *restrict p_Y, const uint16_t *restrict p_X)
{
    int64_t first_h = 0;
    int64_t past_h = 7;
    first_h = isamap_max(first_h, 1);
    past_h = isamap_min(past_h, 6);
    past_h = isamap_max(past_h, 0);
    first_h = isamap_min(first_h, past_h);
    for (ptrdiff_t i_h = 0; i_h < first_h; ++i_h) {
        for (ptrdiff_t i_w = 0; i_w < 9; ++i_w) {
            p_Y[i_h * 9 + i_w] = 0x3f00;
        }
    }
    for (ptrdiff_t i_h = first_h; i_h < past_h; ++i_h) {
        int64_t first_w = 0;
        int64_t past_w = 9;
        first_w = isamap_max(first_w, 2);
        past_w = isamap_min(past_w, 7);
        past_w = isamap_max(past_w, 0);
        first_w = isamap_min(first_w, past_w);
        for (ptrdiff_t i_w = 0; i_w < first_w; ++i_w) {
            p_Y[i_h * 9 + i_w] = 0x3f00;
        }
        memcpy(p_Y + i_h * 9 + first_w, p_X + i_h * 5 + first_w - 7,
               (size_t)(past_w - first_w) * sizeof(uint16_t));
        for (ptrdiff_t i_w = past_w; i_w < 9; ++i_w) {
            p_Y[i_h * 9 + i_w] = 0x3f00;
        }
    }
    for (ptrdiff_t i_h = past_h; i_h < 7; ++i_h) {
        for (ptrdiff_t i_w = 0; i_w < 9; ++i_w) {
            p_Y[i_h * 9 + i_w] = 0x3f00;
        }
    }
}

size_t padded_workspace(int threads)
{
    (void)threads;
    return 0;
}

/*
 * kernel padded {
 *   in X : bf16[5, 5]
 *   out Y : bf16[7, 9]
 * }
 */
int padded(const uint16_t *restrict p_X, uint16_t *restrict p_Y, void *workspace, int threads)
{
    (void)workspace;
    (void)threads;
    padded_copy0(p_Y, p_X);
    return 0;
}
