//! The 64-byte handles through which other processes open cells. They find the exporter's memory by its
//! descriptor or, if that is not accessible, through its socket; both are gone when the exporter has ended.
#![expect(unsafe_code, reason = "the bytes of handles")]
use crate::{
    cell::{BYTES, Opened, Own, Page, Seat, short},
    inject::Answer,
    pass,
};
use rustix::{
    fd::{AsRawFd, OwnedFd},
    fs::{Mode, OFlags},
};
use std::{
    collections::HashMap,
    ffi::c_char,
    sync::{Arc, LazyLock, Mutex, MutexGuard, Weak},
};
use ur_lock::locked;
use ze_sys::*;

#[repr(C)]
#[derive(Clone, Copy)]
struct Ticket {
    magic: [u8; 8],
    process: u32,
    descriptor: u32,
    file: u64,
    serial: u64,
    socket: u64,
    index: u32,
    count: u32,
    flags: u32,
    rest: [u32; 3],
}
const _: () = assert!(size_of::<Ticket>() == ZE_MAX_IPC_HANDLE_SIZE as usize);
const EVENT: [u8; 8] = *b"zesoft-e";
const POOL: [u8; 8] = *b"zesoft-p";

/// The memory that this process has mapped, by the inode number of its file.
static KNOWN: LazyLock<Mutex<HashMap<u64, Weak<Page>>>> = LazyLock::new(Mutex::default);
fn known() -> MutexGuard<'static, HashMap<u64, Weak<Page>>> {
    locked(&KNOWN)
}
fn number(file: &OwnedFd) -> Answer<u64> {
    Ok(rustix::fs::fstat(file).map_err(short)?.st_ino)
}
/// The mapped memory with this inode number; also serves requests through the socket.
pub fn known_file(number: u64) -> Option<Arc<Page>> {
    known().get(&number).and_then(Weak::upgrade)
}

fn ticket(
    magic: [u8; 8],
    page: &Arc<Page>,
    (index, serial): (u32, u64),
    flags: u32,
) -> Answer<Ticket> {
    let (file, count) = page.file();
    let (process, descriptor) = (std::process::id(), file.as_raw_fd().unsigned_abs());
    let file = number(file)?;
    known().insert(file, Arc::downgrade(page));
    let socket = pass::name()?;
    let rest = [0; 3];
    Ok(Ticket { magic, process, descriptor, file, serial, socket, index, count, flags, rest })
}
fn bytes(ticket: Ticket) -> [c_char; 64] {
    // SAFETY: both types are 64 bytes of integers without padding.
    unsafe { std::mem::transmute(ticket) }
}
/// Opens the exporter's memory through its descriptor.
fn reach(ticket: &Ticket) -> Option<OwnedFd> {
    let path = format!("/proc/{}/fd/{}", ticket.process, ticket.descriptor);
    // The descriptor's number may refer to another file by now, and the process number to another process.
    (rustix::fs::stat(&path).ok()?.st_ino == ticket.file).then_some(())?;
    rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).ok()
}
/// Reads a handle and finds the memory that it refers to.
fn page(magic: [u8; 8], data: [c_char; 64]) -> Answer<(Ticket, Arc<Page>)> {
    // SAFETY: 64 bytes of any value are a valid `Ticket`, which has only integers.
    let ticket: Ticket = unsafe { std::mem::transmute(data) };
    let refused = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if ticket.magic != magic || ticket.rest != [0; 3] || ticket.index >= ticket.count {
        return Err(refused);
    }
    let own = ticket.process == std::process::id() && pass::name()? == ticket.socket;
    if own {
        let page = known_file(ticket.file).filter(|page| page.file().1 == ticket.count);
        return Ok((ticket, page.ok_or(refused)?));
    }
    let file = reach(&ticket).or_else(|| pass::fetch(ticket.socket, ticket.file)).ok_or(refused)?;
    let stat = rustix::fs::fstat(&file).map_err(short)?;
    if stat.st_ino != ticket.file
        || stat.st_size.unsigned_abs() != u64::from(ticket.count) * BYTES as u64
    {
        return Err(refused);
    }
    // Mapped only once, however many of its events are opened.
    if let Some(page) = known_file(ticket.file) {
        return Ok((ticket, page));
    }
    let page = Page::map(file, ticket.count)?;
    known().insert(ticket.file, Arc::downgrade(&page));
    Ok((ticket, page))
}
/// The handle through which other processes open this cell. It also carries `flags`.
///
/// # Errors
/// If the system refuses.
pub fn event(own: &Own, flags: u32) -> Answer<[c_char; 64]> {
    let (seat, serial) = own.seat();
    let (page, index) = seat.place();
    ticket(EVENT, page, (index, serial), flags).map(bytes)
}
/// Opens a cell by its handle. Also returns the flags that the handle carries and the number of the exporting
/// process.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` if the handle is not valid, or if its event or process does not exist
/// any more.
pub fn open(data: [c_char; 64]) -> Answer<(Arc<Opened>, u32, u32)> {
    let (ticket, page) = page(EVENT, data)?;
    let seat = Seat::of(&page, ticket.index).ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    let opened = Opened::new(seat, ticket.serial).ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    Ok((opened, ticket.flags, ticket.process))
}
/// The handle through which other processes open all cells of `of`. It also carries `flags`.
///
/// # Errors
/// As [`event`].
pub fn pool(of: &Arc<Page>, flags: u32) -> Answer<[c_char; 64]> {
    ticket(POOL, of, (0, 0), flags).map(bytes)
}
/// Opens a handle that [`pool`] made.
///
/// # Errors
/// As [`open`].
pub fn open_pool(data: [c_char; 64]) -> Answer<(Arc<Page>, u32)> {
    page(POOL, data).map(|(ticket, page)| (page, ticket.flags))
}
