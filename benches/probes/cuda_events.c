/* Measures two ways to share an event between processes on CUDA: the driver's interprocess events, and
 * 64-bit words in shared memory that streams write and wait for. It calls the driver directly and uses no
 * code of this project. The results are in docs/decisions/0009-events-on-streams.md.
 *
 *     cc -O2 cuda_events.c -o cuda_events -lcuda && ./cuda_events
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HOPS = 1000, ROUNDS = 21, EVENTS = 64, BYTES = 1 << 16 };
static _Atomic uint64_t *words; /* shared; word 0: gate, words 8 and 16: the two counters, word 24: end of the event chain */
static CUdeviceptr device_words;
static int channel;

#define MUST(call) do { CUresult r_ = (call); if (r_ != CUDA_SUCCESS) { const char *s_ = "?"; cuGetErrorName(r_, &s_); \
    fprintf(stderr, "%s:%d %s: %s\n", __FILE__, __LINE__, #call, s_); _exit(3); } } while (0)

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e6 + t.tv_nsec / 1e3; }
static void tell(const void *data, size_t n) { if (write(channel, data, n) != (ssize_t)n) { perror("write"); _exit(4); } }
static void hear(void *data, size_t n) { if (recv(channel, data, n, MSG_WAITALL) != (ssize_t)n) { fprintf(stderr, "the other side is gone\n"); _exit(4); } }
static void sync_up(void) { char c = 0; tell(&c, 1); hear(&c, 1); }
static int compare(const void *a, const void *b) { double x = *(const double *)a, y = *(const double *)b; return (x > y) - (x < y); }
static double median(double *v, int n) { qsort(v, n, sizeof *v, compare); return v[n / 2]; }

