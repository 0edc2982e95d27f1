//! USM in the system's memory, for backends whose devices access that: where it comes from, how it is shared with other
//! processes, and how callers export it. [`system_memory!`](crate::system_memory) implements the traits of a driver that
//! ask for this.
use crate::{
    backing::{Behind, Block},
    host::uuid,
    mapping::{Side, Writers, page},
    opened::{Physical, payload},
};
use std::os::fd::OwnedFd;
use ur_hal::{
    Allocates, Error, ErrorKind, Export, ExternalForm, MemoryRequest, Result, Travels, Types,
};
use ur_ipc::same_device;

/// A backend with devices that access the system's memory.
pub trait OverSystem: Types<Allocation: From<Block>, Physical = Physical> {
    /// The block that an allocation is; `None` for memory of the driver.
    fn block_of(memory: &Self::Allocation) -> Option<&Block>;
    /// Whether the device accesses the system's memory.
    fn is_reached(device: &Self::Device) -> bool {
        let _ = device;
        true
    }
    /// Whether all devices of the context access the system's memory.
    fn is_reached_by_all(context: &Self::Context) -> bool {
        let _ = context;
        true
    }
}

fn check(is_reached: bool, what: &str) -> Result<()> {
    let why = format!("{what}: the device does not access the system's memory");
    if is_reached { Ok(()) } else { Err(Error::new(ErrorKind::Unsupported, why)) }
}
/// Checks that all devices of a context access the system's memory.
///
/// # Errors
/// `Unsupported`, with `what` cannot be done.
pub fn check_context<D: OverSystem>(context: &D::Context, what: &str) -> Result<()> {
    check(D::is_reached_by_all(context), what)
}
/// [`Allocates::block`]: a block of the process's store, unless not all devices of the context access that.
///
/// # Errors
/// As for [`Block::take`].
pub fn block<D: OverSystem>(
    context: &D::Context,
    MemoryRequest { kind, bytes, align, .. }: MemoryRequest,
) -> Result<Option<D::Allocation>> {
    match D::is_reached_by_all(context) {
        true => Ok(Some(Block::take(Side::from(kind), bytes, align)?.into())),
        false => Ok(None),
    }
}
/// [`Allocates::allocate_guarded`].
///
/// # Errors
/// As for [`Block::alone`].
pub fn allocate_guarded<D: OverSystem>(
    device: &D::Device,
    (bytes, align): (usize, usize),
    is_read_only: bool,
) -> Result<D::Allocation> {
    check(D::is_reached(device), "memory with a policy")?;
    let writers = if is_read_only { Writers::MappedAlready } else { Writers::Everyone };
    Ok(Block::alone(bytes, align, writers)?.into())
}
/// What other processes need to open a part of an allocation that starts at an offset in bytes.
fn behind<D: OverSystem>(memory: &D::Allocation, offset: usize) -> Result<Behind> {
    let behind = D::block_of(memory).and_then(Block::behind);
    let why = "this memory is the driver's: only device USM of a device that accesses the system's memory has a \
               descriptor to share it by";
    let none = || Error::new(ErrorKind::InvalidValue, why);
    Ok(behind.ok_or_else(none)?.offset(offset))
}
/// `ExportsMemory::exports`. A memfd is not a dma-buf: it does not support the operations that drivers use on one.
///
/// # Errors
/// `Unsupported` for a device that does not access the system's memory.
pub fn exports<D: OverSystem>(device: &D::Device, form: ExternalForm) -> Result<bool> {
    check(D::is_reached(device), "memory that is exported")?;
    Ok(form == ExternalForm::Opaque)
}
/// `ExportsMemory::allocate_exportable`.
///
/// # Errors
/// As for [`Block::alone`].
pub fn allocate_exportable<D: OverSystem>((bytes, align): (usize, usize)) -> Result<D::Allocation> {
    Ok(Block::alone(bytes, align.max(page()), Writers::Everyone)?.into())
}
/// `ExportsMemory::descriptor`.
///
/// # Errors
/// As for [`Behind::descriptor`].
pub fn descriptor<D: OverSystem>(memory: &D::Allocation) -> Result<OwnedFd> {
    Ok(behind::<D>(memory, 0)?.descriptor()?)
}
/// `Shares::export`.
///
/// # Errors
/// `InvalidValue` for memory without a descriptor.
pub fn export<D: OverSystem + Allocates>(what: Export<'_, D>) -> Result<Travels> {
    let behind = match what {
        Export::Memory(memory, offset) => behind::<D>(memory, offset)?,
        Export::Physical(memory) => memory.behind()?,
    };
    Ok((payload(&behind), uuid()?))
}
/// `Shares::home`: the machine, which every device stands for.
///
/// # Errors
/// `InvalidValue` for memory of another machine or of a device with memory of its own.
pub fn home<D: OverSystem>(device: &D::Device, its: [u8; 16]) -> Result<Option<D::Device>> {
    same_device(its, uuid()?)?;
    Ok(Some(device.clone()))
}

#[doc(hidden)]
pub use {ur_hal, ur_ipc}; // for `system_memory`

