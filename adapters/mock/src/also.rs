//! `causeway/mock.h`.
#![expect(unsafe_code, reason = "the symbols that C programs link")]
use std::ffi::{CStr, c_char, c_void};
use ur_adapter::{
    error::{ErrorCode, Result, enter},
    memory::UserData,
    object::Backend,
};
use ur_mock::{self as mock, Call, Place};
use ur_sys::ur_result_t;

/// What C gives as a hook.
type Callback = Option<unsafe extern "C" fn(*mut c_void, ur_result_t, *mut c_void) -> ur_result_t>;

/// # Safety
/// `entry` is null or a C string.
unsafe fn name<'a>(entry: *const c_char) -> Result<Option<&'a str>> {
    if entry.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, and so a string.
    let entry = unsafe { CStr::from_ptr(entry) };
    Ok(Some(entry.to_str().map_err(|_| ErrorCode::InvalidValue)?))
}

/// # Safety
/// As for `name`; any thread may call `callback` with `data` for as long as it is in place.
unsafe fn put(
    place: Place,
    entry: *const c_char,
    callback: Callback,
    data: *mut c_void,
) -> ur_result_t {
    let data = UserData::new(data);
    enter(Backend::Mock, "", || {
        // SAFETY: the caller's promise.
        let entry = unsafe { name(entry) }?.ok_or(ErrorCode::InvalidNullPointer)?;
        let Some(callback) = callback else { return mock::clear(entry, place) };
        // SAFETY: the caller's promise; the places are those of a call that is under way.
        let hook =
            move |call: &Call<'_>| unsafe { callback(call.places(), call.result(), data.as_ptr()) };
        mock::put(entry, place, hook)?.keep();
        Ok(())
    })
}

/// Puts a hook before an entry.
///
/// # Safety
/// `entry` is null or a C string; any thread may call `callback` with `data` while it is in place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cwMockSetBefore(
    entry: *const c_char,
    callback: Callback,
    data: *mut c_void,
) -> ur_result_t {
    // SAFETY: the caller's promise.
    unsafe { put(Place::Before, entry, callback, data) }
}

/// Puts a hook in the place of an entry.
///
/// # Safety
/// As for `cwMockSetBefore`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cwMockSetReplace(
    entry: *const c_char,
    callback: Callback,
    data: *mut c_void,
) -> ur_result_t {
    // SAFETY: the caller's promise.
    unsafe { put(Place::Instead, entry, callback, data) }
}

/// Puts a hook after an entry.
///
/// # Safety
/// As for `cwMockSetBefore`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cwMockSetAfter(
    entry: *const c_char,
    callback: Callback,
    data: *mut c_void,
) -> ur_result_t {
    // SAFETY: the caller's promise.
    unsafe { put(Place::After, entry, callback, data) }
}

/// Takes away the hooks of an entry, or of all.
///
/// # Safety
/// `entry` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cwMockReset(entry: *const c_char) -> ur_result_t {
    enter(Backend::Mock, "", || {
        // SAFETY: the caller's promise.
        let entry = unsafe { name(entry) }?;
        mock::reset(entry)
    })
}
