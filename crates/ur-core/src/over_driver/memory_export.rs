//! Exportable memory: device memory that other programs and APIs can import through a file descriptor. It has an
//! allocation of its own. Each export makes a new descriptor, which the caller must close.
use super::{
    OverDriver,
    objects::handle,
    usm_pool::{Context, Device, HasUsm, check_size, enter},
};
use crate::memory::{
    allocation::{Allocation, Freeing, Home, Memory, Usm},
    deferred_free,
    usm::alignment as judged,
};
use std::{
    ffi::{c_int, c_void},
    os::fd::IntoRawFd,
};
use ur_adapter::{
    api::MemoryExportExpApi,
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Borrowed,
};
use ur_hal::{ExportsMemory, ExternalForm};
use ur_sys::ur_exp_external_mem_type_t;

/// The form that a type of descriptor has, if the device exports its memory in that.
///
/// # Errors
/// `UNSUPPORTED_ENUMERATION` for any other type.
fn form<D: HasUsm + ExportsMemory>(
    device: &Device<D>,
    wished: ur_exp_external_mem_type_t,
) -> Result<ExternalForm> {
    let known = match wished {
        ur_exp_external_mem_type_t::OPAQUE_FD => Some(ExternalForm::Opaque),
        ur_exp_external_mem_type_t::DMA_BUF => Some(ExternalForm::DmaBuf),
        _ => None,
    };
    match known {
        Some(form) if D::exports(device.driver(), form)? => Ok(form),
        _ => Error::refuse(
            ErrorCode::UnsupportedEnumeration,
            format!("this device does not export its memory as {wished:?}"),
        ),
    }
}

fn none<T>(mem: UsmPtr) -> Result<T> {
    let why = format!("{mem:?} is not the start of exportable memory of this context");
    Error::refuse(ErrorCode::InvalidValue, why)
}

impl<D: HasUsm + ExportsMemory> MemoryExportExpApi for OverDriver<D> {
    fn memory_export_alloc_exportable_memory_exp(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        alignment: usize,
        size: usize,
        handle_type: ur_exp_external_mem_type_t,
    ) -> Result<UsmPtr> {
        context.check(device)?;
        let form = form::<D>(&device, handle_type)?;
        check_size::<D>(&device, size, ErrorCode::UnsupportedSize)?;
        if alignment != 0 && !alignment.is_power_of_two() {
            let why = format!("an alignment of {alignment} is no power of two");
            return Error::refuse(ErrorCode::UnsupportedAlignment, why);
        }
        let align = judged(alignment, 0, D::LARGEST_ALIGNMENT)?;
        let (context_handle, device_handle) = (handle(&context), handle(&device));
        let home = Home { context: context_handle, device: device_handle, ..Home::default() };
        deferred_free::sweep::<D::Memory>();
        let (context, device) = (context.driver(), device.driver());
        let memory = D::allocate_exportable(context, device, form, (size, align))?;
        Ok(enter::<D>(memory, Usm::Device, (home, size), true))
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
        let form = form::<D>(&device, handle_type)?;
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
        let within = found.memory().and_then(Memory::within);
        let (memory, _) = within.ok_or(ErrorCode::InvalidValue)?;
        let number: c_int = D::descriptor(memory, form)?.into_raw_fd();
        to.write(number);
        Ok(())
    }
}
