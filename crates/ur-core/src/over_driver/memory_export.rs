//! Exportable memory: device memory that other programs and APIs can import through a file descriptor. It has an
//! allocation of its own. Each export makes a new descriptor, which the caller must close.
use super::{
    OverDriver,
    usm_pool::{Context, Device, HasUsm, check_size},
};
use crate::memory::{
    allocation::{Allocation, Freeing, Home, Memory},
    usm::alignment as judged,
};
use std::{
    ffi::{c_int, c_void},
    os::fd::{IntoRawFd, OwnedFd},
};
use ur_adapter::{
    api::MemoryExportExpApi,
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Borrowed, Object},
};
use ur_sys::ur_exp_external_mem_type_t;

/// A driver that can export memory to other programs and APIs.
pub trait ExportsMemory: HasUsm {
    /// The driver's value for a type of descriptor.
    type Form: Copy;
    /// The driver's value for a type of descriptor.
    ///
    /// # Errors
    /// `UNSUPPORTED_ENUMERATION` for a type that the device does not export.
    fn form(device: &Device<Self>, wished: ur_exp_external_mem_type_t) -> Result<Self::Form>;
    /// Allocates device memory that can be exported in this form. `request`: what it belongs to, its size, and its
    /// alignment in bytes.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn allocate_exportable(
        context: Borrowed<'_, Context<Self>>,
        device: Borrowed<'_, Device<Self>>,
        form: Self::Form,
        request: (Home, usize, usize),
    ) -> Result<UsmPtr>;
    /// A new descriptor of exportable memory.
    ///
    /// # Errors
    /// `INVALID_VALUE` if the memory is not exportable. Returns the driver's error, mapped as in `error.rs`.
    fn descriptor(found: &Allocation<Self::Memory>, form: Self::Form) -> Result<OwnedFd>;
}

fn handle<T>(object: &Object<T>) -> usize {
    object.as_handle().addr()
}
fn none<T>(mem: UsmPtr) -> Result<T> {
    let why = format!("{mem:?} is not the start of exportable memory of this context");
    Error::refuse(ErrorCode::InvalidValue, why)
}

impl<D: ExportsMemory> MemoryExportExpApi for OverDriver<D> {
    fn memory_export_alloc_exportable_memory_exp(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        alignment: usize,
        size: usize,
        handle_type: ur_exp_external_mem_type_t,
    ) -> Result<UsmPtr> {
        context.check(device)?;
        let form = D::form(&device, handle_type)?;
        check_size::<D>(&device, size, ErrorCode::UnsupportedSize)?;
        if alignment != 0 && !alignment.is_power_of_two() {
            let why = format!("an alignment of {alignment} is no power of two");
            return Error::refuse(ErrorCode::UnsupportedAlignment, why);
        }
        let align = judged(alignment, 0, D::LARGEST_ALIGNMENT)?;
        let (context_handle, device_handle) = (handle(&context), handle(&device));
        let home = Home { context: context_handle, device: device_handle, ..Home::default() };
        D::allocate_exportable(context, device, form, (home, size, align))
    }
    fn memory_export_free_exportable_memory_exp(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        mem: UsmPtr,
    ) -> Result<()> {
        context.check(device)?;
        let check = |memory: &D::Memory| match memory.is_exportable() {
            true => Ok(()),
            false => Err(format!("{mem:?} is not exportable: free it with urUSMFree")),
        };
        let freeing = Freeing::begin_if(handle(&context), mem, check);
        let refused = |error: Error| error.with_code(ErrorCode::InvalidValue); // the documented code
        freeing.map_err(refused)?.finish(handle(&context));
        Ok(())
    }
    /// Writes the descriptor to `to`, as an `int`.
    fn memory_export_export_memory_handle_exp(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        handle_type: ur_exp_external_mem_type_t,
        mem: UsmPtr,
        to: *mut c_void,
    ) -> Result<()> {
        context.check(device)?;
        let form = D::form(&device, handle_type)?;
        let is_it = |found: &Allocation<D::Memory>| {
            found.memory().is_some_and(Memory::is_exportable)
                && found.is_of(handle(&context))
                && found.base() == mem
                && !found.is_freed()
        };
        let Some(found) = Allocation::<D::Memory>::find(mem).filter(|found| is_it(found)) else {
            return none(mem);
        };
        let to = UsmPtr::new(to)?;
        let number: c_int = D::descriptor(&found, form)?.into_raw_fd();
        to.write(number);
        Ok(())
    }
}
