//! Native handles for drivers that have none. An object's native handle is then the address of its UR handle. It is
//! valid in this process, as long as the program holds a reference to the object. Creating an object from it returns
//! another reference to the same object; `isNativeHandleOwned` makes no difference, because the native handle itself
//! holds no reference. Other values are refused: they are only looked up, never dereferenced.
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Body, Object, Owned},
};
use ur_sys::ur_native_handle_t;

/// The native handle of `object`.
///
/// # Errors
/// None; a `Result` because entries return one.
pub fn of<T: Body>(object: &Object<T>) -> Result<ur_native_handle_t> {
    Ok(object.as_handle().expose_provenance())
}
/// The object of a native handle.
///
/// # Errors
/// The kind's own code for a value that is not the native handle of a live object of this kind.
pub fn find<T: Body>(native: ur_native_handle_t) -> Result<Owned<T>> {
    Owned::find(native).map_err(|error| {
        Error::new(
            error.code(),
            format!(
                "{native:#x} is no native handle of such an object: use what GetNativeHandle \
                 answered in this process, while the object lives"
            ),
        )
    })
}
/// Checks that an object found by its native handle belongs to the context that the caller passes.
///
/// # Errors
/// `INVALID_CONTEXT` if it belongs to another context.
pub fn check_context<C>(own: &Object<C>, said: &Object<C>) -> Result<()> {
    Error::unless(
        own.same(said),
        ErrorCode::InvalidContext,
        || "the native handle is that of an object of another context",
    )
}
