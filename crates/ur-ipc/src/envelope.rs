//! The bytes of a ticket: a fixed layout of one size for all kinds, without padding and without addresses of the
//! exporter. They are decoded as untrusted bytes; whether the export stands is left to the broker and the ledger.
use crate::{
    Error, ErrorKind, InstanceId, Kind, Result,
    identity::{self, Origin},
    token::Secret,
};
use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned,
    little_endian::{I32, U16, U32, U64},
};

/// Length of every ticket in bytes.
pub const ENVELOPE_LEN: usize = 172;

pub(crate) const MAGIC: [u8; 8] = *b"cswy\x7fipc";
const VERSION: u16 = 1;
/// The key of the checksum, which is not secret.
pub(crate) const SUM_KEY: &[u8; 16] = b"causeway ticket ";

/// How an object is transferred in addition to its ticket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Transport {
    /// The broker hands out bytes that the driver understands.
    Bytes = 1,
    /// The broker hands out a descriptor.
    Descriptor = 2,
    /// The broker lets the importer join an arena.
    Arena = 3,
    /// The broker hands out a descriptor that only a driver can judge, and bytes for that driver.
    Driver = 4,
}

/// Through which directory the exporter is reached.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub(crate) enum SocketScope {
    /// Accessible to the exporter's user only.
    Private = 1,
    /// Other users may traverse it if they know the name.
    Others = 2,
}

/// The layout. Integers are little-endian; the order leaves no gaps, which `IntoBytes` verifies.
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Layout {
    magic: [u8; 8],
    version: U16,
    kind: u8,
    transport: u8,
    backend: U16,
    scope: u8,
    reserved: u8,
    uid: U32,
    pid: U32,
    instance: [u8; 16],
    boot: U64,
    host: U64,
    pid_namespace: U64,
    start_time: U64,
    directory: U64,
    device: [u8; 16],
    secret: [u8; 16],
    generation: U32,
    ledger: U32,
    index: U16,
    slot: U16,
    ledger_descriptor: I32,
    offset: U64,
    length: U64,
    size: U64,
    slot_generation: U32,
    seal: U64,
    sum: U64,
}
const _: () = assert!(size_of::<Layout>() == ENVELOPE_LEN);
const SEALED: usize = ENVELOPE_LEN - 16;
pub(crate) const SUMMED: usize = ENVELOPE_LEN - 8;

/// A ticket's contents. All fields but `secret` and `instance` are hints, which the broker's answer or the ledger
/// overrides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    pub kind: Kind,
    pub transport: Transport,
    pub backend: u16,
    pub scope: SocketScope,
    pub uid: u32,
    pub instance: InstanceId,
    pub origin: Origin,
    /// Hash of the exporter's socket directory, for messages.
    pub directory: u64,
    pub device: [u8; 16],
    pub secret: Secret,
    /// The export's line in the ledger.
    pub index: u16,
    pub generation: u32,
    /// The number of the exporter's ledger.
    pub ledger: u32,
    /// For an event: its slot in the arena with the ledger's number.
    pub slot: u16,
    pub slot_generation: u32,
    /// The number of the ledger's descriptor in the exporter, for `pidfd_getfd`; -1 for none.
    pub ledger_descriptor: i32,
    pub offset: u64,
    pub length: u64,
    pub size: u64,
}

