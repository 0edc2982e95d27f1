//! USM in the system's memory, for backends whose devices access that: what an allocation consists of, where it comes
//! from, how it is shared with other processes, and how callers export it. [`system_memory!`](crate::system_memory)
//! implements the traits of the core that ask for this.
use crate::{
    backing::{Behind, Block},
    host::uuid,
    mapping::{Side, Writers, page},
    opened::{Mapped, Physical, payload},
};
use std::os::fd::OwnedFd;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Borrowed,
};
use ur_core::{
    memory::{
        allocation::{self, Home as Owner, OfProcess, Pooled, Registered, Usm},
        deferred_free,
    },
    over_driver::{
        Context, CoreBackend, Device, DriverContext, DriverDevice,
        physical_mem::{self, HasPhysicalMemory},
        share::{Home, Shares, Travels},
        usm_pool::{Chunks, HasUsm},
    },
};
use ur_hal::{Access, MemoryKind, Moment, Range, Types};
use ur_ipc::{Arrived, same_device};
use ur_sys::ur_exp_external_mem_type_t;

/// The static of a backend's memory, which [`system_memory!`](crate::system_memory) makes.
pub trait HasMemory: Sized {
    /// See [`allocation::Memory::of_process`].
    fn memory() -> &'static OfProcess<Memory<Self>>
    where
        Self: OverSystem;
}
/// A backend with devices that access the system's memory.
pub trait OverSystem:
    HasMemory
    + CoreBackend<Memory = Memory<Self>>
    + HasUsm<Memory: allocation::Memory<Moment = <Self as OverSystem>::Moment>>
    + HasPhysicalMemory
{
    /// See [`allocation::Memory::Moment`].
    type Moment: Moment + Send + 'static;
    /// See [`allocation::Memory::submitted`].
    fn moments(context: usize) -> Vec<Self::Moment>;
    /// The block that a chunk of a pool is; `None` for memory of the driver.
    fn block(chunk: &<Self as Types>::Allocation) -> Option<&Block>;
    /// Whether the device accesses the system's memory.
    fn is_reached(device: &DriverDevice<Self>) -> bool {
        let _ = device;
        true
    }
    /// Whether all devices of the context access the system's memory.
    fn is_reached_by_all(context: &DriverContext<Self>) -> bool {
        let _ = context;
        true
    }
}

/// What an allocation consists of.
#[derive(Debug)]
pub enum Memory<D: OverSystem> {
    /// A block of the process's store.
    Block(Block),
    /// A part of a chunk of a pool.
    Pooled(Pooled<Chunks<D>>),
    /// Memory with a descriptor of its own, which callers may export.
    Exportable(Block),
    /// Memory of another process.
    Opened(Mapped),
}
/// One allocation, or the whole of an object that was opened.
pub type Allocation<D> = allocation::Allocation<Memory<D>>;

impl<D: OverSystem> allocation::Memory for Memory<D> {
    const BACKEND: ur_adapter::object::Backend = D::BACKEND;
    type Source = Chunks<D>;
    type Moment = D::Moment;
    fn of_process() -> &'static OfProcess<Self> {
        D::memory()
    }
    fn submitted(context: usize, _: u64) -> Vec<D::Moment> {
        D::moments(context)
    }
    fn is_of_parent() -> bool {
        D::check_fork().is_err()
    }
    fn pooled(part: Pooled<Chunks<D>>) -> Self {
        Self::Pooled(part)
    }
    fn is_opened(&self) -> bool {
        matches!(self, Self::Opened(_))
    }
    fn is_reused(&self) -> bool {
        match self {
            Self::Block(block) | Self::Exportable(block) => block.is_recycled(),
            Self::Pooled(_) => true,
            Self::Opened(_) => false,
        }
    }
    fn is_exportable(&self) -> bool {
        matches!(self, Self::Exportable(_))
    }
    fn is_read_only(&self) -> bool {
        matches!(self, Self::Opened(mapped) if mapped.is_read_only())
    }
    fn check_elsewhere(range: Range, needs: Access) -> Result<()> {
        physical_mem::reserved::<D>().check_mapped(range, needs)
    }
}

