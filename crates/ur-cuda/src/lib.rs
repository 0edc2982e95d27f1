//! The backend for CUDA and HIP: one implementation over one table of driver functions; what differs between
//! the two drivers is in [`Dialect`]. A queue is a set of streams, device memory is virtual memory whose
//! descriptors can be sent to other processes, and a shared event is a memory word that streams write and
//! wait for.
//!
//! Objects of this backend use the primary context of their device. It is pushed and popped around driver
//! calls, never left current and never reset, because the CUDA runtime and PyTorch share it with us.
//!
//! What an importer observes when an exporter ends, and what cannot be guaranteed then, is described in the
//! documentation of the crate `cuda`.
mod attribute;
mod backing;
mod binary;
pub mod clock;
mod code;
mod context;
mod crossing;
mod device;
mod device_info;
pub mod driver;
mod foreign;
mod image;
mod lane;
mod mem;
pub mod native;
mod objects;
mod opened;
mod p2p;
mod patience;
mod peers;
mod point;
mod registry;
mod sampler;
mod share;
mod shared_words;
mod staging;
mod streams;
mod submission;
mod usm;
mod usm_async;
mod virtual_mem;
mod work;

pub use attribute::Attribute;
pub use device::DriverDevice;
use driver::Api;
pub use driver::{Cuda, Dialect, Hip};
use std::marker::PhantomData;
use ur_adapter::{api::*, error::Result, object::Backend};
use ur_core::{
    graph,
    memory::allocation::OfProcess,
    over_driver::{self, Contexts, CoreBackend},
    queue,
};
use ur_mapping::PerProcess;
use ur_sys::ur_dditable_t;

/// The backend type of the dialect `D`: implements the traits of `ur_hal` and the entries that `ur-core` does
/// not implement yet.
#[derive(Debug)]
pub struct Family<D>(PhantomData<fn() -> D>);

/// The dispatch table of the CUDA adapter.
pub static CUDA_TABLE: ur_dditable_t = ur_core::table_over_streams::<Family<Cuda>>();
/// The dispatch table of the HIP adapter.
pub static HIP_TABLE: ur_dditable_t = ur_core::table_over_streams::<Family<Hip>>();
/// The tables by the names of their dialects, for the macro in `driver.rs`.
mod tables {
    pub(super) use super::{CUDA_TABLE as Cuda, HIP_TABLE as Hip};
}

/// The state that a process has once for each dialect.
#[derive(Debug)]
pub struct Statics<D: Dialect> {
    core: ur_adapter::statics::Statics,
    system: device::System<D>,
    memory: PerProcess<registry::Store<D>>,
    allocations: PerProcess<OfProcess<over_driver::memory::Memory<Family<D>>>>,
    queues_now: work::QueueRegistry<D>,
    shared_words: shared_words::RegisteredPieces<D>,
    lost_signals: shared_words::LossWatch,
    staging: staging::Pool<D>,
    utility: native::own_streams::UtilityStreams<D>,
}
impl<D: Dialect> Statics<D> {
    const fn new(table: &'static ur_dditable_t) -> Self {
        Self {
            core: ur_adapter::statics::Statics::new(table),
            system: device::System::new(),
            memory: PerProcess::new(),
            allocations: PerProcess::new(),
            queues_now: work::QueueRegistry::new(),
            shared_words: shared_words::RegisteredPieces::new(),
            lost_signals: shared_words::LossWatch::new(),
            staging: staging::Pool::new(),
            utility: native::own_streams::UtilityStreams::new(),
        }
    }
}
impl<D: Dialect> Contexts for Family<D> {
    const BACKEND: Backend = match D::API {
        Api::Cuda => Backend::Cuda,
        Api::Hip => Backend::Hip,
    };
    fn statics() -> &'static ur_adapter::statics::Statics {
        &D::statics().core
    }
    fn log_name() -> &'static str {
        D::NAME
    }
    fn check_fork() -> Result<()> {
        Ok(device::check_fork::<D>()?)
    }
}
/// Tells the user, by the adapter's log, what no call can return.
pub(crate) fn notice<D: Dialect>(severity: ur_hal::Severity, what: &dyn std::fmt::Display) {
    ur_adapter::log::notice(<Family<D> as Contexts>::BACKEND, severity, what);
}
impl<D: Dialect> over_driver::memory::HasMemory for Family<D> {
    fn memory() -> &'static OfProcess<over_driver::memory::Memory<Family<D>>> {
        D::statics().allocations.get()
    }
}
impl<D: Dialect> over_driver::device::HasDevices for Family<D> {}
impl<D: Dialect> CoreBackend for Family<D> {
    type Memory = over_driver::memory::Memory<Family<D>>;
    type Moment = work::Moment<D>;
    fn moments(context: usize, since: u64) -> Vec<work::Moment<D>> {
        work::submitted(context, since)
    }
    fn wait(context: usize) -> Result<()> {
        Ok(work::wait_for_all::<D>(context)?)
    }
}
impl<D: Dialect> ur_hal::Graphs for Family<D> {}
impl<D: Dialect> queue::HasStreams for Family<D> {
    ur_core::records_graphs!();
}
impl<D: Dialect> graph::HasGraphs for Family<D> {}
impl<D: Dialect> Objects for Family<D> {
    ur_core::objects!();
}
