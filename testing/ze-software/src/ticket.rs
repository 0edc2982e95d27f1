//! Handles of 64 bytes by which other processes open cells. They find the memory by the exporter's
//! descriptors or, where those are out of reach, by its socket; either is gone when the exporter is.
#![expect(unsafe_code, reason = "the bytes of handles")]
use crate::{
    cell::{Opened, Own, Page, Seat, short},
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

/// The memory that this process knows already, by the numbers of its files.
static KNOWN: LazyLock<Mutex<HashMap<u64, Weak<Page>>>> = LazyLock::new(Mutex::default);
fn known() -> MutexGuard<'static, HashMap<u64, Weak<Page>>> {
    locked(&KNOWN)
}
fn number(file: &OwnedFd) -> Answer<u64> {
    Ok(rustix::fs::fstat(file).map_err(short)?.st_ino)
}
/// The memory with this number, for those who ask by the socket.
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
    // SAFETY: 64 bytes of plain integers without padding.
    unsafe { std::mem::transmute(ticket) }
}
/// The exporter's memory, by its descriptors.
fn reach(ticket: &Ticket) -> Option<OwnedFd> {
    let path = format!("/proc/{}/fd/{}", ticket.process, ticket.descriptor);
    // The descriptor may be another file's by now, and the process another one's.
    (rustix::fs::stat(&path).ok()?.st_ino == ticket.file).then_some(())?;
    rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).ok()
}
/// Reads a handle and finds the memory that it names.
fn page(magic: [u8; 8], data: [c_char; 64]) -> Answer<(Ticket, Arc<Page>)> {
    // SAFETY: any 64 bytes are such a value.
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
    if stat.st_ino != ticket.file || stat.st_size.unsigned_abs() != u64::from(ticket.count) * 256 {
        return Err(refused);
    }
    // Mapped once, however many events of it are opened.
    if let Some(page) = known_file(ticket.file) {
        return Ok((ticket, page));
    }
    let page = Page::map(file, ticket.count)?;
    known().insert(ticket.file, Arc::downgrade(&page));
    Ok((ticket, page))
}
/// The handle by which other processes open this cell; `flags` travel with it.
///
/// # Errors
/// When the system does not answer.
pub fn event(own: &Own, flags: u32) -> Answer<[c_char; 64]> {
    let (seat, serial) = own.seat();
    let (page, index) = seat.place();
    ticket(EVENT, page, (index, serial), flags).map(bytes)
}
/// Opens a cell by its handle; the flags that came with it, and the process that it is of.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for bytes that are no such handle, or of an event or a process
/// that is gone.
pub fn open(data: [c_char; 64]) -> Answer<(Arc<Opened>, u32, u32)> {
    let (ticket, page) = page(EVENT, data)?;
    let seat = Seat::of(&page, ticket.index).ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    let opened = Opened::new(seat, ticket.serial).ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    Ok((opened, ticket.flags, ticket.process))
}
/// The handle by which other processes open all cells of `of`; `flags` travel with it.
///
/// # Errors
/// As [`event`].
pub fn pool(of: &Arc<Page>, flags: u32) -> Answer<[c_char; 64]> {
    ticket(POOL, of, (0, 0), flags).map(bytes)
}
/// Opens what [`pool`] gave.
///
/// # Errors
/// As [`open`].
pub fn open_pool(data: [c_char; 64]) -> Answer<(Arc<Page>, u32)> {
    page(POOL, data).map(|(ticket, page)| (page, ticket.flags))
}
