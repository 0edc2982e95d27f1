//! Tickets: the bytes that are sent to another process, typed by the object that they open.
use crate::{Buffer, Context, Error, Event, PhysicalMemory, Plain, Result, ffi, text};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{
    fmt, hash,
    marker::PhantomData,
    panic::resume_unwind,
    str::FromStr,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

mod sealed {
    use crate::{Context, Result, Ticket};

    pub trait Sealed: Sized {
        /// The word for the kind in a ticket's text.
        const WORD: &'static str;
        fn open(context: &Context, ticket: &Ticket<Self>) -> Result<Self>;
    }
}
pub(crate) use sealed::Sealed;

/// The kinds of object that can be shared between processes: [`Buffer`], [`PhysicalMemory`], [`Event`] and
/// [`HandOver`](crate::HandOver).
pub trait Share: Sealed {}
impl<T: Plain> Share for Buffer<T> {}
impl Share for PhysicalMemory {}
impl Share for Event {}

/// The right to open an object of another process, as bytes that can be sent there by any means.
///
/// A ticket is text (`Display`, `FromStr`) of letters, digits and hyphens, or bytes; serde uses text in human-readable
/// formats and bytes in others. It opens only an object of its type:
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
/// A ticket for one kind of object does not open another:
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

/// The mark near the end of a memory ticket's bytes. The ABI's own handle, which comes first, tells where the memory
/// begins, but neither its length nor its type. It is followed by the name of the type and then, as little-endian
/// numbers, by the type's size and alignment (4 bytes each), the length of its name (4), this mark, and the length in
/// bytes of the shared memory (8).
const MARK: &[u8; 8] = b"cw-typed";
/// The longest name of a type; longer ones are rejected.
const LONGEST_NAME: usize = 256;

/// What a memory ticket of this crate contains in addition to the ABI's handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Contents<'a> {
    /// The length of the shared memory in bytes.
    pub bytes: u64,
    /// The type of the values.
    pub of: ValueType<'a>,
}

/// A type of values, as far as two programs can agree on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ValueType<'a> {
    /// Its name without the path of modules, which differs between programs.
    name: &'a str,
    size: u32,
    align: u32,
}
impl ValueType<'static> {
    pub(crate) fn of<T>() -> Self {
        let name = short_name(std::any::type_name::<T>());
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self { name, size: number(size_of::<T>()), align: number(align_of::<T>()) }
    }
}
impl fmt::Display for ValueType<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (size {}, alignment {})", self.name, self.size, self.align)
    }
}

/// The name of a type without the modules in front of it. Names inside brackets keep their modules; the types in
/// tickets are mostly plain.
fn short_name(path: &str) -> &str {
    let until = path.find(['<', '[', '(']).unwrap_or(path.len());
    path[..until].rfind("::").map_or(path, |at| &path[at + 2..])
}

