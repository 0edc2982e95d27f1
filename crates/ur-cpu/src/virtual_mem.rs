//! Virtual memory: reserved addresses into which memory with a descriptor is mapped.
use super::{
    Cpu, Device, TABLE,
    backing::{Behind, Block},
    context::DriverContext,
    mapping::{Reservation, Side, page},
};
use ur_adapter::{
    object::{Owned, Slab},
    per_process::PerProcess,
};
use ur_core::over_driver::physical_mem::{self, HasPhysicalMemory};
use ur_hal::{Access, Address, Error, ErrorKind, Granularity, Range, Result, VirtualMemory};

/// What `ur_physical_mem_handle_t` points at.
pub type PhysicalMem = physical_mem::PhysicalMem<Cpu>;

/// Memory without an address.
#[derive(Debug)]
pub enum Physical {
    /// Memory of this process's.
    Made(Block),
    /// Memory of another's: its descriptor, and where in it the memory starts.
    Opened(Behind),
}
impl Physical {
    /// The descriptor to map, and where in it the memory starts.
    ///
    /// # Errors
    /// `InvalidValue` where there is none.
    pub(super) fn behind(&self) -> Result<Behind> {
        let behind = match self {
            Self::Made(block) => block.behind(),
            Self::Opened(behind) => Some(behind.clone()),
        };
        let why = "this physical memory has no descriptor to map or share it by";
        behind.ok_or_else(|| Error::new(ErrorKind::InvalidValue, why))
    }
}

impl VirtualMemory for Cpu {
    const REUSES_PHYSICAL: bool = true;
    const UNMAPS_PARTS: bool = true;

    fn granularity(_: &DriverContext, _: &Owned<Device>, _: usize) -> Result<Granularity> {
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
    fn physical(_: &DriverContext, _: &Owned<Device>, bytes: usize, _: bool) -> Result<Physical> {
        Ok(Physical::Made(Block::take(Side::Device, bytes, page())?))
    }
    fn map(
        reservation: &Reservation,
        to: Range,
        (memory, offset): (&Physical, usize),
        _: &[Owned<Device>],
        access: Access,
    ) -> Result<()> {
        let Behind { memfd, base } = memory.behind()?;
        let (at, bytes) = reservation.place(to);
        Ok(reservation.map(at, &memfd, base + offset, bytes, access)?)
    }
    fn protect(
        reservation: &Reservation,
        part: Range,
        _: &Physical,
        _: &[Owned<Device>],
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
impl HasPhysicalMemory for Cpu {
    fn physical_mems() -> &'static Slab<PhysicalMem> {
        static SLAB: Slab<PhysicalMem> = Slab::new(&TABLE);
        &SLAB
    }
    fn names() -> &'static physical_mem::Names<Self> {
        static NAMES: PerProcess<physical_mem::Names<Cpu>> = PerProcess::new();
        NAMES.get()
    }
    fn reserved() -> &'static physical_mem::Reserved<Self> {
        static RESERVED: PerProcess<physical_mem::Reserved<Cpu>> = PerProcess::new();
        RESERVED.get()
    }
}
