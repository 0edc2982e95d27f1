//! The CPU: the device that every machine has. Its queues are threads, its memory is memfds, its
//! events are words in shared memory. Kernels and images are not implemented yet and say so.
mod adapter;
mod allocation;
mod backing;
mod context;
mod device;
mod engine;
mod enqueue;
mod event;
mod host;
mod limbo;
mod mapping;
mod native;
mod physical_mem;
mod platform;
mod queue;
mod share;
mod usm;
mod virtual_mem;

pub use context::Context;
pub use event::Event;
pub use physical_mem::PhysicalMem;
pub use queue::Queue;
use ur_adapter::{
    api::*,
    entry,
    error::ErrorCode,
    object::{Backend, Body, Kind, Never, Slab, Tag},
};
use ur_sys::ur_dditable_t;
pub use usm::UsmPool;

/// The adapter of the host's own processor and memory.
#[derive(Debug)]
pub struct Cpu;

/// What `ur_adapter_handle_t` points at.
#[derive(Debug)]
pub struct Adapter;
/// What `ur_platform_handle_t` points at.
#[derive(Debug)]
pub struct Platform;
/// What `ur_device_handle_t` points at.
#[derive(Debug)]
pub struct Device;

/// The whole of this adapter, as C sees it.
pub static TABLE: ur_dditable_t = entry::table::<Cpu>();

macro_rules! bodies { ($($t:ty, $kind:ident, $code:ident;)*) => { $(
    impl Body for $t {
        const TAG: Tag = Tag::new(Backend::Cpu, Kind::$kind);
        const INVALID: ErrorCode = ErrorCode::$code;
        fn slab() -> &'static Slab<Self> {
            static SLAB: Slab<$t> = Slab::new(&TABLE);
            &SLAB
        }
    }
)* } }
bodies! {
    Adapter, Adapter, InvalidValue;
    Platform, Platform, InvalidPlatform;
    Device, Device, InvalidDevice;
    Context, Context, InvalidContext;
    Queue, Queue, InvalidQueue;
    Event, Event, InvalidEvent;
    PhysicalMem, PhysicalMem, InvalidMemObject;
    UsmPool, UsmPool, InvalidValue;
}

impl Objects for Cpu {
    type Adapter = Adapter;
    type Platform = Platform;
    type Device = Device;
    type Context = Context;
    type Event = Event;
    type Queue = Queue;
    type PhysicalMem = PhysicalMem;
    type UsmPool = UsmPool;
    type Program = Never<{ Kind::Program as u16 }>;
    type Kernel = Never<{ Kind::Kernel as u16 }>;
    type Sampler = Never<{ Kind::Sampler as u16 }>;
    type Mem = Never<{ Kind::Mem as u16 }>;
    type ExpExternalMem = Never<{ Kind::ExternalMem as u16 }>;
    type ExpExternalSemaphore = Never<{ Kind::ExternalSemaphore as u16 }>;
    type ExpCommandBuffer = Never<{ Kind::CommandBuffer as u16 }>;
    type ExpCommandBufferCommand = Never<{ Kind::CommandBufferCommand as u16 }>;
    type ExpGraph = Never<{ Kind::Graph as u16 }>;
    type ExpExecutableGraph = Never<{ Kind::ExecutableGraph as u16 }>;
}

ur_adapter::share_entries!(Cpu);

// What the CPU has nothing of its own for yet: every entry answers UNSUPPORTED_FEATURE.
impl QueueExpApi for Cpu {}
impl ProgramApi for Cpu {}
impl ProgramExpApi for Cpu {}
impl KernelApi for Cpu {}
impl SamplerApi for Cpu {}
impl MemApi for Cpu {}
impl BindlessImagesExpApi for Cpu {}
impl CommandBufferExpApi for Cpu {}
impl GraphExpApi for Cpu {}
impl MemoryExportExpApi for Cpu {}
impl UsmP2pExpApi for Cpu {}