fn unreached(what: &str) -> ur_hal::Error {
    let why = format!("{what}: the device does not access the system's memory");
    ur_hal::Error::new(ur_hal::ErrorKind::Unsupported, why)
}
/// Checks that all devices of a context access the system's memory.
///
/// # Errors
/// `Unsupported`, with `what` cannot be done.
pub fn check_context<D: OverSystem>(context: &DriverContext<D>, what: &str) -> ur_hal::Result<()> {
    if D::is_reached_by_all(context) { Ok(()) } else { Err(unreached(what)) }
}
fn check_device<D: OverSystem>(device: &DriverDevice<D>, what: &str) -> ur_hal::Result<()> {
    if D::is_reached(device) { Ok(()) } else { Err(unreached(what)) }
}
fn enter<D: OverSystem>(
    block: Block,
    usm: Usm,
    (home, bytes, _): (Owner, usize, usize),
    memory: fn(Block) -> Memory<D>,
) -> UsmPtr {
    let base = block.base();
    Allocation::enter(base, bytes, usm, home, memory(block)).base()
}
/// [`HasUsm::take`]: a block of the process's store, unless not all devices of the context access that.
///
/// # Errors
/// As for [`Block::take`] or for a pool.
pub fn take<D: OverSystem>(
    context: Borrowed<'_, Context<D>>,
    usm: Usm,
    device: Borrowed<'_, Device<D>>,
    request: (Owner, usize, usize),
) -> Result<UsmPtr> {
    match D::is_reached_by_all(context.driver()) {
        true => from_store::<D>(usm, request),
        false => context.pools().own(context).allocate(usm, device, request),
    }
}
/// Allocates a block of the process's store.
///
/// # Errors
/// As for [`Block::take`].
pub fn from_store<D: OverSystem>(usm: Usm, request: (Owner, usize, usize)) -> Result<UsmPtr> {
    deferred_free::sweep::<Memory<D>>();
    let block = Block::take(Side::from(MemoryKind::from(usm)), request.1, request.2)?;
    Ok(enter::<D>(block, usm, request, Memory::Block))
}
/// [`HasUsm::take_alone`].
///
/// # Errors
/// As for [`Block::alone`].
pub fn take_alone<D: OverSystem>(
    device: &DriverDevice<D>,
    request: (Owner, usize, usize),
    is_read_only: bool,
) -> Result<UsmPtr> {
    check_device::<D>(device, "memory with a policy")?;
    let writers = if is_read_only { Writers::MappedAlready } else { Writers::Everyone };
    alone::<D>(request, writers, Memory::Block)
}
fn alone<D: OverSystem>(
    request: (Owner, usize, usize),
    writers: Writers,
    memory: fn(Block) -> Memory<D>,
) -> Result<UsmPtr> {
    deferred_free::sweep::<Memory<D>>();
    let block = Block::alone(request.1, request.2, writers)?;
    Ok(enter(block, Usm::Device, request, memory))
}

/// Frees deferred memory whose commands are complete.
pub fn sweep<D: OverSystem>() {
    deferred_free::sweep_all::<Memory<D>>();
}