impl Envelope {
    /// Encodes the ticket, sealed under the exporter's key.
    pub fn seal(&self, key: &[u8; 16]) -> [u8; ENVELOPE_LEN] {
        let mut layout = self.layout();
        layout.seal = identity::hash(key, &layout.as_bytes()[..SEALED]).into();
        layout.sum = identity::hash(SUM_KEY, &layout.as_bytes()[..SUMMED]).into();
        let mut bytes = [0; ENVELOPE_LEN];
        bytes.copy_from_slice(layout.as_bytes());
        bytes
    }
    /// Decodes and verifies a ticket.
    ///
    /// # Errors
    /// [`ErrorKind::WrongSize`] and [`ErrorKind::Damaged`].
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let layout = Layout::read_from_bytes(bytes).map_err(|_| wrong_size(bytes.len()))?;
        if layout.magic != MAGIC {
            return Err(damaged("they do not begin as a ticket does"));
        }
        if layout.sum != identity::hash(SUM_KEY, &bytes[..SUMMED]) {
            return Err(damaged("their checksum is wrong"));
        }
        if layout.version != VERSION {
            let theirs = layout.version;
            return Err(damaged(&format!(
                "they are of version {theirs}, and this library reads {VERSION}"
            )));
        }
        let envelope = Self::of(layout)?;
        if envelope.offset.checked_add(envelope.length).is_none_or(|end| end > envelope.size) {
            return Err(damaged("the range that they name is not inside the object"));
        }
        Ok(envelope)
    }
    /// Decodes a ticket that is known to be intact, without verifying checksum, magic and range.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`] if a field is out of range.
    pub fn read(bytes: &[u8; ENVELOPE_LEN]) -> Result<Self> {
        Self::of(*zerocopy::transmute_ref!(bytes))
    }
    fn of(layout: Layout) -> Result<Self> {
        layout.envelope().ok_or_else(|| damaged("a field is out of range"))
    }
    /// The tag of the claims that the ledger vouches for.
    pub fn tag(&self) -> u64 {
        let layout = self.layout();
        let parts: [&[u8]; 8] = [
            &[layout.kind, layout.transport, layout.scope],
            layout.backend.as_bytes(),
            &layout.device,
            layout.slot.as_bytes(),
            layout.slot_generation.as_bytes(),
            layout.offset.as_bytes(),
            layout.length.as_bytes(),
            layout.size.as_bytes(),
        ];
        let (mut claims, mut length) = ([0; ENVELOPE_LEN], 0); // longer than all parts together
        for part in parts {
            claims[length..length + part.len()].copy_from_slice(part);
            length += part.len();
        }
        self.secret.tag(&claims[..length])
    }
    fn layout(&self) -> Layout {
        Layout {
            magic: MAGIC,
            version: VERSION.into(),
            kind: self.kind as u8,
            transport: self.transport as u8,
            backend: self.backend.into(),
            scope: self.scope as u8,
            reserved: 0,
            uid: self.uid.into(),
            pid: self.origin.pid.into(),
            instance: self.instance.0,
            boot: self.origin.boot.into(),
            host: self.origin.host.into(),
            pid_namespace: self.origin.pid_namespace.into(),
            start_time: self.origin.start_time.into(),
            directory: self.directory.into(),
            device: self.device,
            secret: self.secret.0,
            index: self.index.into(),
            generation: self.generation.into(),
            ledger: self.ledger.into(),
            slot: self.slot.into(),
            ledger_descriptor: self.ledger_descriptor.into(),
            offset: self.offset.into(),
            length: self.length.into(),
            size: self.size.into(),
            slot_generation: self.slot_generation.into(),
            seal: 0.into(),
            sum: 0.into(),
        }
    }
}
impl Layout {
    fn envelope(&self) -> Option<Envelope> {
        Some(Envelope {
            kind: Kind::from_byte(self.kind)?,
            transport: match self.transport {
                1 => Transport::Bytes,
                2 => Transport::Descriptor,
                3 => Transport::Arena,
                4 => Transport::Driver,
                _ => return None,
            },
            backend: self.backend.get(),
            scope: match (self.scope, self.reserved) {
                (1, 0) => SocketScope::Private,
                (2, 0) => SocketScope::Others,
                _ => return None,
            },
            uid: self.uid.get(),
            instance: InstanceId(self.instance),
            origin: Origin {
                boot: self.boot.get(),
                host: self.host.get(),
                pid: self.pid.get(),
                pid_namespace: self.pid_namespace.get(),
                start_time: self.start_time.get(),
            },
            directory: self.directory.get(),
            device: self.device,
            secret: Secret(self.secret),
            index: self.index.get(),
            generation: self.generation.get(),
            ledger: self.ledger.get(),
            slot: self.slot.get(),
            slot_generation: self.slot_generation.get(),
            ledger_descriptor: self.ledger_descriptor.get(),
            offset: self.offset.get(),
            length: self.length.get(),
            size: self.size.get(),
        })
    }
}

