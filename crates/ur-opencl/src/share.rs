//! Sharing memory with other processes, where devices reach the system's, so that a mapping is all that it takes. What is made
//! of a descriptor that arrives is `ur_system::opened`'s; events are the core's.
use super::{
    Context, Device, OpenCl,
    memory::{Allocation, OpenedMemory, exposed},
    native::memory::Reach,
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::Borrowed,
    share::Refusal,
};
use ur_core::over_driver::share::{Home, Imported, OpenedObjects, Shares, Travels};
use ur_ipc::{Arrived, same_device};
use ur_system::{
    backing::Behind,
    host::uuid,
    opened::{Mapped, Physical, payload},
};

static OPENED_OBJECTS: OpenedObjects<OpenCl> = OpenedObjects::new();

impl Imported<OpenCl> for OpenedMemory {
    fn allocation(&self) -> &Allocation {
        self.allocation()
    }
}
fn travels(behind: Option<Behind>) -> Result<Travels> {
    let none = || {
        let why = "this memory is the driver's or another process's: only device USM of a device that \
                   reaches the system's memory is shared";
        Error::new(ErrorCode::InvalidValue, why)
    };
    Ok((payload(&behind.ok_or_else(none)?), uuid()?))
}
fn is_system(context: &Context) -> bool {
    context.driver().reach() == Reach::System
}
impl Shares for OpenCl {
    type Imported = OpenedMemory;
    const IS_SYSTEMS: bool = true;
    fn opened_objects() -> &'static OpenedObjects<Self> {
        &OPENED_OBJECTS
    }
    fn shares_memory(context: &Context) -> bool {
        is_system(context)
    }
    fn shares_physical_memory(context: &Context) -> bool {
        is_system(context)
    }
    fn export(found: &Allocation) -> Result<Travels> {
        travels(exposed(found))
    }
    fn export_physical(_: &Device, memory: &Physical, _: usize) -> Result<Travels> {
        travels(Some(memory.behind()?))
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
