//! Memory shared with other processes. A handle contains a file descriptor, the process that owns the
//! descriptor, and the number of the file. It is opened by the descriptor if the descriptor was sent to the
//! opening process and its number there was written into the handle, else through the process that made the
//! handle. The environment can disable either way.
#![expect(unsafe_code, reason = "exports symbols of the driver; the bytes of handles")]
use crate::{
    allocations::{self, Allocation, Origin},
    backing::{Backing, DEVICE_PAGE, Mapping, borrow},
    context, device,
    inject::{self, Answer},
    knob, raw,
};
use std::{
    collections::HashMap,
    ffi::c_void,
    fs::File,
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
    sync::{Arc, LazyLock, Mutex},
};
use ur_lock::locked;
use ze_sys::*;

const MAGIC: u64 = 0x3143_5049_5753_455a;
/// The first word of a handle that shows no descriptor.
const OPAQUE: u64 = u64::MAX;

/// The 64 bytes of a handle. The first 30 have the layout of the opaque handles of Intel's driver.
#[repr(C)]
#[derive(Clone, Copy)]
struct Body {
    /// The low half is the descriptor's number in the process that opens the handle; or the word is
    /// [`OPAQUE`].
    word: u64,
    /// The offset of the allocation in the descriptor's memory, in bytes.
    offset: u64,
    process: u32,
    sort: [u8; 2],
    /// The descriptor's number in the process that made the handle; 0 for [`Way::OldXe2`], whose handles have
    /// no such field.
    mirror: [u8; 8],
    _rest: [u8; 2],
    file: u64,
    size: u64,
    kind: u32,
    /// 1 if the handle was made from the caller's own descriptor, so that there is nothing to release.
    made: u32,
    magic: u64,
}
const _: () = assert!(size_of::<Body>() == size_of::<ze_ipc_mem_handle_t>());
impl Body {
    /// The descriptor's number in the process that made the handle.
    fn descriptor(&self) -> i32 {
        match way() {
            Way::OldXe2 => self.word as u32 as i32,
            _ => u64::from_le_bytes(self.mirror) as u32 as i32,
        }
    }
}

/// The descriptor of an exported allocation and the number of handles that were made of it.
struct Export {
    descriptor: OwnedFd,
    times: u32,
}
static EXPORTS: LazyLock<Mutex<HashMap<usize, Export>>> = LazyLock::new(Mutex::default);

