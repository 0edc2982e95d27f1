//! Device memory that can be exported to other programs and APIs as a file descriptor. Each such allocation
//! has a memfd of its own; each export is a new descriptor of it, with which all of it can be mapped.
use super::{
    Context, Cpu, Device,
    mapping::page,
    memory::{self, Allocation, exposed},
};
use std::os::fd::OwnedFd;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Borrowed,
};
use ur_core::{memory::allocation::Home, over_driver::memory_export::ExportsMemory};
use ur_sys::ur_exp_external_mem_type_t;

impl ExportsMemory for Cpu {
    type Form = ();
    /// A memfd is not a dma-buf: it does not support the operations that drivers use on one.
    fn form(_: &Device, wished: ur_exp_external_mem_type_t) -> Result<()> {
        match wished {
            ur_exp_external_mem_type_t::OPAQUE_FD => Ok(()),
            other => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("memory of a CPU is exported as OPAQUE_FD and not as {other:?}"),
            )),
        }
    }
    fn allocate_exportable(
        _: Borrowed<'_, Context>,
        _: Borrowed<'_, Device>,
        (): (),
        (home, bytes, align): (Home, usize, usize),
    ) -> Result<UsmPtr> {
        memory::allocate_exportable(home, bytes, align.max(page()))
    }
    fn descriptor(found: &Allocation, (): ()) -> Result<OwnedFd> {
        match exposed(found) {
            Some(behind) => behind.descriptor(),
            None => Err(Error::new(
                ErrorCode::InvalidValue,
                format!("{:?} has no descriptor", found.base()),
            )),
        }
    }
}
