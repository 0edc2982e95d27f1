//! Memory as a C caller sees it: allocations, handles for other processes, descriptors, mapped physical
//! memory, and calls that fail.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
mod driver;

use driver::World;
use std::{
    ffi::c_void,
    os::fd::{FromRawFd as _, OwnedFd},
    ptr::{from_mut, null, null_mut},
};
use ze_sys::*;

const PAGE: usize = 64 << 10;

fn device_desc(chain: *const c_void) -> ze_device_mem_alloc_desc_t {
    let stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC;
    ze_device_mem_alloc_desc_t { stype, pNext: chain, ..Default::default() }
}
fn allocate(world: &World, size: usize, chain: *const c_void) -> *mut u8 {
    let (desc, mut at) = (device_desc(chain), null_mut());
    let made =
        ze!(world.ze, mem.pfnAllocDevice(world.context, &desc, size, 0, world.device, &mut at));
    assert_eq!(made, 0);
    at.cast()
}
fn properties(
    world: &World,
    at: *const u8,
    chain: *mut c_void,
) -> (ze_result_t, ze_memory_allocation_properties_t, ze_device_handle_t) {
    let stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES;
    let mut properties =
        ze_memory_allocation_properties_t { stype, pNext: chain, ..Default::default() };
    let mut device = null_mut();
    let (at, to) = (at.cast(), &mut properties);
    let code = ze!(world.ze, mem.pfnGetAllocProperties(world.context, at, to, &mut device));
    (code, properties, device)
}

#[test]
fn an_allocation_is_known_by_each_of_its_addresses_until_it_is_freed() {
    let world = World::new();
    let at = allocate(&world, 100, null());
    let (code, inside, device) = properties(&world, at.wrapping_add(99), null_mut());
    assert_eq!((code, inside.type_, device), (0, ZE_MEMORY_TYPE_DEVICE, world.device));
    let (mut base, mut size) = (null_mut(), 0);
    let inner = at.wrapping_add(50).cast();
    ok!(world.ze, mem.pfnGetAddressRange(world.context, inner, &mut base, &mut size));
    assert_eq!((base, size), (at.cast(), 100));
    assert_eq!(properties(&world, at.wrapping_add(100), null_mut()).1.type_, 0);
    ok!(world.ze, mem.pfnFree(world.context, at.cast()));
    assert_eq!(properties(&world, at, null_mut()).1.type_, ZE_MEMORY_TYPE_UNKNOWN);
    let again = ze!(world.ze, mem.pfnFree(world.context, at.cast()));
    assert_eq!(again, ZE_RESULT_ERROR_INVALID_ARGUMENT);
}

#[test]
fn an_opened_handle_has_other_addresses_and_the_same_bytes_until_it_is_closed() {
    let world = World::new();
    let at = allocate(&world, PAGE, null());
    let (mut handle, mut there) = (ze_ipc_mem_handle_t::default(), null_mut());
    ok!(world.ze, mem.pfnGetIpcHandle(world.context, at.cast(), &mut handle));
    ok!(world.ze, mem.pfnOpenIpcHandle(world.context, world.device, handle, 0, &mut there));
    assert_ne!(there, at.cast());
    unsafe { at.add(7).write_volatile(42) };
    assert_eq!(unsafe { there.cast::<u8>().add(7).read_volatile() }, 42);
    let freed = ze!(world.ze, mem.pfnFree(world.context, there));
    assert_eq!(freed, ZE_RESULT_ERROR_INVALID_ARGUMENT, "what is opened is closed, not freed");
    ok!(world.ze, mem.pfnFree(world.context, at.cast()));
    assert_eq!(unsafe { there.cast::<u8>().add(7).read_volatile() }, 42);
    ok!(world.ze, mem.pfnCloseIpcHandle(world.context, there));
}

#[test]
fn a_handle_that_was_put_back_as_often_as_it_was_got_opens_nothing() {
    let world = World::new();
    let at = allocate(&world, PAGE, null());
    let (mut handle, mut there) = (ze_ipc_mem_handle_t::default(), null_mut());
    for _ in 0..2 {
        ok!(world.ze, mem.pfnGetIpcHandle(world.context, at.cast(), &mut handle));
    }
    ok!(world.ze, mem.pfnPutIpcHandle(world.context, handle));
    ok!(world.ze, mem.pfnOpenIpcHandle(world.context, world.device, handle, 0, &mut there));
    ok!(world.ze, mem.pfnCloseIpcHandle(world.context, there));
    ok!(world.ze, mem.pfnPutIpcHandle(world.context, handle));
    let open =
        ze!(world.ze, mem.pfnOpenIpcHandle(world.context, world.device, handle, 0, &mut there));
    assert_eq!(open, ZE_RESULT_ERROR_INVALID_ARGUMENT);
    let put = ze!(world.ze, mem.pfnPutIpcHandle(world.context, handle));
    assert_eq!(put, ZE_RESULT_ERROR_INVALID_ARGUMENT);
}

