//! UR's objects over a driver. Each family of objects is implemented here once, for any driver that implements the
//! family's trait; a backend's file with the same name contains only what differs there.
mod adapter;
mod bindless;
pub mod block;
mod context;
pub mod device;
mod device_entries;
mod device_info;
pub mod foreign;
mod leaving;
pub mod mem;
mod mem_entries;
pub mod memory;
pub mod memory_export;
mod objects;
pub mod offer;
pub mod own_handle;
pub mod p2p;
pub mod physical_mem;
pub mod sampler;
pub mod share;
mod storage;
pub mod usm;
pub mod usm_host;
pub mod usm_pool;
pub mod virtual_mem;
pub mod watch;

use crate::memory::allocation::Memory;
pub use objects::{
    Adapter, Context, Contexts, Device, DriverContext, DriverDevice, Platform, roots,
};
use std::{fmt, marker::PhantomData};
use ur_adapter::{
    api::{BindlessImagesExpApi, MemoryExportExpApi, Objects},
    error::Result,
};

/// Implements the families of entries that are the same over every driver, for the driver `D`. The driver's type
/// implements the others itself.
#[derive(Debug)]
pub struct OverDriver<D>(PhantomData<fn() -> D>);
/// Implements families that a driver lacks: every entry returns `UNSUPPORTED_FEATURE`.
#[derive(Debug)]
pub struct Lacking<D>(PhantomData<fn() -> D>);
/// Implements the entries of adapters for a driver whose adapter is loaded under the name of a version.
#[derive(Debug)]
pub struct OfVersion<D, const NUMBER: u32>(PhantomData<fn() -> D>);
impl<D: Contexts> BindlessImagesExpApi for Lacking<D> {}
impl<D: Contexts> MemoryExportExpApi for Lacking<D> {}

/// A driver with UR objects over it.
pub trait CoreBackend: Contexts + fmt::Debug {
    /// What its allocations consist of: always [`memory::Memory`].
    type Memory: Memory;
    /// A point in a queue's commands; freed memory waits for such points before it is reused.
    type Moment: ur_hal::Moment + Send + 'static;
    /// The points that will have passed when all commands submitted so far are complete: to queues of the context with
    /// this handle, or of all contexts if it is 0. May leave out commands that use no memory as old as the object with
    /// the number `since`.
    fn moments(context: usize, since: u64) -> Vec<Self::Moment>;
    /// Waits for all commands submitted so far to queues of the context with this handle.
    ///
    /// # Errors
    /// If the driver cannot wait now, for example during a capture.
    fn wait(context: usize) -> Result<()>;
}
macro_rules! objects_of_driver { ($($t:ident $(, const $number:ident)?;)*) => { $(
impl<D: Contexts $(, const $number: u32)?> Objects for $t<D $(, $number)?> {
    type Adapter = <D as Objects>::Adapter;
    type Platform = <D as Objects>::Platform;
    type Device = <D as Objects>::Device;
    type Context = <D as Objects>::Context;
    type Event = <D as Objects>::Event;
    type Program = <D as Objects>::Program;
    type Kernel = <D as Objects>::Kernel;
    type Queue = <D as Objects>::Queue;
    type Sampler = <D as Objects>::Sampler;
    type Mem = <D as Objects>::Mem;
    type PhysicalMem = <D as Objects>::PhysicalMem;
    type ExpExternalMem = <D as Objects>::ExpExternalMem;
    type ExpExternalSemaphore = <D as Objects>::ExpExternalSemaphore;
    type ExpCommandBuffer = <D as Objects>::ExpCommandBuffer;
    type ExpCommandBufferCommand = <D as Objects>::ExpCommandBufferCommand;
    type ExpGraph = <D as Objects>::ExpGraph;
    type ExpExecutableGraph = <D as Objects>::ExpExecutableGraph;
    type UsmPool = <D as Objects>::UsmPool;
    #[inline]
    fn check_usable() -> Result<()> {
        D::check_fork()
    }
}
)* } }
objects_of_driver! { OverDriver; Lacking; OfVersion, const NUMBER; }
