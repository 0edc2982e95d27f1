//! Legacy IPC handles of memory from `cuMemAlloc`, accessed through the descriptors of the exporting process.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    attributes::{self, Feature},
    backing::{Backing, Kind},
    code::{Answer, INVALID_CONTEXT, INVALID_VALUE, PEER_UNSUPPORTED},
    context, device, memory,
    ranges::{self, Range, What},
    raw::put,
    space,
};
use rustix::fs::{Mode, OFlags, open};
use std::{
    collections::HashMap,
    os::fd::AsRawFd as _,
    sync::{Arc, LazyLock, Mutex, OnceLock, atomic::Ordering},
};
use ur_lock::locked;

/// `CUipcMemHandle` and `CUipcEventHandle`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Handle(pub [u64; 8]);
const MAGIC: u64 = u64::from_le_bytes(*b"softCUDA");

/// The opened memory: by process, file and offset, its address here and its open count.
type Opens = HashMap<[u64; 8], (u64, usize)>;
static OPENS: LazyLock<Mutex<Opens>> = LazyLock::new(Mutex::default);

/// Distinguishes this process from later ones with the same id.
fn birth() -> u64 {
    static BIRTH: OnceLock<u64> = OnceLock::new();
    let since = || std::time::UNIX_EPOCH.elapsed().map_or(1, |d| d.as_nanos() as u64);
    *BIRTH.get_or_init(since)
}
fn describe(range: &Range) -> Answer<Handle> {
    let backing = range.backing.as_ref().ok_or(INVALID_VALUE)?;
    let (process, file) = (u64::from(std::process::id()), backing.file()?.as_raw_fd() as u64);
    let offset = range.base - range.extra;
    Ok(Handle([MAGIC, process, birth(), file, backing.inode()?, offset, range.bytes, 0]))
}
fn map(handle: &Handle, device: i32) -> Answer<u64> {
    let [_, process, _, file, inode, offset, bytes, _] = handle.0;
    let path = format!("/proc/{process}/fd/{file}");
    let file =
        open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|_| INVALID_VALUE)?;
    let backing = Backing::of(Kind::Linear, file).map_err(|_| INVALID_VALUE)?;
    let inside = offset.checked_add(bytes).is_some_and(|end| end <= backing.bytes);
    if backing.inode()? != inode || !inside || bytes == 0 {
        return Err(INVALID_VALUE);
    }
    if !device::reaches(device, backing.device) {
        return Err(PEER_UNSUPPORTED);
    }
    let page = space::take(backing.bytes, space::GRANULE, 0)?;
    let backing = backing.park()?;
    backing.map(page).inspect_err(|_| space::give(page))?;
    let range = Range::new(What::Opened, page + offset, bytes, device);
    let context = context::primary(device);
    ranges::change().insert(Range {
        context,
        backing: Some(Arc::new(backing)),
        extra: page,
        ..range
    });
    Ok(page + offset)
}
/// Called when the range has been removed from the table.
pub fn gone(range: &Range) {
    space::unmap(range.extra, range.backing.as_ref().map_or(0, |b| b.bytes));
    locked(&OPENS).retain(|_, (at, _)| *at != range.base);
    space::give(range.extra);
}

entries! {
    fn cuIpcGetMemHandle(to: *mut Handle, at: u64) {
        attributes::check(Feature::Ipc)?;
        context::current()?;
        let range = ranges::table().find(at).filter(|r| r.what == What::Linear).cloned().ok_or(INVALID_VALUE)?;
        if range.leaving.load(Ordering::Acquire) {
            return Err(INVALID_VALUE);
        }
        put(to, describe(&range)?)
    }
    fn cuIpcOpenMemHandle_v2(to: *mut u64, handle: Handle, flags: u32) {
        attributes::check(Feature::Ipc)?;
        let context = context::current()?;
        let [magic, process, theirs, ..] = handle.0;
        if flags != 1 || to.is_null() || magic != MAGIC {
            return Err(INVALID_VALUE);
        }
        if process == u64::from(std::process::id()) && theirs == birth() {
            return Err(INVALID_CONTEXT); // a handle of this process
        }
        let mut key = handle.0;
        key[7] = context.id;
        let mut opens = locked(&OPENS);
        if let Some((at, count)) = opens.get_mut(&key) {
            *count += 1;
            return put(to, *at);
        }
        let at = map(&handle, context.device)?;
        opens.insert(key, (at, 1));
        put(to, at)
    }
    fn cuIpcCloseMemHandle(at: u64) {
        context::current()?;
        {
            let mut opens = locked(&OPENS);
            let found = opens.iter_mut().find(|(_, (base, _))| *base == at).ok_or(INVALID_VALUE)?;
            let (key, (_, count)) = (*found.0, found.1);
            *count -= 1;
            if *count != 0 {
                return Ok(());
            }
            // A later open creates a new mapping.
            opens.remove(&key);
        }
        memory::free(at, &[What::Opened])
    }
}
