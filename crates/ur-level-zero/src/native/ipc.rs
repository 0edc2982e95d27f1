//! The driver's IPC handles of memory. There are two kinds, which are recognised by their bytes: a handle
//! that begins with the number of a descriptor (a dma-buf), for which the receiver needs a descriptor of its
//! own; and an opaque handle, which only the driver can interpret. An opaque handle contains the exporter's
//! pid, which is invalid in another pid namespace. So if the driver provides a descriptor of the memory, that
//! is sent too, and the opaque handle is only used with drivers that do not.
//!
//! A descriptor of exactly one allocation is imported as external memory, which needs no handle. A part of a
//! larger driver allocation is opened by the handle, which contains the offset.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::{
        device::DriverDevice,
        driver::{RawContext, driver},
    },
    context::{InContext, Lent, NativeContext, Opened, pointer},
    import_fd::{Keepers, was_kept},
    memory::{self, Piece, Sort},
    physical_memory::{DMA_BUF, put_back},
};
use rustix::io::fcntl_dupfd_cloexec;
use std::{
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    sync::Arc,
};
use ur_hal::{Error, ErrorKind, Result, placed, refused_import, told};
use ze_sys::*;

/// The bytes of a driver's handle.
pub type IpcBytes = [u8; 64];

/// Whether memory of the device can be shared with other processes.
///
/// # Errors
/// Returns the driver's error.
pub fn is_supported(device: &DriverDevice) -> Result<bool> {
    let flags = super::driver::ipc(device.platform().raw())?;
    Ok(flags & ZE_IPC_PROPERTY_FLAG_MEMORY != 0)
}