/// How other processes open an allocation. Marks it as shared.
///
/// # Errors
/// `INVALID_VALUE` for memory without a descriptor.
pub fn exposed<D: OverSystem>(found: &Allocation<D>) -> Result<Behind> {
    let behind = match found.expose() {
        Some(Memory::Block(block) | Memory::Exportable(block)) => block.behind(),
        Some(Memory::Pooled(part)) => {
            let (chunk, offset) = (part.block().chunk(), part.block().offset());
            D::block(chunk).and_then(Block::behind).map(|behind| behind.offset(offset))
        }
        Some(Memory::Opened(_)) | None => None,
    };
    let why = "this memory is the driver's or another process's: only device USM of a device that accesses the \
               system's memory has a descriptor to share it by";
    behind.ok_or_else(|| Error::new(ErrorCode::InvalidValue, why))
}
/// `ExportsMemory::form`. A memfd is not a dma-buf: it does not support the operations that drivers use on one.
///
/// # Errors
/// `UNSUPPORTED_ENUMERATION` for another type than a descriptor of no particular kind.
pub fn form<D: OverSystem>(
    device: &DriverDevice<D>,
    wished: ur_exp_external_mem_type_t,
) -> Result<()> {
    check_device::<D>(device, "memory that is exported")?;
    match wished {
        ur_exp_external_mem_type_t::OPAQUE_FD => Ok(()),
        other => {
            let why = format!("the system's memory is exported as OPAQUE_FD and not as {other:?}");
            Err(Error::new(ErrorCode::UnsupportedEnumeration, why))
        }
    }
}
/// `ExportsMemory::allocate_exportable`.
///
/// # Errors
/// As for [`Block::alone`].
pub fn allocate_exportable<D: OverSystem>(
    (home, bytes, align): (Owner, usize, usize),
) -> Result<UsmPtr> {
    alone::<D>((home, bytes, align.max(page())), Writers::Everyone, Memory::Exportable)
}
/// `ExportsMemory::descriptor`.
///
/// # Errors
/// As for [`Behind::descriptor`].
pub fn descriptor<D: OverSystem>(found: &Allocation<D>) -> Result<OwnedFd> {
    exposed(found)?.descriptor()
}
/// [`Shares::export`].
///
/// # Errors
/// `INVALID_VALUE` for memory without a descriptor.
pub fn export<D: OverSystem>(found: &Allocation<D>) -> Result<Travels> {
    Ok((payload(&exposed(found)?), uuid()?))
}
/// [`Shares::export_physical`].
///
/// # Errors
/// As for [`export`].
pub fn export_physical(memory: &Physical) -> Result<Travels> {
    Ok((payload(&memory.behind()?), uuid()?))
}
/// [`Shares::home`]: the machine.
///
/// # Errors
/// `INVALID_VALUE` for memory of another machine or of a device with memory of its own.
pub fn home<D: Shares>(device: Borrowed<'_, Device<D>>, its: [u8; 16]) -> Result<Home<D>> {
    same_device(its, uuid()?)?;
    Ok(Home::of(device.own()?))
}
/// [`Shares::import`].
///
/// # Errors
/// As for [`Mapped::of`].
pub fn import<D: OverSystem + Shares>(
    home: &Home<D>,
    arrived: Arrived,
) -> Result<Registered<Memory<D>>> {
    let (mapped, within, bytes) = Mapped::of(arrived)?;
    let (base, device) = (mapped.base().offset(within)?, home.device.as_handle().addr());
    Ok(Registered::new(base, bytes, device, Memory::Opened(mapped)))
}
/// [`Shares::shares_memory`] and [`Shares::shares_physical_memory`].
pub fn is_shared<D: OverSystem>(context: &Context<D>) -> bool {
    D::is_reached_by_all(context.driver())
}

#[doc(hidden)]
pub use {ur_adapter, ur_core, ur_hal, ur_ipc, ur_mapping, ur_sys}; // for `system_memory`

