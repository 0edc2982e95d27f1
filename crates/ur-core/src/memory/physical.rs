//! Physical memory: its properties as callers pass and query them, and a check for forks.
use ur_adapter::error::{Error, ErrorCode, Result};
use ur_sys::{ur_physical_mem_flags_t, ur_physical_mem_properties_t, ur_structure_type_t};

/// Whether the caller requests memory that can be shared between processes.
pub fn is_shareable(asked: Option<&ur_physical_mem_properties_t>) -> bool {
    asked.is_some_and(|p| p.flags.contains(ur_physical_mem_flags_t::ENABLE_IPC))
}
/// A `ur_physical_mem_properties_t` as 32-bit words, including padding: `stype`, padding, a null `pNext` (two words),
/// `flags`, padding.
pub fn properties(is_shareable: bool) -> [u32; 6] {
    const { assert!(size_of::<ur_physical_mem_properties_t>() == size_of::<[u32; 6]>()) }
    const { assert!(std::mem::offset_of!(ur_physical_mem_properties_t, flags) == 16) }
    let flags = match is_shareable {
        true => ur_physical_mem_flags_t::ENABLE_IPC,
        false => ur_physical_mem_flags_t::default(),
    };
    [ur_structure_type_t::PHYSICAL_MEM_PROPERTIES.0, 0, 0, 0, flags.bits(), 0]
}
/// Checks that memory which was made or opened after `fork` forks belongs to this process.
///
/// # Errors
/// `UNINITIALIZED` in a forked child.
pub fn check_fork(fork: u64) -> Result<()> {
    Error::unless(fork == ur_mapping::fork_count(), ErrorCode::Uninitialized, || {
        "this physical memory was made or opened before a fork and stayed with the parent: \
             open a ticket of it in the child"
    })
}
