//! Device. Read by `cargo xtask generate`; never compiled.

const UR_DEVICE_BINARY_TARGET_UNKNOWN: &str = "<unknown>";

const UR_DEVICE_BINARY_TARGET_SPIRV32: &str = "spir";

const UR_DEVICE_BINARY_TARGET_SPIRV64: &str = "spir64";

const UR_DEVICE_BINARY_TARGET_SPIRV64_X86_64: &str = "spir64_x86_64";

const UR_DEVICE_BINARY_TARGET_SPIRV64_GEN: &str = "spir64_gen";

const UR_DEVICE_BINARY_TARGET_SPIRV64_FPGA: &str = "spir64_fpga";

const UR_DEVICE_BINARY_TARGET_NVPTX64: &str = "nvptx64";

const UR_DEVICE_BINARY_TARGET_AMDGCN: &str = "amdgcn";

const UR_DEVICE_BINARY_TARGET_NATIVE_CPU: &str = "native_cpu";

/// What sort of device a program binary targets.
#[stype = "UR_STRUCTURE_TYPE_DEVICE_BINARY"]
struct DeviceBinary {
    stype: StructureType,
    #[optional] pNext: *const c_void,
    pDeviceTargetSpec: *const c_char,
}

/// Sorts devices into kinds such as CPU and GPU.
#[repr(u32)]
enum DeviceType {
    Default = 1,
    All = 2,
    Gpu = 3,
    Cpu = 4,
    Fpga = 5,
    Mca = 6,
    Vpu = 7,
    Custom = 8,
}

