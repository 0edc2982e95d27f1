//! Kernel. Read by `cargo xtask generate`; never compiled.

/// Extension hook for arguments passed by value.
#[stype = "UR_STRUCTURE_TYPE_KERNEL_ARG_VALUE_PROPERTIES"]
struct KernelArgValueProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
}

/// Extension hook for local-memory arguments.
#[stype = "UR_STRUCTURE_TYPE_KERNEL_ARG_LOCAL_PROPERTIES"]
struct KernelArgLocalProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
}

/// Lists what can be asked of a kernel.
#[query(Kernel)]
enum KernelInfo {
    FunctionName([c_char]) = 0,
    NumArgs(u32) = 1,
    ReferenceCount(u32) = 2,
    Context(Context) = 3,
    Program(Program) = 4,
    Attributes([c_char]) = 5,
    #[optional]
    NumRegs(u32) = 6,
    #[optional]
    SpillMemSize([u32]) = 7,
}

/// Lists what can be asked about a kernel's work-groups.
#[query(Kernel)]
enum KernelGroupInfo {
    #[optional]
    GlobalWorkSize = 0,
    WorkGroupSize(usize) = 1,
    CompileWorkGroupSize = 2,
    LocalMemSize(usize) = 3,
    PreferredWorkGroupSizeMultiple(usize) = 4,
    PrivateMemSize(usize) = 5,
    #[optional]
    CompileMaxWorkGroupSize = 6,
    #[optional]
    CompileMaxLinearWorkGroupSize(usize) = 7,
}

/// Lists what can be asked about a kernel's sub-groups.
#[query(Kernel)]
enum KernelSubGroupInfo {
    MaxSubGroupSize(u32) = 0,
    MaxNumSubGroups(u32) = 1,
    CompileNumSubGroups(u32) = 2,
    SubGroupSizeIntel(u32) = 3,
}

/// Says whether a kernel favours cache or local memory.
#[repr(u32)]
enum KernelCacheConfig {
    Default = 0,
    LargeSlm = 1,
    LargeData = 2,
}

/// Lists the execution settings a kernel can take.
#[query(None)]
enum KernelExecInfo {
    UsmIndirectAccess(Bool) = 0,
    UsmPtrs([*mut c_void]) = 1,
    CacheConfig(KernelCacheConfig) = 2,
}

/// Extension hook for USM pointer arguments.
#[stype = "UR_STRUCTURE_TYPE_KERNEL_ARG_POINTER_PROPERTIES"]
struct KernelArgPointerProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
}

/// Extension hook for setting a kernel's execution options.
#[stype = "UR_STRUCTURE_TYPE_KERNEL_EXEC_INFO_PROPERTIES"]
struct KernelExecInfoProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
}

/// Extension hook for sampler arguments.
#[stype = "UR_STRUCTURE_TYPE_KERNEL_ARG_SAMPLER_PROPERTIES"]
struct KernelArgSamplerProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
}

/// How a kernel accesses a memory-object argument.
#[stype = "UR_STRUCTURE_TYPE_KERNEL_ARG_MEM_OBJ_PROPERTIES"]
struct KernelArgMemObjProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    memoryAccess: MemFlags,
}

/// How to wrap a native kernel.
#[stype = "UR_STRUCTURE_TYPE_KERNEL_NATIVE_PROPERTIES"]
struct KernelNativeProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    isNativeHandleOwned: bool,
}

