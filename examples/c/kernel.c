/* Kernels for a native CPU device, in C and without any header of ours:
 *     cc -O2 -shared -fPIC -o kernel.so kernel.c
 * The file's bytes go to urProgramCreateWithBinary. Every exported function is a kernel and every
 * exported variable a device global; docs/native-kernels.md describes what is passed. */
#include <stddef.h>
#include <stdint.h>

struct place {
    size_t global_id[3], global_range[3], group_size[3], group_id[3], local_id[3], groups[3];
    size_t global_offset[3];
    uint32_t sub_groups, sub_group_id, sub_group_local_id, sub_group_size;
};
struct line {
    float factor;
    double shift;
    uint8_t tag[16];
};

int32_t scale = 3;
uint64_t visits[4];

/* out[i] = a[i] * scale + n: two addresses and a number by value. */
void scaled(void *const *args, const struct place *at) {
    int32_t *out = args[0];
    const int32_t *a = args[1];
    size_t i = at->global_id[0];
    out[i] = a[i] * scale + *(const int32_t *)args[2];
}
/* out[i] += n: adding again shows who ran twice. */
void increment(void *const *args, const struct place *at) {
    ((int32_t *)args[0])[at->global_id[0]] += *(const int32_t *)args[1];
}
/* The whole record of each item, where its ids say. */
void describe(void *const *args, const struct place *at) {
    const size_t *id = at->global_id, *from = at->global_offset, *n = at->global_range;
    size_t x = id[0] - from[0], y = id[1] - from[1], z = id[2] - from[2];
    ((struct place *)args[0])[x + n[0] * (y + n[1] * z)] = *at;
}
/* Local memory: the items of a group come one after the other. sums[group] = sum of a. */
void group_sum(void *const *args, const struct place *at) {
    int64_t *sums = args[0], *local = args[2];
    const int32_t *a = args[1];
    if (at->local_id[0] == 0)
        *local = 0;
    *local += a[at->global_id[0]];
    if (at->local_id[0] == at->group_size[0] - 1)
        sums[at->group_id[0]] = *local;
}
/* A structure by value. */
void line(void *const *args, const struct place *at) {
    const struct line *by = args[1];
    size_t i = at->global_id[0];
    ((double *)args[0])[i] = by->factor * (double)i + by->shift + by->tag[15];
}
/* What a sampler looks like from inside, and where two pieces of local memory are. */
void look(void *const *args, const struct place *at) {
    uint64_t *out = args[0];
    (void)at;
    out[0] = *(const uint32_t *)args[1];
    out[1] = (uintptr_t)args[2];
    out[2] = (uintptr_t)args[3];
    out[3] = (uintptr_t)args[4];
}
void visit(void *const *args, const struct place *at) {
    (void)args;
    __atomic_fetch_add(&visits[at->global_id[0] % 4], 1, __ATOMIC_RELAXED);
}
int sched_getcpu(void);
/* Marks the processor that each item ran on; some work, so that others come to help. */
void where(void *const *args, const struct place *at) {
    volatile uint32_t busy = 0;
    for (uint32_t n = *(const uint32_t *)args[1]; n > 0; n--)
        busy += n;
    ((int32_t *)args[0])[at->global_id[0]] = sched_getcpu();
}
/* Says that it is there and waits to be let go. */
void gate(void *const *args, const struct place *at) {
    uint32_t *word = args[0];
    (void)at;
    __atomic_store_n(&word[0], 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&word[1], __ATOMIC_SEQ_CST) == 0)
        ;
    word[2] = 7;
}
