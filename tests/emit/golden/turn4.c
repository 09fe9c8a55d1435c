#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define ISAMAP_SHUFFLE __builtin_shufflevector
#endif
#endif

#if defined(ISAMAP_SHUFFLE)
typedef uint32_t isamap_units4 __attribute__((vector_size(16)));
static inline void isamap_block4(char *to, const int64_t *at, const char *from,
                                int64_t pitch)
{
    isamap_units4 r0_0, r0_1, r0_2, r0_3;
    memcpy(&r0_0, from + 0 * pitch, 16);
    memcpy(&r0_1, from + 1 * pitch, 16);
    memcpy(&r0_2, from + 2 * pitch, 16);
    memcpy(&r0_3, from + 3 * pitch, 16);
    isamap_units4 r1_0 = ISAMAP_SHUFFLE(r0_0, r0_2, 0, 4, 1, 5);
    isamap_units4 r1_1 = ISAMAP_SHUFFLE(r0_0, r0_2, 2, 6, 3, 7);
    isamap_units4 r1_2 = ISAMAP_SHUFFLE(r0_1, r0_3, 0, 4, 1, 5);
    isamap_units4 r1_3 = ISAMAP_SHUFFLE(r0_1, r0_3, 2, 6, 3, 7);
    isamap_units4 r2_0 = ISAMAP_SHUFFLE(r1_0, r1_2, 0, 4, 1, 5);
    isamap_units4 r2_1 = ISAMAP_SHUFFLE(r1_0, r1_2, 2, 6, 3, 7);
    isamap_units4 r2_2 = ISAMAP_SHUFFLE(r1_1, r1_3, 0, 4, 1, 5);
    isamap_units4 r2_3 = ISAMAP_SHUFFLE(r1_1, r1_3, 2, 6, 3, 7);
    memcpy(to + at[0], &r2_0, 16);
    memcpy(to + at[1], &r2_1, 16);
    memcpy(to + at[2], &r2_2, 16);
    memcpy(to + at[3], &r2_3, 16);
}
#endif

/* Columns of units of 4 bytes become rows; rows of `from` begin `pitch` bytes apart.  Each
   `piece` of columns begins `step` bytes apart in `to`, its rows where `lines` says. */
ISAMAP_COPY void isamap_turn4(char *restrict to, int64_t step, int64_t piece,
                         const int64_t *lines, const char *restrict from, int64_t pitch,
                         int64_t rows, int64_t columns)
{
    int64_t done = 0;
#if defined(ISAMAP_SHUFFLE)
    if (rows >= 4 && columns / piece * piece >= 4) {
        int64_t at[4], pieces = 4 / piece;
        for (int64_t p = 0, i = 0; p < pieces; ++p)
            for (int64_t c = 0; c < piece; ++c)
                at[i++] = p * step + lines[c];
        /* The last blocks begin earlier, and turn again what others have turned. */
        const int64_t last = columns / piece - pieces;
        for (int64_t p = 0; p < last + pieces; p += pieces) {
            p = p < last ? p : last;
            for (int64_t r = 0; r < rows; r += 4) {
                r = r < rows - 4 ? r : rows - 4;
                isamap_block4(to + p * step + r * 4, at,
                              from + r * pitch + p * piece * 4, pitch);
            }
        }
        done = columns / piece * piece;
    }
#endif
    for (int64_t c = done; c < columns; ++c) {
        char *const row = to + c / piece * step + lines[c % piece];
        for (int64_t r = 0; r < rows; ++r)
            memcpy(row + r * 4, from + r * pitch + c * 4, 4);
    }
}
