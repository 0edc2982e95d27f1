/* Shares device memory, physical memory and two events with consumer.c. The handle bytes are all
 * that passes between the two; the data itself is never copied into a pipe.
 *
 *   producer TO FROM      TO and FROM are named pipes; the consumer gets the same two */
#include "link.h"

/* Sends one handle: how long it is, then its bytes. */
static void send_handle(FILE *to, const void *data, size_t size) {
    int sent = fwrite(&size, sizeof size, 1, to) == 1 && fwrite(data, 1, size, to) == size;
    require(sent, "the consumer does not read: it may have ended");
}

int main(int argc, char **argv) {
    static uint32_t numbers[COUNT], answer[COUNT];
    const ur_physical_mem_properties_t shareable = {
        UR_STRUCTURE_TYPE_PHYSICAL_MEM_PROPERTIES, NULL, UR_PHYSICAL_MEM_FLAG_ENABLE_IPC};
    const ur_exp_event_desc_t for_others = {UR_STRUCTURE_TYPE_EXP_EVENT_DESC, NULL, UR_EXP_EVENT_FLAG_IPC_EXP};
    ur_physical_mem_handle_t physical = NULL;
    ur_event_handle_t ready = NULL, done = NULL;
    void *memory = NULL, *mapped = NULL, *handle[4];
    size_t granularity = 0, size, handle_size[4], i;
    FILE *to, *from;

    require(argc == 3, "usage: producer TO FROM");
    to = opened(argv[1], "wb");
    from = opened(argv[2], "rb");
    start();

    /* Two kinds of memory. */
    CHECK(urUSMDeviceAlloc(context, device, NULL, NULL, BYTES, &memory));
    CHECK(urVirtualMemGranularityGetInfo(context, device, BYTES, UR_VIRTUAL_MEM_GRANULARITY_INFO_RECOMMENDED,
                                              sizeof granularity, &granularity, NULL));
    size = (BYTES + granularity - 1) / granularity * granularity;
    CHECK(urPhysicalMemCreate(context, device, size, &shareable, &physical));
    mapped = map(physical, size);

    /* Work that fills both, and an event that says when it is done. Nothing here waits. */
    for (i = 0; i < COUNT; i++) numbers[i] = (uint32_t)i;
    CHECK(urEventCreateExp(context, device, &for_others, &ready));
    CHECK(urEventCreateExp(context, device, &for_others, &done));
    CHECK(urEnqueueUSMMemcpy(queue, false, memory, numbers, BYTES, 0, NULL, NULL));
    CHECK(urEnqueueUSMMemcpy(queue, false, mapped, memory, BYTES, 0, NULL, NULL));
    signal_event(ready);

    /* Handles, for the consumer. */
    CHECK(urIPCGetMemHandleExp(context, memory, &handle[0], &handle_size[0]));
    CHECK(urIPCGetPhysMemHandleExp(context, physical, &handle[1], &handle_size[1]));
    CHECK(urIPCGetEventHandleExp(ready, &handle[2], &handle_size[2]));
    CHECK(urIPCGetEventHandleExp(done, &handle[3], &handle_size[3]));
    for (i = 0; i < 4; i++) send_handle(to, handle[i], handle_size[i]);
    require(fflush(to) == 0, "the consumer does not read: it may have ended");

    /* A byte says that the consumer has submitted its signal; the event says that its work is done. */
    require(fgetc(from) == 's', "the consumer ended without an answer");
    CHECK(urEnqueueUSMMemcpy(queue, false, answer, memory, BYTES, 1, &done, NULL));
    CHECK(urQueueFinish(queue));
    for (i = 0; i < COUNT; i++) require(answer[i] == 2 * (uint32_t)i, "device memory does not hold the answer");
    CHECK(urEnqueueUSMMemcpy(queue, true, answer, mapped, BYTES, 0, NULL, NULL));
    for (i = 0; i < COUNT; i++) require(answer[i] == 3 * (uint32_t)i, "physical memory does not hold the answer");

    /* The consumer closes its end when it has let go of everything. */
    require(fgetc(from) == EOF, "the consumer says more than was agreed");
    CHECK(urIPCPutMemHandleExp(context, handle[0]));
    CHECK(urIPCPutPhysMemHandleExp(context, handle[1]));
    CHECK(urIPCPutEventHandleExp(context, handle[2]));
    CHECK(urIPCPutEventHandleExp(context, handle[3]));
    CHECK(urEventRelease(ready));
    CHECK(urEventRelease(done));
    unmap(mapped, size);
    CHECK(urPhysicalMemRelease(physical));
    CHECK(urUSMFree(context, memory));
    stop();
    fclose(to);
    fclose(from);
    puts("producer: both memories hold the consumer's answer");
    return 0;
}
