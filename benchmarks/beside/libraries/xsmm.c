/* Products of matrices by kernels of libxsmm: out[rows, cols] = left[rows, depth] right[depth, cols].

   libxsmm counts along columns first, so its A is the right matrix, its B the left one, and its C
   the transposed result.  A kernel computes one tile in the whole depth; the loops around it are
   here, as the library leaves them to its callers.  xsmm.py compiles this file. */
#include <libxsmm.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { F32, BF16, BYTES, SCALED }; /* bytes: u8 by s8 into s32, or the 256th part into u8 */

static const int SIZE[] = {4, 2, 1, 1}, OUT_SIZE[] = {4, 2, 4, 1};
static const int GROUP[] = {1, 2, 4, 4}; /* neighbours in depth that lie together in a panel */

typedef struct {
  int kind, rows, cols, depth, tile_rows, tile_cols, slab, threads;
  const char *left, *right;
  char *panels; /* the right matrix in tiles of columns; NULL if it is taken as it lies */
  int packs;    /* whether each call fills the panels */
  char *out;
  libxsmm_xmmfunction kernel[2][2]; /* of the last, smaller tile of rows; of columns */
} Product;

static int least(int a, int b) { return a < b ? a : b; }

/* Return the name of the newest instructions that the library knows and this CPU has.

   By itself it takes only those of CPUs that it knows.  LIBXSMM_TARGET is obeyed. */
const char *xsmm_target(void) {
  int found = 0;
  libxsmm_init();
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    found = LIBXSMM_X86_AVX512_CORE;
    if (__builtin_cpu_supports("avx512vnni")) {
      found = LIBXSMM_X86_AVX512_CLX;
      if (__builtin_cpu_supports("avx512bf16")) found = LIBXSMM_X86_AVX512_CPX;
    }
  }
  if (found > libxsmm_get_target_archid() && getenv("LIBXSMM_TARGET") == NULL)
    libxsmm_set_target_archid(found);
  return libxsmm_get_target_arch();
}

const char *xsmm_version(void) { return LIBXSMM_VERSION; }

static libxsmm_xmmfunction dispatch(int kind, int m, int n, int k, int lda, int ldb, int ldc) {
  const float one = 1, zero = 0;
  const int whole = 1, nothing = 0, ahead = LIBXSMM_GEMM_PREFETCH_NONE;
  const int flags = kind == F32 ? LIBXSMM_GEMM_FLAG_NONE : LIBXSMM_GEMM_FLAG_VNNI_A;
  libxsmm_xmmfunction f = {NULL};
  switch (kind) {
  case F32:
    f.smm = libxsmm_smmdispatch(m, n, k, &lda, &ldb, &ldc, &one, &zero, &flags, &ahead);
    break;
  case BF16:
    f.bmm = libxsmm_bmmdispatch(m, n, k, &lda, &ldb, &ldc, &one, &zero, &flags, &ahead);
    break;
  case BYTES:
    f.subimm = libxsmm_subimmdispatch(m, n, k, &lda, &ldb, &ldc, &whole, &nothing, &flags, &ahead);
    break;
  case SCALED:
    f.sububmm = libxsmm_sububmmdispatch(m, n, k, &lda, &ldb, &ldc, &whole, &nothing, &flags, &ahead);
  }
  return f;
}

/* Return a product whose kernels are ready; NULL if the library has none.

   A thread computes ``slab`` rows of a tile of columns, one tile of rows after the other.  The depth
   is a whole number of groups; only f32 may lie as it likes, without panels. */
Product *xsmm_product(int kind, int rows, int cols, int depth, int tile_rows, int tile_cols, int slab,
                      int threads, const void *left, const void *right, void *panels, int packs,
                      void *out) {
  Product *p = malloc(sizeof *p);
  *p = (Product){kind,    rows, cols,  depth,  tile_rows, tile_cols, slab,
                 threads, left, right, panels, packs,     out,       {{{NULL}}}};
  for (int r = 0; r < 2; r++)
    for (int c = 0; c < 2; c++) {
      const int n = r ? rows % tile_rows : tile_rows, m = c ? cols % tile_cols : tile_cols;
      if (n == 0 || m == 0) continue; /* all tiles are whole */
      p->kernel[r][c] = dispatch(kind, m, n, depth, panels ? m : cols, depth, cols);
      if (p->kernel[r][c].xmm == NULL) {
        free(p);
        return NULL;
      }
    }
  return p;
}

void xsmm_drop(Product *p) { free(p); }

/* Write ``width`` columns from ``j`` on as a panel, neighbours in depth side by side. */
static void pack(const Product *p, int j, int width) {
  const size_t n = p->cols;
  char *panel = p->panels + (size_t)j * p->depth * SIZE[p->kind];
  for (int d = 0; d < p->depth; d += GROUP[p->kind]) {
    const char *from = p->right + (d * n + j) * SIZE[p->kind];
    if (p->kind == F32) {
      memcpy((float *)panel + (size_t)d * width, from, 4 * width);
    } else if (p->kind == BF16) {
      const uint16_t *restrict x = (const uint16_t *)from;
      uint32_t *restrict to = (uint32_t *)panel + (size_t)d / 2 * width;
      for (int c = 0; c < width; c++) to[c] = x[c] | (uint32_t)x[n + c] << 16;
    } else {
      const uint8_t *restrict x = (const uint8_t *)from;
      uint32_t *restrict to = (uint32_t *)panel + (size_t)d / 4 * width;
      for (int c = 0; c < width; c++)
        to[c] = x[c] | (uint32_t)x[n + c] << 8 | (uint32_t)x[2 * n + c] << 16 |
                (uint32_t)x[3 * n + c] << 24;
    }
  }
}

static void compute(const Product *p, int i, int j) {
  static const float part = 1.0f / 256;
  const int size = SIZE[p->kind], r = p->rows - i < p->tile_rows, c = p->cols - j < p->tile_cols;
  const char *right = p->panels ? p->panels + (size_t)j * p->depth * size : p->right + j * size;
  char *out = p->out + ((size_t)i * p->cols + j) * OUT_SIZE[p->kind];
  p->kernel[r][c].xmm(right, p->left + (size_t)i * p->depth * size, out, &part);
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
      for (int begin = 0; begin < p->rows; begin += p->slab)
        for (int i = begin; i < least(begin + p->slab, p->rows); i += p->tile_rows)
          compute(p, i, j);
  }
}
