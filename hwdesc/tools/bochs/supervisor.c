/* What a static program for Linux on x86-64 needs of a system: one process without threads, files or
   time of day, alone on a machine.  See run.sh for the disk that brings the program and its input and
   takes its output.

   Memory is 1 GiB, each address the place itself.  The first 4 MiB are the supervisor's. */
#include "machine.h"

enum { PAGE = 4096, ERRORS = 1 << 16 };
#define FIRST 0x400000ull  /* memory of the program */
#define LAST 0x40000000ull /* all ends here */
#define STACK (LAST - (8ull << 20))
#define FAILED(number) ((uint64_t)-(number))
enum { BAD_FILE = 9, NO_MEMORY = 12, NO_DEVICE = 19, BAD = 22, NOT_THERE = 2, NO_CALL = 38 };

void enter_program(uint64_t at, uint64_t stack) __attribute__((noreturn));
void called(void);
extern const uint64_t fault_entries[22];

/* --- the end: what is left on the disk --------------------------------------------------------- */
static Stream program, input, output;
static uint8_t errors[ERRORS];
static uint64_t errors_bytes;

/* Decimal numbers on the first sector. */
static uint64_t number_of(const char **text)
{
    uint64_t value = 0;
    while (**text == ' ') ++*text;
    for (; **text >= '0' && **text <= '9'; ++*text) value = 10 * value + (uint64_t)(**text - '0');
    return value;
}
static char *put_number(char *text, uint64_t value)
{
    char digits[20];
    int count = 0;
    do digits[count++] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    while (count > 0) *text++ = digits[--count];
    *text++ = ' ';
    return text;
}
/* The end: status, or the signal that ended it, and how much was written. */
static _Noreturn void finish(uint64_t status, uint64_t signal)
{
    static char told[SECTOR];
    const uint64_t written = output.done;
    stream_write(&output, errors, errors_bytes);
    stream_end(&output);
    memset(told, ' ', SECTOR);
    char *at = put_number(told, output.sector);
    at = put_number(at, written);
    at = put_number(at, errors_bytes);
    at = put_number(at, status);
    put_number(at, signal);
    told[SECTOR - 1] = '\n';
    disk_move(0x30, 0, 1, told);
    power_off();
}
static void complain(const char *text)
{
    for (; *text && errors_bytes < ERRORS; ++text) errors[errors_bytes++] = (uint8_t)*text;
}
static void complain_number(uint64_t value)
{
    char text[17] = {0};
    for (int i = 15; i >= 0; --i, value >>= 4) text[i] = "0123456789abcdef"[value & 15];
    complain(text);
}
static _Noreturn void refuse(const char *why)
{
    complain(why);
    finish(126, 0);
}

/* --- memory: a page has an entry in the tables, which are all zero at first ---------------------- */
enum { PRESENT = 1, WRITABLE = 2, PROGRAM = 4, TAKEN = 512 };
static uint64_t *const entries = (uint64_t *)0x200000;