impl<T> Ticket<T> {
    /// Makes a ticket of any bytes, which are checked when it is opened. Handle bytes from another program that uses
    /// Unified Runtime, in C or SYCL, are tickets too.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), opens: PhantomData }
    }
    /// The ticket's bytes, to be sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
    /// The part that a program in C or SYCL opens (`urIPCOpen…HandleExp`). It lacks the length of a shared slice: such
    /// a program gets the memory up to the end of its allocation.
    pub fn handle_bytes(&self) -> &[u8] {
        self.parts().0
    }
    /// Whether the object behind this ticket, which is open here, may still be opened by this ticket or another one, as
    /// far as this process knows without a request: the exporter is alive and has not freed it. Returns false for an
    /// object of this process, and with adapters that are separate shared objects.
    ///
    /// Useful for programs that keep an opened object for its next use: if this is false, it will not be opened again.
    pub fn object_stands(&self) -> bool {
        ur_ipc::object_stands(self.handle_bytes())
    }
    /// The handle, and the contents that the ticket states, if any.
    pub(crate) fn parts(&self) -> (&[u8], Option<Contents<'_>>) {
        match self.contents() {
            Some((handle, contents)) => (handle, Some(contents)),
            None => (&self.bytes, None),
        }
    }
    fn contents(&self) -> Option<(&[u8], Contents<'_>)> {
        let (rest, bytes) = self.bytes.split_last_chunk()?;
        let rest = rest.strip_suffix(MARK)?;
        let (rest, length) = rest.split_last_chunk()?;
        let (rest, align) = rest.split_last_chunk()?;
        let (rest, size) = rest.split_last_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let at = rest.len().checked_sub(length).filter(|_| length <= LONGEST_NAME)?;
        let name = str::from_utf8(&rest[at..]).ok()?;
        let of =
            ValueType { name, size: u32::from_le_bytes(*size), align: u32::from_le_bytes(*align) };
        Some((&rest[..at], Contents { bytes: u64::from_le_bytes(*bytes), of }))
    }
    fn of_memory(handle: &[u8], contents: Contents<'_>) -> Self {
        let Contents { bytes, of } = contents;
        let name = of.name.get(..LONGEST_NAME).unwrap_or(of.name).as_bytes();
        let length = u32::try_from(name.len()).unwrap_or(0).to_le_bytes();
        let (size, align) = (of.size.to_le_bytes(), of.align.to_le_bytes());
        let parts = [handle, name, &size, &align, &length, MARK, &bytes.to_le_bytes()];
        Self::from_bytes(parts.concat())
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
/// Does not show the bytes, because a reader of the log could use them.
impl<T> fmt::Debug for Ticket<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let opens = short_name(std::any::type_name::<T>());
        match self.parts().1 {
            Some(Contents { bytes, .. }) => write!(f, "Ticket<{opens}>({bytes} bytes of memory)"),
            None => write!(f, "Ticket<{opens}>({} bytes)", self.bytes.len()),
        }
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
        let mut all = Vec::new(); // the length that the sender states is not trusted
        while let Some(byte) = bytes.next_element()? {
            all.push(byte);
        }
        Ok(Ticket::from_bytes(all))
    }
}

/// Allows other processes to open an object. Dropping it withdraws the ticket; what was opened by then stays open.
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
    /// An export of memory.
    pub(crate) fn of_memory(exported: ffi::Exported, contents: Contents<'_>) -> Self {
        Self { ticket: Ticket::of_memory(exported.bytes(), contents), _exported: exported }
    }
    /// The same export with a ticket of another kind, which contains the original ticket.
    pub(crate) fn with_ticket<U>(self, bytes: Vec<u8>) -> Export<U> {
        Export { ticket: Ticket::from_bytes(bytes), _exported: self._exported }
    }
    /// The ticket, with which another process opens the object.
    pub fn ticket(&self) -> &Ticket<T> {
        &self.ticket
    }
}
impl<T> fmt::Debug for Export<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export").field("ticket", &self.ticket).finish()
    }
}

/// Threads that open beside the one that was called, at most, and tickets for which one is worth starting. They are for tickets
/// that each wait for an answer of the exporter: drivers open one handle at a time, and take longer where threads take turns.
const MOST_THREADS: usize = 3;
const TICKETS_A_THREAD: usize = 16;