/// Lists what can be asked of a device.
#[query(Device)]
enum DeviceInfo {
    Type(DeviceType) = 0,
    VendorId(u32) = 1,
    #[optional]
    DeviceId(u32) = 2,
    MaxComputeUnits(u32) = 3,
    MaxWorkItemDimensions(u32) = 4,
    MaxWorkItemSizes([usize]) = 5,
    MaxWorkGroupSize(usize) = 6,
    SingleFpConfig(DeviceFpCapabilityFlags) = 7,
    HalfFpConfig(DeviceFpCapabilityFlags) = 8,
    DoubleFpConfig(DeviceFpCapabilityFlags) = 9,
    QueueProperties(QueueFlags) = 10,
    PreferredVectorWidthChar(u32) = 11,
    PreferredVectorWidthShort(u32) = 12,
    PreferredVectorWidthInt(u32) = 13,
    PreferredVectorWidthLong(u32) = 14,
    PreferredVectorWidthFloat(u32) = 15,
    PreferredVectorWidthDouble(u32) = 16,
    PreferredVectorWidthHalf(u32) = 17,
    NativeVectorWidthChar(u32) = 18,
    NativeVectorWidthShort(u32) = 19,
    NativeVectorWidthInt(u32) = 20,
    NativeVectorWidthLong(u32) = 21,
    NativeVectorWidthFloat(u32) = 22,
    NativeVectorWidthDouble(u32) = 23,
    NativeVectorWidthHalf(u32) = 24,
    MaxClockFrequency(u32) = 25,
    #[optional]
    MemoryClockRate(u32) = 26,
    AddressBits(u32) = 27,
    MaxMemAllocSize(u64) = 28,
    ImageSupport(Bool) = 29,
    MaxReadImageArgs(u32) = 30,
    MaxWriteImageArgs(u32) = 31,
    #[optional]
    MaxReadWriteImageArgs(u32) = 32,
    Image2dMaxWidth(usize) = 33,
    Image2dMaxHeight(usize) = 34,
    Image3dMaxWidth(usize) = 35,
    Image3dMaxHeight(usize) = 36,
    Image3dMaxDepth(usize) = 37,
    ImageMaxBufferSize(usize) = 38,
    ImageMaxArraySize(usize) = 39,
    MaxSamplers(u32) = 40,
    MaxParameterSize(usize) = 41,
    MemBaseAddrAlign(u32) = 42,
    GlobalMemCacheType(DeviceMemCacheType) = 43,
    GlobalMemCachelineSize(u32) = 44,
    GlobalMemCacheSize(u64) = 45,
    GlobalMemSize(u64) = 46,
    #[optional]
    GlobalMemFree(u64) = 47,
    MaxConstantBufferSize(u64) = 48,
    MaxConstantArgs(u32) = 49,
    LocalMemType(DeviceLocalMemType) = 50,
    LocalMemSize(u64) = 51,
    ErrorCorrectionSupport(Bool) = 52,
    HostUnifiedMemory(Bool) = 53,
    ProfilingTimerResolution(usize) = 54,
    EndianLittle(Bool) = 55,
    Available(Bool) = 56,
    CompilerAvailable(Bool) = 57,
    LinkerAvailable(Bool) = 58,
    ExecutionCapabilities(DeviceExecCapabilityFlags) = 59,
    QueueOnDeviceProperties(QueueFlags) = 60,
    QueueOnHostProperties(QueueFlags) = 61,
    BuiltInKernels([c_char]) = 62,
    Platform(Platform) = 63,
    ReferenceCount(u32) = 64,
    #[optional]
    IlVersion([c_char]) = 65,
    Name([c_char]) = 66,
    Vendor([c_char]) = 67,
    DriverVersion([c_char]) = 68,
    Profile([c_char]) = 69,
    Version([c_char]) = 70,
    BackendRuntimeVersion([c_char]) = 71,
    Extensions([c_char]) = 72,
    PrintfBufferSize(usize) = 73,
    PreferredInteropUserSync(Bool) = 74,
    ParentDevice(Device) = 75,
    SupportedPartitions([DevicePartition]) = 76,
    PartitionMaxSubDevices(u32) = 77,
    PartitionAffinityDomain(DeviceAffinityDomainFlags) = 78,
    PartitionType([DevicePartitionProperty]) = 79,
    MaxNumSubGroups(u32) = 80,
    SubGroupIndependentForwardProgress(Bool) = 81,
    SubGroupSizesIntel([u32]) = 82,
    UsmHostSupport(DeviceUsmAccessCapabilityFlags) = 83,
    UsmDeviceSupport(DeviceUsmAccessCapabilityFlags) = 84,
    UsmSingleSharedSupport(DeviceUsmAccessCapabilityFlags) = 85,
    UsmCrossSharedSupport(DeviceUsmAccessCapabilityFlags) = 86,
    UsmSystemSharedSupport(DeviceUsmAccessCapabilityFlags) = 87,
    #[optional]
    Uuid([u8]) = 88,
    #[optional]
    PciAddress([c_char]) = 89,
    #[optional]
    GpuEuCount(u32) = 90,
    #[optional]
    GpuEuSimdWidth(u32) = 91,
    #[optional]
    GpuEuSlices(u32) = 92,
    #[optional]
    GpuEuCountPerSubslice(u32) = 93,
    #[optional]
    GpuSubslicesPerSlice(u32) = 94,
    #[optional]
    GpuHwThreadsPerEu(u32) = 95,
    #[optional]
    MaxMemoryBandwidth(u64) = 96,
    ImageSrgb(Bool) = 97,
    BuildOnSubdevice(Bool) = 98,
    #[c = "UR_DEVICE_INFO_ATOMIC_64"]
    Atomic64(Bool) = 99,
    AtomicMemoryOrderCapabilities(MemoryOrderCapabilityFlags) = 100,
    AtomicMemoryScopeCapabilities(MemoryScopeCapabilityFlags) = 101,
    AtomicFenceOrderCapabilities(MemoryOrderCapabilityFlags) = 102,
    AtomicFenceScopeCapabilities(MemoryScopeCapabilityFlags) = 103,
    Bfloat16(Bool) = 104,
    MaxComputeQueueIndices(u32) = 105,
    KernelSetSpecializationConstants(Bool) = 106,
    #[optional]
    MemoryBusWidth(u32) = 107,
    #[c = "UR_DEVICE_INFO_MAX_WORK_GROUPS_3D"]
    MaxWorkGroups3d([usize; 3]) = 108,
    AsyncBarrier(Bool) = 109,
    MemChannelSupport(Bool) = 110,
    HostPipeReadWriteSupport(Bool) = 111,
    #[optional]
    MaxRegistersPerWorkGroup(u32) = 112,
    #[optional]
    IpVersion(u32) = 113,
    VirtualMemorySupport(Bool) = 114,
    EsimdSupport(Bool) = 115,
    #[optional]
    ComponentDevices([Device]) = 116,
    #[optional]
    CompositeDevice(Device) = 117,
    GlobalVariableSupport(Bool) = 118,
    UsmPoolSupport(Bool) = 119,
    NumComputeUnits(u32) = 120,
    ProgramSetSpecializationConstants(Bool) = 121,
    UseNativeAssert(Bool) = 122,
    #[optional]
    CurrentClockThrottleReasons(DeviceThrottleReasonsFlags) = 123,
    #[optional]
    FanSpeed(i32) = 124,
    #[optional]
    MinPowerLimit(i32) = 125,
    #[optional]
    MaxPowerLimit(i32) = 126,
    Bfloat16ConversionsNative(Bool) = 127,
    KernelLaunchCapabilities(KernelLaunchPropertiesFlags) = 128,
    #[optional]
    Luid([u8]) = 129,
    #[optional]
    NodeMask(u32) = 130,
    PreferredVectorWidthLongLong(u32) = 131,
    NativeVectorWidthLongLong(u32) = 132,
    MaxWorkGroups(usize) = 133,
    #[optional]
    XeStackCount(u32) = 134,
    #[optional]
    XeRegionsPerStack(u32) = 135,
    #[optional]
    XeClustersPerRegion(u32) = 136,
    #[optional]
    XeCoresPerCluster(u32) = 137,
    #[optional]
    EusPerXeCore(u32) = 138,
    #[optional]
    MaxLanesPerHwThread(u32) = 139,
    CommandBufferSupportExp(Bool) = 0x1000,
    CommandBufferUpdateCapabilitiesExp(DeviceCommandBufferUpdateCapabilityFlags) = 0x1001,
    CommandBufferEventSupportExp(Bool) = 0x1002,
    CommandBufferSubgraphSupportExp(Bool) = 0x1003,
    BindlessImagesSupportExp(Bool) = 0x2000,
    BindlessImagesSharedUsmSupportExp(Bool) = 0x2001,
    #[c = "UR_DEVICE_INFO_BINDLESS_IMAGES_1D_USM_SUPPORT_EXP"]
    BindlessImages1dUsmSupportExp(Bool) = 0x2002,
    #[c = "UR_DEVICE_INFO_BINDLESS_IMAGES_2D_USM_SUPPORT_EXP"]
    BindlessImages2dUsmSupportExp(Bool) = 0x2003,
    ImagePitchAlignExp(u32) = 0x2004,
    MaxImageLinearWidthExp(usize) = 0x2005,
    MaxImageLinearHeightExp(usize) = 0x2006,
    MaxImageLinearPitchExp(usize) = 0x2007,
    MipmapSupportExp(Bool) = 0x2008,
    MipmapAnisotropySupportExp(Bool) = 0x2009,
    MipmapMaxAnisotropyExp(u32) = 0x200A,
    MipmapLevelReferenceSupportExp(Bool) = 0x200B,
    ExternalMemoryImportSupportExp(Bool) = 0x200C,
    ExternalSemaphoreImportSupportExp(Bool) = 0x200E,
    CubemapSupportExp(Bool) = 0x2010,
    CubemapSeamlessFilteringSupportExp(Bool) = 0x2011,
    #[c = "UR_DEVICE_INFO_BINDLESS_SAMPLED_IMAGE_FETCH_1D_USM_SUPPORT_EXP"]
    BindlessSampledImageFetch1dUsmSupportExp(Bool) = 0x2012,
    #[c = "UR_DEVICE_INFO_BINDLESS_SAMPLED_IMAGE_FETCH_1D_SUPPORT_EXP"]
    BindlessSampledImageFetch1dSupportExp(Bool) = 0x2013,
    #[c = "UR_DEVICE_INFO_BINDLESS_SAMPLED_IMAGE_FETCH_2D_USM_SUPPORT_EXP"]
    BindlessSampledImageFetch2dUsmSupportExp(Bool) = 0x2014,
    #[c = "UR_DEVICE_INFO_BINDLESS_SAMPLED_IMAGE_FETCH_2D_SUPPORT_EXP"]
    BindlessSampledImageFetch2dSupportExp(Bool) = 0x2015,
    #[c = "UR_DEVICE_INFO_BINDLESS_SAMPLED_IMAGE_FETCH_3D_SUPPORT_EXP"]
    BindlessSampledImageFetch3dSupportExp(Bool) = 0x2017,
    TimestampRecordingSupportExp(Bool) = 0x2018,
    ImageArraySupportExp(Bool) = 0x2019,
    BindlessUniqueAddressingPerDimSupportExp(Bool) = 0x201A,
    #[c = "UR_DEVICE_INFO_BINDLESS_SAMPLE_1D_USM_SUPPORT_EXP"]
    BindlessSample1dUsmSupportExp(Bool) = 0x201B,
    #[c = "UR_DEVICE_INFO_BINDLESS_SAMPLE_2D_USM_SUPPORT_EXP"]
    BindlessSample2dUsmSupportExp(Bool) = 0x201C,
    BindlessImagesGatherSupportExp(Bool) = 0x201D,
    EnqueueNativeCommandSupportExp(Bool) = 0x2020,
    LowPowerEventsSupportExp(Bool) = 0x2021,
    _2dBlockArrayCapabilitiesExp(ExpDevice2dBlockArrayCapabilityFlags) = 0x2022,
    IpcMemorySupportExp(Bool) = 0x2023,
    IpcPhysicalMemorySupportExp(Bool) = 0x2024,
    ReusableEventsSupportExp(Bool) = 0x2025,
    IpcEventSupportExp(Bool) = 0x2026,
    AsyncUsmAllocationsSupportExp(Bool) = 0x2050,
    ClockSubGroupSupportExp(Bool) = 0x2060,
    ClockWorkGroupSupportExp(Bool) = 0x2061,
    ClockDeviceSupportExp(Bool) = 0x2062,
    IsIntegratedGpu(Bool) = 0x2070,
    GraphRecordAndReplaySupportExp(Bool) = 0x2080,
    UsmHostAllocRegisterSupportExp(Bool) = 0x2090,
    PerEventProfilingSupportExp(Bool) = 0x20A0,
    UsmP2pSupportExp(Bool) = 0x4000,
    MultiDeviceCompileSupportExp(Bool) = 0x6000,
    DeviceWaitSupportExp(Bool) = 0x6002,
    DynamicLinkSupportExp(Bool) = 0x6003,
    UsmContextMemcpySupportExp(Bool) = 0x7000,
    MemoryExportExportableDeviceMemExp(Bool) = 0x8000,
    EnqueueHostTaskSupportExp(Bool) = 0x9000,
}

