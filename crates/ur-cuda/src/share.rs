//! Exports device memory to other processes, and imports theirs. Access control and protocol are in `ur_ipc`;
//! memory that other code in this process allocated is in `foreign.rs`; shared events are in `shared_words.rs`.
use super::{
    DriverDevice, Family,
    backing::{ChunkSource, granule, is_physical_shared, reaching},
    context::DriverContext,
    device,
    driver::Dialect,
    foreign,
    native::{
        device as native,
        ipc::{self, OpenedHandle},
        memory::{self, Sort},
        pool::{self, DriverPool, FromPool},
        virtual_memory::{self, Mapped, Physical},
    },
    opened::{Opened, OpenedMemory},
};
use std::{
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};
use ur_hal::{
    Address, Error, ErrorKind, Export, Memory, Range, Result, Shares, Travels, contradiction,
    payload_bytes, payload_data, too_large,
};
use ur_ipc::{Arrived, ArrivedPayload, Payload};

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
impl<D: Dialect> Shares for Family<D> {
    type Opened = OpenedMemory<D>;
    type Foreign = foreign::Shared<D>;
    fn shares_memory(device: &Arc<DriverDevice<D>>) -> Result<bool> {
        device.is_shared()
    }
    fn shares_physical(device: &Arc<DriverDevice<D>>) -> Result<bool> {
        is_physical_shared(device)
    }
    fn export(what: Export<'_, Self>) -> Result<Travels> {
        match what {
            Export::Memory(chunk, offset) => {
                let (device, range) = (chunk.device(), chunk.range());
                Ok((payload(chunk.source(), device, range, offset)?, device.uuid()))
            }
            Export::Physical(memory) => {
                let payload = in_physical(memory.export()?, 0, memory.bytes());
                Ok((payload, memory.device().uuid()))
            }
        }
    }
    /// If the memory's device is not visible here, the driver may be able to open the memory for another
    /// device: then the device that the caller named is used.
    fn home(_: &Arc<DriverDevice<D>>, uuid: [u8; 16]) -> Result<Option<Arc<DriverDevice<D>>>> {
        Ok(device::all::<D>().iter().find(|device| device.uuid() == uuid).cloned())
    }
    fn explain_hidden(uuid: [u8; 16], error: Error) -> Error {
        let part = |range: std::ops::Range<usize>| hex::encode(&uuid[range]);
        let name = [0..4, 4..6, 6..8, 8..10, 10..16].map(part).join("-");
        Error::new(
            ErrorKind::InvalidValue,
            format!(
                "the memory lies on GPU-{name}, which this process does not see, and the driver does not open it \
                 for a device that it sees: let {} name that device for both processes (its own one first, if \
                 order matters) ({error})",
                D::VISIBLE
            ),
        )
    }
    fn import(
        context: &DriverContext<D>,
        home: &Arc<DriverDevice<D>>,
        arrived: Arrived,
    ) -> Result<OpenedMemory<D>> {
        map(arrived, home, context.devices())
    }
    fn import_physical(
        _: &DriverContext<D>,
        home: &Arc<DriverDevice<D>>,
        arrived: Arrived,
    ) -> Result<Physical<D>> {
        let ArrivedPayload::Driver { fd, base: 0, exposes, bytes } = arrived.payload else {
            return Err(contradiction("what arrived is no physical memory"));
        };
        if bytes.first() != Some(&(Form::Physical as u8)) || exposes != arrived.size {
            return Err(contradiction("physical memory is a whole of its own"));
        }
        Ok(physical(home, fd.as_fd(), exposes)?.passing_on(fd))
    }
    /// Of a classic allocation the driver waits for the context.
    fn waits_when_closed(opened: &OpenedMemory<D>) -> bool {
        opened.goes_when_idle()
    }
    fn admit(
        opened: &OpenedMemory<D>,
        device: &Arc<DriverDevice<D>>,
        home: &Arc<DriverDevice<D>>,
    ) -> Result<()> {
        opened.admit(device, home)
    }
}