static int in_reach(uint64_t from, uint64_t bytes)
{
    return from >= FIRST && from <= LAST && bytes <= LAST - from && from % PAGE == 0;
}
static uint64_t page_end(uint64_t at)
{
    return (at + PAGE - 1) / PAGE * PAGE;
}
/* Whether a page may be read and written follows from the bits of PROT_*. */
static void set_pages(uint64_t from, uint64_t end, uint64_t allowed, int is_new)
{
    for (uint64_t at = from; at < end; at += PAGE) {
        if (is_new) {
            entries[at / PAGE] = at | PRESENT | WRITABLE;
            __asm__ volatile("invlpg (%0)" : : "r"(at) : "memory");
            memset((void *)at, 0, PAGE);
        }
        const uint64_t bits = allowed == 0 ? 0 : PRESENT | PROGRAM | (allowed & 2 ? WRITABLE : 0);
        entries[at / PAGE] = at | TAKEN | bits;
        __asm__ volatile("invlpg (%0)" : : "r"(at) : "memory");
    }
}
static int is_free(uint64_t from, uint64_t end)
{
    for (uint64_t at = from; at < end; at += PAGE)
        if (entries[at / PAGE] != 0) return 0;
    return 1;
}
static uint64_t map_pages(uint64_t at, uint64_t bytes, uint64_t allowed, uint64_t flags)
{
    bytes = page_end(bytes);
    if ((flags & 0x20) == 0) return FAILED(NO_DEVICE);
    if (bytes == 0) return FAILED(BAD);
    if (flags & 0x10) {
        if (!in_reach(at, bytes)) return FAILED(NO_MEMORY);
    } else {
        /* The highest place; what is taken ends below the next one that comes into question. */
        uint64_t end = STACK;
        for (at = end; at + bytes > end; at -= PAGE) {
            if (bytes > end - FIRST) return FAILED(NO_MEMORY);
            if (entries[at / PAGE - 1] != 0) end = at - PAGE;
        }
    }
    set_pages(at, at + bytes, allowed, 1);
    return at;
}
static uint64_t change_pages(uint64_t at, uint64_t bytes, uint64_t allowed)
{
    bytes = page_end(bytes);
    if (!in_reach(at, bytes)) return FAILED(NO_MEMORY);
    for (uint64_t page = at; page < at + bytes; page += PAGE)
        if (entries[page / PAGE] == 0) return FAILED(NO_MEMORY);
    set_pages(at, at + bytes, allowed, 0);
    return 0;
}
static uint64_t unmap_pages(uint64_t at, uint64_t bytes)
{
    bytes = page_end(bytes);
    if (!in_reach(at, bytes)) return FAILED(BAD);
    for (uint64_t page = at; page < at + bytes; page += PAGE) {
        entries[page / PAGE] = 0;
        __asm__ volatile("invlpg (%0)" : : "r"(page) : "memory");
    }
    return 0;
}
static uint64_t heap_begin, heap_end;
static uint64_t move_heap(uint64_t wanted)
{
    if (wanted < heap_begin || wanted > STACK) return heap_end;
    const uint64_t from = page_end(heap_end), end = page_end(wanted);
    if (end > from) {
        if (!is_free(from, end)) return heap_end;
        set_pages(from, end, 3, 1);
    }
    return heap_end = wanted;
}

/* --- what the program asks for -------------------------------------------------------------------- */
typedef struct {
    uint64_t number, a, b, c, d, e, f;
} Call;
typedef struct {
    uint64_t place, bytes;
} Part;

static uint64_t read_input(void *to, uint64_t bytes)
{
    const uint64_t left = input.bytes - input.done;
    if (bytes > left) bytes = left;
    stream_read(&input, to, bytes);
    return bytes;
}
static uint64_t write_bytes(uint64_t file, const void *from, uint64_t bytes)
{
    if (file == 1) {
        stream_write(&output, from, bytes);
    } else if (file == 2) {
        const uint64_t room = ERRORS - errors_bytes;
        memcpy(errors + errors_bytes, from, bytes < room ? bytes : room);
        errors_bytes += bytes < room ? bytes : room;
    } else {
        return FAILED(BAD_FILE);
    }
    return bytes;
}
static uint64_t write_parts(uint64_t file, const Part *parts, uint64_t count)
{
    uint64_t done = 0;
    for (uint64_t i = 0; i < count; ++i) {
        const uint64_t more = write_bytes(file, (const void *)parts[i].place, parts[i].bytes);
        if (more > ERRORS && (int64_t)more < 0) return more;
        done += more;
    }
    return done;
}
static uint64_t read_parts(const Part *parts, uint64_t count)
{
    uint64_t done = 0;
    for (uint64_t i = 0; i < count; ++i) done += read_input((void *)parts[i].place, parts[i].bytes);
    return done;
}
/* A pipe, read and written by pages. */
static uint64_t tell_file(uint64_t file, uint8_t *found)
{
    if (file > 2) return FAILED(BAD_FILE);
    memset(found, 0, 144);
    *(uint32_t *)(found + 24) = 0x1180;
    *(uint64_t *)(found + 56) = PAGE;
    return 0;
}
static uint64_t states;
static uint64_t set_process(uint64_t what, uint64_t value)
{
    switch (what) {
    case 0x1002: set_register(0xc0000100, value); return 0;            /* ARCH_SET_FS */
    case 0x1003: *(uint64_t *)value = get_register(0xc0000100); return 0; /* ARCH_GET_FS */
    case 0x1022: *(uint64_t *)value = states; return 0;                /* ARCH_GET_XCOMP_PERM */
    case 0x1023: return value < 64 && states >> value & 1 ? 0 : FAILED(BAD); /* ARCH_REQ_XCOMP_PERM */
    default: return FAILED(BAD);
    }
}
static uint64_t tell_time(uint64_t *found)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    const uint64_t cycles = low | (uint64_t)high << 32;
    found[0] = cycles / 1000000000, found[1] = cycles % 1000000000;
    return 0;
}

