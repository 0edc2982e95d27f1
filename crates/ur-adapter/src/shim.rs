//! Conversions of C arguments to Rust values, which the generated entries use.
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

/// What `*phEvent` of the extended barrier requests.
#[derive(Clone, Copy, Debug)]
pub enum BarrierEvent<'call, T: 'static> {
    /// `phEvent` is null.
    None,
    /// `*phEvent` is null: an event is to be made.
    Make,
    /// `*phEvent` is an event, which is to be signalled.
    Signal(Borrowed<'call, T>),
}

/// Checks that a pointer is not null.
///
/// # Errors
/// `INVALID_NULL_POINTER` for null.
pub fn present<T: ?Sized>(pointer: *const T) -> Result<()> {
    match pointer.is_null() {
        true => Err(ErrorCode::InvalidNullPointer.into()),
        false => Ok(()),
    }
}
/// Checks a handle.
///
/// # Safety
/// As for `Borrowed::new`.
///
/// # Errors
/// As for `Borrowed::new`.
pub unsafe fn handle<'a, T: Body>(raw: *mut c_void) -> Result<Borrowed<'a, T>> {
    // SAFETY: the caller promised what the called function requires.
    unsafe { Borrowed::new(raw.cast::<Object<T>>()) }
}
/// Checks a handle that may be null.
///
/// # Safety
/// As for `Borrowed::new`.
///
/// # Errors
/// As for `Borrowed::new`, except that null is `None`.
pub unsafe fn optional_handle<'a, T: Body>(raw: *mut c_void) -> Result<Option<Borrowed<'a, T>>> {
    match raw.is_null() {
        true => Ok(None),
        // SAFETY: the caller promised what the called function requires.
        false => unsafe { handle(raw) }.map(Some),
    }
}
/// Checks a C array of handles in place, without copying it.
///
/// # Safety
/// `list` is null or points at `count` handles that stay valid and unchanged for `'a`.
///
/// # Errors
/// `INVALID_NULL_POINTER` for null, `INVALID_VALUE` for a count of 0, otherwise the error of an element.
pub unsafe fn handles<'a, T: Body>(
    list: *const c_void,
    count: u32,
) -> Result<&'a [Borrowed<'a, T>]> {
    present(list)?;
    if count == 0 {
        return Err(Error::new(ErrorCode::InvalidValue, "a list of handles says it is empty"));
    }
    // SAFETY: not null, and the caller promised `count` handles.
    let raw = unsafe { std::slice::from_raw_parts(list.cast::<*mut c_void>(), count as usize) };
    for &one in raw {
        // SAFETY: the caller promised that each is valid as for `Borrowed::new`.
        unsafe { handle::<T>(one) }?;
    }
    // SAFETY: `Borrowed` is transparent over a non-null pointer, and each element was checked above.
    Ok(unsafe { std::slice::from_raw_parts(list.cast(), raw.len()) })
}
/// A list of handles that may be absent.
///
/// # Safety
/// As for `handles`.
///
/// # Errors
/// As for `handles`, except that null with a count of 0 is an empty list.
pub unsafe fn optional_handles<'a, T: Body>(
    list: *const c_void,
    count: u32,
) -> Result<&'a [Borrowed<'a, T>]> {
    if list.is_null() && count == 0 {
        return Ok(&[]);
    }
    // SAFETY: the caller promised what the called function requires.
    unsafe { handles(list, count) }
}
/// The wait list of a command, which may be absent. All errors have one code.
///
/// # Safety
/// As for `handles`.
///
/// # Errors
/// `INVALID_EVENT_WAIT_LIST`
#[inline(always)] // most commands have none: then neither a call nor a result in memory
pub unsafe fn wait_list<'a, T: Body>(
    list: *const c_void,
    count: u32,
) -> Result<&'a [Borrowed<'a, T>]> {
    if list.is_null() && count == 0 {
        return Ok(&[]);
    }
    // SAFETY: the caller promised what the called function requires.
    unsafe { filled_wait_list(list, count) }
}
/// # Safety
/// As for [`wait_list`].
#[inline(never)]
unsafe fn filled_wait_list<'a, T: Body>(
    list: *const c_void,
    count: u32,
) -> Result<&'a [Borrowed<'a, T>]> {
    // SAFETY: the caller promised what the called function requires.
    unsafe { handles(list, count) }.map_err(|_| {
        Error::new(
            ErrorCode::InvalidEventWaitList,
            "the wait list and its length do not agree, or it has something that is no live event",
        )
    })
}
/// A C array, read in place.
///
/// # Safety
/// `list` is null or points at `count` elements that stay valid and unchanged for `'a`.
///
/// # Errors
/// `INVALID_NULL_POINTER` for null, unless the count is 0; `INVALID_SIZE` if it exceeds the address space.
pub unsafe fn data<'a, T>(list: *const T, count: usize) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    present(list)?;
    if count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(ErrorCode::InvalidSize.into());
    }
    // SAFETY: the caller promised what the called function requires.
    Ok(unsafe { std::slice::from_raw_parts(list, count) })
}
/// A C array that may be absent.
///
/// # Safety
/// `list` is null or as for `data`.
///
/// # Errors
/// As for `data`.
pub unsafe fn optional_data<'a, T>(list: *const T, count: usize) -> Result<Option<&'a [T]>> {
    match list.is_null() {
        true => Ok(None),
        // SAFETY: the caller promised what the called function requires.
        false => unsafe { data(list, count) }.map(Some),
    }
}
/// A struct passed by pointer.
///
/// # Safety
/// `pointer` is null or points at a `T` that stays valid and unchanged for `'a`.
///
/// # Errors
/// `INVALID_NULL_POINTER` for null.
pub unsafe fn record<'a, T>(pointer: *const T) -> Result<&'a T> {
    // SAFETY: the caller promised what the called function requires.
    unsafe { pointer.as_ref() }.ok_or(ErrorCode::InvalidNullPointer.into())
}
/// A struct passed by pointer, which may be null.
///
/// # Safety
/// As for `record`.
pub unsafe fn optional_record<'a, T>(pointer: *const T) -> Option<&'a T> {
    // SAFETY: the caller promised what the called function requires.
    unsafe { pointer.as_ref() }
}
/// A C string.
///
/// # Safety
/// `text` is null or a C string that stays valid and unchanged for `'a`.
///
/// # Errors
/// `INVALID_NULL_POINTER` for null.
pub unsafe fn text<'a>(text: *const c_char) -> Result<&'a CStr> {
    present(text)?;
    // SAFETY: not null, and a C string as the caller promised.
    Ok(unsafe { CStr::from_ptr(text) })
}
/// A C string that may be null.
///
/// # Safety
/// As for `text`.
pub unsafe fn optional_text<'a>(pointer: *const c_char) -> Option<&'a CStr> {
    match pointer.is_null() {
        true => None,
        // SAFETY: not null, and a C string as the caller promised.
        false => Some(unsafe { CStr::from_ptr(pointer) }),
    }
}
/// An address; `None` for null.
pub fn optional_address(pointer: *const c_void) -> Option<UsmPtr> {
    UsmPtr::new(pointer).ok()
}
/// Writes a result, unless the caller passed null for it.
///
/// # Safety
/// `to` is null or writable.
pub unsafe fn put<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: not null, hence writable.
        unsafe { to.write(value) };
    }
}
/// Writes the first `count` results, or all if there are fewer.
///
/// # Safety
/// `to` is null or points at `count` writable elements.
pub unsafe fn put_data<T: Copy>(to: *mut T, count: usize, values: &[T]) {
    if !to.is_null() {
        // SAFETY: not null, hence writable; no more elements than either side has.
        unsafe { to.copy_from(values.as_ptr(), count.min(values.len())) };
    }
}
/// Gives the caller a reference to an object, unless it passed null for it.
///
/// # Safety
/// `to` is null or writable.
pub unsafe fn put_handle<T: Body>(to: *mut c_void, object: Owned<T>) {
    if !to.is_null() {
        // SAFETY: not null, hence writable; handles are pointers.
        unsafe { to.cast::<*mut Object<T>>().write(object.publish()) };
    }
}
/// Gives the caller references to the first `count` objects, and writes the total number.
///
/// # Safety
/// `list` is null or has space for `count` handles; `total` is null or writable.
pub unsafe fn put_handles<T: Body>(
    list: *mut c_void,
    count: u32,
    total: *mut u32,
    objects: Vec<Owned<T>>,
) {
    // SAFETY: the caller promised what the called function requires.
    unsafe { put(total, objects.len() as u32) };
    if list.is_null() {
        return;
    }
    for (i, object) in objects.into_iter().take(count as usize).enumerate() {
        // SAFETY: the index is below `count`.
        let to = unsafe { list.cast::<*mut Object<T>>().add(i) };
        // SAFETY: writable, as the caller promised.
        unsafe { to.write(object.publish()) };
    }
}
/// Reads the `phEvent` argument of the extended barrier.
///
/// # Safety
/// `event` is null or points at a handle that is valid as for `handle`, or null.
///
/// # Errors
/// `INVALID_EVENT` for a handle that is not a live event of this adapter.
pub unsafe fn barrier_event<'a, T: Body>(event: *const c_void) -> Result<BarrierEvent<'a, T>> {
    if event.is_null() {
        return Ok(BarrierEvent::None);
    }
    // SAFETY: not null, hence readable.
    let inside = unsafe { event.cast::<*mut c_void>().read() };
    // SAFETY: the caller promised what the called function requires.
    Ok(match unsafe { optional_handle(inside) }? {
        None => BarrierEvent::Make,
        Some(event) => BarrierEvent::Signal(event),
    })
}