#[test]
fn a_handle_made_of_a_passed_descriptor_opens_the_same_bytes() {
    let world = World::new();
    let at = allocate(&world, PAGE, null());
    let (mut handle, mut descriptor) = (ze_ipc_mem_handle_t::default(), 0);
    ok!(world.ze, mem.pfnGetIpcHandle(world.context, at.cast(), &mut handle));
    let to = &mut descriptor;
    ok!(world.ze, mem_exp.pfnGetFileDescriptorFromIpcHandleExp(world.context, handle, to));
    let passed = unsafe { libc::fcntl(descriptor as i32, libc::F_DUPFD_CLOEXEC, 0) };
    let passed = unsafe { OwnedFd::from_raw_fd(passed) };
    let number = std::os::fd::AsRawFd::as_raw_fd(&passed) as u64;
    let (mut made, mut there) = (ze_ipc_mem_handle_t::default(), null_mut());
    let to = &mut made;
    ok!(world.ze, mem_exp.pfnGetIpcHandleFromFileDescriptorExp(world.context, number, to));
    ok!(world.ze, mem.pfnOpenIpcHandle(world.context, world.device, made, 0, &mut there));
    drop(passed);
    unsafe { there.cast::<u8>().write_volatile(9) };
    assert_eq!(unsafe { at.read_volatile() }, 9);
    ok!(world.ze, mem.pfnCloseIpcHandle(world.context, there));
    // Putting the handle back succeeds, and does not release the handle that the driver made.
    ok!(world.ze, mem.pfnPutIpcHandle(world.context, made));
    ok!(world.ze, mem.pfnOpenIpcHandle(world.context, world.device, handle, 0, &mut there));
    ok!(world.ze, mem.pfnCloseIpcHandle(world.context, there));
}

#[test]
fn physical_memory_travels_as_a_descriptor_that_cannot_be_cut_short() {
    let world = World::new();
    let flags = ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF;
    let stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC;
    let mut export = ze_external_memory_export_desc_t { stype, pNext: null(), flags };
    let first = physical(&world, from_mut(&mut export).cast());
    let stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD;
    let mut wanted = ze_external_memory_export_fd_t { stype, pNext: null(), flags, fd: -1 };
    let stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_PROPERTIES;
    let chain = from_mut(&mut wanted).cast();
    let mut told = ze_physical_mem_properties_t { stype, pNext: chain, ..Default::default() };
    ok!(world.ze, physical.pfnGetProperties(world.context, first, &mut told));
    assert_eq!(told.size, PAGE as u64);
    assert_eq!(unsafe { libc::ftruncate(wanted.fd, 0) }, -1, "as with a dma-buf");
    let fd = unsafe { OwnedFd::from_raw_fd(wanted.fd) };
    let stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMPORT_FD;
    let mut import = ze_external_memory_import_fd_t { stype, pNext: null(), flags, fd: wanted.fd };
    let second = physical(&world, from_mut(&mut import).cast());
    drop(fd);
    let (one, other) = (mapped(&world, first), mapped(&world, second));
    unsafe { one.write_volatile(77) };
    assert_eq!(unsafe { other.read_volatile() }, 77);
}
fn physical(world: &World, chain: *const c_void) -> ze_physical_mem_handle_t {
    let stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC;
    let mut desc = ze_physical_mem_desc_t { stype, pNext: chain.cast_mut(), flags: 1, size: PAGE };
    let mut made = null_mut();
    ok!(world.ze, physical.pfnCreate(world.context, world.device, &mut desc, &mut made));
    made
}
fn mapped(world: &World, physical: ze_physical_mem_handle_t) -> *mut u8 {
    let mut at = null_mut();
    ok!(world.ze, space.pfnReserve(world.context, null(), PAGE, &mut at));
    ok!(world.ze, space.pfnMap(world.context, at, PAGE, physical, 0, 1));
    at.cast()
}