/// Names the shared hardware along which a device splits.
#[flags]
enum DeviceAffinityDomainFlag {
    Numa = 1 << 0,
    L4Cache = 1 << 1,
    L3Cache = 1 << 2,
    L2Cache = 1 << 3,
    L1Cache = 1 << 4,
    NextPartitionable = 1 << 5,
}

/// Says by what rule a device is split.
#[repr(u32)]
enum DevicePartition {
    Equally = 0x1086,
    ByCounts = 0x1087,
    ByAffinityDomain = 0x1088,
    ByCslice = 0x1089,
}

/// The number or choice a splitting rule needs.
union DevicePartitionValue {
    equally: u32,
    count: u32,
    affinity_domain: DeviceAffinityDomainFlags,
}

/// One splitting rule together with its value.
struct DevicePartitionProperty {
    r#type: DevicePartition,
    value: DevicePartitionValue,
}

/// The rules by which a device is to be split.
#[stype = "UR_STRUCTURE_TYPE_DEVICE_PARTITION_PROPERTIES"]
struct DevicePartitionProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    #[list(PropCount)] pProperties: *const DevicePartitionProperty,
    PropCount: usize,
}

/// Marks which floating-point features a device offers.
#[flags]
enum DeviceFpCapabilityFlag {
    CorrectlyRoundedDivideSqrt = 1 << 0,
    RoundToNearest = 1 << 1,
    RoundToZero = 1 << 2,
    RoundToInf = 1 << 3,
    InfNan = 1 << 4,
    Denorm = 1 << 5,
    Fma = 1 << 6,
    SoftFloat = 1 << 7,
}

