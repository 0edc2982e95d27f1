//! Memory of other processes, and memory without an address, for devices that access the system's memory. `ur_ipc`
//! decides who may open it. What arrives from another process is untrusted, and is checked here.
use crate::{
    backing::{Behind, Block},
    mapping::{Mapping, Memfd, POPULATE_FROM, Reservation, Side, page},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
};
use ur_hal::{Access, Address, Error, ErrorKind, Memory, Range, Result, contradiction, too_large};
use ur_ipc::{Arrived, ArrivedPayload, Payload, SharedMemory};
use ur_lock::locked;
use ur_mapping::PerProcess;

/// The arrived memory, the object's place in it, and the object's size.
fn received(arrived: Arrived) -> Result<(Arc<SharedMemory>, Behind, usize)> {
    let ArrivedPayload::Memory { memory, base } = arrived.payload else {
        return Err(contradiction("what arrived is no memory"));
    };
    let memfd = Memfd::adopt(&memory)?;
    let base = usize::try_from(base).map_err(too_large)?;
    let bytes = usize::try_from(arrived.size).map_err(too_large)?;
    if bytes == 0 {
        return Err(contradiction("it has no bytes"));
    }
    Ok((memory, Behind { memfd, base }, bytes))
}

/// The payload by which other processes open what is behind a descriptor.
pub fn payload(behind: &Behind) -> Payload {
    let (fd, base, exposes) = behind.payload();
    Payload::Fd { fd, base, exposes }
}

/// Memory of another process.
#[derive(Debug)]
pub struct Opened {
    range: Range,
    mapped: Mapped,
}
impl Opened {
    /// Maps what arrived. The object alone is reported as accessible.
    ///
    /// # Errors
    /// `InvalidValue` if what arrived is not a memfd, or if the object is empty or too large for this process; else as
    /// for [`Mapping::opened`].
    pub fn of(arrived: Arrived) -> Result<Self> {
        let (mapped, within, bytes) = Mapped::of(arrived)?;
        let null = || contradiction("it is at no address");
        let base = Address::new(mapped.base().addr() + within).ok_or_else(null)?;
        Ok(Self { range: Range::new(base, bytes)?, mapped })
    }
    /// What a mapping contains in `range`, which is all that is reported as accessible.
    pub fn in_mapping(mapping: Mapping, range: Range) -> Self {
        Self { range, mapped: Mapped::Alone(mapping) }
    }
    /// Whether this process may only read it.
    pub fn is_read_only(&self) -> bool {
        matches!(self.mapped, Mapped::ForReading(_))
    }
}
impl Memory for Opened {
    fn range(&self) -> Range {
        self.range
    }
}
/// A mapping of another process's memory.
#[derive(Debug)]
enum Mapped {
    /// Mapped by itself.
    Alone(Mapping),
    /// Mapped by itself and read-only, because its exporter sealed it against other writers.
    ForReading(Mapping),
    /// A mapping that several objects share.
    Whole(Arc<Whole>),
}
impl Mapped {
    /// Returns the mapping, the object's offset in it, and the object's size. Large and read-only objects get a mapping
    /// of their own that covers only their pages.
    fn of(arrived: Arrived) -> Result<(Self, usize, usize)> {
        let (memory, Behind { memfd, base }, bytes) = received(arrived)?;
        let is_read_only = !memory.is_writable();
        if !is_read_only && memory.is_pooled() && bytes < POPULATE_FROM && memfd.bytes() <= WHOLE {
            return Ok((Self::Whole(Whole::of(memory, &memfd)?), base, bytes));
        }
        let within = base % page();
        let mapping =
            |access| Mapping::opened(&memfd, (base - within, within + bytes), access, true);
        let mapped = match is_read_only {
            true => Self::ForReading(mapping(Access::Read)?),
            false => Self::Alone(mapping(Access::ReadWrite)?),
        };
        Ok((mapped, within, bytes))
    }
    /// Its start address.
    fn base(&self) -> ur_adapter::memory::UsmPtr {
        match self {
            Self::Alone(mapping) | Self::ForReading(mapping) => mapping.base(),
            Self::Whole(whole) => whole.mapping.base(),
        }
    }
}
/// Memory that contains many objects, mapped once for all of them that are open. Its descriptor is kept as long as the
/// mapping, so that the exporter need not send it again.
#[derive(Debug)]
struct Whole {
    mapping: Mapping,
    _memory: Arc<SharedMemory>,
}
impl Whole {
    /// The existing mapping, or a new one.
    fn of(memory: Arc<SharedMemory>, memfd: &Memfd) -> Result<Arc<Self>> {
        static ALL: PerProcess<Mutex<HashMap<u64, Weak<Whole>>>> = PerProcess::new();
        let mut all = locked(ALL.get());
        if let Some(whole) = all.get(&memory.id()).and_then(Weak::upgrade) {
            return Ok(whole);
        }
        let mapping = Mapping::opened(memfd, (0, memfd.bytes()), Access::ReadWrite, false)?;
        let id = memory.id();
        let whole = Arc::new(Self { mapping, _memory: memory });
        all.retain(|_, whole| whole.strong_count() > 0);
        all.insert(id, Arc::downgrade(&whole));
        Ok(whole)
    }
}
/// The largest memory in bytes that is mapped as a whole: the size of this adapter's own segments.
const WHOLE: usize = 64 << 20;

/// Memory without an address.
#[derive(Debug)]
pub enum Physical {
    /// Memory that this process made.
    Made(Block),
    /// Memory of another process: its descriptor, and where the memory starts in it.
    Opened(Behind),
}
impl Physical {
    /// Makes new memory.
    ///
    /// # Errors
    /// As for [`Block::take`].
    pub fn new(bytes: usize) -> Result<Self> {
        Ok(Self::Made(Block::take(Side::Device, bytes, page())?))
    }
    /// Wraps memory that arrived from another process.
    ///
    /// # Errors
    /// `InvalidValue` if what arrived is not a writable memfd, or if the object is empty, too large for this process,
    /// or not made of whole pages.
    pub fn of(arrived: Arrived) -> Result<Self> {
        let (memory, behind, bytes) = received(arrived)?;
        if !memory.is_writable() {
            return Err(contradiction("physical memory can be written"));
        }
        match behind.base.is_multiple_of(page()) && bytes.is_multiple_of(page()) {
            true => Ok(Self::Opened(behind)),
            false => Err(contradiction("physical memory consists of whole pages")),
        }
    }
    /// Maps it, starting at its byte `offset`, into part of a reservation.
    ///
    /// # Errors
    /// As for [`Reservation::map`].
    pub fn map(
        &self,
        offset: usize,
        reservation: &Reservation,
        to: Range,
        access: Access,
    ) -> Result<()> {
        let Behind { memfd, base } = self.behind()?;
        let (at, bytes) = reservation.place(to);
        Ok(reservation.map(at, &memfd, base + offset, bytes, access)?)
    }
    /// The descriptor to map, and where the memory starts in it.
    ///
    /// # Errors
    /// `InvalidValue` if there is none.
    pub fn behind(&self) -> Result<Behind> {
        let behind = match self {
            Self::Made(block) => block.behind(),
            Self::Opened(behind) => Some(behind.clone()),
        };
        let why = "this physical memory has no descriptor to map or share it by";
        behind.ok_or_else(|| Error::new(ErrorKind::InvalidValue, why))
    }
}
