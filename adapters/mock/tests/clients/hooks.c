/* Puts hooks on entries of the mock and says whether they did what causeway/mock.h says. */
#include <causeway/mock.h>
#include <stdio.h>
#include <stdlib.h>
#include <unified-runtime/ur_ddi.h>

#define CHECK(what)                                                   \
    do {                                                              \
        if (!(what)) {                                                \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #what); \
            exit(1);                                                  \
        }                                                             \
    } while (0)

static int seen;

/* Allocates ten times as much as is asked for. */
static ur_result_t enlarge(void *params, ur_result_t result, void *data) {
    ur_usm_host_alloc_params_t *of = (ur_usm_host_alloc_params_t *)params;
    CHECK(result == UR_RESULT_SUCCESS);
    *of->psize *= *(size_t *)data;
    return UR_RESULT_SUCCESS;
}
/* Gives an address of its own. */
static ur_result_t instead(void *params, ur_result_t result, void *data) {
    ur_usm_host_alloc_params_t *of = (ur_usm_host_alloc_params_t *)params;
    CHECK(result == UR_RESULT_SUCCESS);
    CHECK(*of->psize == 640);
    **of->pppMem = data;
    return UR_RESULT_SUCCESS;
}
/* Turns what was a success into something else. */
static ur_result_t after(void *params, ur_result_t result, void *data) {
    (void)params;
    seen++;
    return result == UR_RESULT_SUCCESS ? *(ur_result_t *)data : result;
}
static ur_result_t end(void *params, ur_result_t result, void *data) {
    (void)params;
    (void)result;
    (void)data;
    return UR_RESULT_ERROR_DEVICE_LOST;
}

int main(void) {
    ur_usm_dditable_t usm;
    ur_context_dditable_t contexts;
    CHECK(urGetUSMProcAddrTable(UR_API_VERSION_CURRENT, &usm) == UR_RESULT_SUCCESS);
    CHECK(urGetContextProcAddrTable(UR_API_VERSION_CURRENT, &contexts) == UR_RESULT_SUCCESS);
    ur_adapter_dditable_t adapters;
    ur_platform_dditable_t platforms;
    ur_device_dditable_t devices;
    CHECK(urGetAdapterProcAddrTable(UR_API_VERSION_CURRENT, &adapters) == UR_RESULT_SUCCESS);
    CHECK(urGetPlatformProcAddrTable(UR_API_VERSION_CURRENT, &platforms) == UR_RESULT_SUCCESS);
    CHECK(urGetDeviceProcAddrTable(UR_API_VERSION_CURRENT, &devices) == UR_RESULT_SUCCESS);

    ur_adapter_handle_t adapter;
    ur_platform_handle_t platform;
    ur_device_handle_t device;
    ur_context_handle_t context;
    CHECK(adapters.pfnGet(1, &adapter, NULL) == UR_RESULT_SUCCESS);
    CHECK(platforms.pfnGet(adapter, 1, &platform, NULL) == UR_RESULT_SUCCESS);
    CHECK(devices.pfnGet(platform, UR_DEVICE_TYPE_ALL, 1, &device, NULL) == UR_RESULT_SUCCESS);
    CHECK(contexts.pfnCreate(1, &device, NULL, &context) == UR_RESULT_SUCCESS);

    /* Before: what it changes is what the entry gets. */
    void *memory = NULL;
    size_t factor = 10, size = 0;
    CHECK(cwMockSetBefore("urUSMHostAlloc", enlarge, &factor) == UR_RESULT_SUCCESS);
    CHECK(usm.pfnHostAlloc(context, NULL, NULL, 64, &memory) == UR_RESULT_SUCCESS);
    CHECK(usm.pfnGetMemAllocInfo(context, memory, UR_USM_ALLOC_INFO_SIZE, sizeof size, &size, NULL) ==
          UR_RESULT_SUCCESS);
    CHECK(size == 640);
    CHECK(usm.pfnFree(context, memory) == UR_RESULT_SUCCESS);

    /* In its place: nothing is allocated. */
    int mine;
    CHECK(cwMockSetReplace("urUSMHostAlloc", instead, &mine) == UR_RESULT_SUCCESS);
    CHECK(usm.pfnHostAlloc(context, NULL, NULL, 64, &memory) == UR_RESULT_SUCCESS);
    CHECK(memory == &mine);

    /* After: what it says is the code. */
    ur_result_t code = UR_RESULT_ERROR_OUT_OF_RESOURCES;
    CHECK(cwMockSetAfter("urUSMHostAlloc", after, &code) == UR_RESULT_SUCCESS);
    CHECK(usm.pfnHostAlloc(context, NULL, NULL, 64, &memory) == UR_RESULT_ERROR_OUT_OF_RESOURCES);
    CHECK(seen == 1);

    /* A hook before that says no ends the call: nothing comes after it. */
    CHECK(cwMockSetBefore("urUSMHostAlloc", end, NULL) == UR_RESULT_SUCCESS);
    CHECK(usm.pfnHostAlloc(context, NULL, NULL, 64, &memory) == UR_RESULT_ERROR_DEVICE_LOST);
    CHECK(seen == 1);

    /* One hook is taken away, then all of an entry, then all. */
    CHECK(cwMockSetBefore("urUSMHostAlloc", NULL, NULL) == UR_RESULT_SUCCESS);
    CHECK(cwMockSetReplace("urUSMHostAlloc", NULL, NULL) == UR_RESULT_SUCCESS);
    CHECK(usm.pfnHostAlloc(context, NULL, NULL, 64, &memory) == UR_RESULT_ERROR_OUT_OF_RESOURCES);
    CHECK(usm.pfnFree(context, memory) == UR_RESULT_SUCCESS);
    CHECK(cwMockReset("urUSMHostAlloc") == UR_RESULT_SUCCESS);
    CHECK(usm.pfnHostAlloc(context, NULL, NULL, 64, &memory) == UR_RESULT_SUCCESS);
    CHECK(cwMockSetReplace("urUSMFree", end, NULL) == UR_RESULT_SUCCESS);
    CHECK(usm.pfnFree(context, memory) == UR_RESULT_ERROR_DEVICE_LOST);
    CHECK(cwMockReset(NULL) == UR_RESULT_SUCCESS);
    CHECK(usm.pfnFree(context, memory) == UR_RESULT_SUCCESS);

    /* What is no entry is said to be none. */
    CHECK(cwMockSetReplace("urNoSuchEntry", end, NULL) == UR_RESULT_ERROR_INVALID_VALUE);
    CHECK(cwMockSetReplace(NULL, end, NULL) == UR_RESULT_ERROR_INVALID_NULL_POINTER);
    CHECK(cwMockReset("urNoSuchEntry") == UR_RESULT_ERROR_INVALID_VALUE);

    CHECK(contexts.pfnRelease(context) == UR_RESULT_SUCCESS);
    printf("hooks: all as said\n");
    return 0;
}