/// How a handle can be opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By the descriptor that was sent, else through the process that made the handle.
    Both,
    /// As in older drivers: only by a descriptor of the process that opens the handle.
    Descriptor,
    /// Only through the process that made the handle; the handle shows no descriptor.
    Process,
    /// As Intel's driver 25.35 to 26.14 on Xe2: opens whatever has the descriptor's number in the process
    /// that made the handle, even if the number in the handle was replaced by that of a descriptor of the
    /// opening process.
    OldXe2,
    /// As Intel's later drivers on Xe2: through the process that made the handle, unless the number in the
    /// handle was replaced.
    NewXe2,
}
fn way() -> Way {
    static WAY: LazyLock<Way> = LazyLock::new(|| match knob::text("IPC").as_deref() {
        Some("fd") => Way::Descriptor,
        Some("opaque") => Way::Process,
        Some("xe2-old") => Way::OldXe2,
        Some("xe2-new") => Way::NewXe2,
        _ => Way::Both,
    });
    *WAY
}
fn pack(body: Body) -> ze_ipc_mem_handle_t {
    // SAFETY: both types have the same size and consist of integers without padding.
    unsafe { std::mem::transmute(body) }
}
fn unpack(handle: ze_ipc_mem_handle_t) -> Answer<Body> {
    // SAFETY: both types have the same size and consist of integers without padding.
    let body: Body = unsafe { std::mem::transmute(handle) };
    if body.magic == MAGIC { Ok(body) } else { Err(ZE_RESULT_ERROR_INVALID_ARGUMENT) }
}
fn body(
    descriptor: i32,
    file: u64,
    (offset, size): (usize, usize),
    kind: ze_memory_type_t,
) -> Body {
    let shown = u64::from(descriptor.cast_unsigned());
    let word = if way() == Way::Process { OPAQUE } else { shown };
    let mirror = if way() == Way::OldXe2 { [0; 8] } else { shown.to_le_bytes() };
    Body {
        word,
        offset: offset as u64,
        process: std::process::id(),
        sort: [1, kind as u8],
        mirror,
        _rest: [0; 2],
        file,
        size: size as u64,
        kind,
        made: 0,
        magic: MAGIC,
    }
}
/// Makes a handle of the allocation at `at`. The allocation's descriptor stays open until the handle was put
/// back as often as it was made.
fn give(at: *const c_void, to: *mut ze_ipc_mem_handle_t) -> Answer {
    if at.is_null() {
        return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    }
    if inject::lacks("ipc") {
        return Err(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
    }
    let one = allocations::find(at.expose_provenance()).ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    let shareable = one.kind == ZE_MEMORY_TYPE_DEVICE || one.kind == ZE_MEMORY_TYPE_HOST;
    let backing = one.backing.as_ref().filter(|_| shareable && one.origin == Origin::Allocated);
    let backing = backing.ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    let (fresh, file) = (backing.export()?, backing.id()?);
    let mut exports = locked(&EXPORTS);
    let export = exports.entry(one.base).or_insert(Export { descriptor: fresh, times: 0 });
    export.times += 1;
    let place = (one.offset, one.size);
    raw::put(to, pack(body(export.descriptor.as_raw_fd(), file, place, one.kind)))
}
/// Ends the handles of the allocation that begins at `base`.
pub fn forget(base: usize) {
    let gone = locked(&EXPORTS).remove(&base);
    drop(gone);
}
/// The memory behind a descriptor of this process, if it is the file that the handle refers to.
fn here(body: &Body, descriptor: i32) -> Option<Arc<Backing>> {
    let backing = Backing::of(borrow(descriptor).ok()?).ok()?;
    backing.id().is_ok_and(|id| id == body.file).then_some(backing)
}
/// The memory behind the descriptor's number in the process that made the handle.
fn theirs(body: &Body) -> Option<Arc<Backing>> {
    let number = body.descriptor();
    if body.process == std::process::id() {
        return Backing::of(borrow(number).ok()?).ok();
    }
    let path = format!("/proc/{}/fd/{number}", body.process);
    let file = File::options().read(true).write(true).open(path).ok()?;
    Backing::of(file.as_fd()).ok()
}
/// As [`theirs`], if it is the file that the handle refers to.
fn there(body: &Body) -> Option<Arc<Backing>> {
    theirs(body).filter(|backing| backing.id().is_ok_and(|id| id == body.file))
}
/// The memory that a handle refers to.
fn backing(body: &Body) -> Answer<Arc<Backing>> {
    let shown = || here(body, body.word as u32 as i32);
    match way() {
        Way::Both => shown().or_else(|| there(body)),
        Way::Descriptor => shown(),
        Way::Process => there(body),
        Way::OldXe2 => theirs(body), // not checked to be the file that the handle refers to
        Way::NewXe2 if body.word == u64::from_le_bytes(body.mirror) => there(body),
        Way::NewXe2 => shown(),
    }
    .ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)
}

