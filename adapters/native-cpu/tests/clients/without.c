/* An adapter in front of another, all of whose devices lack what is shared between processes: it
 * hands every table on and changes one answer. For a loader that has only this adapter. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "unified-runtime/ur_api.h"
#include "unified-runtime/ur_ddi.h"

static ur_pfnDeviceGetInfo_t real_info;

static void *real(const char *name) {
    static void *library;
    if (library == NULL) library = dlopen(getenv("ADAPTER_BEHIND"), RTLD_NOW | RTLD_LOCAL);
    return library != NULL ? dlsym(library, name) : NULL;
}

static ur_result_t UR_APICALL info(ur_device_handle_t device, ur_device_info_t name, size_t size, void *value,
                                   size_t *needed) {
    ur_result_t result = real_info(device, name, size, value, needed);
    if (result == UR_RESULT_SUCCESS && value != NULL &&
        (name == UR_DEVICE_INFO_IPC_MEMORY_SUPPORT_EXP || name == UR_DEVICE_INFO_IPC_PHYSICAL_MEMORY_SUPPORT_EXP ||
         name == UR_DEVICE_INFO_IPC_EVENT_SUPPORT_EXP))
        memset(value, 0, size);
    return result;
}

#define GETTER(Table, type)                                                                                  \
    UR_DLLEXPORT ur_result_t UR_APICALL urGet##Table##ProcAddrTable(ur_api_version_t version, type *table) { \
        ur_result_t (*get)(ur_api_version_t, type *) =                                                       \
            (ur_result_t (*)(ur_api_version_t, type *))real("urGet" #Table "ProcAddrTable");                 \
        return get != NULL ? get(version, table) : UR_RESULT_ERROR_UNINITIALIZED;                            \
    }
GETTER(Adapter, ur_adapter_dditable_t)
GETTER(BindlessImagesExp, ur_bindless_images_exp_dditable_t)
GETTER(CommandBufferExp, ur_command_buffer_exp_dditable_t)
GETTER(Context, ur_context_dditable_t)
GETTER(DeviceExp, ur_device_exp_dditable_t)
GETTER(EnqueueExp, ur_enqueue_exp_dditable_t)
GETTER(Enqueue, ur_enqueue_dditable_t)
GETTER(EventExp, ur_event_exp_dditable_t)
GETTER(Event, ur_event_dditable_t)
GETTER(GraphExp, ur_graph_exp_dditable_t)
GETTER(IPCExp, ur_ipc_exp_dditable_t)
GETTER(Kernel, ur_kernel_dditable_t)
GETTER(Mem, ur_mem_dditable_t)
GETTER(MemoryExportExp, ur_memory_export_exp_dditable_t)
GETTER(PhysicalMem, ur_physical_mem_dditable_t)
GETTER(Platform, ur_platform_dditable_t)
GETTER(ProgramExp, ur_program_exp_dditable_t)
GETTER(Program, ur_program_dditable_t)
GETTER(QueueExp, ur_queue_exp_dditable_t)
GETTER(Queue, ur_queue_dditable_t)
GETTER(Sampler, ur_sampler_dditable_t)
GETTER(USMExp, ur_usm_exp_dditable_t)
GETTER(USM, ur_usm_dditable_t)
GETTER(UsmP2PExp, ur_usm_p2p_exp_dditable_t)
GETTER(VirtualMem, ur_virtual_mem_dditable_t)

UR_DLLEXPORT ur_result_t UR_APICALL urGetDeviceProcAddrTable(ur_api_version_t version, ur_device_dditable_t *table) {
    ur_result_t (*get)(ur_api_version_t, ur_device_dditable_t *) =
        (ur_result_t (*)(ur_api_version_t, ur_device_dditable_t *))real("urGetDeviceProcAddrTable");
    ur_result_t result = get != NULL ? get(version, table) : UR_RESULT_ERROR_UNINITIALIZED;
    if (result != UR_RESULT_SUCCESS) return result;
    real_info = table->pfnGetInfo;
    table->pfnGetInfo = info;
    return result;
}
