/* The processor, its ports, and the disk with the streams of bytes that lie on it. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { SECTOR = 512, BLOCK = 256 * SECTOR };

/* --- the machine ------------------------------------------------------------------------------ */
static void out8(uint16_t port, uint8_t value)
{
    __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}
static uint8_t in8(uint16_t port)
{
    uint8_t value;
    __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}
static void set_register(uint32_t number, uint64_t value)
{
    __asm__ volatile("wrmsr" : : "c"(number), "a"((uint32_t)value), "d"((uint32_t)(value >> 32)));
}
static uint64_t get_register(uint32_t number)
{
    uint32_t low, high;
    __asm__ volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(number));
    return low | (uint64_t)high << 32;
}
static void cpuid(uint32_t leaf, uint32_t found[4])
{
    __asm__ volatile("cpuid"
                     : "=a"(found[0]), "=b"(found[1]), "=c"(found[2]), "=d"(found[3])
                     : "a"(leaf), "c"(0));
}
void *memcpy(void *to, const void *from, size_t bytes)
{
    void *const start = to;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
    return start;
}
void *memset(void *to, int byte, size_t bytes)
{
    void *const start = to;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(byte) : "memory");
    return start;
}
static _Noreturn void power_off(void)
{
    for (const char *word = "Shutdown"; *word; ++word) out8(0x8900, (uint8_t)*word);
    for (;;) __asm__ volatile("hlt");
}

/* --- the disk --------------------------------------------------------------------------------- */
static uint8_t disk_ready(uint8_t wanted)
{
    uint8_t status;
    do status = in8(0x1f7);
    while ((status & 0x80) != 0 || (status & 0x21) == 0 && (status & wanted) != wanted);
    return status;
}
/* Move sectors, at most 256. */
static void disk_move(uint8_t command, uint64_t first, uint64_t count, void *place)
{
    disk_ready(0x40);
    out8(0x1f6, (uint8_t)(0xe0 | first >> 24));
    out8(0x1f2, (uint8_t)count);
    out8(0x1f3, (uint8_t)first);
    out8(0x1f4, (uint8_t)(first >> 8));
    out8(0x1f5, (uint8_t)(first >> 16));
    out8(0x1f7, command);
    for (; count > 0; --count) {
        uint64_t words = SECTOR / 2;
        if (disk_ready(0x08) & 0x21) power_off();
        if (command == 0x20)
            __asm__ volatile("rep insw" : "+D"(place), "+c"(words) : "d"(0x1f0) : "memory");
        else
            __asm__ volatile("rep outsw" : "+S"(place), "+c"(words) : "d"(0x1f0) : "memory");
    }
    if (disk_ready(0x40) & 0x21) power_off();
}

/* Bytes that lie on the disk, the block at hand in memory. */
typedef struct {
    uint64_t sector, bytes, done;
    uint8_t block[BLOCK];
} Stream;

static uint64_t sectors(uint64_t bytes)
{
    return (bytes + SECTOR - 1) / SECTOR;
}
static void stream_read(Stream *from, void *to, uint64_t bytes)
{
    while (bytes > 0) {
        const uint64_t at = from->done % BLOCK;
        if (at == 0) {
            const uint64_t left = sectors(from->bytes - from->done);
            disk_move(0x20, from->sector + from->done / SECTOR, left < 256 ? left : 256, from->block);
        }
        const uint64_t now = bytes < BLOCK - at ? bytes : BLOCK - at;
        memcpy(to, from->block + at, now);
        from->done += now, bytes -= now, to = (uint8_t *)to + now;
    }
}
static void stream_write(Stream *to, const void *from, uint64_t bytes)
{
    while (bytes > 0) {
        const uint64_t at = to->done % BLOCK;
        const uint64_t now = bytes < BLOCK - at ? bytes : BLOCK - at;
        memcpy(to->block + at, from, now);
        to->done += now, bytes -= now, from = (const uint8_t *)from + now;
        if (to->done % BLOCK == 0)
            disk_move(0x30, to->sector + to->done / SECTOR - 256, 256, to->block);
    }
}
static void stream_end(Stream *to)
{
    const uint64_t rest = to->done % BLOCK;
    if (rest != 0) disk_move(0x30, to->sector + (to->done - rest) / SECTOR, sectors(rest), to->block);
}