uint64_t answer(const Call *call)
{
    switch (call->number) {
    case 0: return call->a == 0 ? read_input((void *)call->b, call->c) : FAILED(BAD_FILE);
    case 1: return write_bytes(call->a, (const void *)call->b, call->c);
    case 19: return call->a == 0 ? read_parts((const Part *)call->b, call->c) : FAILED(BAD_FILE);
    case 20: return write_parts(call->a, (const Part *)call->b, call->c);
    case 5: return tell_file(call->a, (uint8_t *)call->b);   /* fstat */
    case 262: return tell_file(call->a, (uint8_t *)call->c); /* newfstatat */
    case 8: return FAILED(29);                               /* lseek: of a pipe */
    case 9: return map_pages(call->a, call->b, call->c, call->d);
    case 10: return change_pages(call->a, call->b, call->c);
    case 11: return unmap_pages(call->a, call->b);
    case 12: return move_heap(call->a);
    case 158: return set_process(call->a, call->b);
    case 228: return tell_time((uint64_t *)call->b);
    case 257: return FAILED(NOT_THERE); /* openat */
    case 89: return FAILED(NOT_THERE);  /* readlink */
    case 60:
    case 231: finish(call->a & 255, 0);
    case 62: finish(0, call->b);                   /* kill */
    case 200: finish(0, call->b);                  /* tkill */
    case 234: finish(0, call->c);                  /* tgkill */
    case 39: case 186: case 218: return 1;         /* the process, its thread */
    case 3: case 13: case 14: case 24: case 273: return 0; /* close, signals, sched_yield, robust lists */
    case 16: return FAILED(25);                    /* ioctl: no terminal */
    default: return FAILED(NO_CALL);
    }
}

void faulted(uint64_t number, uint64_t at)
{
    static const uint8_t signals[22] = {[0] = 8, [1] = 5, [3] = 5, [4] = 11, [5] = 11, [6] = 4,
                                        [7] = 4, [16] = 8, [17] = 7, [19] = 8};
    uint64_t place;
    __asm__ volatile("mov %%cr2, %0" : "=r"(place));
    complain("exception ");
    complain_number(number);
    complain(" at ");
    complain_number(at);
    if (number == 14) complain(", of address "), complain_number(place);
    complain("\n");
    finish(0, signals[number] ? signals[number] : 11);
}

/* --- the beginning ---------------------------------------------------------------------------------- */
typedef struct {
    uint16_t limit, selector;
    uint8_t stack, kind;
    uint16_t middle;
    uint32_t high, zero;
} Gate;
static Gate gates[22];