/// Says how a device's memory cache behaves.
#[repr(u32)]
enum DeviceMemCacheType {
    None = 0,
    ReadOnlyCache = 1,
    ReadWriteCache = 2,
}

/// Says what backs a device's local memory.
#[repr(u32)]
enum DeviceLocalMemType {
    None = 0,
    Local = 1,
    Global = 2,
}

/// Marks which kinds of kernel a device can run.
#[flags]
enum DeviceExecCapabilityFlag {
    Kernel = 1 << 0,
    NativeKernel = 1 << 1,
}

/// How to wrap a native device.
#[stype = "UR_STRUCTURE_TYPE_DEVICE_NATIVE_PROPERTIES"]
struct DeviceNativeProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    isNativeHandleOwned: bool,
}

/// Marks which memory orderings atomics can use.
#[flags]
enum MemoryOrderCapabilityFlag {
    Relaxed = 1 << 0,
    Acquire = 1 << 1,
    Release = 1 << 2,
    AcqRel = 1 << 3,
    SeqCst = 1 << 4,
}

/// Marks how widely memory ordering can reach.
#[flags]
enum MemoryScopeCapabilityFlag {
    WorkItem = 1 << 0,
    SubGroup = 1 << 1,
    WorkGroup = 1 << 2,
    Device = 1 << 3,
    System = 1 << 4,
}

