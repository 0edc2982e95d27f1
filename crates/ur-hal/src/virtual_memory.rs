//! Reserved addresses and physical memory: the methods of a [`Driver`](crate::Driver) for virtual memory. They are a
//! separate trait, so that a backend can implement them before its other methods exist.
use crate::{Access, Address, Error, Granularity, Range, Result, Types};

/// Virtual memory: [`DescribesDevices::has_virtual_memory`](crate::DescribesDevices::has_virtual_memory).
///
/// No method blocks. All return the driver's error, with the kind that fits best and the driver's status. A method that
/// returns other errors documents them.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait VirtualMemory: Types {
    /// Whether dropped physical memory is reused for other memory of this process. Then the core keeps it as long as
    /// other processes have it open.
    const REUSES_PHYSICAL: bool = false;
    /// Whether [`unmap`](Self::unmap) can unmap a part of what was mapped in one call.
    const UNMAPS_PARTS: bool = false;

    /// The granularity of lengths and addresses for mappings of `bytes`.
    fn granularity(
        context: &Self::Context,
        device: &Self::Device,
        bytes: usize,
    ) -> Result<Granularity> {
        let _ = (context, device, bytes);
        Error::unsupported("virtual memory")
    }
    /// Reserves addresses, at `wished` if that is free.
    fn reserve(
        context: &Self::Context,
        wished: Option<Address>,
        bytes: usize,
        align: usize,
    ) -> Result<Self::Reservation> {
        let _ = (context, wished, bytes, align);
        Error::unsupported("virtual memory")
    }
    /// Makes physical memory of a device.
    fn physical(
        context: &Self::Context,
        device: &Self::Device,
        bytes: usize,
        is_shareable: bool,
    ) -> Result<Self::Physical> {
        let _ = (context, device, bytes, is_shareable);
        Error::unsupported("physical memory")
    }
    /// Maps `memory`, starting at its byte `offset`, at `to`, where nothing is mapped, with this access for these
    /// devices.
    ///
    /// Returns [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a part of the memory if the driver maps
    /// only the whole.
    fn map(
        reservation: &Self::Reservation,
        to: Range,
        (memory, offset): (&Self::Physical, usize),
        devices: &[Self::Device],
        access: Access,
    ) -> Result<()> {
        let _ = (reservation, to, memory, offset, devices, access);
        Error::unsupported("virtual memory")
    }
    /// Changes the access of these devices to `part`, where `memory` is mapped first.
    fn protect(
        reservation: &Self::Reservation,
        part: Range,
        memory: &Self::Physical,
        devices: &[Self::Device],
        access: Access,
    ) -> Result<()> {
        let _ = (reservation, part, memory, devices, access);
        Error::unsupported("virtual memory")
    }
    /// Unmaps `memory`, which was mapped at `part` in one call.
    fn unmap(reservation: &Self::Reservation, part: Range, memory: &Self::Physical) -> Result<()> {
        let _ = (reservation, part, memory);
        Error::unsupported("virtual memory")
    }
}
