/* Threads that share the work of a call.  They are started by the first call that wants them, wait
   for the next one by spinning for a moment, then asleep, and end with the program or the library.
   Calls at once from several threads are right: all but one of them compute alone.
   Other programs may have a worker's processor: nobody waits for one that has not begun, which may
   begin later, and one that was interrupted goes on on the caller's.
   GCC needs -fno-predictive-commoning: see the description of the machine.

   A thread counts in ``loops`` the shared loops that it has come by, and how often it has met others. */
typedef void isamap_share(const void *call, uint64_t *loops, int thread, int threads);

/* A thread at a shared loop: the iterations that it has taken last, and where it looks for more. */
struct isamap_turn {
    int64_t from, past;
    int64_t count;
    uint64_t loop; /* the number of the loop among all that calls have come by */
    int thread, threads;
    int next; /* whose part is looked at: how many threads after this one */
};

static inline struct isamap_turn isamap_at(int64_t count, uint64_t *loops, int thread, int threads)
{
    return (struct isamap_turn){.count = count, .loop = ++*loops, .thread = thread, .threads = threads};
}

#ifdef _REENTRANT /* what compilers define where programs may have threads */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#ifndef ISAMAP_PAUSE
#define ISAMAP_PAUSE() ((void)0)
#endif

enum {
    ISAMAP_MOST = 256,   /* threads of a call */
    ISAMAP_SPINS = 2048, /* looks at a number that another thread will change, before it gives way */
    ISAMAP_YIELDS = 16,  /* looks after that between two at whether workers run */
    ISAMAP_LOOPS = 4,    /* loops that threads may be at, at once, without asking memory for more */
    ISAMAP_UNITS = 1 << 17, /* more than there are units in a part */
    ISAMAP_END = 511     /* instead of a number of threads: there will be no more calls */
};

/* A call's crew in one number: how many threads are in it, how many of them wait for the others,
   whether it is too late to come, how often they have met, and the call's own number. */
#define ISAMAP_IN ((uint64_t)1)
#define ISAMAP_HERE ((uint64_t)1 << 10)
#define ISAMAP_LATE ((uint64_t)1 << 20)
#define ISAMAP_MET ((uint64_t)1 << 21)
#define ISAMAP_MEETINGS ((uint64_t)1 << 20) /* after as many it is too late */
#define ISAMAP_CREW(round) ((uint64_t)(round) / 512 << 41)

static struct {
    /* Written between calls. */
    isamap_share *share;
    const void *call;
    uint64_t since; /* the round before that for which workers are started */
    uint64_t loops; /* shared loops that calls have come by */
    int size;       /* workers that were started */
    int known;      /* whether a fork is told to isamap_forked */
    int caller;     /* the processor of the caller that the workers keep off, plus 1 */
    int kept;       /* workers that do */
    int fetched;    /* whether one was brought to the caller's processor since */
    pthread_t first; /* the caller */
    pthread_t workers[ISAMAP_MOST];
    int64_t ran[ISAMAP_MOST]; /* what isamap_ran said last of each */
    pthread_mutex_t lock;
    pthread_cond_t woken;
    /* The number of the call, times 512, and its threads. */
    uint64_t round __attribute__((aligned(64)));
    int asleep;
    int busy __attribute__((aligned(64)));
    uint64_t crew __attribute__((aligned(64)));
} isamap_team = {.lock = PTHREAD_MUTEX_INITIALIZER, .woken = PTHREAD_COND_INITIALIZER};

/* Of each thread's part of a loop the units that are taken; times ISAMAP_UNITS, the loop. */
static struct {
    uint64_t units __attribute__((aligned(64)));
} isamap_taken[ISAMAP_LOOPS][ISAMAP_MOST];

/* The first iteration, of as many, of a thread's part. */
static inline int64_t isamap_from(int64_t count, int thread, int threads)
{
    return count / threads * thread + isamap_min(count % threads, thread);
}

/* Takes a quarter of what is left of a thread's own part; when nothing is, of another's, which may
   have been interrupted.  Returns whether there was something left.  A later loop in place of this
   one has been reached by a thread that found nothing left here.  A thread that computes alone takes
   all at once: its loops have numbers that the team's have, too. */
