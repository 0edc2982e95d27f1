//! Sharing within one process, and requests that are refused.
use super::{
    virtual_memory::{give_up, map, physical, release, reserve, unmap},
    *,
};

/// The address and the size of a handle that `Get` returned.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Handle(*mut c_void, usize);
impl Handle {
    fn copy(self) -> Vec<u8> {
        unsafe { std::slice::from_raw_parts(self.0.cast::<u8>(), self.1) }.to_vec()
    }
}
fn get(context: ur_context_handle_t, at: *mut u8) -> Code<Handle> {
    let mut handle = Handle(null_mut(), 0);
    let get = TABLE.ipc_exp.get_mem_handle_exp.unwrap();
    code(unsafe { get(context, at.cast(), &mut handle.0, &mut handle.1) })?;
    Ok(handle)
}
fn put(context: ur_context_handle_t, data: *mut c_void) -> Code<()> {
    code(unsafe { TABLE.ipc_exp.put_mem_handle_exp.unwrap()(context, data) })
}
fn open(context: ur_context_handle_t, bytes: &[u8]) -> Code<*mut u8> {
    let (mut at, mut bytes) = (null_mut(), bytes.to_vec());
    let open = TABLE.ipc_exp.open_mem_handle_exp.unwrap();
    code(unsafe { open(context, device(), bytes.as_mut_ptr().cast(), bytes.len(), &mut at) })?;
    Ok(at.cast())
}
fn close(context: ur_context_handle_t, at: *mut u8) -> Code<()> {
    code(unsafe { TABLE.ipc_exp.close_mem_handle_exp.unwrap()(context, at.cast()) })
}
const INVALID: ur_result_t = ur_result_t::ERROR_INVALID_VALUE;

