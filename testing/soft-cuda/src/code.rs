//! The driver's result codes, with their names and descriptions.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::raw::put;
use std::ffi::{CStr, c_char};

/// An error code of the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code(pub i32);
/// The result of a call.
pub type Answer<T = ()> = Result<T, Code>;

macro_rules! codes {
    ($($name:ident = $number:literal, $symbol:literal, $words:literal;)*) => {
        $(pub const $name: Code = Code($number);)*
        const ALL: &[(Code, &CStr, &CStr)] = &[$(($name, $symbol, $words)),*];
    };
}
codes! {
    SUCCESS = 0, c"CUDA_SUCCESS", c"no error";
    INVALID_VALUE = 1, c"CUDA_ERROR_INVALID_VALUE", c"an argument is not acceptable";
    OUT_OF_MEMORY = 2, c"CUDA_ERROR_OUT_OF_MEMORY", c"not enough memory";
    NOT_INITIALIZED = 3, c"CUDA_ERROR_NOT_INITIALIZED", c"not initialised in this process";
    DEINITIALIZED = 4, c"CUDA_ERROR_DEINITIALIZED", c"the driver has shut down";
    NO_DEVICE = 100, c"CUDA_ERROR_NO_DEVICE", c"no device can be seen";
    INVALID_DEVICE = 101, c"CUDA_ERROR_INVALID_DEVICE", c"no such device";
    INVALID_IMAGE = 200, c"CUDA_ERROR_INVALID_IMAGE", c"not an image of a module";
    INVALID_CONTEXT = 201, c"CUDA_ERROR_INVALID_CONTEXT", c"no context, or not one for this";
    NO_BINARY = 209, c"CUDA_ERROR_NO_BINARY_FOR_GPU", c"the image has no code for this device";
    PEER_UNSUPPORTED = 217, c"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", c"the devices do not reach each other";
    INVALID_PTX = 218, c"CUDA_ERROR_INVALID_PTX", c"the PTX does not assemble";
    UNSUPPORTED_PTX = 222, c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", c"the PTX is newer than this driver";
    OPERATING_SYSTEM = 304, c"CUDA_ERROR_OPERATING_SYSTEM", c"the operating system refused";
    INVALID_HANDLE = 400, c"CUDA_ERROR_INVALID_HANDLE", c"not a live handle of the right kind";
    ILLEGAL_STATE = 401, c"CUDA_ERROR_ILLEGAL_STATE", c"not in the state for this";
    NOT_FOUND = 500, c"CUDA_ERROR_NOT_FOUND", c"no such name";
    NOT_READY = 600, c"CUDA_ERROR_NOT_READY", c"not complete yet";
    ILLEGAL_ADDRESS = 700, c"CUDA_ERROR_ILLEGAL_ADDRESS", c"the device reached for memory that it may not";
    OUT_OF_RESOURCES = 701, c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", c"the launch needs more than the device has";
    PEER_ENABLED = 704, c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", c"peer access is on already";
    PEER_NOT_ENABLED = 705, c"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", c"peer access is not on";
    CONTEXT_DESTROYED = 709, c"CUDA_ERROR_CONTEXT_IS_DESTROYED", c"the current context is gone";
    REGISTERED = 712, c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", c"host memory is registered already";
    NOT_REGISTERED = 713, c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", c"host memory is not registered";
    ILLEGAL_INSTRUCTION = 715, c"CUDA_ERROR_ILLEGAL_INSTRUCTION", c"the device met an instruction that it does not know";
    MISALIGNED = 716, c"CUDA_ERROR_MISALIGNED_ADDRESS", c"the device reached for a misaligned address";
    COOPERATIVE_TOO_LARGE = 720, c"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", c"more groups than can run at once";
    NOT_PERMITTED = 800, c"CUDA_ERROR_NOT_PERMITTED", c"not allowed here";
    NOT_SUPPORTED = 801, c"CUDA_ERROR_NOT_SUPPORTED", c"not supported";
    CAPTURE_UNSUPPORTED = 900, c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", c"not permitted while a stream is captured";
    CAPTURE_INVALIDATED = 901, c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", c"the capture was broken by an earlier error";
    CAPTURE_ISOLATION = 905, c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION", c"a dependency would cross the border of a capture";
    IMPLICIT = 906, c"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", c"the legacy stream would order a captured one";
    CAPTURED_EVENT = 907, c"CUDA_ERROR_CAPTURED_EVENT", c"the event was last recorded in a captured stream";
    CAPTURE_WRONG_THREAD = 908, c"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", c"a capture is ended by the thread that began it";
    INVALID_CLUSTER = 912, c"CUDA_ERROR_INVALID_CLUSTER_SIZE", c"no such size of a cluster";
    UNKNOWN = 999, c"CUDA_ERROR_UNKNOWN", c"an unknown failure";
}

/// Writes a string for `code`; implements both functions below.
fn tell(
    code: i32,
    to: *mut *const c_char,
    words: impl Fn(&(Code, &CStr, &CStr)) -> *const c_char,
) -> i32 {
    let found = ALL.iter().find(|(known, ..)| known.0 == code);
    let told = put(to, found.map_or(std::ptr::null(), words));
    if told.is_ok() && found.is_some() { 0 } else { INVALID_VALUE.0 }
}
#[unsafe(no_mangle)]
extern "C" fn cuGetErrorString(code: i32, to: *mut *const c_char) -> i32 {
    tell(code, to, |(_, _, words)| words.as_ptr())
}
#[unsafe(no_mangle)]
extern "C" fn cuGetErrorName(code: i32, to: *mut *const c_char) -> i32 {
    tell(code, to, |(_, name, _)| name.as_ptr())
}