impl Context {
    /// Opens the object that a ticket names, on this context's device. Opening it again returns another, independent
    /// handle. It is closed on drop.
    ///
    /// # Errors
    /// [`Withdrawn`](crate::ErrorKind::Withdrawn), [`Freed`](crate::ErrorKind::Freed),
    /// [`PeerGone`](crate::ErrorKind::PeerGone), [`Unreachable`](crate::ErrorKind::Unreachable),
    /// [`Busy`](crate::ErrorKind::Busy), [`Denied`](crate::ErrorKind::Denied),
    /// [`WrongDevice`](crate::ErrorKind::WrongDevice), [`OtherHost`](crate::ErrorKind::OtherHost) or
    /// [`Ticket`](crate::ErrorKind::Ticket), as far as this process may know the reason;
    /// [`WrongType`](crate::ErrorKind::WrongType) if a buffer has values of another type. A buffer of bytes
    /// (`Buffer<u8>`) opens memory of any type.
    pub fn open<T: Share>(&self, ticket: &Ticket<T>) -> Result<T> {
        T::open(self, ticket)
    }
    /// Opens the objects of many tickets, in their order. This takes less time than opening them one by one: one request asks
    /// for many tickets where the driver's handles are bytes; else some threads ask the exporter while others are in the driver.
    ///
    /// # Errors
    /// As [`open`](Self::open), for the first ticket that was found to be refused; what was opened by then is closed.
    pub fn open_all<T: Share + Send>(&self, tickets: &[Ticket<T>]) -> Result<Vec<T>> {
        let ahead = &ur_ipc::Ahead::of(tickets.iter().map(Ticket::handle_bytes));
        let Some(first) = tickets.first() else { return Ok(vec![]) };
        let first = self.open(first)?; // after it, others can be asked for together
        let next = &AtomicUsize::new(1);
        let work = || {
            let mut opened = Vec::new();
            // A number for each, nothing more.
            while let at = next.fetch_add(1, Relaxed)
                && let Some(ticket) = tickets.get(at)
            {
                let one = self.open(ticket);
                opened.push((at, one.inspect_err(|_| next.store(tickets.len(), Relaxed))?));
            }
            Ok(opened)
        };
        let threads = ((tickets.len() - ahead.together()) / TICKETS_A_THREAD).min(MOST_THREADS);
        let mut all = thread::scope(|scope| {
            // One that cannot be started leaves its part to the others.
            let start = |_| ur_mapping::start_scoped_thread(scope, "causeway-open", work).ok();
            let others: Vec<_> = (0..threads).filter_map(start).collect();
            if ahead.is_long() {
                let is_over = || next.load(Relaxed) >= tickets.len();
                let fetch = move || ahead.fetch(is_over);
                let _ = ur_mapping::start_scoped_thread(scope, "causeway-ahead", fetch); // without it, the opens ask
            }
            let mut all = vec![(0, first)];
            all.extend(work()?);
            for other in others {
                all.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic))?);
            }
            Ok::<_, Error>(all)
        })?;
        all.sort_unstable_by_key(|(at, _)| *at);
        Ok(all.into_iter().map(|(_, one)| one).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_tickets_length_is_split_from_its_handle() {
        let contents = Contents { bytes: 77, of: ValueType::of::<u8>() };
        let ticket = Ticket::<Buffer<u8>>::of_memory(b"handle", contents);
        assert_eq!(ticket.parts(), (b"handle".as_slice(), Some(contents)));
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
    fn a_name_that_is_longer_than_the_ticket_is_no_name() {
        let contents = Contents { bytes: 1, of: ValueType::of::<u8>() };
        let mut bytes = Ticket::<Event>::of_memory(b"h", contents).as_bytes().to_vec();
        let at = bytes.len() - 8 - MARK.len() - 4;
        bytes[at] = 200;
        assert_eq!(Ticket::<Event>::from_bytes(bytes.clone()).parts(), (bytes.as_slice(), None));
    }
    #[test]
    fn a_type_is_named_without_its_modules() {
        assert_eq!(short_name("producer::images::Pixel"), "Pixel");
        assert_eq!(short_name("[f32; 4]"), "[f32; 4]");
        assert_eq!(short_name("num::Wrapping<core::x::Y>"), "Wrapping<core::x::Y>");
    }
    #[test]
    fn debug_output_does_not_give_a_ticket_away() {
        assert_eq!(
            format!("{:?}", Ticket::<Event>::from_bytes(*b"secret")),
            "Ticket<Event>(6 bytes)"
        );
        let contents = Contents { bytes: 8, of: ValueType::of::<f32>() };
        let memory = Ticket::<Buffer<f32>>::of_memory(b"secret", contents);
        assert_eq!(format!("{memory:?}"), "Ticket<Buffer<f32>>(8 bytes of memory)");
    }
    /// The smallest format that is not human-readable: the bytes unchanged.
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
