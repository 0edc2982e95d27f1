//! The driver alone, as the yardstick. Failures end the benchmark.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    reason = "calls the driver as any C program does"
)]
use causeway_benches::Result;
use std::{
    ffi::{CStr, c_void},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    ptr::null_mut,
    sync::atomic::AtomicU64,
};
use ur_cuda::driver::{
    Cuda, Dialect, RawContext, RawEvent, RawFunction, RawModule, RawStream,
    layout::{AccessDesc, AllocationProp, Location, PoolProps},
};

/// Calls a function of the driver's table.
macro_rules! cu {
    ($name:ident($($argument:expr),*)) => {{
        let outcome = unsafe { Cuda::driver().$name($($argument),*) };
        match outcome.status() {
            Some(0) => Ok(()),
            status => Err(format!("{}: {status:?}", stringify!($name))),
        }
    }};
}

/// Makes the primary context of the first device current on this thread.
pub fn start() -> Result<RawContext> {
    let (mut device, mut context) = (0, None);
    cu!(init(0))?;
    cu!(device_get(&raw mut device, 0))?;
    cu!(primary_retain(&raw mut context, device))?;
    let context = context.ok_or("no context")?;
    cu!(context_push(context))?;
    Ok(context)
}
pub fn stream() -> Result<RawStream> {
    let mut stream = None;
    cu!(stream_create(&raw mut stream, 1, 0))?;
    Ok(stream.ok_or("no stream")?)
}
pub fn event() -> Result<RawEvent> {
    let mut event = None;
    cu!(event_create(&raw mut event, 2))?;
    Ok(event.ok_or("no event")?)
}
pub fn record(event: RawEvent, stream: RawStream) -> Result<()> {
    Ok(cu!(event_record(event, Some(stream)))?)
}
pub fn synchronize(stream: RawStream) -> Result<()> {
    Ok(cu!(stream_synchronize(Some(stream)))?)
}
pub fn alloc(bytes: usize) -> Result<u64> {
    let mut at = 0;
    cu!(alloc(&raw mut at, bytes))?;
    Ok(at)
}
pub fn free(at: u64) -> Result<()> {
    Ok(cu!(free(at))?)
}
pub fn copy(to: u64, from: u64, bytes: usize, stream: RawStream) -> Result<()> {
    Ok(cu!(copy(to, from, bytes, Some(stream)))?)
}
pub fn function(ptx: &CStr, name: &CStr) -> Result<RawFunction> {
    let (mut module, mut function): (Option<RawModule>, _) = (None, None);
    cu!(module_load(&raw mut module, ptx.as_ptr().cast(), 0, null_mut(), null_mut()))?;
    cu!(module_function(&raw mut function, module.ok_or("no module")?, name.as_ptr()))?;
    Ok(function.ok_or("no function")?)
}
/// Launches one block of one thread, with one argument.
pub fn launch(function: RawFunction, argument: &mut u64, stream: RawStream) -> Result<()> {
    let mut arguments = [std::ptr::from_mut(argument).cast::<c_void>()];
    Ok(cu!(launch(
        function,
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        Some(stream),
        arguments.as_mut_ptr(),
        null_mut()
    ))?)
}
fn device() -> Location {
    Location { kind: 1, id: 0 }
}
fn properties() -> AllocationProp {
    AllocationProp { handle_types: 1, location: device(), ..AllocationProp::default() }
}
/// Allocates physical memory of the first device; returns it with its descriptor.
pub fn physical(bytes: usize) -> Result<(u64, OwnedFd)> {
    let (mut memory, mut fd, properties) = (0, -1_i32, properties());
    cu!(physical_create(&raw mut memory, bytes, &raw const properties, 0))?;
    cu!(physical_export((&raw mut fd).cast(), memory, 1, 0))?;
    Ok((memory, unsafe { OwnedFd::from_raw_fd(fd) }))
}
pub fn release(memory: u64) -> Result<()> {
    Ok(cu!(physical_release(memory))?)
}
/// Imports a descriptor, reserves addresses, maps the memory and sets the access.
pub fn open(fd: &OwnedFd, bytes: usize) -> Result<(u64, u64)> {
    let (mut memory, mut at) = (0, 0);
    let handle = std::ptr::without_provenance_mut(fd.as_raw_fd() as usize);
    cu!(physical_import(&raw mut memory, handle, 1))?;
    cu!(address_reserve(&raw mut at, bytes, 0, 0, 0))?;
    cu!(physical_map(at, bytes, 0, memory, 0))?;
    let access = AccessDesc { location: device(), flags: 3 };
    cu!(set_access(at, bytes, &raw const access, 1))?;
    Ok((memory, at))
}
pub fn close((memory, at): (u64, u64), bytes: usize) -> Result<()> {
    cu!(physical_unmap(at, bytes))?;
    cu!(address_free(at, bytes))?;
    release(memory)
}
/// Returns the driver's legacy IPC handle of memory from `alloc`.
pub fn handle(at: u64) -> Result<[u8; 64]> {
    let mut bytes = [0; 64];
    cu!(ipc_get_memory(&raw mut bytes, at))?;
    Ok(bytes)
}
/// Allocates memory from an exportable pool. It is never freed.
pub fn pooled(bytes: usize) -> Result<u64> {
    let properties = PoolProps { handle_types: 1, location: device(), ..PoolProps::default() };
    let (mut pool, mut at) = (None, 0);
    cu!(pool_create(&raw mut pool, &raw const properties))?;
    cu!(pool_alloc(&raw mut at, bytes, pool.ok_or("no pool")?, None))?;
    cu!(stream_synchronize(None))?;
    Ok(at)
}
/// Allocates physical memory in pieces of `piece` bytes, mapped one behind the other to `bytes` in total, in
/// a larger reservation. It is never freed.
pub fn segment(bytes: usize, piece: usize) -> Result<u64> {
    let (mut at, properties) = (0, properties());
    let access = AccessDesc { location: device(), flags: 3 };
    cu!(address_reserve(&raw mut at, 4 * bytes.next_multiple_of(piece), 0, 0, 0))?;
    for offset in (0..bytes).step_by(piece) {
        let (mut memory, place) = (0, at + offset as u64);
        cu!(physical_create(&raw mut memory, piece, &raw const properties, 0))?;
        cu!(physical_map(place, piece, 0, memory, 0))?;
        cu!(set_access(place, piece, &raw const access, 1))?;
        release(memory)?;
    }
    Ok(at)
}
/// Registers words of host memory; returns their device address.
pub fn register(words: &[AtomicU64]) -> Result<u64> {
    let (at, mut to) = (words.as_ptr().cast::<c_void>().cast_mut(), 0);
    cu!(host_register(at, size_of_val(words), 3))?;
    cu!(host_pointer(&raw mut to, at, 0))?;
    Ok(to)
}
pub fn write(stream: RawStream, at: u64, value: u64) -> Result<()> {
    Ok(cu!(stream_write_value(Some(stream), at, value, 0))?)
}
pub fn wait(stream: RawStream, at: u64, value: u64) -> Result<()> {
    Ok(cu!(stream_wait_value(Some(stream), at, value, 0))?)
}
/// Whether there is a driver with a device.
pub fn is_there() -> bool {
    let mut count = 0;
    Cuda::driver().is_there()
        && cu!(init(0)).is_ok()
        && cu!(device_count(&raw mut count)).is_ok()
        && count > 0
}
/// Returns the names of the device and the driver.
pub fn names() -> Result<String> {
    let (mut name, mut version) = ([0; 256], 0);
    cu!(device_name(name.as_mut_ptr(), 256, 0))?;
    cu!(driver_version(&raw mut version))?;
    name[255] = 0;
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
    Ok(format!("{name}, CUDA {}.{}", version / 1000, version % 1000 / 10))
}