/// The payload for what lies at an offset in a chunk, which is at `range`.
fn payload<D: Dialect>(
    source: &ChunkSource<D>,
    device: &DriverDevice<D>,
    range: Range,
    offset: usize,
) -> Result<Payload> {
    let at = range.start().get() as u64;
    match source {
        ChunkSource::Ordered(memory) => {
            let (fd, data) = (memory.pool().export(device)?, pool::export_pointer(device, at)?);
            let (bytes, exposes) = (payload_bytes(Form::Pool as u8, &data), range.bytes() as u64);
            Ok(Payload::Driver { fd, base: 0, exposes, bytes })
        }
        ChunkSource::Virtual(_, memory) if virtual_memory::has_descriptors(device)? => {
            Ok(in_physical(memory.export()?, offset, range.bytes()))
        }
        ChunkSource::Piece(piece) if piece.sort() == Sort::Device => {
            let handle = ipc::handle_of(device, piece.at())?;
            let base = at - piece.at() + offset as u64;
            let data = [&handle[..], &base.to_le_bytes()].concat();
            Ok(Payload::Bytes(payload_bytes(Form::Handle as u8, &data)))
        }
        _ => Err(Error::new(
            ErrorKind::InvalidValue,
            format!(
                "this device exports no descriptors of its memory: set UR_{}_USM=legacy and allocate \
                 again, which shares by the driver's old handles",
                D::NAME
            ),
        )),
    }
}
/// The payload for what lies at an offset in physical memory of `bytes`.
fn in_physical(fd: Arc<OwnedFd>, offset: usize, bytes: usize) -> Payload {
    let (base, exposes) = (offset as u64, bytes as u64);
    Payload::Driver { fd, base, exposes, bytes: payload_bytes(Form::Physical as u8, &[]) }
}
/// Maps imported memory of `home`, accessible to those of `devices` that can access `home`'s memory.
fn map<D: Dialect>(
    arrived: Arrived,
    home: &Arc<DriverDevice<D>>,
    devices: &[Arc<DriverDevice<D>>],
) -> Result<OpenedMemory<D>> {
    let wanted = usize::try_from(arrived.size).map_err(too_large)?;
    let reaching = reaching(home, devices)?;
    let (at, memory) = match arrived.payload {
        ArrivedPayload::Driver { fd, base, exposes, bytes: form } => match form.first() {
            Some(1) => {
                let base = usize::try_from(base).map_err(too_large)?;
                let memory = physical(home, fd.as_fd(), exposes)?;
                mapped(home, exposes, [Ok(memory)], base)?
            }
            _ => {
                let data = payload_data(Form::Pool as u8, &form)?;
                let from = Arc::new(DriverPool::import(home, fd.as_fd())?);
                let peers = &D::statics().memory.get().peers;
                peers.enter_pool(home, &from, reaching.clone())?;
                let at = from.import_pointer(home, data)?;
                let memory = FromPool::new(from, at);
                (part_of(home, at, 0, wanted)?, Opened::FromPool(memory))
            }
        },
        ArrivedPayload::DriverRun { fds, base, exposes, bytes: said } => {
            let (&form, said) = said.split_first().unwrap_or((&0, &[]));
            if form != Form::Run as u8 {
                return Err(contradiction("its bytes are of another form"));
            }
            let (base, all) =
                (usize::try_from(base).map_err(too_large)?, lengths(said, fds.len(), exposes)?);
            // Each descriptor is closed as soon as the driver has imported it.
            let parts =
                fds.into_iter().zip(all).map(|(fd, bytes)| physical(home, fd.as_fd(), bytes));
            mapped(home, exposes, parts, base)?
        }
        ArrivedPayload::Bytes(bytes) => {
            let (named, base) = bytes.split_last_chunk::<8>().unwrap_or((&[], &[0; 8]));
            let base = usize::try_from(u64::from_le_bytes(*base)).map_err(too_large)?;
            let opened = OpenedHandle::open(home, payload_data(Form::Handle as u8, named)?)?;
            (part_of(home, opened.at(), base, wanted)?, Opened::Handle(opened))
        }
        _ => return Err(contradiction("what arrived is nothing of the driver's")),
    };
    let null = || contradiction("it is at no address");
    let range = Range::new(Address::new(at).ok_or_else(null)?, wanted)?;
    OpenedMemory::new(range, home, reaching, memory)
}
/// The address of the `bytes` from `base` on of the opened allocation at `at`, which the exporter named and the driver
/// must confirm: other memory of this process may follow.
fn part_of<D: Dialect>(
    home: &DriverDevice<D>,
    at: u64,
    base: usize,
    bytes: usize,
) -> Result<usize> {
    let known = memory::known(&home.enter()?, at)?;
    let end = known.and_then(|whole| whole.base.checked_add(whole.bytes as u64));
    end.and_then(|end| part_before(end, at, base, bytes))
        .ok_or_else(|| contradiction("it is not within the memory that the driver opened"))
}
fn part_before(end: u64, at: u64, base: usize, bytes: usize) -> Option<usize> {
    let start = at.checked_add(base as u64)?;
    (start.checked_add(bytes as u64)? <= end).then_some(start as usize)
}
/// Imports physical memory of `home`. The size comes from the exporter and is verified only by mapping it.
fn physical<D: Dialect>(
    home: &Arc<DriverDevice<D>>,
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
/// Maps imported `parts`, whose length in total is `exposes` as the exporter says; returns the address `base` bytes behind
/// their start, and the mapping.
fn mapped<D: Dialect>(
    home: &Arc<DriverDevice<D>>,
    exposes: u64,
    parts: impl IntoIterator<Item = Result<Physical<D>>>,
    base: usize,
) -> Result<(usize, Opened<D>)> {
    let granule = granule(home)?;
    let bytes = usize::try_from(exposes).map_err(too_large)?;
    let mapped = Mapped::new(home, bytes, parts, granule);
    let mapped = mapped.map_err(|error| refusal(home, exposes, error))?;
    Ok((mapped.at() as usize + base, Opened::Mapped(mapped)))
}
/// The error for a failed mapping of `bytes` of imported memory: a size larger than the device's memory is an
/// invalid offer, not a lack of memory.
fn refusal<D: Dialect>(home: &DriverDevice<D>, bytes: u64, error: Error) -> Error {
    match native::memory::<D>(home.number()) {
        Ok(most) if bytes > most as u64 => contradiction("it is larger than its device's memory"),
        _ => virtual_memory::foreign(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_ends_within_what_was_opened_and_does_not_wrap_around() {
        assert_eq!(part_before(0x3000, 0x1000, 0x800, 0x1800), Some(0x1800));
        assert_eq!(part_before(0x3000, 0x1000, 0x800, 0x1801), None);
        assert_eq!(part_before(0x3000, 0x1000, usize::MAX, 0x10), None);
        assert_eq!(part_before(0x3000, 0x1000, 0x10, usize::MAX), None);
    }
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
