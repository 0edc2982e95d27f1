//! The backend for Level Zero, used by both adapters that Unified Runtime has for it (versions 1 and 2).
//! Queues are immediate command lists, or lists that are submitted in batches; events are counter-based where
//! the driver supports that, else they come from event pools; memory is shared with other processes by the
//! driver's IPC handles.
//!
//! `options.rs` lists the environment variables of Unified Runtime's own adapters that have an effect here.
//!
//! What an importer observes when an exporter ends, and what cannot be guaranteed then, is described in the
//! documentation of the crate `level-zero`.
mod announcer;
mod backing;
mod clock;
mod code;
mod context;
mod crossing;
mod debts;
mod device;
mod device_info;
pub mod driver;
mod error;
mod extensions;
mod fate;
mod foreign;
mod graphs;
mod host_task;
mod image;
mod lane;
mod launch;
mod lazy_event;
mod log;
mod mem;
mod memory_export;
mod native;
mod opened;
mod options;
mod p2p;
mod partition;
mod platform;
mod point;
mod registry;
mod reusable;
mod sampler;
mod share;
mod signal;
mod signaller;
mod stall;
mod streams;
mod submission;
mod sync_point;
mod usm;
mod utility_lists;
mod variant;
mod virtual_mem;
mod work;

pub use device::{DriverDevice, Group};
pub use extensions::Extensions;
use options::options;
pub use platform::DriverPlatform;
use std::{ffi::CStr, sync::Arc};
use ur_adapter::{api::*, error::Result, object::Backend, statics::Statics};
use ur_core::{
    graph,
    over_driver::{self, Contexts, CoreBackend},
    queue,
};
use ur_sys::ur_dditable_t;

/// The backend type: implements the traits of `ur_hal` and the entries that `ur-core` does not implement yet.
#[derive(Debug)]
pub struct LevelZero;

impl ur_hal::Types for LevelZero {
    type Device = Arc<DriverDevice>;
    type Context = context::DriverContext;
    type Allocation = backing::Chunk;
    type Reservation = virtual_mem::Reservation;
    type Physical = native::physical_memory::Physical;
    type Stream = streams::Stream;
    type Point = point::Point;
    type Module = Arc<native::module::NativeModule>;
    type Function = native::kernel::NativeKernel;
    type Image = image::Pixels;
    type Sampler = sampler::OnDevice;
    type Graph = graphs::Graph;
}
/// What `ur_context_handle_t` points at.
pub type Context = over_driver::Context<LevelZero>;
/// What `ur_queue_handle_t` points at.
pub type Queue = queue::Queue<LevelZero>;
/// What `ur_event_handle_t` points at.
pub type Event = queue::Event<LevelZero>;

/// The dispatch table of the adapter.
pub static TABLE: ur_dditable_t = table();
const fn table() -> ur_dditable_t {
    let memory_export_exp = ur_core::memory_export::<LevelZero>();
    ur_dditable_t { memory_export_exp, ..ur_core::table_over_streams::<LevelZero>() }
}
/// The table of the adapter version 1; it differs only in its entries for adapters.
pub static TABLE_V1: ur_dditable_t =
    ur_dditable_t { adapter: ur_core::adapter_of_version::<LevelZero, 1>(), ..table() };
/// The table of the adapter version 2.
pub static TABLE_V2: ur_dditable_t =
    ur_dditable_t { adapter: ur_core::adapter_of_version::<LevelZero, 2>(), ..table() };

impl Contexts for LevelZero {
    const BACKEND: Backend = Backend::LevelZero;
    fn statics() -> &'static Statics {
        static STATICS: Statics = Statics::new(&TABLE);
        &STATICS
    }
    fn log_name() -> &'static str {
        if variant::is_v2() { "LEVEL_ZERO_V2" } else { "LEVEL_ZERO" }
    }
    fn adapter_version() -> u32 {
        1 + u32::from(variant::is_v2())
    }
    fn loaded_as(version: u32) {
        variant::set(version);
    }
    fn is_chosen() -> bool {
        variant::is_chosen()
    }
    fn compiler_option(option: &[u8]) -> Option<&'static CStr> {
        platform::compiler_option(option)
    }
    fn check_fork() -> Result<()> {
        Ok(platform::check_fork()?)
    }
}
impl over_driver::device::HasDevices for LevelZero {}
ur_core::memory_of_process!(LevelZero);
impl CoreBackend for LevelZero {
    type Memory = over_driver::memory::Memory<Self>;
    type Moment = sync_point::Moment;
    fn moments(context: usize, since: u64) -> Vec<sync_point::Moment> {
        sync_point::submitted(context, since)
    }
    fn wait(context: usize) -> Result<()> {
        Ok(sync_point::wait_for_all(context)?)
    }
}
impl queue::HasStreams for LevelZero {
    ur_core::records_graphs!();
}
impl graph::HasGraphs for LevelZero {}
impl Objects for LevelZero {
    ur_core::objects!();
}
