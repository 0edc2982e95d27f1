//! Program. Read by `cargo xtask generate`; never compiled.

/// Says which kind of value a metadata entry holds.
#[repr(u32)]
enum ProgramMetadataType {
    Uint32 = 0,
    Uint64 = 1,
    ByteArray = 2,
    String = 3,
}

/// The value of a metadata entry, in one of several forms.
union ProgramMetadataValue {
    data32: u32,
    data64: u64,
    pString: *mut c_char,
    pData: *mut c_void,
}

/// One named metadata entry of a program.
struct ProgramMetadata {
    pName: *const c_char,
    r#type: ProgramMetadataType,
    size: usize,
    value: ProgramMetadataValue,
}

/// Metadata handed over when a program is made.
#[stype = "UR_STRUCTURE_TYPE_PROGRAM_PROPERTIES"]
struct ProgramProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    count: u32,
    #[optional] #[list(count)] pMetadatas: *const ProgramMetadata,
}

/// Lists what can be asked of a program.
#[query(Program)]
enum ProgramInfo {
    ReferenceCount(u32) = 0,
    Context(Context) = 1,
    NumDevices(u32) = 2,
    Devices([Device]) = 3,
    Il([c_char]) = 4,
    BinarySizes([usize]) = 5,
    Binaries([*mut u8]) = 6,
    #[optional]
    NumKernels(usize) = 7,
    #[optional]
    KernelNames([c_char]) = 8,
}

/// Says how a program's latest build turned out.
#[repr(u32)]
enum ProgramBuildStatus {
    None = 0,
    Error = 1,
    Success = 2,
    InProgress = 3,
}

/// Says what form a program's binary takes.
#[repr(u32)]
enum ProgramBinaryType {
    None = 0,
    CompiledObject = 1,
    Library = 2,
    Executable = 3,
}

/// Lists what can be asked of a program's build.
#[query(Program)]
enum ProgramBuildInfo {
    Status(ProgramBuildStatus) = 0,
    Options([c_char]) = 1,
    Log([c_char]) = 2,
    BinaryType(ProgramBinaryType) = 3,
}

/// A specialization constant's number, size and value.
struct SpecializationConstantInfo {
    id: u32,
    size: usize,
    pValue: *const c_void,
}

/// How to wrap a native program.
#[stype = "UR_STRUCTURE_TYPE_PROGRAM_NATIVE_PROPERTIES"]
struct ProgramNativeProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    isNativeHandleOwned: bool,
}

