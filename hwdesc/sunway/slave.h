/* The calls of a compute core: its number, its local memory, DMA, barriers and messages along its row and column.
   A transfer happens when its reply is waited for, so that what is used before that is seen to be wrong; with
   SUNWAY_EARLY when it is begun, so that what is overwritten by it too early is. */
#ifndef ISAMAP_SUNWAY_SLAVE_H
#define ISAMAP_SUNWAY_SLAVE_H

#include <athread.h>

enum { PE_MODE, BCAST_MODE, ROW_MODE, RANK_MODE };
enum { ROW_SCOPE, COL_SCOPE, ARRAY_SCOPE };

#define ROW(x) (((x) & 0x38) >> 3)
#define COL(x) ((x) & 0x07)

static inline __attribute__((unused)) int athread_get_id(int core)
{
    (void)core;
    return sunway.now;
}

static inline __attribute__((unused)) void *ldm_malloc(size_t bytes)
{
    sunway_core *self = sunway_self();
    if (bytes > SUNWAY_LDM - self->taken) sunway_fail("no local memory left");
    self->taken += bytes;
    return self->ldm + self->taken - bytes;
}

static inline __attribute__((unused)) void ldm_free(void *memory, size_t bytes)
{
    sunway_core *self = sunway_self();
    if ((char *)memory + bytes != self->ldm + self->taken) sunway_fail("it gives back other local memory");
    self->taken -= bytes;
}

#ifdef SUNWAY_EARLY
enum { SUNWAY_IS_EARLY = 1 };
#else
enum { SUNWAY_IS_EARLY = 0 };
#endif

/* Does what a transfer says. */
static inline __attribute__((unused)) void sunway_move(const sunway_transfer *t)
{
    char *memory = t->memory;
    for (size_t done = 0; done < t->bytes; done += t->block, memory += t->block + t->step) {
        const size_t size = t->bytes - done < t->block ? t->bytes - done : t->block;
        if (t->put)
            memcpy(memory, t->ldm + done, size);
        else
            memcpy(t->ldm + done, memory, size);
    }
}

/* Has a transfer be done, and tells its reply. */
static inline __attribute__((unused)) void sunway_finish(const sunway_transfer *t)
{
    if (!SUNWAY_IS_EARLY) sunway_move(t);
    ++*t->reply;
}

/* ``block`` bytes, then a gap of ``step`` bytes in memory, and so on; 0 for one piece.  Where as many transfers are
   under way as there may be, it returns when the first one is done. */
static inline __attribute__((unused)) void
sunway_begin(int put, void *ldm, void *memory, size_t bytes, volatile int *reply, size_t step, size_t block)
{
    sunway_core *self = sunway_self();
    const char *begin = ldm;
    if (begin < self->ldm || begin + bytes > self->ldm + SUNWAY_LDM) sunway_fail("a transfer outside of local memory");
    if (bytes % 4 || step % 4 || block % 4 || (uintptr_t)ldm % 4 || (uintptr_t)memory % 4)
        sunway_fail("a transfer of parts of words");
    if (self->under_way == SUNWAY_DMA) {
        sunway_finish(self->transfers);
        memmove(self->transfers, self->transfers + 1, (size_t)--self->under_way * sizeof *self->transfers);
    }
    self->transfers[self->under_way] =
        (sunway_transfer){ldm, memory, bytes, block ? block : bytes, step, reply, put};
    if (SUNWAY_IS_EARLY) sunway_move(&self->transfers[self->under_way]);
    ++self->under_way;
}

#define athread_get(mode, memory, ldm, bytes, reply, mask, step, block) \
    sunway_begin(0, (ldm), (void *)(memory), (bytes), (reply), (step), (block))
#define athread_put(mode, ldm, memory, bytes, reply, step, block) \
    sunway_begin(1, (ldm), (void *)(memory), (bytes), (reply), (step), (block))

/* Waits until ``count`` transfers have come that tell ``reply``. */
static inline __attribute__((unused)) void dma_wait(volatile int *reply, int count)
{
    sunway_core *self = sunway_self();
    int kept = 0;
    for (int n = 0; n < self->under_way; ++n) {
        const sunway_transfer t = self->transfers[n];
        if (t.reply == reply)
            sunway_finish(&t);
        else
            self->transfers[kept++] = t;
    }
    self->under_way = kept;
    if (*reply != count) sunway_fail("it waits for a transfer that was not begun");
}

/* Returns when all cores of the scope are here; here, all of the group. */
static inline __attribute__((unused)) void athread_syn(int scope, int mask)
{
    sunway_core *self = sunway_self();
    if (scope != ARRAY_SCOPE || mask != 0xffff) sunway_fail("a barrier of some cores is not played here");
    ++self->arrived;
    ++sunway.arrived;
    sunway.idle = 0;
    while (sunway.arrived < self->arrived * SUNWAY_CORES) sunway_wait();
}

static inline __attribute__((unused)) void
sunway_post(sunway_inbox *box, const void *message, size_t bytes)
{
    while (box->count == SUNWAY_SLOTS) sunway_wait();
    memcpy(box->slot[(box->first + box->count++) % SUNWAY_SLOTS], message, bytes);
    sunway.idle = 0;
}

/* To one core of the row or column, to all others of it where ``to`` is 8. */
static inline __attribute__((unused)) void
sunway_send(int along_row, const void *message, size_t bytes, int to)
{
    const int own = sunway.now, row = ROW(own), column = COL(own);
    for (int n = 0; n < SUNWAY_SIDE; ++n) {
        const int core = along_row ? row * SUNWAY_SIDE + n : n * SUNWAY_SIDE + column;
        if (core == own || (to != SUNWAY_SIDE && to != n)) continue;
        sunway_post(along_row ? &sunway.cores[core].row : &sunway.cores[core].column, message, bytes);
    }
}

static inline __attribute__((unused)) void sunway_take(int along_row, void *message, size_t bytes)
{
    sunway_core *self = sunway_self();
    sunway_inbox *box = along_row ? &self->row : &self->column;
    while (box->count == 0) sunway_wait();
    memcpy(message, box->slot[box->first], bytes);
    box->first = (box->first + 1) % SUNWAY_SLOTS;
    --box->count;
    sunway.idle = 0;
}

/* A message is what a register has: 32 bytes at most. */
#define REG_PUTR(value, to) sunway_send(1, &(value), sizeof(value), (to))
#define REG_PUTC(value, to) sunway_send(0, &(value), sizeof(value), (to))
#define REG_GETR(value) sunway_take(1, &(value), sizeof(value))
#define REG_GETC(value) sunway_take(0, &(value), sizeof(value))

#endif
