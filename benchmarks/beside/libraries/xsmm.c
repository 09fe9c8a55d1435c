/* Products of matrices by kernels of libxsmm 1.17: out[rows, cols] = left[rows, depth] right[depth, cols].

   libxsmm counts along columns first, so its A is the right matrix, its B the left one, and its C
   the transposed result.  Its kernels compute one tile; the loops around them are here, as the
   library leaves them to its callers.  Compiled by xsmm.py. */
#include <libxsmm.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { F32, BF16, BYTES, SCALED }; /* bytes: u8 by s8 into s32, or into u8 of the 256th part */

typedef struct {
  int kind, rows, cols, depth, threads;
  int tile_rows, tile_cols, tile_depth; /* what one kernel computes */
  int slab;                             /* rows that pass a tile of the right matrix in turn */
  const char *left, *right;
  char *panels; /* the right matrix in tiles of columns; NULL if it is taken as it lies */
  int packs;    /* whether a call fills the panels */
  char *out;
  libxsmm_xmmfunction kernel[2][2][2][2]; /* last tile of rows, of columns, of depth; first of depth */
} Product;

static const int SIZE[] = {4, 2, 1, 1}, OUT_SIZE[] = {4, 2, 4, 1};
static const int GROUP[] = {1, 2, 4, 4}; /* neighbours in depth that lie together in a panel */

static int least(int a, int b) { return a < b ? a : b; }

/* The newest instructions that the library knows and this CPU has: it asks for those of Intel only. */
const char *xsmm_target(void) {
  libxsmm_init();
  int best = libxsmm_get_target_archid(), found = 0;
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    found = LIBXSMM_X86_AVX512_CORE;
  if (found && __builtin_cpu_supports("avx512vnni")) found = LIBXSMM_X86_AVX512_CLX;
  if (found == LIBXSMM_X86_AVX512_CLX && __builtin_cpu_supports("avx512bf16"))
    found = LIBXSMM_X86_AVX512_CPX;
  if (found > best && getenv("LIBXSMM_TARGET") == NULL) libxsmm_set_target_archid(found);
  return libxsmm_get_target_arch();
}

const char *xsmm_version(void) { return LIBXSMM_VERSION; }

static libxsmm_xmmfunction dispatch(int kind, int m, int n, int k, int lda, int ldb, int ldc, int first) {
  const float one = 1, zero = 0;
  const int whole = 1, nothing = 0, none = LIBXSMM_GEMM_PREFETCH_NONE;
  const int plain = LIBXSMM_GEMM_FLAG_NONE, grouped = LIBXSMM_GEMM_FLAG_VNNI_A;
  libxsmm_xmmfunction f = {NULL};
  if (kind == F32)
    f.smm = libxsmm_smmdispatch(m, n, k, &lda, &ldb, &ldc, &one, first ? &zero : &one, &plain, &none);
  else if (kind == BF16)
    f.bmm = libxsmm_bmmdispatch(m, n, k, &lda, &ldb, &ldc, &one, first ? &zero : &one, &grouped, &none);
  else if (kind == BYTES)
    f.subimm =
        libxsmm_subimmdispatch(m, n, k, &lda, &ldb, &ldc, &whole, first ? &nothing : &whole, &grouped, &none);
  else if (first)
    f.sububmm = libxsmm_sububmmdispatch(m, n, k, &lda, &ldb, &ldc, &whole, &nothing, &grouped, &none);
  return f;
}

/* Return a product whose kernels are ready, NULL if the library has none.  ``panels`` may be NULL. */
Product *xsmm_product(int kind, int rows, int cols, int depth, int tile_rows, int tile_cols, int tile_depth,
                      int slab, int threads, const void *left, const void *right, void *panels, int packs,
                      void *out) {
  if (depth % GROUP[kind] || tile_depth % GROUP[kind] || (kind != F32 && panels == NULL)) return NULL;
  Product *p = calloc(1, sizeof *p);
  *p = (Product){kind, rows,  cols, depth,  threads, tile_rows, tile_cols, tile_depth, slab,
                 left, right, panels, packs, out};
  for (int way = 0; way < 16; way++) {
    int r = way >> 3 & 1, c = way >> 2 & 1, d = way >> 1 & 1, first = way & 1;
    int n = r ? rows % tile_rows : least(tile_rows, rows);
    int m = c ? cols % tile_cols : least(tile_cols, cols);
    int k = d ? depth % tile_depth : least(tile_depth, depth);
    if (n == 0 || m == 0 || k == 0) continue; /* no such tile */
    if (!first && least(tile_depth, depth) == depth) continue; /* never called */
    libxsmm_xmmfunction f = dispatch(kind, m, n, k, panels ? m : cols, depth, cols, first);
    if (f.xmm == NULL) {
      free(p);
      return NULL;
    }
    p->kernel[r][c][d][first] = f;
  }
  return p;
}

void xsmm_drop(Product *p) { free(p); }

/* Write columns j to j + width as a panel: neighbours in depth side by side. */
static void pack(const Product *p, int j, int width) {
  char *to = p->panels + (size_t)j * p->depth * SIZE[p->kind];
  for (int d = 0; d < p->depth; d += GROUP[p->kind]) {
    size_t at = (size_t)d * p->cols + j;
    if (p->kind == F32) {
      memcpy((float *)to + (size_t)d * width, (const float *)p->right + at, 4 * width);
    } else if (p->kind == BF16) {
      const uint16_t *restrict from = (const uint16_t *)p->right + at;
      uint32_t *restrict pairs = (uint32_t *)to + (size_t)d / 2 * width;
      for (int c = 0; c < width; c++) pairs[c] = from[c] | (uint32_t)from[p->cols + c] << 16;
    } else {
      const uint8_t *restrict from = (const uint8_t *)p->right + at;
      uint32_t *restrict fours = (uint32_t *)to + (size_t)d / 4 * width;
      size_t n = p->cols;
      for (int c = 0; c < width; c++)
        fours[c] = from[c] | (uint32_t)from[n + c] << 8 | (uint32_t)from[2 * n + c] << 16 |
                   (uint32_t)from[3 * n + c] << 24;
    }
  }
}

/* Compute some rows by one tile of columns. */
static void columns(const Product *p, int j, int begin, int end) {
  static const float part = 1.0f / 256;
  const int size = SIZE[p->kind], width = least(p->tile_cols, p->cols - j), c = width < least(p->tile_cols, p->cols);
  for (int d = 0; d < p->depth; d += p->tile_depth) {
    const int deep = p->depth - d < least(p->tile_depth, p->depth);
    const char *right = p->panels ? p->panels + ((size_t)j * p->depth + (size_t)d * width) * size
                                  : p->right + ((size_t)d * p->cols + j) * size;
    for (int i = begin; i < end; i += p->tile_rows) {
      const int r = p->rows - i < least(p->tile_rows, p->rows);
      p->kernel[r][c][deep][d == 0].xmm(right, p->left + ((size_t)i * p->depth + d) * size,
                                        p->out + ((size_t)i * p->cols + j) * OUT_SIZE[p->kind], &part);
    }
  }
}

void xsmm_run(const Product *p) {
#pragma omp parallel num_threads(p->threads) if (p->threads > 1)
  {
    if (p->packs) {
#pragma omp for schedule(static)
      for (int j = 0; j < p->cols; j += p->tile_cols) pack(p, j, least(p->tile_cols, p->cols - j));
    }
#pragma omp for collapse(2) schedule(static)
    for (int j = 0; j < p->cols; j += p->tile_cols)
      for (int i = 0; i < p->rows; i += p->slab) columns(p, j, i, least(i + p->slab, p->rows));
  }
}