/// Marks how a device may touch a kind of USM.
#[flags]
enum DeviceUsmAccessCapabilityFlag {
    Access = 1 << 0,
    AtomicAccess = 1 << 1,
    ConcurrentAccess = 1 << 2,
    AtomicConcurrentAccess = 1 << 3,
}

/// Marks why a device is running below full speed.
#[flags]
enum DeviceThrottleReasonsFlag {
    PowerCap = 1 << 0,
    CurrentLimit = 1 << 1,
    ThermalLimit = 1 << 2,
    PsuAlert = 1 << 3,
    SwRange = 1 << 4,
    HwRange = 1 << 5,
    Other = 1 << 6,
}

/// Marks which launch properties a device can honour.
#[flags]
enum KernelLaunchPropertiesFlag {
    Cooperative = 1 << 0,
    ClusterDimension = 1 << 1,
    WorkGroupMemory = 1 << 2,
    OpportunisticQueueSerialize = 1 << 3,
}

/// Marks which 2D block array instructions a device has.
#[c = "ur_exp_device_2d_block_array_capability_flag_t"]
#[flags]
enum ExpDevice2dBlockArrayCapabilityFlag {
    Load = 1 << 0,
    Store = 1 << 1,
}

#[table(Device, "Device")]
extern "C" {
    /// Lists a platform's devices of the requested type.
    #[error(InvalidSize, num_entries == 0 && devices != null)]
    #[error(InvalidNullPointer, num_entries > 0 && devices == null)]
    #[errors(InvalidValue)]
    fn urDeviceGet(
        platform: Platform,
        device_type: DeviceType,
        num_entries: u32,
        #[out] #[optional] #[list(num_entries)] devices: *mut Device,
        #[out] #[optional] num_devices: *mut u32,
    );

    /// Answers one property query about a device.
    #[error(UnsupportedEnumeration, "the adapter does not know the property asked for")]
    #[error(InvalidSize, prop_size == 0 && prop_value != null)]
    #[error(InvalidSize, "the given size is too small to hold the answer")]
    #[error(InvalidNullPointer, prop_size != 0 && prop_value == null)]
    #[error(InvalidNullPointer, prop_value == null && prop_size_ret == null)]
    #[errors(InvalidDevice, OutOfResources, OutOfHostMemory)]
    fn urDeviceGetInfo(
        device: Device,
        prop_name: DeviceInfo,
        prop_size: usize,
        #[out] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );

    /// Adds one reference to a device, which matters for sub-devices.
    fn urDeviceRetain(device: Device);

    /// Drops one reference to a device, which matters for sub-devices.
    fn urDeviceRelease(#[released] device: Device);

    /// Splits a device into sub-devices by the given scheme.
    #[error(InvalidNullPointer, null == properties.pProperties)]
    #[errors(DevicePartitionFailed, InvalidDevicePartitionCount)]
    fn urDevicePartition(
        device: Device,
        properties: *const DevicePartitionProperties,
        num_devices: u32,
        #[out] #[optional] #[list(num_devices)] sub_devices: *mut Device,
        #[out] #[optional] num_devices_ret: *mut u32,
    );

    /// Picks the binary that suits a device best from several candidates.
    #[error(InvalidSize, num_binaries == 0)]
    fn urDeviceSelectBinary(
        device: Device,
        #[list(num_binaries)] binaries: *const DeviceBinary,
        num_binaries: u32,
        #[out] selected_binary: *mut u32,
    );

    /// Gives the backend's own handle for a device.
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urDeviceGetNativeHandle(device: Device, #[out] native_device: *mut NativeHandle);

    /// Wraps a backend's own device in a runtime device.
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urDeviceCreateWithNativeHandle(
        native_device: NativeHandle,
        adapter: Adapter,
        #[optional] properties: *const DeviceNativeProperties,
        #[out] device: *mut Device,
    );

    /// Reads the device clock and the host clock close together.
    #[error(UnsupportedFeature, "the adapter has no way of doing this")]
    fn urDeviceGetGlobalTimestamps(
        device: Device,
        #[out] #[optional] device_timestamp: *mut u64,
        #[out] #[optional] host_timestamp: *mut u64,
    );
}
