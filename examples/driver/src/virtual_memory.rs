//! Virtual memory: reserved addresses into which files are mapped. The core keeps what is mapped where. Mappings of the system's
//! memory are a crate of this project (`ur-system`), since several backends have them; a real device's driver has verbs of its own.
use super::Example;
use ur_hal::{Access, Address, Granularity, Range, Result};
use ur_system::{
    mapping::{Reservation, page},
    opened::Physical,
};

impl ur_hal::VirtualMemory for Example {
    const REUSES_PHYSICAL: bool = true;
    const UNMAPS_PARTS: bool = true;
    fn granularity((): &(), (): &(), _: usize) -> Result<Granularity> {
        Ok(Granularity { minimum: page(), recommended: page() })
    }
    fn reserve((): &(), wished: Option<Address>, bytes: usize, _: usize) -> Result<Reservation> {
        Ok(Reservation::new(wished.map(Address::into), bytes)?)
    }
    fn physical((): &(), (): &(), bytes: usize, _: bool) -> Result<Physical> {
        Ok(Physical::new(bytes)?)
    }
    fn map(
        reservation: &Reservation,
        to: Range,
        (memory, offset): (&Physical, usize),
        _: &[()],
        access: Access,
    ) -> Result<()> {
        Ok(memory.map(offset, reservation, to, access)?)
    }
    fn protect(
        reservation: &Reservation,
        part: Range,
        _: &Physical,
        _: &[()],
        access: Access,
    ) -> Result<()> {
        let (at, bytes) = reservation.place(part);
        Ok(reservation.protect(at, bytes, access)?)
    }
    fn unmap(reservation: &Reservation, part: Range, _: &Physical) -> Result<()> {
        let (at, bytes) = reservation.place(part);
        Ok(reservation.unmap(at, bytes)?)
    }
}