/// What another process needs to open memory.
#[derive(Debug)]
pub struct Handle {
    /// The driver's handle.
    pub bytes: IpcBytes,
    /// A descriptor of the memory, if the driver provides one.
    pub fd: Option<Arc<OwnedFd>>,
    /// Whether the bytes begin with the number of that descriptor, which the receiver must replace by its
    /// own.
    pub is_number: bool,
    /// Keeps an opaque handle valid; the driver invalidates it when it is returned.
    _lent: Option<InContext<Lent>>,
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
/// The number of the descriptor behind a handle, if the driver provides it, and whether the bytes begin with
/// it. Older drivers have no query for it, and only have such handles.
fn number_of(context: RawContext, bytes: &IpcBytes) -> (Option<i32>, bool) {
    let first = i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let (mut said, handle) = (0_u64, as_ze(*bytes));
    // SAFETY: a handle of the driver; `said` is writable.
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
/// Whether opening such a handle would take the descriptor out of this process by its pid, even if the number
/// was replaced. This is so for opaque handles of Intel's driver before 26.14 on Xe2 and later, which also
/// begin with the number. They contain this process's pid but not the second copy of the number by which
/// newer drivers detect a replacement.
fn asks_process(bytes: &IpcBytes) -> bool {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    word(PROCESS) == std::process::id() && word(COPY) != word(0)
}
/// The offsets of the pid and of the second copy of the descriptor's number in opaque handles of Intel's
/// driver.
const PROCESS: usize = 16;
const COPY: usize = 22;
/// A duplicate of the driver's descriptor. Not one of the standard descriptors 0 to 2. `None` if `number` is
/// not an open descriptor.
///
/// # Errors
/// `OUT_OF_RESOURCES` if the process has no free descriptors.
pub(super) fn duplicate(number: i32) -> Result<Option<OwnedFd>> {
    // SAFETY: used only for `fcntl`, which reports whether it is open.
    let theirs = unsafe { BorrowedFd::borrow_raw(number) };
    match fcntl_dupfd_cloexec(theirs, 3) {
        Ok(fd) => Ok(Some(fd)),
        Err(rustix::io::Errno::BADF) => Ok(None),
        Err(errno) => Err(not_duplicated(errno)),
    }
}
fn not_duplicated(errno: rustix::io::Errno) -> Error {
    let told = ur_ipc::Error::system("duplicate a descriptor of memory", errno);
    told.of_kind(ur_ipc::ErrorKind::TooManyDescriptors).into()
}
impl Handle {
    /// The handle of the allocation at `at` in `context`.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` if the process has no free descriptors; else the driver's error.
    pub fn of(context: &Arc<NativeContext>, at: u64) -> Result<Self> {
        let raw = context.raw();
        // SAFETY: the memory is allocated, `to` is writable.
        let handle = told(|to| unsafe { driver().mem_get_ipc_handle(raw, pointer(at), to) })?;
        let bytes = bytes_of(&handle);
        let lent = InContext::new(Lent(handle), Arc::clone(context));
        let (number, is_number) = number_of(raw, &bytes);
        let fd = match number {
            Some(number) => duplicate(number)?.map(Arc::new),
            None => None,
        };
        let is_number = is_number && fd.is_some();
        // The descriptor of an opaque handle is only used if it is of this allocation alone. In a larger
        // driver allocation the offset is only in the handle.
        let fd = match fd {
            Some(fd) if is_number => Some(fd),
            Some(fd) => memory::known(context, at)?
                .is_some_and(|known| is_all(&fd, known.bytes as u64))
                .then_some(fd),
            None => None,
        };
        // Our duplicate keeps the memory alive, so the driver's handle can be returned.
        let _lent = (!is_number).then_some(lent);
        Ok(Self { bytes, fd, is_number, _lent })
    }
}

/// The driver's handle for a descriptor of its own.
///
/// # Errors
/// Returns the driver's error, also if it has no such handles.
pub(super) fn of_number(context: &NativeContext, number: i32) -> Result<ze_ipc_mem_handle_t> {
    let number = u64::from(number.cast_unsigned());
    // SAFETY: the driver checks the number; `to` is writable.
    told(|to| unsafe {
        driver().mem_get_ipc_handle_from_file_descriptor_exp(context.raw(), number, to)
    })
}

/// Whether a descriptor is of exactly one allocation of `bytes`, apart from rounding to pages.
fn is_all(fd: &OwnedFd, bytes: u64) -> bool {
    let (small, large) = (64 << 10, 2 << 20);
    let page = if bytes < large { small } else { large };
    rustix::fs::seek(fd, rustix::fs::SeekFrom::End(0)).is_ok_and(|end| {
        bytes.checked_next_multiple_of(page).is_some_and(|most| (bytes..=most).contains(&end))
    })
}

/// A descriptor of memory that was allocated for export as this kind (`ZE_EXTERNAL_MEMORY_TYPE_FLAG_*`).
///
/// # Errors
/// `OUT_OF_RESOURCES` if the process has no free descriptors; else the driver's error.
pub fn exported(piece: &Piece, flag: u32) -> Result<OwnedFd> {
    let number = memory::exported(piece.within().raw(), piece.at(), flag)?;
    let none = || Error::new(ErrorKind::Unsupported, "the driver exported no descriptor");
    let fd = duplicate(number)?.ok_or_else(none)?;
    put_back(piece.within(), number);
    Ok(fd)
}

/// Memory of another process; closed on drop.
#[derive(Debug)]
pub enum OpenedHandle {
    /// Imported by a descriptor.
    Imported(Piece),
    /// Opened by the driver's handle.
    Opened(InContext<Opened>),
}
impl OpenedHandle {
    /// Imports memory for `device`, of `bytes` as the exporter claims; `None` if the descriptor is of a
    /// larger allocation, or if the driver cannot import it.
    ///
    /// # Errors
    /// Returns the driver's error if memory or descriptors run out.
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
            let piece = Piece::allocate(&context, device, sort, bytes, 0)?;
            let ours = exported(&piece, DMA_BUF)?;
            was_kept(&ours, |number| {
                Piece::allocate(&context, device, Sort::Imported(DMA_BUF, number), bytes, 0)
            })
        });
        let types = super::device::external(device.raw())?.memoryAllocationImportTypes;
        let Ok(bytes) = usize::try_from(bytes) else { return Ok(None) };
        if types & DMA_BUF == 0 || !is_all(fd, bytes as u64) {
            return Ok(None);
        }
        let import =
            |number| Piece::allocate(context, device, Sort::Imported(DMA_BUF, number), bytes, 0);
        match KEEPERS.give(device, fd.as_fd(), import) {
            Ok(piece) => Ok(Some(Self::Imported(piece))),
            Err(error) if error.kind().is_want() => Err(error),
            Err(_) => Ok(None),
        }
    }
    /// Opens memory for `device` by a handle that begins with the number of a descriptor.
    ///
    /// # Errors
    /// `INVALID_VALUE` if the driver refuses it; the driver's error if memory runs out.
    pub fn by_number(
        context: &Arc<NativeContext>,
        device: &DriverDevice,
        mut bytes: IpcBytes,
        fd: &OwnedFd,
    ) -> Result<Self> {
        // If the number were unchanged by chance, a driver could assume that it was not replaced, and use the
        // exporter's descriptor.
        let number = fd.as_raw_fd();
        let other = match bytes[..4] == number.to_le_bytes() {
            true => Some(fcntl_dupfd_cloexec(fd, number + 1).map_err(not_duplicated)?),
            false => None,
        };
        let number = other.as_ref().unwrap_or(fd).as_raw_fd();
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        Self::open(context, device, as_ze(bytes))
    }
    /// Opens memory for `device` by an opaque handle. If there is a descriptor and the driver can make a
    /// handle of it, that is used instead.
    ///
    /// # Errors
    /// As for [`Self::by_number`].
    pub fn opaque(
        context: &Arc<NativeContext>,
        device: &DriverDevice,
        bytes: IpcBytes,
        fd: Option<&OwnedFd>,
    ) -> Result<Self> {
        if let Some(fd) = fd {
            let number = fd.as_raw_fd();
            if let Ok(handle) = of_number(context, number)
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
        // SAFETY: the driver checks the handle; `to` is writable.
        let at = placed(|to| unsafe {
            driver().mem_open_ipc_handle(context.raw(), device.raw(), handle, 0, to)
        });
        let opened = |at| Self::Opened(InContext::new(Opened(at), Arc::clone(context)));
        at.map(opened).map_err(refused_import)
    }
    /// Its address.
    pub fn at(&self) -> u64 {
        match self {
            Self::Imported(piece) => piece.at(),
            Self::Opened(memory) => memory.raw().0,
        }
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
