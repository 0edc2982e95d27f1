//! How C arguments become Rust ones: what the generated entries are written with.
#![expect(unsafe_code, reason = "the C ABI")]
use crate::{
    error::{Error, ErrorCode, Result, backend, enter, enter_as, last_error_for_c},
    log,
    memory::UsmPtr,
    object::{Backend, Body, Borrowed, Object, Owned},
};
use std::ffi::{CStr, c_char, c_void};
use ur_sys::{
    ur_adapter_handle_t, ur_api_version_t, ur_logger_callback_t, ur_logger_level_t, ur_result_t,
};

/// What `*phEvent` of the extended barrier asks for.
#[derive(Clone, Copy, Debug)]
pub enum BarrierEvent<'call, T: 'static> {
    /// There is no `phEvent`.
    None,
    /// It holds null: make an event.
    Make,
    /// It holds an event: signal that one.
    Signal(Borrowed<'call, T>),
}

/// # Errors
/// `INVALID_NULL_POINTER` for null.
pub fn present<T: ?Sized>(pointer: *const T) -> Result<()> {
    match pointer.is_null() {
        true => Err(ErrorCode::InvalidNullPointer.into()),
        false => Ok(()),
    }
}
/// # Safety
/// As for `Borrowed::new`.
///
/// # Errors
/// As for `Borrowed::new`.
pub unsafe fn handle<'a, T: Body>(raw: *mut c_void) -> Result<Borrowed<'a, T>> {
    // SAFETY: the caller's promise.
    unsafe { Borrowed::new(raw.cast::<Object<T>>()) }
}
/// # Safety
/// As for `Borrowed::new`.
///
/// # Errors
/// As for `Borrowed::new`, but null is no handle.
pub unsafe fn optional_handle<'a, T: Body>(raw: *mut c_void) -> Result<Option<Borrowed<'a, T>>> {
    match raw.is_null() {
        true => Ok(None),
        // SAFETY: the caller's promise.
        false => unsafe { handle(raw) }.map(Some),
    }
}
/// Reads a C array of handles in place: every element is checked, none is copied.
///
/// # Safety
/// `list` is null or points at `count` handles that stay valid and unchanged for `'a`.
///
/// # Errors
/// `INVALID_NULL_POINTER` for no list, `INVALID_VALUE` for an empty one, else as an element.
pub unsafe fn handles<'a, T: Body>(
    list: *const c_void,
    count: u32,
) -> Result<&'a [Borrowed<'a, T>]> {
    present(list)?;
    if count == 0 {
        return Err(Error::new(ErrorCode::InvalidValue, "a list of handles says it is empty"));
    }
    // SAFETY: the caller's promise, one line up.
    let raw = unsafe { std::slice::from_raw_parts(list.cast::<*mut c_void>(), count as usize) };
    for &one in raw {
        // SAFETY: likewise.
        unsafe { handle::<T>(one) }?;
    }
    // SAFETY: `Borrowed` is a transparent non-null pointer, and each element just passed its check.
    Ok(unsafe { std::slice::from_raw_parts(list.cast(), raw.len()) })
}
/// A list of handles that may be absent.
///
/// # Safety
/// As for `handles`.
///
/// # Errors
/// As for `handles`, but null and a count of 0 are an empty list.
pub unsafe fn optional_handles<'a, T: Body>(
    list: *const c_void,
    count: u32,
) -> Result<&'a [Borrowed<'a, T>]> {
    if list.is_null() && count == 0 {
        return Ok(&[]);
    }
    // SAFETY: the caller's promise.
    unsafe { handles(list, count) }
}
/// The wait list of a command: it may be absent, and whatever is wrong with it is one code.
///
/// # Safety
/// As for `handles`.
///
/// # Errors
/// `INVALID_EVENT_WAIT_LIST`.
pub unsafe fn wait_list<'a, T: Body>(
    list: *const c_void,
    count: u32,
) -> Result<&'a [Borrowed<'a, T>]> {
    // SAFETY: the caller's promise.
    unsafe { optional_handles(list, count) }.map_err(|_| {
        Error::new(
            ErrorCode::InvalidEventWaitList,
            "the wait list and its length do not agree, or it has something that is no live event",
        )
    })
}
/// Reads a C array in place.
///
/// # Safety
/// `list` is null or points at `count` elements that stay valid and unchanged for `'a`.
///
/// # Errors
/// `INVALID_NULL_POINTER` for no list, unless the count is 0; `INVALID_SIZE` for one longer than memory.
pub unsafe fn data<'a, T>(list: *const T, count: usize) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    present(list)?;
    if count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(ErrorCode::InvalidSize.into());
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(list, count) })
}
/// # Safety
/// `list` is null or as for `data`.
///
/// # Errors
/// As for `data`.
pub unsafe fn optional_data<'a, T>(list: *const T, count: usize) -> Result<Option<&'a [T]>> {
    match list.is_null() {
        true => Ok(None),
        // SAFETY: the caller's promise.
        false => unsafe { data(list, count) }.map(Some),
    }
}
/// # Safety
/// `pointer` is null or points at a `T` that stays valid and unchanged for `'a`.
///
/// # Errors
/// `INVALID_NULL_POINTER` for null.
pub unsafe fn record<'a, T>(pointer: *const T) -> Result<&'a T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or(ErrorCode::InvalidNullPointer.into())
}
/// # Safety
/// As for `record`.
pub unsafe fn optional_record<'a, T>(pointer: *const T) -> Option<&'a T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }
}
/// # Safety
/// `text` is null or a C string that stays valid and unchanged for `'a`.
///
/// # Errors
/// `INVALID_NULL_POINTER` for null.
pub unsafe fn text<'a>(text: *const c_char) -> Result<&'a CStr> {
    present(text)?;
    // SAFETY: the caller's promise; not null.
    Ok(unsafe { CStr::from_ptr(text) })
}
/// # Safety
/// As for `text`.
pub unsafe fn optional_text<'a>(pointer: *const c_char) -> Option<&'a CStr> {
    match pointer.is_null() {
        true => None,
        // SAFETY: the caller's promise; not null.
        false => Some(unsafe { CStr::from_ptr(pointer) }),
    }
}
/// An address, if there is one.
pub fn optional_address(pointer: *const c_void) -> Option<UsmPtr> {
    UsmPtr::new(pointer).ok()
}
/// Writes a result, unless C does not want it.
///
/// # Safety
/// `to` is null or writable.
pub unsafe fn put<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: not null, hence writable.
        unsafe { to.write(value) };
    }
}
/// Writes the first `count` results, or as many as there are.
///
/// # Safety
/// `to` is null or points at `count` writable elements.
pub unsafe fn put_data<T: Copy>(to: *mut T, count: usize, values: &[T]) {
    if !to.is_null() {
        // SAFETY: not null, hence writable; no more than there are at either.
        unsafe { to.copy_from(values.as_ptr(), count.min(values.len())) };
    }
}
/// Gives C a reference to an object, unless C does not want it.
///
/// # Safety
/// `to` is null or writable.
pub unsafe fn put_handle<T: Body>(to: *mut c_void, object: Owned<T>) {
    if !to.is_null() {
        // SAFETY: not null, hence writable; handles are pointers.
        unsafe { to.cast::<*mut Object<T>>().write(object.publish()) };
    }
}
/// Gives C references to the first `count` objects, and tells how many there are.
///
/// # Safety
/// `list` is null or has room for `count` handles; `total` is null or writable.
pub unsafe fn put_handles<T: Body>(
    list: *mut c_void,
    count: u32,
    total: *mut u32,
    objects: Vec<Owned<T>>,
) {
    // SAFETY: the caller's promise.
    unsafe { put(total, objects.len() as u32) };
    if list.is_null() {
        return;
    }
    for (i, object) in objects.into_iter().take(count as usize).enumerate() {
        // SAFETY: below `count`.
        let to = unsafe { list.cast::<*mut Object<T>>().add(i) };
        // SAFETY: writable, as the caller promised.
        unsafe { to.write(object.publish()) };
    }
}
/// What the extended barrier's `phEvent` asks for.
///
/// # Safety
/// `event` is null or points at a handle as for `handle`.
///
/// # Errors
/// `INVALID_EVENT` for a handle that is no live event of this adapter.
pub unsafe fn barrier_event<'a, T: Body>(event: *const c_void) -> Result<BarrierEvent<'a, T>> {
    if event.is_null() {
        return Ok(BarrierEvent::None);
    }
    // SAFETY: not null, hence readable.
    let inside = unsafe { event.cast::<*mut c_void>().read() };
    // SAFETY: the caller's promise.
    Ok(match unsafe { optional_handle(inside) }? {
        None => BarrierEvent::Make,
        Some(event) => BarrierEvent::Signal(event),
    })
}