#[table(Program, "Program")]
extern "C" {
    /// Makes a program from intermediate code such as SPIR-V.
    #[error(InvalidNullPointer, null != properties && properties.count > 0 && null == properties.pMetadatas)]
    #[error(InvalidSize, null != properties && null != properties.pMetadatas && properties.count == 0)]
    #[error(InvalidSize, length == 0)]
    #[error(InvalidBinary, "the IL is not a usable binary for the context's devices")]
    #[error(CompilerNotAvailable, "the context's devices cannot compile IL at run time")]
    fn urProgramCreateWithIL(
        context: Context,
        il: *const c_void,
        length: usize,
        #[optional] properties: *const ProgramProperties,
        #[out] program: *mut Program,
    );

    /// Makes a program from ready device binaries.
    #[error(InvalidNullPointer, null != properties && properties.count > 0 && null == properties.pMetadatas)]
    #[error(InvalidSize, null != properties && null != properties.pMetadatas && properties.count == 0)]
    #[error(InvalidSize, num_devices == 0)]
    #[error(InvalidNativeBinary, "a binary does not fit the device listed at its position")]
    fn urProgramCreateWithBinary(
        context: Context,
        num_devices: u32,
        #[list(num_devices)] devices: *mut Device,
        #[list(num_devices)] lengths: *mut usize,
        #[list(num_devices)] binaries: *mut *const u8,
        #[optional] properties: *const ProgramProperties,
        #[out] program: *mut Program,
    );

    /// Compiles and links one program for the context's devices.
    #[error(InvalidProgram, "the handle given for the program is not a real program")]
    #[error(ProgramBuildFailure, "building the program fails")]
    fn urProgramBuild(context: Context, program: Program, #[optional] options: *const c_char);

    /// Compiles one program for the context's devices without linking it.
    #[error(InvalidProgram, "the handle given for the program is not a real program")]
    #[error(ProgramBuildFailure, "compiling the program fails")]
    fn urProgramCompile(context: Context, #[inout] program: Program, #[optional] options: *const c_char);

    /// Joins compiled programs into a new one for the context's devices.
    #[error(InvalidProgram, "one of the listed programs is not a real program")]
    #[error(InvalidSize, count == 0)]
    #[error(ProgramLinkFailure, "linking the programs fails")]
    fn urProgramLink(
        context: Context,
        count: u32,
        #[list(count)] programs: *const Program,
        #[optional] options: *const c_char,
        #[out] #[nulled] program: *mut Program,
    );

    /// Adds one reference to a program so that it stays alive.
    fn urProgramRetain(program: Program);

    /// Drops one reference to a program, freeing it at zero.
    fn urProgramRelease(#[released] program: Program);

    /// Looks up the device address of a named program function.
    #[error(InvalidKernelName, "the program holds no function of that name")]
    #[error(FunctionAddressNotAvailable, "the function is found but its address cannot be obtained")]
    #[error(UnsupportedFeature, "the backend cannot look up function pointers")]
    fn urProgramGetFunctionPointer(
        device: Device,
        program: Program,
        function_name: *const c_char,
        #[out] function_pointer: *mut *mut c_void,
    );

    /// Looks up the device address and size of a named global.
    #[error(InvalidValue, "the program has no variable of that name")]
    fn urProgramGetGlobalVariablePointer(
        device: Device,
        program: Program,
        global_variable_name: *const c_char,
        #[out] #[optional] global_variable_size_ret: *mut usize,
        #[out] global_variable_pointer_ret: *mut *mut c_void,
    );

    /// Answers one property query about a program.
    #[error(UnsupportedEnumeration, "the adapter does not know the property asked for")]
    #[error(InvalidSize, prop_size == 0 && prop_value != null)]
    #[error(InvalidSize, "the given size is too small to hold the answer")]
    #[error(InvalidNullPointer, prop_size != 0 && prop_value == null)]
    #[error(InvalidNullPointer, prop_value == null && prop_size_ret == null)]
    #[errors(InvalidProgram, OutOfResources, OutOfHostMemory)]
    fn urProgramGetInfo(
        program: Program,
        prop_name: ProgramInfo,
        prop_size: usize,
        #[inout] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );

    /// Answers one query about a program's build for a device.
    fn urProgramGetBuildInfo(
        program: Program,
        device: Device,
        prop_name: ProgramBuildInfo,
        prop_size: usize,
        #[inout] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );

    /// Sets the values of a program's specialization constants before building.
    #[error(InvalidSize, count == 0)]
    #[error(UnsupportedFeature, "the device reports that programs cannot take specialization constants")]
    #[error(InvalidValue, "a specialization constant's size differs from the size the module declares")]
    #[error(InvalidValue, "a specialization constant is given without a value")]
    #[error(InvalidSpecId, "an identifier names no specialization constant of the module")]
    fn urProgramSetSpecializationConstants(
        program: Program,
        count: u32,
        #[list(count)] spec_constants: *const SpecializationConstantInfo,
    );

    /// Gives the backend's own handle for a program.
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urProgramGetNativeHandle(program: Program, #[out] native_program: *mut NativeHandle);

    /// Wraps a backend's own program in a runtime program.
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urProgramCreateWithNativeHandle(
        native_program: NativeHandle,
        context: Context,
        #[optional] properties: *const ProgramNativeProperties,
        #[out] program: *mut Program,
    );
}
