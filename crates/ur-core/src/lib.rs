//! UR over any driver. What has moved here from the backends is implemented once, for every driver; what has not is
//! still each backend's, and [`table`] says which is which. The order in which families move is in
//! `docs/decisions/0012-one-core-thin-drivers.md`.
pub mod command;
pub mod exhausted;
pub mod from_c;
pub mod kernels;
pub mod memory;
pub mod over_driver;
pub mod profiling;
pub mod program;
pub mod unseen;

use over_driver::{OverDriver, mem::KeepsBytes, physical_mem::HasPhysicalMemory};
use program::RunsCode;
use ur_adapter::{api::*, entry};
use ur_sys::ur_dditable_t;

/// An adapter as C sees it. Families that have moved are the core's, all others the backend's.
pub const fn table<D>() -> ur_dditable_t
where
    D: KeepsBytes + HasPhysicalMemory + RunsCode,
    D: AdapterApi
        + PlatformApi
        + ContextApi
        + EventApi
        + EventExpApi
        + QueueApi
        + QueueExpApi
        + SamplerApi
        + EnqueueApi
        + EnqueueExpApi
        + BindlessImagesExpApi
        + CommandBufferExpApi
        + GraphExpApi
        + IpcExpApi
        + MemoryExportExpApi
        + UsmP2pExpApi
        + DeviceApi
        + DeviceExpApi,
{
    ur_dditable_t {
        adapter: entry::adapter::table::<D>(),
        platform: entry::platform::table::<D>(),
        context: entry::context::table::<D>(),
        event: entry::event::table::<D>(),
        event_exp: entry::event_exp::table::<D>(),
        program: entry::program::table::<OverDriver<D>>(),
        program_exp: entry::program_exp::table::<OverDriver<D>>(),
        kernel: entry::kernel::table::<OverDriver<D>>(),
        queue: entry::queue::table::<D>(),
        queue_exp: entry::queue_exp::table::<D>(),
        sampler: entry::sampler::table::<D>(),
        mem: entry::mem::table::<OverDriver<D>>(),
        physical_mem: entry::physical_mem::table::<OverDriver<D>>(),
        enqueue: entry::enqueue::table::<D>(),
        enqueue_exp: entry::enqueue_exp::table::<D>(),
        usm: entry::usm::table::<OverDriver<D>>(),
        usm_exp: entry::usm_exp::table::<OverDriver<D>>(),
        bindless_images_exp: entry::bindless_images_exp::table::<D>(),
        command_buffer_exp: entry::command_buffer_exp::table::<D>(),
        graph_exp: entry::graph_exp::table::<D>(),
        ipc_exp: entry::ipc_exp::table::<D>(),
        memory_export_exp: entry::memory_export_exp::table::<D>(),
        usm_p2p_exp: entry::usm_p2p_exp::table::<D>(),
        virtual_mem: entry::virtual_mem::table::<OverDriver<D>>(),
        device: entry::device::table::<D>(),
        device_exp: entry::device_exp::table::<D>(),
    }
}
