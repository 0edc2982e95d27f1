//! Sharing device memory with other processes: what an address or an object offers, and what is made of
//! what arrives. Who may have it, and the entries themselves, are `ur_ipc`'s and `ur_adapter::share`'s;
//! memory that others of this process allocated is `foreign.rs`'s; events share themselves in `event.rs`.
use super::{
    Context, Device, Family,
    backing::{Behind, granule, is_physical_shared, reaching},
    device,
    driver::{Dialect, IpcBytes},
    foreign,
    memory::{Allocation, Exposed, Hold, Memory, exposed},
    native::{
        device as native,
        ipc::OpenedHandle,
        pool::{self, DriverPool, FromPool},
        virtual_memory::{self, Mapped, MappedRun, Physical},
    },
    opened::{Opened as OpenedAs, OpenedMemory},
    virtual_mem::{self, PhysicalMem},
};
use std::{os::fd::AsFd, sync::Arc};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Borrowed, Owned},
    share::{Located, Refusal, SharesMemory, SharesPhysicalMemory},
};
use ur_core::memory::{allocation::Usm, deferred_free};
use ur_core::over_driver::physical_mem::OpenedPhysical;
use ur_ipc::{Access, Arrived, ArrivedPayload, ENVELOPE_LEN, Kind, Offer, Opened, Payload, Remote};

/// One open of device memory.
#[derive(Debug)]
#[expect(dead_code, reason = "held to be dropped")]
pub enum Open<D: Dialect> {
    /// Of this process's own.
    Local(Hold<D>),
    /// Of what somebody else in this process allocated; its owner keeps it.
    Foreign(u64),
    /// Of another process's.
    Remote(Remote<OpenedMemory<D>>),
}

