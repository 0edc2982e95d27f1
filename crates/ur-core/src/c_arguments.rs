//! Arguments of recorded commands and graphs that callers pass through pointers: functions to call, and the nested
//! lists of update descriptors. This module reads them; its callers interpret them.
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

/// A function that the caller passes, with the pointer to pass to it.
///
/// # Errors
/// `INVALID_NULL_POINTER` if the function is null.
pub fn function(
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    data: Option<UsmPtr>,
) -> Result<HostFunction> {
    let function = function.ok_or(ErrorCode::InvalidNullPointer)?;
    let data = data.map_or(null_mut(), UsmPtr::as_ptr);
    // SAFETY: UR requires the caller to pass a function that may be called with this pointer on any thread.
    Ok(unsafe { HostFunction::new(function, data) })
}
/// Calls the function of a native command with its queue and its data.
pub fn call_native<T>(
    function: unsafe extern "C" fn(ur_queue_handle_t, *mut c_void),
    queue: Borrowed<'_, T>,
    data: Option<UsmPtr>,
) {
    let queue = ur_queue_handle_t(queue.as_handle().cast());
    // SAFETY: UR requires the caller to pass a function that may be called with this queue and this pointer during the
    // entry.
    unsafe { function(queue, data.map_or(null_mut(), UsmPtr::as_ptr)) };
}
/// The requested changes of one recorded launch.
pub struct Update<'call, A: Objects> {
    /// The command that launches.
    pub command: Borrowed<'call, A::ExpCommandBufferCommand>,
    /// The new kernel, if the kernel changes.
    pub kernel: Option<Borrowed<'call, A::Kernel>>,
    /// The new arguments; others are unchanged.
    pub arguments: Vec<ur_exp_kernel_arg_properties_t>,
    /// The number of dimensions of the ranges below.
    pub dimensions: usize,
    /// The new global offset, if it changes.
    pub offset: Option<&'call [usize]>,
    /// The new global size, if it changes.
    pub global: Option<&'call [usize]>,
    /// The new group size, if it changes.
    pub local: Option<&'call [usize]>,
}
/// Reads an update descriptor and everything that it points to.
///
/// # Errors
/// `INVALID_NULL_HANDLE`, `INVALID_COMMAND_BUFFER_COMMAND_HANDLE_EXP`, `INVALID_KERNEL`; `INVALID_NULL_POINTER` for a
/// list that is null but has a length; `INVALID_WORK_DIMENSION`.
pub fn update<A: Objects>(
    given: &ur_exp_command_buffer_update_kernel_launch_desc_t,
) -> Result<Update<'_, A>> {
    // SAFETY: UR requires the caller to pass a command handle; the function checks its kind and that it is live.
    let command = unsafe { shim::handle::<A::ExpCommandBufferCommand>(given.hCommand.0) }?;
    let kernel = match given.hNewKernel.0.is_null() {
        true => None,
        // SAFETY: as above, for a kernel handle.
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
        // SAFETY: UR requires a list that is not null to have `newWorkDim` elements.
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
    // SAFETY: UR requires the caller to pass a list with this many elements.
    let mems = unsafe { shim::data(given.pNewMemObjArgList, mems as usize) }?;
    // SAFETY: as above.
    let pointers = unsafe { shim::data(given.pNewPointerArgList, pointers as usize) }?;
    // SAFETY: as above.
    let values = unsafe { shim::data(given.pNewValueArgList, values as usize) }?;
    let mems = mems.iter().map(|mem| {
        let flags = ur_mem_flags_t::default(); // the descriptor does not specify an access
        let tuple = ur_exp_kernel_arg_mem_obj_tuple_t { hMem: mem.hNewMemObjArg, flags };
        let value = ur_exp_kernel_arg_value_t { memObjTuple: tuple };
        one(T::MEM_OBJ, mem.argIndex, size_of::<*const c_void>(), value)
    });
    let pointers = pointers.iter().map(|pointer| {
        // The member is not the new pointer itself, but the address where it is stored.
        let place = pointer.pNewPointerArg.cast::<*const c_void>();
        let new = match place.is_null() {
            true => std::ptr::null(),
            // SAFETY: UR requires it to be null or the address of a pointer, and it is not null.
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
