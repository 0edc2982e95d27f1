//! The tables of modules, kernels, images and samplers.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{build_log::*, image::*, kernel::*, module::*, sampler::*};
use ze_sys::*;

table!(zeGetModuleProcAddrTable, ze_module_dditable_t, {
    pfnCreate: zeModuleCreate,
    pfnDestroy: zeModuleDestroy,
    pfnDynamicLink: zeModuleDynamicLink,
    pfnGetNativeBinary: zeModuleGetNativeBinary,
    pfnGetGlobalPointer: zeModuleGetGlobalPointer,
    pfnGetKernelNames: zeModuleGetKernelNames,
    pfnGetProperties: zeModuleGetProperties,
    pfnGetFunctionPointer: zeModuleGetFunctionPointer,
    pfnInspectLinkageExt: zeModuleInspectLinkageExt,
});
table!(zeGetModuleBuildLogProcAddrTable, ze_module_build_log_dditable_t, {
    pfnDestroy: zeModuleBuildLogDestroy,
    pfnGetString: zeModuleBuildLogGetString,
});
table!(zeGetKernelProcAddrTable, ze_kernel_dditable_t, {
    pfnCreate: zeKernelCreate,
    pfnDestroy: zeKernelDestroy,
    pfnSetCacheConfig: zeKernelSetCacheConfig,
    pfnSetGroupSize: zeKernelSetGroupSize,
    pfnSuggestGroupSize: zeKernelSuggestGroupSize,
    pfnSuggestMaxCooperativeGroupCount: zeKernelSuggestMaxCooperativeGroupCount,
    pfnSetArgumentValue: zeKernelSetArgumentValue,
    pfnSetIndirectAccess: zeKernelSetIndirectAccess,
    pfnGetIndirectAccess: zeKernelGetIndirectAccess,
    pfnGetSourceAttributes: zeKernelGetSourceAttributes,
    pfnGetProperties: zeKernelGetProperties,
    pfnGetName: zeKernelGetName,
});
table!(zeGetKernelExpProcAddrTable, ze_kernel_exp_dditable_t, {
    pfnSetGlobalOffsetExp: zeKernelSetGlobalOffsetExp,
    pfnSchedulingHintExp: zeKernelSchedulingHintExp,
    pfnGetBinaryExp: zeKernelGetBinaryExp,
    pfnGetAllocationPropertiesExp: zeKernelGetAllocationPropertiesExp,
});
table!(zeGetImageProcAddrTable, ze_image_dditable_t, {
    pfnGetProperties: zeImageGetProperties,
    pfnCreate: zeImageCreate,
    pfnDestroy: zeImageDestroy,
    pfnGetAllocPropertiesExt: zeImageGetAllocPropertiesExt,
    pfnViewCreateExt: zeImageViewCreateExt,
});
table!(zeGetImageExpProcAddrTable, ze_image_exp_dditable_t, {
    pfnGetMemoryPropertiesExp: zeImageGetMemoryPropertiesExp,
    pfnViewCreateExp: zeImageViewCreateExp,
    pfnGetDeviceOffsetExp: zeImageGetDeviceOffsetExp,
});
table!(zeGetSamplerProcAddrTable, ze_sampler_dditable_t, {
    pfnCreate: zeSamplerCreate,
    pfnDestroy: zeSamplerDestroy,
});
