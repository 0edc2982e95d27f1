//! The tables of the driver, devices, contexts and memory.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    context::*, device::*, driver::*, ipc::*, memory::*, physical_memory::*, properties::*,
    property_lists::*, virtual_memory::*,
};
use ze_sys::*;

table!(zeGetGlobalProcAddrTable, ze_global_dditable_t, {
    pfnInit: zeInit,
    pfnInitDrivers: zeInitDrivers,
});
table!(zeGetDriverProcAddrTable, ze_driver_dditable_t, {
    pfnGet: zeDriverGet,
    pfnGetApiVersion: zeDriverGetApiVersion,
    pfnGetProperties: zeDriverGetProperties,
    pfnGetIpcProperties: zeDriverGetIpcProperties,
    pfnGetExtensionProperties: zeDriverGetExtensionProperties,
    pfnGetExtensionFunctionAddress: zeDriverGetExtensionFunctionAddress,
    pfnGetLastErrorDescription: zeDriverGetLastErrorDescription,
    pfnGetDefaultContext: zeDriverGetDefaultContext,
});
table!(zeGetDeviceProcAddrTable, ze_device_dditable_t, {
    pfnGet: zeDeviceGet,
    pfnGetSubDevices: zeDeviceGetSubDevices,
    pfnGetProperties: zeDeviceGetProperties,
    pfnGetComputeProperties: zeDeviceGetComputeProperties,
    pfnGetModuleProperties: zeDeviceGetModuleProperties,
    pfnGetCommandQueueGroupProperties: zeDeviceGetCommandQueueGroupProperties,
    pfnGetMemoryProperties: zeDeviceGetMemoryProperties,
    pfnGetMemoryAccessProperties: zeDeviceGetMemoryAccessProperties,
    pfnGetCacheProperties: zeDeviceGetCacheProperties,
    pfnGetImageProperties: zeDeviceGetImageProperties,
    pfnGetExternalMemoryProperties: zeDeviceGetExternalMemoryProperties,
    pfnGetP2PProperties: zeDeviceGetP2PProperties,
    pfnCanAccessPeer: zeDeviceCanAccessPeer,
    pfnGetStatus: zeDeviceGetStatus,
    pfnGetGlobalTimestamps: zeDeviceGetGlobalTimestamps,
    pfnReserveCacheExt: zeDeviceReserveCacheExt,
    pfnSetCacheAdviceExt: zeDeviceSetCacheAdviceExt,
    pfnPciGetPropertiesExt: zeDevicePciGetPropertiesExt,
    pfnGetRootDevice: zeDeviceGetRootDevice,
    pfnGetVectorWidthPropertiesExt: zeDeviceGetVectorWidthPropertiesExt,
    pfnGetAggregatedCopyOffloadIncrementValue: zeDeviceGetAggregatedCopyOffloadIncrementValue,
    pfnGetCounterBasedEventMaxValue: zeDeviceGetCounterBasedEventMaxValue,
});
table!(zeGetContextProcAddrTable, ze_context_dditable_t, {
    pfnCreate: zeContextCreate,
    pfnCreateEx: zeContextCreateEx,
    pfnDestroy: zeContextDestroy,
    pfnGetStatus: zeContextGetStatus,
    pfnSystemBarrier: zeContextSystemBarrier,
    pfnMakeMemoryResident: zeContextMakeMemoryResident,
    pfnEvictMemory: zeContextEvictMemory,
    pfnMakeImageResident: zeContextMakeImageResident,
    pfnEvictImage: zeContextEvictImage,
});
table!(zeGetMemProcAddrTable, ze_mem_dditable_t, {
    pfnAllocShared: zeMemAllocShared,
    pfnAllocDevice: zeMemAllocDevice,
    pfnAllocHost: zeMemAllocHost,
    pfnFree: zeMemFree,
    pfnFreeExt: zeMemFreeExt,
    pfnGetAllocProperties: zeMemGetAllocProperties,
    pfnGetAddressRange: zeMemGetAddressRange,
    pfnGetIpcHandle: zeMemGetIpcHandle,
    pfnOpenIpcHandle: zeMemOpenIpcHandle,
    pfnCloseIpcHandle: zeMemCloseIpcHandle,
    pfnPutIpcHandle: zeMemPutIpcHandle,
    pfnGetIpcHandleWithProperties: zeMemGetIpcHandleWithProperties,
});
table!(zeGetMemExpProcAddrTable, ze_mem_exp_dditable_t, {
    pfnGetIpcHandleFromFileDescriptorExp: zeMemGetIpcHandleFromFileDescriptorExp,
    pfnGetFileDescriptorFromIpcHandleExp: zeMemGetFileDescriptorFromIpcHandleExp,
    pfnSetAtomicAccessAttributeExp: zeMemSetAtomicAccessAttributeExp,
});
table!(zeGetPhysicalMemProcAddrTable, ze_physical_mem_dditable_t, {
    pfnCreate: zePhysicalMemCreate,
    pfnDestroy: zePhysicalMemDestroy,
    pfnGetProperties: zePhysicalMemGetProperties,
});
table!(zeGetVirtualMemProcAddrTable, ze_virtual_mem_dditable_t, {
    pfnReserve: zeVirtualMemReserve,
    pfnFree: zeVirtualMemFree,
    pfnQueryPageSize: zeVirtualMemQueryPageSize,
    pfnMap: zeVirtualMemMap,
    pfnUnmap: zeVirtualMemUnmap,
    pfnSetAccessAttribute: zeVirtualMemSetAccessAttribute,
    pfnGetAccessAttribute: zeVirtualMemGetAccessAttribute,
});
