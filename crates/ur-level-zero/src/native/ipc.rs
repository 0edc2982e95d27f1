//! The driver's handles of memory for other processes. There are two kinds, and which one a driver
//! gives shows in the bytes: the number of a descriptor (a dma-buf) that the receiver has to have a
//! descriptor of its own for, or something opaque that the driver itself knows what to do with. An
//! opaque handle names its process by number, which says nothing in another pid namespace: where the
//! driver tells a descriptor of the memory, that goes to the other process, and the handle as it is only
//! serves drivers that do not.
//!
//! A descriptor of one allocation and nothing else is imported as external memory, which asks for no
//! handle. What a driver has cut from more is opened by the handle, which says where it begins.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::DriverDevice,
        driver::{RawContext, driver},
    },
    context::NativeContext,
    import_fd::{Keepers, was_kept},
    memory::{self, Piece, Sort, pointer, release},
    physical_memory::{DMA_BUF, put_back},
};
use rustix::io::fcntl_dupfd_cloexec;
use std::{
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    ptr,
    sync::Arc,
};
use ur_adapter::error::{Error, ErrorCode, Result};
use ze_sys::*;

/// The bytes of a driver's handle.
pub type IpcBytes = [u8; 64];

/// Whether other processes can be given memory of the device.
///
/// # Errors
/// Returns the driver's error.
pub fn is_supported(device: &DriverDevice) -> Result<bool> {
    let flags = super::driver::ipc(device.platform().raw())?;
    Ok(flags & ZE_IPC_PROPERTY_FLAG_MEMORY != 0)
}

/// How another process opens memory.
#[derive(Debug)]
pub struct Handle {
    /// What the driver said.
    pub bytes: IpcBytes,
    /// A descriptor of the memory, if the driver tells one.
    pub fd: Option<Arc<OwnedFd>>,
    /// Whether the bytes begin with the number of such a descriptor, and open by another's written there.
    pub is_number: bool,
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
/// The descriptor behind a handle, if the driver tells it, and whether the bytes begin with its number.
/// Older drivers cannot be asked, and have no other handles.
fn number_of(context: RawContext, bytes: &IpcBytes) -> (Option<i32>, bool) {
    let first = i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let (mut said, handle) = (0_u64, as_ze(*bytes));
    // SAFETY: the handle is one of the driver's, `said` is writable.
    let outcome = unsafe {
        driver().mem_get_file_descriptor_from_ipc_handle_exp(context, handle, &raw mut said)
    };
    match outcome.status() {
        Some(ZE_RESULT_SUCCESS) => {
            let number = i32::try_from(said).ok();
            (number, number == Some(first) && !asks_process(bytes))
        }
        None => (Some(first).filter(|&number| number >= 0), true),
        Some(_) => (None, false),
    }
}
/// Whether whoever opens such a handle takes the descriptor of that number out of this process, whatever was written in.
/// The opaque handles of Intel's driver before 26.14, on Xe2 and later, begin with the number too: what tells them is
/// this process's number, without the second copy of the descriptor's by which newer drivers see that it was changed.
fn asks_process(bytes: &IpcBytes) -> bool {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    word(PROCESS) == std::process::id() && word(COPY) != word(0)
}
/// Where opaque handles of Intel's driver have the number of their process, and a second one of the descriptor.
const PROCESS: usize = 16;
const COPY: usize = 22;
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
        Err(errno) => Err(not_duplicated(errno)),
    }
}
fn not_duplicated(errno: rustix::io::Errno) -> Error {
    let why = format!("a descriptor of memory could not be duplicated: {errno}");
    Error::new(ErrorCode::OutOfResources, why)
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
        let (number, is_number) = number_of(raw, &bytes);
        let fd = match number {
            Some(number) => duplicate(number)?.map(Arc::new),
            None => None,
        };
        let is_number = is_number && fd.is_some();
        // Of an opaque handle the descriptor says where only if it is of this memory alone: a driver may
        // have cut it from more, and the handle may say where.
        let fd = match fd {
            Some(fd) if is_number => Some(fd),
            Some(fd) => memory::known(context, at)?
                .is_some_and(|known| is_all(&fd, known.bytes as u64))
                .then_some(fd),
            None => None,
        };
        // A descriptor of ours keeps what the driver's is of, which can go back then.
        let _lent = (!is_number).then_some(lent);
        Ok(Self { bytes, fd, is_number, _lent })
    }
}

