//! Memory: where devices reach the system's it is mappings of ours, which processes share, else the driver's. What is freed
//! when, pools and all entries are the core's.
use super::{
    Context, Device, DriverDevice, OpenCl,
    context::DriverContext,
    lane::{self, Moment},
    native::{
        memory::{self as native, Given, Reach},
        queue::{Made, NativeQueue, Waits},
    },
};
use std::{os::fd::OwnedFd, sync::Arc};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Backend, Borrowed, Object},
};
use ur_core::{
    memory::{
        allocation::{self, DeferredItem, Home, Pooled, Usm},
        allocations::{self, Allocations},
        deferred_free::{self, DeferredFree},
    },
    over_driver::{
        memory_export::ExportsMemory,
        physical_mem,
        usm_host::HostRegistration,
        usm_pool::{self, HasUsm},
    },
};
use ur_hal::{
    Access, Address, Allocates, Granularity, KnownMemory, MemoryKind, MemoryRequest, Range,
    VirtualMemory,
};
use ur_mapping::PerProcess;
use ur_sys::ur_exp_external_mem_type_t;
use ur_system::{
    backing::{ALIGNMENT, Behind, Block},
    mapping::{Reservation, Side, Writers, page},
    opened::{Mapped, Physical},
};

type Chunks = usm_pool::Chunks<OpenCl>;
/// One allocation, or the whole of an object that was opened.
pub type Allocation = allocation::Allocation<Memory>;

/// Memory in one piece.
#[derive(Debug)]
pub enum Chunk {
    /// Ours.
    System(Block),
    /// The driver's.
    Given(Given),
}
impl ur_hal::Memory for Chunk {
    fn range(&self) -> Range {
        match self {
            Self::System(block) => block.range(),
            Self::Given(given) => given.range(),
        }
    }
}
/// What an allocation consists of.
#[derive(Debug)]
pub enum Memory {
    /// Taken from the process's store.
    Block(Block),
    /// Cut from a pool.
    Pooled(Pooled<Chunks>),
    /// Memory with a descriptor of its own, which callers may have.
    Exportable(Block),
    /// Another process's.
    Opened {
        /// Where it is mapped.
        mapping: Mapped,
    },
}
macro_rules! of_process {
    ($t:ty) => {{
        static ONE: PerProcess<$t> = PerProcess::new();
        ONE.get()
    }};
}
impl allocation::Memory for Memory {
    const BACKEND: Backend = Backend::OpenCl;
    type Source = Chunks;
    type Moment = Moment;
    fn allocations() -> &'static Allocations<Allocation> {
        of_process!(Allocations<Allocation>)
    }
    fn deferred() -> &'static DeferredFree<Moment, DeferredItem<Self>> {
        of_process!(DeferredFree<Moment, DeferredItem<Memory>>)
    }
    fn submitted(context: usize) -> Vec<Moment> {
        lane::moments(context)
    }
    fn is_of_parent() -> bool {
        super::driver::is_of_parent()
    }
    fn pooled(part: Pooled<Chunks>) -> Self {
        Self::Pooled(part)
    }
    fn is_opened(&self) -> bool {
        matches!(self, Self::Opened { .. })
    }
    fn is_reused(&self) -> bool {
        match self {
            Self::Block(block) | Self::Exportable(block) => block.is_recycled(),
            Self::Pooled(_) => true,
            Self::Opened { .. } => false,
        }
    }
    fn check_elsewhere(range: Range, needs: Access) -> Result<()> {
        physical_mem::reserved::<OpenCl>().check_mapped(range, needs)
    }
    fn is_read_only(&self) -> bool {
        matches!(self, Self::Opened { mapping } if mapping.is_read_only())
    }
    fn is_exportable(&self) -> bool {
        matches!(self, Self::Exportable(_))
    }
}
/// How others open an allocation, of which it is told here that they may.
pub(super) fn exposed(found: &Allocation) -> Option<Behind> {
    match found.expose()? {
        Memory::Block(block) | Memory::Exportable(block) => block.behind(),
        Memory::Pooled(part) => {
            let block = part.block();
            match block.chunk() {
                Chunk::System(chunk) => chunk.behind().map(|behind| behind.offset(block.offset())),
                Chunk::Given(_) => None,
            }
        }
        Memory::Opened { .. } => None,
    }
}
/// Another process's memory in this one's registry, for as long as this lives.
#[derive(Debug)]
pub struct OpenedMemory(Arc<Allocation>);
impl OpenedMemory {
    /// Enters `bytes` at `offset` bytes into a mapping.
    ///
    /// # Errors
    /// `INVALID_SIZE` where that leaves the address space.
    pub(super) fn new(mapping: Mapped, offset: usize, bytes: usize, device: usize) -> Result<Self> {
        let base = mapping.base().offset(offset)?;
        let home = Home { device, ..Home::default() };
        let memory = Memory::Opened { mapping };
        Ok(Self(Allocation::enter(base, bytes, Usm::Device, home, memory)))
    }
    /// The whole of the object.
    pub fn allocation(&self) -> &Allocation {
        &self.0
    }
}
impl Drop for OpenedMemory {
    fn drop(&mut self) {
        allocations::leave(&self.0);
    }
}

