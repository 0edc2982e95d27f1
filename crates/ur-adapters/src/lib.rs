//! The adapters: one room for each backend, the same file names in each. What they all stand on
//! is `ur-adapter`; the C symbols of their shared objects are in leaf crates.
pub mod cpu;
pub mod cuda_family;
pub mod level_zero;

// What is UR's over every driver: no other file here names the core's crate, but for the table.
use ur_core::{
    command, command_buffer, exhausted, from_c, kernels, memory, over_driver, profiling, program,
    unseen,
};
use ur_sys::ur_dditable_t;

/// An adapter linked into this program.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// What the adapter is called in file names: `libur_adapter_NAME.so.0`.
    pub name: &'static str,
    /// Its entry points.
    pub table: &'static ur_dditable_t,
}

/// Every adapter linked into this program, in the order in which a loader should ask them.
pub fn builtin() -> &'static [Builtin] {
    static ALL: [Builtin; 4] = [
        Builtin { name: "native_cpu", table: &cpu::TABLE },
        Builtin { name: "cuda", table: &cuda_family::CUDA_TABLE },
        Builtin { name: "hip", table: &cuda_family::HIP_TABLE },
        Builtin { name: "level_zero_v2", table: &level_zero::TABLE },
    ];
    &ALL
}
