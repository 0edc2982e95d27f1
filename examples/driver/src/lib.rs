//! A complete adapter of Unified Runtime for a device that does not exist: it has the system's memory, and a thread for
//! each queue executes. It is a tutorial, to be read in the order in which `docs/how-to-add-a-backend.md` has its steps:
//!
//! 1. this file: the type, its objects, its table;
//! 2. `device.rs`: the device;
//! 3. `memory.rs`: USM, buffers, and memory of other processes, of which the core and `ur-system` do most;
//! 4. `stream.rs`: a thread, and the ends of its commands, of which the core makes queues and events;
//! 5. `commands.rs`: what commands do.
//!
//! It has no kernels and images: what it says of them are defaults. What a driver with memory of its own has instead of
//! `ur-system` is in `ur-level-zero` and `ur-cuda`.
mod commands;
mod device;
mod memory;
mod stream;

use std::{convert::Infallible, sync::Arc};
use ur_adapter::{api::Objects, error::Result, object::Backend, statics::Statics};
use ur_core::{
    graph,
    over_driver::{self, Contexts, CoreBackend},
    queue,
};
use ur_sys::ur_dditable_t;
use ur_system::{backing, mapping, opened};

/// The driver. A real one has a number of its own in `Backend`; this one borrows that of a backend nobody has here.
#[derive(Debug)]
pub struct Example;

/// The adapter as C sees it.
static TABLE: ur_dditable_t = ur_core::table_over_streams::<Example>();
/// The C symbols of the shared object. A backend of this project has them in a crate of their own.
mod leaf {
    ur_adapter::leaf!(Offload, "EXAMPLE", crate::TABLE);
}

/// What objects are to the driver. A kind that it does not have is `Infallible`: no value of it can be made.
impl ur_hal::Types for Example {
    type Device = ();
    type Context = ();
    type Allocation = backing::Block;
    type Reservation = mapping::Reservation;
    type Physical = opened::Physical;
    type Stream = stream::Stream;
    type Point = Arc<stream::End>;
    type Module = Infallible;
    type Function = Infallible;
    type Image = Infallible;
    type Sampler = Infallible;
    type Graph = Infallible;
}
/// What handles of C point at: the core's objects.
impl Objects for Example {
    ur_core::objects!();
}

impl Contexts for Example {
    const BACKEND: Backend = Backend::Offload;
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
impl over_driver::device::HasDevices for Example {}
ur_core::memory_of_process!(Example);
impl CoreBackend for Example {
    type Memory = over_driver::memory::Memory<Self>;
    /// How far a stream has come; freed memory waits for that.
    type Moment = stream::Moment;
    fn moments(context: usize, _: u64) -> Vec<stream::Moment> {
        stream::moments(context)
    }
    fn wait(context: usize) -> Result<()> {
        stream::moments(context).iter().for_each(stream::Moment::wait);
        Ok(())
    }
}

/// Command buffers and graphs are the core's: it submits what was recorded again and again.
/// What commands are captured by is the core's.
impl queue::HasStreams for Example {
    ur_core::records_graphs!();
}
impl graph::HasGraphs for Example {}
impl ur_hal::Graphs for Example {}
impl ur_hal::ReachesPeers for Example {}
