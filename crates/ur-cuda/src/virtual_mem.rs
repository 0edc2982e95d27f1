//! Virtual memory: reserved addresses, physical memory, mappings, and the devices that can access them.
use super::DriverDevice;
use super::{
    Family,
    backing::{self, reaching},
    context::DriverContext,
    driver::Dialect,
    native::virtual_memory::{self as native, Physical, Range as Reserved},
};
use std::sync::Arc;
use ur_hal::{
    Access, Address, Error, ErrorKind, Granularity, Memory, Range, Result, VirtualMemory,
};
use ur_lock::get_or_try;

/// Reserved addresses, recorded as belonging to this adapter while this lives.
#[derive(Debug)]
pub struct Reservation<D: Dialect> {
    range: Range,
    _reserved: Reserved<D>,
}
impl<D: Dialect> Memory for Reservation<D> {
    fn range(&self) -> Range {
        self.range
    }
}
impl<D: Dialect> Drop for Reservation<D> {
    fn drop(&mut self) {
        D::statics().memory.get().claims.give_up(self.range.start().get());
    }
}

/// Whether the driver can map physical memory at an offset; tried once in a process.
fn takes_offsets<D: Dialect>(device: &Arc<DriverDevice<D>>) -> Result<bool> {
    let try_out = || {
        let granule = backing::granule(device)?;
        let memory = Physical::create(device, 2 * granule)?;
        let range = Reserved::reserve(device, 0, granule, granule)?;
        let takes = native::map(device, range.at(), granule, &memory, granule).is_ok();
        if takes {
            native::unmap(device, range.at(), granule)?;
        }
        Ok(takes)
    };
    get_or_try(&D::statics().memory.get().takes_offsets, try_out).copied()
}
/// The driver's access flags.
fn rights(access: Access) -> i32 {
    match access {
        Access::None => 0,
        Access::Read => 1,
        Access::ReadWrite => 3,
    }
}
fn numbers(range: Range) -> (u64, usize) {
    (range.start().get() as u64, range.bytes())
}

impl<D: Dialect> VirtualMemory for Family<D> {
    fn granularity(
        _: &DriverContext<D>,
        device: &Arc<DriverDevice<D>>,
        _: usize,
    ) -> Result<Granularity> {
        match native::is_supported(device)? {
            true => Ok(backing::granularity(device)?),
            false => Error::unsupported("virtual memory"),
        }
    }
    fn reserve(
        context: &DriverContext<D>,
        wished: Option<Address>,
        bytes: usize,
        align: usize,
    ) -> Result<Reservation<D>> {
        let wished = wished.map_or(0, Address::get) as u64;
        let reserved = Reserved::reserve(&context.devices()[0], wished, bytes, align)?;
        let null = || Error::new(ErrorKind::Unknown, "the driver reserved a null address");
        let range = Range::new(Address::new(reserved.at() as usize).ok_or_else(null)?, bytes)?;
        D::statics().memory.get().claims.claim(range.start().get(), bytes, None);
        Ok(Reservation { range, _reserved: reserved })
    }
    /// All physical memory can be shared if the driver supports descriptors.
    fn physical(
        _: &DriverContext<D>,
        device: &Arc<DriverDevice<D>>,
        bytes: usize,
        is_shareable: bool,
    ) -> Result<Physical<D>> {
        if is_shareable && !native::has_descriptors(device)? {
            return Error::unsupported("descriptors of its memory, which sharing takes");
        }
        Physical::create(device, bytes)
    }
    /// Maps the memory and sets the access of the devices.
    fn map(
        _: &Reservation<D>,
        to: Range,
        (memory, offset): (&Physical<D>, usize),
        devices: &[Arc<DriverDevice<D>>],
        access: Access,
    ) -> Result<()> {
        let ((at, size), rights, device) = (numbers(to), rights(access), memory.device());
        if offset != 0 && !takes_offsets(device)? {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "this driver maps physical memory from its start only: map with offset 0, or make \
                 one physical memory for each part",
            ));
        }
        let refusal = |error: Error| match error {
            error if error.kind() == ErrorKind::Unsupported && size < memory.bytes() => Error::new(
                ErrorKind::Unsupported,
                format!(
                    "this driver maps physical memory as a whole only: map all of its {} bytes, or \
                     make one physical memory for each part ({error})",
                    memory.bytes()
                ),
            ),
            error => error,
        };
        let mapped = native::map(device, at, size, memory, offset);
        // The size of imported memory comes from the exporter; mapping it shows whether it is true.
        let mapped = mapped.map_err(|e| if memory.is_opened() { native::foreign(e) } else { e });
        mapped.map_err(refusal)?;
        let given = reaching(device, devices).and_then(|all| {
            if rights != 0 {
                native::set_access(device, at, size, &[device.number()], rights)?;
            }
            D::statics().memory.get().peers.enter_mapping(device, (at, size), all, rights)
        });
        given.or_else(|error| native::unmap(device, at, size).and(Err(error)))
    }
    fn protect(
        _: &Reservation<D>,
        part: Range,
        memory: &Physical<D>,
        devices: &[Arc<DriverDevice<D>>],
        access: Access,
    ) -> Result<()> {
        let ((at, size), rights) = (numbers(part), rights(access));
        let (device, peers) = (memory.device(), &D::statics().memory.get().peers);
        // Before the devices are selected, so that one that is started meanwhile gets the new rights.
        peers.set_rights(at..at + size as u64, rights);
        let all = peers.of_mapping(device, &reaching(device, devices)?);
        native::set_access(device, at, size, &all, rights)
    }
    fn unmap(_: &Reservation<D>, part: Range, memory: &Physical<D>) -> Result<()> {
        let (at, size) = numbers(part);
        D::statics().memory.get().peers.leave_mapping(at);
        native::unmap(memory.device(), at, size)
    }
}
