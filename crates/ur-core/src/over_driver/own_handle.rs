//! Native handles of objects that a driver has nothing for. An object's native handle is then the number of its own
//! handle: good within this process, for as long as a program holds a reference to the object, whoever made it. Creating
//! an object from a native handle gives one more reference to that very object; `isNativeHandleOwned` makes no
//! difference, as such a handle holds no reference that could change hands. Any other number is refused; numbers are
//! looked up and what lies at them is never touched.
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Body, Object, Owned},
};
use ur_sys::ur_native_handle_t;

/// The native handle of `object`.
///
/// # Errors
/// None; as entries answer.
pub fn of<T: Body>(object: &Object<T>) -> Result<ur_native_handle_t> {
    Ok(object.as_handle().expose_provenance())
}
/// The object of a native handle.
///
/// # Errors
/// The kind's own code for what is no native handle of a live object of this kind.
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
/// # Errors
/// `INVALID_CONTEXT` where what a native handle stands for belongs to another context than the caller says.
pub fn check_context<C>(own: &Object<C>, said: &Object<C>) -> Result<()> {
    match own.same(said) {
        true => Ok(()),
        false => Err(Error::new(
            ErrorCode::InvalidContext,
            "the native handle is that of an object of another context",
        )),
    }
}
