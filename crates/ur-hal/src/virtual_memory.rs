//! What a driver does with addresses without memory and memory without an address: the verbs of a
//! [`Driver`](crate::Driver) that are about virtual memory. They are a trait of their own, so that a backend has them whose
//! other verbs are not written yet.
use crate::{Access, Address, Error, Granularity, Range, Result, Types};

/// Virtual memory: [`Capability::VirtualMemory`](crate::Capability::VirtualMemory).
///
/// No verb blocks. All return the driver's own failures, with the kind that fits best and the driver's status. A verb
/// that returns other failures documents them.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait VirtualMemory: Types {
    /// Whether physical memory that is dropped becomes other memory of this process. Then the core keeps it for as long as
    /// other processes have it open.
    const REUSES_PHYSICAL: bool = false;
    /// Whether [`unmap`](Self::unmap) takes a part of what was mapped in one call.
    const UNMAPS_PARTS: bool = false;

    /// What lengths and addresses are multiples of where `bytes` are mapped.
    fn granularity(
        context: &Self::Context,
        device: &Self::Device,
        bytes: usize,
    ) -> Result<Granularity> {
        let _ = (context, device, bytes);
        Error::unsupported("virtual memory")
    }
    /// Addresses, at `wished` if that is free.
    fn reserve(
        context: &Self::Context,
        wished: Option<Address>,
        bytes: usize,
        align: usize,
    ) -> Result<Self::Reservation> {
        let _ = (context, wished, bytes, align);
        Error::unsupported("virtual memory")
    }
    /// Physical memory of a device.
    fn physical(
        context: &Self::Context,
        device: &Self::Device,
        bytes: usize,
        is_shareable: bool,
    ) -> Result<Self::Physical> {
        let _ = (context, device, bytes, is_shareable);
        Error::unsupported("physical memory")
    }
    /// Puts `memory`, from its byte `offset` on, at `to`, which nothing is at, for these devices to use so.
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a part of the memory without
    /// [`Capability::PartialMappings`](crate::Capability::PartialMappings).
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
    /// Changes how these devices may use what was mapped at `part`, which begins with `memory`.
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
    /// Takes away `memory`, which was mapped at `part` in one call.
    fn unmap(reservation: &Self::Reservation, part: Range, memory: &Self::Physical) -> Result<()> {
        let _ = (reservation, part, memory);
        Error::unsupported("virtual memory")
    }
}
