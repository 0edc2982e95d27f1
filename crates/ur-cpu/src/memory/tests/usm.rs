//! Memory, pools, virtual memory and sharing within one process, through the C table.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
mod pools;
mod sharing;
mod virtual_memory;

use crate::{TABLE, the_device};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_sys::*;

type Code<T> = Result<T, ur_result_t>;
const OK: ur_result_t = ur_result_t::SUCCESS;
const PAGE: usize = 4096;

fn code(result: ur_result_t) -> Code<()> {
    if result == OK { Ok(()) } else { Err(result) }
}
fn device() -> ur_device_handle_t {
    ur_device_handle_t(the_device().publish().cast())
}
fn context() -> ur_context_handle_t {
    let mut context = ur_context_handle_t::NULL;
    let create = TABLE.context.create.unwrap();
    assert_eq!(unsafe { create(1, &device(), null(), &mut context) }, OK);
    context
}
fn aligned(align: u32) -> ur_usm_desc_t {
    let stype = ur_structure_type_t::USM_DESC;
    ur_usm_desc_t { stype, pNext: null(), hints: Default::default(), align }
}
#[derive(Clone, Copy, Debug, PartialEq)]
enum Usm {
    Host,
    Device,
    Shared,
}
const ALL: [Usm; 3] = [Usm::Host, Usm::Device, Usm::Shared];
fn try_alloc(
    usm: Usm,
    context: ur_context_handle_t,
    desc: *const ur_usm_desc_t,
    pool: ur_usm_pool_handle_t,
    size: usize,
) -> Code<*mut c_void> {
    let mut at = null_mut();
    let table = &TABLE.usm;
    code(unsafe {
        match usm {
            Usm::Host => table.host_alloc.unwrap()(context, desc, pool, size, &mut at),
            Usm::Device => {
                table.device_alloc.unwrap()(context, device(), desc, pool, size, &mut at)
            }
            Usm::Shared => {
                table.shared_alloc.unwrap()(context, device(), desc, pool, size, &mut at)
            }
        }
    })?;
    Ok(at)
}
fn alloc(context: ur_context_handle_t, size: usize) -> *mut u8 {
    try_alloc(Usm::Device, context, null(), ur_usm_pool_handle_t::NULL, size).unwrap().cast()
}
fn free(context: ur_context_handle_t, at: *mut u8) -> Code<()> {
    code(unsafe { TABLE.usm.free.unwrap()(context, at.cast()) })
}
fn info<T: Default>(
    context: ur_context_handle_t,
    at: *const u8,
    name: ur_usm_alloc_info_t,
) -> Code<T> {
    let (mut value, mut size) = (T::default(), 0);
    let get = TABLE.usm.get_mem_alloc_info.unwrap();
    let to = (&raw mut value).cast();
    code(unsafe { get(context, at.cast(), name, size_of::<T>(), to, &mut size) })?;
    assert_eq!(size, size_of::<T>());
    Ok(value)
}

