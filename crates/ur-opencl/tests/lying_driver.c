// A driver for an ICD loader, which has one platform of OpenCL 1.2 with one device, and none of the functions of later versions. Built with
// one of these it lies: OLD, its platform is of OpenCL 1.1 and has no functions of 1.2 either; DEVICES, it has more devices than there
// are; LENGTH, what it tells of them is longer than any memory.
#include <stdint.h>
#include <string.h>

typedef struct {
    void *functions[160];
} table;
// Where cl_icd.h has functions: one, and the first ones of these versions.
enum { CREATE_QUEUE = 9, OF_1_2 = 93, OF_2_0 = 123 };
#ifndef OLD
#define OLD 0
#endif
#ifndef DEVICES
#define DEVICES 0
#endif
#ifndef LENGTH
#define LENGTH 0
#endif
static table all;
static struct {
    table *functions;
} platform = {&all}, device = {&all}, context = {&all}, queue = {&all};

static int say(const void *what, size_t size, size_t room, void *to, size_t *length)
{
    if (length)
        *length = size;
    if (!to)
        return 0;
    if (room < size)
        return -30;
    memcpy(to, what, size);
    return 0;
}
static int text(const char *what, size_t room, void *to, size_t *length)
{
    return say(what, strlen(what) + 1, room, to, length);
}
static int platforms(unsigned room, void **to, unsigned *count)
{
    if (count)
        *count = 1;
    if (to && room)
        *to = &platform;
    return 0;
}
static int platform_info(void *of, unsigned name, size_t room, void *to, size_t *length)
{
    switch (name) {
    case 0x0901: return text(OLD ? "OpenCL 1.1 x" : "OpenCL 1.2 x", room, to, length);
    case 0x0904: return text("cl_khr_icd", room, to, length);
    case 0x0920: return text("LIAR", room, to, length);
    default: return text("a liar", room, to, length);
    }
}
static int devices(void *of, uint64_t kind, unsigned room, void **to, unsigned *count)
{
    if (count)
        *count = DEVICES ? 0xffffffff : 1;
    if (to && room)
        *to = &device;
    return 0;
}
static int device_info(void *of, unsigned name, size_t room, void *to, size_t *length)
{
    const size_t sides[3] = {64, 64, 64}, number = 64;
    if (LENGTH) {
        if (length)
            *length = (size_t)1 << 62;
        return 0;
    }
    switch (name) {
    case 0x1005: return say(sides, sizeof sides, room, to, length);
    case 0x1000: case 0x102a: case 0x1053: return say("\2\0\0\0\0\0\0", 8, room, to, length);
    case 0x102b: case 0x102d: case 0x102f: return text("OpenCL 1.2 x", room, to, length);
    default: return say(&number, sizeof number, room, to, length);
    }
}
static void *new_context(const void *how, unsigned count, const void *of, void *call, void *word, int *status)
{
    *status = 0;
    return &context;
}
static void *new_queue(void *in, void *of, uint64_t how, int *status)
{
    *status = 0;
    return &queue;
}
static long nothing(void) { return 0; }

void *clGetExtensionFunctionAddress(const char *name)
{
    if (!strcmp(name, "clIcdGetPlatformIDsKHR"))
        return (void *)platforms;
    return strcmp(name, "clGetPlatformInfo") ? 0 : (void *)platform_info;
}
int clIcdGetPlatformIDsKHR(unsigned room, void **to, unsigned *count) { return platforms(room, to, count); }
int clGetPlatformInfo(void *of, unsigned name, size_t room, void *to, size_t *length)
{
    return platform_info(of, name, room, to, length);
}
__attribute__((constructor)) static void fill(void)
{
    void *first[] = {platforms, platform_info, devices, device_info, new_context};
    for (int at = 0; at < (OLD ? OF_1_2 : OF_2_0); at++)
        all.functions[at] = (void *)nothing;
    memcpy(all.functions, first, sizeof first);
    all.functions[CREATE_QUEUE] = (void *)new_queue;
}