/// Counts one more of C's references: the body of `entry` of the adapter whose object `A` is.
///
/// # Safety
/// As for `handle`.
pub unsafe fn retain<A: Body, T: Body>(entry: &'static str, raw: *mut c_void) -> ur_result_t {
    enter_as::<A>(entry, || {
        // SAFETY: the caller's promise.
        let object = unsafe { handle::<T>(raw) }?;
        object.retain()
    })
}
/// Takes one of C's references back: the body of `entry` of the adapter whose object `A` is.
///
/// # Safety
/// As for `handle`; and C gives one reference back.
pub unsafe fn release<A: Body, T: Body>(entry: &'static str, raw: *mut c_void) -> ur_result_t {
    enter_as::<A>(entry, || {
        // SAFETY: the caller's promise.
        let object = unsafe { handle::<T>(raw) }?;
        // SAFETY: the caller's promise.
        unsafe { object.release() }
    })
}

/// `urAdapterGetLastError`: the sentence of the adapter's last failure on this thread, and the driver's
/// status.
///
/// # Safety
/// As C's entry: pointers are null or writable.
pub unsafe extern "C" fn adapter_get_last_error<T: Body>(
    adapter: ur_adapter_handle_t,
    message: *mut *const c_char,
    status: *mut i32,
) -> ur_result_t {
    // SAFETY: forwarded from the C caller's own contract.
    if let Err(error) = unsafe { handle::<T>(adapter.0) } {
        return error.code().into();
    }
    if message.is_null() || status.is_null() {
        return ErrorCode::InvalidNullPointer.into();
    }
    let (sentence, native) = last_error_for_c(backend::<T>()).unwrap_or((c"".as_ptr(), 0));
    // SAFETY: not null, hence writable.
    unsafe { put(message, sentence) };
    // SAFETY: likewise.
    unsafe { put(status, native) };
    ur_result_t::SUCCESS
}
fn checked_level(level: ur_logger_level_t) -> Result<ur_logger_level_t> {
    match level.name() {
        Some(_) => Ok(level),
        None => Err(ErrorCode::InvalidEnumeration.into()),
    }
}
/// `urAdapterSetLoggerCallback`
///
/// # Safety
/// As C's entry: any thread may call `callback` with `user_data`, for good.
pub unsafe extern "C" fn adapter_set_logger_callback<T: Body>(
    adapter: ur_adapter_handle_t,
    callback: ur_logger_callback_t,
    user_data: *mut c_void,
    level: ur_logger_level_t,
) -> ur_result_t {
    enter_as::<T>("urAdapterSetLoggerCallback", || {
        // SAFETY: forwarded from the C caller's own contract.
        unsafe { handle::<T>(adapter.0) }?;
        let callback = callback.ok_or(ErrorCode::InvalidNullPointer)?;
        let level = checked_level(level)?;
        // SAFETY: likewise.
        unsafe { log::set(backend::<T>(), callback, user_data, level) };
        Ok(())
    })
}
/// `urAdapterSetLoggerCallbackLevel`
///
/// # Safety
/// As C's entry.
pub unsafe extern "C" fn adapter_set_logger_callback_level<T: Body>(
    adapter: ur_adapter_handle_t,
    level: ur_logger_level_t,
) -> ur_result_t {
    enter_as::<T>("urAdapterSetLoggerCallbackLevel", || {
        // SAFETY: forwarded from the C caller's own contract.
        unsafe { handle::<T>(adapter.0) }?;
        log::set_level(backend::<T>(), checked_level(level)?);
        Ok(())
    })
}

/// The body of every `urGet*ProcAddrTable`; the symbols themselves live in the leaf crates. The log
/// of the adapter, which is called `name` there, is opened first: a loader that is refused is told nothing but a code.
///
/// # Safety
/// `table` is null or writable.
pub unsafe fn fill<T: Copy>(
    backend: Backend,
    name: &'static str,
    version: ur_api_version_t,
    table: *mut T,
    ours: &T,
) -> ur_result_t {
    log::open(backend, name);
    enter(backend, "urGetProcAddrTable", || {
        present(table)?;
        if version != ur_api_version_t::CURRENT {
            return Err(Error::new(
                ErrorCode::UnsupportedVersion,
                format!("the loader speaks {version:?}; before 1.0 both sides must agree"),
            ));
        }
        // SAFETY: not null, hence writable.
        unsafe { table.write(*ours) };
        Ok(())
    })
}
