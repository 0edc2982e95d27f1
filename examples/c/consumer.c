/* Opens what producer.c shares, waits for its event, checks the data, answers in place, and says
 * so by the producer's second event.
 *
 *   consumer FROM TO      the producer's TO and FROM */
#include "link.h"

struct handle {
    size_t size;
    unsigned char bytes[1024];
};
static void receive_handle(FILE *from, struct handle *h) {
    int got = fread(&h->size, sizeof h->size, 1, from) == 1 && h->size <= sizeof h->bytes &&
              fread(h->bytes, 1, h->size, from) == h->size;
    require(got, "the producer ended before it had sent its handles");
}

int main(int argc, char **argv) {
    static uint32_t numbers[COUNT], twice[COUNT], thrice[COUNT];
    static struct handle handle[4];
    ur_physical_mem_handle_t physical = NULL;
    ur_event_handle_t ready = NULL, done = NULL;
    void *memory = NULL, *mapped = NULL;
    size_t size = 0, i;
    FILE *to, *from;

    require(argc == 3, "usage: consumer FROM TO");
    from = opened(argv[1], "rb");
    to = opened(argv[2], "wb");
    start();
    for (i = 0; i < 4; i++) receive_handle(from, &handle[i]);

    CHECK(urIPCOpenMemHandleExp(context, device, handle[0].bytes, handle[0].size, &memory));
    CHECK(urIPCOpenPhysMemHandleExp(context, device, handle[1].bytes, handle[1].size, &physical));
    CHECK(urIPCOpenEventHandleExp(context, handle[2].bytes, handle[2].size, &ready));
    CHECK(urIPCOpenEventHandleExp(context, handle[3].bytes, handle[3].size, &done));
    CHECK(urPhysicalMemGetInfo(physical, UR_PHYSICAL_MEM_INFO_SIZE, sizeof size, &size, NULL));
    mapped = map(physical, size);

    /* The copies wait for the producer's work, on the device. */
    CHECK(urEnqueueUSMMemcpy(queue, false, numbers, memory, BYTES, 1, &ready, NULL));
    CHECK(urQueueFinish(queue));
    for (i = 0; i < COUNT; i++) require(numbers[i] == (uint32_t)i, "device memory does not hold the producer's data");
    CHECK(urEnqueueUSMMemcpy(queue, true, numbers, mapped, BYTES, 0, NULL, NULL));
    for (i = 0; i < COUNT; i++) require(numbers[i] == (uint32_t)i, "physical memory does not hold the producer's data");

    /* The answer, and a signal that it is there once these copies are done. */
    for (i = 0; i < COUNT; i++) {
        twice[i] = 2 * numbers[i];
        thrice[i] = 3 * numbers[i];
    }
    CHECK(urEnqueueUSMMemcpy(queue, false, memory, twice, BYTES, 0, NULL, NULL));
    CHECK(urEnqueueUSMMemcpy(queue, false, mapped, thrice, BYTES, 0, NULL, NULL));
    signal_event(done);
    require(fputc('s', to) != EOF && fflush(to) == 0, "the producer does not read: it may have ended");
    CHECK(urEventWait(1, &done));

    CHECK(urEventRelease(ready));
    CHECK(urEventRelease(done));
    unmap(mapped, size);
    CHECK(urIPCClosePhysMemHandleExp(context, physical));
    CHECK(urIPCCloseMemHandleExp(context, memory));
    stop();
    fclose(from);
    fclose(to);
    puts("consumer: saw the producer's data in both memories");
    return 0;
}
