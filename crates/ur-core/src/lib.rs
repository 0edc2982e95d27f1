//! UR over any driver. What has moved here from the backends is implemented once, for every driver; what has not is
//! still each backend's, and [`table`] says which is which. The order in which families move is in
//! `docs/decisions/0012-one-core-thin-drivers.md`.
pub mod command;
pub mod command_buffer;
pub mod event;
pub mod exhausted;
pub mod from_c;
pub mod kernels;
pub mod memory;
pub mod over_driver;
pub mod profiling;
pub mod program;
pub mod queue;
pub mod unseen;

use command::TakesCommands;
use command_buffer::Records;
use event::SharesEvents;
use over_driver::{
    OverDriver, device::HasDevices, mem::KeepsBytes, memory_export::ExportsMemory, p2p::HasPeers,
    physical_mem::HasPhysicalMemory, sampler::HasSamplers, share::Shares,
};
use queue::HasStreams;
use ur_adapter::{api::*, entry};
use ur_sys::{ur_dditable_t, ur_memory_export_exp_dditable_t};

/// Which families are the core's, and which each backend's.
macro_rules! families { (
    $(#[$doc:meta])* $name:ident($($bound:path),*)
    $($core:ident)*; $($own:ident: $api:ident)*
) => {
    $(#[$doc])*
    pub const fn $name<D>() -> ur_dditable_t
    where
        D: KeepsBytes + HasPhysicalMemory + HasSamplers + HasPeers + HasDevices + Shares + TakesCommands $(+ $bound)* $(+ $api)*,
    {
        ur_dditable_t {
            $($core: entry::$core::table::<OverDriver<D>>(),)*
            $($own: entry::$own::table::<D>(),)*
        }
    }
} }
families! {
    /// An adapter as C sees it, whose queues and events are the core's. Families that have moved are the core's, all others
    /// the backend's.
    table_over_streams(HasStreams, Records)
    adapter platform context program program_exp kernel enqueue enqueue_exp mem physical_mem virtual_mem usm usm_exp sampler
    usm_p2p_exp device device_exp ipc_exp queue event event_exp command_buffer_exp;
    queue_exp: QueueExpApi
    bindless_images_exp: BindlessImagesExpApi
    graph_exp: GraphExpApi
    memory_export_exp: MemoryExportExpApi
}
families! {
    /// The same of a backend that has queues and events of its own: until it has moved onto streams and points.
    table(SharesEvents)
    adapter platform context program program_exp kernel enqueue enqueue_exp mem physical_mem virtual_mem usm usm_exp sampler
    usm_p2p_exp device device_exp ipc_exp;
    event: EventApi
    event_exp: EventExpApi
    queue: QueueApi
    queue_exp: QueueExpApi
    bindless_images_exp: BindlessImagesExpApi
    command_buffer_exp: CommandBufferExpApi
    graph_exp: GraphExpApi
    memory_export_exp: MemoryExportExpApi
}
/// The entries of memory that others can be given: they take the place of those in [`table_over_streams`].
pub const fn memory_export<D: ExportsMemory>() -> ur_memory_export_exp_dditable_t {
    entry::memory_export_exp::table::<OverDriver<D>>()
}
