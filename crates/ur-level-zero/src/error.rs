//! Maps the driver's statuses to error codes of the specification and to descriptions.
use super::driver::driver;
use ur_hal::what_ran_out;
use ur_hal::{Error, ErrorKind};
use ze_sys::*;

/// The error code and the description of a status.
fn meaning(status: ze_result_t) -> (ErrorKind, &'static str) {
    use ErrorKind as E;
    match status {
        ZE_RESULT_NOT_READY => (E::Unknown, "not done yet"),
        ZE_RESULT_ERROR_DEVICE_LOST
        | ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET
        | ZE_RESULT_ERROR_DEVICE_IN_LOW_POWER_STATE => (
            E::DeviceLost,
            "the device hung, was reset, was taken away or sleeps: start the program again",
        ),
        ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY => (E::OutOfHostMemory, "the host has no memory left"),
        ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY => (
            E::OutOfDeviceMemory,
            "the device has no memory left for it: free some or ask for less",
        ),
        ZE_RESULT_ERROR_MODULE_BUILD_FAILURE => {
            (E::BuildFailed, "the program does not compile: see its build log")
        }
        ZE_RESULT_ERROR_MODULE_LINK_FAILURE | ZE_RESULT_ERROR_INVALID_MODULE_UNLINKED => {
            (E::LinkFailed, "the program has symbols that nothing defines: see its build log")
        }
        ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS => (
            E::InvalidOperation,
            "this user may not: often a matter of the groups that may use /dev/dri",
        ),
        ZE_RESULT_ERROR_NOT_AVAILABLE => (E::InvalidOperation, "the device has it not, or not now"),
        ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE => {
            (E::NoCompiler, "a library that the driver needs is not installed")
        }
        ZE_RESULT_ERROR_UNINITIALIZED => (E::Uninitialized, "the driver is not running"),
        ZE_RESULT_ERROR_UNSUPPORTED_VERSION | ZE_RESULT_ERROR_UNSUPPORTED_FEATURE => {
            (E::Unsupported, "this driver or this device cannot do that")
        }
        ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT => {
            (E::InvalidEvent, "the event cannot be used like that")
        }
        ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION => {
            (E::UnknownOption, "the driver does not know that value")
        }
        ZE_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT => {
            (E::UnsupportedFormat, "the device has no images of that format")
        }
        ZE_RESULT_ERROR_INVALID_NATIVE_BINARY => {
            (E::InvalidBinary, "the binary is not for this device or is damaged")
        }
        ZE_RESULT_ERROR_INVALID_KERNEL_NAME => (E::NotFound, "there is no such kernel"),
        ZE_RESULT_ERROR_INVALID_GLOBAL_NAME => (E::InvalidValue, "there is no such variable"),
        ZE_RESULT_ERROR_INVALID_FUNCTION_NAME => (E::NoAddress, "no such function"),
        ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION => {
            (E::InvalidGroupSize, "the device has no groups of that size")
        }
        ZE_RESULT_ERROR_INVALID_GLOBAL_WIDTH_DIMENSION => {
            (E::InvalidGlobalSize, "the range does not come apart into groups of that size")
        }
        ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX => {
            (E::InvalidArgumentIndex, "the kernel has no such argument")
        }
        ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE => {
            (E::InvalidArgumentSize, "the argument has another size")
        }
        ZE_RESULT_ERROR_OVERLAPPING_REGIONS => (E::InvalidOperation, "the two regions overlap"),
        ZE_RESULT_ERROR_INVALID_KERNEL_HANDLE => (E::InvalidFunction, "there is no such kernel"),
        ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE => {
            (E::InvalidOperation, "the object is still in use: wait for what uses it")
        }
        ZE_RESULT_ERROR_INVALID_NULL_HANDLE
        | ZE_RESULT_ERROR_INVALID_NULL_POINTER
        | ZE_RESULT_ERROR_INVALID_ARGUMENT
        | ZE_RESULT_ERROR_INVALID_ENUMERATION
        | ZE_RESULT_ERROR_INVALID_KERNEL_ATTRIBUTE_VALUE
        | ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE
        | ZE_RESULT_ERROR_ADDRESS_NOT_FOUND => (E::InvalidValue, "the driver refuses an argument"),
        ZE_RESULT_ERROR_INVALID_SIZE
        | ZE_RESULT_ERROR_UNSUPPORTED_SIZE
        | ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT => {
            (E::InvalidValue, "the driver refuses a size or an alignment")
        }
        ZE_RESULT_ERROR_UNKNOWN => (E::Unknown, "the driver does not say why"),
        _ => (E::DriverSpecific, "a status that no specification known here has"),
    }
}

/// The error for a failed driver call.
pub fn failure(call: &'static str, status: ze_result_t) -> Error {
    let (code, words) = match meaning(status) {
        // Drivers also return this status if descriptors or mappings ran out.
        (ErrorKind::OutOfHostMemory, _) if what_ran_out() == Some(ErrorKind::OutOfResources) => (
            ErrorKind::OutOfResources,
            "this process has no descriptors or no mappings left: raise `ulimit -n` or vm.max_map_count, or release objects",
        ),
        meaning => meaning,
    };
    Error::new(code, format!("{call}: {words} ({status:#x})")).with_status(status as i32)
}
/// The error for a function that the driver does not have.
pub fn missing(call: &'static str) -> Error {
    let why = match driver().is_there() {
        true => format!("this driver has no {call}: a newer one may"),
        false => format!("{call}: there is no libze_loader.so.1; install Level Zero's loader"),
    };
    Error::new(ErrorKind::Unsupported, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_our_code_the_calls_name_and_the_drivers_status() {
        let error = failure("zeMemAllocDevice", ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
        assert_eq!(error.kind(), ErrorKind::OutOfDeviceMemory);
        assert_eq!(error.status(), Some(0x7000_0003));
        let text = error.to_string();
        assert!(text.contains("zeMemAllocDevice") && text.contains("0x70000003"), "{text}");
        assert_eq!(failure("x", 0x1234).kind(), ErrorKind::DriverSpecific);
    }
    #[test]
    fn a_missing_function_is_an_unsupported_feature() {
        assert_eq!(missing("zeNothing").kind(), ErrorKind::Unsupported);
    }
}