static CUcontext context;
static void start(int device) {
    CUdevice d;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&d, device));
    MUST(cuDevicePrimaryCtxRetain(&context, d));
    MUST(cuCtxSetCurrent(context));
    double t = now();
    MUST(cuMemHostRegister((void *)words, BYTES, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
    double took = now() - t;
    MUST(cuMemHostGetDevicePointer(&device_words, (void *)words, 0));
    fprintf(stderr, "pid %d: registering %d bytes of a memfd took %.0f us\n", getpid(), BYTES, took);
}
static CUdeviceptr at(int word) { return device_words + 8 * word; }

/* Words: side 0 waits for counter 1 and writes counter 0, side 1 the other way round. */
static void words_round(int side, CUstream s, uint64_t base) {
    for (uint64_t i = 1; i <= HOPS / 2; i++) {
        if (side == 0) {
            MUST(cuStreamWaitValue64(s, i == 1 ? at(0) : at(16), i == 1 ? base / HOPS + 1 : base + i - 1, CU_STREAM_WAIT_VALUE_GEQ));
            MUST(cuStreamWriteValue64(s, at(8), base + i, 0));
        } else {
            MUST(cuStreamWaitValue64(s, at(8), base + i, CU_STREAM_WAIT_VALUE_GEQ));
            MUST(cuStreamWriteValue64(s, at(16), base + i, 0));
        }
    }
}
static double words_chain(int side, CUstream s, int round) {
    uint64_t base = (uint64_t)round * HOPS;
    sync_up();
    words_round(side, s, base);
    sync_up(); /* both sides have submitted all their commands */
    double took = 0;
    if (side == 0) {
        if (atomic_load(&words[16]) >= base + HOPS / 2 || cuStreamQuery(s) != CUDA_ERROR_NOT_READY) { fprintf(stderr, "the chain ended before its gate opened\n"); _exit(5); }
        double t = now();
        atomic_store(&words[0], base / HOPS + 1);
        while (atomic_load(&words[16]) < base + HOPS / 2) ;
        took = now() - t;
    }
    MUST(cuStreamSynchronize(s));
    sync_up();
    return took / HOPS;
}
/* Events: each wait is for the record submitted just before it by the other side, so the sides take turns to submit. */
static double events_chain(int side, CUstream s, CUevent *mine, CUevent *theirs, int round) {
    char turn = 1;
    sync_up();
    if (side == 0) MUST(cuStreamWaitValue64(s, at(0), (uint64_t)round + 1, CU_STREAM_WAIT_VALUE_GEQ));
    for (int i = 0; i < HOPS / 2; i++) {
        if (side == 0) {
            if (i) { hear(&turn, 1); MUST(cuStreamWaitEvent(s, theirs[(i - 1) % EVENTS], 0)); }
            MUST(cuEventRecord(mine[i % EVENTS], s));
            tell(&turn, 1);
        } else {
            hear(&turn, 1);
            MUST(cuStreamWaitEvent(s, theirs[i % EVENTS], 0));
            MUST(cuEventRecord(mine[i % EVENTS], s));
            if (i == HOPS / 2 - 1) MUST(cuStreamWriteValue64(s, at(24), (uint64_t)round + 1, 0));
            tell(&turn, 1);
        }
    }
    if (side == 0) hear(&turn, 1);
    sync_up();
    double took = 0;
    if (side == 0) {
        if (atomic_load(&words[24]) >= (uint64_t)round + 1) { fprintf(stderr, "the chain ended before its gate opened\n"); _exit(5); }
        double t = now();
        atomic_store(&words[0], (uint64_t)round + 1);
        while (atomic_load(&words[24]) < (uint64_t)round + 1) ;
        took = now() - t;
    }
    MUST(cuStreamSynchronize(s));
    sync_up();
    return took / HOPS;
}
static void run(int side) {
    start(0);
    CUstream s;
    MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    CUevent mine[EVENTS], theirs[EVENTS];
    CUipcEventHandle handles[EVENTS], others[EVENTS];
    for (int i = 0; i < EVENTS; i++) {
        MUST(cuEventCreate(&mine[i], CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
        MUST(cuIpcGetEventHandle(&handles[i], mine[i]));
    }
    for (int i = 0; i < EVENTS; i++) { tell(&handles[i], sizeof handles[i]); hear(&others[i], sizeof others[i]); }
    double first = 0, later = 0;
    for (int i = 0; i < EVENTS; i++) {
        double t = now();
        CUresult r = cuIpcOpenEventHandle(&theirs[i], others[i]);
        if (r) { const char *n = "?"; cuGetErrorName(r, &n); printf("side %d: interprocess events cannot be opened: %s\n", side, n); break; }
        if (i == 0) first = now() - t; else later += (now() - t) / (EVENTS - 1);
    }
    if (side == 0) printf("open of an interprocess event: first %.1f us, later %.2f us\n", first, later);
    double by_words[ROUNDS], by_events[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        by_words[i] = words_chain(side, s, i);
        sync_up();
        if (side == 0) { atomic_store(&words[0], 0); atomic_store(&words[24], 0); }
        sync_up();
        by_events[i] = events_chain(side, s, mine, theirs, i);
        sync_up();
        if (side == 0) atomic_store(&words[0], 0);
        sync_up();
    }
    if (side == 0) {
        double e = median(by_events, ROUNDS), w = median(by_words, ROUNDS);
        printf("hop between processes, gated chain of %d, median of %d rounds: words %.2f us, interprocess events %.2f us\n", HOPS, ROUNDS, w, e);
        /* The latency from host to stream to host, and from a submission to its result on the host. */
        double there[1001], seen[1001];
        for (int i = 0; i < 1001; i++) {
            uint64_t v = 1000000 + i;
            MUST(cuStreamWaitValue64(s, at(32), v, CU_STREAM_WAIT_VALUE_GEQ));
            MUST(cuStreamWriteValue64(s, at(40), v, 0));
            double t = now(); atomic_store(&words[32], v);
            while (atomic_load(&words[40]) < v) ;
            there[i] = now() - t;
            t = now(); MUST(cuStreamWriteValue64(s, at(48), v, 0));
            while (atomic_load(&words[48]) < v) ;
            seen[i] = now() - t;
        }
        printf("host to stream to host %.2f us; submission to host %.2f us\n", median(there, 1001), median(seen, 1001));
    }
    sync_up();
    MUST(cuStreamSynchronize(s));
}

/* What happens to a waiting stream when the process that should signal is killed, and whether another
 * process can end the wait. */
static void death(int by_events) {
    int ends[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    memset((void *)words, 0, BYTES);
    pid_t child = fork();
    if (child == 0) {
        channel = ends[1];
        start(0);
        CUstream s; CUevent e; CUipcEventHandle h;
        MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
        MUST(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
        MUST(cuIpcGetEventHandle(&h, e));
        MUST(cuStreamWaitValue64(s, at(0), 1, CU_STREAM_WAIT_VALUE_GEQ)); /* word 0 is never set */
        if (by_events) MUST(cuEventRecord(e, s)); else MUST(cuStreamWriteValue64(s, at(8), 1, 0));
        tell(&h, sizeof h);
        pause();
    }
    pid_t waiter = fork();
    if (waiter == 0) {
        channel = ends[0];
        CUipcEventHandle h; hear(&h, sizeof h);
        start(0);
        CUstream s; CUevent e;
        MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
        if (by_events) { MUST(cuIpcOpenEventHandle(&e, h)); MUST(cuStreamWaitEvent(s, e, 0)); }
        else MUST(cuStreamWaitValue64(s, at(8), 4, CU_STREAM_WAIT_VALUE_GEQ));
        CUevent done; MUST(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING)); MUST(cuEventRecord(done, s));
        usleep(200000);
        CUresult before = cuEventQuery(done);
        kill(child, SIGKILL);
        double t = now();
        CUresult after;
        while ((after = cuEventQuery(done)) == CUDA_ERROR_NOT_READY && now() - t < 3e6) usleep(1000);
        const char *b = "?", *a = "?"; cuGetErrorName(before, &b); cuGetErrorName(after, &a);
        printf("%s: signaller killed while a stream waits: before %s, after %.0f ms %s", by_events ? "events" : "words", b, (now() - t) / 1e3, a);
        if (after == CUDA_ERROR_NOT_READY) {
            if (!by_events) atomic_fetch_or(&words[8], (uint64_t)1 << 60 | 2); /* written by the surviving process */
            t = now();
            while ((after = cuEventQuery(done)) == CUDA_ERROR_NOT_READY && now() - t < 2e6) usleep(10);
            cuGetErrorName(after, &a);
            printf("; released by a survivor's store: %s after %.2f ms", a, (now() - t) / 1e3);
        }
        printf("\n"); fflush(stdout);
        _exit(0);
    }
    int status;
    close(ends[0]); close(ends[1]);
    waitpid(waiter, &status, 0);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
}
static void again_during_a_wait(void) {
    start(0);
    CUstream a, b; CUevent e, done;
    memset((void *)words, 0, BYTES);
    MUST(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING)); MUST(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)); MUST(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
    MUST(cuStreamWaitValue64(a, at(0), 1, CU_STREAM_WAIT_VALUE_GEQ)); MUST(cuEventRecord(e, a));
    MUST(cuStreamWaitEvent(b, e, 0)); MUST(cuEventRecord(done, b));
    MUST(cuStreamWaitValue64(a, at(0), 2, CU_STREAM_WAIT_VALUE_GEQ)); MUST(cuEventRecord(e, a)); /* a second record, still pending when the first completes */
    atomic_store(&words[0], 1);
    double t = now(); CUresult r;
    while ((r = cuEventQuery(done)) == CUDA_ERROR_NOT_READY && now() - t < 1e6) ;
    printf("events: a wait for the first record ends although the second is pending: %s\n", r == CUDA_SUCCESS ? "yes" : "NO");
    atomic_store(&words[0], 2);
    MUST(cuStreamSynchronize(a));
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED; CUgraph g;
    MUST(cuStreamBeginCapture(a, mode));
    CUresult w = cuStreamWaitValue64(a, at(0), 1, CU_STREAM_WAIT_VALUE_GEQ), x = cuStreamWriteValue64(a, at(8), 1, 0), ev = cuEventRecord(e, a);
    cuStreamEndCapture(a, &g);
    printf("stream capture: wait %d, write %d, interprocess record %d (0: taken)\n", w, x, ev);
}
static void physical(void) {
    start(0);
    CUmemAllocationProp p = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    size_t g = 0, r = 0; CUmemGenericAllocationHandle h; CUdeviceptr v;
    MUST(cuMemGetAllocationGranularity(&g, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM)); MUST(cuMemGetAllocationGranularity(&r, &p, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    MUST(cuMemCreate(&h, 4 * g, &p, 0)); MUST(cuMemAddressReserve(&v, 8 * g, 0, 0, 0));
    CUresult off = cuMemMap(v, g, g, h, 0);
    CUresult prefix = cuMemMap(v + 4 * g, 2 * g, 0, h, 0), twice = cuMemMap(v + 6 * g, 2 * g, 0, h, 0), too_big = 0, part = 0;
    part = cuMemUnmap(v + 4 * g, g);
    CUdeviceptr v2; MUST(cuMemAddressReserve(&v2, 8 * g, 0, 0, 0)); too_big = cuMemMap(v2, 8 * g, 0, h, 0);
    printf("granularity %zu (recommended %zu); map at offset: %d, prefix: %d, second time: %d, larger than it is: %d, partial unmap: %d (0: taken)\n", g, r, off, prefix, twice, too_big, part);
    CUmemAccessDesc ro = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READ }, none = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, CU_MEM_ACCESS_FLAGS_PROT_NONE }, rw = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    printf("access read-only: %d, none: %d, read-write: %d; with RDMA flag: ", cuMemSetAccess(v + 6 * g, 2 * g, &ro, 1), cuMemSetAccess(v + 6 * g, 2 * g, &none, 1), cuMemSetAccess(v + 6 * g, 2 * g, &rw, 1));
    p.allocFlags.gpuDirectRDMACapable = 1; CUmemGenericAllocationHandle h2; printf("%d\n", cuMemCreate(&h2, g, &p, 0));
    int fd = -1; double t = now(); MUST(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)); double e1 = now() - t;
    t = now(); int fd2; MUST(cuMemExportToShareableHandle(&fd2, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)); double e2 = now() - t;
    t = now(); CUmemGenericAllocationHandle i; CUresult im = cuMemImportFromShareableHandle(&i, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR); double i1 = now() - t;
    char link[64], path[256]; snprintf(link, sizeof link, "/proc/self/fd/%d", fd); ssize_t n = readlink(link, path, sizeof path - 1); path[n > 0 ? n : 0] = 0;
    printf("export %.0f us, again %.0f us; import here %d, %.0f us; the descriptor is %s\n", e1, e2, im, i1, path);
    int junk = memfd_create("junk", 0); ftruncate(junk, 1 << 22);
    printf("import of a memfd: %d\n", cuMemImportFromShareableHandle(&i, (void *)(intptr_t)junk, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    double al[101], vm[11]; for (int k = 0; k < 101; k++) { CUdeviceptr d; t = now(); MUST(cuMemAlloc(&d, 1 << 20)); MUST(cuMemFree(d)); al[k] = now() - t; }
    for (int k = 0; k < 11; k++) { CUmemGenericAllocationHandle hh; CUdeviceptr d; t = now(); p.allocFlags.gpuDirectRDMACapable = 0; MUST(cuMemCreate(&hh, g, &p, 0)); MUST(cuMemAddressReserve(&d, g, 0, 0, 0)); MUST(cuMemMap(d, g, 0, hh, 0)); MUST(cuMemSetAccess(d, g, &rw, 1)); vm[k] = now() - t; }
    printf("cuMemAlloc + cuMemFree of 1 MiB %.1f us; create, reserve, map, access of one granule %.1f us\n", median(al, 101), median(vm, 11));
}

int main(int argc, char **argv) {
    int fd = memfd_create("words", MFD_CLOEXEC);
    ftruncate(fd, BYTES);
    words = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    setvbuf(stdout, 0, _IOLBF, 0);
    (void)argc; (void)argv;
    int ends[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    pid_t other = fork();
    channel = ends[other == 0];
    if (other == 0) { run(1); _exit(0); }
    pid_t one = fork();
    if (one == 0) { run(0); _exit(0); }
    int status;
    waitpid(one, &status, 0); waitpid(other, &status, 0);
    death(0);
    death(1);
    void (*alone[])(void) = { again_during_a_wait, physical };
    for (int i = 0; i < 2; i++) {
        pid_t p = fork();
        if (p == 0) { alone[i](); _exit(0); }
        waitpid(p, &status, 0);
        if (status) printf("part %d ended with %d\n", i, status);
    }
    return 0;
}