/// The key of a ticket in a cache: exporter, ledger and line. Nothing is verified here.
pub(crate) type TicketKey = (InstanceId, u32, u16);
pub(crate) fn key_of(bytes: &[u8; ENVELOPE_LEN]) -> TicketKey {
    let layout: &Layout = zerocopy::transmute_ref!(bytes);
    (InstanceId(layout.instance), layout.ledger.get(), layout.index.get())
}

/// How many bytes of its object a ticket names, counted from the ticket's offset; `None` if the bytes are not a ticket.
pub fn length_named_by(bytes: &[u8]) -> Option<u64> {
    Envelope::parse(bytes).ok().map(|envelope| envelope.length)
}

/// Whether these bytes were issued under this key. This also holds for withdrawn tickets, and for nothing else.
pub(crate) fn is_sealed_by(bytes: &[u8; ENVELOPE_LEN], key: &[u8; 16]) -> bool {
    let expected = identity::hash(key, &bytes[..SEALED]).to_le_bytes();
    crate::token::same(&expected, &bytes[SEALED..SUMMED])
}

pub(crate) fn wrong_size(length: usize) -> Error {
    let why = format!(
        "these handle bytes are {length} long and every ticket is {ENVELOPE_LEN}: pass all of its bytes, and the size that came with them"
    );
    Error::new(ErrorKind::WrongSize, why)
}

