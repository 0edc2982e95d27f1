//! What travels from one process to another: plain bytes, typed by what they open.
use crate::{Buffer, Context, Event, PhysicalMemory, Plain, Result, ffi, text};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{fmt, hash, marker::PhantomData, str::FromStr};

mod sealed {
    use crate::{Context, Result, Ticket};

    pub trait Sealed: Sized {
        /// The word for it in a ticket's text.
        const WORD: &'static str;
        fn open(context: &Context, ticket: &Ticket<Self>) -> Result<Self>;
    }
}
pub(crate) use sealed::Sealed;

/// What can be shared between processes: [`Buffer`], [`PhysicalMemory`] and [`Event`].
pub trait Share: Sealed {}
impl<T: Plain> Share for Buffer<T> {}
impl Share for PhysicalMemory {}
impl Share for Event {}

/// The right to open an object of another process, as bytes to be carried there by whatever means you have.
///
/// A ticket is text (`Display`, `FromStr`) of letters, digits and hyphens, or bytes; with serde it is text in
/// formats for people and bytes in others. It opens only what its type says:
///
/// ```
/// # fn check() -> causeway::Result<()> {
/// use causeway::{Buffer, Context, Device, Event, Queue, Ticket};
///
/// let context = Context::new(&Device::first()?)?;
/// let queue = Queue::new(&context)?;
/// let shared = Buffer::from_slice(&queue, &[1_u32, 2, 3])?.share()?;
/// let text = shared.ticket().to_string();                  // cw1-mem-…
///
/// // usually in another process:
/// let ticket: Ticket<Buffer<u32>> = text.parse()?;
/// let opened = context.open(&ticket)?;
/// assert_eq!(opened.to_vec(&queue)?, [1, 2, 3]);
///
/// let error = text.parse::<Ticket<Event>>().unwrap_err();
/// assert_eq!(error.to_string(), "this ticket is memory; an event was asked for");
/// # Ok(()) }
/// # check().unwrap();
/// ```
/// A ticket for one thing does not open another:
/// ```compile_fail,E0308
/// # use causeway::{Context, Device, Event, PhysicalMemory, Ticket};
/// # let context = Context::new(&Device::first().unwrap()).unwrap();
/// let ticket = Ticket::<Event>::from_bytes([]);
/// let memory: PhysicalMemory = context.open(&ticket).unwrap();
/// ```
pub struct Ticket<T> {
    bytes: Vec<u8>,
    opens: PhantomData<fn() -> T>,
}

/// What ends the bytes of a memory ticket: these, and the length in bytes of what is shared. The ABI's own handle,
/// before them, tells where the memory begins, not how much of it is meant.
const RANGE: &[u8; 8] = b"cw-range";

impl<T> Ticket<T> {
    /// Accepts anything; opening is where bytes from outside are judged. Handle bytes from another program of
    /// Unified Runtime, in C or SYCL, are tickets too.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), opens: PhantomData }
    }
    /// The ticket, to be sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
    /// The part that a program in C or SYCL opens (`urIPCOpen…HandleExp`). Only the length of a shared slice is not
    /// in it: there, the memory reaches to the end of its allocation.
    pub fn handle_bytes(&self) -> &[u8] {
        self.parts().0
    }
    /// Handle, and the length in bytes of the memory that is meant, if the ticket says it.
    pub(crate) fn parts(&self) -> (&[u8], Option<u64>) {
        if let Some((rest, length)) = self.bytes.split_last_chunk()
            && let Some(handle) = rest.strip_suffix(RANGE)
        {
            return (handle, Some(u64::from_le_bytes(*length)));
        }
        (&self.bytes, None)
    }
    fn of_memory(handle: &[u8], length: u64) -> Self {
        Self::from_bytes([handle, RANGE, &length.to_le_bytes()].concat())
    }
}

impl<T> Clone for Ticket<T> {
    fn clone(&self) -> Self {
        Self::from_bytes(self.bytes.clone())
    }
}
impl<T> PartialEq for Ticket<T> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}
impl<T> Eq for Ticket<T> {}
impl<T> hash::Hash for Ticket<T> {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.bytes.hash(state);
    }
}
impl<T> AsRef<[u8]> for Ticket<T> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
/// Not the bytes: whoever reads them in a log could use them.
impl<T> fmt::Debug for Ticket<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({} bytes)", self.bytes.len())
    }
}
impl<T: Share> fmt::Display for Ticket<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&text::encode(T::WORD, &self.bytes))
    }
}
impl<T: Share> FromStr for Ticket<T> {
    type Err = crate::Error;
    fn from_str(text: &str) -> Result<Self> {
        text::decode(T::WORD, text).map(Self::from_bytes)
    }
}
impl<T: Share> Serialize for Ticket<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if to.is_human_readable() { to.collect_str(self) } else { to.serialize_bytes(&self.bytes) }
    }
}
impl<'de, T: Share> Deserialize<'de> for Ticket<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let visitor = TicketVisitor(PhantomData);
        if from.is_human_readable() {
            from.deserialize_str(visitor)
        } else {
            from.deserialize_byte_buf(visitor)
        }
    }
}