/// Whether a descriptor is of an allocation of `bytes` and of nothing else, but for what pages round up.
fn is_all(fd: &OwnedFd, bytes: u64) -> bool {
    let (small, large) = (64 << 10, 2 << 20);
    let page = if bytes < large { small } else { large };
    rustix::fs::seek(fd, rustix::fs::SeekFrom::End(0)).is_ok_and(|end| {
        bytes.checked_next_multiple_of(page).is_some_and(|most| (bytes..=most).contains(&end))
    })
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

/// Another process's memory, opened by a driver's handle or imported, and closed on drop.
#[derive(Debug)]
pub struct OpenedHandle {
    at: u64,
    context: Arc<NativeContext>,
    /// What it is, if it was imported.
    imported: Option<Piece>,
}
impl OpenedHandle {
    /// Imports it for `device`, `bytes` long by the exporter's word; `None` if the descriptor is of more than that, or
    /// the driver imports no such memory.
    ///
    /// # Errors
    /// Where memory or descriptors run out.
    pub fn import(
        context: &Arc<NativeContext>,
        device: &DriverDevice,
        fd: &OwnedFd,
        bytes: u64,
    ) -> Result<Option<Self>> {
        static KEEPERS: Keepers = Keepers::new(|device| {
            let context =
                Arc::new(NativeContext::create(device.platform().raw(), &[device.raw()])?);
            let (sort, bytes) = (Sort::Exportable(DMA_BUF), 64 << 10);
            let piece = Piece::new(&context, device, sort, bytes, 0)?;
            let ours = exported(&piece, DMA_BUF)?;
            was_kept(&ours, |number| Piece::imported(&context, device, (DMA_BUF, number), bytes))
        });
        let types = super::device::external(device.raw())?.memoryAllocationImportTypes;
        let Ok(bytes) = usize::try_from(bytes) else { return Ok(None) };
        if types & DMA_BUF == 0 || !is_all(fd, bytes as u64) {
            return Ok(None);
        }
        let import = |number| Piece::imported(context, device, (DMA_BUF, number), bytes);
        match KEEPERS.give(device, fd.as_fd(), import) {
            Ok(piece) => {
                let (at, context) = (piece.at(), Arc::clone(context));
                Ok(Some(Self { at, context, imported: Some(piece) }))
            }
            Err(error) if is_want(error.code()) => Err(error),
            Err(_) => Ok(None),
        }
    }
    /// Opens it for `device`, by a handle that begins with the number of a descriptor.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what the driver refuses; its own where memory runs out.
    pub fn by_number(
        context: &Arc<NativeContext>,
        device: &DriverDevice,
        mut bytes: IpcBytes,
        fd: &OwnedFd,
    ) -> Result<Self> {
        // A driver may take a number that is as it was for one that nobody wrote in, and look into the exporter.
        let number = fd.as_raw_fd();
        let other = match bytes[..4] == number.to_le_bytes() {
            true => Some(fcntl_dupfd_cloexec(fd, number + 1).map_err(not_duplicated)?),
            false => None,
        };
        let number = other.as_ref().unwrap_or(fd).as_raw_fd();
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        Self::open(context, device, as_ze(bytes))
    }
    /// The same by an opaque one: of the descriptor that came with it, if the driver makes handles of
    /// such; else as it is.
    ///
    /// # Errors
    /// As for `by_number`.
    pub fn opaque(
        context: &Arc<NativeContext>,
        device: &DriverDevice,
        bytes: IpcBytes,
        fd: Option<&OwnedFd>,
    ) -> Result<Self> {
        if let Some(fd) = fd {
            let (mut handle, raw) = (ze_ipc_mem_handle_t::default(), context.raw());
            let (number, to) = (fd.as_raw_fd() as u64, &raw mut handle); // which is not negative
            // SAFETY: the driver judges the descriptor; the handle is writable.
            let made =
                unsafe { driver().mem_get_ipc_handle_from_file_descriptor_exp(raw, number, to) };
            if made.status() == Some(ZE_RESULT_SUCCESS)
                && let Ok(opened) = Self::open(context, device, handle)
            {
                return Ok(opened);
            }
        }
        Self::open(context, device, as_ze(bytes))
    }
    fn open(
        context: &Arc<NativeContext>,
        device: &DriverDevice,
        handle: ze_ipc_mem_handle_t,
    ) -> Result<Self> {
        let (raw, mut at) = (context.raw(), ptr::null_mut());
        let to = &raw mut at;
        // SAFETY: the driver judges the handle; `to` is writable.
        unsafe { driver().mem_open_ipc_handle(raw, device.raw(), handle, 0, to) }
            .ok()
            .map_err(foreign)?;
        let (at, context) = (at.expose_provenance() as u64, Arc::clone(context));
        Ok(Self { at, context, imported: None })
    }
    /// Its first byte.
    pub fn at(&self) -> u64 {
        self.at
    }
}
impl Drop for OpenedHandle {
    fn drop(&mut self) {
        if self.imported.is_some() {
            return; // freed with that
        }
        // SAFETY: opened here, and no command uses it any more: the owner's promise.
        release(|| unsafe { driver().mem_close_ipc_handle(self.context.raw(), pointer(self.at)) });
    }
}
/// Whether something ran out, or is gone, that has nothing to do with what was asked for.
pub(super) fn is_want(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::OutOfDeviceMemory
            | ErrorCode::OutOfHostMemory
            | ErrorCode::OutOfResources
            | ErrorCode::DeviceLost
            | ErrorCode::Uninitialized
    )
}
/// What another process sent and the driver refuses is that process's fault, unless memory ran out, or
/// the driver has no such function at all.
pub(in super::super) fn foreign(error: Error) -> Error {
    match error.code() {
        code if is_want(code) => error,
        _ if error.native_status().is_none() => error,
        _ => Error::new(
            ErrorCode::InvalidValue,
            format!("the driver refuses what the exporter sent: {error}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_handle_that_sends_its_opener_to_this_process_is_told_from_one_with_a_number() {
        let mut bytes: IpcBytes = [0; 64];
        bytes[0] = 9;
        assert!(!asks_process(&bytes), "an older driver's: number, offset and kind");
        bytes[PROCESS..PROCESS + 4].copy_from_slice(&std::process::id().to_le_bytes());
        assert!(asks_process(&bytes));
        bytes[COPY] = 9;
        assert!(!asks_process(&bytes), "the driver sees that the number was changed");
    }
}
