//! CUDA and HIP: one adapter over one table of driver functions, and what really differs between
//! the two in [`Dialect`]. Queues are streams, device memory is virtual memory with descriptors that
//! other processes can be given, shared events are words in memory that streams write and wait for.
//!
//! An object of this room keeps the primary context of its device; contexts are pushed and popped
//! around driver calls, never left current, never reset: programs share them with cudart and torch.
//!
//! What an importer sees when an exporter ends, and what cannot be promised then, is on the page of the
//! crate `cuda`.
mod adapter;
mod attribute;
mod backing;
mod binary;
pub mod clock;
mod code;
mod context;
mod crossing;
mod device;
mod device_info;
pub mod driver;
mod enqueue;
mod enqueue_image;
mod event;
mod foreign;
mod image;
mod lane;
mod launch;
mod mem;
mod memory;
pub mod native;
mod opened;
mod p2p;
mod patience;
mod peers;
mod platform;
mod program;
mod queue;
mod registry;
mod sampler;
mod share;
mod shared_event;
mod staging;
mod storage;
mod submission;
mod unsupported;
mod usm;
mod usm_async;
mod usm_host;
mod virtual_mem;
mod watch;

pub use adapter::Adapter;
pub use attribute::Attribute;
pub use context::Context;
pub use device::Device;
pub use driver::{Cuda, Dialect, Hip};
pub use event::Event;
pub use mem::Mem;
pub use platform::Platform;
pub use program::{Kernel, Program};
pub use queue::Queue;
pub use sampler::Sampler;
use std::{convert::Infallible, marker::PhantomData};
use ur_adapter::{
    api::*,
    error::{ErrorCode, Result},
    object::{Backend, Body, Borrowed, Kind, Never, Owned, Slab, Tag},
};
use ur_core::{
    kernels::geometry,
    over_driver::{self, Beneath, Contexts},
};
use ur_sys::ur_dditable_t;
pub use usm::UsmPool;
pub use virtual_mem::PhysicalMem;

/// The driver of one dialect, and the entries that are not the core's yet.
#[derive(Debug)]
pub struct Family<D>(PhantomData<fn() -> D>);

/// Objects whose verbs the driver does not have yet have no type.
impl<D: Dialect> ur_hal::Types for Family<D> {
    type Device = Owned<Device<D>>;
    type Context = context::DriverContext<D>;
    type Allocation = backing::Chunk<D>;
    type Reservation = virtual_mem::Reservation<D>;
    type Physical = virtual_mem::Physical<D>;
    type Stream = Infallible;
    type Point = Infallible;
    type Module = <Self as ur_hal::Modules>::Module;
    type Function = <Self as ur_hal::Modules>::Function;
    type Image = Infallible;
    type Sampler = Infallible;
    type Graph = Infallible;
}
/// CUDA's adapter, as C sees it.
pub static CUDA_TABLE: ur_dditable_t = ur_core::table::<Family<Cuda>>();
/// HIP's adapter, as C sees it.
pub static HIP_TABLE: ur_dditable_t = ur_core::table::<Family<Hip>>();
/// The tables under their dialects' names.
mod tables {
    pub(super) use super::{CUDA_TABLE as Cuda, HIP_TABLE as Hip};
}

macro_rules! bodies { ($($field:ident: $t:ident, $code:ident;)*) => {
    /// What a process has once of a dialect.
    #[derive(Debug)]
    pub struct Statics<D: Dialect> {
        $($field: Slab<$t<D>>,)*
        system: device::System<D>,
        memory: registry::Registry<D>,
        queues_now: queue::Everyone<D>,
        shared_events: shared_event::Desk<D>,
        watch: over_driver::watch::Watch<Event<D>>,
        staging: staging::Pool<D>,
        utility: native::own_streams::UtilityStreams<D>,
        devices: Slab<Device<D>>,
        mems: Slab<Mem<D>>,
        samplers: Slab<Sampler<D>>,
        programs: Slab<Program<D>>,
        kernels: Slab<Kernel<D>>,
        physical_mems: Slab<PhysicalMem<D>>,
        usm_pools: Slab<UsmPool<D>>,
        adapter: adapter::Single<Owned<Adapter<D>>>,
        platform: adapter::Single<Owned<Platform<D>>>,
    }
    impl<D: Dialect> Statics<D> {
        const fn new(table: &'static ur_dditable_t) -> Self {
            Self {
                $($field: Slab::new(table),)*
                system: device::System::new(),
                memory: registry::Registry::new(),
                queues_now: queue::Everyone::new(),
                shared_events: shared_event::Desk::new(),
                watch: over_driver::watch::Watch::new(),
                staging: staging::Pool::new(),
                utility: native::own_streams::UtilityStreams::new(),
                devices: Slab::new(table),
                mems: Slab::new(table),
                samplers: Slab::new(table),
                programs: Slab::new(table),
                kernels: Slab::new(table),
                physical_mems: Slab::new(table),
                usm_pools: Slab::new(table),
                adapter: adapter::Single::new(),
                platform: adapter::Single::new(),
            }
        }
    }
    $(impl<D: Dialect> Body for $t<D> {
        const TAG: Tag = Tag::new(D::BACKEND, Kind::$t);
        const INVALID: ErrorCode = ErrorCode::$code;
        fn slab() -> &'static Slab<Self> {
            &D::statics().$field
        }
    })*
} }
bodies! {
    adapters: Adapter, InvalidValue;
    platforms: Platform, InvalidPlatform;
    contexts: Context, InvalidContext;
    queues: Queue, InvalidQueue;
    events: Event, InvalidEvent;
}

impl<D: Dialect> Body for Device<D> {
    const TAG: Tag = Tag::new(D::BACKEND, Kind::Device);
    const INVALID: ErrorCode = ErrorCode::InvalidDevice;
    fn slab() -> &'static Slab<Self> {
        &D::statics().devices
    }
    /// Devices are there for as long as the process is.
    fn is_counted(&self) -> bool {
        false
    }
}

impl<D: Dialect> Contexts for Family<D> {
    const BACKEND: Backend = <D as Dialect>::BACKEND;
    fn devices(context: &Context<D>) -> &[Owned<Device<D>>] {
        context.devices()
    }
    fn check(context: &Context<D>, device: Borrowed<'_, Device<D>>) -> Result<()> {
        context.check(device)
    }
}
impl<D: Dialect> Beneath for Family<D> {
    type Memory = memory::Memory<D>;
    fn wait(context: usize) -> Result<()> {
        queue::ticket::<D>(context).wait()
    }
}
impl<D: Dialect> Objects for Family<D> {
    type Adapter = Adapter<D>;
    type Platform = Platform<D>;
    type Device = Device<D>;
    type Context = Context<D>;
    type Event = Event<D>;
    type Queue = Queue<D>;
    type PhysicalMem = PhysicalMem<D>;
    type UsmPool = UsmPool<D>;
    type Program = Program<D>;
    type Kernel = Kernel<D>;
    type Sampler = Sampler<D>;
    type Mem = Mem<D>;
    type ExpExternalMem = Never<{ Kind::ExternalMem as u16 }>;
    type ExpExternalSemaphore = Never<{ Kind::ExternalSemaphore as u16 }>;
    type ExpCommandBuffer = Never<{ Kind::CommandBuffer as u16 }>;
    type ExpCommandBufferCommand = Never<{ Kind::CommandBufferCommand as u16 }>;
    type ExpGraph = Never<{ Kind::Graph as u16 }>;
    type ExpExecutableGraph = Never<{ Kind::ExecutableGraph as u16 }>;
}
