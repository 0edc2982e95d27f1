//! Calls the function that C gives with `urEnqueueNativeCommandExp`.
#![expect(unsafe_code, reason = "calls a function that C gave")]
use std::ptr::null_mut;
use ur_adapter::{
    error::{ErrorCode, Result},
    memory::UsmPtr,
};
use ur_sys::{ur_exp_enqueue_native_command_function_t, ur_queue_handle_t};

/// Calls `function` with the queue and `data`.
///
/// # Errors
/// `INVALID_NULL_POINTER` for no function.
pub fn call(
    function: ur_exp_enqueue_native_command_function_t,
    queue: ur_queue_handle_t,
    data: Option<UsmPtr>,
) -> Result<()> {
    let function = function.ok_or(ErrorCode::InvalidNullPointer)?;
    // SAFETY: C gave the function for exactly this: this queue and this data, during this call.
    unsafe { function(queue, data.map_or(null_mut(), UsmPtr::as_ptr)) };
    Ok(())
}
