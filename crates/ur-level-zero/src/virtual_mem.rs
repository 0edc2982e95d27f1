//! Virtual memory: reserved addresses, physical memory, and mappings.
use super::{
    DriverDevice, LevelZero,
    context::DriverContext,
    driver::RawPhysical,
    native::{
        physical_memory::{self, Physical},
        virtual_memory as native,
    },
    registry::registry,
    sync_point,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};
use ur_hal::{
    Access, Address, Error, ErrorKind, Granularity, Memory, Range, Result, VirtualMemory,
    refused_import,
};
use ur_lock::locked;

/// Reserved addresses, recorded as belonging to this adapter while this lives.
#[derive(Debug)]
pub struct Reservation {
    range: Range,
    reserved: native::Range,
    /// The mappings in it, by start address.
    pieces: Mutex<BTreeMap<usize, Piece>>,
}
/// One mapping.
#[derive(Clone, Copy, Debug)]
struct Piece {
    bytes: usize,
    /// The physical memory; the core keeps it alive while it is mapped.
    memory: RawPhysical,
    offset: usize,
    access: Access,
}
impl Reservation {
    /// Maps `piece` at `at`.
    fn put(&self, at: usize, piece: Piece) -> Result<()> {
        let Piece { bytes, memory, offset, access } = piece;
        native::map(self.reserved.within(), at as u64, bytes, memory, offset, access)?;
        locked(&self.pieces).insert(at, piece);
        Ok(())
    }
    /// Unmaps the piece at `at`.
    fn take(&self, at: usize, bytes: usize) -> Result<()> {
        native::unmap(self.reserved.within(), at as u64, bytes)?;
        locked(&self.pieces).remove(&at);
        Ok(())
    }
    /// Changes the access of whole mappings by mapping them again. Used where the driver's own function would
    /// change what is mapped.
    fn map_anew(&self, part: Range, access: Access) -> Result<()> {
        let (start, end) = (part.start().get(), part.start().get() + part.bytes());
        let touched: Vec<_> = locked(&self.pieces)
            .iter()
            .filter(|(at, piece)| **at < end && **at + piece.bytes > start)
            .map(|(at, piece)| (*at, *piece))
            .collect();
        let is_whole = |(at, piece): &(usize, Piece)| *at >= start && at + piece.bytes <= end;
        if !touched.iter().all(is_whole) {
            return Error::unsupported(
                "another access for a part of a mapping: create a physical memory for each part",
            );
        }
        for (at, piece) in touched.into_iter().filter(|(_, piece)| piece.access != access) {
            self.take(at, piece.bytes)?;
            let changed = self.put(at, Piece { access, ..piece });
            if let Err(error) = changed {
                self.put(at, piece)?; // restores the old mapping
                return Err(error);
            }
        }
        Ok(())
    }
}
impl Memory for Reservation {
    fn range(&self) -> Range {
        self.range
    }
}
impl Drop for Reservation {
    fn drop(&mut self) {
        registry().claims.give_up(self.range.start().get());
    }
}
fn numbers(range: Range) -> (u64, usize) {
    (range.start().get() as u64, range.bytes())
}

impl VirtualMemory for LevelZero {
    fn granularity(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
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
        registry().claims.claim(range.start().get(), bytes, None);
        Ok(Reservation { range, reserved, pieces: Mutex::default() })
    }
    fn physical(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        bytes: usize,
        is_shareable: bool,
    ) -> Result<Physical> {
        if is_shareable && !physical_memory::has_descriptors(device)? {
            return Error::unsupported("descriptors of its memory, which sharing takes");
        }
        Physical::create(context.native(), device, bytes, is_shareable)
    }
    fn map(
        reservation: &Reservation,
        to: Range,
        (memory, offset): (&Physical, usize),
        devices: &[Arc<DriverDevice>],
        access: Access,
    ) -> Result<()> {
        let (at, bytes) = (to.start().get(), to.bytes());
        // The driver's capabilities are only determined if they matter.
        let ways = || devices.first().map(|device| native::ways(device)).transpose();
        if offset != 0 && ways()?.is_some_and(|ways| !ways.takes_offsets) {
            return Error::unsupported(
                "mappings that begin inside of physical memory: a newer driver may map them; or \
                 create a physical memory for each part",
            );
        }
        let is_first = memory.count_mapping(true);
        if !is_first && ways()?.is_some_and(|ways| !ways.maps_again) {
            return Error::unsupported(
                "a second mapping of one physical memory: create a physical memory for each \
                 mapping, or use the first",
            );
        }
        if !is_first {
            memory.count_mapping(false);
        }
        let mapped = reservation.put(at, Piece { bytes, memory: memory.raw(), offset, access });
        if mapped.is_err() {
            memory.discount_mapping();
        }
        // The size of imported memory comes from the exporter; mapping it shows whether it is true.
        mapped.map_err(|error| if memory.is_opened() { refused_import(error) } else { error })
    }
    fn protect(
        reservation: &Reservation,
        part: Range,
        _: &Physical,
        devices: &[Arc<DriverDevice>],
        access: Access,
    ) -> Result<()> {
        let (context, (at, size)) = (reservation.reserved.within(), numbers(part));
        let ways = devices.first().map(|device| native::ways(device)).transpose()?;
        if ways.is_some_and(|ways| !ways.keeps_offsets) {
            // Commands must not run while the memory is briefly unmapped.
            devices.iter().try_for_each(|device| sync_point::wait_for_device(device))?;
            return reservation.map_anew(part, access);
        }
        native::set_access(context, at, size, access)
    }
    fn unmap(reservation: &Reservation, part: Range, memory: &Physical) -> Result<()> {
        reservation.take(part.start().get(), part.bytes())?;
        memory.discount_mapping();
        Ok(())
    }
}
