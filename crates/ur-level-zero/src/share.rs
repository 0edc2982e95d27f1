//! Sharing device memory with other processes: what an address or an object offers, and what is made of
//! what arrives. Who may have it, and the entries themselves, are `ur_ipc`'s and `ur_adapter::share`'s;
//! memory that others of this process allocated is `foreign.rs`'s; events share themselves in `event.rs`.
use super::{
    Context, Device, LevelZero, device, foreign,
    memory::{Allocation, Hold, Memory, exposed},
    native::{
        context::NativeContext,
        ipc::{self, Handle, IpcBytes, OpenedHandle},
        memory,
        physical_memory::{self, Physical},
        virtual_memory,
    },
    opened::OpenedMemory,
    p2p, partition,
    platform::check_fork,
    registry::registry,
    virtual_mem::PhysicalMem,
};
use std::{os::fd::AsFd, sync::Arc};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Backend, Borrowed, Owned},
    share::{Located, Refusal, SharesMemory, SharesPhysicalMemory},
};
use ur_core::memory::{allocation::Usm, deferred_free};
use ur_core::over_driver::physical_mem::OpenedPhysical;
use ur_ipc::{Access, Arrived, ArrivedPayload, ENVELOPE_LEN, Kind, Offer, Opened, Payload, Remote};

/// One open of device memory.
#[derive(Debug)]
#[expect(dead_code, reason = "held to be dropped")]
pub enum Open {
    /// Of this process's own.
    Local(Hold),
    /// Of what somebody else in this process allocated; its owner keeps it.
    Foreign(u64),
    /// Of another process's.
    Remote(Remote<OpenedMemory>),
}

impl Open {
    /// The number of the object before whose time no command knew the memory; 0: unknown.
    fn since(&self) -> u64 {
        match self {
            Self::Local(hold) => hold.allocation().since(),
            Self::Foreign(_) => 0,
            Self::Remote(remote) => remote.allocation().since(),
        }
    }
}

/// What the descriptor or the bytes of an offer are: the first byte that comes along.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Form {
    /// A descriptor of physical memory.
    Physical = 1,
    /// The driver's handle, and the descriptor that it begins with the number of.
    Number = 2,
    /// The driver's handle, opaque, and a descriptor of the same memory.
    Told = 3,
    /// The driver's handle, opaque, and where in what it opens the memory lies.
    Opaque = 4,
}
/// The bytes of an offer: its form, and what the driver said.
pub(super) fn bytes_of(form: Form, said: &[u8]) -> Arc<[u8]> {
    [&[form as u8], said].concat().into()
}
/// What the driver said, if the bytes are of that form.
fn said(form: Form, bytes: &[u8]) -> Result<IpcBytes> {
    match bytes.split_first() {
        Some((&first, rest)) if first == form as u8 => {
            rest.try_into().map_err(|_| contradiction("its bytes have another length"))
        }
        _ => Err(contradiction("its bytes are of another form")),
    }
}

fn contradiction(what: &str) -> Error {
    Error::new(ErrorCode::InvalidValue, format!("the ticket contradicts its exporter: {what}"))
}
fn too_large<E>(_: E) -> Error {
    contradiction("it is larger than this process's addresses")
}

/// What an offer says beside what it consists of.
pub(super) fn offer(
    kind: Kind,
    object: u64,
    device: [u8; 16],
    range: (usize, usize),
    size: usize,
    payload: Payload,
) -> Offer {
    Offer {
        kind,
        backend: Backend::LevelZero as u16,
        device,
        object,
        offset: range.0 as u64,
        length: range.1 as u64,
        size: size as u64,
        payload,
        access: Access::SameUser,
    }
}
/// How memory is opened by others that begins `base` bytes behind where `handle` does, of `exposes`.
pub(super) fn payload_of(handle: &Handle, base: usize, exposes: usize) -> Payload {
    let (base, exposes) = (base as u64, exposes as u64);
    match &handle.fd {
        Some(fd) => {
            let form = if handle.is_number { Form::Number } else { Form::Told };
            let bytes = bytes_of(form, &handle.bytes);
            Payload::Driver { fd: Arc::clone(fd), base, exposes, bytes }
        }
        None => {
            let said = [&handle.bytes[..], &base.to_le_bytes()].concat();
            Payload::Bytes(bytes_of(Form::Opaque, &said))
        }
    }
}

