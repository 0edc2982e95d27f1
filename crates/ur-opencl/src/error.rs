//! What the drivers' statuses are called here: our code, and a sentence for whoever reads it.
use super::{cl::cl_int, driver};
use ur_adapter::error::{Error, ErrorCode};

/// OpenCL's statuses, under the names of its headers: the specification's word for each that is a failure, and what it means.
macro_rules! statuses { ($($name:ident = $number:literal => $code:ident, $words:literal;)*) => {
    $(#[allow(dead_code, missing_docs, reason = "the headers' name, also where nothing here asks for it")]
    pub const $name: cl_int = $number;)*
    fn meaning(status: cl_int) -> (ErrorCode, &'static str) {
        match status {
            $($name => (ErrorCode::$code, $words),)*
            _ => (ErrorCode::AdapterSpecific, "a status that no specification known here has"),
        }
    }
} }
statuses! {
    CL_DEVICE_NOT_FOUND = -1 => DeviceNotFound, "there is no such device";
    CL_DEVICE_NOT_AVAILABLE = -2 => DeviceNotAvailable, "the device cannot be used now";
    CL_COMPILER_NOT_AVAILABLE = -3 => CompilerNotAvailable, "this driver compiles nothing: pass a binary";
    CL_MEM_OBJECT_ALLOCATION_FAILURE = -4 => OutOfDeviceMemory, "the device has no memory left for it: free some or ask for less";
    CL_OUT_OF_RESOURCES = -5 => OutOfResources, "the device has run out of a resource";
    CL_OUT_OF_HOST_MEMORY = -6 => OutOfHostMemory, "the host has no memory left";
    CL_PROFILING_INFO_NOT_AVAILABLE = -7 => ProfilingInfoNotAvailable, "there are no times";
    CL_MEM_COPY_OVERLAP = -8 => OverlappingRegions, "the two regions overlap";
    CL_IMAGE_FORMAT_MISMATCH = -9 => UnsupportedImageFormat, "the images have different formats";
    CL_IMAGE_FORMAT_NOT_SUPPORTED = -10 => UnsupportedImageFormat, "the device has no images of that format";
    CL_BUILD_PROGRAM_FAILURE = -11 => ProgramBuildFailure, "the program does not compile: see its build log";
    CL_MISALIGNED_SUB_BUFFER_OFFSET = -13 => MisalignedSubBufferOffset, "the part does not begin at a multiple of the alignment that the device needs (UR_DEVICE_INFO_MEM_BASE_ADDR_ALIGN, in bits)";
    CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST = -14 => InEventListExecStatus, "what a command waits for has failed";
    CL_COMPILE_PROGRAM_FAILURE = -15 => ProgramBuildFailure, "the program does not compile: see its build log";
    CL_LINKER_NOT_AVAILABLE = -16 => CompilerNotAvailable, "this driver links nothing: pass a binary";
    CL_LINK_PROGRAM_FAILURE = -17 => ProgramLinkFailure, "the program does not link: see its build log";
    CL_DEVICE_PARTITION_FAILED = -18 => DevicePartitionFailed, "the device does not come apart like that";
    CL_INVALID_VALUE = -30 => InvalidValue, "the driver refuses an argument";
    CL_INVALID_DEVICE = -33 => InvalidDevice, "the device is another platform's or context's";
    CL_INVALID_CONTEXT = -34 => InvalidContext, "the context is another's";
    CL_INVALID_QUEUE_PROPERTIES = -35 => InvalidQueueProperties, "the device has no queues like that";
    CL_INVALID_MEM_OBJECT = -38 => InvalidMemObject, "this is no memory object";
    CL_INVALID_IMAGE_FORMAT_DESCRIPTOR = -39 => UnsupportedImageFormat, "the device has no images of that format";
    CL_INVALID_IMAGE_SIZE = -40 => InvalidImageSize, "the device has no images of that size";
    CL_INVALID_SAMPLER = -41 => InvalidSampler, "this is no sampler";
    CL_INVALID_BINARY = -42 => InvalidBinary, "the binary is not for this device or is damaged";
    CL_INVALID_BUILD_OPTIONS = -43 => ProgramBuildFailure, "the compiler does not know these options";
    CL_INVALID_PROGRAM = -44 => InvalidProgram, "this is no program";
    CL_INVALID_PROGRAM_EXECUTABLE = -45 => InvalidProgramExecutable, "the program is not built";
    CL_INVALID_KERNEL_NAME = -46 => InvalidKernelName, "there is no such kernel";
    CL_INVALID_KERNEL = -48 => InvalidKernel, "this is no kernel";
    CL_INVALID_ARG_INDEX = -49 => InvalidKernelArgumentIndex, "the kernel has no such argument";
    CL_INVALID_ARG_VALUE = -50 => InvalidKernelArgs, "the kernel does not take this argument";
    CL_INVALID_ARG_SIZE = -51 => InvalidKernelArgumentSize, "the argument has another size";
    CL_INVALID_KERNEL_ARGS = -52 => InvalidKernelArgs, "the kernel takes other arguments";
    CL_INVALID_WORK_DIMENSION = -53 => InvalidWorkDimension, "there are no such ranges";
    CL_INVALID_WORK_GROUP_SIZE = -54 => InvalidWorkGroupSize, "the device or the kernel has no groups of that size";
    CL_INVALID_WORK_ITEM_SIZE = -55 => InvalidWorkGroupSize, "the device or the kernel has no groups of that size";
    CL_INVALID_GLOBAL_OFFSET = -56 => InvalidValue, "there are no ranges from there on";
    CL_INVALID_EVENT = -58 => InvalidEvent, "this is no event";
    CL_INVALID_OPERATION = -59 => UnsupportedFeature, "this device cannot do that";
    CL_INVALID_BUFFER_SIZE = -61 => InvalidBufferSize, "the device has no buffers of that size";
    CL_INVALID_GLOBAL_WORK_SIZE = -63 => InvalidValue, "there are no ranges of that size";
    CL_INVALID_IMAGE_DESCRIPTOR = -65 => InvalidImageFormatDescriptor, "there are no such images";
    CL_INVALID_COMPILER_OPTIONS = -66 => ProgramBuildFailure, "the compiler does not know these options";
    CL_INVALID_LINKER_OPTIONS = -67 => ProgramBuildFailure, "the linker does not know these options";
    CL_INVALID_DEVICE_PARTITION_COUNT = -68 => InvalidDevicePartitionCount, "the device has fewer compute units";
    CL_PLATFORM_NOT_FOUND_KHR = -1001 => DeviceNotFound, "there is no platform";
}
/// One failure of the driver's.
pub fn failure(call: &'static str, status: cl_int) -> Error {
    let (code, words) = meaning(status);
    Error::new(code, format!("{call}: {words} ({status})")).native(status)
}
/// A driver says what cannot be.
pub fn broken(what: &str) -> Error {
    Error::new(ErrorCode::Unknown, format!("{what}: the driver is broken"))
}
/// There is no such function.
pub fn missing(call: &'static str) -> Error {
    let why = match driver::is_there() {
        true => format!("this platform has no {call}: a newer one may"),
        false => format!("{call}: there is no libOpenCL.so.1; install an ICD loader"),
    };
    Error::new(ErrorCode::UnsupportedFeature, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_our_code_the_calls_name_and_the_drivers_status() {
        let error = failure("clCreateKernel", CL_INVALID_KERNEL_NAME);
        assert_eq!(
            (error.code(), error.native_status()),
            (ErrorCode::InvalidKernelName, Some(-46))
        );
        assert!(error.to_string().contains("clCreateKernel"), "{error}");
        assert_eq!(failure("x", -7777).code(), ErrorCode::AdapterSpecific);
        assert_eq!(missing("clNothing").code(), ErrorCode::UnsupportedFeature);
    }
}