impl Allocates for OpenCl {
    fn allocate(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        request: MemoryRequest,
    ) -> ur_hal::Result<Chunk> {
        let (reach, raw) = (context.reach(), device.raw());
        Ok(match reach {
            Reach::System => Chunk::System(Block::of_request(request)?),
            _ => Chunk::Given(Given::new(
                reach,
                context.extensions(),
                context.native(),
                raw,
                request,
            )?),
        })
    }
    fn recognise(
        context: &DriverContext,
        at: Address,
    ) -> ur_hal::Result<Option<KnownMemory<Arc<DriverDevice>>>> {
        let known = native::recognise(context.extensions(), context.native().raw(), at);
        Ok(known.map(|KnownMemory { range, kind, .. }| KnownMemory { range, kind, device: None }))
    }
}
impl ExportsMemory for OpenCl {
    type Form = ();
    /// A memfd is no dma-buf: what drivers ask of one it does not know.
    fn form(device: &Device, wished: ur_exp_external_mem_type_t) -> Result<()> {
        if device.driver().facts().can.reach != Reach::System {
            return Error::unsupported(
                "memory that is exported by a device that does not reach the system's",
            );
        }
        match wished {
            ur_exp_external_mem_type_t::OPAQUE_FD => Ok(()),
            other => {
                let why =
                    format!("the system's memory is exported as OPAQUE_FD and not as {other:?}");
                Err(Error::new(ErrorCode::UnsupportedEnumeration, why))
            }
        }
    }
    fn allocate_exportable(
        _: Borrowed<'_, Context>,
        _: Borrowed<'_, Device>,
        (): (),
        (home, bytes, align): (Home, usize, usize),
    ) -> Result<UsmPtr> {
        deferred_free::sweep::<Memory>();
        let block = Block::alone(bytes, align.max(page()), Writers::Everyone)?;
        let (base, memory) = (block.base(), Memory::Exportable(block));
        Ok(Allocation::enter(base, bytes, Usm::Device, home, memory).base())
    }
    fn descriptor(found: &Allocation, (): ()) -> Result<OwnedFd> {
        let none = || {
            let why = format!("{:?} has no descriptor", found.base());
            Error::new(ErrorCode::InvalidValue, why)
        };
        exposed(found).ok_or_else(none)?.descriptor()
    }
}
impl HostRegistration for OpenCl {
    const IS_USED: bool = false;
    type Pinned = ();
    /// Where devices reach the system's memory nothing need be done.
    fn pin(context: &DriverContext, _: UsmPtr, _: usize, _: bool) -> Result<()> {
        match context.reach() {
            Reach::System => Ok(()),
            _ => Error::unsupported("urUSMHostAllocRegisterExp"),
        }
    }
}
/// What memory starts at multiples of where C says nothing: the largest type, sixteen eight-byte numbers.
const NATURAL: usize = 128;

