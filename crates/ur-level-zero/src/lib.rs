//! Level Zero: one adapter for the two names under which Unified Runtime has one. Queues are
//! immediate command lists, or lists that are submitted in batches; events are counters where the
//! driver has such, and pooled otherwise; memory goes to other processes by the driver's own handles.
//!
//! Environment variables of Unified Runtime's adapters that choose between ways which this one has
//! are listed in `options.rs`; all others change nothing here.
//!
//! What an importer sees when an exporter ends, and what cannot be promised then, is on the page of the
//! crate `level-zero`.
mod adapter;
mod announcer;
mod backing;
mod clock;
mod code;
mod command_buffer;
mod context;
mod crossing;
mod device;
mod device_info;
pub mod driver;
mod enqueue;
mod enqueue_image;
mod error;
mod event;
mod extensions;
mod face;
mod fate;
mod foreign;
mod host_task;
mod image;
mod lane;
mod launch;
mod mem;
mod memory;
mod memory_export;
pub mod native;
mod opened;
mod options;
mod p2p;
mod partition;
mod platform;
mod program;
mod queue;
mod registry;
mod reusable;
mod sampler;
mod share;
mod shared_event;
mod signal;
mod signaller;
mod storage;
mod submission;
mod tail;
mod ticket;
mod unsupported;
mod usm;
mod usm_host;
mod virtual_mem;
mod watch;
mod work;

pub use adapter::Adapter;
pub use command_buffer::{CommandBuffer, CommandBufferCommand};
pub use context::Context;
pub use device::{Device, Group};
pub use event::Event;
pub use extensions::Extensions;
pub use mem::Mem;
use options::options;
pub use platform::Platform;
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
use ur_sys::{ur_adapter_dditable_t, ur_adapter_handle_t, ur_dditable_t, ur_result_t};
pub use usm::UsmPool;
pub use virtual_mem::PhysicalMem;

/// The driver, and the entries that are not the core's yet.
#[derive(Debug)]
pub struct LevelZero;

/// Objects whose verbs the driver does not have yet have no type.
impl ur_hal::Types for LevelZero {
    type Device = Owned<Device>;
    type Context = context::DriverContext;
    type Allocation = backing::Chunk;
    type Reservation = virtual_mem::Reservation;
    type Physical = native::physical_memory::Physical;
    type Stream = Infallible;
    type Point = Infallible;
    type Module = <Self as ur_hal::Modules>::Module;
    type Function = <Self as ur_hal::Modules>::Function;
    type Image = Infallible;
    type Sampler = Infallible;
    type Graph = Infallible;
}
/// The adapter as C sees it.
pub static TABLE: ur_dditable_t = table();
const fn table() -> ur_dditable_t {
    let command_buffer_exp = ur_core::command_buffers::<LevelZero>();
    let memory_export_exp = ur_core::memory_export::<LevelZero>();
    ur_dditable_t { command_buffer_exp, memory_export_exp, ..ur_core::table::<LevelZero>() }
}
/// The adapter under its first name: the same, but that it knows its name.
pub static TABLE_V1: ur_dditable_t = under(face::adapter_get_v1);
/// The adapter under its second name.
pub static TABLE_V2: ur_dditable_t = under(face::adapter_get_v2);
const fn under(
    get: unsafe extern "C" fn(u32, *mut ur_adapter_handle_t, *mut u32) -> ur_result_t,
) -> ur_dditable_t {
    let table = table();
    let adapter = ur_adapter_dditable_t { get: Some(get), ..table.adapter };
    ur_dditable_t { adapter, ..table }
}

macro_rules! bodies { ($($t:ident, $code:ident;)*) => { $(
    impl Body for $t {
        const TAG: Tag = Tag::new(Backend::LevelZero, Kind::$t);
        const INVALID: ErrorCode = ErrorCode::$code;
        fn slab() -> &'static Slab<Self> {
            static SLAB: Slab<$t> = Slab::new(&TABLE);
            &SLAB
        }
    }
)* } }
bodies! {
    Adapter, InvalidValue;
    Platform, InvalidPlatform;
    Context, InvalidContext;
    Queue, InvalidQueue;
}

impl Body for Event {
    const TAG: Tag = Tag::new(Backend::LevelZero, Kind::Event);
    const INVALID: ErrorCode = ErrorCode::InvalidEvent;
    fn slab() -> &'static Slab<Self> {
        static SLAB: Slab<Event> = Slab::new(&TABLE);
        &SLAB
    }
    fn is_settled(&self) -> bool {
        Self::is_settled(self)
    }
}
impl Body for Device {
    const TAG: Tag = Tag::new(Backend::LevelZero, Kind::Device);
    const INVALID: ErrorCode = ErrorCode::InvalidDevice;
    fn slab() -> &'static Slab<Self> {
        static SLAB: Slab<Device> = Slab::new(&TABLE);
        &SLAB
    }
    /// Root devices are there for as long as the process is.
    fn is_counted(&self) -> bool {
        self.parent().is_some()
    }
}

impl Contexts for LevelZero {
    const BACKEND: Backend = Backend::LevelZero;
    fn devices(context: &Context) -> &[Owned<Device>] {
        context.devices()
    }
    fn check(context: &Context, device: Borrowed<'_, Device>) -> Result<()> {
        context.check(device)
    }
}
impl Beneath for LevelZero {
    type Memory = memory::Memory;
    fn wait(context: usize) -> Result<()> {
        queue::ticket(context).wait();
        Ok(())
    }
}
impl Objects for LevelZero {
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
    type ExpCommandBufferCommand = CommandBufferCommand;
    type ExpGraph = Never<{ Kind::Graph as u16 }>;
    type ExpExecutableGraph = Never<{ Kind::ExecutableGraph as u16 }>;
}