#[test]
fn each_kind_is_known_by_any_address_in_it() {
    use ur_usm_alloc_info_t as I;
    let context = context();
    let types = [ur_usm_type_t::HOST, ur_usm_type_t::DEVICE, ur_usm_type_t::SHARED];
    for (usm, kind) in ALL.into_iter().zip(types) {
        for size in [1, 1000, 3 << 20] {
            let at = try_alloc(usm, context, null(), ur_usm_pool_handle_t::NULL, size).unwrap();
            let at = at.cast::<u8>();
            unsafe { at.write_bytes(7, size) };
            for offset in [0, size / 2, size - 1] {
                let inner = at.wrapping_add(offset);
                assert_eq!(info::<u32>(context, inner, I::TYPE), Ok(kind.0));
                assert_eq!(info::<usize>(context, inner, I::BASE_PTR), Ok(at.addr()));
                assert_eq!(info::<usize>(context, inner, I::SIZE), Ok(size));
                assert_eq!(info::<usize>(context, inner, I::DEVICE), Ok(device().0.addr()));
                assert_eq!(info::<usize>(context, inner, I::POOL), Ok(0));
            }
            free(context, at).unwrap();
        }
    }
}
#[test]
fn foreign_memory_is_of_unknown_type() {
    let (ours, others, local) = (context(), context(), 0_u64);
    let local = (&raw const local).cast();
    let unknown = Ok(ur_usm_type_t::UNKNOWN.0);
    assert_eq!(info::<u32>(ours, local, ur_usm_alloc_info_t::TYPE), unknown);
    let refused = Err(ur_result_t::ERROR_INVALID_MEM_OBJECT);
    assert_eq!(info::<usize>(ours, local, ur_usm_alloc_info_t::SIZE), refused);
    let at = alloc(ours, 100);
    assert_eq!(info::<u32>(others, at, ur_usm_alloc_info_t::TYPE), unknown);
    assert_eq!(free(others, at), Err(ur_result_t::ERROR_INVALID_MEM_OBJECT));
    free(ours, at).unwrap();
    assert_eq!(info::<u32>(ours, at, ur_usm_alloc_info_t::TYPE), unknown);
}
#[test]
fn alignment_is_honoured_and_checked() {
    let context = context();
    let pool = ur_usm_pool_handle_t::NULL;
    for usm in ALL {
        for align in [0, 1, 64, 4096, 65536, 2 << 20] {
            let at = try_alloc(usm, context, &aligned(align), pool, 100).unwrap();
            assert_eq!(at.addr() % (align.max(1) as usize), 0);
            free(context, at.cast()).unwrap();
        }
        for align in [3, 96, 4 << 20] {
            let refused = Err(ur_result_t::ERROR_INVALID_VALUE);
            assert_eq!(try_alloc(usm, context, &aligned(align), pool, 100), refused);
        }
    }
}
#[test]
fn impossible_sizes_are_refused() {
    let context = context();
    for usm in ALL {
        for size in [0, usize::MAX, 1 << 60] {
            let got = try_alloc(usm, context, null(), ur_usm_pool_handle_t::NULL, size);
            assert_eq!(got, Err(ur_result_t::ERROR_INVALID_USM_SIZE), "{size}");
        }
    }
}
#[test]
fn what_is_not_an_allocation_is_not_freed() {
    let context = context();
    let refused = Err(ur_result_t::ERROR_INVALID_MEM_OBJECT);
    let at = alloc(context, 100);
    assert_eq!(free(context, at.wrapping_add(8)), refused);
    free(context, at).unwrap();
    assert_eq!(free(context, at), refused);
    assert_eq!(free(context, null_mut()), Err(ur_result_t::ERROR_INVALID_NULL_POINTER));
}
#[test]
fn a_pitched_allocation_has_aligned_rows() {
    let context = context();
    let (mut at, mut pitch) = (null_mut(), 0);
    let alloc = TABLE.usm_exp.pitched_alloc_exp.unwrap();
    let pool = ur_usm_pool_handle_t::NULL;
    let got = unsafe { alloc(context, device(), null(), pool, 1000, 30, 4, &mut at, &mut pitch) };
    assert_eq!((got, pitch), (OK, 1024));
    assert_eq!(info::<usize>(context, at.cast(), ur_usm_alloc_info_t::SIZE), Ok(30 * 1024));
    free(context, at.cast()).unwrap();
}
#[test]
fn a_context_copies_between_allocations_within_their_bounds() {
    let context = context();
    let (one, two) = (alloc(context, 100), alloc(context, 50));
    unsafe { one.write_bytes(5, 100) };
    let copy = |size| unsafe {
        TABLE.usm_exp.context_memcpy_exp.unwrap()(context, two.cast(), one.cast(), size)
    };
    assert_eq!(copy(50), OK);
    assert_eq!(unsafe { two.add(49).read() }, 5);
    assert_eq!(copy(51), ur_result_t::ERROR_INVALID_SIZE);
    assert_eq!(copy(0), ur_result_t::ERROR_INVALID_SIZE);
    free(context, one).unwrap();
    free(context, two).unwrap();
}
#[test]
fn memory_freed_under_a_command_stays_until_it_is_done() {
    let context = context();
    let mut queue = ur_queue_handle_t::NULL;
    let create = TABLE.queue.create.unwrap();
    assert_eq!(unsafe { create(context, device(), null(), &mut queue) }, OK);
    let size = 256 << 20;
    let (from, to) = (alloc(context, size), alloc(context, size));
    unsafe { from.write_bytes(3, size) };
    let copy = TABLE.enqueue.usm_memcpy.unwrap();
    let got = unsafe { copy(queue, false, to.cast(), from.cast(), size, 0, null(), null_mut()) };
    assert_eq!(got, OK);
    free(context, from).unwrap(); // the copy would fault if the memory were unmapped now
    assert_eq!(unsafe { TABLE.queue.finish.unwrap()(queue) }, OK);
    assert_eq!(unsafe { to.add(size - 1).read() }, 3);
    free(context, to).unwrap();
}
