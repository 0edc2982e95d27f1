//! The only module of this crate that calls C. Every call goes through a slot of the loader's `ur_dditable_t`, as a C
//! program would make it. Results are owned and have known bounds; names, types and deadlines for users are left to the
//! modules above.
#![expect(unsafe_code, reason = "calls the C ABI")]

mod ask;
mod command;
mod event;
mod flight;
mod handle;
mod memory;
mod physical;
mod share;

pub(crate) use command::{Download, Queue, QueueKind, Span};
pub(crate) use event::Event;
pub(crate) use handle::Context;
pub(crate) use memory::{Memory, MemoryKind};
pub(crate) use physical::Physical;
pub(crate) use share::Exported;

use crate::{Error, Result};
use std::{
    ffi::{CStr, c_void},
    sync::OnceLock,
};
use ur_loader::entry;
use ur_sys::*;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// One adapter of this process: the table through which it is called, and the handle under which it keeps its last
/// error.
pub(crate) struct Api {
    table: &'static ur_dditable_t,
    adapter: ur_adapter_handle_t,
}
// SAFETY: UR handles may be used from any thread.
unsafe impl Send for Api {}
// SAFETY: as above; entries do their own locking.
unsafe impl Sync for Api {}

impl Api {
    /// Converts a code to a result. The adapter's sentence is fetched at once, before this thread makes another call.
    fn check(&self, entry: &'static str, code: ur_result_t) -> Result<()> {
        if code == ur_result_t::SUCCESS { Ok(()) } else { Err(self.failure(entry, code)) }
    }
    #[cold]
    fn failure(&self, entry: &'static str, code: ur_result_t) -> Error {
        let (sentence, native) = self.last_error().unwrap_or_default();
        Error::runtime(entry, code, &sentence, native)
    }
    fn last_error(&self) -> Option<(String, i32)> {
        let get = self.table.adapter.get_last_error?;
        let (mut message, mut native) = (std::ptr::null(), 0);
        // SAFETY: the adapter is never released, and both places outlive the call.
        let code = unsafe { get(self.adapter, &mut message, &mut native) };
        if code != ur_result_t::SUCCESS || message.is_null() {
            return None;
        }
        // SAFETY: a C string that is valid until this thread's next failing call, which comes after the copy.
        let message = unsafe { CStr::from_ptr(message) };
        Some((message.to_string_lossy().into_owned(), native))
    }
}

/// The function in a slot of the table; an empty slot is an error.
fn slot<F>(function: Option<F>, entry: &'static str) -> Result<F> {
    function.ok_or_else(|| {
        Error::runtime(
            entry,
            ur_result_t::ERROR_UNSUPPORTED_FEATURE,
            "the adapter's table lacks it",
            0,
        )
    })
}

/// The adapters that the loader finds, including those built into this program. The loader is started once and never
/// torn down, because objects of this crate may live as long as the program.
///
/// # Errors
/// Returns the loader's error; a later call tries again.
pub(crate) fn apis() -> Result<&'static [Api]> {
    static APIS: OnceLock<Vec<Api>> = OnceLock::new();
    if let Some(apis) = APIS.get() {
        return Ok(apis);
    }
    // A second thread that gets here meanwhile starts it again, which only adds a reference.
    let flags = ur_device_init_flags_t(0);
    let code = ur_loader::life::loader_init(flags, ur_loader_config_handle_t::NULL);
    well("urLoaderInit", code)?;
    let mut count = 0;
    // SAFETY: queries only the count.
    let code = unsafe { entry::adapter_get(0, std::ptr::null_mut(), &mut count) };
    well("urAdapterGet", code)?;
    let mut adapters = vec![ur_adapter_handle_t::NULL; count as usize];
    if count > 0 {
        let place = adapters.as_mut_ptr();
        // SAFETY: `adapters` has space for `count` handles.
        let code = unsafe { entry::adapter_get(count, place, &mut count) };
        well("urAdapterGet", code)?;
        adapters.truncate(count as usize);
    }
    let api = |adapter: &ur_adapter_handle_t| Api { table: &entry::TABLE, adapter: *adapter };
    let found = adapters.iter().filter(|adapter| !adapter.is_null()).map(api).collect();
    Ok(APIS.get_or_init(|| found)) // if two threads race, one more reference is held for ever, which does no harm
}
/// Converts a code of the loader, which keeps no sentence but writes it to its log.
fn well(entry: &'static str, code: ur_result_t) -> Result<()> {
    if code == ur_result_t::SUCCESS {
        return Ok(());
    }
    Err(Error::runtime(entry, code, "UR_LOG_LOADER=level:info makes the loader say why", 0))
}

/// A platform. It lives as long as the program.
pub(crate) struct Platform {
    api: &'static Api,
    raw: ur_platform_handle_t,
    pub(crate) devices: Vec<Device>,
}
// SAFETY: UR handles may be used from any thread.
unsafe impl Send for Platform {}
// SAFETY: as above.
unsafe impl Sync for Platform {}

/// A root device. It lives as long as the program.
pub(crate) struct Device {
    api: &'static Api,
    raw: ur_device_handle_t,
    /// The index of its platform in the list.
    pub(crate) platform: usize,
}
// SAFETY: UR handles may be used from any thread.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

/// All platforms with their devices, listed once.
///
/// # Errors
/// Returns the adapter's error; a later call tries again.
pub(crate) fn platforms() -> Result<&'static [Platform]> {
    static PLATFORMS: OnceLock<Vec<Platform>> = OnceLock::new();
    if let Some(platforms) = PLATFORMS.get() {
        return Ok(platforms);
    }
    let mut found = Vec::new();
    for api in apis()? {
        for raw in list_platforms(api)? {
            let devices = list_devices(api, raw)?;
            let platform = found.len();
            let devices = devices.into_iter().map(|raw| Device { api, raw, platform }).collect();
            found.push(Platform { api, raw, devices });
        }
    }
    Ok(PLATFORMS.get_or_init(|| found))
}

