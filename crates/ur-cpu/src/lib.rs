//! The backend for the CPU, the device that every machine has. Its queues are threads, its memory is memfds,
//! its events are words in shared memory, and its kernels are native code; see `docs/native-kernels.md`.
mod adapter;
mod code;
mod device;
mod engine;
mod image;
mod launch;
mod mem;
mod memory;
mod native_code;
mod p2p;
mod partition;
mod sampler;
mod streams;
mod topology;

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
};
use ur_adapter::{api::Objects, error::Result, log, object::Backend, statics::Statics};
use ur_core::{
    graph,
    over_driver::{self, Contexts, CoreBackend},
    queue,
};
use ur_sys::{ur_backend_t, ur_dditable_t};
use ur_system::{backing, bytes, host, mapping};

/// The backend type: implements the traits of `ur_hal` and the entries that `ur-core` does not implement yet.
#[derive(Debug)]
pub struct Cpu;

/// `Graph` is `Infallible`: there are no native graphs; the core replays recorded commands.
impl ur_hal::Types for Cpu {
    type Device = Arc<device::DriverDevice>;
    type Context = device::DriverContext;
    type Allocation = backing::Block;
    type Reservation = mapping::Reservation;
    type Physical = ur_system::opened::Physical;
    type Stream = streams::Stream;
    type Point = std::sync::Arc<engine::Completion>;
    type Module = code::Code;
    type Function = native_code::Function;
    type Image = image::Pixels;
    type Sampler = u32;
    type Graph = Infallible;
}

/// What `ur_queue_handle_t` points at.
pub type Queue = ur_core::queue::Queue<Cpu>;
/// What `ur_event_handle_t` points at.
pub type Event = ur_core::queue::Event<Cpu>;
/// What `ur_mem_handle_t` points at.
pub type Mem = over_driver::mem::Mem<Cpu>;
/// What `ur_sampler_handle_t` points at.
pub type Sampler = over_driver::sampler::Sampler<Cpu>;
/// What `ur_device_handle_t` points at.
pub type Device = over_driver::Device<Cpu>;
/// What `ur_context_handle_t` points at.
pub type Context = over_driver::Context<Cpu>;

/// The dispatch table of the adapter.
pub static TABLE: ur_dditable_t = ur_dditable_t {
    bindless_images_exp: ur_core::no_bindless_images::<Cpu>(),
    memory_export_exp: ur_core::memory_export::<Cpu>(),
    ..ur_core::table_over_streams::<Cpu>()
};
impl ur_hal::Graphs for Cpu {}
impl Contexts for Cpu {
    const BACKEND: Backend = Backend::Cpu;
    const KEEPS_PARTS: bool = false;
    fn statics() -> &'static Statics {
        static STATICS: Statics = Statics::new(&TABLE);
        &STATICS
    }
    fn log_name() -> &'static str {
        "NATIVE_CPU"
    }
    fn shown_as() -> ur_backend_t {
        match is_opencl() {
            true => ur_backend_t::OPENCL,
            false => ur_backend_t::NATIVE_CPU,
        }
    }
}
/// The root device.
#[cfg(test)]
fn the_device() -> ur_adapter::object::Owned<Device> {
    over_driver::roots::<Cpu>().next().expect("there is one").clone()
}
/// Whether the adapter passes for one of OpenCL's. The environment is read once.
fn is_opencl() -> bool {
    static IS_OPENCL: OnceLock<bool> = OnceLock::new();
    *IS_OPENCL.get_or_init(|| {
        adapter::wants_opencl().unwrap_or_else(|why| {
            log::warn_of_environment(Backend::Cpu, why);
            false
        })
    })
}
impl over_driver::device::HasDevices for Cpu {}
ur_core::memory_of_process!(Cpu);
impl CoreBackend for Cpu {
    type Memory = over_driver::memory::Memory<Self>;
    type Moment = engine::Moment;
    fn moments(context: usize, _: u64) -> Vec<engine::Moment> {
        engine::all_queues_sync_point(context).into_moments()
    }
    fn wait(context: usize) -> Result<()> {
        engine::all_queues_sync_point(context).wait();
        Ok(())
    }
}

impl queue::HasStreams for Cpu {
    ur_core::records_graphs!();
}
impl graph::HasGraphs for Cpu {}
impl Objects for Cpu {
    ur_core::objects!();
}
