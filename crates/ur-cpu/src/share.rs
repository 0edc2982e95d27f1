//! Exports the CPU's memory to other processes. Imports are in `ur_system::opened`, access control and
//! protocol in `ur_ipc`, the entries in `ur_adapter::share`; the core shares events.
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
/// What other processes need to open what is behind a descriptor.
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
