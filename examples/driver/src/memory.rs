//! Memory. The core has pools, limits, queries, deferred free, buffers and all entries; here is where bytes come from.
use super::{
    Example, Queue,
    device::{Context, Device},
    file::{self, Mapped},
    stream::{self, Moment},
};
use std::{convert::Infallible, sync::Arc};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Backend, Borrowed, Object, Owned},
};
use ur_core::{
    memory::{
        allocation::{self, DeferredItem, Pooled},
        allocations::Allocations,
        deferred_free::DeferredFree,
    },
    over_driver::{
        mem::{self, BufferBackend},
        physical_mem,
        sampler::HasSamplers,
        usm_host::HostRegistration,
        usm_pool::{Chunks, HasUsm},
    },
    program::{HasCode, RunsCode},
};
use ur_hal::{Access, Allocates, MemoryRequest, Range};
use ur_ipc::SharedMemory;
use ur_mapping::PerProcess;
use ur_sys::*;

// Kinds of objects that the core has, over this driver.
pub type Mem = mem::Mem<Example>;
pub type Allocation = allocation::Allocation<Memory>;

/// How much memory the device says that it has, in bytes.
pub const TOTAL: usize = 1 << 30;
/// What memory starts at multiples of where C says nothing.
const NATURAL: usize = 128;

/// What an allocation consists of.
#[derive(Debug)]
pub enum Memory {
    /// A part of a pool's chunk, which is a file.
    Pooled(Pooled<Chunks<Example>>),
    /// Another process's. As long as its file is kept here, opens of other objects in it bring only their numbers.
    Opened(Mapped, Arc<SharedMemory>),
}
/// What is there once of a process, and not inherited by children.
macro_rules! of_process {
    ($t:ty) => {{
        static ONE: PerProcess<$t> = PerProcess::new();
        ONE.get()
    }};
}
impl allocation::Memory for Memory {
    const BACKEND: Backend = super::BACKEND;
    type Source = Chunks<Example>;
    type Moment = Moment;
    fn allocations() -> &'static Allocations<Allocation> {
        of_process!(Allocations<Allocation>)
    }
    fn deferred() -> &'static DeferredFree<Moment, DeferredItem<Self>> {
        of_process!(DeferredFree<Moment, DeferredItem<Memory>>)
    }
    fn submitted(context: usize) -> Vec<Moment> {
        stream::moments(context)
    }
    fn pooled(part: Pooled<Chunks<Example>>) -> Self {
        Self::Pooled(part)
    }
    fn is_opened(&self) -> bool {
        matches!(self, Self::Opened(..))
    }
    /// What is mapped at reserved addresses is refused where it may not be used so.
    fn check_elsewhere(range: Range, needs: Access) -> Result<()> {
        physical_mem::reserved::<Example>().check_mapped(range, needs)
    }
}

/// The driver's verb: memory in one piece. Every kind is a file here.
impl Allocates for Example {
    fn allocate(
        _: &(),
        _: &(),
        MemoryRequest { bytes, .. }: MemoryRequest,
    ) -> ur_hal::Result<Mapped> {
        Mapped::create(bytes)
    }
}
/// The host's memory need not be made known to this device.
impl HostRegistration for Example {
    const IS_USED: bool = false;
    type Pinned = ();
    fn pin(_: &(), _: UsmPtr, _: usize, _: bool) -> Result<()> {
        Ok(())
    }
}
impl HasUsm for Example {
    const LARGEST_ALIGNMENT: usize = 4096; // a mapping's
    const ROW: usize = NATURAL;
    type DriverPools = ();
    fn check_size(_: &(), bytes: usize) -> Result<()> {
        check_size(bytes, ErrorCode::InvalidUsmSize)
    }
    fn natural_alignment(_: usize) -> usize {
        NATURAL
    }
    fn memory_size(_: &()) -> Result<usize> {
        Ok(TOTAL)
    }
    fn submitted(context: &Object<Context>, _since: u64) -> Vec<Moment> {
        stream::moments(context.as_handle().addr())
    }
    fn zero(_: &(), _: &(), at: UsmPtr, bytes: usize) -> Result<()> {
        file::write(at.into(), &vec![0; bytes]);
        Ok(())
    }
    fn copy(_: Borrowed<'_, Context>, to: UsmPtr, from: UsmPtr, bytes: usize) -> Result<()> {
        file::write(to.into(), &file::read(from.into(), bytes));
        Ok(())
    }
}
fn check_size(bytes: usize, code: ErrorCode) -> Result<()> {
    match (1..=TOTAL).contains(&bytes) {
        true => Ok(()),
        false => Err(Error::new(code, format!("{bytes} bytes are none, or more than {TOTAL}"))),
    }
}

/// The bytes of a buffer: a file, or C's own memory.
#[derive(Debug)]
pub struct Storage {
    context: Owned<Context>,
    base: UsmPtr,
    _mapped: Option<Mapped>,
}
impl mem::Storage<Example> for Storage {
    fn context(&self) -> &Owned<Context> {
        &self.context
    }
    fn host(&self) -> Option<UsmPtr> {
        Some(self.base)
    }
}
impl Storage {
    pub fn base(&self) -> UsmPtr {
        self.base
    }
}
impl BufferBackend for Example {
    type Storage = Storage;
    fn a_mem() -> String {
        "a buffer of the example device".to_owned()
    }
    fn buffer(
        context: Owned<Context>,
        flags: ur_mem_flags_t,
        bytes: usize,
        host: Option<UsmPtr>,
    ) -> Result<(Storage, Option<UsmPtr>)> {
        check_size(bytes, ErrorCode::InvalidBufferSize)?;
        host.map_or(Ok(()), |host| host.offset(bytes).map(drop))?;
        if let Some(base) = host.filter(|_| flags.contains(ur_mem_flags_t::USE_HOST_POINTER)) {
            return Ok((Storage { context, base, _mapped: None }, None));
        }
        let mapped = Mapped::create(bytes)?;
        let base = ur_hal::Memory::range(&mapped).start();
        host.into_iter().for_each(|host| file::write(base, &file::read(host.into(), bytes)));
        Ok((Storage { context, base: base.into(), _mapped: Some(mapped) }, None))
    }
}

// What the device does not have. The core asks for these traits all the same; their verbs refuse.
impl HasSamplers for Example {}
impl ur_hal::Modules for Example {
    type Code = Infallible;
    type Target = Infallible;
    type Module = Infallible;
    type Function = Infallible;
}
impl HasCode for Example {}
impl RunsCode for Example {
    fn place_of(queue: &Queue) -> (&Owned<Context>, &Owned<Device>) {
        queue.place()
    }
}
