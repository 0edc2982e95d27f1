//! Exportable memory: device memory that other programs and APIs can import through a file descriptor. It has an
//! allocation of its own. Each export makes a new descriptor, which the caller must close.
use super::{
    OverDriver,
    usm_pool::{Device, HasUsm},
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
    api::{MemoryExportExpApi, Objects},
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Borrowed, Object},
};
use ur_hal::{DescriptorKind, ExportsMemory, Memory as _};
use ur_sys::ur_exp_external_mem_type_t;

type Context<D> = <D as Objects>::Context;

/// A driver whose allocations may be exportable memory.
pub trait HasExports: HasUsm<Memory: Exported<Self::Exportable>> + ExportsMemory {}
impl<D: HasUsm<Memory: Exported<D::Exportable>> + ExportsMemory> HasExports for D {}
/// What an allocation consists of, if it may be exportable memory.
pub trait Exported<M>: Memory {
    /// Exportable memory.
    fn exportable(memory: M) -> Self;
    /// The memory, if it is exportable.
    fn as_exportable(&self) -> Option<&M>;
}
/// The kind of descriptors that a caller asks for.
///
/// # Errors
/// `UNSUPPORTED_ENUMERATION` for a type that the device does not export.
fn kind<D: HasExports>(
    device: &Device<D>,
    wished: ur_exp_external_mem_type_t,
) -> Result<DescriptorKind> {
    let offered = D::descriptor_kinds(device.driver())?;
    let kind = match wished {
        ur_exp_external_mem_type_t::OPAQUE_FD => Some(DescriptorKind::Opaque),
        ur_exp_external_mem_type_t::DMA_BUF => Some(DescriptorKind::DmaBuf),
        _ => None,
    };
    kind.filter(|kind| offered.contains(kind)).ok_or_else(|| {
        let why = format!("this device does not export its memory as {wished:?}");
        Error::new(ErrorCode::UnsupportedEnumeration, why)
    })
}

fn handle<T>(object: &Object<T>) -> usize {
    object.as_handle().addr()
}
impl<D: HasExports> MemoryExportExpApi for OverDriver<D> {
    fn memory_export_alloc_exportable_memory_exp(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        alignment: usize,
        size: usize,
        handle_type: ur_exp_external_mem_type_t,
    ) -> Result<UsmPtr> {
        context.check(device)?;
        let kind = kind::<D>(&device, handle_type)?;
        D::check_size(&device, size)
            .map_err(|error| error.with_code(ErrorCode::UnsupportedSize))?;
        if alignment != 0 && !alignment.is_power_of_two() {
            let why = format!("an alignment of {alignment} is no power of two");
            return Error::refuse(ErrorCode::UnsupportedAlignment, why);
        }
        let align = judged(alignment, 0, D::LARGEST_ALIGNMENT)?;
        let (context_handle, device_handle) = (handle(&context), handle(&device));
        let home = Home { context: context_handle, device: device_handle, ..Home::default() };
        deferred_free::sweep::<D::Memory>();
        let made = D::exportable(context.driver(), device.driver(), kind, size, align)?;
        let (base, memory) = (made.range().start().into(), D::Memory::exportable(made));
        Ok(Allocation::enter(base, size, Usm::Device, home, memory).base())
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
        freeing.map_err(refused)?.finish(|since| D::submitted(&context, since));
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
        let kind = kind::<D>(&device, handle_type)?;
        let found = Allocation::<D::Memory>::find(mem).filter(|found| {
            found.is_of(handle(&context)) && found.base() == mem && !found.is_freed()
        });
        let memory = found.as_ref().and_then(|found| found.memory()?.as_exportable());
        let Some(memory) = memory else {
            let why = format!("{mem:?} is not the start of exportable memory of this context");
            return Error::refuse(ErrorCode::InvalidValue, why);
        };
        let to = UsmPtr::new(to)?;
        let number: c_int = D::descriptor(memory, kind)?.into_raw_fd();
        to.write(number);
        Ok(())
    }
}