#[test]
fn the_exporter_opens_its_own_memory_at_its_own_address() {
    let context = context();
    for size in [100, 3 << 20] {
        let at = alloc(context, size);
        for offset in [0, 10, size - 1] {
            let inner = at.wrapping_add(offset);
            let handle = get(context, inner).unwrap();
            assert_eq!(open(context, &handle.copy()), Ok(inner));
            assert_eq!(open(context, &handle.copy()), Ok(inner));
            put(context, handle.0).unwrap();
            assert_eq!(close(context, inner), Ok(()));
            assert_eq!(close(context, inner), Ok(()));
            assert_eq!(close(context, inner), Err(INVALID), "opened twice");
        }
        free(context, at).unwrap();
    }
}
#[test]
fn memory_freed_while_it_is_open_stays_until_it_is_closed() {
    let context = context();
    let at = alloc(context, 3 << 20);
    unsafe { at.write_bytes(6, 3 << 20) };
    let handle = get(context, at).unwrap();
    let opened = open(context, &handle.copy()).unwrap();
    free(context, at).unwrap();
    assert_eq!(unsafe { opened.add(100).read() }, 6);
    assert_eq!(free(context, at), Err(ur_result_t::ERROR_INVALID_MEM_OBJECT));
    assert_eq!(get(context, at), Err(INVALID), "it is free");
    assert_eq!(open(context, &handle.copy()), Err(INVALID));
    put(context, handle.0).unwrap();
    close(context, opened).unwrap();
    let unknown = Ok(ur_usm_type_t::UNKNOWN.0);
    assert_eq!(info::<u32>(context, at, ur_usm_alloc_info_t::TYPE), unknown);
}
#[test]
fn a_handle_is_dead_once_it_is_put_or_its_memory_is_free() {
    let context = context();
    let at = alloc(context, 100);
    let (one, two) = (get(context, at).unwrap(), get(context, at).unwrap());
    assert_ne!(one.0, two.0);
    assert_eq!(one.1, two.1);
    let (first, second) = (one.copy(), two.copy());
    put(context, one.0).unwrap();
    assert_eq!(put(context, one.0), Err(INVALID), "put already");
    assert_eq!(open(context, &first), Err(INVALID));
    assert_eq!(open(context, &second), Ok(at), "the other is an export of its own");
    close(context, at).unwrap();
    free(context, at).unwrap();
    assert_eq!(open(context, &second), Err(INVALID));
    put(context, two.0).unwrap();
}
#[test]
fn only_device_memory_of_this_context_is_shared() {
    let (ours, others) = (context(), context());
    let at = alloc(ours, 100);
    let local = 0_u64;
    assert_eq!(get(ours, (&raw const local).cast_mut().cast()), Err(INVALID));
    assert_eq!(get(others, at), Err(INVALID));
    for usm in [Usm::Host, Usm::Shared] {
        let at = try_alloc(usm, ours, null(), ur_usm_pool_handle_t::NULL, 100).unwrap();
        assert_eq!(get(ours, at.cast()), Err(INVALID));
        free(ours, at.cast()).unwrap();
    }
    free(ours, at).unwrap();
    assert_eq!(get(ours, at), Err(INVALID));
}
#[test]
fn null_arguments_have_their_own_codes() {
    let context = context();
    let at: *mut c_void = alloc(context, 100).cast();
    let (mut data, mut size) = (null_mut(), 0);
    let table = &TABLE.ipc_exp;
    let handle = ur_result_t::ERROR_INVALID_NULL_HANDLE;
    let pointer = ur_result_t::ERROR_INVALID_NULL_POINTER;
    let none = ur_context_handle_t::NULL;
    unsafe {
        let get = table.get_mem_handle_exp.unwrap();
        assert_eq!(get(none, at, &mut data, &mut size), handle);
        assert_eq!(get(context, null_mut(), &mut data, &mut size), pointer);
        assert_eq!(get(context, at, null_mut(), &mut size), pointer, "no size-only query");
        assert_eq!(get(context, at, &mut data, null_mut()), pointer);
        let put = table.put_mem_handle_exp.unwrap();
        assert_eq!(put(none, at), handle);
        assert_eq!(put(context, null_mut()), pointer);
        let (open, mut to) = (table.open_mem_handle_exp.unwrap(), null_mut());
        let no_device = ur_device_handle_t::NULL;
        assert_eq!(open(none, device(), at, 1, &mut to), handle);
        assert_eq!(open(context, no_device, at, 1, &mut to), handle);
        assert_eq!(open(context, device(), null_mut(), 1, &mut to), pointer);
        assert_eq!(open(context, device(), at, 1, null_mut()), pointer);
        let close = table.close_mem_handle_exp.unwrap();
        assert_eq!(close(none, at), handle);
        assert_eq!(close(context, null_mut()), pointer);
    }
    free(context, at.cast()).unwrap();
}
#[test]
fn damaged_bytes_are_refused() {
    let context = context();
    let at = alloc(context, 100);
    let handle = get(context, at).unwrap();
    let sound = handle.copy();
    for length in [0, 1, sound.len() - 1] {
        assert_eq!(open(context, &sound[..length]), Err(INVALID));
    }
    assert_eq!(open(context, &[sound.clone(), vec![0]].concat()), Err(INVALID));
    for byte in 0..sound.len() {
        let mut damaged = sound.clone();
        damaged[byte] ^= 1 << (byte % 8);
        assert_eq!(open(context, &damaged), Err(INVALID), "byte {byte}");
    }
    assert_eq!(open(context, &vec![0; sound.len()]), Err(INVALID));
    assert_eq!(open(context, &sound), Ok(at));
    close(context, at).unwrap();
    put(context, handle.0).unwrap();
    free(context, at).unwrap();
}
#[test]
fn putting_a_copy_or_another_kind_is_an_error() {
    let context = context();
    let at = alloc(context, 100);
    let handle = get(context, at).unwrap();
    let mut copy = handle.copy();
    assert_eq!(put(context, copy.as_mut_ptr().cast()), Err(INVALID));
    let put_other = TABLE.ipc_exp.put_phys_mem_handle_exp.unwrap();
    assert_eq!(unsafe { put_other(context, handle.0) }, INVALID);
    let put_event = TABLE.ipc_exp.put_event_handle_exp.unwrap();
    assert_eq!(unsafe { put_event(context, handle.0) }, INVALID);
    put(context, handle.0).unwrap();
    free(context, at).unwrap();
}
#[test]
fn blocks_of_a_pool_are_shared_as_themselves() {
    let context = context();
    let mut pool = ur_usm_pool_handle_t::NULL;
    let stype = ur_structure_type_t::USM_POOL_DESC;
    let mut desc = ur_usm_pool_desc_t { stype, pNext: null(), flags: Default::default() };
    let create = TABLE.usm.pool_create.unwrap();
    assert_eq!(unsafe { create(context, &mut desc, &mut pool) }, OK);
    let blocks: Vec<_> = (0..4)
        .map(|_| try_alloc(Usm::Device, context, null(), pool, 500).unwrap().cast::<u8>())
        .collect();
    for &at in &blocks {
        let handle = get(context, at.wrapping_add(3)).unwrap();
        assert_eq!(open(context, &handle.copy()), Ok(at.wrapping_add(3)));
        close(context, at.wrapping_add(3)).unwrap();
        put(context, handle.0).unwrap();
    }
    blocks.into_iter().for_each(|at| free(context, at).unwrap());
    assert_eq!(unsafe { TABLE.usm.pool_release.unwrap()(pool) }, OK);
}

