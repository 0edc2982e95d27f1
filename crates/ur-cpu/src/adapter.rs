//! What the adapter passes for.
//!
//! Some programs look at CPUs of the OpenCL backend alone (dpctl is one). With the environment
//! variable `CAUSEWAY_NATIVE_CPU_BACKEND=opencl` the adapter, its platform and its device describe
//! themselves as OpenCL does: backend and version strings. Nothing else changes: what OpenCL's adapter
//! could do and this one cannot is refused as ever. `native_cpu` is what holds without the variable;
//! any other value is ignored after a warning. It is read once, when a program first asks for the
//! adapter or for any backend.
use std::sync::OnceLock;
use ur_adapter::{log, object::Backend};
use ur_sys::ur_backend_t;

/// The variable that says what it passes for.
const VARIABLE: &str = "CAUSEWAY_NATIVE_CPU_BACKEND";

/// The backend that it says it is.
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
/// The version of platform and device, in the words of the backend that they pass for: OpenCL's
/// start with the version of OpenCL.
pub(super) fn version() -> &'static str {
    match backend() == ur_backend_t::OPENCL {
        true => concat!("OpenCL 3.0 Causeway native CPU ", env!("CARGO_PKG_VERSION")),
        false => concat!("Causeway native CPU ", env!("CARGO_PKG_VERSION")),
    }
}