#[table(Kernel, "Kernel")]
extern "C" {
    /// Makes a kernel object for a named function of a program.
    #[error(InvalidKernelName, "the program holds no kernel of that name")]
    fn urKernelCreate(program: Program, kernel_name: *const c_char, #[out] kernel: *mut Kernel);

    /// Answers one property query about a kernel.
    #[error(UnsupportedEnumeration, "the adapter does not know the property asked for")]
    #[error(InvalidSize, prop_size == 0 && prop_value != null)]
    #[error(InvalidSize, "the given size is too small to hold the answer")]
    #[error(InvalidNullPointer, prop_size != 0 && prop_value == null)]
    #[error(InvalidNullPointer, prop_value == null && prop_size_ret == null)]
    #[errors(InvalidKernel, OutOfResources, OutOfHostMemory)]
    fn urKernelGetInfo(
        kernel: Kernel,
        prop_name: KernelInfo,
        prop_size: usize,
        #[inout] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );

    /// Answers one work-group query about a kernel on a device.
    fn urKernelGetGroupInfo(
        kernel: Kernel,
        device: Device,
        prop_name: KernelGroupInfo,
        prop_size: usize,
        #[inout] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );

    /// Answers one sub-group query about a kernel on a device.
    fn urKernelGetSubGroupInfo(
        kernel: Kernel,
        device: Device,
        prop_name: KernelSubGroupInfo,
        prop_size: usize,
        #[inout] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );

    /// Adds one reference to a kernel so that it stays alive.
    fn urKernelRetain(kernel: Kernel);

    /// Drops one reference to a kernel, freeing it at zero.
    fn urKernelRelease(#[released] kernel: Kernel);

    /// Gives the backend's own handle for a kernel.
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urKernelGetNativeHandle(kernel: Kernel, #[out] native_kernel: *mut NativeHandle);

    /// Wraps a backend's own kernel in a runtime kernel.
    #[error(InvalidNullHandle, "no program is given although the implementation needs one")]
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urKernelCreateWithNativeHandle(
        native_kernel: NativeHandle,
        context: Context,
        #[optional] program: Program,
        #[optional] properties: *const KernelNativeProperties,
        #[out] kernel: *mut Kernel,
    );

    /// Proposes a work-group size for a given global range.
    #[error(InvalidWorkDimension, num_work_dim < 1 || num_work_dim > 3)]
    #[errors(UnsupportedFeature)]
    fn urKernelGetSuggestedLocalWorkSize(
        kernel: Kernel,
        queue: Queue,
        num_work_dim: u32,
        #[list(num_work_dim)] global_work_offset: *const usize,
        #[list(num_work_dim)] global_work_size: *const usize,
        #[out] #[list(num_work_dim)] suggested_local_work_size: *mut usize,
    );

    /// Proposes a work-group size, with the kernel arguments passed along.
    #[error(InvalidWorkDimension, num_work_dim < 1 || num_work_dim > 3)]
    #[error(InvalidNullPointer, args == null && num_args > 0)]
    #[error(InvalidEnumeration, null != args && UR_EXP_KERNEL_ARG_TYPE_SAMPLER < args.r#type)]
    #[errors(UnsupportedFeature)]
    fn urKernelGetSuggestedLocalWorkSizeWithArgs(
        kernel: Kernel,
        queue: Queue,
        num_work_dim: u32,
        #[list(num_work_dim)] global_work_offset: *const usize,
        #[list(num_work_dim)] global_work_size: *const usize,
        num_args: u32,
        #[optional] #[list(num_args)] args: *const ExpKernelArgProperties,
        #[out] #[list(num_work_dim)] suggested_local_work_size: *mut usize,
    );

    /// Sets one execution option on a kernel, such as indirect memory access.
    fn urKernelSetExecInfo(
        kernel: Kernel,
        prop_name: KernelExecInfo,
        prop_size: usize,
        #[optional] properties: *const KernelExecInfoProperties,
        #[answer(prop_name, prop_size)] prop_value: *const c_void,
    );

    /// Sets the values of a kernel's specialization constants.
    #[error(InvalidSize, count == 0)]
    #[error(UnsupportedFeature, "the device reports that kernels cannot take specialization constants")]
    #[error(InvalidValue, "a specialization constant's size differs from the size the module declares")]
    #[error(InvalidValue, "a specialization constant is given without a value")]
    #[error(InvalidSpecId, "an identifier names no specialization constant of the module")]
    fn urKernelSetSpecializationConstants(
        kernel: Kernel,
        count: u32,
        #[list(count)] spec_constants: *const SpecializationConstantInfo,
    );

    /// Proposes the largest group count for a cooperative launch.
    #[error(UnsupportedFeature, "the device does not offer cooperative kernel launches")]
    #[error(InvalidWorkDimension, work_dim < 1 || work_dim > 3)]
    #[errors(InvalidKernel)]
    fn urKernelSuggestMaxCooperativeGroupCount(
        kernel: Kernel,
        device: Device,
        work_dim: u32,
        #[list(work_dim)] local_work_size: *const usize,
        dynamic_shared_memory_size: usize,
        #[out] group_count_ret: *mut u32,
    );
}
