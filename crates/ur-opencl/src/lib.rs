//! OpenCL: every platform and device that an ICD loader lists. Where a device reaches the system's memory, as those do that
//! are the host's own processor, all memory is ours: kernels run on it, and processes share it.
mod cl;
mod code;
mod context;
mod device;
mod device_info;
mod driver;
mod error;
mod image;
mod lane;
mod log;
mod mem;
mod memory;
mod native;
mod native_handles;
mod platform;
mod point;
mod sampler;
mod streams;
#[cfg(test)]
mod tests;

pub use device::DriverDevice;
pub use platform::DriverPlatform;
use std::{convert::Infallible, ffi::CStr, sync::Arc};
use ur_adapter::{api::Objects, error::Result, object::Backend, statics::Statics};
use ur_core::{
    graph,
    over_driver::{self, Contexts, CoreBackend},
    queue,
};
use ur_sys::ur_dditable_t;

/// The adapter of OpenCL's platforms.
#[derive(Debug)]
pub struct OpenCl;
/// What `ur_mem_handle_t` points at.
pub type Mem = over_driver::mem::Mem<OpenCl>;
/// What `ur_sampler_handle_t` points at.
pub type Sampler = over_driver::sampler::Sampler<OpenCl>;
/// What `ur_device_handle_t` points at.
pub type Device = over_driver::Device<OpenCl>;
/// What `ur_context_handle_t` points at.
pub type Context = over_driver::Context<OpenCl>;
/// What `ur_queue_handle_t` points at.
pub type Queue = ur_core::queue::Queue<OpenCl>;
/// What `ur_event_handle_t` points at.
pub type Event = ur_core::queue::Event<OpenCl>;

/// The whole of this adapter, as C sees it.
pub static TABLE: ur_dditable_t = ur_dditable_t {
    bindless_images_exp: ur_core::no_bindless_images::<OpenCl>(),
    memory_export_exp: ur_core::memory_export::<OpenCl>(),
    ..ur_core::table_over_streams::<OpenCl>()
};

impl ur_hal::Types for OpenCl {
    type Device = Arc<DriverDevice>;
    type Context = context::DriverContext;
    type Allocation = memory::Chunk;
    type Reservation = ur_system::mapping::Reservation;
    type Physical = ur_system::opened::Physical;
    type Stream = lane::Stream;
    type Point = point::End;
    type Module = code::Module;
    type Function = code::Function;
    type Image = image::Pixels;
    type Sampler = native::own::Own<driver::RawSampler>;
    type Graph = Infallible;
}
impl queue::HasStreams for OpenCl {
    ur_core::records_graphs!();
}
impl graph::HasGraphs for OpenCl {}
impl Objects for OpenCl {
    ur_core::objects!();
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
        Ok(platform::check_process()?)
    }
}
ur_core::memory_of_process!(OpenCl);
impl CoreBackend for OpenCl {
    type Memory = over_driver::memory::Memory<Self>;
    type Moment = lane::Moment;
    fn moments(context: usize, _: u64) -> Vec<lane::Moment> {
        lane::moments(context)
    }
    fn wait(context: usize) -> Result<()> {
        Ok(lane::wait_for_context(context)?)
    }
}
impl ur_hal::Graphs for OpenCl {}

impl ur_hal::ReachesPeers for OpenCl {}
