/* What producer.c and consumer.c share: a device that the loader finds, and errors said in words. */
#ifndef LINK_H_INCLUDED
#define LINK_H_INCLUDED

#include <stdio.h>
#include <stdlib.h>

#include "unified-runtime/ur_api.h"

/* Numbers in the shared memory, and how many bytes they take. */
#define COUNT ((size_t)1 << 16)
#define BYTES (COUNT * sizeof(uint32_t))

static ur_adapter_handle_t adapter;
static ur_device_handle_t device;
static ur_context_handle_t context;
static ur_queue_handle_t queue;

/* Ends the program if a call failed, with the adapter's own words for it. */
static inline void check(ur_result_t result, const char *call) {
    const char *words = NULL;
    int32_t code = 0;
    if (result == UR_RESULT_SUCCESS) return;
    if (adapter != NULL) (void)urAdapterGetLastError(adapter, &words, &code);
    fprintf(stderr, "%s: error %d: %s\n", call, (int)result, words != NULL ? words : "nothing is known");
    exit(1);
}
#define CHECK(call) check((call), #call)

/* The same for what is not the adapter's business. */
static inline void require(int fine, const char *what) {
    if (fine) return;
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* Whether a device shares memory, physical memory and events. */
static inline int shares_all(ur_device_handle_t candidate) {
    static const ur_device_info_t kinds[] = {UR_DEVICE_INFO_IPC_MEMORY_SUPPORT_EXP,
                                             UR_DEVICE_INFO_IPC_PHYSICAL_MEMORY_SUPPORT_EXP,
                                             UR_DEVICE_INFO_IPC_EVENT_SUPPORT_EXP};
    size_t i;
    for (i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        ur_bool_t can = false;
        if (urDeviceGetInfo(candidate, kinds[i], sizeof can, &can, NULL) != UR_RESULT_SUCCESS || !can) return 0;
    }
    return 1;
}

/* Looks through the devices of a platform for one that shares everything. */
static inline void look_through(ur_platform_handle_t platform) {
    ur_device_handle_t *all;
    uint32_t count = 0, i;
    if (urDeviceGet(platform, UR_DEVICE_TYPE_ALL, 0, NULL, &count) != UR_RESULT_SUCCESS || count == 0) return;
    all = calloc(count, sizeof *all);
    require(all != NULL, "there is no memory");
    CHECK(urDeviceGet(platform, UR_DEVICE_TYPE_ALL, count, all, NULL));
    for (i = 0; i < count; i++) {
        if (device == NULL && shares_all(all[i])) device = all[i];
        else CHECK(urDeviceRelease(all[i]));
    }
    free(all);
}

/* The first device of any adapter and platform that shares everything, with a context and a queue for it. The
 * loader finds the adapters: UR_ADAPTERS_SEARCH_PATH names their folders. Both programs see the same list. */
static inline void start(void) {
    ur_adapter_handle_t *adapters;
    uint32_t count = 0, i, j;
    CHECK(urLoaderInit(0, NULL));
    CHECK(urAdapterGet(0, NULL, &count));
    require(count > 0, "no adapter was found: name their folders in UR_ADAPTERS_SEARCH_PATH");
    adapters = calloc(count, sizeof *adapters);
    require(adapters != NULL, "there is no memory");
    CHECK(urAdapterGet(count, adapters, NULL));
    for (i = 0; i < count; i++) {
        ur_platform_handle_t *platforms;
        uint32_t found = 0;
        CHECK(urPlatformGet(adapters[i], 0, NULL, &found));
        platforms = calloc(found + 1, sizeof *platforms);
        require(platforms != NULL, "there is no memory");
        if (found > 0) CHECK(urPlatformGet(adapters[i], found, platforms, NULL));
        for (j = 0; j < found && device == NULL; j++) look_through(platforms[j]);
        free(platforms);
        /* The adapter of the chosen device is kept, for the words of its errors. */
        if (device != NULL && adapter == NULL) adapter = adapters[i];
        else CHECK(urAdapterRelease(adapters[i]));
    }
    free(adapters);
    require(device != NULL, "no device shares memory, physical memory and events");
    CHECK(urContextCreate(1, &device, NULL, &context));
    CHECK(urQueueCreate(context, device, NULL, &queue));
}
static inline void stop(void) {
    CHECK(urQueueRelease(queue));
    CHECK(urContextRelease(context));
    CHECK(urDeviceRelease(device));
    CHECK(urAdapterRelease(adapter));
    adapter = NULL;
    CHECK(urLoaderTearDown());
}

/* Reserves addresses for physical memory and maps it there. */
static inline void *map(ur_physical_mem_handle_t physical, size_t size) {
    void *at = NULL;
    CHECK(urVirtualMemReserve(context, NULL, size, &at));
    CHECK(urVirtualMemMap(context, at, size, physical, 0, UR_VIRTUAL_MEM_ACCESS_FLAG_READ_WRITE));
    return at;
}
static inline void unmap(void *at, size_t size) {
    CHECK(urVirtualMemUnmap(context, at, size));
    CHECK(urVirtualMemFree(context, at, size));
}

/* Says that everything enqueued so far is done, through an event that may be another process's. */
static inline void signal_event(ur_event_handle_t event) {
    CHECK(urEnqueueEventsWaitWithBarrierExt(queue, NULL, 0, NULL, &event));
    CHECK(urQueueFlush(queue));
}

static inline FILE *opened(const char *path, const char *mode) {
    FILE *file = fopen(path, mode);
    if (file == NULL) perror(path);
    require(file != NULL, "give the paths of two pipes (mkfifo), the first one from producer to consumer");
    return file;
}

#endif
