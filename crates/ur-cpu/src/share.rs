//! Sharing the CPU's memory with other processes: what an address or an object offers; what is made of a descriptor that
//! arrives is `ur_system::opened`'s. Who may have it, and the entries themselves, are
//! `ur_ipc`'s and `ur_adapter::share`'s; events are the core's to share.
use super::{
    Context, Cpu, Device,
    backing::Behind,
    host::uuid,
    memory::{Allocation, OpenedMemory, exposed},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::Borrowed,
    share::Refusal,
};
use ur_core::over_driver::share::{Home, Imported, OpenedObjects, Shares, Travels};
use ur_ipc::{Arrived, same_device};
use ur_system::opened::{Mapped, Physical, payload};

static OPENED_OBJECTS: OpenedObjects<Cpu> = OpenedObjects::new();

impl Imported<Cpu> for OpenedMemory {
    fn allocation(&self) -> &Allocation {
        self.allocation()
    }
}
/// How others open what is behind a descriptor.
fn travels(behind: &Behind) -> Result<Travels> {
    Ok((payload(behind), uuid()?))
}
impl Shares for Cpu {
    type Imported = OpenedMemory;
    const IS_SYSTEMS: bool = true;
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
        let no_descriptor = "this device memory has no descriptor to share it by";
        let behind =
            exposed(found).ok_or_else(|| Error::new(ErrorCode::InvalidValue, no_descriptor))?;
        travels(&behind)
    }
    fn export_physical(_: &Device, memory: &Physical, _: usize) -> Result<Travels> {
        travels(&memory.behind()?)
    }
    fn home(device: Borrowed<'_, Device>, its: [u8; 16]) -> Result<Home<Self>> {
        same_device(its, uuid()?)?;
        Ok(Home::of(device.own()?))
    }
    fn import(
        _: Borrowed<'_, Context>,
        home: &Home<Self>,
        arrived: Arrived,
    ) -> Result<OpenedMemory> {
        let (mapped, within, bytes) = Mapped::of(arrived)?;
        OpenedMemory::new(mapped, within, bytes, home.device.as_handle().addr())
    }
    fn import_physical(
        _: Borrowed<'_, Context>,
        _: &Home<Self>,
        arrived: Arrived,
    ) -> Result<Physical, Refusal> {
        Ok(Physical::of(arrived)?)
    }
}
