//! Reserved addresses, and mappings of physical memory.
use super::*;
use ur_virtual_mem_access_flags_t as Access;

pub(super) fn physical(
    context: ur_context_handle_t,
    size: usize,
    flags: ur_physical_mem_flags_t,
) -> Code<ur_physical_mem_handle_t> {
    let stype = ur_structure_type_t::PHYSICAL_MEM_PROPERTIES;
    let properties = ur_physical_mem_properties_t { stype, pNext: null_mut(), flags };
    let mut memory = ur_physical_mem_handle_t::NULL;
    let create = TABLE.physical_mem.create.unwrap();
    code(unsafe { create(context, device(), size, &properties, &mut memory) })?;
    Ok(memory)
}
pub(super) fn release(memory: ur_physical_mem_handle_t) {
    assert_eq!(unsafe { TABLE.physical_mem.release.unwrap()(memory) }, OK);
}
pub(super) fn reserve(context: ur_context_handle_t, size: usize) -> Code<*mut u8> {
    let mut start = null_mut();
    let reserve = TABLE.virtual_mem.reserve.unwrap();
    code(unsafe { reserve(context, null(), size, &mut start) })?;
    Ok(start.cast())
}
pub(super) fn map(
    context: ur_context_handle_t,
    at: *mut u8,
    size: usize,
    memory: ur_physical_mem_handle_t,
    offset: usize,
    access: Access,
) -> Code<()> {
    let map = TABLE.virtual_mem.map.unwrap();
    code(unsafe { map(context, at.cast(), size, memory, offset, access) })
}
pub(super) fn unmap(context: ur_context_handle_t, at: *mut u8, size: usize) -> Code<()> {
    code(unsafe { TABLE.virtual_mem.unmap.unwrap()(context, at.cast(), size) })
}
pub(super) fn give_up(context: ur_context_handle_t, at: *mut u8, size: usize) -> Code<()> {
    code(unsafe { TABLE.virtual_mem.free.unwrap()(context, at.cast(), size) })
}
fn set(context: ur_context_handle_t, at: *mut u8, size: usize, access: Access) -> Code<()> {
    code(unsafe { TABLE.virtual_mem.set_access.unwrap()(context, at.cast(), size, access) })
}
fn access(context: ur_context_handle_t, at: *mut u8, size: usize) -> Code<Access> {
    let mut access = Access::default();
    let (get, name) = (TABLE.virtual_mem.get_info.unwrap(), ur_virtual_mem_info_t::ACCESS_MODE);
    let to = (&raw mut access).cast();
    code(unsafe { get(context, at.cast(), size, name, 4, to, null_mut()) })?;
    Ok(access)
}
const INVALID: Code<()> = Err(ur_result_t::ERROR_INVALID_VALUE);