/// The device that memory lies on, if this process sees it.
fn home_of(uuid: [u8; 16]) -> Option<Owned<Device>> {
    device::all().find_map(|root| {
        if root.uuid() == uuid {
            return Some(root.clone());
        }
        // A device that cannot tell its parts has none that memory could lie on.
        let parts = partition::parts(root.borrow()).unwrap_or_default();
        parts.into_iter().find(|part| part.uuid() == uuid)
    })
}
/// The device to import for: the memory's own.
fn home(device: Borrowed<'_, Device>, uuid: [u8; 16]) -> Result<Owned<Device>> {
    let Some(home) = home_of(uuid) else {
        ur_ipc::same_device(uuid, device.uuid())?;
        return device.own();
    };
    if !p2p::can_access(&device, &home)? {
        return Err(Error::new(
            ErrorCode::InvalidValue,
            "the memory lies on another device, and there is no peer access from this one to it: open \
             it for the exporter's device, and copy",
        ));
    }
    Ok(home)
}

impl SharesMemory for LevelZero {
    fn shares_memory(context: &Context) -> bool {
        context.devices().iter().all(|device| ipc::is_supported(device).unwrap_or(false))
    }
    fn locate(context: Borrowed<'_, Context>, at: UsmPtr) -> Result<Located<Offer>> {
        check_fork()?;
        let Some(found) = Allocation::find(at) else { return foreign::locate(context, at) };
        match found.usm() {
            _ if found.is_opened() => return Ok(Located::Opened),
            _ if found.is_freed() => return Ok(Located::Freed),
            _ if !found.is_of(context.as_handle().addr()) => return Ok(Located::OtherContext),
            Usm::Host => return Ok(Located::Host),
            Usm::Shared => return Ok(Located::Shared),
            Usm::Device => {}
        }
        let exposed = exposed(&found)?;
        let payload = payload_of(&exposed.behind, exposed.base, exposed.exposes);
        let device = exposed.device;
        let length = found.bytes_from(at);
        let range = (found.bytes() - length, length);
        let (kind, object, size) = (Kind::Memory, found.object(), found.bytes());
        Ok(Located::Device(offer(kind, object, device, range, size, payload)))
    }
    fn is_allocated(object: u64) -> bool {
        Allocation::is_live(object) || foreign::is_live(object)
    }
    fn open_memory(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        ticket: &[u8; ENVELOPE_LEN],
    ) -> Result<UsmPtr> {
        check_fork()?;
        context.check(device)?;
        let import = |arrived, home: &Owned<Device>| map(arrived, context.native(), home);
        let registry = &registry();
        let (opened, _) = registry.memory.open(ticket, |uuid| home(device, uuid), import)?;
        let (open, base, bytes, offset) = match opened {
            Opened::Local { object, offset, .. } => match Hold::of(object) {
                Some(hold) => {
                    let (base, bytes) = (hold.allocation().base(), hold.allocation().bytes());
                    (Open::Local(hold), base, bytes, offset)
                }
                None => {
                    let (base, bytes) = foreign::find(object)?;
                    (Open::Foreign(object), base, bytes, offset)
                }
            },
            Opened::Remote(remote) => {
                let (base, bytes) = (remote.allocation().base(), remote.allocation().bytes());
                let offset = remote.offset();
                (Open::Remote(remote), base, bytes, offset)
            }
        };
        let inside = usize::try_from(offset).ok().filter(|&offset| offset < bytes);
        let at =
            base.offset(inside.ok_or_else(|| contradiction("the range leaves its object"))?)?;
        registry.opens.add(at, open);
        Ok(at)
    }
    fn close_memory(context: Borrowed<'_, Context>, at: UsmPtr) -> Result<()> {
        let open = registry().opens.take(at)?;
        let before = context.queues().ticket(open.since()).into_moments();
        deferred_free::after::<Memory>(before, open);
        Ok(())
    }
}

