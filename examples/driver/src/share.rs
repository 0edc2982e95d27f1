//! Memory of other processes. Who may have it, how it travels and when it ends is `ur_ipc`'s; what memory
//! offers and what is kept of opens is the core's. Here is how memory is sent, and what is made of what arrives. Bytes of
//! others are hostile: `ur_ipc` has parsed the ticket and looked at the descriptor; that it is what we can map is for us
//! to see.
use super::{
    Example,
    device::{Context, Device, UUID},
    file::{Mapped, page},
    memory::{Allocation, Memory},
};
use std::sync::Arc;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::Borrowed,
    share::Refusal,
};
use ur_core::{
    memory::{
        allocation::{Home as Whose, Usm},
        allocations,
    },
    over_driver::share::{
        Home, Imported, OpenedObjects, Shares, Travels, contradiction, too_large,
    },
};
use ur_ipc::{Arrived, ArrivedPayload, Payload, same_device};
use ur_system::opened::{Physical, payload};

fn wrong(why: &'static str) -> Error {
    Error::new(ErrorCode::InvalidValue, why)
}

static OPENED_OBJECTS: OpenedObjects<Example> = OpenedObjects::new();
/// Another process's memory among the allocations of this one, as long as this lives.
#[derive(Debug)]
pub struct OpenedMemory(Arc<Allocation>);
impl Drop for OpenedMemory {
    fn drop(&mut self) {
        allocations::leave(&self.0);
    }
}
impl Imported<Example> for OpenedMemory {
    fn allocation(&self) -> &Allocation {
        &self.0
    }
}
impl Shares for Example {
    type Imported = OpenedMemory;
    fn opened_objects() -> &'static OpenedObjects<Self> {
        &OPENED_OBJECTS
    }
    fn shares_memory(_: &Context) -> bool {
        true
    }
    fn shares_physical_memory(_: &Context) -> bool {
        true
    }
    fn export(found: &Allocation) -> Result<Travels> {
        let Some(Memory::Pooled(part)) = found.expose() else {
            return Err(wrong("memory that was opened is its exporter's to share"));
        };
        let chunk = part.block().chunk();
        let (fd, from) = chunk.file();
        let payload = Payload::Fd {
            fd: Arc::clone(fd),
            base: (from + part.block().offset()) as u64,
            exposes: ur_hal::Memory::range(chunk).bytes() as u64,
        };
        Ok((payload, UUID))
    }
    fn export_physical(_: &Device, memory: &Physical, _: usize) -> Result<Travels> {
        Ok((payload(&memory.behind()?), UUID))
    }
    fn home(device: Borrowed<'_, Device>, its: [u8; 16]) -> Result<Home<Self>> {
        same_device(its, UUID)?;
        Ok(Home::of(device.own()?))
    }
    fn import_physical(
        _: Borrowed<'_, Context>,
        _: &Home<Self>,
        arrived: Arrived,
    ) -> Result<Physical, Refusal> {
        Ok(Physical::of(arrived)?)
    }
    /// Maps the pages in which the object lies.
    fn import(
        _: Borrowed<'_, Context>,
        home: &Home<Self>,
        arrived: Arrived,
    ) -> Result<OpenedMemory> {
        let ArrivedPayload::Memory { memory, base } = arrived.payload else {
            return Err(contradiction("what arrived is no memory"));
        };
        if !memory.is_writable() || arrived.size == 0 {
            return Err(contradiction("its memory cannot be written"));
        }
        let base = usize::try_from(base).map_err(too_large)?;
        let bytes = usize::try_from(arrived.size).map_err(too_large)?;
        let within = base % page();
        let mapped = Mapped::map(Arc::clone(memory.fd()), base - within, within + bytes)?;
        let at = ur_hal::Memory::range(&mapped).start().offset(within)?;
        let whose = Whose { device: home.device.as_handle().addr(), ..Whose::default() };
        let opened = Memory::Opened(mapped, memory);
        Ok(OpenedMemory(Allocation::enter(at.into(), bytes, Usm::Device, whose, opened)))
    }
}