/// Implements memory over the system's for a backend that is [`OverSystem`](crate::usm::OverSystem): virtual memory, the
/// registration of host memory (which has no effect), sharing, and export.
#[macro_export]
macro_rules! system_memory {
    ($backend:ty) => {
        const _: () = {
            use $crate::{
                mapping::{Reservation, page},
                opened::{Opened, Physical},
                usm::{
                    self, OverSystem as _,
                    ur_hal::{
                        Access, Address, Export, ExportsMemory, ExternalForm, Granularity, Pins,
                        Range, Result, Shares, Travels, Types, VirtualMemory,
                    },
                    ur_ipc::Arrived,
                },
            };
            type Allocation = <$backend as Types>::Allocation;
            type Context = <$backend as Types>::Context;
            type Device = <$backend as Types>::Device;
            impl VirtualMemory for $backend {
                const REUSES_PHYSICAL: bool = true;
                const UNMAPS_PARTS: bool = true;
                fn granularity(context: &Context, _: &Device, _: usize) -> Result<Granularity> {
                    usm::check_context::<Self>(context, "virtual memory")?;
                    Ok(Granularity { minimum: page(), recommended: page() })
                }
                fn reserve(
                    context: &Context,
                    wished: Option<Address>,
                    bytes: usize,
                    _: usize,
                ) -> Result<Reservation> {
                    usm::check_context::<Self>(context, "virtual memory")?;
                    Ok(Reservation::new(wished.map(Address::into), bytes)?)
                }
                fn physical(
                    context: &Context,
                    _: &Device,
                    bytes: usize,
                    _: bool,
                ) -> Result<Physical> {
                    usm::check_context::<Self>(context, "physical memory")?;
                    Physical::new(bytes)
                }
                fn map(
                    reservation: &Reservation,
                    to: Range,
                    (memory, offset): (&Physical, usize),
                    _: &[Device],
                    access: Access,
                ) -> Result<()> {
                    memory.map(offset, reservation, to, access)
                }
                fn protect(
                    reservation: &Reservation,
                    part: Range,
                    _: &Physical,
                    _: &[Device],
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
            impl Pins for $backend {
                const IS_USED: bool = false;
                type Pinned = ();
                fn pin(context: &Context, _: Range, _: Access) -> Result<()> {
                    usm::check_context::<Self>(context, "registered host memory")
                }
            }
            impl ExportsMemory for $backend {
                fn exports(device: &Device, form: ExternalForm) -> Result<bool> {
                    usm::exports::<Self>(device, form)
                }
                fn allocate_exportable(
                    _: &Context,
                    _: &Device,
                    _: ExternalForm,
                    bytes_and_align: (usize, usize),
                ) -> Result<Allocation> {
                    usm::allocate_exportable::<Self>(bytes_and_align)
                }
                fn descriptor(
                    memory: &Allocation,
                    _: ExternalForm,
                ) -> Result<std::os::fd::OwnedFd> {
                    usm::descriptor::<Self>(memory)
                }
            }
            impl Shares for $backend {
                type Opened = Opened;
                type Foreign = std::convert::Infallible;
                const IS_SYSTEMS: bool = true;
                fn shares_memory(device: &Device) -> Result<bool> {
                    Ok(Self::is_reached(device))
                }
                fn shares_physical(device: &Device) -> Result<bool> {
                    Ok(Self::is_reached(device))
                }
                fn export(what: Export<'_, Self>) -> Result<Travels> {
                    usm::export(what)
                }
                fn home(device: &Device, its: [u8; 16]) -> Result<Option<Device>> {
                    usm::home::<Self>(device, its)
                }
                fn import(_: &Context, _: &Device, arrived: Arrived) -> Result<Opened> {
                    Opened::of(arrived)
                }
                fn import_physical(_: &Context, _: &Device, arrived: Arrived) -> Result<Physical> {
                    Physical::of(arrived)
                }
                fn is_read_only(opened: &Opened) -> bool {
                    opened.is_read_only()
                }
            }
        };
    };
}
/// The methods of [`Allocates`] by which a backend that is [`OverSystem`] takes memory beside its pools.
#[macro_export]
macro_rules! takes_from_store {
    () => {
        const ALLOCATES_BLOCKS: bool = true;
        fn block(
            context: &<Self as $crate::usm::ur_hal::Types>::Context,
            request: $crate::usm::ur_hal::MemoryRequest,
        ) -> $crate::usm::ur_hal::Result<Option<<Self as $crate::usm::ur_hal::Types>::Allocation>> {
            $crate::usm::block::<Self>(context, request)
        }
        fn allocate_guarded(
            device: &<Self as $crate::usm::ur_hal::Types>::Device,
            bytes_and_align: (usize, usize),
            is_read_only: bool,
        ) -> $crate::usm::ur_hal::Result<<Self as $crate::usm::ur_hal::Types>::Allocation> {
            $crate::usm::allocate_guarded::<Self>(device, bytes_and_align, is_read_only)
        }
        fn is_reused(memory: &<Self as $crate::usm::ur_hal::Types>::Allocation) -> bool {
            use $crate::{backing::Block, usm::OverSystem};
            Self::block_of(memory).is_none_or(Block::is_recycled)
        }
    };
}
