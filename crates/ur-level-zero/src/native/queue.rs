//! Properties of native queue handles, passed through pointers of the caller.
#![expect(unsafe_code, reason = "reads and writes through pointers of C's")]
use super::super::driver::driver;
use std::ptr::NonNull;
use ur_sys::ur_queue_native_desc_t;

/// Tells the caller that the native handle is an immediate command list, if it asks for that.
pub fn tell_immediate(desc: Option<&ur_queue_native_desc_t>) {
    let Some(asked) = desc.and_then(|desc| NonNull::new(desc.pNativeData.cast::<i32>())) else {
        return;
    };
    // SAFETY: by convention of Unified Runtime's adapters the pointer is to an `int32_t` for the answer.
    unsafe { asked.write(1) };
}
/// Whether the caller states that its native handle is an immediate command list; `true` if it states
/// nothing.
pub fn is_immediate(desc: &ur_queue_native_desc_t) -> bool {
    let said = NonNull::new(desc.pNativeData.cast::<i32>());
    // SAFETY: by convention of Unified Runtime's adapters the pointer is to an `int32_t`.
    said.is_none_or(|said| unsafe { said.read() } != 0)
}
/// Whether the driver can execute regular lists in immediate ones.
pub fn can_batch() -> bool {
    driver().has("command_list_immediate_append_command_lists_exp")
}