impl<D: Dialect> Open<D> {
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
    /// A descriptor of a driver's pool, and what names an allocation of it.
    Pool = 2,
    /// The driver's old handle, and no descriptor.
    Handle = 3,
    /// Descriptors of physical memories that lie one behind the other, and how long each is: see [`lengths`].
    Run = 4,
}
/// How long the parts of a run are, as the bytes of an offer say it: how many are of which length, in their
/// order. `None` for lengths that change more often than there is room for.
pub(super) fn lengths_for_offer(parts: impl Iterator<Item = usize>) -> Option<Vec<u8>> {
    let mut groups: Vec<(u32, u64)> = vec![];
    for bytes in parts {
        match groups.last_mut() {
            Some((count, same)) if *same == bytes as u64 => *count += 1,
            _ => groups.push((1, bytes as u64)),
        }
    }
    let said =
        |(count, bytes): &(u32, u64)| [&count.to_le_bytes()[..], &bytes.to_le_bytes()].concat();
    (groups.len() <= GROUPS).then(|| groups.iter().flat_map(said).collect())
}
/// How many groups fit into the 256 bytes of an offer, its form being one.
const GROUPS: usize = 255 / GROUP;
const GROUP: usize = 12;
/// What [`lengths_for_offer`] said, of `count` parts with `whole` bytes together.
fn lengths(said: &[u8], count: usize, whole: u64) -> Result<Vec<u64>> {
    let wrong = || contradiction("its parts are not as long as it is");
    let (mut all, mut sum) = (vec![], 0_u64);
    for group in said.chunks(GROUP) {
        let (number, bytes) = group.split_first_chunk::<4>().ok_or_else(wrong)?;
        let bytes = u64::from_le_bytes(bytes.try_into().map_err(|_| wrong())?);
        for _ in 0..u32::from_le_bytes(*number) {
            sum = sum.checked_add(bytes).ok_or_else(wrong)?;
            all.push(bytes);
            if all.len() > count {
                return Err(wrong());
            }
        }
    }
    if all.len() == count && sum == whole { Ok(all) } else { Err(wrong()) }
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
pub(super) fn offer<D: Dialect>(
    kind: Kind,
    object: u64,
    device: [u8; 16],
    range: (usize, usize),
    size: usize,
    payload: Payload,
) -> Offer {
    Offer {
        kind,
        backend: D::BACKEND as u16,
        device,
        object,
        offset: range.0 as u64,
        length: range.1 as u64,
        size: size as u64,
        payload,
        access: Access::SameUser,
    }
}
/// How an allocation of ours is opened by others, and the UUID of its device.
fn payload<D: Dialect>(found: &Allocation<D>) -> Result<(Payload, [u8; 16])> {
    match exposed(found)? {
        Exposed::Chunk { behind: Behind::Descriptor(fd), base, exposes, device } => {
            let bytes = bytes_of(Form::Physical, &[]);
            let (base, exposes) = (base as u64, exposes as u64);
            Ok((Payload::Driver { fd, base, exposes, bytes }, device))
        }
        Exposed::Chunk { behind: Behind::Handle(handle), base, device, .. } => {
            let base = (base as u64).to_le_bytes();
            Ok((Payload::Bytes(bytes_of(Form::Handle, &[&handle[..], &base].concat())), device))
        }
        Exposed::Pool(from) => {
            let device = Owned::<Device<D>>::find(found.home().device)?;
            let fd = from.export(&device)?;
            let data = pool::export_pointer(&device, found.base().addr() as u64)?;
            let (bytes, exposes) = (bytes_of(Form::Pool, &data), found.bytes() as u64);
            Ok((Payload::Driver { fd, base: 0, exposes, bytes }, device.uuid()))
        }
    }
}

/// The device that memory lies on, if this process sees it.
fn home_of<D: Dialect>(uuid: [u8; 16]) -> Option<&'static Owned<Device<D>>> {
    device::all::<D>().iter().find(|device| device.uuid() == uuid)
}
/// The device to import for, and the memory's own if that is hidden from this process.
type Home<D> = (Owned<Device<D>>, Option<[u8; 16]>);
/// The device to import for: the memory's own. Where that is not seen here, its driver may reach it all the same,
/// and is asked with the device that C names.
fn home<D: Dialect>(device: Borrowed<'_, Device<D>>, uuid: [u8; 16]) -> Result<Home<D>> {
    let Some(home) = home_of::<D>(uuid) else { return Ok((device.own()?, Some(uuid))) };
    if home.number() != device.number() && !native::can_access::<D>(device.number(), home.number())?
    {
        return Err(Error::new(
            ErrorCode::InvalidValue,
            "the memory lies on another device, and there is no peer access from this one to it: open \
             it for the exporter's device, and copy",
        ));
    }
    Ok((home.clone(), None))
}
/// What is said of memory on a device that this process does not see, and that the driver does not open for it.
fn on_hidden<D: Dialect>(hidden: Option<[u8; 16]>, error: Error) -> Error {
    let Some(uuid) = hidden else { return error };
    let hex = |range: std::ops::Range<usize>, uuid: &[u8; 16]| -> String {
        uuid[range].iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let name = [0..4, 4..6, 6..8, 8..10, 10..16].map(|range| hex(range, &uuid)).join("-");
    Error::new(
        ErrorCode::InvalidValue,
        format!(
            "the memory lies on GPU-{name}, which this process does not see, and the driver does not open it \
             for a device that it sees: let {} name that device for both processes (its own one first, if \
             order matters) ({error})",
            D::VISIBLE
        ),
    )
}

impl<D: Dialect> SharesMemory for Family<D> {
    fn shares_memory(context: &Context<D>) -> bool {
        context.devices().iter().all(|device| device.is_shared().unwrap_or(false))
    }
    fn locate(context: Borrowed<'_, Context<D>>, at: UsmPtr) -> Result<Located<Offer>> {
        device::check_fork::<D>()?;
        let Some(found) = Allocation::<D>::find(at) else { return foreign::locate(context, at) };
        match found.usm() {
            _ if found.is_opened() => return Ok(Located::Opened),
            _ if found.is_freed() => return Ok(Located::Freed),
            _ if !found.is_of(context.as_handle().addr()) => return Ok(Located::OtherContext),
            Usm::Host => return Ok(Located::Host),
            Usm::Shared => return Ok(Located::Shared),
            Usm::Device => {}
        }
        let (payload, device) = payload(&found)?;
        let length = found.bytes_from(at);
        let range = (found.bytes() - length, length);
        let (kind, object, size) = (Kind::Memory, found.object(), found.bytes());
        Ok(Located::Device(offer::<D>(kind, object, device, range, size, payload)))
    }
    fn is_allocated(object: u64) -> bool {
        Allocation::<D>::is_live(object) || foreign::is_live::<D>(object)
    }
    fn open_memory(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        ticket: &[u8; ENVELOPE_LEN],
    ) -> Result<UsmPtr> {
        device::check_fork::<D>()?;
        context.check(device)?;
        let import = |arrived, (home, hidden): &Home<D>| {
            map(arrived, home, context.devices()).map_err(|error| on_hidden::<D>(*hidden, error))
        };
        let registry = &D::statics().memory;
        let (opened, (home, _)) =
            registry.memory.open(ticket, |uuid| home(device, uuid), import)?;
        let (open, base, bytes, offset) = match opened {
            Opened::Local { object, offset, .. } => match Hold::<D>::of(object) {
                Some(hold) => {
                    let (base, bytes) = (hold.allocation().base(), hold.allocation().bytes());
                    (Open::Local(hold), base, bytes, offset)
                }
                None => {
                    let (base, bytes) = foreign::find::<D>(object, offset)?;
                    (Open::Foreign(object), base, bytes, offset)
                }
            },
            Opened::Remote(remote) => {
                remote.admit(&device, &home)?;
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
    fn close_memory(context: Borrowed<'_, Context<D>>, at: UsmPtr) -> Result<()> {
        let open = D::statics().memory.opens.take(at)?;
        let before = context.queues().ticket(open.since()).into_moments();
        deferred_free::after::<Memory<D>>(before, open);
        Ok(())
    }
}

/// What arrived, as memory of `home` that those of `devices` can use which reach it.
fn map<D: Dialect>(
    arrived: Arrived,
    home: &Owned<Device<D>>,
    devices: &[Owned<Device<D>>],
) -> Result<OpenedMemory<D>> {
    deferred_free::sweep::<Memory<D>>();
    let bytes = usize::try_from(arrived.size).map_err(too_large)?;
    let reaching = reaching(home, devices)?;
    let (at, memory) = match arrived.payload {
        ArrivedPayload::Driver { fd, base, exposes, bytes: form } => match form.first() {
            Some(1) => {
                let base = usize::try_from(base).map_err(too_large)?;
                let memory = physical(home, fd.as_fd(), exposes)?;
                let granule = granule(home)?;
                let refused = |error| refusal(home, exposes, error);
                let mapped = Mapped::new(home, Arc::new(memory), granule).map_err(refused)?;
                (mapped.at() as usize + base, OpenedAs::Mapped(mapped))
            }
            _ => {
                let data = said(Form::Pool, &form)?;
                let from = Arc::new(DriverPool::import(home, fd.as_fd())?);
                let peers = &D::statics().memory.get().peers;
                peers.enter_pool(home, &from, reaching.clone())?;
                let at = from.import_pointer(home, data)?;
                (at as usize, OpenedAs::FromPool(FromPool::new(from, at)))
            }
        },
        ArrivedPayload::DriverRun { fds, base, exposes, bytes: said } => {
            let (&form, said) = said.split_first().unwrap_or((&0, &[]));
            if form != Form::Run as u8 {
                return Err(contradiction("its bytes are of another form"));
            }
            let (base, all) =
                (usize::try_from(base).map_err(too_large)?, lengths(said, fds.len(), exposes)?);
            let exposed = usize::try_from(exposes).map_err(too_large)?;
            // Each descriptor is closed as soon as the driver has what it names.
            let parts =
                fds.into_iter().zip(all).map(|(fd, bytes)| physical(home, fd.as_fd(), bytes));
            let granule = granule(home)?;
            let refused = |error| refusal(home, exposes, error);
            let mapped = MappedRun::new(home, exposed, parts, granule).map_err(refused)?;
            (mapped.at() as usize + base, OpenedAs::MappedRun(mapped))
        }
        ArrivedPayload::Bytes(bytes) => {
            let (named, base) = bytes.split_last_chunk::<8>().unwrap_or((&[], &[0; 8]));
            let base = usize::try_from(u64::from_le_bytes(*base)).map_err(too_large)?;
            let opened = OpenedHandle::open(home, said(Form::Handle, named)?)?;
            (opened.at() as usize + base, OpenedAs::Handle(opened))
        }
        _ => return Err(contradiction("what arrived is nothing of the driver's")),
    };
    let null = || contradiction("it is at no address");
    let base = UsmPtr::from_addr(at).ok_or_else(null)?;
    base.offset(bytes)?;
    OpenedMemory::new(base, bytes, home, reaching, memory)
}
/// Physical memory of `home` behind a descriptor; the size is the exporter's word until it is mapped.
fn physical<D: Dialect>(
    home: &Device<D>,
    fd: std::os::fd::BorrowedFd<'_>,
    bytes: u64,
) -> Result<Physical<D>> {
    let bytes = usize::try_from(bytes).map_err(too_large)?;
    let granule = granule(home)?;
    if bytes == 0 || !bytes.is_multiple_of(granule) || isize::try_from(bytes).is_err() {
        return Err(contradiction("it has a length that no memory of the device has"));
    }
    Physical::import(home, fd, bytes)
}
/// What it means that the driver does not map `bytes` of what was imported: more than the device has is
/// not for want of memory.
fn refusal<D: Dialect>(home: &Device<D>, bytes: u64, error: Error) -> Error {
    match native::memory::<D>(home.number()) {
        Ok(most) if bytes > most as u64 => contradiction("it is larger than its device's memory"),
        _ => virtual_memory::foreign(error),
    }
}

impl<D: Dialect> SharesPhysicalMemory for Family<D> {
    fn shares_physical_memory(context: &Context<D>) -> bool {
        context.devices().iter().all(|device| is_physical_shared(device).unwrap_or(false))
    }
    fn is_shareable(memory: &PhysicalMem<D>) -> bool {
        memory.is_shareable()
    }
    fn is_opened(memory: &PhysicalMem<D>) -> bool {
        memory.is_opened()
    }
    fn offer_physical_memory(memory: Borrowed<'_, PhysicalMem<D>>) -> Result<Offer> {
        memory.check_fork()?;
        let (fd, bytes) = (memory.expose().export()?, bytes_of(Form::Physical, &[]));
        let (object, size) = (memory.object(), memory.bytes());
        let payload = Payload::Driver { fd, base: 0, exposes: size as u64, bytes };
        let device = memory.device().uuid();
        Ok(offer::<D>(Kind::PhysicalMemory, object, device, (0, size), size, payload))
    }
    fn open_physical_memory(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        ticket: &[u8; ENVELOPE_LEN],
    ) -> Result<Owned<PhysicalMem<D>>, Refusal> {
        device::check_fork::<D>()?;
        context.check(device)?;
        type Imported<D> = Result<OpenedPhysical<Family<D>>, Refusal>;
        let import = |arrived: Arrived, (home, hidden): &Home<D>| -> Imported<D> {
            let ArrivedPayload::Driver { fd, base: 0, exposes, bytes } = arrived.payload else {
                return Err(contradiction("what arrived is no physical memory").into());
            };
            if bytes.first() != Some(&(Form::Physical as u8)) || exposes != arrived.size {
                return Err(contradiction("physical memory is a whole of its own").into());
            }
            let memory = physical(home, fd.as_fd(), exposes);
            let memory = memory.map_err(|error| on_hidden::<D>(*hidden, error))?;
            Ok(OpenedPhysical(virtual_mem::Physical::opened(home, memory.passing_on(fd))))
        };
        let home = |uuid| Ok(home(device, uuid)?);
        let (opened, (home, _)) = D::statics().memory.physical.open(ticket, home, import)?;
        let opened = match opened {
            Opened::Local { object, .. } => PhysicalMem::again(context, home.borrow(), object)?,
            Opened::Remote(remote) => PhysicalMem::opened(context, home.borrow(), remote)?,
        };
        Ok(Owned::new(opened))
    }
}

ur_adapter::share_entries!(impl[D: Dialect] Family<D>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lengths_of_a_run_read_back_and_nothing_else_is_believed() {
        let parts = [2, 2, 2, 20, 20, 2];
        let said = lengths_for_offer(parts.into_iter()).unwrap();
        assert_eq!(said.len(), 3 * GROUP);
        assert_eq!(lengths(&said, 6, 48).unwrap(), [2, 2, 2, 20, 20, 2]);
        for (count, whole) in [(5, 48), (7, 48), (6, 47)] {
            assert!(lengths(&said, count, whole).is_err(), "{count} {whole}");
        }
        assert!(lengths(&said[..20], 4, 26).is_err(), "cut short");
        let huge = [&u32::MAX.to_le_bytes()[..], &u64::MAX.to_le_bytes()].concat();
        assert!(lengths(&huge, 4096, 48).is_err());
        assert_eq!(lengths_for_offer(1..=GROUPS + 1), None, "they change too often");
    }
    #[test]
    fn what_the_driver_said_reads_back_in_its_own_form_only() {
        let bytes = bytes_of(Form::Pool, &[7; 64]);
        assert_eq!(said(Form::Pool, &bytes).unwrap(), [7; 64]);
        for (form, bytes) in [
            (Form::Handle, &bytes[..]),
            (Form::Pool, &bytes[..64]),
            (Form::Pool, &[]),
            (Form::Pool, &[2]),
        ] {
            let error = said(form, bytes).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidValue);
            assert!(error.to_string().contains("contradicts"), "{error}");
        }
    }
}
