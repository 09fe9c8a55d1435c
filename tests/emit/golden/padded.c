ISAMAP_COPY void padded_copy0(uint16_t *restrict p_Y, const uint16_t *restrict p_X)
{
    for (int64_t i_h = 0; i_h < 7; ++i_h) {
        const int inside1 = i_h >= 1 && 5 >= i_h;
        int64_t first = 0;
        int64_t past = inside1 ? 9 : 0;
        first = isamap_max(first, 2);
        past = isamap_min(past, 7);
        past = isamap_max(past, 0);
        first = isamap_min(first, past);
        for (int64_t i_w = 0; i_w < first; ++i_w)
            p_Y[i_h * 9 + i_w] = 0x3f00;
        if (past > first)
            memcpy(p_Y + i_h * 9 + first, p_X + i_h * 5 + first - 7,
                   (size_t)(past - first) * sizeof(uint16_t));
        for (int64_t i_w = past; i_w < 9; ++i_w)
            p_Y[i_h * 9 + i_w] = 0x3f00;
    }
}

size_t padded_workspace(int threads)
{
    (void)threads;
    return 0;
}

int padded(const uint16_t *restrict p_X, uint16_t *restrict p_Y, void *workspace, int threads)
{
    (void)workspace;
    (void)threads;
    padded_copy0(p_Y, p_X);
    return 0;
}
