/* The adapter through a loader with its layers: one ordinary program's way through the API, every
 * object let go of in the end. With an argument it does, at its end, what a layer must report. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unified-runtime/ur_api.h"

static ur_adapter_handle_t adapter;
static ur_platform_handle_t platform;
static ur_device_handle_t device;
static ur_context_handle_t context;
static ur_queue_handle_t queue, other;

static void check(ur_result_t result, const char *call) {
    const char *words = NULL;
    int32_t code = 0;
    if (result == UR_RESULT_SUCCESS) return;
    if (adapter != NULL) (void)urAdapterGetLastError(adapter, &words, &code);
    fprintf(stderr, "%s: error %d: %s\n", call, (int)result, words != NULL ? words : "nothing is known");
    exit(1);
}
#define CHECK(call) check((call), #call)
static void require(int fine, const char *what) {
    if (fine) return;
    fprintf(stderr, "%s\n", what);
    exit(1);
}

enum { BYTES = 1 << 16 };
static uint8_t host[BYTES];

static void all_hold(const void *memory, size_t size, uint8_t value, const char *what) {
    size_t i;
    CHECK(urEnqueueUSMMemcpy(queue, true, host, memory, size, 0, NULL, NULL));
    for (i = 0; i < size; i++) require(host[i] == value, what);
}

static void find(void) {
    uint32_t adapters = 0, platforms = 0, devices = 0;
    char name[256];
    size_t size = 0;
    ur_backend_t backend;
    CHECK(urLoaderInit(0, NULL));
    CHECK(urAdapterGet(0, NULL, &adapters));
    require(adapters == 1, "there is not one adapter");
    CHECK(urAdapterGet(1, &adapter, NULL));
    CHECK(urAdapterGetInfo(adapter, UR_ADAPTER_INFO_BACKEND, sizeof backend, &backend, NULL));
    CHECK(urPlatformGet(adapter, 0, NULL, &platforms));
    require(platforms == 1, "there is not one platform");
    CHECK(urPlatformGet(adapter, 1, &platform, NULL));
    CHECK(urPlatformGetInfo(platform, UR_PLATFORM_INFO_NAME, sizeof name, name, &size));
    CHECK(urDeviceGet(platform, UR_DEVICE_TYPE_ALL, 0, NULL, &devices));
    require(devices == 1, "there is not one device");
    CHECK(urDeviceGet(platform, UR_DEVICE_TYPE_ALL, 1, &device, NULL));
    CHECK(urDeviceGetInfo(device, UR_DEVICE_INFO_NAME, 0, NULL, &size));
    require(size <= sizeof name, "a long name");
    CHECK(urDeviceGetInfo(device, UR_DEVICE_INFO_NAME, size, name, NULL));
    require(strlen(name) + 1 == size, "a name without its end");
    CHECK(urContextCreate(1, &device, NULL, &context));
    CHECK(urContextRetain(context));
    CHECK(urContextRelease(context));
}

static void queues(void) {
    const ur_queue_properties_t timed = {
        UR_STRUCTURE_TYPE_QUEUE_PROPERTIES, NULL,
        UR_QUEUE_FLAG_OUT_OF_ORDER_EXEC_MODE_ENABLE | UR_QUEUE_FLAG_PROFILING_ENABLE};
    ur_context_handle_t of = NULL;
    CHECK(urQueueCreate(context, device, NULL, &queue));
    CHECK(urQueueCreate(context, device, &timed, &other));
    CHECK(urQueueGetInfo(queue, UR_QUEUE_INFO_CONTEXT, sizeof of, &of, NULL));
    require(of == context, "a queue of another context");
}

static void memory_of_every_kind(void) {
    void *memory[3];
    const uint8_t pattern[12] = {5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5};
    ur_event_handle_t first = NULL, second = NULL, list[2];
    ur_usm_type_t type;
    uint64_t start = 0, end = 0;
    int i;
    CHECK(urUSMDeviceAlloc(context, device, NULL, NULL, BYTES, &memory[0]));
    CHECK(urUSMHostAlloc(context, NULL, NULL, BYTES, &memory[1]));
    CHECK(urUSMSharedAlloc(context, device, NULL, NULL, BYTES, &memory[2]));
    CHECK(urUSMGetMemAllocInfo(context, memory[2], UR_USM_ALLOC_INFO_TYPE, sizeof type, &type, NULL));
    require(type == UR_USM_TYPE_SHARED, "memory of another kind");
    for (i = 0; i < 3; i++) {
        CHECK(urEnqueueUSMFill(other, memory[i], sizeof pattern, pattern, BYTES / 12 * 12, 0, NULL, &first));
        CHECK(urEnqueueUSMMemcpy(other, false, memory[(i + 1) % 3], memory[i], 1024, 1, &first, &second));
        CHECK(urEnqueueUSMMemcpy2D(other, false, (char *)memory[(i + 1) % 3] + 8192, 64, memory[i], 64, 32, 16, 1,
                                   &second, NULL));
        CHECK(urEnqueueUSMPrefetch(other, memory[i], BYTES, 0, 1, &second, NULL));
        CHECK(urEnqueueUSMAdvise(other, memory[i], BYTES, UR_USM_ADVICE_FLAG_DEFAULT, NULL));
        list[0] = first;
        list[1] = second;
        CHECK(urEnqueueEventsWaitWithBarrier(other, 2, list, NULL));
        CHECK(urEventWait(2, list));
        CHECK(urEventGetProfilingInfo(second, UR_PROFILING_INFO_COMMAND_START, sizeof start, &start, NULL));
        CHECK(urEventGetProfilingInfo(second, UR_PROFILING_INFO_COMMAND_END, sizeof end, &end, NULL));
        require(start <= end, "a command ended before it began");
        CHECK(urEventRetain(first));
        CHECK(urEventRelease(first));
        CHECK(urEventRelease(first));
        CHECK(urEventRelease(second));
        CHECK(urQueueFinish(other));
    }
    all_hold(memory[0], 1024, 5, "a fill or a copy is wrong");
    for (i = 0; i < 3; i++) CHECK(urUSMFree(context, memory[i]));
}

static void pools(void) {
    ur_usm_pool_desc_t desc = {UR_STRUCTURE_TYPE_USM_POOL_DESC, NULL, 0};
    ur_usm_pool_handle_t pool = NULL;
    void *memory = NULL;
    CHECK(urUSMPoolCreate(context, &desc, &pool));
    CHECK(urUSMDeviceAlloc(context, device, NULL, pool, BYTES, &memory));
    CHECK(urUSMFree(context, memory));
    CHECK(urUSMPoolRetain(pool));
    CHECK(urUSMPoolRelease(pool));
    CHECK(urUSMPoolRelease(pool));
}

static void *mapped(ur_physical_mem_handle_t physical, size_t size) {
    void *at = NULL;
    CHECK(urVirtualMemReserve(context, NULL, size, &at));
    CHECK(urVirtualMemMap(context, at, size, physical, 0, UR_VIRTUAL_MEM_ACCESS_FLAG_READ_WRITE));
    return at;
}
static void unmapped(void *at, size_t size) {
    CHECK(urVirtualMemUnmap(context, at, size));
    CHECK(urVirtualMemFree(context, at, size));
}

static void shared_between_processes(void) {
    const ur_physical_mem_properties_t shareable = {
        UR_STRUCTURE_TYPE_PHYSICAL_MEM_PROPERTIES, NULL, UR_PHYSICAL_MEM_FLAG_ENABLE_IPC};
    const ur_exp_event_desc_t for_others = {UR_STRUCTURE_TYPE_EXP_EVENT_DESC, NULL, UR_EXP_EVENT_FLAG_IPC_EXP};
    ur_physical_mem_handle_t physical = NULL, opened = NULL;
    ur_event_handle_t event = NULL, theirs = NULL;
    ur_event_status_t status;
    void *memory = NULL, *again = NULL, *here, *there, *ticket = NULL;
    size_t size = 0;
    int round;

    CHECK(urUSMDeviceAlloc(context, device, NULL, NULL, BYTES, &memory));
    CHECK(urIPCGetMemHandleExp(context, memory, &ticket, &size));
    CHECK(urIPCOpenMemHandleExp(context, device, ticket, size, &again));
    CHECK(urEnqueueUSMFill(queue, memory, 1, "\7", BYTES, 0, NULL, NULL));
    all_hold(again, BYTES, 7, "opened memory is other memory");
    CHECK(urIPCCloseMemHandleExp(context, again));
    CHECK(urIPCPutMemHandleExp(context, ticket));
    CHECK(urUSMFree(context, memory));

    CHECK(urVirtualMemGranularityGetInfo(context, device, BYTES, UR_VIRTUAL_MEM_GRANULARITY_INFO_RECOMMENDED,
                                         sizeof size, &size, NULL));
    CHECK(urPhysicalMemCreate(context, device, size, &shareable, &physical));
    here = mapped(physical, size);
    {
        size_t ticket_size = 0;
        CHECK(urIPCGetPhysMemHandleExp(context, physical, &ticket, &ticket_size));
        CHECK(urIPCOpenPhysMemHandleExp(context, device, ticket, ticket_size, &opened));
    }
    there = mapped(opened, size);
    CHECK(urEnqueueUSMFill(queue, here, 1, "\10", size, 0, NULL, NULL));
    all_hold(there, size, 8, "opened physical memory is other memory");
    unmapped(there, size);
    unmapped(here, size);
    CHECK(urIPCClosePhysMemHandleExp(context, opened));
    CHECK(urIPCPutPhysMemHandleExp(context, ticket));
    CHECK(urPhysicalMemRelease(physical));

    CHECK(urEventCreateExp(context, device, &for_others, &event));
    CHECK(urIPCGetEventHandleExp(event, &ticket, &size));
    CHECK(urIPCOpenEventHandleExp(context, ticket, size, &theirs));
    for (round = 0; round < 10; round++) {
        CHECK(urEnqueueEventsWaitWithBarrierExt(queue, NULL, 0, NULL, round % 2 ? &event : &theirs));
        CHECK(urEnqueueEventsWaitWithBarrierExt(other, NULL, 1, round % 3 ? &event : &theirs, NULL));
        CHECK(urEventWait(1, round % 2 ? &theirs : &event));
    }
    CHECK(urEventGetInfo(theirs, UR_EVENT_INFO_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    require(status == UR_EVENT_STATUS_COMPLETE, "an event did not complete");
    CHECK(urQueueFinish(other));
    CHECK(urIPCPutEventHandleExp(context, ticket));
    CHECK(urEventRelease(theirs));
    CHECK(urEventRelease(event));
}

static void buffers(void) {
    ur_mem_handle_t whole = NULL, half = NULL;
    const ur_buffer_region_t region = {UR_STRUCTURE_TYPE_BUFFER_REGION, NULL, BYTES / 2, BYTES / 2};
    ur_event_handle_t filled = NULL;
    void *at = NULL;
    CHECK(urMemBufferCreate(context, UR_MEM_FLAG_READ_WRITE, BYTES, NULL, &whole));
    CHECK(urMemBufferPartition(whole, UR_MEM_FLAG_READ_WRITE, UR_BUFFER_CREATE_TYPE_REGION, &region, &half));
    CHECK(urEnqueueMemBufferFill(queue, whole, "\1", 1, 0, BYTES, 0, NULL, NULL));
    CHECK(urEnqueueMemBufferFill(queue, half, "\2", 1, 0, BYTES / 2, 0, NULL, &filled));
    CHECK(urEnqueueMemBufferCopy(queue, half, whole, 0, 0, 1024, 1, &filled, NULL));
    CHECK(urEnqueueMemBufferRead(queue, whole, true, 0, BYTES, host, 0, NULL, NULL));
    require(host[0] == 2 && host[1024] == 1 && host[BYTES - 1] == 2, "a buffer holds other bytes");
    CHECK(urEnqueueMemBufferWrite(queue, half, true, 16, 16, "0123456789abcdef", 0, NULL, NULL));
    CHECK(urEnqueueMemBufferMap(queue, whole, true, UR_MAP_FLAG_READ, BYTES / 2, 64, 0, NULL, NULL, &at));
    require(memcmp((char *)at + 16, "0123456789abcdef", 16) == 0, "a mapped buffer holds other bytes");
    CHECK(urEnqueueMemUnmap(queue, whole, at, 0, NULL, NULL));
    CHECK(urQueueFinish(queue));
    CHECK(urEventRelease(filled));
    CHECK(urMemRelease(half));
    CHECK(urMemRelease(whole));
}

static void command_buffers(void) {
    ur_exp_command_buffer_desc_t desc;
    ur_exp_command_buffer_handle_t commands = NULL;
    ur_exp_command_buffer_sync_point_t point = 0;
    void *memory = NULL;
    ur_bool_t supported = false;
    int i;
    CHECK(urDeviceGetInfo(device, UR_DEVICE_INFO_COMMAND_BUFFER_SUPPORT_EXP, sizeof supported, &supported, NULL));
    if (!supported) return;
    memset(&desc, 0, sizeof desc);
    desc.stype = UR_STRUCTURE_TYPE_EXP_COMMAND_BUFFER_DESC;
    CHECK(urUSMDeviceAlloc(context, device, NULL, NULL, BYTES, &memory));
    CHECK(urCommandBufferCreateExp(context, device, &desc, &commands));
    CHECK(urCommandBufferAppendUSMFillExp(commands, memory, "\11", 1, BYTES / 2, 0, NULL, 0, NULL, &point, NULL, NULL));
    CHECK(urCommandBufferAppendUSMMemcpyExp(commands, (char *)memory + BYTES / 2, memory, BYTES / 2, 1, &point, 0, NULL,
                                            NULL, NULL, NULL));
    CHECK(urCommandBufferFinalizeExp(commands));
    for (i = 0; i < 3; i++) CHECK(urEnqueueCommandBufferExp(queue, commands, 0, NULL, NULL));
    all_hold(memory, BYTES, 9, "a command buffer did something else");
    CHECK(urCommandBufferReleaseExp(commands));
    CHECK(urUSMFree(context, memory));
}

int main(int argc, char **argv) {
    const char *wrong = argc > 1 ? argv[1] : "";
    find();
    queues();
    memory_of_every_kind();
    pools();
    shared_between_processes();
    buffers();
    command_buffers();
    CHECK(urQueueRelease(other));
    CHECK(urQueueRelease(queue));
    if (strcmp(wrong, "null") == 0)
        require(urQueueFinish(NULL) == UR_RESULT_ERROR_INVALID_NULL_HANDLE, "a null handle was taken");
    if (strcmp(wrong, "leak") != 0) CHECK(urContextRelease(context));
    CHECK(urDeviceRelease(device));
    CHECK(urAdapterRelease(adapter));
    CHECK(urLoaderTearDown());
    puts("loader: fine");
    return 0;
}
