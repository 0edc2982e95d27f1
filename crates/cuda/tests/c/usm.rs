//! USM and virtual memory as a C program asks for them.
#![allow(dead_code, reason = "each test binary uses its own part")]
use crate::{c::*, call};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_sys::{
    ur_physical_mem_flags_t, ur_physical_mem_handle_t, ur_physical_mem_properties_t,
    ur_result_t as R, ur_structure_type_t, ur_usm_alloc_info_t as Info, ur_usm_pool_handle_t,
    ur_usm_type_t, ur_virtual_mem_access_flags_t as Access, ur_virtual_mem_granularity_info_t,
};

pub const NONE: ur_usm_pool_handle_t = ur_usm_pool_handle_t::NULL;
pub fn info<T: Copy + Default>(one: &One, at: *const c_void, name: Info) -> Result<T, R> {
    let mut value = T::default();
    let (bytes, to) = (size_of::<T>(), (&raw mut value).cast());
    match call!(usm.get_mem_alloc_info(one.context, at, name, bytes, to, null_mut())) {
        R::SUCCESS => Ok(value),
        code => Err(code),
    }
}
pub fn type_of(one: &One, at: *const c_void) -> ur_usm_type_t {
    ur_usm_type_t(info(one, at, Info::TYPE).unwrap())
}
pub fn numbers(seed: u32) -> [u32; 1024] {
    std::array::from_fn(|n| seed + n as u32)
}
pub struct Virtual {
    pub at: *mut c_void,
    pub bytes: usize,
}
pub fn granule(one: &One) -> usize {
    let (mut bytes, name) = (0_usize, ur_virtual_mem_granularity_info_t::MINIMUM);
    let to = (&raw mut bytes).cast();
    let code = call!(virtual_mem.granularity_get_info(
        one.context,
        one.device,
        1,
        name,
        8,
        to,
        null_mut()
    ));
    assert_eq!(code, R::SUCCESS);
    bytes
}
pub fn physical(one: &One, bytes: usize) -> ur_physical_mem_handle_t {
    let properties = ur_physical_mem_properties_t {
        stype: ur_structure_type_t::PHYSICAL_MEM_PROPERTIES,
        pNext: null_mut(),
        flags: ur_physical_mem_flags_t::ENABLE_IPC,
    };
    let mut memory = ur_physical_mem_handle_t::NULL;
    let code = call!(physical_mem.create(one.context, one.device, bytes, &properties, &mut memory));
    assert_eq!(code, R::SUCCESS);
    memory
}
pub fn map(one: &One, memory: ur_physical_mem_handle_t, bytes: usize, access: Access) -> Virtual {
    let mut at = null_mut();
    assert_eq!(call!(virtual_mem.reserve(one.context, null(), bytes, &mut at)), R::SUCCESS);
    assert_eq!(call!(virtual_mem.map(one.context, at, bytes, memory, 0, access)), R::SUCCESS);
    Virtual { at, bytes }
}
pub fn unmap(one: &One, Virtual { at, bytes }: Virtual) {
    assert_eq!(call!(virtual_mem.free(one.context, at, bytes)), R::ERROR_INVALID_VALUE);
    assert_eq!(call!(virtual_mem.unmap(one.context, at, bytes)), R::SUCCESS);
    assert_eq!(call!(virtual_mem.free(one.context, at, bytes)), R::SUCCESS);
}
