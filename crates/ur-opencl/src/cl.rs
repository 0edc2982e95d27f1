//! Types and constants of OpenCL, under the names of its headers (Khronos' `cl.h` and `cl_ext.h`); those that are used here.
#![allow(non_camel_case_types, missing_docs, reason = "names are those of the headers")]
pub use super::error::*;

pub type cl_int = i32;
pub type cl_uint = u32;

#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct cl_image_desc {
    pub kind: cl_uint,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub array_size: usize,
    pub row_pitch: usize,
    pub slice_pitch: usize,
    pub mip_levels: cl_uint,
    pub samples: cl_uint,
    /// A pointer, which is null here.
    pub mem: usize,
}

pub const CL_SUCCESS: cl_int = 0;
pub const CL_COMPLETE: cl_int = 0;
pub const CL_RUNNING: cl_int = 1;
pub const CL_PLATFORM_VERSION: cl_uint = 0x0901;
pub const CL_PLATFORM_NAME: cl_uint = 0x0902;
pub const CL_PLATFORM_VENDOR: cl_uint = 0x0903;
pub const CL_PLATFORM_EXTENSIONS: cl_uint = 0x0904;
pub const CL_DEVICE_TYPE: cl_uint = 0x1000;
pub const CL_DEVICE_MAX_WORK_GROUP_SIZE: cl_uint = 0x1004;
pub const CL_DEVICE_MAX_WORK_ITEM_SIZES: cl_uint = 0x1005;
pub const CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR: cl_uint = 0x1006;
pub const CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF: cl_uint = 0x1034;
pub const CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR: cl_uint = 0x1036;
pub const CL_DEVICE_MAX_MEM_ALLOC_SIZE: cl_uint = 0x1010;
pub const CL_DEVICE_SINGLE_FP_CONFIG: cl_uint = 0x101B;
pub const CL_DEVICE_DOUBLE_FP_CONFIG: cl_uint = 0x1032;
pub const CL_DEVICE_HALF_FP_CONFIG: cl_uint = 0x1033;
pub const CL_DEVICE_GLOBAL_MEM_SIZE: cl_uint = 0x101F;
pub const CL_DEVICE_LOCAL_MEM_SIZE: cl_uint = 0x1023;
pub const CL_DEVICE_EXECUTION_CAPABILITIES: cl_uint = 0x1029;
pub const CL_DEVICE_NAME: cl_uint = 0x102B;
pub const CL_DRIVER_VERSION: cl_uint = 0x102D;
pub const CL_DEVICE_EXTENSIONS: cl_uint = 0x1030;
pub const CL_DEVICE_HOST_UNIFIED_MEMORY: cl_uint = 0x1035;
pub const CL_DEVICE_PARTITION_PROPERTIES: cl_uint = 0x1044;
pub const CL_DEVICE_PARTITION_AFFINITY_DOMAIN: cl_uint = 0x1045;
pub const CL_DEVICE_SVM_CAPABILITIES: cl_uint = 0x1053;
pub const CL_DEVICE_IL_VERSION: cl_uint = 0x105B;
pub const CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES: cl_uint = 0x1063;
pub const CL_DEVICE_ATOMIC_FENCE_CAPABILITIES: cl_uint = 0x1064;
pub const CL_DEVICE_UUID_KHR: cl_uint = 0x106A;
pub const CL_DEVICE_SUB_GROUP_SIZES_INTEL: cl_uint = 0x4108;
pub const CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL: cl_uint = 0x4190;
pub const CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL: cl_uint = 0x4191;
pub const CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL: cl_uint = 0x4192;
pub const CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL: cl_uint = 0x4193;
pub const CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL: cl_uint = 0x4194;
pub const CL_MEM_ALLOC_TYPE_INTEL: cl_uint = 0x419A;
pub const CL_MEM_ALLOC_BASE_PTR_INTEL: cl_uint = 0x419B;
pub const CL_MEM_ALLOC_SIZE_INTEL: cl_uint = 0x419C;
pub const CL_MEM_TYPE_HOST_INTEL: cl_uint = 0x4197;
pub const CL_MEM_TYPE_DEVICE_INTEL: cl_uint = 0x4198;
pub const CL_MEM_TYPE_SHARED_INTEL: cl_uint = 0x4199;
pub const CL_CONTEXT_DEVICES: cl_uint = 0x1081;
pub const CL_QUEUE_CONTEXT: cl_uint = 0x1090;
pub const CL_QUEUE_DEVICE: cl_uint = 0x1091;
pub const CL_QUEUE_PROPERTIES: cl_uint = 0x1093;
pub const CL_MEM_TYPE: cl_uint = 0x1100;
pub const CL_MEM_FLAGS: cl_uint = 0x1101;
pub const CL_MEM_SIZE: cl_uint = 0x1102;
pub const CL_MEM_HOST_PTR: cl_uint = 0x1103;
pub const CL_MEM_ASSOCIATED_MEMOBJECT: cl_uint = 0x1107;
pub const CL_MEM_OFFSET: cl_uint = 0x1108;
pub const CL_MEM_CONTEXT: cl_uint = 0x1106;
pub const CL_MEM_OBJECT_BUFFER: cl_uint = 0x10F0;
pub const CL_MEM_OBJECT_IMAGE2D: cl_uint = 0x10F1;
pub const CL_MEM_OBJECT_IMAGE3D: cl_uint = 0x10F2;
pub const CL_MEM_OBJECT_IMAGE2D_ARRAY: cl_uint = 0x10F3;
pub const CL_MEM_OBJECT_IMAGE1D: cl_uint = 0x10F4;
pub const CL_MEM_OBJECT_IMAGE1D_ARRAY: cl_uint = 0x10F5;
pub const CL_SAMPLER_ADDRESSING_MODE: cl_uint = 0x1153;
pub const CL_SAMPLER_FILTER_MODE: cl_uint = 0x1154;
pub const CL_SAMPLER_NORMALIZED_COORDS: cl_uint = 0x1152;
pub const CL_ADDRESS_NONE: cl_uint = 0x1130;
pub const CL_ADDRESS_CLAMP_TO_EDGE: cl_uint = 0x1131;
pub const CL_ADDRESS_CLAMP: cl_uint = 0x1132;
pub const CL_ADDRESS_REPEAT: cl_uint = 0x1133;
pub const CL_ADDRESS_MIRRORED_REPEAT: cl_uint = 0x1134;
pub const CL_FILTER_NEAREST: cl_uint = 0x1140;
pub const CL_FILTER_LINEAR: cl_uint = 0x1141;
pub const CL_PROGRAM_DEVICES: cl_uint = 0x1163;
pub const CL_PROGRAM_CONTEXT: cl_uint = 0x1161;
pub const CL_PROGRAM_BINARY_SIZES: cl_uint = 0x1165;
pub const CL_PROGRAM_BINARIES: cl_uint = 0x1166;
pub const CL_PROGRAM_KERNEL_NAMES: cl_uint = 0x1168;
pub const CL_PROGRAM_BUILD_LOG: cl_uint = 0x1183;
pub const CL_PROGRAM_BINARY_TYPE: cl_uint = 0x1184;
pub const CL_PROGRAM_BINARY_TYPE_EXECUTABLE: u64 = 0x4;
pub const CL_KERNEL_FUNCTION_NAME: cl_uint = 0x1190;
pub const CL_KERNEL_NUM_ARGS: cl_uint = 0x1191;
pub const CL_KERNEL_PROGRAM: cl_uint = 0x1194;
pub const CL_KERNEL_ARG_ADDRESS_QUALIFIER: cl_uint = 0x1196;
pub const CL_KERNEL_ARG_TYPE_NAME: cl_uint = 0x1198;
pub const CL_KERNEL_ARG_ADDRESS_GLOBAL: cl_uint = 0x119B;
pub const CL_KERNEL_ARG_ADDRESS_CONSTANT: cl_uint = 0x119D;
pub const CL_KERNEL_ATTRIBUTES: cl_uint = 0x1195;
pub const CL_KERNEL_WORK_GROUP_SIZE: cl_uint = 0x11B0;
pub const CL_KERNEL_COMPILE_WORK_GROUP_SIZE: cl_uint = 0x11B1;
pub const CL_KERNEL_LOCAL_MEM_SIZE: cl_uint = 0x11B2;
pub const CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE: cl_uint = 0x11B3;
pub const CL_KERNEL_PRIVATE_MEM_SIZE: cl_uint = 0x11B4;
pub const CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE: cl_uint = 0x2033;
pub const CL_KERNEL_MAX_NUM_SUB_GROUPS: cl_uint = 0x11B9;
pub const CL_KERNEL_COMPILE_NUM_SUB_GROUPS: cl_uint = 0x11BA;
pub const CL_KERNEL_COMPILE_SUB_GROUP_SIZE_INTEL: cl_uint = 0x410A;
pub const CL_KERNEL_SPILL_MEM_SIZE_INTEL: cl_uint = 0x4109;
pub const CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM: cl_uint = 0x11B7;
pub const CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL: cl_uint = 0x4200;
pub const CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL: cl_uint = 0x4201;
pub const CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL: cl_uint = 0x4202;
pub const CL_EVENT_COMMAND_EXECUTION_STATUS: cl_uint = 0x11D3;
pub const CL_EVENT_CONTEXT: cl_uint = 0x11D4;
pub const CL_PROFILING_COMMAND_START: cl_uint = 0x1282;
pub const CL_PROFILING_COMMAND_END: cl_uint = 0x1283;
pub const CL_DEVICE_TYPE_ALL: u64 = 0xFFFFFFFF;
pub const CL_DEVICE_PARTITION_EQUALLY: isize = 0x1086;
pub const CL_DEVICE_PARTITION_BY_COUNTS: isize = 0x1087;
pub const CL_DEVICE_PARTITION_BY_COUNTS_LIST_END: isize = 0x0;
pub const CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN: isize = 0x1088;
pub const CL_CONTEXT_PLATFORM: isize = 0x1084;
pub const CL_DEVICE_TYPE_CPU: u64 = 1 << 1;
pub const CL_DEVICE_TYPE_GPU: u64 = 1 << 2;
pub const CL_DEVICE_TYPE_ACCELERATOR: u64 = 1 << 3;
pub const CL_EXEC_NATIVE_KERNEL: u64 = 1 << 1;
pub const CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE: u64 = 1 << 0;
pub const CL_QUEUE_PROFILING_ENABLE: u64 = 1 << 1;
pub const CL_DEVICE_SVM_FINE_GRAIN_BUFFER: u64 = 1 << 1;
pub const CL_DEVICE_SVM_FINE_GRAIN_SYSTEM: u64 = 1 << 2;
pub const CL_BUFFER_CREATE_TYPE_REGION: cl_uint = 0x1220;
pub const CL_MEM_READ_WRITE: u64 = 1 << 0;
pub const CL_MEM_USE_HOST_PTR: u64 = 1 << 3;
pub const CL_MEM_SVM_FINE_GRAIN_BUFFER: u64 = 1 << 10;
pub const CL_DEVICE_ATOMIC_ORDER_RELAXED: u64 = 1 << 0;
pub const CL_DEVICE_ATOMIC_ORDER_ACQ_REL: u64 = 1 << 1;
pub const CL_DEVICE_ATOMIC_ORDER_SEQ_CST: u64 = 1 << 2;
pub const CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP: u64 = 1 << 4;
pub const CL_DEVICE_ATOMIC_SCOPE_DEVICE: u64 = 1 << 5;
pub const CL_DEVICE_ATOMIC_SCOPE_ALL_DEVICES: u64 = 1 << 6;