#[test]
fn the_granularity_is_a_page() {
    use ur_virtual_mem_granularity_info_t as I;
    let (context, get) = (context(), TABLE.virtual_mem.granularity_get_info.unwrap());
    for name in [I::MINIMUM, I::RECOMMENDED] {
        for device in [ur_device_handle_t::NULL, device()] {
            let mut size = 0_usize;
            let to = (&raw mut size).cast();
            assert_eq!(unsafe { get(context, device, 1, name, 8, to, null_mut()) }, OK);
            assert_eq!(size, PAGE);
        }
    }
}
#[test]
fn two_mappings_of_one_memory_show_the_same_bytes() {
    let context = context();
    let memory = physical(context, 4 * PAGE, Default::default()).unwrap();
    let at = reserve(context, 16 * PAGE).unwrap();
    map(context, at, 4 * PAGE, memory, 0, Access::READ_WRITE).unwrap();
    let other = at.wrapping_add(8 * PAGE);
    map(context, other, PAGE, memory, 2 * PAGE, Access::READ_ONLY).unwrap();
    unsafe { at.add(2 * PAGE + 5).write(77) };
    assert_eq!(unsafe { other.add(5).read() }, 77);
    release(memory);
    assert_eq!(unsafe { other.add(5).read() }, 77, "mappings keep the memory");
    assert_eq!(give_up(context, at, 16 * PAGE), INVALID, "still mapped");
    unmap(context, at, 4 * PAGE).unwrap();
    unmap(context, other, PAGE).unwrap();
    give_up(context, at, 16 * PAGE).unwrap();
}
#[test]
fn ranges_are_checked() {
    let context = context();
    let memory = physical(context, 4 * PAGE, Default::default()).unwrap();
    let at = reserve(context, 8 * PAGE).unwrap();
    let rw = Access::READ_WRITE;
    let behind = at.wrapping_add(6 * PAGE);
    assert_eq!(map(context, behind, 4 * PAGE, memory, 0, rw), INVALID, "beyond its end");
    assert_eq!(map(context, at.wrapping_sub(PAGE), PAGE, memory, 0, rw), INVALID);
    assert_eq!(map(context, at, 5 * PAGE, memory, 0, rw), INVALID, "more than there is");
    assert_eq!(map(context, at, 2 * PAGE, memory, 3 * PAGE, rw), INVALID);
    assert_eq!(map(context, at, PAGE, memory, 100, rw), INVALID);
    assert_eq!(map(context, at, PAGE, memory, usize::MAX - PAGE + 1, rw), INVALID);
    assert_eq!(map(context, at.wrapping_add(8), PAGE, memory, 0, rw), INVALID);
    let size = Err(ur_result_t::ERROR_INVALID_SIZE);
    assert_eq!(map(context, at, 100, memory, 0, rw), size);
    assert_eq!(map(context, at, PAGE, memory, 0, Access::NONE | rw), INVALID);
    map(context, at, 2 * PAGE, memory, 0, rw).unwrap();
    assert_eq!(map(context, at.wrapping_add(PAGE), PAGE, memory, 0, rw), INVALID, "taken");
    assert_eq!(unmap(context, at, 3 * PAGE), INVALID, "not all of it is mapped");
    assert_eq!(give_up(context, at, PAGE), INVALID, "only a part");
    unmap(context, at, 2 * PAGE).unwrap();
    assert_eq!(unmap(context, at, 2 * PAGE), INVALID, "nothing is mapped any more");
    give_up(context, at, 8 * PAGE).unwrap();
    assert_eq!(give_up(context, at, 8 * PAGE), INVALID);
    assert_eq!(reserve(context, 100), Err(ur_result_t::ERROR_INVALID_SIZE));
    release(memory);
}
#[test]
fn other_contexts_are_kept_out() {
    let (ours, others) = (context(), context());
    let memory = physical(ours, PAGE, Default::default()).unwrap();
    let (at, theirs) = (reserve(ours, PAGE).unwrap(), reserve(others, PAGE).unwrap());
    let refused = Err(ur_result_t::ERROR_INVALID_CONTEXT);
    assert_eq!(map(others, theirs, PAGE, memory, 0, Access::READ_WRITE), refused);
    assert_eq!(give_up(others, at, PAGE), INVALID);
    give_up(ours, at, PAGE).unwrap();
    give_up(others, theirs, PAGE).unwrap();
    release(memory);
}
#[test]
fn access_can_be_changed_in_parts() {
    let context = context();
    let memory = physical(context, 4 * PAGE, Default::default()).unwrap();
    let at = reserve(context, 4 * PAGE).unwrap();
    assert_eq!(access(context, at, PAGE), Err(ur_result_t::ERROR_INVALID_VALUE), "not mapped");
    map(context, at, 4 * PAGE, memory, 0, Access::READ_WRITE).unwrap();
    assert_eq!(access(context, at, 4 * PAGE), Ok(Access::READ_WRITE));
    let middle = at.wrapping_add(PAGE);
    set(context, middle, 2 * PAGE, Access::READ_ONLY).unwrap();
    assert_eq!(access(context, middle, 2 * PAGE), Ok(Access::READ_ONLY));
    assert_eq!(access(context, at, PAGE), Ok(Access::READ_WRITE));
    assert_eq!(access(context, at, 4 * PAGE), Err(ur_result_t::ERROR_INVALID_VALUE), "mixed");
    unsafe { at.add(3 * PAGE).write(1) };
    unmap(context, at, 2 * PAGE).unwrap();
    assert_eq!(access(context, at.wrapping_add(2 * PAGE), PAGE), Ok(Access::READ_ONLY));
    set(context, at.wrapping_add(2 * PAGE), 2 * PAGE, Access::READ_WRITE).unwrap();
    assert_eq!(unsafe { at.add(3 * PAGE).read() }, 1);
    unmap(context, at.wrapping_add(2 * PAGE), 2 * PAGE).unwrap();
    give_up(context, at, 4 * PAGE).unwrap();
    release(memory);
}
#[test]
fn copies_and_fills_where_nothing_is_mapped_are_refused() {
    let (context, mut queue) = (context(), ur_queue_handle_t::NULL);
    let create = TABLE.queue.create.unwrap();
    assert_eq!(unsafe { create(context, device(), null(), &mut queue) }, OK);
    let memory = physical(context, PAGE, Default::default()).unwrap();
    let base = reserve(context, 3 * PAGE).unwrap();
    let middle = base.wrapping_add(PAGE);
    map(context, middle, PAGE, memory, 0, Access::READ_WRITE).unwrap();
    let mut bytes = [7_u8; 64];
    let (here, none) = (bytes.as_mut_ptr(), null_mut());
    let copy = |to: *mut u8, from: *const u8| {
        let copy = TABLE.enqueue.usm_memcpy.unwrap();
        let queued = unsafe { copy(queue, true, to.cast(), from.cast(), 64, 0, null(), none) };
        let copy = TABLE.usm_exp.context_memcpy_exp.unwrap();
        assert_eq!(unsafe { copy(context, to.cast(), from.cast(), 64) }, queued);
        code(queued)
    };
    let fill = |at: *mut u8| {
        let fill = TABLE.enqueue.usm_fill.unwrap();
        code(unsafe { fill(queue, at.cast(), 1, here.cast(), 64, 0, null(), none) })
    };
    for at in [base, middle.wrapping_sub(32), middle.wrapping_add(PAGE - 32)] {
        assert_eq!([copy(at, here), copy(here, at), copy(at, at), fill(at)], [INVALID; 4]);
    }
    let last = middle.wrapping_add(PAGE - 64);
    assert_eq!([copy(last, here), copy(here, last), fill(last)], [Ok(()); 3]);
    assert_eq!(unsafe { TABLE.queue.finish.unwrap()(queue) }, OK);
    set(context, middle, PAGE, Access::NONE).unwrap();
    assert_eq!([copy(last, here), copy(here, last), fill(last)], [INVALID; 3]);
    assert_eq!(unsafe { TABLE.queue.release.unwrap()(queue) }, OK);
    unmap(context, middle, PAGE).unwrap();
    give_up(context, base, 3 * PAGE).unwrap();
    release(memory);
}
#[test]
fn physical_memory_answers_what_it_is() {
    use ur_physical_mem_info_t as I;
    let context = context();
    let size = Err(ur_result_t::ERROR_INVALID_SIZE);
    assert_eq!(physical(context, 100, Default::default()), size);
    assert_eq!(physical(context, 0, Default::default()), size);
    let flags = ur_physical_mem_flags_t::ENABLE_IPC;
    let memory = physical(context, 8 * PAGE, flags).unwrap();
    let get = TABLE.physical_mem.get_info.unwrap();
    let number = |name| {
        let mut value = 0_usize;
        let to = (&raw mut value).cast();
        assert_eq!(unsafe { get(memory, name, 8, to, null_mut()) }, OK);
        value
    };
    assert_eq!(number(I::CONTEXT), context.0.addr());
    assert_eq!(number(I::DEVICE), device().0.addr());
    assert_eq!(number(I::SIZE), 8 * PAGE);
    assert_eq!(number(I::REFERENCE_COUNT), 1);
    let mut properties = unsafe { std::mem::zeroed::<ur_physical_mem_properties_t>() };
    let bytes = size_of_val(&properties);
    let to = (&raw mut properties).cast();
    assert_eq!(unsafe { get(memory, I::PROPERTIES, bytes, to, null_mut()) }, OK);
    assert_eq!(properties.stype, ur_structure_type_t::PHYSICAL_MEM_PROPERTIES);
    assert!(properties.pNext.is_null());
    assert_eq!(properties.flags, flags);
    release(memory);
}
