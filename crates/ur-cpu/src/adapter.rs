//! The adapter itself: what it is, what it passes for, and the sentences of its last failures.
//!
//! Some programs look at CPUs of the OpenCL backend alone (dpctl is one). With the environment
//! variable `CAUSEWAY_NATIVE_CPU_BACKEND=opencl` the adapter, its platform and its device describe
//! themselves as OpenCL does: backend and version strings. Nothing else changes: what OpenCL's adapter
//! could do and this one cannot is refused as ever. `native_cpu` is what holds without the variable;
//! any other value is ignored after a warning. It is read once, when a program first asks for the
//! adapter or for any backend.
use super::{Adapter, Cpu};
use std::sync::OnceLock;
use ur_adapter::{
    api::AdapterApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    log,
    object::{Backend, Borrowed, Owned},
};
use ur_sys::{ur_adapter_info_t, ur_backend_t};

/// What `UR_LOG_…` calls this adapter.
const NAME: &str = "NATIVE_CPU";
/// The variable that says what it passes for.
const VARIABLE: &str = "CAUSEWAY_NATIVE_CPU_BACKEND";

/// The one adapter object of a process.
pub(super) fn the_adapter() -> Owned<Adapter> {
    static ADAPTER: OnceLock<Owned<Adapter>> = OnceLock::new();
    ADAPTER.get_or_init(|| Owned::new(Adapter)).clone()
}

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
/// Whether it passes for OpenCL.
pub(super) fn is_opencl() -> bool {
    backend() == ur_backend_t::OPENCL
}

impl AdapterApi for Cpu {
    fn adapter_get() -> Result<Vec<Owned<Adapter>>> {
        log::open(Backend::Cpu, NAME);
        backend(); // what is wrong with the variable is said before anything depends on it
        Ok(vec![the_adapter()])
    }
    fn adapter_get_info(
        adapter: Borrowed<'_, Adapter>,
        name: ur_adapter_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_adapter_info_t::BACKEND => answer.value(&backend().0),
            ur_adapter_info_t::REFERENCE_COUNT => answer.value(&adapter.api_refs()),
            ur_adapter_info_t::VERSION => answer.value(&1u32),
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("this adapter has no answer to {name:?}"),
            )),
        }
    }
}
