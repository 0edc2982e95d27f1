//! Exports device memory to other processes, and imports theirs. Access control and protocol are in `ur_ipc`,
//! the entries in `ur_adapter::share`; memory that other code in this process allocated is in `foreign.rs`;
//! shared events are in `reusable.rs`.
use super::{
    Context, Device, DriverDevice, LevelZero, device, foreign,
    memory::{Allocation, Exposed, Memory, OpenedMemory, exposed},
    native::{
        context::NativeContext,
        ipc::{self, Handle, OpenedHandle},
        memory,
        physical_memory::{self, Physical},
        virtual_memory,
    },
    opened::{Key, Whole},
    partition,
};
use std::{os::fd::AsFd, sync::Arc};
use ur_adapter::{
    error::Result,
    memory::UsmPtr,
    object::{Borrowed, Owned},
    share::{Located, Refusal},
};
use ur_core::over_driver::share::{
    Home, Shares, Travels, bytes_of, contradiction, said, too_large,
};
use ur_ipc::{Arrived, ArrivedPayload, Offer, Payload};

/// What an offer contains; the first byte of its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Form {
    /// A descriptor of physical memory.
    Physical = 1,
    /// The driver's handle, whose first bytes are the number of the descriptor that is sent along.
    Number = 2,
    /// The driver's opaque handle, and a descriptor of the same memory.
    Told = 3,
    /// The driver's opaque handle, and the offset of the memory in what it opens; no descriptor.
    Opaque = 4,
}
/// The payload for memory at the offset `base` in the memory of `handle`, which has `exposes` bytes.
pub(super) fn payload_of(handle: &Handle, base: usize, exposes: usize) -> Payload {
    let (base, exposes) = (base as u64, exposes as u64);
    match &handle.fd {
        Some(fd) => {
            let form = if handle.is_number { Form::Number } else { Form::Told };
            let bytes = bytes_of(form as u8, &handle.bytes);
            Payload::Driver { fd: Arc::clone(fd), base, exposes, bytes }
        }
        None => {
            let said = [&handle.bytes[..], &base.to_le_bytes()].concat();
            Payload::Bytes(bytes_of(Form::Opaque as u8, &said))
        }
    }
}

/// The device with this UUID, if it is visible to this process.
fn home_of(uuid: [u8; 16]) -> Option<Arc<DriverDevice>> {
    device::all().find_map(|root| {
        if root.uuid() == uuid {
            return Some(root.clone());
        }
        // If the sub-devices cannot be queried, memory cannot be on one of them.
        let parts = partition::parts(root).unwrap_or_default();
        parts.into_iter().find(|part| part.uuid() == uuid)
    })
}
impl Shares for LevelZero {
    type Imported = OpenedMemory;
    fn shares_memory(context: &Context) -> bool {
        context.devices().iter().all(|device| ipc::is_supported(device).unwrap_or(false))
    }
    fn shares_physical_memory(context: &Context) -> bool {
        let shares = |device: &Owned<Device>| physical_memory::has_descriptors(device);
        context.devices().iter().all(|device| shares(device).unwrap_or(false))
    }
    fn export(found: &Allocation) -> Result<Travels> {
        let Exposed { behind, base, exposes, device } = exposed(found)?;
        Ok((payload_of(&behind, base, exposes), device))
    }
    fn export_physical(device: &Device, memory: &Physical, bytes: usize) -> Result<Travels> {
        let (fd, exposes) = (memory.export()?, bytes as u64);
        let bytes = bytes_of(Form::Physical as u8, &[]);
        Ok((Payload::Driver { fd, base: 0, exposes, bytes }, device.uuid()))
    }
    fn home(device: Borrowed<'_, Device>, uuid: [u8; 16]) -> Result<Home<Self>> {
        let Some(home) = home_of(uuid) else {
            ur_ipc::same_device(uuid, device.uuid())?;
            return Ok(Home::of(device.own()?));
        };
        Home::reached(device, Device::of(&home)?)
    }
    fn import(
        context: Borrowed<'_, Context>,
        home: &Home<Self>,
        arrived: Arrived,
    ) -> Result<OpenedMemory> {
        map(arrived, context.native(), &home.device)
    }
    fn import_physical(
        context: Borrowed<'_, Context>,
        home: &Home<Self>,
        arrived: Arrived,
    ) -> Result<Physical, Refusal> {
        let ArrivedPayload::Driver { fd, base: 0, exposes, bytes } = arrived.payload else {
            return Err(contradiction("what arrived is no physical memory").into());
        };
        if bytes.first() != Some(&(Form::Physical as u8)) || exposes != arrived.size {
            return Err(contradiction("physical memory is a whole of its own").into());
        }
        Ok(physical(context, &home.device, fd.as_fd(), exposes)?.passing_on(fd))
    }
    fn locate_foreign(context: Borrowed<'_, Context>, at: UsmPtr) -> Result<Located<Offer>> {
        foreign::locate(context, at)
    }
    fn is_foreign_live(object: u64) -> bool {
        foreign::is_live(object)
    }
    fn find_foreign(object: u64, _: u64) -> Option<(UsmPtr, usize)> {
        foreign::find(object)
    }
}