entries! {
    fn zeMemGetIpcHandle(
        context: ze_context_handle_t,
        at: *const c_void,
        to: *mut ze_ipc_mem_handle_t,
    ) {
        context::get(context)?;
        give(at, to)
    }
    fn zeMemGetIpcHandleWithProperties(
        context: ze_context_handle_t,
        at: *const c_void,
        chain: *mut c_void,
        to: *mut ze_ipc_mem_handle_t,
    ) {
        context::get(context)?;
        let stype = ZE_STRUCTURE_TYPE_IPC_MEM_HANDLE_TYPE_EXT_DESC;
        if let Some(desc) = raw::find::<ze_ipc_mem_handle_type_ext_desc_t>(chain, stype)
            && raw::get(desc)?.typeFlags & ZE_IPC_MEM_HANDLE_TYPE_FLAG_FABRIC_ACCESSIBLE != 0
        {
            return Err(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
        }
        give(at, to)
    }
    fn zeMemOpenIpcHandle(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        handle: ze_ipc_mem_handle_t,
        _flags: ze_ipc_memory_flags_t,
        to: *mut *mut c_void,
    ) {
        let (within, device) = (context::get(context)?, device::get(device)?);
        if to.is_null() {
            return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
        }
        if !within.has(&device) {
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        if inject::lacks("ipc") {
            return Err(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
        }
        let body = unpack(handle)?;
        let backing = backing(&body)?;
        let on_device = body.kind == ZE_MEMORY_TYPE_DEVICE;
        let mapping = Mapping::of(&backing, backing.size, DEVICE_PAGE, on_device)?;
        let base = mapping.base;
        allocations::add(Allocation {
            base,
            // The allocation begins where the file does, even if the handle refers to a later offset, as with
            // Intel's driver.
            size: usize::try_from(body.offset + body.size).unwrap_or(0).min(backing.size),
            offset: 0,
            kind: body.kind,
            origin: Origin::Opened,
            device: on_device.then_some(device),
            context: context.expose_provenance(),
            id: allocations::next_id(),
            exports: 0,
            backing: None, // the mapping keeps the memory
            _mapping: Some(mapping),
            _taken: None,
        })?;
        let at = base + usize::try_from(body.offset).unwrap_or(0).min(backing.size);
        raw::put(to, std::ptr::with_exposed_provenance_mut(at))
    }
    fn zeMemCloseIpcHandle(context: ze_context_handle_t, at: *const c_void) {
        context::get(context)?;
        if at.is_null() {
            return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
        }
        let base = allocations::find(at.expose_provenance()).map_or(0, |one| one.base);
        let one = allocations::remove(base, Origin::Opened);
        one.map(drop).ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)
    }
    fn zeMemPutIpcHandle(context: ze_context_handle_t, handle: ze_ipc_mem_handle_t) {
        context::get(context)?;
        let body = unpack(handle)?;
        if body.made != 0 && body.process == std::process::id() {
            return Ok(());
        }
        let mut exports = locked(&EXPORTS);
        let named = |export: &Export| export.descriptor.as_raw_fd() == body.descriptor();
        let base = exports.iter().find(|(_, export)| named(export)).map(|(base, _)| *base);
        let base = base.filter(|_| body.process == std::process::id());
        let base = base.ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
        let export = exports.get_mut(&base).expect("found under this lock");
        export.times -= 1;
        if export.times == 0 {
            exports.remove(&base);
        }
        Ok(())
    }
    fn zeMemGetFileDescriptorFromIpcHandleExp(
        context: ze_context_handle_t,
        handle: ze_ipc_mem_handle_t,
        to: *mut u64,
    ) {
        context::get(context)?;
        let body = unpack(handle)?;
        if body.process != std::process::id() {
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        backing(&body)?;
        raw::put(to, u64::from(body.descriptor().cast_unsigned()))
    }
    fn zeMemGetIpcHandleFromFileDescriptorExp(
        context: ze_context_handle_t,
        descriptor: u64,
        to: *mut ze_ipc_mem_handle_t,
    ) {
        context::get(context)?;
        let descriptor = i32::try_from(descriptor).map_err(|_| ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
        let backing = Backing::of(borrow(descriptor)?)?;
        // Intel's driver on Xe2 accepts only descriptors of its own handles.
        let is_given = || locked(&EXPORTS).values().any(|e| e.descriptor.as_raw_fd() == descriptor);
        if matches!(way(), Way::OldXe2 | Way::NewXe2) && !is_given() {
            return Err(ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY);
        }
        let made = body(descriptor, backing.id()?, (0, backing.size), ZE_MEMORY_TYPE_DEVICE);
        raw::put(to, pack(Body { made: 1, ..made }))
    }
}