fn damaged(why: &str) -> Error {
    let sentence = format!(
        "these handle bytes are not a ticket ({why}): were they cut, changed or mixed up on the way?"
    );
    Error::new(ErrorKind::Damaged, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: [u8; 16] = [9; 16];

    fn sample() -> Envelope {
        Envelope {
            kind: Kind::Memory,
            transport: Transport::Descriptor,
            backend: 1,
            scope: SocketScope::Private,
            uid: 1000,
            instance: InstanceId([1; 16]),
            origin: Origin { boot: 2, host: 3, pid: 4, pid_namespace: 5, start_time: 6 },
            directory: 7,
            device: [8; 16],
            secret: Secret([10; 16]),
            index: 11,
            generation: 12,
            ledger: 13,
            slot: 14,
            slot_generation: 15,
            ledger_descriptor: 16,
            offset: 64,
            length: 128,
            size: 4096,
        }
    }
    /// Recomputes the checksum, as a forger would.
    fn resum(mut bytes: [u8; ENVELOPE_LEN]) -> [u8; ENVELOPE_LEN] {
        let sum = identity::hash(SUM_KEY, &bytes[..SUMMED]).to_le_bytes();
        bytes[SUMMED..].copy_from_slice(&sum);
        bytes
    }

    #[test]
    fn a_sealed_ticket_reads_back_whole() {
        let bytes = sample().seal(&KEY);
        let read = Envelope::parse(&bytes).unwrap();
        assert_eq!(read.seal(&KEY), bytes);
        assert_eq!(read.tag(), sample().tag());
        assert!(is_sealed_by(&bytes, &KEY));
        assert!(!is_sealed_by(&bytes, &[0; 16]));
    }
    #[test]
    fn every_flipped_bit_is_refused() {
        let sound = sample().seal(&KEY);
        for bit in 0..8 * ENVELOPE_LEN {
            let mut bytes = sound;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                Envelope::parse(&bytes).unwrap_err().kind(),
                ErrorKind::Damaged,
                "bit {bit}"
            );
        }
    }
    #[test]
    fn every_flipped_bit_breaks_the_seal_even_under_a_right_checksum() {
        let sound = sample().seal(&KEY);
        for bit in 0..8 * SUMMED {
            let mut bytes = sound;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_sealed_by(&resum(bytes), &KEY), "bit {bit}");
        }
    }
    #[test]
    fn every_other_length_is_a_wrong_size() {
        let long = [sample().seal(&KEY), [0; ENVELOPE_LEN]].concat();
        for length in (0..2 * ENVELOPE_LEN).filter(|l| *l != ENVELOPE_LEN) {
            assert_eq!(Envelope::parse(&long[..length]).unwrap_err().kind(), ErrorKind::WrongSize);
        }
    }
    #[test]
    fn fields_out_of_range_are_damage() {
        let sound = sample().seal(&KEY);
        for (at, value) in [(8, 2), (10, 0), (10, 4), (11, 0), (11, 9), (14, 3), (15, 1)] {
            let mut bytes = sound;
            bytes[at] = value;
            let error = Envelope::parse(&resum(bytes)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Damaged, "byte {at} = {value}");
        }
        for (offset, length, size) in [(4000, 128, 4096), (u64::MAX, 2, 4096), (0, u64::MAX, 1)] {
            let bytes = Envelope { offset, length, size, ..sample() }.seal(&KEY);
            assert_eq!(Envelope::parse(&bytes).unwrap_err().kind(), ErrorKind::Damaged);
        }
    }
    #[test]
    fn every_kind_transport_and_door_reads_back() {
        for transport in
            [Transport::Bytes, Transport::Descriptor, Transport::Arena, Transport::Driver]
        {
            for scope in [SocketScope::Private, SocketScope::Others] {
                for kind in [Kind::Memory, Kind::PhysicalMemory, Kind::Event] {
                    let bytes = Envelope { transport, scope, kind, ..sample() }.seal(&KEY);
                    let read = Envelope::parse(&bytes).unwrap();
                    assert_eq!((read.transport, read.scope, read.kind), (transport, scope, kind));
                }
            }
        }
    }
    #[test]
    fn a_range_may_end_where_its_object_does() {
        for (offset, length, size) in [(0, 4096, 4096), (4000, 96, 4096), (7, 0, 7)] {
            let bytes = Envelope { offset, length, size, ..sample() }.seal(&KEY);
            let read = Envelope::parse(&bytes).unwrap();
            assert_eq!((read.offset, read.length, read.size), (offset, length, size));
        }
    }
    #[test]
    fn the_key_is_read_without_parsing() {
        let bytes = sample().seal(&KEY);
        assert_eq!(key_of(&bytes), (sample().instance, 13, 11));
    }
    #[test]
    fn the_tag_vouches_for_range_device_and_slot() {
        let tag = sample().tag();
        assert_ne!(Envelope { offset: 65, ..sample() }.tag(), tag);
        assert_ne!(Envelope { length: 127, ..sample() }.tag(), tag);
        assert_ne!(Envelope { size: 8192, ..sample() }.tag(), tag);
        assert_ne!(Envelope { device: [0; 16], ..sample() }.tag(), tag);
        assert_ne!(Envelope { slot_generation: 16, ..sample() }.tag(), tag);
        assert_ne!(Envelope { secret: Secret([11; 16]), ..sample() }.tag(), tag);
        assert_eq!(Envelope { directory: 0, ..sample() }.tag(), tag);
    }
    proptest! {
        #[test]
        fn random_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(Envelope::parse(&bytes).is_err());
        }
        #[test]
        fn random_bytes_behind_the_magic_are_refused(tail in proptest::array::uniform32(any::<u8>())) {
            let mut bytes = sample().seal(&KEY);
            bytes[8..40].copy_from_slice(&tail);
            prop_assume!(bytes != sample().seal(&KEY));
            prop_assert_eq!(Envelope::parse(&bytes).unwrap_err().kind(), ErrorKind::Damaged);
        }
        #[test]
        fn what_parses_seals_to_itself_but_for_the_seal(at in 10..SEALED, value in any::<u8>()) {
            let mut bytes = sample().seal(&KEY);
            bytes[at] = value;
            let bytes = resum(bytes);
            if let Ok(read) = Envelope::parse(&bytes) {
                prop_assert_eq!(&read.seal(&KEY)[..SEALED], &bytes[..SEALED]);
            }
        }
    }
}