#[test]
fn a_file_of_a_disk_is_no_memory_of_a_device() {
    let world = World::new();
    let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
    let stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMPORT_FD;
    let flags = ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF;
    let mut import = ze_external_memory_import_fd_t { stype, pNext: null(), flags, fd };
    let (desc, mut at) = (device_desc(from_mut(&mut import).cast()), null_mut());
    let code =
        ze!(world.ze, mem.pfnAllocDevice(world.context, &desc, 64, 0, world.device, &mut at));
    assert_eq!((code, at), (ZE_RESULT_ERROR_INVALID_ARGUMENT, null_mut()));
}
#[test]
fn what_was_not_made_for_it_is_not_exported() {
    let world = World::new();
    let at = allocate(&world, PAGE, null());
    let stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD;
    let flags = ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF;
    let mut wanted = ze_external_memory_export_fd_t { stype, pNext: null(), flags, fd: -1 };
    let (code, ..) = properties(&world, at, from_mut(&mut wanted).cast());
    assert_eq!((code, wanted.fd), (ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, -1));
}

#[test]
fn reserved_addresses_are_kept_while_something_is_mapped_there() {
    let world = World::new();
    let (made, mut same) = (physical(&world, null()), 0);
    let at = mapped(&world, made).cast::<c_void>();
    let mut access = 9;
    let (context, to) = (world.context, &mut access);
    ok!(world.ze, space.pfnSetAccessAttribute(context, at, PAGE, 2));
    ok!(world.ze, space.pfnGetAccessAttribute(context, at, PAGE, to, &mut same));
    assert_eq!((access, same), (ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY, PAGE));
    let refused = [
        ze!(world.ze, space.pfnFree(context, at, PAGE)),
        ze!(world.ze, space.pfnMap(context, at, PAGE, made, 0, 1)),
        ze!(world.ze, space.pfnUnmap(context, at.wrapping_byte_add(PAGE), PAGE)),
    ];
    assert_eq!(refused, [ZE_RESULT_ERROR_INVALID_ARGUMENT; 3]);
    ok!(world.ze, physical.pfnDestroy(context, made));
    ok!(world.ze, space.pfnUnmap(context, at, PAGE));
    ok!(world.ze, space.pfnFree(context, at, PAGE));
}

#[test]
fn a_destroyed_handle_and_one_of_another_kind_are_refused() {
    let world = World::new();
    let made = physical(&world, null());
    ok!(world.ze, physical.pfnDestroy(world.context, made));
    let again = ze!(world.ze, physical.pfnDestroy(world.context, made));
    assert_eq!(again, ZE_RESULT_ERROR_INVALID_ARGUMENT);
    let other = ze!(world.ze, context.pfnGetStatus(world.device.cast()));
    assert_eq!(other, ZE_RESULT_ERROR_INVALID_ARGUMENT);
    let none = ze!(world.ze, context.pfnGetStatus(null_mut()));
    assert_eq!(none, ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
}

#[test]
fn a_device_does_not_give_more_than_it_has() {
    let world = World::new();
    let stype = ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC;
    let mut relaxed = ze_relaxed_allocation_limits_exp_desc_t { stype, pNext: null(), flags: 1 };
    let desc = device_desc(from_mut(&mut relaxed).cast());
    let (mut at, device) = (null_mut(), world.device);
    let much = ze!(world.ze, mem.pfnAllocDevice(world.context, &desc, 5 << 30, 0, device, &mut at));
    assert_eq!(much, ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
    let desc = device_desc(null());
    let large =
        ze!(world.ze, mem.pfnAllocDevice(world.context, &desc, 3 << 30, 0, device, &mut at));
    assert_eq!(large, ZE_RESULT_ERROR_UNSUPPORTED_SIZE, "without asking for more than usual");
}

#[test]
fn memory_freed_with_a_policy_stays_until_the_commands_before_have_run() {
    let world = World::new();
    let gate = world.event(world.pool(ZE_EVENT_POOL_FLAG_HOST_VISIBLE, 1), 0);
    let list = world.immediate(driver::IN_ORDER);
    let (at, mut copied) = (allocate(&world, PAGE, null()), 0_u64);
    unsafe { at.cast::<u64>().write_volatile(11) };
    world.copy(list, (&mut copied, at.cast()), driver::NONE, &mut [gate]);
    let desc = ze_memory_free_ext_desc_t {
        stype: ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC,
        freePolicy: ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_DEFER_FREE,
        ..Default::default()
    };
    ok!(world.ze, mem.pfnFreeExt(world.context, &desc, at.cast()));
    assert_eq!(properties(&world, at, null_mut()).1.type_, ZE_MEMORY_TYPE_UNKNOWN);
    ok!(world.ze, event.pfnHostSignal(gate));
    world.finish(list);
    assert_eq!(copied, 11);
}
