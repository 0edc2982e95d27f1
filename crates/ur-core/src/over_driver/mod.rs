//! What adapters over a driver have in common: objects of which only the driver's calls differ. Each
//! family is here once, for any driver that implements the family's trait; a room's own file of the
//! same name says what is different there, and nothing else.
pub mod block;
pub mod mem;
pub mod physical_mem;
pub mod usm_host;
pub mod virtual_mem;
pub mod watch;

use crate::memory::allocation::Memory;
use std::{
    fmt,
    marker::PhantomData,
    sync::atomic::{AtomicU64, Ordering::*},
};
use ur_adapter::{
    api::{Objects, UsmApi},
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
pub trait Beneath: Contexts + UsmApi {
    /// What its allocations consist of.
    type Memory: Memory;
    /// Waits for all commands before in queues of the context with this handle.
    ///
    /// # Errors
    /// Where the driver cannot be asked to wait just now.
    fn wait(context: usize) -> Result<()>;
    /// Drops all that was freed and no command uses any more, and what the context's own pools keep for later: where
    /// memory has run out.
    ///
    /// # Errors
    /// The driver's own.
    fn make_room(context: Borrowed<'_, Self::Context>) -> Result<()>;
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

/// How many objects were named so far, and one.
static NEXT: AtomicU64 = AtomicU64::new(1);
/// The bits of a name that are its number; above are the backend's.
const NUMBER: u32 = 48;
/// A name for an object of this process, memory or physical memory, of a backend.
pub fn next_object(backend: Backend) -> u64 {
    (backend as u64) << NUMBER | NEXT.fetch_add(1, Relaxed) // a number, nothing more
}
/// A number that is greater than those of all objects named before, and of none named afterwards. To tell
/// whether an object was there at some moment, for threads between which something else makes an order.
pub fn objects_so_far() -> u64 {
    NEXT.load(Relaxed) // a number, nothing more
}
/// The number in an object's name.
pub fn number_of(object: u64) -> u64 {
    object & ((1 << NUMBER) - 1)
}