/// Adds one of the caller's references: the body of `entry` of the adapter to which objects `A` belong.
///
/// # Safety
/// As for `handle`.
pub unsafe fn retain<A: Body, T: Body>(entry: &'static str, raw: *mut c_void) -> ur_result_t {
    enter_as::<A>(entry, || {
        // SAFETY: the caller promised what the called function requires.
        let object = unsafe { handle::<T>(raw) }?;
        object.retain()
    })
}
/// Releases one of the caller's references: the body of `entry` of the adapter to which objects `A` belong.
///
/// # Safety
/// As for `handle`; and the caller gives up one reference.
pub unsafe fn release<A: Body, T: Body>(entry: &'static str, raw: *mut c_void) -> ur_result_t {
    enter_as::<A>(entry, || {
        // SAFETY: the caller promised what the called function requires.
        let object = unsafe { handle::<T>(raw) }?;
        // SAFETY: the caller promised what the called function requires.
        unsafe { object.release() }
    })
}

/// `urAdapterGetLastError`: the sentence of the adapter's last failure on this thread, and the driver's status.
///
/// # Safety
/// The entry's contract: the pointers are null or writable.
pub unsafe extern "C" fn adapter_get_last_error<T: Body>(
    adapter: ur_adapter_handle_t,
    message: *mut *const c_char,
    status: *mut i32,
) -> ur_result_t {
    // SAFETY: the entry's contract, which its caller upholds: `adapter` is a handle or null.
    if let Err(error) = unsafe { handle::<T>(adapter.0) } {
        return error.code().into();
    }
    if message.is_null() || status.is_null() {
        return ErrorCode::InvalidNullPointer.into();
    }
    let (sentence, native) = last_error_for_c(backend::<T>()).unwrap_or((c"".as_ptr(), 0));
    // SAFETY: not null, hence writable.
    unsafe { put(message, sentence) };
    // SAFETY: as above.
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
/// The entry's contract: `callback` may be called with `user_data` from any thread, for ever.
pub unsafe extern "C" fn adapter_set_logger_callback<T: Body>(
    adapter: ur_adapter_handle_t,
    callback: ur_logger_callback_t,
    user_data: *mut c_void,
    level: ur_logger_level_t,
) -> ur_result_t {
    enter_as::<T>("urAdapterSetLoggerCallback", || {
        // SAFETY: the entry's contract, which its caller upholds: `adapter` is a handle or null.
        unsafe { handle::<T>(adapter.0) }?;
        let callback = callback.ok_or(ErrorCode::InvalidNullPointer)?;
        let level = checked_level(level)?;
        // SAFETY: the entry's contract, which its caller upholds: the callback may be called from any thread.
        unsafe { log::set(backend::<T>(), callback, user_data, level) };
        Ok(())
    })
}
/// `urAdapterSetLoggerCallbackLevel`
///
/// # Safety
/// The entry's contract: `adapter` is a handle or null.
pub unsafe extern "C" fn adapter_set_logger_callback_level<T: Body>(
    adapter: ur_adapter_handle_t,
    level: ur_logger_level_t,
) -> ur_result_t {
    enter_as::<T>("urAdapterSetLoggerCallbackLevel", || {
        // SAFETY: the entry's contract, which its caller upholds: `adapter` is a handle or null.
        unsafe { handle::<T>(adapter.0) }?;
        log::set_level(backend::<T>(), checked_level(level)?);
        Ok(())
    })
}

/// The body of every `urGet*ProcAddrTable`; the symbols are in the leaf crates. Opens the adapter's log under `name`
/// first, because a loader that is refused gets only a code.
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
