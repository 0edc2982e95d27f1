//! Virtual memory: reserved addresses at which memfds are mapped.
use super::{
    Cpu,
    device::{DriverContext, DriverDevice},
    mapping::{Reservation, page},
};
use std::sync::Arc;
use ur_hal::{Access, Address, Granularity, Range, Result, VirtualMemory};
use ur_system::opened::Physical;

impl VirtualMemory for Cpu {
    const REUSES_PHYSICAL: bool = true;
    const UNMAPS_PARTS: bool = true;

    fn granularity(_: &DriverContext, _: &Arc<DriverDevice>, _: usize) -> Result<Granularity> {
        Ok(Granularity { minimum: page(), recommended: page() })
    }
    fn reserve(
        _: &DriverContext,
        wished: Option<Address>,
        bytes: usize,
        _: usize,
    ) -> Result<Reservation> {
        Ok(Reservation::new(wished.map(Address::into), bytes)?)
    }
    fn physical(
        _: &DriverContext,
        _: &Arc<DriverDevice>,
        bytes: usize,
        _: bool,
    ) -> Result<Physical> {
        Ok(Physical::new(bytes)?)
    }
    fn map(
        reservation: &Reservation,
        to: Range,
        (memory, offset): (&Physical, usize),
        _: &[Arc<DriverDevice>],
        access: Access,
    ) -> Result<()> {
        Ok(memory.map(offset, reservation, to, access)?)
    }
    fn protect(
        reservation: &Reservation,
        part: Range,
        _: &Physical,
        _: &[Arc<DriverDevice>],
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