/// Opens imported memory of `home`.
fn map(
    arrived: Arrived,
    context: &Arc<NativeContext>,
    home: &Owned<Device>,
) -> Result<OpenedMemory> {
    let bytes = usize::try_from(arrived.size).map_err(too_large)?;
    let (whole, base) = match arrived.payload {
        ArrivedPayload::Driver { fd, base, exposes, bytes: form } => {
            let is_number = form.first() == Some(&(Form::Number as u8));
            let handle = said(if is_number { Form::Number } else { Form::Told } as u8, &form)?;
            let key = Key::of((context, home), &fd, exposes, &form);
            if let Some(known) = key.as_ref().and_then(|key| Whole::find(key, base, bytes)) {
                (known, base)
            } else {
                let opened = match OpenedHandle::import(context, home, &fd, exposes)? {
                    Some(imported) => imported,
                    None if is_number => OpenedHandle::by_number(context, home, handle, &fd)?,
                    None => OpenedHandle::opaque(context, home, handle, Some(&fd))?,
                };
                (measured(context, opened, key)?, base)
            }
        }
        ArrivedPayload::Bytes(form) => {
            let (named, base) = form.split_last_chunk::<8>().unwrap_or((&[], &[0; 8]));
            let handle = said(Form::Opaque as u8, named)?;
            let opened = OpenedHandle::opaque(context, home, handle, None)?;
            (measured(context, opened, None)?, u64::from_le_bytes(*base))
        }
        _ => return Err(contradiction("what arrived is nothing of the driver's")),
    };
    let base = usize::try_from(base).map_err(too_large)?;
    if base.checked_add(bytes).is_none_or(|end| end > whole.bytes()) {
        return Err(contradiction("it is larger than what the driver opened"));
    }
    let null = || contradiction("it is at no address");
    let at = UsmPtr::from_addr(whole.at() + base).ok_or_else(null)?;
    Ok(OpenedMemory::new(at, bytes, home.as_handle().addr(), Memory::Opened(whole)))
}
/// Queries the size of opened memory from the driver, because the exporter's claim cannot be trusted. If the
/// handle opened a part of an allocation, the size is what follows in it.
fn measured(
    context: &Arc<NativeContext>,
    opened: OpenedHandle,
    key: Option<Key>,
) -> Result<Arc<Whole>> {
    let there = memory::known(context, opened.at())?;
    let unknown = || contradiction("the driver does not know what it opened");
    let before = |there: &memory::Known| opened.at().checked_sub(there.base);
    let left = there.and_then(|there| there.bytes.checked_sub(before(&there)? as usize));
    Ok(Whole::new(opened, left.ok_or_else(unknown)?, key))
}
/// Imports physical memory of `home`. The size comes from the exporter and is verified by the driver.
fn physical(
    context: Borrowed<'_, Context>,
    home: &Device,
    fd: std::os::fd::BorrowedFd<'_>,
    bytes: u64,
) -> Result<Physical> {
    let bytes = usize::try_from(bytes).map_err(too_large)?;
    let granule = virtual_memory::page_size(context.native(), home, bytes.max(1))?;
    if bytes == 0 || !bytes.is_multiple_of(granule) || isize::try_from(bytes).is_err() {
        return Err(contradiction("it has a length that no memory of the device has"));
    }
    Ok(Physical::import(context.native(), home, fd, bytes)?)
}