static int isamap_take(struct isamap_turn *turn)
{
    const int threads = turn->threads;
    if (threads == 1) {
        turn->past = turn->count;
        return turn->next++ == 0 && turn->count > 0;
    }
    for (; turn->next < threads; ++turn->next) {
        const int owner = (turn->thread + turn->next) % threads;
        const int64_t begin = isamap_from(turn->count, owner, threads);
        const int64_t size = isamap_from(turn->count, owner + 1, threads) - begin;
        const int64_t unit = size / (ISAMAP_UNITS / 2) + 1, units = (size + unit - 1) / unit;
        uint64_t *taken = &isamap_taken[turn->loop % ISAMAP_LOOPS][owner].units;
        uint64_t seen = __atomic_load_n(taken, __ATOMIC_RELAXED);
        while (seen / ISAMAP_UNITS <= turn->loop) {
            const int64_t before = seen / ISAMAP_UNITS == turn->loop ? (int64_t)(seen % ISAMAP_UNITS) : 0;
            const int64_t after = before + (units - before + 3) / 4;
            if (before == units) break;
            if (!__atomic_compare_exchange_n(taken, &seen, turn->loop * ISAMAP_UNITS + (uint64_t)after,
                                             1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                continue;
            turn->from = begin + before * unit;
            turn->past = begin + isamap_min(after * unit, size);
            return 1;
        }
    }
    return 0;
}

#ifdef __linux__
/* Nanoseconds that a worker has run, -1 where nobody knows. */
static int64_t isamap_ran(int worker)
{
    clockid_t clock;
    struct timespec time;
    if (pthread_getcpuclockid(isamap_team.workers[worker], &clock) == 0 &&
        clock_gettime(clock, &time) == 0)
        return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
    return -1;
}

/* Lets workers that have not run since this was called last go on on this processor, whose thread
   has nothing to do: theirs may be another program's for milliseconds. */
static void isamap_fetch(void)
{
    cpu_set_t here;
    const int processor = sched_getcpu();
    if (processor < 0) return;
    CPU_ZERO(&here);
    CPU_SET(processor, &here);
    for (int n = 0; n < isamap_team.size; ++n) {
        const int64_t before = isamap_team.ran[n];
        isamap_team.ran[n] = isamap_ran(n);
        if (isamap_team.ran[n] < 0 || isamap_team.ran[n] != before) continue;
        __atomic_store_n(&isamap_team.fetched, 1, __ATOMIC_RELAXED);
        pthread_setaffinity_np(isamap_team.workers[n], sizeof here, &here);
    }
}
#else
static void isamap_fetch(void) {}
#endif

/* Looks again later: soon at first, then when others on this core have had their turn. */
static inline void isamap_look_later(int *looks)
{
    if (++*looks < ISAMAP_SPINS)
        ISAMAP_PAUSE();
    else
        sched_yield();
}

/* Returns when some bits of the crew's number are as wanted; the caller fetches workers meanwhile. */
static void isamap_await(uint64_t bits, uint64_t wanted)
{
    int looks = 0;
    while ((__atomic_load_n(&isamap_team.crew, __ATOMIC_ACQUIRE) & bits) != wanted) {
        isamap_look_later(&looks);
        if (looks < ISAMAP_SPINS + ISAMAP_YIELDS) continue;
        looks = ISAMAP_SPINS;
        if (pthread_equal(pthread_self(), isamap_team.first)) isamap_fetch();
    }
}

/* Returns when all threads that are in the call are here, or have been before this one came; with
   ``least`` when there are as many of them. */
static inline void isamap_wait(uint64_t *loops, uint64_t least)
{
    const uint64_t number = ++loops[1];
    uint64_t seen = __atomic_load_n(&isamap_team.crew, __ATOMIC_RELAXED), next;
    int is_last;
    do {
        const uint64_t here = seen % ISAMAP_LATE / ISAMAP_HERE;
        const uint64_t met = seen / ISAMAP_MET % ISAMAP_MEETINGS;
        if (met >= number) return;
        is_last = here + 1 >= seen % ISAMAP_HERE && here + 1 >= least;
        next = is_last ? seen - here * ISAMAP_HERE + ISAMAP_MET : seen + ISAMAP_HERE;
        if (is_last && met == ISAMAP_MEETINGS - 1)
            next = (next - ISAMAP_MEETINGS * ISAMAP_MET) | ISAMAP_LATE;
    } while (!__atomic_compare_exchange_n(&isamap_team.crew, &seen, next, 1, __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED));
    if (!is_last)
        isamap_await((ISAMAP_MEETINGS - 1) * ISAMAP_MET, number % ISAMAP_MEETINGS * ISAMAP_MET);
}

/* Has a worker take part in the call of a round; returns whether it does: not if it is too late. */
static int isamap_join(uint64_t round)
{
    uint64_t seen = __atomic_load_n(&isamap_team.crew, __ATOMIC_RELAXED);
    while (!(seen & ISAMAP_LATE) && seen / ISAMAP_CREW(512) == ISAMAP_CREW(round) / ISAMAP_CREW(512))
        if (__atomic_compare_exchange_n(&isamap_team.crew, &seen, seen + ISAMAP_IN, 1,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return 1;
    return 0;
}

/* The next round after ``seen``. */
static uint64_t isamap_next(uint64_t seen)
{
    uint64_t round;
    for (int looks = 0; looks < ISAMAP_SPINS; ++looks) {
        round = __atomic_load_n(&isamap_team.round, __ATOMIC_ACQUIRE);
        if (round != seen) return round;
        ISAMAP_PAUSE();
    }
    pthread_mutex_lock(&isamap_team.lock);
    __atomic_add_fetch(&isamap_team.asleep, 1, __ATOMIC_SEQ_CST);
    while ((round = __atomic_load_n(&isamap_team.round, __ATOMIC_SEQ_CST)) == seen)
        pthread_cond_wait(&isamap_team.woken, &isamap_team.lock);
    __atomic_sub_fetch(&isamap_team.asleep, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&isamap_team.lock);
    return round;
}

static void isamap_begin(uint64_t round)
{
    __atomic_store_n(&isamap_team.round, round, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&isamap_team.asleep, __ATOMIC_SEQ_CST) == 0) return;
    pthread_mutex_lock(&isamap_team.lock);
    pthread_cond_broadcast(&isamap_team.woken);
    pthread_mutex_unlock(&isamap_team.lock);
}

static void *isamap_work(void *number)
{
    const int thread = (int)(intptr_t)number;
    uint64_t seen = __atomic_load_n(&isamap_team.since, __ATOMIC_RELAXED);
    for (;;) {
        seen = isamap_next(seen);
        const int threads = (int)(seen % 512);
        if (threads == ISAMAP_END) return NULL;
        if (thread >= threads || !isamap_join(seen)) continue; /* the next call may be on its way */
        uint64_t loops[] = {isamap_team.loops, 0};
        isamap_team.share(isamap_team.call, loops, thread, threads);
        __atomic_sub_fetch(&isamap_team.crew, ISAMAP_IN, __ATOMIC_RELEASE);
        if (__atomic_load_n(&isamap_team.fetched, __ATOMIC_RELAXED)) sched_yield();
    }
}

/* The child of a fork has one thread. */
static void isamap_forked(void)
{
    isamap_team.kept = isamap_team.fetched = 0;
    isamap_team.size = isamap_team.asleep = isamap_team.busy = 0;
    memset(isamap_taken, 0, sizeof isamap_taken); /* another thread may have been in a call */
    pthread_mutex_init(&isamap_team.lock, NULL);
    pthread_cond_init(&isamap_team.woken, NULL);
}

/* Keeps the workers off the caller's processor, where there are enough of them: a scheduler that
   finds others busy puts a worker there, and one then spins for the other.  Where there are not,
   those that were fetched may go where they like again. */
static void isamap_keep_apart(int threads)
{
#ifdef __linux__
    cpu_set_t allowed;
    const int caller = sched_getcpu() + 1;
    const int fetched = __atomic_exchange_n(&isamap_team.fetched, 0, __ATOMIC_RELAXED);
    if (caller == isamap_team.caller && isamap_team.kept == isamap_team.size && !fetched) return;
    isamap_team.caller = caller;
    isamap_team.kept = isamap_team.size;
    if (caller < 1 || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    if (CPU_COUNT(&allowed) >= threads)
        CPU_CLR(caller - 1, &allowed);
    else if (!fetched)
        return;
    for (int n = 0; n < isamap_team.size; ++n)
        pthread_setaffinity_np(isamap_team.workers[n], sizeof allowed, &allowed);
#else
    (void)threads;
#endif
}

/* Starts what is missing of as many threads, and returns how many there are. */
static int isamap_start(int threads)
{
    sigset_t all, before;
    if (isamap_team.size >= threads - 1) return threads;
    if (!isamap_team.known && pthread_atfork(NULL, NULL, isamap_forked) != 0) return 1;
    isamap_team.known = 1;
    __atomic_store_n(&isamap_team.since, isamap_team.round, __ATOMIC_RELAXED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the program's own threads */
    while (isamap_team.size < threads - 1) {
        pthread_t *worker = &isamap_team.workers[isamap_team.size];
        void *number = (void *)(intptr_t)(isamap_team.size + 1);
        if (pthread_create(worker, NULL, isamap_work, number) != 0) break;
        ++isamap_team.size;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return isamap_team.size + 1;
}

/* Has ``share`` executed by as many threads, this one among them, and returns when all are done. */
static void isamap_together(isamap_share *share, const void *call, int threads)
{
    uint64_t loops[] = {0, 0};
    if (threads <= 1 || __atomic_exchange_n(&isamap_team.busy, 1, __ATOMIC_ACQUIRE)) {
        share(call, loops, 0, 1);
        return;
    }
    threads = isamap_start(threads < ISAMAP_MOST ? threads : ISAMAP_MOST);
    if (threads > 1) {
        const uint64_t round = (isamap_team.round / 512 + 1) * 512 + (uint64_t)threads;
        isamap_keep_apart(threads);
        isamap_team.first = pthread_self();
        isamap_team.share = share;
        isamap_team.call = call;
        __atomic_store_n(&isamap_team.crew, ISAMAP_CREW(round) + ISAMAP_IN, __ATOMIC_RELEASE);
        isamap_begin(round);
    }
    loops[0] = isamap_team.loops;
    share(call, loops, 0, threads);
    if (threads > 1) {
        __atomic_fetch_or(&isamap_team.crew, ISAMAP_LATE, __ATOMIC_RELAXED);
        isamap_await(ISAMAP_HERE - 1, ISAMAP_IN);
    }
    isamap_team.loops = loops[0];
    __atomic_store_n(&isamap_team.busy, 0, __ATOMIC_RELEASE);
}

/* No worker may be left in code that is about to be unloaded. */
__attribute__((destructor)) static void isamap_end(void)
{
    if (isamap_team.size == 0 || __atomic_exchange_n(&isamap_team.busy, 1, __ATOMIC_ACQUIRE)) return;
    isamap_begin(isamap_team.round / 512 * 512 + 512 + ISAMAP_END);
    while (isamap_team.size > 0) pthread_join(isamap_team.workers[--isamap_team.size], NULL);
    __atomic_store_n(&isamap_team.busy, 0, __ATOMIC_RELEASE);
}
#else
static inline void isamap_wait(uint64_t *loops, uint64_t least) { (void)loops, (void)least; }

static inline int isamap_take(struct isamap_turn *turn)
{
    turn->past = turn->count;
    return turn->next++ == 0;
}

static void isamap_together(isamap_share *share, const void *call, int threads)
{
    uint64_t loops[] = {0, 0};
    (void)threads;
    share(call, loops, 0, 1);
}
#endif

/* Where one thread touches what another one wrote they meet: those that are in the call, or all. */
#define isamap_meet(threads) ((threads) > 1 ? isamap_wait(loops, 1) : (void)0)
#define isamap_meet_all(threads) ((threads) > 1 ? isamap_wait(loops, (uint64_t)(threads)) : (void)0)

