//! The driver's handles of memory for other processes. There are two kinds, and which one a driver
//! gives shows in the bytes: the number of a descriptor (a dma-buf) that the receiver has to have a
//! descriptor of its own for, or something opaque that the driver itself knows what to do with.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::Device,
        driver::{RawContext, driver},
    },
    context::NativeContext,
    memory::{self, Piece, pointer, release},
    physical_memory::put_back,
};
use rustix::io::fcntl_dupfd_cloexec;
use std::{
    os::fd::{AsRawFd, BorrowedFd, OwnedFd},
    ptr,
    sync::Arc,
};
use ur_adapter::error::{Error, ErrorCode, Result};
use ze_sys::*;

/// The bytes of a driver's handle.
pub type IpcBytes = [u8; 64];

/// How another process opens memory.
#[derive(Debug)]
pub struct Handle {
    /// What the driver said, with whatever number of a descriptor is in it.
    pub bytes: IpcBytes,
    /// What that number is here; `None` for an opaque handle.
    pub fd: Option<Arc<OwnedFd>>,
    /// An opaque handle is good as long as it is not given back.
    _lent: Option<Lent>,
}
/// A handle that the driver is to have back.
#[derive(Debug)]
struct Lent {
    context: Arc<NativeContext>,
    bytes: IpcBytes,
}
impl Drop for Lent {
    fn drop(&mut self) {
        let handle = as_ze(self.bytes);
        // SAFETY: the driver gave it, and it is given back once.
        release(|| unsafe { driver().mem_put_ipc_handle(self.context.raw(), handle) });
    }
}
fn as_ze(bytes: IpcBytes) -> ze_ipc_mem_handle_t {
    let mut handle = ze_ipc_mem_handle_t::default();
    for (to, from) in handle.data.iter_mut().zip(bytes) {
        *to = from.cast_signed();
    }
    handle
}
fn bytes_of(handle: &ze_ipc_mem_handle_t) -> IpcBytes {
    handle.data.map(i8::cast_unsigned)
}
/// The descriptor that a handle begins with, if that is what it is. Older drivers cannot be asked, and
/// have no other handles: there the number must be a descriptor of ours.
fn number_in(context: RawContext, bytes: &IpcBytes) -> Option<i32> {
    let first = i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let (mut said, handle) = (0_u64, as_ze(*bytes));
    // SAFETY: the handle is one of the driver's, `said` is writable.
    let outcome = unsafe {
        driver().mem_get_file_descriptor_from_ipc_handle_exp(context, handle, &raw mut said)
    };
    let is_it = match outcome.status() {
        Some(ZE_RESULT_SUCCESS) => u64::try_from(first) == Ok(said),
        None => true,
        Some(_) => false,
    };
    (is_it && first >= 0).then_some(first)
}
/// Another descriptor of what the driver's is of; 0 to 2 are never used, they mean something to others.
///
/// # Errors
/// `OUT_OF_RESOURCES` without descriptors; `None` where the number is no descriptor.
pub(super) fn duplicate(number: i32) -> Result<Option<OwnedFd>> {
    // SAFETY: whether it is open is what the call finds out; it is not kept.
    let theirs = unsafe { BorrowedFd::borrow_raw(number) };
    match fcntl_dupfd_cloexec(theirs, 3) {
        Ok(fd) => Ok(Some(fd)),
        Err(rustix::io::Errno::BADF) => Ok(None),
        Err(errno) => Err(Error::new(
            ErrorCode::OutOfResources,
            format!("a descriptor of memory could not be duplicated: {errno}"),
        )),
    }
}
impl Handle {
    /// The handle of what was allocated at `at` in `context`.
    ///
    /// # Errors
    /// The driver's own; `OUT_OF_RESOURCES` without descriptors.
    pub fn of(context: &Arc<NativeContext>, at: u64) -> Result<Self> {
        let mut handle = ze_ipc_mem_handle_t::default();
        let raw = context.raw();
        // SAFETY: the memory is there, `handle` is writable.
        unsafe { driver().mem_get_ipc_handle(raw, pointer(at), &raw mut handle) }.ok()?;
        let bytes = bytes_of(&handle);
        let lent = Lent { context: Arc::clone(context), bytes };
        let fd = match number_in(raw, &bytes) {
            Some(number) => duplicate(number)?.map(Arc::new),
            None => None,
        };
        // A descriptor of ours keeps what the driver's is of, which can go back then.
        let _lent = fd.is_none().then_some(lent);
        Ok(Self { bytes, fd, _lent })
    }
}

/// Another descriptor of memory that was allocated to be exported so: `ZE_EXTERNAL_MEMORY_TYPE_FLAG_*`.
///
/// # Errors
/// The driver's own; `OUT_OF_RESOURCES` without descriptors.
pub fn exported(piece: &Piece, flag: u32) -> Result<OwnedFd> {
    let number = memory::exported(piece.context().raw(), piece.at(), flag)?;
    let none = || Error::new(ErrorCode::UnsupportedFeature, "the driver exported no descriptor");
    let fd = duplicate(number)?.ok_or_else(none)?;
    put_back(piece.context(), number);
    Ok(fd)
}

/// Another process's memory, opened by a driver's handle and closed on drop.
#[derive(Debug)]
pub struct OpenedHandle {
    at: u64,
    context: Arc<NativeContext>,
}
impl OpenedHandle {
    /// Opens it for `device`; `fd` is this process's for the descriptor that the exporter had.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what the driver refuses; its own where memory runs out.
    pub fn open(
        context: &Arc<NativeContext>,
        device: &Device,
        mut bytes: IpcBytes,
        fd: Option<&OwnedFd>,
    ) -> Result<Self> {
        if let Some(fd) = fd {
            bytes[..4].copy_from_slice(&fd.as_raw_fd().to_le_bytes());
        }
        let (raw, mut at) = (context.raw(), ptr::null_mut());
        let (handle, to) = (as_ze(bytes), &raw mut at);
        // SAFETY: the driver judges the handle; `to` is writable.
        unsafe { driver().mem_open_ipc_handle(raw, device.raw(), handle, 0, to) }
            .ok()
            .map_err(foreign)?;
        Ok(Self { at: at.expose_provenance() as u64, context: Arc::clone(context) })
    }
    /// Its first byte.
    pub fn at(&self) -> u64 {
        self.at
    }
    /// Where it is open.
    pub fn context(&self) -> &Arc<NativeContext> {
        &self.context
    }
}
impl Drop for OpenedHandle {
    fn drop(&mut self) {
        // SAFETY: opened here, and no command uses it any more: the owner's promise.
        release(|| unsafe { driver().mem_close_ipc_handle(self.context.raw(), pointer(self.at)) });
    }
}
/// What another process sent and the driver refuses is that process's fault, unless memory ran out, or
/// the driver has no such function at all.
pub(in super::super) fn foreign(error: Error) -> Error {
    match error.code() {
        ErrorCode::OutOfDeviceMemory
        | ErrorCode::OutOfHostMemory
        | ErrorCode::OutOfResources
        | ErrorCode::DeviceLost
        | ErrorCode::Uninitialized => error,
        _ if error.native_status().is_none() => error,
        _ => Error::new(
            ErrorCode::InvalidValue,
            format!("the driver refuses what the exporter sent: {error}"),
        ),
    }
}
