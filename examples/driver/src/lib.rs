//! A complete adapter of Unified Runtime for a device that does not exist: its memory is files, and a thread for each
//! queue executes. It is a tutorial, to be read in the order in which `docs/how-to-add-a-backend.md` has its steps:
//!
//! 1. this file: the type, its objects, its table;
//! 2. `file.rs`: the "driver", which is the kernel; the only unsafe code;
//! 3. `device.rs`: the device;
//! 4. `memory.rs`: USM and buffers, of which the core does all but the bytes;
//! 5. `stream.rs`: a thread, and the ends of its commands, of which the core makes queues and events;
//! 6. `commands.rs`: what commands do;
//! 7. `virtual_memory.rs`: reserved addresses, and what is mapped at them;
//! 8. `share.rs`: memory of other processes.
//!
//! It has no kernels and images: what it says of them are defaults.
mod commands;
mod device;
mod file;
mod memory;
mod share;
mod stream;
mod virtual_memory;

use std::{convert::Infallible, sync::Arc};
use ur_adapter::{api::*, error::Result, object::Backend, statics::Statics};
use ur_core::{
    command_buffer,
    over_driver::{Contexts, CoreBackend},
};
use ur_sys::ur_dditable_t;

/// The driver. A real one has a number of its own in `Backend`; this one borrows that of a backend nobody has here.
#[derive(Debug)]
pub struct Example;
const BACKEND: Backend = Backend::Offload;

/// The adapter as C sees it. The core fills it: with its own entries where a family has moved there, with ours where not.
static TABLE: ur_dditable_t = ur_core::table_over_streams::<Example>();
/// The C symbols of the shared object. A backend of this project has them in a crate of their own.
mod leaf {
    ur_adapter::leaf!(Offload, "EXAMPLE", crate::TABLE);
}

/// Queues and events are the core's, over this driver's streams.
type Queue = ur_core::queue::Queue<Example>;
type Event = ur_core::queue::Event<Example>;

/// What objects are to the driver. A kind that it does not have is `Infallible`: no value of it can be made.
impl ur_hal::Types for Example {
    type Device = ();
    type Context = ();
    type Allocation = file::Mapped;
    type Reservation = ur_system::mapping::Reservation;
    type Physical = ur_system::opened::Physical;
    type Stream = stream::Stream;
    type Point = Arc<stream::End>;
    type Module = Infallible;
    type Function = Infallible;
    type Image = Infallible;
    type Sampler = Infallible;
    type Graph = Infallible;
}
/// What handles of C point at. Fourteen kinds are the core's; `Never` is a kind of which there is no handle.
impl Objects for Example {
    ur_core::objects!();
}

impl Contexts for Example {
    const BACKEND: Backend = BACKEND;
    /// What the core keeps once of a process, objects among it.
    fn statics() -> &'static Statics {
        static STATICS: Statics = Statics::new(&TABLE);
        &STATICS
    }
    /// What logs call it, and the variable that asks for them: `UR_LOG_EXAMPLE`.
    fn log_name() -> &'static str {
        "EXAMPLE"
    }
}
impl CoreBackend for Example {
    type Memory = memory::Memory;
    fn wait(context: usize) -> Result<()> {
        stream::moments(context).iter().for_each(stream::Moment::wait);
        Ok(())
    }
}

/// Command buffers and graphs are the core's: it submits what was recorded again and again.
impl command_buffer::Replays for Example {}

// Families of which this device has nothing: every entry answers UNSUPPORTED_FEATURE. Commands are the core's to take.
impl BindlessImagesExpApi for Example {}
impl CommandApi for Example {}
impl MemoryExportExpApi for Example {}
impl ur_hal::ReachesPeers for Example {}
