//! `pNext` chains: extension structs linked to a descriptor, each identified by its first word.
#![expect(unsafe_code, reason = "follows pointers C linked")]
use crate::error::{Error, ErrorCode, Result};
use std::ffi::c_void;
use ur_sys::{
    CW_STRUCTURE_TYPE_IPC_POLICY_DESC, cw_ipc_policy_desc_t, ur_kernel_launch_cluster_property_t,
    ur_kernel_launch_ext_properties_t, ur_kernel_launch_workgroup_property_t,
    ur_queue_index_properties_t, ur_queue_native_desc_t, ur_queue_native_properties_t,
    ur_queue_properties_t, ur_structure_type_t, ur_usm_desc_t, ur_usm_device_desc_t,
    ur_usm_host_desc_t, ur_usm_pool_desc_t, ur_usm_pool_limits_desc_t,
};

/// A struct that starts with `stype` and `pNext`.
///
/// # Safety
/// `Self` is `repr(C)` and starts with a `ur_structure_type_t` and a pointer, and `STYPE` is the type that the ABI
/// assigns to exactly this struct.
pub unsafe trait Chained {
    /// The value of its first member.
    const STYPE: ur_structure_type_t;
}

#[repr(C)]
struct Link {
    stype: ur_structure_type_t,
    next: *const c_void,
}

/// The longest chain followed. The ABI has fewer structs to link, so a longer chain is a loop.
const LONGEST: usize = 64;

/// The first `T` in the chain that starts at `first`, if there is one.
///
/// # Safety
/// `first` is null or points at a struct that starts with `stype` and `pNext`, and so on down the chain. Each is live
/// for `'a` and of the type that its `stype` states.
///
/// # Errors
/// `INVALID_VALUE` if the chain does not end.
pub unsafe fn find<'a, T: Chained>(first: *const c_void) -> Result<Option<&'a T>> {
    let mut at = first.cast::<Link>();
    for _ in 0..LONGEST {
        // SAFETY: null or a live struct, as the caller promised.
        let Some(link) = (unsafe { at.as_ref() }) else { return Ok(None) };
        if link.stype == T::STYPE {
            // SAFETY: the struct is of the type that its `stype` states, as the caller promised.
            return Ok(Some(unsafe { &*at.cast::<T>() }));
        }
        at = link.next.cast();
    }
    Err(Error::new(ErrorCode::InvalidValue, "the pNext chain of a descriptor does not end"))
}

/// A descriptor that a shim passes on. The caller of the entry guarantees that its chain is valid.
pub trait Head {
    /// Its `pNext`.
    fn next(&self) -> *const c_void;
}
/// The first `T` in the chain of a descriptor, if there is one.
///
/// # Errors
/// As for [`find`].
pub fn extension<T: Chained>(head: &impl Head) -> Result<Option<&T>> {
    // SAFETY: `head` is a descriptor of an entry, whose caller guarantees that the chain is valid during the call.
    unsafe { find(head.next()) }
}
impl Head for ur_usm_pool_desc_t {
    fn next(&self) -> *const c_void {
        self.pNext
    }
}
// SAFETY: it starts with `stype` and `pNext`, and the ABI assigns it this type.
unsafe impl Chained for ur_usm_pool_limits_desc_t {
    const STYPE: ur_structure_type_t = ur_structure_type_t::USM_POOL_LIMITS_DESC;
}
impl Head for ur_queue_properties_t {
    fn next(&self) -> *const c_void {
        self.pNext
    }
}
// SAFETY: it starts with `stype` and `pNext`, and the ABI assigns it this type.
unsafe impl Chained for ur_queue_index_properties_t {
    const STYPE: ur_structure_type_t = ur_structure_type_t::QUEUE_INDEX_PROPERTIES;
}

impl Head for ur_queue_native_properties_t {
    fn next(&self) -> *const c_void {
        self.pNext
    }
}
// SAFETY: it starts with `stype` and `pNext`, and the ABI assigns it this type.
unsafe impl Chained for ur_queue_native_desc_t {
    const STYPE: ur_structure_type_t = ur_structure_type_t::QUEUE_NATIVE_DESC;
}

impl Head for ur_usm_desc_t {
    fn next(&self) -> *const c_void {
        self.pNext
    }
}
// SAFETY: it starts with `stype` and `pNext`, and the ABI assigns it this type.
unsafe impl Chained for ur_usm_host_desc_t {
    const STYPE: ur_structure_type_t = ur_structure_type_t::USM_HOST_DESC;
}
// SAFETY: it starts with `stype` and `pNext`, and the ABI assigns it this type.
unsafe impl Chained for ur_usm_device_desc_t {
    const STYPE: ur_structure_type_t = ur_structure_type_t::USM_DEVICE_DESC;
}

// SAFETY: it starts with `stype` and `pNext`, and the ABI assigns it this type.
unsafe impl Chained for cw_ipc_policy_desc_t {
    const STYPE: ur_structure_type_t = CW_STRUCTURE_TYPE_IPC_POLICY_DESC;
}

impl Head for ur_kernel_launch_ext_properties_t {
    fn next(&self) -> *const c_void {
        self.pNext
    }
}
// SAFETY: it starts with `stype` and `pNext`, and the ABI assigns it this type.
unsafe impl Chained for ur_kernel_launch_cluster_property_t {
    const STYPE: ur_structure_type_t = ur_structure_type_t::KERNEL_LAUNCH_CLUSTER_PROPERTY;
}
// SAFETY: it starts with `stype` and `pNext`, and the ABI assigns it this type.
unsafe impl Chained for ur_kernel_launch_workgroup_property_t {
    const STYPE: ur_structure_type_t = ur_structure_type_t::KERNEL_LAUNCH_WORKGROUP_PROPERTY;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    fn limits(next: *const c_void) -> ur_usm_pool_limits_desc_t {
        let stype = ur_structure_type_t::USM_POOL_LIMITS_DESC;
        ur_usm_pool_limits_desc_t { stype, pNext: next, maxPoolableSize: 7, minDriverAllocSize: 9 }
    }
    fn pool(next: *const c_void) -> ur_usm_pool_desc_t {
        let stype = ur_structure_type_t::USM_POOL_DESC;
        ur_usm_pool_desc_t { stype, pNext: next, flags: Default::default() }
    }
    #[test]
    fn an_extension_is_found_behind_others() {
        assert!(extension::<ur_usm_pool_limits_desc_t>(&pool(ptr::null())).unwrap().is_none());
        let last = limits(ptr::null());
        let other = pool((&raw const last).cast());
        let first = pool((&raw const other).cast());
        let found = extension::<ur_usm_pool_limits_desc_t>(&first).unwrap().unwrap();
        assert_eq!((found.maxPoolableSize, found.minDriverAllocSize), (7, 9));
    }
    #[test]
    fn a_chain_that_bites_its_tail_is_an_error() {
        let mut link = pool(ptr::null());
        let at = &raw mut link;
        // SAFETY: it is a local variable of this test.
        unsafe { (*at).pNext = at.cast() };
        // SAFETY: as above.
        let error = extension::<ur_usm_pool_limits_desc_t>(unsafe { &*at }).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidValue);
    }
}
