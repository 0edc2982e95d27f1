/* Who may open device memory that is shared by urIPCGetMemHandleExp, and whether they may write it.
 *
 * The structure is chained to the ur_usm_desc_t of urUSMDeviceAlloc, since the memory has to be made for
 * it: in a descriptor of its own, and sealed. Adapters that do not know it ignore it and leave `held` as
 * it is: set that to 0 before, and free the memory if it is 0 afterwards. */
#ifndef CAUSEWAY_POLICY_H
#define CAUSEWAY_POLICY_H

#include <unified-runtime/ur_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CW_STRUCTURE_TYPE_IPC_POLICY_DESC ((ur_structure_type_t)0x43570001)

/* `access` */
#define CW_IPC_ACCESS_SAME_USER 0u /* processes of the exporter's effective user */
#define CW_IPC_ACCESS_USER 1u      /* processes whose effective user is `id` */
#define CW_IPC_ACCESS_PROCESS 2u   /* the process whose number is `id` now, and no later one of that number */

/* `flags` */
#define CW_IPC_POLICY_READ_ONLY 1u /* whoever opens the memory may only read it; the kernel holds them to it */

/* urUSMDeviceAlloc returns
 * UR_RESULT_ERROR_UNSUPPORTED_FEATURE: the device's driver cannot hold anybody to it (CUDA, Level Zero), or there is
 *     no such process, or the kernel (before 6.9) cannot tell processes apart for good, or the user is 65534 (nobody), who
 *     stands for everybody without a number here
 * UR_RESULT_ERROR_INVALID_ENUMERATION: an `access` or flag that there is not
 * UR_RESULT_ERROR_INVALID_VALUE: a pool was given, whose memory others have too
 *
 * urVirtualMemGetInfo with UR_VIRTUAL_MEM_INFO_ACCESS_MODE says of opened memory whether it may be written. */
typedef struct cw_ipc_policy_desc_t {
    ur_structure_type_t stype; /* CW_STRUCTURE_TYPE_IPC_POLICY_DESC */
    const void *pNext;
    uint32_t access;
    uint32_t id;
    uint32_t flags;
    uint32_t *held; /* [out][optional] 1 if the adapter holds others to the policy */
} cw_ipc_policy_desc_t;

/* For urUSMGetMemAllocInfo: a ur_bool_t, true if another process has the allocation open now. A process that
 * took its descriptor by pidfd_getfd, because the exporter's socket could not be reached, is not counted. Adapters
 * that do not know it return UR_RESULT_ERROR_UNSUPPORTED_ENUMERATION. */
#define CW_USM_ALLOC_INFO_IS_OPEN_ELSEWHERE ((ur_usm_alloc_info_t)0x43570002)

#ifdef __cplusplus
}
#endif
#endif