impl HasUsm for OpenCl {
    const LARGEST_ALIGNMENT: usize = ALIGNMENT;
    const ROW: usize = NATURAL;
    type DriverPools = ();
    fn check_size(device: &Arc<DriverDevice>, bytes: usize) -> Result<()> {
        check_size(device, bytes, ErrorCode::InvalidUsmSize)
    }
    fn natural_alignment(bytes: usize) -> usize {
        NATURAL.min(bytes.checked_next_power_of_two().unwrap_or(NATURAL))
    }
    fn take(
        context: Borrowed<'_, Context>,
        usm: Usm,
        device: Borrowed<'_, Device>,
        (home, bytes, align): (Home, usize, usize),
    ) -> Result<UsmPtr> {
        if context.driver().reach() != Reach::System {
            return context.pools().own(context).allocate(usm, device, (home, bytes, align));
        }
        deferred_free::sweep::<Memory>();
        let block = Block::take(Side::from(MemoryKind::from(usm)), bytes, align)?;
        Ok(Allocation::enter(block.base(), bytes, usm, home, Memory::Block(block)).base())
    }
    fn take_alone(
        device: Borrowed<'_, Device>,
        (home, bytes, align): (Home, usize, usize),
        is_read_only: bool,
    ) -> Result<UsmPtr> {
        if device.driver().facts().can.reach != Reach::System {
            return Error::unsupported(
                "a policy for memory of a device that does not reach the system's",
            );
        }
        let writers = if is_read_only { Writers::MappedAlready } else { Writers::Everyone };
        deferred_free::sweep::<Memory>();
        let block = Block::alone(bytes, align, writers)?;
        let (base, memory) = (block.base(), Memory::Block(block));
        Ok(Allocation::enter(base, bytes, Usm::Device, home, memory).base())
    }
    fn memory_size(device: &Arc<DriverDevice>) -> Result<usize> {
        Ok(usize::try_from(device.facts().memory[0]).unwrap_or(usize::MAX))
    }
    fn submitted(context: &Object<Context>, _since: u64) -> Vec<Moment> {
        lane::moments(context.as_handle().addr())
    }
    fn zero(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        at: UsmPtr,
        bytes: usize,
    ) -> Result<()> {
        aside(context, device, |queue| queue.fill((at.into(), &[0], bytes), Waits(&[]), Made(None)))
    }
    fn copy(context: Borrowed<'_, Context>, to: UsmPtr, from: UsmPtr, bytes: usize) -> Result<()> {
        copy(context.driver(), to, from, bytes)
    }
}
/// Copies memory beside all queues, and waits until it is done.
///
/// # Errors
/// The driver's own.
pub(super) fn copy(context: &DriverContext, to: UsmPtr, from: UsmPtr, bytes: usize) -> Result<()> {
    if to == from || bytes == 0 {
        return Ok(());
    }
    aside(context, &context.devices()[0], |queue| {
        queue.copy((to.into(), from.into(), bytes), Waits(&[]), Made(None))
    })
}
/// Has a queue of its own do something, and waits until it is done.
///
/// # Errors
/// The driver's own.
pub(super) fn aside(
    context: &DriverContext,
    device: &DriverDevice,
    what: impl FnOnce(&NativeQueue) -> Result<()>,
) -> Result<()> {
    let queue = NativeQueue::new(context.native().raw(), device.raw(), true, context.extensions())?;
    what(&queue)?;
    queue.finish()
}
/// # Errors
/// `code` for no bytes, and for more than an allocation of the device may have.
pub(super) fn check_size(device: &DriverDevice, bytes: usize, code: ErrorCode) -> Result<()> {
    let most = device.facts().memory[1];
    match bytes > 0 && bytes as u64 <= most {
        true => Ok(()),
        false => {
            let why = format!("{bytes} bytes are none, or more than the {most} there can be");
            Err(Error::new(code, why))
        }
    }
}

fn system(context: &DriverContext) -> ur_hal::Result<()> {
    match context.reach() {
        Reach::System => Ok(()),
        _ => ur_hal::Error::unsupported("virtual memory: it does not reach the system's"),
    }
}
impl VirtualMemory for OpenCl {
    const REUSES_PHYSICAL: bool = true;
    const UNMAPS_PARTS: bool = true;

    fn granularity(
        context: &DriverContext,
        _: &Arc<DriverDevice>,
        _: usize,
    ) -> ur_hal::Result<Granularity> {
        system(context)?;
        Ok(Granularity { minimum: page(), recommended: page() })
    }
    fn reserve(
        context: &DriverContext,
        wished: Option<Address>,
        bytes: usize,
        _: usize,
    ) -> ur_hal::Result<Reservation> {
        system(context)?;
        Ok(Reservation::new(wished.map(Address::into), bytes)?)
    }
    fn physical(
        context: &DriverContext,
        _: &Arc<DriverDevice>,
        bytes: usize,
        _: bool,
    ) -> ur_hal::Result<Physical> {
        system(context)?;
        Ok(Physical::new(bytes)?)
    }
    fn map(
        reservation: &Reservation,
        to: Range,
        (memory, offset): (&Physical, usize),
        _: &[Arc<DriverDevice>],
        access: Access,
    ) -> ur_hal::Result<()> {
        Ok(memory.map(offset, reservation, to, access)?)
    }
    fn protect(
        reservation: &Reservation,
        part: Range,
        _: &Physical,
        _: &[Arc<DriverDevice>],
        access: Access,
    ) -> ur_hal::Result<()> {
        let (at, bytes) = reservation.place(part);
        Ok(reservation.protect(at, bytes, access)?)
    }
    fn unmap(reservation: &Reservation, part: Range, _: &Physical) -> ur_hal::Result<()> {
        let (at, bytes) = reservation.place(part);
        Ok(reservation.unmap(at, bytes)?)
    }
}
