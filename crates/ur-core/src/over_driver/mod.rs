//! What adapters over a driver have in common: objects of which only the driver's calls differ. Each
//! family is here once, for any driver that implements the family's trait; a room's own file of the
//! same name says what is different there, and nothing else.
pub mod block;
pub mod device;
mod device_entries;
mod device_info;
pub mod mem;
pub mod memory_export;
pub mod own_handle;
pub mod p2p;
pub mod physical_mem;
pub mod sampler;
pub mod share;
pub mod usm;
pub mod usm_host;
pub mod usm_pool;
pub mod virtual_mem;
pub mod watch;

use crate::memory::allocation::Memory;
use std::{fmt, marker::PhantomData};
use ur_adapter::{
    api::Objects,
    error::Result,
    object::{Backend, Borrowed, Owned},
};

/// The families of entries that are the same over every driver, for the driver `D`. All others `D` implements itself.
#[derive(Debug)]
pub struct OverDriver<D>(PhantomData<fn() -> D>);

/// A driver with contexts of devices.
pub trait Contexts:
    Objects<Context: fmt::Debug, Device: fmt::Debug> + Send + Sync + fmt::Debug
{
    /// Whose handles the objects' are.
    const BACKEND: Backend;
    /// The devices that a context was made for; never empty.
    fn devices(context: &Self::Context) -> &[Owned<Self::Device>];
    /// # Errors
    /// `INVALID_DEVICE` where `device` is none of the context's.
    fn check(context: &Self::Context, device: Borrowed<'_, Self::Device>) -> Result<()>;
}
/// A driver with an adapter over it.
pub trait Beneath: Contexts {
    /// What its allocations consist of.
    type Memory: Memory;
    /// Waits for all commands before in queues of the context with this handle.
    ///
    /// # Errors
    /// Where the driver cannot be asked to wait just now.
    fn wait(context: usize) -> Result<()>;
}
impl<D: Contexts> Objects for OverDriver<D> {
    type Adapter = D::Adapter;
    type Platform = D::Platform;
    type Device = D::Device;
    type Context = D::Context;
    type Event = D::Event;
    type Program = D::Program;
    type Kernel = D::Kernel;
    type Queue = D::Queue;
    type Sampler = D::Sampler;
    type Mem = D::Mem;
    type PhysicalMem = D::PhysicalMem;
    type ExpExternalMem = D::ExpExternalMem;
    type ExpExternalSemaphore = D::ExpExternalSemaphore;
    type ExpCommandBuffer = D::ExpCommandBuffer;
    type ExpCommandBufferCommand = D::ExpCommandBufferCommand;
    type ExpGraph = D::ExpGraph;
    type ExpExecutableGraph = D::ExpExecutableGraph;
    type UsmPool = D::UsmPool;
}
