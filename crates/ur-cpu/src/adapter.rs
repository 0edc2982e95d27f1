//! The backend that the adapter reports.
//!
//! Some programs, such as dpctl, only accept CPUs of the OpenCL backend. With the environment variable
//! `CAUSEWAY_NATIVE_CPU_BACKEND=opencl` the adapter, its platform and its device report the backend and the
//! version strings of OpenCL. Nothing else changes: features that only OpenCL's adapter has are still
//! refused. `native_cpu` is the default; any other value is ignored with a warning. The variable is read
//! once, when the adapter or a backend is first queried.

/// The environment variable that chooses the reported backend.
const VARIABLE: &str = "CAUSEWAY_NATIVE_CPU_BACKEND";

/// Whether the environment asks for OpenCL as the reported backend; an error says why its value is ignored.
pub(super) fn wants_opencl() -> Result<bool, String> {
    match std::env::var_os(VARIABLE) {
        None => Ok(false),
        Some(value) => match value.as_encoded_bytes() {
            b"" | b"native_cpu" => Ok(false),
            b"opencl" => Ok(true),
            _ => Err(format!(
                "{VARIABLE}={} is ignored: set it to opencl or native_cpu, or not at all",
                value.display()
            )),
        },
    }
}
/// The version of platform and device, in the format of the reported backend: OpenCL's starts with the
/// version of OpenCL.
pub(super) fn version(is_opencl: bool) -> &'static str {
    match is_opencl {
        true => concat!("OpenCL 3.0 Causeway native CPU ", env!("CARGO_PKG_VERSION")),
        false => concat!("Causeway native CPU ", env!("CARGO_PKG_VERSION")),
    }
}
