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
/// Reserved addresses in three granules, the middle one of which is mapped.
pub struct Hollow<'one> {
    one: &'one One,
    base: *mut c_void,
    memory: ur_physical_mem_handle_t,
}
impl<'one> Hollow<'one> {
    pub fn new(one: &'one One) -> Self {
        let (granule, mut base) = (granule(one), null_mut());
        let reserved = call!(virtual_mem.reserve(one.context, null(), 3 * granule, &mut base));
        assert_eq!(reserved, R::SUCCESS);
        let hollow = Self { one, base, memory: physical(one, granule) };
        let (at, access) = (hollow.middle(), Access::READ_WRITE);
        let mapped = call!(virtual_mem.map(one.context, at, granule, hollow.memory, 0, access));
        assert_eq!(mapped, R::SUCCESS);
        hollow
    }
    pub fn base(&self) -> *mut c_void {
        self.base
    }
    pub fn middle(&self) -> *mut c_void {
        self.base.wrapping_byte_add(granule(self.one))
    }
    /// Nothing is mapped at the first; the others begin, or end, where something is, for 4096 bytes.
    pub fn places(&self) -> [*mut c_void; 3] {
        let (middle, granule) = (self.middle(), granule(self.one));
        [self.base, middle.wrapping_byte_add(granule - 2048), middle.wrapping_byte_sub(2048)]
    }
    /// Copies and fills there are refused, and end nothing.
    pub fn refuses_commands(&self) {
        let (one, mut host) = (self.one, numbers(3));
        let (on_device, queue, none) = (one.device_memory(4096), one.queue, null_mut());
        let (here, refused) = (host.as_mut_ptr().cast::<c_void>(), R::ERROR_INVALID_VALUE);
        for (at, blocking) in self.places().into_iter().flat_map(|at| [(at, true), (at, false)]) {
            for (to, from) in [(at, here), (here, at), (at, on_device), (on_device, at), (at, at)] {
                let line =
                    call!(enqueue.usm_memcpy(queue, blocking, to, from, 4096, 0, null(), none));
                assert_eq!(line, refused);
                let (pitch, width) = (1024, 512);
                let rows = call!(enqueue.usm_memcpy_2d(
                    queue,
                    blocking,
                    to,
                    pitch,
                    from,
                    pitch,
                    width,
                    4,
                    0,
                    null(),
                    none
                ));
                assert_eq!(rows, refused);
                let now = call!(usm_exp.context_memcpy_exp(one.context, to, from, 4096));
                assert_eq!(now, refused);
            }
            for length in [1, 4, 3 << 10] {
                let fill =
                    call!(enqueue.usm_fill(queue, at, length, here, 3 << 10, 0, null(), none));
                assert_eq!(fill, refused);
            }
            let rows =
                call!(enqueue.usm_fill_2d(queue, at, 1024, 4, here, 512, 4, 0, null(), none));
            assert_eq!(rows, refused);
        }
        // What is mapped is used, to its last byte.
        let last = self.middle().wrapping_byte_add(granule(one) - 4096);
        one.write(last, &host);
        assert_eq!(one.read::<u32, 1024>(last), host);
        one.free(on_device);
    }
    pub fn end(self) {
        let (context, granule) = (self.one.context, granule(self.one));
        assert_eq!(call!(virtual_mem.unmap(context, self.middle(), granule)), R::SUCCESS);
        assert_eq!(call!(virtual_mem.free(context, self.base, 3 * granule)), R::SUCCESS);
        assert_eq!(call!(physical_mem.release(self.memory)), R::SUCCESS);
    }
}
