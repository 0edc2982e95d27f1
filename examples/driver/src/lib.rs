//! A complete adapter of Unified Runtime for a device that does not exist: its memory is files, and a thread for each
//! queue executes. It is a tutorial, to be read in the order in which `docs/how-to-add-a-backend.md` has its steps:
//!
//! 1. this file: the type, its objects, its table;
//! 2. `file.rs`: the "driver", which is the kernel; the only unsafe code;
//! 3. `device.rs`: adapter, platform, device, contexts;
//! 4. `memory.rs`: USM and buffers, of which the core does all but the bytes;
//! 5. `queue.rs` and `event.rs`: a thread, and the ends of its commands;
//! 6. `commands.rs`: what commands do;
//! 7. `share.rs`: memory and events of other processes.
//!
//! It has no kernels, images, virtual memory, command buffers and graphs: what it says of them are defaults.
mod commands;
mod device;
mod event;
mod file;
mod memory;
mod queue;
mod share;

use device::{Adapter, Context, Device, DriverContext, Platform};
use event::Event;
use memory::{Kernel, Mem, PhysicalMem, Program, Sampler, UsmPool};
use queue::Queue;
use std::convert::Infallible;
use ur_adapter::{
    api::*,
    error::{ErrorCode, Result},
    object::{Backend, Body, Borrowed, Kind, Never, Owned, Slab, Tag},
};
use ur_core::over_driver::{Beneath, Contexts};
use ur_sys::ur_dditable_t;

/// The driver. A real one has a number of its own in `Backend`; this one borrows that of a backend nobody has here.
#[derive(Debug)]
pub struct Example;
const BACKEND: Backend = Backend::Offload;
/// What logs call it, and the variable that asks for them: `UR_LOG_EXAMPLE`.
const NAME: &str = "EXAMPLE";

/// The adapter as C sees it. The core fills it: with its own entries where a family has moved there, with ours where not.
static TABLE: ur_dditable_t = ur_core::table::<Example>();
/// The C symbols of the shared object. A backend of this project has them in a crate of their own.
mod leaf {
    ur_adapter::leaf!(Offload, "EXAMPLE", crate::TABLE);
}

/// What objects are to the driver. A kind that it does not have is `Infallible`: no value of it can be made.
impl ur_hal::Types for Example {
    type Device = Owned<Device>;
    type Context = DriverContext;
    type Allocation = file::Mapped;
    type Reservation = Infallible;
    type Physical = Infallible;
    type Stream = Infallible;
    type Point = Infallible;
    type Module = Infallible;
    type Function = Infallible;
    type Image = Infallible;
    type Sampler = Infallible;
    type Graph = Infallible;
}
/// What handles of C point at. Six kinds are the core's; `Never` is a kind of which there is no handle.
impl Objects for Example {
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
    type ExpCommandBuffer = Never<{ Kind::CommandBuffer as u16 }>;
    type ExpCommandBufferCommand = Never<{ Kind::CommandBufferCommand as u16 }>;
    type ExpGraph = Never<{ Kind::Graph as u16 }>;
    type ExpExecutableGraph = Never<{ Kind::ExecutableGraph as u16 }>;
}

/// A place for objects of a kind: memory that is never given back, so that a stale handle can be told from a good one.
macro_rules! slab {
    ($t:ty) => {{
        static SLAB: ur_adapter::object::Slab<$t> = ur_adapter::object::Slab::new(&crate::TABLE);
        &SLAB
    }};
}
use slab;
macro_rules! bodies { ($($t:ident, $code:ident, $is_counted:literal;)*) => { $(
    impl Body for $t {
        const TAG: Tag = Tag::new(BACKEND, Kind::$t);
        const INVALID: ErrorCode = ErrorCode::$code;
        fn slab() -> &'static Slab<Self> {
            slab!($t)
        }
        fn is_counted(&self) -> bool {
            $is_counted
        }
    }
)* } }
bodies! {
    Adapter, InvalidValue, true;
    Platform, InvalidPlatform, true;
    Device, InvalidDevice, false; // a device is there as long as the process is
    Context, InvalidContext, true;
    Queue, InvalidQueue, true;
    Event, InvalidEvent, true;
}

impl Contexts for Example {
    const BACKEND: Backend = BACKEND;
    fn devices(context: &Context) -> &[Owned<Device>] {
        context.devices()
    }
    fn check(context: &Context, device: Borrowed<'_, Device>) -> Result<()> {
        context.check(device)
    }
}
impl Beneath for Example {
    type Memory = memory::Memory;
    fn wait(context: usize) -> Result<()> {
        queue::moments(context).iter().for_each(queue::Moment::wait);
        Ok(())
    }
}

// Families of which this device has nothing: every entry answers UNSUPPORTED_FEATURE. Commands are the core's to take.
impl BindlessImagesExpApi for Example {}
impl CommandApi for Example {}
impl CommandBufferExpApi for Example {}
impl GraphExpApi for Example {}
impl MemoryExportExpApi for Example {}
impl QueueExpApi for Example {}
impl ur_hal::ReachesPeers for Example {}
impl ur_hal::VirtualMemory for Example {}