/// Implements memory over the system's for a backend that is [`OverSystem`](crate::usm::OverSystem): virtual memory, the
/// registration of host memory (which has no effect), sharing, export, and where USM comes from.
#[macro_export]
macro_rules! system_memory {
    ($backend:ty) => {
        const _: () = {
            use $crate::{
                mapping::{Reservation, page},
                opened::Physical,
                usm::{
                    self, Allocation, Memory, OverSystem as _,
                    ur_adapter::{self, memory::UsmPtr, object::Borrowed, share::Refusal},
                    ur_core::{
                        memory::allocation::{Home as Owner, OfProcess, Registered, Usm},
                        over_driver::{
                            Context, Device, DriverContext, DriverDevice,
                            memory_export::ExportsMemory,
                            share::{Home, Shares, Travels},
                            usm_pool::HasUsm,
                        },
                    },
                    ur_hal::{Access, Address, Granularity, Pins, Range, Result, VirtualMemory},
                    ur_ipc::Arrived,
                    ur_mapping::PerProcess,
                    ur_sys::ur_exp_external_mem_type_t,
                },
            };
            impl usm::HasMemory for $backend {
                fn memory() -> &'static OfProcess<Memory<Self>> {
                    static MEMORY: PerProcess<OfProcess<Memory<$backend>>> = PerProcess::new();
                    MEMORY.get()
                }
            }
            impl HasUsm for $backend {
                fn take(
                    context: Borrowed<'_, Context<Self>>,
                    usm: Usm,
                    device: Borrowed<'_, Device<Self>>,
                    request: (Owner, usize, usize),
                ) -> ur_adapter::error::Result<UsmPtr> {
                    usm::take(context, usm, device, request)
                }
                fn take_alone(
                    device: Borrowed<'_, Device<Self>>,
                    request: (Owner, usize, usize),
                    is_read_only: bool,
                ) -> ur_adapter::error::Result<UsmPtr> {
                    usm::take_alone::<Self>(device.driver(), request, is_read_only)
                }
            }
            impl VirtualMemory for $backend {
                const REUSES_PHYSICAL: bool = true;
                const UNMAPS_PARTS: bool = true;
                fn granularity(
                    context: &DriverContext<Self>,
                    _: &DriverDevice<Self>,
                    _: usize,
                ) -> Result<Granularity> {
                    usm::check_context::<Self>(context, "virtual memory")?;
                    Ok(Granularity { minimum: page(), recommended: page() })
                }
                fn reserve(
                    context: &DriverContext<Self>,
                    wished: Option<Address>,
                    bytes: usize,
                    _: usize,
                ) -> Result<Reservation> {
                    usm::check_context::<Self>(context, "virtual memory")?;
                    Ok(Reservation::new(wished.map(Address::into), bytes)?)
                }
                fn physical(
                    context: &DriverContext<Self>,
                    _: &DriverDevice<Self>,
                    bytes: usize,
                    _: bool,
                ) -> Result<Physical> {
                    usm::check_context::<Self>(context, "physical memory")?;
                    Ok(Physical::new(bytes)?)
                }
                fn map(
                    reservation: &Reservation,
                    to: Range,
                    (memory, offset): (&Physical, usize),
                    _: &[DriverDevice<Self>],
                    access: Access,
                ) -> Result<()> {
                    Ok(memory.map(offset, reservation, to, access)?)
                }
                fn protect(
                    reservation: &Reservation,
                    part: Range,
                    _: &Physical,
                    _: &[DriverDevice<Self>],
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
                fn pin(context: &DriverContext<Self>, _: Range, _: Access) -> Result<()> {
                    usm::check_context::<Self>(context, "registered host memory")
                }
            }
            impl ExportsMemory for $backend {
                type Form = ();
                fn form(
                    device: &Device<Self>,
                    wished: ur_exp_external_mem_type_t,
                ) -> ur_adapter::error::Result<()> {
                    usm::form::<Self>(device.driver(), wished)
                }
                fn allocate_exportable(
                    _: Borrowed<'_, Context<Self>>,
                    _: Borrowed<'_, Device<Self>>,
                    (): (),
                    request: (Owner, usize, usize),
                ) -> ur_adapter::error::Result<UsmPtr> {
                    usm::allocate_exportable::<Self>(request)
                }
                fn descriptor(
                    found: &Allocation<Self>,
                    (): (),
                ) -> ur_adapter::error::Result<std::os::fd::OwnedFd> {
                    usm::descriptor(found)
                }
            }
            impl Shares for $backend {
                type Imported = Registered<Memory<Self>>;
                const IS_SYSTEMS: bool = true;
                fn shares_memory(context: &Context<Self>) -> bool {
                    usm::is_shared(context)
                }
                fn shares_physical_memory(context: &Context<Self>) -> bool {
                    usm::is_shared(context)
                }
                fn export(found: &Allocation<Self>) -> ur_adapter::error::Result<Travels> {
                    usm::export(found)
                }
                fn export_physical(
                    _: &Device<Self>,
                    memory: &Physical,
                    _: usize,
                ) -> ur_adapter::error::Result<Travels> {
                    usm::export_physical(memory)
                }
                fn home(
                    device: Borrowed<'_, Device<Self>>,
                    its: [u8; 16],
                ) -> ur_adapter::error::Result<Home<Self>> {
                    usm::home(device, its)
                }
                fn import(
                    _: Borrowed<'_, Context<Self>>,
                    home: &Home<Self>,
                    arrived: Arrived,
                ) -> ur_adapter::error::Result<Registered<Memory<Self>>> {
                    usm::import(home, arrived)
                }
                fn import_physical(
                    _: Borrowed<'_, Context<Self>>,
                    _: &Home<Self>,
                    arrived: Arrived,
                ) -> std::result::Result<Physical, Refusal> {
                    Ok(Physical::of(arrived)?)
                }
            }
        };
    };
}
