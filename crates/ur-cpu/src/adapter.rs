//! The backend that the adapter reports.
//!
//! Some programs, such as dpctl, only accept CPUs of the OpenCL backend. With the environment variable
//! `CAUSEWAY_NATIVE_CPU_BACKEND=opencl` the adapter, its platform and its device report the backend and the
//! version strings of OpenCL. Nothing else changes: features that only OpenCL's adapter has are still
//! refused. `native_cpu` is the default; any other value is ignored with a warning. The variable is read
//! once, when the adapter or a backend is first queried.
use std::sync::OnceLock;
use ur_adapter::{log, object::Backend};
use ur_sys::ur_backend_t;

/// The environment variable that chooses the reported backend.
const VARIABLE: &str = "CAUSEWAY_NATIVE_CPU_BACKEND";

/// The backend to report.
pub(super) fn backend() -> ur_backend_t {
    static BACKEND: OnceLock<ur_backend_t> = OnceLock::new();
    *BACKEND.get_or_init(|| match std::env::var_os(VARIABLE) {
        None => ur_backend_t::NATIVE_CPU,
        Some(value) => match value.as_encoded_bytes() {
            b"" | b"native_cpu" => ur_backend_t::NATIVE_CPU,
            b"opencl" => ur_backend_t::OPENCL,
            _ => {
                log::warn_of_environment(
                    Backend::Cpu,
                    format!(
                        "{VARIABLE}={} is ignored: set it to opencl or native_cpu, or not at all",
                        value.display()
                    ),
                );
                ur_backend_t::NATIVE_CPU
            }
        },
    })
}
/// The version of platform and device, in the format of the reported backend: OpenCL's starts with the
/// version of OpenCL.
pub(super) fn version() -> &'static str {
    match backend() == ur_backend_t::OPENCL {
        true => concat!("OpenCL 3.0 Causeway native CPU ", env!("CARGO_PKG_VERSION")),
        false => concat!("Causeway native CPU ", env!("CARGO_PKG_VERSION")),
    }
}
