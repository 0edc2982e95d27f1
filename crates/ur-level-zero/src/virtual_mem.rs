//! Virtual memory: what the driver does about reserved addresses and physical memory.
use super::{
    Device, LevelZero, TABLE,
    context::DriverContext,
    native::{
        ipc::foreign,
        physical_memory::{self, Physical},
        virtual_memory as native,
    },
    registry::registry,
};
use ur_adapter::object::{Owned, Slab};
use ur_core::over_driver::physical_mem::{self, HasPhysicalMemory};
use ur_hal::{
    Access, Address, Error, ErrorKind, Granularity, Memory, Range, Result, VirtualMemory,
};

/// What `ur_physical_mem_handle_t` points at.
pub type PhysicalMem = physical_mem::PhysicalMem<LevelZero>;
/// Those that have a handle.
pub(super) type Names = physical_mem::Names<LevelZero>;
/// What this process has reserved.
pub(super) type AllReserved = physical_mem::Reserved<LevelZero>;

/// Reserved addresses, which are known to be ours while this lives.
#[derive(Debug)]
pub struct Reservation {
    range: Range,
    reserved: native::Range,
}
impl Memory for Reservation {
    fn range(&self) -> Range {
        self.range
    }
}
impl Drop for Reservation {
    fn drop(&mut self) {
        registry().get().give_up(self.range.start().get());
    }
}
fn numbers(range: Range) -> (u64, usize) {
    (range.start().get() as u64, range.bytes())
}

impl VirtualMemory for LevelZero {
    fn granularity(
        context: &DriverContext,
        device: &Owned<Device>,
        bytes: usize,
    ) -> Result<Granularity> {
        let page = native::page_size(context.native(), device, bytes)?;
        Ok(Granularity { minimum: page, recommended: page })
    }
    fn reserve(
        context: &DriverContext,
        wished: Option<Address>,
        bytes: usize,
        _: usize,
    ) -> Result<Reservation> {
        let wished = wished.map_or(0, Address::get) as u64;
        let reserved = native::Range::reserve(context.native(), wished, bytes)?;
        let null = || Error::new(ErrorKind::Unknown, "the driver reserved a null address");
        let range = Range::new(Address::new(reserved.at() as usize).ok_or_else(null)?, bytes)?;
        registry().get().claim(range.start().get(), bytes);
        Ok(Reservation { range, reserved })
    }
    fn physical(
        context: &DriverContext,
        device: &Owned<Device>,
        bytes: usize,
        is_shareable: bool,
    ) -> Result<Physical> {
        if is_shareable && !physical_memory::has_descriptors(device)? {
            return Error::unsupported("descriptors of its memory, which sharing takes");
        }
        Ok(Physical::create(context.native(), device, bytes, is_shareable)?)
    }
    fn map(
        reservation: &Reservation,
        to: Range,
        (memory, offset): (&Physical, usize),
        devices: &[Owned<Device>],
        access: Access,
    ) -> Result<()> {
        let (context, (at, size)) = (reservation.reserved.context(), numbers(to));
        let takes = |device: &Owned<Device>| native::takes_offsets(device);
        if offset != 0 && !devices.first().map_or(Ok(true), takes)? {
            return Error::unsupported(
                "mappings that begin inside of physical memory: a newer driver may map them; or \
                 create a physical memory for each part",
            );
        }
        let mapped = native::map(context, at, size, memory, offset, access);
        // The size is the exporter's word; whether it is true shows here.
        Ok(mapped.map_err(|e| if memory.is_opened() { foreign(e) } else { e })?)
    }
    fn protect(
        reservation: &Reservation,
        part: Range,
        _: &Physical,
        _: &[Owned<Device>],
        access: Access,
    ) -> Result<()> {
        let (context, (at, size)) = (reservation.reserved.context(), numbers(part));
        Ok(native::set_access(context, at, size, access)?)
    }
    fn unmap(reservation: &Reservation, part: Range, _: &Physical) -> Result<()> {
        let (context, (at, size)) = (reservation.reserved.context(), numbers(part));
        Ok(native::unmap(context, at, size)?)
    }
}
impl HasPhysicalMemory for LevelZero {
    fn physical_mems() -> &'static Slab<PhysicalMem> {
        static SLAB: Slab<PhysicalMem> = Slab::new(&TABLE);
        &SLAB
    }
    fn names() -> &'static Names {
        &registry().get().names
    }
    fn reserved() -> &'static AllReserved {
        &registry().get().reserved
    }
}
