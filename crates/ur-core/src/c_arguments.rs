//! What recorded commands and graphs take from C: functions to call, and lists within
//! lists. What any of it is for is its callers'.
#![expect(unsafe_code, reason = "reads what C points at")]
use std::{ffi::c_void, ptr::null_mut};
use ur_adapter::{
    api::Objects,
    callback::HostFunction,
    error::{ErrorCode, Result},
    memory::UsmPtr,
    object::Borrowed,
    shim,
};
use ur_sys::*;

/// A function of C's with what it wants back.
///
/// # Errors
/// `INVALID_NULL_POINTER` for no function.
pub fn function(
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    data: Option<UsmPtr>,
) -> Result<HostFunction> {
    let function = function.ok_or(ErrorCode::InvalidNullPointer)?;
    let data = data.map_or(null_mut(), UsmPtr::as_ptr);
    // SAFETY: C gave both to an entry whose use is that they are called, on any thread.
    Ok(unsafe { HostFunction::new(function, data) })
}
/// Calls the function of a native command with its queue and its data.
pub fn call_native<T>(
    function: unsafe extern "C" fn(ur_queue_handle_t, *mut c_void),
    queue: Borrowed<'_, T>,
    data: Option<UsmPtr>,
) {
    let queue = ur_queue_handle_t(queue.as_handle().cast());
    // SAFETY: C gave the function for exactly this: this queue and this data, during this call.
    unsafe { function(queue, data.map_or(null_mut(), UsmPtr::as_ptr)) };
}
/// What C wants changed of one launch.
pub struct Update<'call, A: Objects> {
    /// The launch.
    pub command: Borrowed<'call, A::ExpCommandBufferCommand>,
    /// The kernel to launch instead.
    pub kernel: Option<Borrowed<'call, A::Kernel>>,
    /// In place of those with the same numbers.
    pub arguments: Vec<ur_exp_kernel_arg_properties_t>,
    /// How many numbers the ranges have each.
    pub dimensions: usize,
    /// The first item, if that changes.
    pub offset: Option<&'call [usize]>,
    /// How many items, if that changes.
    pub global: Option<&'call [usize]>,
    /// How many of them make a group, if that changes.
    pub local: Option<&'call [usize]>,
}
/// Looks at all that a description points at.
///
/// # Errors
/// `INVALID_NULL_HANDLE`, `INVALID_COMMAND_BUFFER_COMMAND_HANDLE_EXP`, `INVALID_KERNEL`;
/// `INVALID_NULL_POINTER` for a list that is missing; `INVALID_WORK_DIMENSION`.
pub fn update<A: Objects>(
    given: &ur_exp_command_buffer_update_kernel_launch_desc_t,
) -> Result<Update<'_, A>> {
    // SAFETY: C's promise for handles that it passes.
    let command = unsafe { shim::handle::<A::ExpCommandBufferCommand>(given.hCommand.0) }?;
    let kernel = match given.hNewKernel.0.is_null() {
        true => None,
        // SAFETY: as above.
        false => Some(unsafe { shim::handle::<A::Kernel>(given.hNewKernel.0) }?),
    };
    let dimensions = given.newWorkDim as usize;
    if !(1..=3).contains(&dimensions) {
        return Err(ur_adapter::error::Error::new(
            ErrorCode::InvalidWorkDimension,
            "a range has 1 to 3 dimensions: repeat the number where it stays the same",
        ));
    }
    let sizes = |list: *mut usize| match list.is_null() {
        true => Ok(None),
        // SAFETY: C's promise for lists that it counts.
        false => unsafe { shim::data(list, dimensions) }.map(Some),
    };
    let arguments = arguments(given)?;
    let (offset, global, local) = (
        sizes(given.pNewGlobalWorkOffset)?,
        sizes(given.pNewGlobalWorkSize)?,
        sizes(given.pNewLocalWorkSize)?,
    );
    Ok(Update { command, kernel, arguments, dimensions, offset, global, local })
}
fn arguments(
    given: &ur_exp_command_buffer_update_kernel_launch_desc_t,
) -> Result<Vec<ur_exp_kernel_arg_properties_t>> {
    use ur_exp_kernel_arg_type_t as T;
    let one = |r#type, index, size, value| ur_exp_kernel_arg_properties_t {
        stype: ur_structure_type_t::EXP_KERNEL_ARG_PROPERTIES,
        pNext: null_mut(),
        r#type,
        index,
        size,
        value,
    };
    let (mems, pointers, values) =
        (given.numNewMemObjArgs, given.numNewPointerArgs, given.numNewValueArgs);
    // SAFETY: C's promise for lists that it counts.
    let mems = unsafe { shim::data(given.pNewMemObjArgList, mems as usize) }?;
    // SAFETY: as above.
    let pointers = unsafe { shim::data(given.pNewPointerArgList, pointers as usize) }?;
    // SAFETY: as above.
    let values = unsafe { shim::data(given.pNewValueArgList, values as usize) }?;
    let mems = mems.iter().map(|mem| {
        let flags = ur_mem_flags_t::default(); // C says nothing of who may write
        let tuple = ur_exp_kernel_arg_mem_obj_tuple_t { hMem: mem.hNewMemObjArg, flags };
        let value = ur_exp_kernel_arg_value_t { memObjTuple: tuple };
        one(T::MEM_OBJ, mem.argIndex, size_of::<*const c_void>(), value)
    });
    let pointers = pointers.iter().map(|pointer| {
        // Not the new pointer itself, but where it is.
        let place = pointer.pNewPointerArg.cast::<*const c_void>();
        let new = match place.is_null() {
            true => std::ptr::null(),
            // SAFETY: not null, hence the address of a pointer, by C's promise.
            false => unsafe { place.read_unaligned() },
        };
        let value = ur_exp_kernel_arg_value_t { pointer: new };
        one(T::POINTER, pointer.argIndex, size_of::<*const c_void>(), value)
    });
    let values = values.iter().map(|new| {
        let local = new.pNewValueArg.is_null();
        let value = ur_exp_kernel_arg_value_t { value: new.pNewValueArg };
        one(if local { T::LOCAL } else { T::VALUE }, new.argIndex, new.argSize, value)
    });
    Ok(mems.chain(pointers).chain(values).collect())
}
