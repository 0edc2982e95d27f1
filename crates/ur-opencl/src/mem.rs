//! Buffers: memory at an address that the devices and the host reach. The driver's object over it is made when its native
//! handle is asked for.
use super::{
    OpenCl,
    cl::*,
    context::DriverContext,
    driver::RawMem,
    native::{
        memory::{buffer_over, buffer_part},
        own::{Own, Tells},
    },
};
use ur_hal::{Address, AdoptedBuffer, Error, ErrorKind, MakesBuffers, NativeHandle, Range, Result};

impl MakesBuffers for OpenCl {
    const HAS_BUFFERS: bool = true;
    type Buffer = Own<RawMem>;
    fn largest_buffer(context: &DriverContext) -> usize {
        usize::try_from(context.devices()[0].facts().memory[1]).unwrap_or(usize::MAX)
    }
    fn buffer(context: &DriverContext, memory: Range) -> Result<Own<RawMem>> {
        buffer_over(context.raw(), memory.start(), memory.bytes())
    }
    fn part(whole: &Own<RawMem>, offset: usize, bytes: usize) -> Result<Own<RawMem>> {
        buffer_part(whole.raw(), offset, bytes)
    }
    fn buffer_handle(buffer: &Own<RawMem>) -> Result<NativeHandle> {
        Ok(NativeHandle(buffer.raw().addr() as u64))
    }
    /// A buffer over memory of the host's: of any other the bytes have no address that is known.
    fn adopt_buffer(
        context: &DriverContext,
        handle: NativeHandle,
        is_owned: bool,
    ) -> Result<AdoptedBuffer<Own<RawMem>>> {
        let (raw, kind) = context.mem_object(handle)?;
        let host = host(raw)?;
        let uses = raw.number(CL_MEM_FLAGS)? & CL_MEM_USE_HOST_PTR != 0;
        let Some(at) = host.filter(|_| uses && kind == CL_MEM_OBJECT_BUFFER) else {
            let why = "only buffers over memory of the host's (CL_MEM_USE_HOST_PTR) can be adopted";
            return Err(Error::new(ErrorKind::InvalidMemory, why));
        };
        let memory = Range::new(at, raw.number(CL_MEM_SIZE)? as usize)?;
        let object = Some(Own::adopted(raw, is_owned)?);
        Ok(AdoptedBuffer { memory, is_hosts: true, object })
    }
}
/// Where a buffer is in the host's memory. Of a part Intel's runtime tells another place, so that the whole is asked for it.
fn host(raw: RawMem) -> Result<Option<Address>> {
    let at = |of: RawMem| Ok(Address::new(of.number(CL_MEM_HOST_PTR)? as usize));
    match RawMem::from_addr(raw.number(CL_MEM_ASSOCIATED_MEMOBJECT)? as usize) {
        Some(whole) => {
            let offset = raw.number(CL_MEM_OFFSET)? as usize;
            at(whole)?.map(|at| at.offset(offset)).transpose()
        }
        None => at(raw),
    }
}