fn list_platforms(api: &Api) -> Result<Vec<ur_platform_handle_t>> {
    const ENTRY: &str = "urPlatformGet";
    let get = slot(api.table.platform.get, ENTRY)?;
    let mut count = 0;
    // SAFETY: queries only the count.
    api.check(ENTRY, unsafe { get(api.adapter, 0, std::ptr::null_mut(), &mut count) })?;
    let mut list = vec![ur_platform_handle_t::NULL; count as usize];
    if count > 0 {
        // SAFETY: `list` has space for `count` handles.
        api.check(ENTRY, unsafe { get(api.adapter, count, list.as_mut_ptr(), &mut count) })?;
    }
    Ok(list)
}

/// The devices that `ONEAPI_DEVICE_SELECTOR` selects, including sub-devices if it names them. Sub-devices are never
/// released, like all devices.
fn list_devices(api: &Api, platform: ur_platform_handle_t) -> Result<Vec<ur_device_handle_t>> {
    const ENTRY: &str = "urDeviceGetSelected";
    if let Some(wrong) = ur_loader::selected::complaint() {
        return Err(Error::runtime(ENTRY, ur_result_t::ERROR_INVALID_VALUE, &wrong, 0));
    }
    let (all, mut count) = (ur_device_type_t::ALL, 0);
    let get = ur_loader::selected::device_get_selected;
    // SAFETY: queries only the count.
    let code = unsafe { get(platform, all, 0, std::ptr::null_mut(), &mut count) };
    if code == ur_result_t::ERROR_DEVICE_NOT_FOUND {
        return Ok(Vec::new());
    }
    api.check(ENTRY, code)?;
    let mut list = vec![ur_device_handle_t::NULL; count as usize];
    if count > 0 {
        // SAFETY: `list` has space for `count` handles.
        api.check(ENTRY, unsafe { get(platform, all, count, list.as_mut_ptr(), &mut count) })?;
        list.truncate(count as usize);
    }
    Ok(list)
}

impl Platform {
    /// A text property.
    pub(crate) fn text(&self, name: ur_platform_info_t) -> Result<String> {
        let get = slot(self.api.table.platform.get_info, "urPlatformGetInfo")?;
        self.api.text("urPlatformGetInfo", |size, value, needed| {
            // SAFETY: `text` provides `size` bytes at `value`.
            unsafe { get(self.raw, name, size, value, needed) }
        })
    }
    /// A property of fixed size.
    pub(crate) fn value<T: FromBytes + IntoBytes>(&self, name: ur_platform_info_t) -> Result<T> {
        let get = slot(self.api.table.platform.get_info, "urPlatformGetInfo")?;
        self.api.value("urPlatformGetInfo", |size, value, needed| {
            // SAFETY: `value` provides `size` bytes at `value`.
            unsafe { get(self.raw, name, size, value, needed) }
        })
    }
}

impl Device {
    /// A text property.
    pub(crate) fn text(&self, name: ur_device_info_t) -> Result<String> {
        let get = slot(self.api.table.device.get_info, "urDeviceGetInfo")?;
        self.api.text("urDeviceGetInfo", |size, value, needed| {
            // SAFETY: `text` provides `size` bytes at `value`.
            unsafe { get(self.raw, name, size, value, needed) }
        })
    }
    /// A property of fixed size.
    pub(crate) fn value<T: FromBytes + IntoBytes>(&self, name: ur_device_info_t) -> Result<T> {
        let get = slot(self.api.table.device.get_info, "urDeviceGetInfo")?;
        self.api.value("urDeviceGetInfo", |size, value, needed| {
            // SAFETY: `value` provides `size` bytes at `value`.
            unsafe { get(self.raw, name, size, value, needed) }
        })
    }
}

impl Api {
    /// Queries a property of fixed size by calling `query` with its size, a place for it, and a place for the actual
    /// size.
    fn value<T: FromBytes + IntoBytes>(
        &self,
        entry: &'static str,
        query: impl Fn(usize, *mut c_void, *mut usize) -> ur_result_t,
    ) -> Result<T> {
        let (mut value, mut length) = (T::new_zeroed(), 0);
        self.check(entry, query(size_of::<T>(), (&raw mut value).cast(), &mut length))?;
        if length == size_of::<T>() {
            return Ok(value);
        }
        let sentence =
            format!("the adapter answered {length} bytes where {} belong", size_of::<T>());
        Err(Error::runtime(entry, ur_result_t::ERROR_INVALID_SIZE, &sentence, 0))
    }
    /// Queries a C string: its size first, then the text.
    fn text(
        &self,
        entry: &'static str,
        query: impl Fn(usize, *mut c_void, *mut usize) -> ur_result_t,
    ) -> Result<String> {
        let mut length = 0;
        self.check(entry, query(0, std::ptr::null_mut(), &mut length))?;
        let mut text = vec![0_u8; length];
        if length > 0 {
            let place = text.as_mut_ptr().cast();
            self.check(entry, query(length, place, std::ptr::null_mut()))?;
        }
        text.truncate(text.iter().position(|&byte| byte == 0).unwrap_or(length));
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// Data that host and device may exchange as bytes.
pub(crate) trait Bytes: FromBytes + IntoBytes + Immutable {}
impl<T: FromBytes + IntoBytes + Immutable> Bytes for T {}
