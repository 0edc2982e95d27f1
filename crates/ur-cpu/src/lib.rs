//! The CPU: the device that every machine has. Its queues are threads, its memory is memfds, its
//! events are words in shared memory. Its kernels are native code; see `docs/native-kernels.md`.
mod adapter;
mod backing;
mod bindless;
mod capture;
mod code;
mod command_buffer;
mod context;
mod device;
mod engine;
mod enqueue;
mod enqueue_image;
mod event;
mod graph;
mod host;
mod image;
mod launch;
mod mapping;
mod mem;
mod memory;
mod memory_export;
mod native;
mod native_code;
mod p2p;
mod partition;
mod platform;
mod program;
mod queue;
mod recording;
mod sampler;
mod share;
mod topology;
mod usm;
mod usm_host;
mod virtual_mem;

pub use command_buffer::{Command, CommandBuffer};
pub use context::Context;
pub use device::Device;
pub use event::Event;
pub use graph::{ExecutableGraph, Graph};
pub use mem::Mem;
pub use program::{Kernel, Program};
pub use queue::Queue;
pub use sampler::Sampler;
use std::convert::Infallible;
use ur_adapter::{
    api::*,
    error::{ErrorCode, Result},
    object::{Backend, Body, Borrowed, Kind, Never, Owned, Slab, Tag},
};
use ur_core::over_driver::{Beneath, Contexts};
use ur_sys::ur_dditable_t;
pub use usm::UsmPool;
pub use virtual_mem::PhysicalMem;

/// The adapter of the host's own processor and memory.
#[derive(Debug)]
pub struct Cpu;

/// Objects whose verbs the driver does not have yet have no type.
impl ur_hal::Types for Cpu {
    type Device = Owned<Device>;
    type Context = context::DriverContext;
    type Allocation = backing::Block;
    type Reservation = mapping::Reservation;
    type Physical = virtual_mem::Physical;
    type Stream = Infallible;
    type Point = Infallible;
    type Module = <Self as ur_hal::Modules>::Module;
    type Function = <Self as ur_hal::Modules>::Function;
    type Image = Infallible;
    type Sampler = Infallible;
    type Graph = Infallible;
}

/// What `ur_adapter_handle_t` points at.
#[derive(Debug)]
pub struct Adapter;
/// What `ur_platform_handle_t` points at.
#[derive(Debug)]
pub struct Platform;

/// The whole of this adapter, as C sees it.
pub static TABLE: ur_dditable_t = ur_dditable_t {
    command_buffer_exp: ur_core::command_buffers::<Cpu>(),
    memory_export_exp: ur_core::memory_export::<Cpu>(),
    ..ur_core::table::<Cpu>()
};
// These entries are the core's.
impl CommandApi for Cpu {}
impl CommandBufferExpApi for Cpu {}
impl MemoryExportExpApi for Cpu {}
impl Contexts for Cpu {
    const BACKEND: Backend = Backend::Cpu;
    fn devices(context: &Context) -> &[Owned<Device>] {
        context.devices()
    }
    fn check(context: &Context, device: Borrowed<'_, Device>) -> Result<()> {
        context.check(device)
    }
}
impl Beneath for Cpu {
    type Memory = memory::Memory;
    fn wait(context: usize) -> Result<()> {
        engine::all_queues_ticket(context).wait();
        Ok(())
    }
}

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
    Context, Context, InvalidContext;
    Queue, Queue, InvalidQueue;
    Event, Event, InvalidEvent;
    Graph, Graph, InvalidGraph;
    ExecutableGraph, ExecutableGraph, InvalidGraph;
}

impl Body for Device {
    const TAG: Tag = Tag::new(Backend::Cpu, Kind::Device);
    const INVALID: ErrorCode = ErrorCode::InvalidDevice;
    fn slab() -> &'static Slab<Self> {
        static SLAB: Slab<Device> = Slab::new(&TABLE);
        &SLAB
    }
    /// Releases of the root device have no effect: it is there for as long as the process is.
    fn is_counted(&self) -> bool {
        !self.is_root()
    }
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
    type Program = Program;
    type Kernel = Kernel;
    type Sampler = Sampler;
    type Mem = Mem;
    type ExpExternalMem = Never<{ Kind::ExternalMem as u16 }>;
    type ExpExternalSemaphore = Never<{ Kind::ExternalSemaphore as u16 }>;
    type ExpCommandBuffer = CommandBuffer;
    type ExpCommandBufferCommand = Command;
    type ExpGraph = Graph;
    type ExpExecutableGraph = ExecutableGraph;
}

// What the CPU has nothing of its own for yet: every entry answers UNSUPPORTED_FEATURE.
