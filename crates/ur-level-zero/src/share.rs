//! Exports device memory to other processes, and imports theirs. Access control and protocol are in `ur_ipc`;
//! memory that other code in this process allocated is in `foreign.rs`; shared events are in `reusable.rs`.
use super::{
    DriverDevice, LevelZero,
    context::DriverContext,
    device, foreign,
    native::{
        ipc::{self, Handle, OpenedHandle},
        memory,
        physical_memory::{self, Physical},
        virtual_memory,
    },
    opened::{Key, OpenedMemory, Whole},
    partition,
    utility_lists::UtilityLists,
};
use std::{os::fd::AsFd, sync::Arc};
use ur_hal::{
    Export, Memory, Result, Shares, Travels, contradiction, payload_bytes, payload_data, too_large,
};
use ur_ipc::{Arrived, ArrivedPayload, Payload};

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
            let bytes = payload_bytes(form as u8, &handle.bytes);
            Payload::Driver { fd: Arc::clone(fd), base, exposes, bytes }
        }
        None => {
            let said = [&handle.bytes[..], &base.to_le_bytes()].concat();
            Payload::Bytes(payload_bytes(Form::Opaque as u8, &said))
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
    type Opened = OpenedMemory;
    type Foreign = foreign::Shared;
    fn shares_memory(device: &Arc<DriverDevice>) -> Result<bool> {
        ipc::is_supported(device)
    }
    fn shares_physical(device: &Arc<DriverDevice>) -> Result<bool> {
        physical_memory::has_descriptors(device)
    }
    fn export(what: Export<'_, Self>) -> Result<Travels> {
        match what {
            Export::Memory(chunk, offset) => {
                let (behind, before) = chunk.behind()?;
                let exposes = before + chunk.range().bytes();
                Ok((payload_of(&behind, before + offset, exposes), chunk.device().uuid()))
            }
            Export::Physical(memory) => {
                let (fd, exposes) = (memory.export()?, memory.bytes() as u64);
                let bytes = payload_bytes(Form::Physical as u8, &[]);
                Ok((Payload::Driver { fd, base: 0, exposes, bytes }, memory.device()))
            }
        }
    }
    fn home(device: &Arc<DriverDevice>, uuid: [u8; 16]) -> Result<Option<Arc<DriverDevice>>> {
        if let Some(home) = home_of(uuid) {
            return Ok(Some(home));
        }
        ur_ipc::same_device(uuid, device.uuid())?;
        Ok(Some(Arc::clone(device)))
    }
    fn import(
        context: &DriverContext,
        home: &Arc<DriverDevice>,
        arrived: Arrived,
    ) -> Result<OpenedMemory> {
        map(arrived, context.utility_lists(), home)
    }
    fn import_physical(
        context: &DriverContext,
        home: &Arc<DriverDevice>,
        arrived: Arrived,
    ) -> Result<Physical> {
        let ArrivedPayload::Driver { fd, base: 0, exposes, bytes } = arrived.payload else {
            return Err(contradiction("what arrived is no physical memory"));
        };
        if bytes.first() != Some(&(Form::Physical as u8)) || exposes != arrived.size {
            return Err(contradiction("physical memory is a whole of its own"));
        }
        Ok(physical(context, home, fd.as_fd(), exposes)?.passing_on(fd))
    }
}

/// Opens imported memory of `home`.
fn map(
    arrived: Arrived,
    lists: &Arc<UtilityLists>,
    home: &Arc<DriverDevice>,
) -> Result<OpenedMemory> {
    let context = lists.context();
    let bytes = usize::try_from(arrived.size).map_err(too_large)?;
    let (whole, base) = match arrived.payload {
        ArrivedPayload::Driver { fd, base, exposes, bytes: form } => {
            let is_number = form.first() == Some(&(Form::Number as u8));
            let handle =
                payload_data(if is_number { Form::Number } else { Form::Told } as u8, &form)?;
            let base = usize::try_from(base).map_err(too_large)?;
            let key = Key::of((lists, home), &fd, exposes, &form);
            if let Some(known) = key.as_ref().and_then(Whole::find)
                && let Some(object) = known.object(base, bytes)?
            {
                return Ok(object);
            }
            let opened = match OpenedHandle::import(context, home, &fd, exposes)? {
                Some(imported) => imported,
                None if is_number => OpenedHandle::by_number(context, home, handle, &fd)?,
                None => OpenedHandle::opaque(context, home, handle, Some(&fd))?,
            };
            (measured((lists, home), opened, key)?, base)
        }
        ArrivedPayload::Bytes(form) => {
            let (named, base) = form.split_last_chunk::<8>().unwrap_or((&[], &[0; 8]));
            let handle = payload_data(Form::Opaque as u8, named)?;
            let base = usize::try_from(u64::from_le_bytes(*base)).map_err(too_large)?;
            let opened = OpenedHandle::opaque(context, home, handle, None)?;
            (measured((lists, home), opened, None)?, base)
        }
        _ => return Err(contradiction("what arrived is nothing of the driver's")),
    };
    let object = Arc::clone(&whole).object(base, bytes)?;
    whole.register();
    object.ok_or_else(|| contradiction("its bytes are open already")) // of a new one nothing is
}
/// Queries the size of opened memory from the driver, because the exporter's claim cannot be trusted. If the
/// handle opened a part of an allocation, the size is what follows in it.
fn measured(
    (lists, home): (&Arc<UtilityLists>, &Arc<DriverDevice>),
    opened: OpenedHandle,
    key: Option<Key>,
) -> Result<Arc<Whole>> {
    let there = memory::known(lists.context(), opened.at())?;
    let unknown = || contradiction("the driver does not know what it opened");
    let before = |there: &memory::Known| opened.at().checked_sub(there.base);
    let left = there.and_then(|there| there.bytes.checked_sub(before(&there)? as usize));
    Ok(Whole::new((lists, home), opened, left.ok_or_else(unknown)?, key))
}
/// Imports physical memory of `home`. The size comes from the exporter and is verified by the driver.
fn physical(
    context: &DriverContext,
    home: &DriverDevice,
    fd: std::os::fd::BorrowedFd<'_>,
    bytes: u64,
) -> Result<Physical> {
    let bytes = usize::try_from(bytes).map_err(too_large)?;
    let granule = virtual_memory::page_size(context.native(), home, bytes.max(1))?;
    if bytes == 0 || !bytes.is_multiple_of(granule) || isize::try_from(bytes).is_err() {
        return Err(contradiction("it has a length that no memory of the device has"));
    }
    Physical::import(context.native(), home, fd, bytes)
}
