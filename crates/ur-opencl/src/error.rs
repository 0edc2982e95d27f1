//! What the drivers' statuses are called here: our code, and a sentence for whoever reads it.
use super::{cl::*, driver};
use ur_adapter::error::{Error, ErrorCode};

/// The specification's word for one of the driver's failures, and what it means.
fn meaning(status: cl_int) -> (ErrorCode, &'static str) {
    use ErrorCode as E;
    /// `CL_PLATFORM_NOT_FOUND_KHR`
    const PLATFORM_NOT_FOUND: cl_int = -1001;
    match status {
        CL_DEVICE_NOT_FOUND | PLATFORM_NOT_FOUND => (E::DeviceNotFound, "there is no such device"),
        CL_DEVICE_NOT_AVAILABLE => (E::DeviceNotAvailable, "the device cannot be used now"),
        CL_COMPILER_NOT_AVAILABLE | CL_LINKER_NOT_AVAILABLE => {
            (E::CompilerNotAvailable, "this driver compiles and links nothing: pass a binary")
        }
        CL_MEM_OBJECT_ALLOCATION_FAILURE => (
            E::OutOfDeviceMemory,
            "the device has no memory left for it: free some or ask for less",
        ),
        CL_OUT_OF_RESOURCES => (E::OutOfResources, "the device has run out of a resource"),
        CL_OUT_OF_HOST_MEMORY => (E::OutOfHostMemory, "the host has no memory left"),
        CL_MEM_COPY_OVERLAP => (E::OverlappingRegions, "the two regions overlap"),
        CL_IMAGE_FORMAT_MISMATCH => {
            (E::UnsupportedImageFormat, "the images have different formats")
        }
        CL_IMAGE_FORMAT_NOT_SUPPORTED | CL_INVALID_IMAGE_FORMAT_DESCRIPTOR => {
            (E::UnsupportedImageFormat, "the device has no images of that format")
        }
        CL_INVALID_IMAGE_SIZE => (E::InvalidImageSize, "the device has no images of that size"),
        CL_INVALID_IMAGE_DESCRIPTOR => {
            (E::InvalidImageFormatDescriptor, "there are no such images")
        }
        CL_BUILD_PROGRAM_FAILURE | CL_COMPILE_PROGRAM_FAILURE => {
            (E::ProgramBuildFailure, "the program does not compile: see its build log")
        }
        CL_LINK_PROGRAM_FAILURE => {
            (E::ProgramLinkFailure, "the program does not link: see its build log")
        }
        CL_INVALID_BINARY => (E::InvalidBinary, "the binary is not for this device or is damaged"),
        CL_INVALID_BUILD_OPTIONS | CL_INVALID_COMPILER_OPTIONS | CL_INVALID_LINKER_OPTIONS => {
            (E::ProgramBuildFailure, "the compiler does not know these options")
        }
        CL_INVALID_KERNEL_NAME => (E::InvalidKernelName, "there is no such kernel"),
        CL_INVALID_PROGRAM_EXECUTABLE => (E::InvalidProgramExecutable, "the program is not built"),
        CL_INVALID_ARG_INDEX => (E::InvalidKernelArgumentIndex, "the kernel has no such argument"),
        CL_INVALID_ARG_SIZE => (E::InvalidKernelArgumentSize, "the argument has another size"),
        CL_INVALID_ARG_VALUE => (E::InvalidKernelArgs, "the kernel does not take this argument"),
        CL_INVALID_KERNEL_ARGS => (E::InvalidKernelArgs, "the kernel takes other arguments"),
        CL_INVALID_WORK_DIMENSION => (E::InvalidWorkDimension, "there are no such ranges"),
        CL_INVALID_WORK_GROUP_SIZE | CL_INVALID_WORK_ITEM_SIZE => {
            (E::InvalidWorkGroupSize, "the device or the kernel has no groups of that size")
        }
        CL_INVALID_GLOBAL_WORK_SIZE | CL_INVALID_GLOBAL_OFFSET => {
            (E::InvalidValue, "there are no ranges of that size")
        }
        CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST => {
            (E::InEventListExecStatus, "what a command waits for has failed")
        }
        CL_PROFILING_INFO_NOT_AVAILABLE => (E::ProfilingInfoNotAvailable, "there are no times"),
        CL_DEVICE_PARTITION_FAILED => {
            (E::DevicePartitionFailed, "the device does not come apart like that")
        }
        CL_INVALID_DEVICE_PARTITION_COUNT => {
            (E::InvalidDevicePartitionCount, "the device has fewer compute units")
        }
        CL_INVALID_QUEUE_PROPERTIES => {
            (E::InvalidQueueProperties, "the device has no queues like that")
        }
        CL_INVALID_DEVICE => (E::InvalidDevice, "the device is another platform's or context's"),
        CL_INVALID_CONTEXT => (E::InvalidContext, "the context is another's"),
        CL_INVALID_MEM_OBJECT => (E::InvalidMemObject, "this is no memory object"),
        CL_INVALID_PROGRAM => (E::InvalidProgram, "this is no program"),
        CL_INVALID_KERNEL => (E::InvalidKernel, "this is no kernel"),
        CL_INVALID_EVENT => (E::InvalidEvent, "this is no event"),
        CL_INVALID_SAMPLER => (E::InvalidSampler, "this is no sampler"),
        CL_INVALID_BUFFER_SIZE => (E::InvalidBufferSize, "the device has no buffers of that size"),
        CL_INVALID_OPERATION => (E::UnsupportedFeature, "this device cannot do that"),
        CL_INVALID_VALUE => (E::InvalidValue, "the driver refuses an argument"),
        _ => (E::AdapterSpecific, "a status that no specification known here has"),
    }
}
/// One failure of the driver's.
pub fn failure(call: &'static str, status: cl_int) -> Error {
    let (code, words) = meaning(status);
    Error::new(code, format!("{call}: {words} ({status})")).native(status)
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