/// What arrived, as memory of `home`.
fn map(
    arrived: Arrived,
    context: &Arc<NativeContext>,
    home: &Owned<Device>,
) -> Result<OpenedMemory> {
    deferred_free::sweep::<Memory>();
    let bytes = usize::try_from(arrived.size).map_err(too_large)?;
    let (opened, base) = match arrived.payload {
        ArrivedPayload::Driver { fd, base, exposes, bytes: form } => {
            let is_number = form.first() == Some(&(Form::Number as u8));
            let handle = said(if is_number { Form::Number } else { Form::Told }, &form)?;
            let opened = match OpenedHandle::import(context, home, &fd, exposes)? {
                Some(imported) => imported,
                None if is_number => OpenedHandle::by_number(context, home, handle, &fd)?,
                None => OpenedHandle::opaque(context, home, handle, Some(&fd))?,
            };
            (opened, base)
        }
        ArrivedPayload::Bytes(form) => {
            let (named, base) = form.split_last_chunk::<8>().unwrap_or((&[], &[0; 8]));
            let handle = said(Form::Opaque, named)?;
            (OpenedHandle::opaque(context, home, handle, None)?, u64::from_le_bytes(*base))
        }
        _ => return Err(contradiction("what arrived is nothing of the driver's")),
    };
    let base = usize::try_from(base).map_err(too_large)?;
    // How much there is the driver says: the exporter's word is not enough. What it has cut from more is a part of that.
    let there = memory::known(context, opened.at())?;
    let unknown = || contradiction("the driver does not know what it opened");
    let before = |there: &memory::Known| opened.at().checked_sub(there.base);
    let left = there.and_then(|there| there.bytes.checked_sub(before(&there)? as usize));
    let left = left.ok_or_else(unknown)?;
    if base.checked_add(bytes).is_none_or(|end| end > left) {
        return Err(contradiction("it is larger than what the driver opened"));
    }
    let null = || contradiction("it is at no address");
    let at = UsmPtr::from_addr(opened.at() as usize + base).ok_or_else(null)?;
    Ok(OpenedMemory::new(at, bytes, home.as_handle().addr(), opened, left))
}
/// Physical memory of `home` behind a descriptor; the size is the exporter's word, which the driver
/// judges.
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
    Physical::import(context.native(), home, fd, bytes)
}

impl SharesPhysicalMemory for LevelZero {
    fn shares_physical_memory(context: &Context) -> bool {
        let shares = |device: &Owned<Device>| physical_memory::has_descriptors(device);
        context.devices().iter().all(|device| shares(device).unwrap_or(false))
    }
    fn is_shareable(memory: &PhysicalMem) -> bool {
        memory.is_shareable()
    }
    fn is_opened(memory: &PhysicalMem) -> bool {
        memory.is_opened()
    }
    fn offer_physical_memory(memory: Borrowed<'_, PhysicalMem>) -> Result<Offer> {
        memory.check_fork()?;
        let (fd, bytes) = (memory.expose().export()?, bytes_of(Form::Physical, &[]));
        let (object, size) = (memory.object(), memory.bytes());
        let payload = Payload::Driver { fd, base: 0, exposes: size as u64, bytes };
        let device = memory.device().uuid();
        Ok(offer(Kind::PhysicalMemory, object, device, (0, size), size, payload))
    }
    fn open_physical_memory(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        ticket: &[u8; ENVELOPE_LEN],
    ) -> Result<Owned<PhysicalMem>, Refusal> {
        check_fork()?;
        context.check(device)?;
        type Imported = Result<OpenedPhysical<LevelZero>, Refusal>;
        let import = |arrived: Arrived, home: &Owned<Device>| -> Imported {
            let ArrivedPayload::Driver { fd, base: 0, exposes, bytes } = arrived.payload else {
                return Err(contradiction("what arrived is no physical memory").into());
            };
            if bytes.first() != Some(&(Form::Physical as u8)) || exposes != arrived.size {
                return Err(contradiction("physical memory is a whole of its own").into());
            }
            Ok(OpenedPhysical(physical(context, home, fd.as_fd(), exposes)?.passing_on(fd)))
        };
        let home = |uuid| Ok(home(device, uuid)?);
        let (opened, home) = registry().physical.open(ticket, home, import)?;
        let opened = match opened {
            Opened::Local { object, .. } => PhysicalMem::again(context, home.borrow(), object)?,
            Opened::Remote(remote) => PhysicalMem::opened(context, home.borrow(), remote)?,
        };
        Ok(Owned::new(opened))
    }
}

ur_adapter::share_entries!(LevelZero);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_said_reads_back_in_its_own_form_only() {
        let bytes = bytes_of(Form::Number, &[7; 64]);
        assert_eq!(said(Form::Number, &bytes).unwrap(), [7; 64]);
        for (form, bytes) in [
            (Form::Opaque, &bytes[..]),
            (Form::Number, &bytes[..64]),
            (Form::Number, &[]),
            (Form::Number, &[2]),
        ] {
            let error = said(form, bytes).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidValue);
            assert!(error.to_string().contains("contradicts"), "{error}");
        }
    }
}
