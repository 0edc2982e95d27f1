//! Device memory that other programs and APIs are given as a file descriptor: a memfd of its own,
//! of which each export is another descriptor, C's to close. Whoever has one can map all of it.
use super::{
    Context, Cpu, Device,
    backing::ALIGNMENT,
    mapping::page,
    memory::{self, Allocation, Memory, exposed},
    native,
    usm::check_size,
};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use std::{
    ffi::{c_int, c_void},
    os::fd::{IntoRawFd, OwnedFd},
    ptr,
};
use ur_adapter::{
    api::MemoryExportExpApi,
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Borrowed, Object},
};
use ur_core::memory::allocation::Home;
use ur_sys::ur_exp_external_mem_type_t;

fn handle<T>(object: &Object<T>) -> usize {
    object.as_handle().addr()
}

/// # Errors
/// `UNSUPPORTED_ENUMERATION` for all but descriptors. A memfd is no dma-buf: what drivers ask of
/// one it does not know.
fn check_type(wished: ur_exp_external_mem_type_t) -> Result<()> {
    match wished {
        ur_exp_external_mem_type_t::OPAQUE_FD => Ok(()),
        other => Err(Error::new(
            ErrorCode::UnsupportedEnumeration,
            format!("memory of a CPU is exported as OPAQUE_FD and not as {other:?}"),
        )),
    }
}

impl MemoryExportExpApi for Cpu {
    fn memory_export_alloc_exportable_memory_exp(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        alignment: usize,
        size: usize,
        handle_type: ur_exp_external_mem_type_t,
    ) -> Result<UsmPtr> {
        context.check(device)?;
        check_type(handle_type)?;
        check_size(size, ErrorCode::UnsupportedSize)?;
        if alignment != 0 && !alignment.is_power_of_two() {
            let why = format!("an alignment of {alignment} is no power of two");
            return Err(Error::new(ErrorCode::UnsupportedAlignment, why));
        }
        if alignment > ALIGNMENT {
            let why = format!("an alignment of {alignment} exceeds the largest, {ALIGNMENT}");
            return Err(Error::new(ErrorCode::InvalidValue, why));
        }
        let home = Home { context: handle(&context), device: handle(&device), pool: 0 };
        memory::allocate_exportable(home, size, alignment.max(page()))
    }
    fn memory_export_free_exportable_memory_exp(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        mem: UsmPtr,
    ) -> Result<()> {
        context.check(device)?;
        let refused = |error: Error| error.with_code(ErrorCode::InvalidValue); // as documented
        memory::free_exportable(handle(&context), mem).map_err(refused)
    }
    /// Writes an `int`.
    fn memory_export_export_memory_handle_exp(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        handle_type: ur_exp_external_mem_type_t,
        mem: UsmPtr,
        to: *mut c_void,
    ) -> Result<()> {
        context.check(device)?;
        check_type(handle_type)?;
        let found = Allocation::find(mem).filter(|found| {
            found.memory().is_some_and(Memory::is_exportable)
                && found.is_of(handle(&context))
                && found.base() == mem
        });
        let Some(found) = found.filter(|found| !found.is_freed()) else {
            let why = format!("{mem:?} is not the start of exportable memory of this context");
            return Err(Error::new(ErrorCode::InvalidValue, why));
        };
        let Some(behind) = exposed(&found) else {
            return Err(Error::new(ErrorCode::InvalidValue, format!("{mem:?} has no descriptor")));
        };
        let to = UsmPtr::new(to)?;
        let number: c_int = duplicate(behind.memfd.fd())?.into_raw_fd();
        native::copy(to, UsmPtr::new(ptr::from_ref(&number).cast())?, size_of::<c_int>());
        Ok(())
    }
}

/// One more descriptor of the same memory; 0 to 2 are never used, they mean something to others.
fn duplicate(fd: &OwnedFd) -> Result<OwnedFd> {
    fcntl_dupfd_cloexec(fd, 3).map_err(|errno| {
        let code = match errno {
            Errno::MFILE | Errno::NFILE => ErrorCode::OutOfResources,
            _ => ErrorCode::OutOfHostMemory,
        };
        let why = format!("could not make a descriptor of exportable memory: {errno}");
        Error::new(code, why)
    })
}