struct TicketVisitor<T>(PhantomData<fn() -> T>);
impl<'de, T: Share> de::Visitor<'de> for TicketVisitor<T> {
    type Value = Ticket<T>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a ticket")
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        text.parse().map_err(E::custom)
    }
    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Ticket::from_bytes(bytes))
    }
    fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Self::Value, E> {
        Ok(Ticket::from_bytes(bytes))
    }
    fn visit_seq<A: de::SeqAccess<'de>>(self, mut bytes: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new(); // not of the size that the sender claims
        while let Some(byte) = bytes.next_element()? {
            all.push(byte);
        }
        Ok(Ticket::from_bytes(all))
    }
}

/// Keeps an object open to other processes; dropping it withdraws the offer. What was opened by then stays open.
///
/// The object itself lives at least as long as its export.
///
/// ```
/// # fn check() -> causeway::Result<()> {
/// use causeway::{Context, Device};
///
/// let context = Context::new(&Device::first()?)?;
/// let export = context.create_shared_event()?.share()?;
/// let ticket = export.ticket().clone();
/// context.open(&ticket)?;
/// drop(export);
/// assert!(context.open(&ticket).is_err());
/// # Ok(()) }
/// # check().unwrap();
/// ```
#[must_use = "dropping an Export withdraws it"]
pub struct Export<T> {
    ticket: Ticket<T>,
    _exported: ffi::Exported,
}
impl<T> Export<T> {
    pub(crate) fn new(exported: ffi::Exported) -> Self {
        Self { ticket: Ticket::from_bytes(exported.bytes()), _exported: exported }
    }
    /// An export of `length` bytes of memory.
    pub(crate) fn of_memory(exported: ffi::Exported, length: u64) -> Self {
        Self { ticket: Ticket::of_memory(exported.bytes(), length), _exported: exported }
    }
    /// What opens the object elsewhere.
    pub fn ticket(&self) -> &Ticket<T> {
        &self.ticket
    }
}
impl<T> fmt::Debug for Export<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export").field("ticket", &self.ticket).finish()
    }
}

impl Context {
    /// Opens what a ticket names, on this context's device. Open it again for another, independent handle; what was
    /// opened is closed on drop.
    ///
    /// # Errors
    /// [`ErrorKind::Runtime`](crate::ErrorKind::Runtime) if the object is not there any more, is not for this
    /// process, or the bytes are not a ticket for it; the sentence says which, as far as this process may know.
    /// [`ErrorKind::Ticket`](crate::ErrorKind::Ticket) or [`ErrorKind::Length`](crate::ErrorKind::Length) if the
    /// ticket's length does not fit.
    pub fn open<T: Share>(&self, ticket: &Ticket<T>) -> Result<T> {
        T::open(self, ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_tickets_length_is_split_from_its_handle() {
        let ticket = Ticket::<Buffer<u8>>::of_memory(b"handle", 77);
        assert_eq!(ticket.parts(), (b"handle".as_slice(), Some(77)));
        assert_eq!(Ticket::<Buffer<u8>>::from_bytes(ticket.as_bytes()), ticket);
    }
    #[test]
    fn a_handle_from_c_has_no_length() {
        for bytes in [b"".as_slice(), b"short", &[7; 200]] {
            assert_eq!(Ticket::<Buffer<u8>>::from_bytes(bytes).parts(), (bytes, None));
        }
    }
    #[test]
    fn json_holds_a_ticket_as_text_and_refuses_another_kind() {
        let ticket = Ticket::<Event>::from_bytes(*b"an event's handle");
        let json = serde_json::to_string(&ticket).unwrap();
        assert_eq!(json, format!("\"{ticket}\""));
        assert_eq!(serde_json::from_str::<Ticket<Event>>(&json).unwrap(), ticket);
        let error = serde_json::from_str::<Ticket<Buffer<u8>>>(&json).unwrap_err().to_string();
        assert!(error.contains("this ticket is an event; memory was asked for"), "{error}");
    }
    #[test]
    fn debug_output_does_not_give_a_ticket_away() {
        assert_eq!(format!("{:?}", Ticket::<Event>::from_bytes(*b"secret")), "Ticket(6 bytes)");
    }
    /// The smallest format that is not for people: bytes as they are.
    #[test]
    fn formats_that_are_not_for_people_hold_bytes() {
        use serde::de::{IntoDeserializer, value};
        let bytes: Vec<u8> = b"handle".to_vec();
        let from: value::SeqDeserializer<_, value::Error> = bytes.clone().into_deserializer();
        let ticket = TicketVisitor::<Event>(PhantomData);
        let ticket = Deserializer::deserialize_any(from, ticket).unwrap();
        assert_eq!(ticket.as_bytes(), bytes);
    }
}
