/* What producer.c and consumer.c share: the adapter's entry points in one table, its device, and
 * errors said in words. */
#ifndef LINK_H_INCLUDED
#define LINK_H_INCLUDED

#include <stdio.h>
#include <stdlib.h>

#include "unified-runtime/ur_api.h"
#include "unified-runtime/ur_ddi.h"

/* Numbers in the shared memory, and how many bytes they take. */
#define COUNT ((size_t)1 << 16)
#define BYTES (COUNT * sizeof(uint32_t))

static ur_dditable_t ur;
static ur_adapter_handle_t adapter;
static ur_device_handle_t device;
static ur_context_handle_t context;
static ur_queue_handle_t queue;

/* Ends the program if a call failed, with the adapter's own words for it. */
static inline void check(ur_result_t result, const char *call) {
    const char *words = NULL;
    int32_t code = 0;
    if (result == UR_RESULT_SUCCESS) return;
    if (adapter != NULL) (void)ur.Adapter.pfnGetLastError(adapter, &words, &code);
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

/* Fills the table, as a loader does after dlopen. */
static inline void load(void) {
#define TABLE(name) CHECK(urGet##name##ProcAddrTable(UR_API_VERSION_CURRENT, &ur.name))
    TABLE(Adapter);
    TABLE(Platform);
    TABLE(Context);
    TABLE(Event);
    TABLE(EventExp);
    TABLE(Program);
    TABLE(ProgramExp);
    TABLE(Kernel);
    TABLE(Queue);
    TABLE(QueueExp);
    TABLE(Sampler);
    TABLE(Mem);
    TABLE(PhysicalMem);
    TABLE(Enqueue);
    TABLE(EnqueueExp);
    TABLE(USM);
    TABLE(USMExp);
    TABLE(BindlessImagesExp);
    TABLE(CommandBufferExp);
    TABLE(GraphExp);
    TABLE(IPCExp);
    TABLE(MemoryExportExp);
    TABLE(UsmP2PExp);
    TABLE(VirtualMem);
    TABLE(Device);
    TABLE(DeviceExp);
#undef TABLE
}

/* The first device, with a context and a queue for it. */
static inline void start(void) {
    ur_platform_handle_t platform = NULL;
    load();
    CHECK(ur.Adapter.pfnGet(1, &adapter, NULL));
    CHECK(ur.Platform.pfnGet(adapter, 1, &platform, NULL));
    CHECK(ur.Device.pfnGet(platform, UR_DEVICE_TYPE_ALL, 1, &device, NULL));
    CHECK(ur.Context.pfnCreate(1, &device, NULL, &context));
    CHECK(ur.Queue.pfnCreate(context, device, NULL, &queue));
}
static inline void stop(void) {
    CHECK(ur.Queue.pfnRelease(queue));
    CHECK(ur.Context.pfnRelease(context));
    CHECK(ur.Device.pfnRelease(device));
    CHECK(ur.Adapter.pfnRelease(adapter));
}

/* Reserves addresses for physical memory and maps it there. */
static inline void *map(ur_physical_mem_handle_t physical, size_t size) {
    void *at = NULL;
    CHECK(ur.VirtualMem.pfnReserve(context, NULL, size, &at));
    CHECK(ur.VirtualMem.pfnMap(context, at, size, physical, 0, UR_VIRTUAL_MEM_ACCESS_FLAG_READ_WRITE));
    return at;
}
static inline void unmap(void *at, size_t size) {
    CHECK(ur.VirtualMem.pfnUnmap(context, at, size));
    CHECK(ur.VirtualMem.pfnFree(context, at, size));
}

/* Says that everything enqueued so far is done, through an event that may be another process's. */
static inline void signal_event(ur_event_handle_t event) {
    CHECK(ur.Enqueue.pfnEventsWaitWithBarrierExt(queue, NULL, 0, NULL, &event));
    CHECK(ur.Queue.pfnFlush(queue));
}

static inline FILE *opened(const char *path, const char *mode) {
    FILE *file = fopen(path, mode);
    if (file == NULL) perror(path);
    require(file != NULL, "give the paths of two pipes (mkfifo), the first one from producer to consumer");
    return file;
}

#endif
