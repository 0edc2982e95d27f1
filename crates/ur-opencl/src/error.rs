//! Maps the drivers' statuses to kinds of errors and to sentences.
use super::{cl::cl_int, driver};
use ur_hal::{Error, ErrorKind};

/// OpenCL's statuses, under the names of its headers: the kind of each that is a failure, and what it means.
macro_rules! statuses { ($($name:ident = $number:literal => $kind:ident, $words:literal;)*) => {
    $(#[allow(dead_code, missing_docs, reason = "the headers' name, also where nothing here asks for it")]
    pub const $name: cl_int = $number;)*
    fn meaning(status: cl_int) -> (ErrorKind, &'static str) {
        match status {
            $($name => (ErrorKind::$kind, $words),)*
            _ => (ErrorKind::DriverSpecific, "a status that no specification known here has"),
        }
    }
} }
statuses! {
    CL_DEVICE_NOT_FOUND = -1 => InvalidDevice, "there is no such device";
    CL_DEVICE_NOT_AVAILABLE = -2 => DeviceLost, "the device is lost, or cannot be used now";
    CL_COMPILER_NOT_AVAILABLE = -3 => NoCompiler, "this driver compiles nothing: pass a binary";
    CL_MEM_OBJECT_ALLOCATION_FAILURE = -4 => OutOfDeviceMemory, "the device has no memory left for it: free some or ask for less";
    CL_OUT_OF_RESOURCES = -5 => OutOfResources, "the device has run out of a resource";
    CL_OUT_OF_HOST_MEMORY = -6 => OutOfHostMemory, "the host has no memory left";
    CL_PROFILING_INFO_NOT_AVAILABLE = -7 => InvalidOperation, "there are no times";
    CL_MEM_COPY_OVERLAP = -8 => InvalidOperation, "the two regions overlap";
    CL_IMAGE_FORMAT_MISMATCH = -9 => UnsupportedFormat, "the images have different formats";
    CL_IMAGE_FORMAT_NOT_SUPPORTED = -10 => UnsupportedFormat, "the device has no images of that format";
    CL_BUILD_PROGRAM_FAILURE = -11 => BuildFailed, "the program does not compile: see its build log";
    CL_MISALIGNED_SUB_BUFFER_OFFSET = -13 => Misaligned, "the part does not begin at a multiple of the alignment that the device needs (UR_DEVICE_INFO_MEM_BASE_ADDR_ALIGN, in bits)";
    CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST = -14 => DependencyFailed, "what a command waits for has failed";
    CL_COMPILE_PROGRAM_FAILURE = -15 => BuildFailed, "the program does not compile: see its build log";
    CL_LINKER_NOT_AVAILABLE = -16 => NoCompiler, "this driver links nothing: pass a binary";
    CL_LINK_PROGRAM_FAILURE = -17 => LinkFailed, "the program does not link: see its build log";
    CL_DEVICE_PARTITION_FAILED = -18 => PartitionFailed, "the device does not come apart like that";
    CL_INVALID_VALUE = -30 => InvalidValue, "the driver refuses an argument";
    CL_INVALID_DEVICE = -33 => InvalidDevice, "the device is another platform's or context's";
    CL_INVALID_CONTEXT = -34 => InvalidContext, "the context is another's";
    CL_INVALID_QUEUE_PROPERTIES = -35 => UnsupportedStream, "the device has no queues like that";
    CL_INVALID_MEM_OBJECT = -38 => InvalidMemory, "this is no memory object";
    CL_INVALID_IMAGE_FORMAT_DESCRIPTOR = -39 => UnsupportedFormat, "the device has no images of that format";
    CL_INVALID_IMAGE_SIZE = -40 => InvalidSize, "the device has no images of that size";
    CL_INVALID_SAMPLER = -41 => InvalidSampler, "this is no sampler";
    CL_INVALID_BINARY = -42 => InvalidBinary, "the binary is not for this device or is damaged";
    CL_INVALID_BUILD_OPTIONS = -43 => BuildFailed, "the compiler does not know these options";
    CL_INVALID_PROGRAM = -44 => InvalidModule, "this is no program";
    CL_INVALID_PROGRAM_EXECUTABLE = -45 => NotBuilt, "the program is not built";
    CL_INVALID_KERNEL_NAME = -46 => NotFound, "there is no such kernel";
    CL_INVALID_KERNEL = -48 => InvalidFunction, "this is no kernel";
    CL_INVALID_ARG_INDEX = -49 => InvalidArgumentIndex, "the kernel has no such argument";
    CL_INVALID_ARG_VALUE = -50 => InvalidArguments, "the kernel does not take this argument";
    CL_INVALID_ARG_SIZE = -51 => InvalidArgumentSize, "the argument has another size";
    CL_INVALID_KERNEL_ARGS = -52 => InvalidArguments, "the kernel takes other arguments";
    CL_INVALID_WORK_DIMENSION = -53 => InvalidGlobalSize, "there are no such ranges";
    CL_INVALID_WORK_GROUP_SIZE = -54 => InvalidGroupSize, "the device or the kernel has no groups of that size";
    CL_INVALID_WORK_ITEM_SIZE = -55 => InvalidGroupSize, "the device or the kernel has no groups of that size";
    CL_INVALID_GLOBAL_OFFSET = -56 => InvalidValue, "there are no ranges from there on";
    CL_INVALID_EVENT = -58 => InvalidEvent, "this is no event";
    CL_INVALID_OPERATION = -59 => Unsupported, "this device cannot do that";
    CL_INVALID_BUFFER_SIZE = -61 => InvalidSize, "the device has no buffers of that size";
    CL_INVALID_GLOBAL_WORK_SIZE = -63 => InvalidValue, "there are no ranges of that size";
    CL_INVALID_IMAGE_DESCRIPTOR = -65 => InvalidSize, "there are no such images";
    CL_INVALID_COMPILER_OPTIONS = -66 => BuildFailed, "the compiler does not know these options";
    CL_INVALID_LINKER_OPTIONS = -67 => BuildFailed, "the linker does not know these options";
    CL_INVALID_DEVICE_PARTITION_COUNT = -68 => InvalidPartitionCount, "the device has fewer compute units";
    CL_PLATFORM_NOT_FOUND_KHR = -1001 => InvalidDevice, "there is no platform";
}
/// One failure of the driver's.
pub fn failure(call: &'static str, status: cl_int) -> Error {
    let (kind, words) = meaning(status);
    Error::new(kind, format!("{call}: {words} ({status})")).with_status(status)
}
/// A driver says what cannot be.
pub fn broken(what: &str) -> Error {
    Error::new(ErrorKind::Unknown, format!("{what}: the driver is broken"))
}
/// There is no such function.
pub fn missing(call: &'static str) -> Error {
    let why = match driver::is_there() {
        true => format!("this platform has no {call}: a newer one may"),
        false => format!("{call}: there is no libOpenCL.so.1; install an ICD loader"),
    };
    Error::new(ErrorKind::Unsupported, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_our_kind_the_calls_name_and_the_drivers_status() {
        let error = failure("clCreateKernel", CL_INVALID_KERNEL_NAME);
        assert_eq!((error.kind(), error.status()), (ErrorKind::NotFound, Some(-46)));
        assert!(error.to_string().contains("clCreateKernel"), "{error}");
        assert_eq!(failure("x", -7777).kind(), ErrorKind::DriverSpecific);
        assert_eq!(missing("clNothing").kind(), ErrorKind::Unsupported);
    }
}