const SHAREABLE: ur_physical_mem_flags_t = ur_physical_mem_flags_t::ENABLE_IPC;
fn get_physical(context: ur_context_handle_t, memory: ur_physical_mem_handle_t) -> Code<Handle> {
    let mut handle = Handle(null_mut(), 0);
    let get = TABLE.ipc_exp.get_phys_mem_handle_exp.unwrap();
    code(unsafe { get(context, memory, &mut handle.0, &mut handle.1) })?;
    Ok(handle)
}
fn put_physical(context: ur_context_handle_t, data: *const c_void) -> Code<()> {
    code(unsafe { TABLE.ipc_exp.put_phys_mem_handle_exp.unwrap()(context, data) })
}
fn open_physical(context: ur_context_handle_t, bytes: &[u8]) -> Code<ur_physical_mem_handle_t> {
    let mut memory = ur_physical_mem_handle_t::NULL;
    let open = TABLE.ipc_exp.open_phys_mem_handle_exp.unwrap();
    code(unsafe { open(context, device(), bytes.as_ptr().cast(), bytes.len(), &mut memory) })?;
    Ok(memory)
}
fn close_physical(context: ur_context_handle_t, memory: ur_physical_mem_handle_t) -> Code<()> {
    code(unsafe { TABLE.ipc_exp.close_phys_mem_handle_exp.unwrap()(context, memory) })
}

#[test]
fn each_open_of_physical_memory_is_a_new_object_over_the_same_bytes() {
    let context = context();
    let memory = physical(context, 2 * PAGE, SHAREABLE).unwrap();
    let handle = get_physical(context, memory).unwrap();
    let one = open_physical(context, &handle.copy()).unwrap();
    let two = open_physical(context, &handle.copy()).unwrap();
    assert!(one != two && one != memory && two != memory);
    let at = reserve(context, 4 * PAGE).unwrap();
    let rw = ur_virtual_mem_access_flags_t::READ_WRITE;
    map(context, at, 2 * PAGE, memory, 0, rw).unwrap();
    map(context, at.wrapping_add(2 * PAGE), 2 * PAGE, one, 0, rw).unwrap();
    unsafe { at.add(PAGE).write(42) };
    assert_eq!(unsafe { at.add(3 * PAGE).read() }, 42);
    let again = get_physical(context, one).unwrap();
    let three = open_physical(context, &again.copy()).unwrap();
    put_physical(context, again.0).unwrap();
    put_physical(context, handle.0).unwrap();
    assert_eq!(close_physical(context, memory), Err(INVALID), "made here, not opened");
    for opened in [one, two, three] {
        close_physical(context, opened).unwrap();
        let closed = Err(ur_result_t::ERROR_INVALID_MEM_OBJECT);
        assert_eq!(close_physical(context, opened), closed);
    }
    release(memory);
    unmap(context, at, 4 * PAGE).unwrap();
    give_up(context, at, 4 * PAGE).unwrap();
}
#[test]
fn physical_memory_lives_while_any_handle_does() {
    let context = context();
    let memory = physical(context, PAGE, SHAREABLE).unwrap();
    let handle = get_physical(context, memory).unwrap();
    let opened = open_physical(context, &handle.copy()).unwrap();
    release(memory);
    let second = open_physical(context, &handle.copy()).unwrap();
    close_physical(context, opened).unwrap();
    close_physical(context, second).unwrap();
    assert_eq!(open_physical(context, &handle.copy()), Err(INVALID), "the last went");
    put_physical(context, handle.0).unwrap();
}
#[test]
fn physical_memory_without_the_flag_is_not_shared() {
    let context = context();
    let memory = physical(context, PAGE, Default::default()).unwrap();
    let refused = Err(ur_result_t::ERROR_INVALID_ARGUMENT);
    assert_eq!(get_physical(context, memory), refused);
    release(memory);
}
#[test]
fn handles_of_one_kind_do_not_open_as_another() {
    let context = context();
    let (at, memory) = (alloc(context, 100), physical(context, PAGE, SHAREABLE).unwrap());
    let (one, two) = (get(context, at).unwrap(), get_physical(context, memory).unwrap());
    assert_eq!(one.1, two.1);
    assert_eq!(open(context, &two.copy()), Err(INVALID));
    assert_eq!(open_physical(context, &one.copy()), Err(INVALID));
    put(context, one.0).unwrap();
    put_physical(context, two.0).unwrap();
    free(context, at).unwrap();
    release(memory);
}
