//! Exports device memory to other processes, and imports theirs. Access control and protocol are in `ur_ipc`,
//! the entries in `ur_adapter::share`; memory that other code in this process allocated is in `foreign.rs`;
//! shared events are in `shared_words.rs`.
use super::{
    Context, Device, DriverDevice, Family,
    backing::{Behind, granule, is_physical_shared, reaching},
    device,
    driver::Dialect,
    foreign,
    memory::{Allocation, Exposed, exposed},
    native::{
        device as native,
        ipc::OpenedHandle,
        pool::{self, DriverPool, FromPool},
        virtual_memory::{self, Mapped, MappedRun, Physical},
    },
    opened::{Opened as OpenedAs, OpenedMemory},
    virtual_mem,
};
use std::{os::fd::AsFd, sync::Arc};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Borrowed, Owned},
    share::{Located, Refusal},
};
use ur_core::over_driver::share::{
    Home, Imported, Shares, Travels, bytes_of, contradiction, said, too_large,
};
use ur_ipc::{Arrived, ArrivedPayload, Offer, Payload};

/// What an offer contains; the first byte of its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Form {
    /// A descriptor of physical memory.
    Physical = 1,
    /// A descriptor of a driver's pool, and the export data of an allocation in it.
    Pool = 2,
    /// A driver's IPC handle and the offset in its memory; no descriptor.
    Handle = 3,
    /// Descriptors of physical memories to be mapped one after the other, and their lengths: see [`lengths`].
    Run = 4,
}
/// Encodes the lengths of a run's parts for an offer: groups of a count (4 bytes) and a length (8 bytes), in
/// order. `None` if the length changes too often for the space in an offer.
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
/// The number of groups that fit into the 256 bytes of an offer's data, of which the form takes one.
const GROUPS: usize = 255 / GROUP;
const GROUP: usize = 12;
/// Decodes what [`lengths_for_offer`] encoded, and checks that there are `count` parts of `whole` bytes in
/// total.
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
/// What other processes need to open an allocation, and the UUID of its device.
fn payload<D: Dialect>(found: &Allocation<D>) -> Result<(Payload, [u8; 16])> {
    match exposed(found)? {
        Exposed::Chunk { behind: Behind::Descriptor(fd), base, exposes, device } => {
            let bytes = bytes_of(Form::Physical as u8, &[]);
            let (base, exposes) = (base as u64, exposes as u64);
            Ok((Payload::Driver { fd, base, exposes, bytes }, device))
        }
        Exposed::Chunk { behind: Behind::Handle(handle), base, device, .. } => {
            let base = (base as u64).to_le_bytes();
            Ok((
                Payload::Bytes(bytes_of(Form::Handle as u8, &[&handle[..], &base].concat())),
                device,
            ))
        }
        Exposed::Pool(from) => {
            let device = Owned::<Device<D>>::find(found.home().device)?;
            let fd = from.export(&device)?;
            let data = pool::export_pointer(&device, found.base().addr() as u64)?;
            let (bytes, exposes) = (bytes_of(Form::Pool as u8, &data), found.bytes() as u64);
            Ok((Payload::Driver { fd, base: 0, exposes, bytes }, device.uuid()))
        }
    }
}

