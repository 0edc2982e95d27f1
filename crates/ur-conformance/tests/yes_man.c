/* An adapter that returns success from every entry and does nothing: cases that it passes do not prove their rule. */
#include <stddef.h>
#include <stdint.h>
#ifdef HANGS
#include <unistd.h>
#endif

static uint64_t object[64];

/* Lists one object, for every kind of list. */
static uint32_t list(uint32_t room, void **to, uint32_t *count) {
    if (to && room) to[0] = object;
    if (count) *count = 1;
    return 0;
}
static uint32_t adapters(uint32_t room, void **to, uint32_t *count) { return list(room, to, count); }
static uint32_t platforms(void *of, uint32_t room, void **to, uint32_t *count) {
    (void)of;
#ifdef HANGS
    for (;;) pause();
#endif
    return list(room, to, count);
}
static uint32_t devices(void *of, uint32_t kind, uint32_t room, void **to, uint32_t *count) {
    (void)of, (void)kind;
    return list(room, to, count);
}
/* Answers every query with a number. */
static uint32_t info(void *of, uint32_t name, size_t size, void *to, size_t *reported) {
    (void)of, (void)name;
    size_t bytes = size && size < 8 ? size : 8;
    if (to) for (size_t at = 0; at < bytes; at++) ((char *)to)[at] = at == 0;
    if (reported) *reported = size ? size : 8;
    return 0;
}
static uint32_t no_error(void *of, const char **to, int32_t *number) {
    (void)of;
    *to = "";
    *number = 0;
    return 0;
}
static uint32_t yes(void) { return 0; }

static uint32_t fill(void **table, size_t slots) {
    for (size_t at = 0; at < slots; at++) table[at] = (void *)yes;
    return 0;
}
#define TABLE(name, slots) \
    uint32_t urGet##name##ProcAddrTable(uint32_t version, void **table) { (void)version; return fill(table, slots); }

uint32_t urGetAdapterProcAddrTable(uint32_t version, void **table) {
    (void)version;
    fill(table, 7);
    table[0] = (void *)adapters, table[3] = (void *)no_error, table[4] = (void *)info;
    return 0;
}
uint32_t urGetPlatformProcAddrTable(uint32_t version, void **table) {
    (void)version;
    fill(table, 6);
    table[0] = (void *)platforms, table[1] = (void *)info;
    return 0;
}
uint32_t urGetDeviceProcAddrTable(uint32_t version, void **table) {
    (void)version;
    fill(table, 9);
    table[0] = (void *)devices, table[1] = (void *)info;
    return 0;
}
TABLE(Context, 7)
TABLE(Event, 8)
TABLE(EventExp, 1)
TABLE(Program, 14)
TABLE(ProgramExp, 4)
TABLE(Kernel, 13)
TABLE(Queue, 8)
TABLE(QueueExp, 5)
TABLE(Sampler, 6)
TABLE(Mem, 10)
TABLE(PhysicalMem, 4)
TABLE(Enqueue, 25)
TABLE(EnqueueExp, 10)
TABLE(USM, 9)
TABLE(USMExp, 14)
TABLE(BindlessImagesExp, 23)
TABLE(CommandBufferExp, 23)
TABLE(GraphExp, 10)
TABLE(IPCExp, 11)
TABLE(MemoryExportExp, 3)
TABLE(UsmP2PExp, 3)
TABLE(VirtualMem, 7)
TABLE(DeviceExp, 1)
