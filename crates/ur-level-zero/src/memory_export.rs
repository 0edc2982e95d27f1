//! Device memory that other programs and APIs are given as a file descriptor. It is allocated on its
//! own, for that; every export is another descriptor, C's to close.
use super::{
    Context, Device, LevelZero,
    backing::{ALIGNMENT, Chunk},
    memory::{self, Allocation},
    native::{device as native, ipc, memory::Sort},
    platform::check_fork,
};
use std::{
    ffi::{c_int, c_void},
    os::fd::IntoRawFd,
};
use ur_adapter::{
    api::MemoryExportExpApi,
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Borrowed, Object},
};
use ur_core::{
    memory::allocation::Home,
    over_driver::{usm, usm_pool::HasUsm},
};
use ur_sys::ur_exp_external_mem_type_t;
use ze_sys::{ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF, ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD};

fn handle<T>(object: &Object<T>) -> usize {
    object.as_handle().addr()
}
/// The driver's flag for a kind of descriptors.
///
/// # Errors
/// `UNSUPPORTED_ENUMERATION` for what the device does not export.
fn flag(device: &Device, wished: ur_exp_external_mem_type_t) -> Result<u32> {
    let flag = match wished {
        ur_exp_external_mem_type_t::OPAQUE_FD => ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD,
        ur_exp_external_mem_type_t::DMA_BUF => ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF,
        _ => 0,
    };
    let offered = native::external(device.raw())?.memoryAllocationExportTypes;
    match flag & offered {
        0 => Err(Error::new(
            ErrorCode::UnsupportedEnumeration,
            format!("this device does not export its memory as {wished:?}"),
        )),
        flag => Ok(flag),
    }
}

impl MemoryExportExpApi for LevelZero {
    fn memory_export_alloc_exportable_memory_exp(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        alignment: usize,
        size: usize,
        handle_type: ur_exp_external_mem_type_t,
    ) -> Result<UsmPtr> {
        check_fork()?;
        context.check(device)?;
        let flag = flag(&device, handle_type)?;
        Self::check_size(&device, size)
            .map_err(|error| error.with_code(ErrorCode::UnsupportedSize))?;
        if alignment != 0 && !alignment.is_power_of_two() {
            let why = format!("an alignment of {alignment} is no power of two");
            return Err(Error::new(ErrorCode::UnsupportedAlignment, why));
        }
        if alignment > ALIGNMENT {
            let why = format!("an alignment of {alignment} exceeds the largest, {ALIGNMENT}");
            return Err(Error::new(ErrorCode::InvalidValue, why));
        }
        let home = Home { context: handle(&context), device: handle(&device), pool: 0 };
        let (native, device, sort) = (context.native(), device.own()?, Sort::Exportable(flag));
        let chunk = Chunk::of_sort(sort, native, &device, size, alignment)?;
        Ok(memory::adopt(home, size, chunk))
    }
    fn memory_export_free_exportable_memory_exp(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        mem: UsmPtr,
    ) -> Result<()> {
        check_fork()?;
        context.check(device)?;
        let refused = |error: Error| error.with_code(ErrorCode::InvalidValue); // as documented
        match Allocation::find(mem)
            .filter(|found| found.memory().is_some_and(|memory| memory.exportable().is_some()))
        {
            Some(_) => usm::free::<LevelZero>(&context, mem).map_err(refused),
            None => nothing(mem),
        }
    }
    /// Writes an `int`.
    fn memory_export_export_memory_handle_exp(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        handle_type: ur_exp_external_mem_type_t,
        mem: UsmPtr,
        to: *mut c_void,
    ) -> Result<()> {
        check_fork()?;
        context.check(device)?;
        let flag = flag(&device, handle_type)?;
        let is_it = |found: &Allocation| {
            found.is_of(handle(&context)) && found.base() == mem && !found.is_freed()
        };
        let found = Allocation::find(mem).filter(|found| is_it(found));
        let Some(chunk) = found.as_ref().and_then(|found| found.memory()?.exportable()) else {
            return nothing(mem);
        };
        let to = UsmPtr::new(to)?;
        let number: c_int = ipc::exported(chunk.piece(), flag)?.into_raw_fd();
        to.write(number);
        Ok(())
    }
}
fn nothing<T>(mem: UsmPtr) -> Result<T> {
    let why = format!("{mem:?} is not the start of exportable memory of this context");
    Err(Error::new(ErrorCode::InvalidValue, why))
}
