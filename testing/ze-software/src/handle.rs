//! Handles: pointers to small slots with the tag of their kind, which own the object. Slots are never freed,
//! so that a destroyed handle is always recognised.
#![expect(unsafe_code, reason = "objects behind the caller's pointers")]
use std::{
    ffi::c_void,
    sync::{
        Arc,
        atomic::{AtomicPtr, AtomicU64, Ordering},
    },
};
use ze_sys::*;

/// A type of objects behind handles.
pub trait Object: Send + Sync + 'static {
    /// Distinguishes the kinds of handles; not 0 and not [`DEAD`].
    const TAG: u64;
}
/// The tag of a destroyed handle.
const DEAD: u64 = 0xdead_dead_dead_dead;

/// Starts with four words that a loader may use in handles of drivers that support this.
#[repr(C, align(16))]
struct Slot {
    tables: [usize; 4],
    tag: AtomicU64,
    body: AtomicPtr<()>,
}

/// Creates a handle that owns `object` until [`destroy`].
pub fn make<T: Object>(object: T) -> *mut c_void {
    make_shared(Arc::new(object))
}
/// Creates a handle for a shared object.
pub fn make_shared<T: Object>(object: Arc<T>) -> *mut c_void {
    let body = AtomicPtr::new(Arc::into_raw(object).cast_mut().cast());
    Box::into_raw(Box::new(Slot { tables: [0; 4], tag: AtomicU64::new(T::TAG), body })).cast()
}
fn slot<T: Object>(raw: *mut c_void) -> Result<&'static Slot, ze_result_t> {
    if raw.is_null() {
        return Err(ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    }
    if !raw.addr().is_multiple_of(align_of::<Slot>()) {
        eprintln!("ze-software: {raw:p} is no handle");
        return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    // SAFETY: by the driver's contract the caller passes a handle that a call of this driver returned, and
    // slots are never freed.
    let slot = unsafe { &*raw.cast::<Slot>() };
    match slot.tag.load(Ordering::Acquire) {
        tag if tag == T::TAG => Ok(slot),
        tag => {
            let what = if tag == DEAD { "was destroyed" } else { "is of another kind" };
            let wanted = std::any::type_name::<T>();
            eprintln!("ze-software: the handle {raw:p} {what}; {wanted} was expected");
            Err(ZE_RESULT_ERROR_INVALID_ARGUMENT)
        }
    }
}
/// The object behind `raw`.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_NULL_HANDLE` for null; `ZE_RESULT_ERROR_INVALID_ARGUMENT` for a handle of another
/// kind, and for a destroyed one.
pub fn get<T: Object>(raw: *mut c_void) -> Result<Arc<T>, ze_result_t> {
    let body = slot::<T>(raw)?.body.load(Ordering::Acquire).cast::<T>();
    // SAFETY: the tag guarantees that the slot owns a reference of an `Arc<T>`.
    unsafe { Arc::increment_strong_count(body) };
    // SAFETY: the reference was just taken.
    Ok(unsafe { Arc::from_raw(body) })
}
/// Destroys the handle; returns what it owned, for the caller to drop outside all locks.
///
/// # Errors
/// As for [`get`].
pub fn destroy<T: Object>(raw: *mut c_void) -> Result<Arc<T>, ze_result_t> {
    let slot = slot::<T>(raw)?;
    if slot.tag.swap(DEAD, Ordering::AcqRel) == DEAD {
        return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    let body = slot.body.swap(std::ptr::null_mut(), Ordering::AcqRel).cast::<T>();
    // SAFETY: the slot owned this reference, and only this call changed the tag.
    Ok(unsafe { Arc::from_raw(body) })
}
/// Converts a typed handle (`ze_x_handle_t`) for [`get`] and [`destroy`].
macro_rules! raw {
    ($handle:expr) => {
        $handle.cast::<std::ffi::c_void>()
    };
}
pub(crate) use raw;
