//! Entries of the mock whose result depends on their arguments.
#![expect(unsafe_code, reason = "answers a query whose buffer C describes by its name alone")]
use super::{memory, objects::*};
use std::ffi::c_void;
use ur_adapter::default_answers::{Query, Shape, withdraw};
use ur_adapter::{
    callback::EventCallback,
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::{HostBytes, UsmPtr},
    object::{Borrowed, Owned},
    shim::BarrierEvent,
};
use ur_sys::*;

type Events<'call> = &'call [Borrowed<'call, Event>];

pub fn adapter_get() -> Result<Vec<Owned<Adapter>>> {
    Ok(vec![the_adapter()])
}
pub fn platform_get(_adapter: Borrowed<'_, Adapter>) -> Result<Vec<Owned<Platform>>> {
    Ok(vec![the_platform()])
}
pub fn device_get(_: Borrowed<'_, Platform>, kind: ur_device_type_t) -> Result<Vec<Owned<Device>>> {
    Ok(match kind {
        ur_device_type_t::ALL | ur_device_type_t::DEFAULT | ur_device_type_t::GPU => {
            vec![the_device()]
        }
        _ => vec![],
    })
}
/// Selects the first binary.
pub fn device_select_binary(_: Borrowed<'_, Device>, _: &[ur_device_binary_t]) -> Result<u32> {
    Ok(0)
}

fn stranger(what: &'static str) -> Error {
    Error::new(ErrorCode::InvalidValue, format!("no {what} of this adapter has this native handle"))
}
pub fn platform_create_with_native_handle(
    native: ur_native_handle_t,
    _adapter: Borrowed<'_, Adapter>,
    _properties: Option<&ur_platform_native_properties_t>,
) -> Result<Owned<Platform>> {
    let one = the_platform();
    if native == one.address() { Ok(one) } else { Err(stranger("platform")) }
}
pub fn device_create_with_native_handle(
    native: ur_native_handle_t,
    _adapter: Borrowed<'_, Adapter>,
    _properties: Option<&ur_device_native_properties_t>,
) -> Result<Owned<Device>> {
    let one = the_device();
    if native == one.address() { Ok(one) } else { Err(stranger("device")) }
}

pub fn queue_get_info(
    queue: Borrowed<'_, Queue>,
    name: ur_queue_info_t,
    answer: &mut Answer<'_>,
) -> Result<()> {
    if name == ur_queue_info_t::SIZE {
        let why = "only queues on a device have a size, and this one is on the host";
        return Err(Error::new(ErrorCode::InvalidQueue, why));
    }
    queue.answer(name, answer)
}

/// Calls the callback at once, because every event is complete from the start.
pub fn event_set_callback(
    event: Borrowed<'_, Event>,
    status: ur_execution_info_t,
    notify: EventCallback,
) -> Result<()> {
    let kept = event.own()?;
    notify.call(&kept, status);
    Ok(())
}
pub fn enqueue_events_wait_with_barrier_ext(
    queue: Borrowed<'_, Queue>,
    _properties: Option<&ur_exp_enqueue_ext_properties_t>,
    _wait_list: Events<'_>,
    event: BarrierEvent<'_, Event>,
) -> Result<Option<Owned<Event>>> {
    Ok(match event {
        BarrierEvent::Make => {
            let mut story = Story::default();
            story.note("COMMAND_TYPE", ur_command_t::EVENTS_WAIT_WITH_BARRIER.0);
            story.of(&queue);
            Some(story.make())
        }
        BarrierEvent::None | BarrierEvent::Signal(_) => None,
    })
}
fn event_of(queue: Borrowed<'_, Queue>, command: ur_command_t, want: bool) -> Option<Owned<Event>> {
    let mut story = Story::default();
    story.note("COMMAND_TYPE", command.0);
    story.of(&queue);
    want.then(|| story.make())
}
pub fn enqueue_mem_unmap(
    queue: Borrowed<'_, Queue>,
    _mem: Borrowed<'_, Mem>,
    mapped: UsmPtr,
    _wait_list: Events<'_>,
    want_event: bool,
) -> Result<Option<Owned<Event>>> {
    freed(mapped)?;
    Ok(event_of(queue, ur_command_t::MEM_UNMAP, want_event))
}
pub fn enqueue_usm_free_exp(
    queue: Borrowed<'_, Queue>,
    _pool: Option<Borrowed<'_, UsmPool>>,
    mem: UsmPtr,
    _wait_list: Events<'_>,
    want_event: bool,
) -> Result<Option<Owned<Event>>> {
    freed(mem)?;
    Ok(event_of(queue, ur_command_t::ENQUEUE_USM_FREE_EXP, want_event))
}

fn freed(start: UsmPtr) -> Result<()> {
    if memory::free(start) {
        return Ok(());
    }
    let why = format!("no allocation of this adapter starts at {start:?}");
    Err(Error::new(ErrorCode::InvalidMemObject, why))
}
pub fn usm_free(_context: Borrowed<'_, Context>, mem: UsmPtr) -> Result<()> {
    freed(mem)
}
pub fn virtual_mem_free(_: Borrowed<'_, Context>, start: UsmPtr, _size: usize) -> Result<()> {
    freed(start)
}
pub fn usm_get_mem_alloc_info(
    context: Borrowed<'_, Context>,
    mem: UsmPtr,
    name: ur_usm_alloc_info_t,
    answer: &mut Answer<'_>,
) -> Result<()> {
    match (name, memory::of(mem)) {
        (ur_usm_alloc_info_t::TYPE, Some(block)) => answer.value(&block.usm.0),
        (ur_usm_alloc_info_t::TYPE, None) => answer.value(&ur_usm_type_t::UNKNOWN.0),
        (ur_usm_alloc_info_t::BASE_PTR, Some(block)) => answer.value(&block.start.as_ptr()),
        (ur_usm_alloc_info_t::SIZE, Some(block)) => answer.value(&block.size()),
        (other, _) => context.answer(other, answer),
    }
}

/// Returns a block that holds the address of the shared memory.
pub fn ipc_get_mem_handle_exp(_: Borrowed<'_, Context>, mem: UsmPtr) -> Result<(UsmPtr, usize)> {
    let size = size_of::<usize>();
    let handle = memory::block(size, ur_usm_type_t::UNKNOWN)?;
    // SAFETY: the block has this size and is aligned to a page.
    unsafe { handle.as_ptr().cast::<usize>().write(mem.addr()) };
    Ok((handle, size))
}
fn put(handle: UsmPtr) -> Result<()> {
    freed(handle).map_err(|e| e.with_code(ErrorCode::InvalidValue))
}
pub fn ipc_put_mem_handle_exp(_context: Borrowed<'_, Context>, handle: UsmPtr) -> Result<()> {
    put(handle)
}
pub fn ipc_put_phys_mem_handle_exp(_: Borrowed<'_, Context>, handle: UsmPtr) -> Result<()> {
    put(handle)
}
pub fn ipc_put_event_handle_exp(_: Borrowed<'_, Context>, handle: UsmPtr) -> Result<()> {
    put(handle)
}
/// Returns the address that the handle holds. A handle of another process is not detected.
pub fn ipc_open_mem_handle_exp(
    _context: Borrowed<'_, Context>,
    _device: Borrowed<'_, Device>,
    handle: HostBytes<'_>,
) -> Result<UsmPtr> {
    let address = handle.exactly().map(usize::from_ne_bytes).and_then(UsmPtr::from_addr);
    address
        .ok_or_else(|| Error::new(ErrorCode::InvalidValue, "the bytes are no handle of the mock"))
}

/// Writes an answer of zeroes if `value` is not null; returns its size.
fn zeroes(name: impl Query, value: *mut c_void) -> usize {
    let size = match name.shape() {
        Some(Shape::Number(size) | Shape::Zeroes(size)) => size,
        Some(Shape::Flags(_) | Shape::Enumerator(_)) => size_of::<u32>(),
        Some(Shape::Truth) => size_of::<ur_bool_t>(),
        Some(Shape::Handle(_)) => size_of::<*mut c_void>(),
        Some(Shape::Text | Shape::List | Shape::Handles(_)) | None => 0,
    };
    if !value.is_null() {
        // SAFETY: the C caller promises space for an answer to this query.
        unsafe { value.cast::<u8>().write_bytes(0, size) };
    }
    size
}
pub fn bindless_images_image_get_info_exp(
    _context: Borrowed<'_, Context>,
    _image: ur_exp_image_mem_native_handle_t,
    name: ur_image_info_t,
    value: *mut c_void,
) -> Result<usize> {
    Ok(zeroes(name, value))
}
pub fn usm_pool_get_info_exp(
    _pool: Borrowed<'_, UsmPool>,
    name: ur_usm_pool_info_t,
    value: *mut c_void,
) -> Result<usize> {
    Ok(zeroes(name, value))
}

pub fn graph_destroy_exp(graph: Borrowed<'_, ExpGraph>) -> Result<()> {
    withdraw(graph)
}
pub fn graph_executable_graph_destroy_exp(graph: Borrowed<'_, ExpExecutableGraph>) -> Result<()> {
    withdraw(graph)
}
