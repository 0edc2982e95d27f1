//! UR over any driver. Families of entries that have moved here from the backends are implemented once, for every
//! driver; each backend still implements the others. [`table_over_streams`] shows which is which.
//! `docs/decisions/0012-one-core-thin-drivers.md` has the order in which families move.

/// Makes a type over a driver what the handles of this kind point at; `INVALID` is the error code for other handles.
macro_rules! body {
    ($name:ident: $bound:path, $kind:ident, $invalid:ident $(, { $($more:tt)* })?) => {
        impl<D: $bound> ur_adapter::object::Body for $name<D> {
            const TAG: ur_adapter::object::Tag =
                ur_adapter::object::Tag::new(D::BACKEND, ur_adapter::object::Kind::$kind);
            const INVALID: ur_adapter::error::ErrorCode =
                ur_adapter::error::ErrorCode::$invalid;
            fn slab() -> &'static ur_adapter::object::Slab<Self> {
                D::statics().slab()
            }
            $($($more)*)?
        }
    };
}
pub mod c_arguments;
pub mod command;
pub mod command_buffer;
pub mod event;
pub mod graph;
pub mod kernels;
pub mod memory;
pub mod over_driver;
mod process_mutex;
pub mod profiling;
pub mod program;
pub mod queue;
pub mod unseen;

use graph::HasGraphs;
use over_driver::{
    Contexts, Lacking, OfVersion, OverDriver, device::HasDevices, p2p::HasPeers,
    physical_mem::HasPhysicalMemory, usm_pool::HasUsm,
};
use queue::HasStreams;
use ur_adapter::{
    entry,
    object::{Kind, Never},
};
use ur_hal::ExportsMemory;
use ur_sys::{
    ur_adapter_dditable_t, ur_bindless_images_exp_dditable_t, ur_dditable_t,
    ur_memory_export_exp_dditable_t,
};

#[doc(hidden)]
pub use {ur_adapter, ur_mapping, ur_sys}; // for the macros

/// The object types of a backend over the core, which make up its `impl Objects`.
#[macro_export]
macro_rules! objects {
    () => {
        type Adapter = $crate::over_driver::Adapter<Self>;
        type Platform = $crate::over_driver::Platform<Self>;
        type Device = $crate::over_driver::Device<Self>;
        type Context = $crate::over_driver::Context<Self>;
        type Event = $crate::queue::Event<Self>;
        type Queue = $crate::queue::Queue<Self>;
        type PhysicalMem = $crate::over_driver::physical_mem::PhysicalMem<Self>;
        type UsmPool = $crate::over_driver::usm_pool::UsmPool<Self>;
        type Program = $crate::program::Program<Self>;
        type Kernel = $crate::program::Kernel<Self>;
        type Sampler = $crate::over_driver::sampler::Sampler<Self>;
        type Mem = $crate::over_driver::mem::Mem<Self>;
        type ExpExternalMem = $crate::NoExternalMem;
        type ExpExternalSemaphore = $crate::NoExternalSemaphore;
        type ExpCommandBuffer = $crate::command_buffer::CommandBuffer<Self>;
        type ExpCommandBufferCommand = $crate::command_buffer::Command<Self>;
        type ExpGraph = $crate::graph::Graph<Self>;
        type ExpExecutableGraph = $crate::graph::ExecutableGraph<Self>;
    };
}
/// The memory of a backend over the core. In a static of its own, since every command looks addresses up there.
#[macro_export]
macro_rules! memory_of_process {
    ($backend:ty) => {
        impl $crate::over_driver::memory::HasMemory for $backend {
            fn memory() -> &'static $crate::memory::allocation::OfProcess<
                $crate::over_driver::memory::Memory<Self>,
            > {
                static MEMORY: $crate::ur_mapping::PerProcess<
                    $crate::memory::allocation::OfProcess<
                        $crate::over_driver::memory::Memory<$backend>,
                    >,
                > = $crate::ur_mapping::PerProcess::new();
                MEMORY.get()
            }
        }
    };
}
/// The type of external memory, which no backend imports.
pub type NoExternalMem = Never<{ Kind::ExternalMem as u16 }>;
/// The type of external semaphores, which no backend imports.
pub type NoExternalSemaphore = Never<{ Kind::ExternalSemaphore as u16 }>;

/// A dispatch table: entries of these families do something, those of the others return `UNSUPPORTED_FEATURE`.
macro_rules! families { ($t:ident: $($has:ident)*; $($lacks:ident)*) => {
    ur_dditable_t {
        $($has: entry::$has::table::<OverDriver<$t>>(),)*
        $($lacks: entry::$lacks::table::<Lacking<$t>>(),)*
    }
} }
/// The dispatch table of an adapter. Not every driver has the last two families: [`no_bindless_images`] and
/// [`memory_export`] replace them.
pub const fn table_over_streams<D>() -> ur_dditable_t
where
    D: HasGraphs + HasPhysicalMemory + HasPeers + HasDevices,
{
    families! {
        D: adapter platform context program program_exp kernel enqueue enqueue_exp mem physical_mem virtual_mem usm usm_exp
        sampler usm_p2p_exp device device_exp ipc_exp queue queue_exp event event_exp command_buffer_exp graph_exp;
        bindless_images_exp memory_export_exp
    }
}
/// The entries of bindless images for a driver that has none and imports no external memory: queries for support answer
/// no.
pub const fn no_bindless_images<D: HasStreams>() -> ur_bindless_images_exp_dditable_t {
    entry::bindless_images_exp::table::<OverDriver<D>>()
}
/// The entries of adapters for a driver whose adapter has a name for each of several versions, and tells it by
/// [`loaded_as`](over_driver::Contexts::loaded_as).
pub const fn adapter_of_version<D: Contexts, const NUMBER: u32>() -> ur_adapter_dditable_t {
    entry::adapter::table::<OfVersion<D, NUMBER>>()
}
/// The entries of exportable memory; they replace the backend's in [`table_over_streams`].
pub const fn memory_export<D: HasUsm + ExportsMemory>() -> ur_memory_export_exp_dditable_t {
    entry::memory_export_exp::table::<OverDriver<D>>()
}