/// The device with this UUID, if it is visible to this process.
fn home_of<D: Dialect>(uuid: [u8; 16]) -> Option<&'static Arc<DriverDevice<D>>> {
    device::all::<D>().iter().find(|device| device.uuid() == uuid)
}
/// The error for memory of a device that is not visible to this process, and that the driver cannot open
/// without it.
fn on_hidden<D: Dialect>(hidden: Option<[u8; 16]>, error: Error) -> Error {
    let Some(uuid) = hidden else { return error };
    let part = |range: std::ops::Range<usize>| hex::encode(&uuid[range]);
    let name = [0..4, 4..6, 6..8, 8..10, 10..16].map(part).join("-");
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

impl<D: Dialect> Imported<Family<D>> for OpenedMemory<D> {
    fn allocation(&self) -> &Allocation<D> {
        self.allocation()
    }
}
impl<D: Dialect> Shares for Family<D> {
    type Imported = OpenedMemory<D>;
    fn shares_memory(context: &Context<D>) -> bool {
        context.devices().iter().all(|device| device.is_shared().unwrap_or(false))
    }
    fn shares_physical_memory(context: &Context<D>) -> bool {
        context.devices().iter().all(|device| is_physical_shared(device).unwrap_or(false))
    }
    fn export(found: &Allocation<D>) -> Result<Travels> {
        payload(found)
    }
    fn export_physical(
        device: &Device<D>,
        memory: &virtual_mem::Physical<D>,
        bytes: usize,
    ) -> Result<Travels> {
        let (fd, exposes) = (memory.export()?, bytes as u64);
        let bytes = bytes_of(Form::Physical as u8, &[]);
        Ok((Payload::Driver { fd, base: 0, exposes, bytes }, device.uuid()))
    }
    /// If the memory's device is not visible here, the driver may be able to open the memory for another
    /// device: then the device that the caller named is used.
    fn home(device: Borrowed<'_, Device<D>>, uuid: [u8; 16]) -> Result<Home<Self>> {
        match home_of::<D>(uuid) {
            Some(home) => Home::reached(device, Device::of(home)?),
            None => Ok(Home { device: device.own()?, hidden: Some(uuid) }),
        }
    }
    fn import(
        context: Borrowed<'_, Context<D>>,
        home: &Home<Self>,
        arrived: Arrived,
    ) -> Result<OpenedMemory<D>> {
        map(arrived, &home.device, context.driver_devices())
            .map_err(|error| on_hidden::<D>(home.hidden, error))
    }
    fn import_physical(
        _: Borrowed<'_, Context<D>>,
        home: &Home<Self>,
        arrived: Arrived,
    ) -> Result<virtual_mem::Physical<D>, Refusal> {
        let ArrivedPayload::Driver { fd, base: 0, exposes, bytes } = arrived.payload else {
            return Err(contradiction("what arrived is no physical memory").into());
        };
        if bytes.first() != Some(&(Form::Physical as u8)) || exposes != arrived.size {
            return Err(contradiction("physical memory is a whole of its own").into());
        }
        let memory = physical(&home.device, fd.as_fd(), exposes);
        let memory = memory.map_err(|error| on_hidden::<D>(home.hidden, error))?;
        Ok(virtual_mem::Physical::opened(&home.device, memory.passing_on(fd)))
    }
    fn admit(opened: &OpenedMemory<D>, device: &Device<D>, home: &Home<Self>) -> Result<()> {
        Ok(opened.admit(device, &home.device)?)
    }
    fn locate_foreign(context: Borrowed<'_, Context<D>>, at: UsmPtr) -> Result<Located<Offer>> {
        foreign::locate(context, at)
    }
    fn is_foreign_live(object: u64) -> bool {
        foreign::is_live::<D>(object)
    }
    fn find_foreign(object: u64, offset: u64) -> Option<(UsmPtr, usize)> {
        foreign::find::<D>(object, offset)
    }
}

/// Maps imported memory of `home`, accessible to those of `devices` that can access `home`'s memory.
fn map<D: Dialect>(
    arrived: Arrived,
    home: &Arc<DriverDevice<D>>,
    devices: &[Arc<DriverDevice<D>>],
) -> Result<OpenedMemory<D>> {
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
                let data = said(Form::Pool as u8, &form)?;
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
            // Each descriptor is closed as soon as the driver has imported it.
            let parts =
                fds.into_iter().zip(all).map(|(fd, bytes)| Ok(physical(home, fd.as_fd(), bytes)?));
            let granule = granule(home)?;
            let refused = |error| refusal(home, exposes, error);
            let mapped = MappedRun::new(home, exposed, parts, granule).map_err(refused)?;
            (mapped.at() as usize + base, OpenedAs::MappedRun(mapped))
        }
        ArrivedPayload::Bytes(bytes) => {
            let (named, base) = bytes.split_last_chunk::<8>().unwrap_or((&[], &[0; 8]));
            let base = usize::try_from(u64::from_le_bytes(*base)).map_err(too_large)?;
            let opened = OpenedHandle::open(home, said(Form::Handle as u8, named)?)?;
            (opened.at() as usize + base, OpenedAs::Handle(opened))
        }
        _ => return Err(contradiction("what arrived is nothing of the driver's")),
    };
    let null = || contradiction("it is at no address");
    let base = UsmPtr::from_addr(at).ok_or_else(null)?;
    base.offset(bytes)?;
    Ok(OpenedMemory::new(base, bytes, home, reaching, memory)?)
}
/// Imports physical memory of `home`. The size comes from the exporter and is verified only by mapping it.
fn physical<D: Dialect>(
    home: &DriverDevice<D>,
    fd: std::os::fd::BorrowedFd<'_>,
    bytes: u64,
) -> Result<Physical<D>> {
    let bytes = usize::try_from(bytes).map_err(too_large)?;
    let granule = granule(home)?;
    if bytes == 0 || !bytes.is_multiple_of(granule) || isize::try_from(bytes).is_err() {
        return Err(contradiction("it has a length that no memory of the device has"));
    }
    Ok(Physical::import(home, fd, bytes)?)
}
/// The error for a failed mapping of `bytes` of imported memory: a size larger than the device's memory is an
/// invalid offer, not a lack of memory.
fn refusal<D: Dialect>(home: &DriverDevice<D>, bytes: u64, error: ur_hal::Error) -> Error {
    match native::memory::<D>(home.number()) {
        Ok(most) if bytes > most as u64 => contradiction("it is larger than its device's memory"),
        _ => virtual_memory::foreign(error).into(),
    }
}

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
}
