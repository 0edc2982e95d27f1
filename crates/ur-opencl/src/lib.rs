//! OpenCL: every platform and device that an ICD loader lists. Where a device reaches the system's memory, as those do that
//! are the host's own processor, all memory is ours: kernels run on it, and processes share it.
mod cl;
mod code;
mod context;
mod device;
mod device_info;
mod driver;
mod enqueue;
mod error;
mod event;
mod mem;
mod memory;
mod native;
mod platform;
mod program;
mod queue;
mod sampler;
mod share;

pub use device::DriverDevice;
pub use event::Event;
pub use mem::Mem;
pub use memory::{PhysicalMem, UsmPool};
pub use platform::DriverPlatform;
pub use program::{Kernel, Program};
pub use queue::Queue;
pub use sampler::Sampler;
use std::{convert::Infallible, ffi::CStr, sync::Arc};
use ur_adapter::{
    api::*,
    error::{ErrorCode, Result},
    object::{Backend, Body, Kind, Never, Slab, Tag},
    statics::Statics,
};
use ur_core::over_driver::{self, Beneath, Contexts};
use ur_sys::ur_dditable_t;

/// The adapter of OpenCL's platforms.
#[derive(Debug)]
pub struct OpenCl;
/// What `ur_device_handle_t` points at.
pub type Device = over_driver::Device<OpenCl>;
/// What `ur_context_handle_t` points at.
pub type Context = over_driver::Context<OpenCl>;

/// The whole of this adapter, as C sees it.
pub static TABLE: ur_dditable_t = ur_core::table::<OpenCl>();

impl ur_hal::Types for OpenCl {
    type Device = Arc<DriverDevice>;
    type Context = context::DriverContext;
    type Allocation = memory::Chunk;
    type Reservation = ur_system::mapping::Reservation;
    type Physical = ur_system::opened::Physical;
    type Stream = Infallible;
    type Point = Infallible;
    type Module = code::Module;
    type Function = code::Function;
    type Image = mem::Pixels;
    type Sampler = native::own::Own<driver::RawSampler>;
    type Graph = Infallible;
}
impl Objects for OpenCl {
    type Adapter = over_driver::Adapter<Self>;
    type Platform = over_driver::Platform<Self>;
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
    type ExpCommandBuffer = Never<{ Kind::CommandBuffer as u16 }>;
    type ExpCommandBufferCommand = Never<{ Kind::CommandBufferCommand as u16 }>;
    type ExpGraph = Never<{ Kind::Graph as u16 }>;
    type ExpExecutableGraph = Never<{ Kind::ExecutableGraph as u16 }>;
}
macro_rules! bodies { ($($t:ident, $code:ident;)*) => { $(
    impl Body for $t {
        const TAG: Tag = Tag::new(Backend::OpenCl, Kind::$t);
        const INVALID: ErrorCode = ErrorCode::$code;
        fn slab() -> &'static Slab<Self> {
            OpenCl::statics().slab()
        }
    }
)* } }
bodies! {
    Queue, InvalidQueue;
    Event, InvalidEvent;
}
impl Contexts for OpenCl {
    const BACKEND: Backend = Backend::OpenCl;
    /// The driver makes new parts whenever it is asked for some.
    const KEEPS_PARTS: bool = false;
    fn statics() -> &'static Statics {
        static STATICS: Statics = Statics::new(&TABLE);
        &STATICS
    }
    fn log_name() -> &'static str {
        "OPENCL"
    }
    fn compiler_option(option: &[u8]) -> Option<&'static CStr> {
        platform::compiler_option(option)
    }
    fn check_fork() -> Result<()> {
        platform::check_fork()
    }
}
impl Beneath for OpenCl {
    type Memory = memory::Memory;
    fn wait(context: usize) -> Result<()> {
        queue::wait_for_context(context)
    }
}

// The core's, or nothing of this backend's yet: every entry answers UNSUPPORTED_FEATURE.
impl BindlessImagesExpApi for OpenCl {}
impl CommandApi for OpenCl {}
impl CommandBufferExpApi for OpenCl {}
impl GraphExpApi for OpenCl {}
impl MemoryExportExpApi for OpenCl {}
impl QueueExpApi for OpenCl {}
impl ur_hal::ReachesPeers for OpenCl {}