static void prepare_processor(void)
{
    struct __attribute__((packed)) {
        uint16_t limit;
        uint64_t base;
    } table = {sizeof gates - 1, (uint64_t)gates};
    for (int i = 0; i < 22; ++i) {
        const uint64_t at = fault_entries[i];
        gates[i] = (Gate){(uint16_t)at, 0x18, 0, 0x8e, (uint16_t)(at >> 16), 0, 0};
    }
    __asm__ volatile("lidt %0" : : "m"(table));
    set_register(0xc0000081, 0x28ull << 48 | 3ull << 48 | 0x18ull << 32); /* segments of 'syscall' */
    set_register(0xc0000082, (uint64_t)called);
    set_register(0xc0000084, 0x700); /* no trap, no interrupt, strings upwards */
    uint32_t found[4];
    cpuid(1, found);
    if (found[2] & 1 << 26) {
        cpuid(13, found);
        states = found[0] | (uint64_t)found[3] << 32;
        __asm__ volatile("xsetbv" : : "c"(0), "a"(found[0]), "d"(found[3]));
    }
    __asm__ volatile("fninit");
    out8(0x3f6, 2); /* the disk does not interrupt */
}

typedef struct {
    uint8_t magic[16];
    uint16_t kind, machine;
    uint32_t version;
    uint64_t entry, headers, sections;
    uint32_t flags;
    uint16_t size, header_size, header_count;
} Head;
typedef struct {
    uint32_t kind, flags;
    uint64_t offset, address, physical, in_file, in_memory, alignment;
} Segment;

/* The file, whole, lies at the end of memory that the heap and mappings may use, until it is spread. */
static uint64_t load(Head *head, uint64_t *headers)
{
    const uint64_t bytes = page_end(program.bytes);
    const uint64_t place = map_pages(0, bytes, 3, 0x20);
    if ((int64_t)place < 0) refuse("the program is too large\n");
    stream_read(&program, (void *)place, program.bytes);
    memcpy(head, (void *)place, sizeof *head);
    if (*(uint32_t *)head->magic != 0x464c457f || head->machine != 62 || head->kind != 2)
        refuse("no program for x86-64 that is linked statically, to a fixed address\n");
    const Segment *const segments = (const Segment *)(place + head->headers);
    for (int i = 0; i < head->header_count; ++i) {
        const Segment one = segments[i];
        if (one.kind == 3) refuse("the program is not linked statically\n");
        if (one.kind != 1 || one.in_memory == 0) continue;
        const uint64_t begin = one.address / PAGE * PAGE, end = page_end(one.address + one.in_memory);
        if (!in_reach(begin, end - begin) || end > place) refuse("the program is not of this memory\n");
        set_pages(begin, end, 3, 1);
        memcpy((void *)one.address, (const void *)(place + one.offset), one.in_file);
        set_pages(begin, end, one.flags & 2 ? 3 : 1, 0);
        if (one.offset <= head->headers && head->headers < one.offset + one.in_file)
            *headers = one.address + head->headers - one.offset;
        if (heap_begin < end) heap_begin = heap_end = end;
    }
    unmap_pages(place, bytes);
    return head->entry;
}

_Noreturn void supervise(void)
{
    static char told[SECTOR];
    Head head;
    uint64_t headers = 0;
    prepare_processor();
    disk_move(0x20, 0, 1, told);
    const char *text = told;
    program.bytes = number_of(&text), input.bytes = number_of(&text);
    program.sector = 1, input.sector = 1 + sectors(program.bytes);
    output.sector = input.sector + sectors(input.bytes);
    const uint64_t entry = load(&head, &headers);
    set_pages(STACK + PAGE, LAST, 3, 1);
    memcpy((void *)(LAST - 64), "program", 8);
    /* One argument, no environment, and what the C library asks for: headers, page, random bytes. */
    const uint64_t start[] = {1, LAST - 64, 0, 0, 3, headers, 4, head.header_size, 5, head.header_count,
                              6, PAGE, 9, entry, 23, 0, 25, LAST - 48, 0, 0};
    const uint64_t stack = (LAST - 64 - sizeof start) / 64 * 64;
    memcpy((void *)stack, start, sizeof start);
    enter_program(entry, stack);
}
