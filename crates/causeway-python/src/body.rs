//! What the text of a ticket is made of: where the device is, tickets of memory or of an event, and how arrays lie in
//! the memory. Bytes come from other processes: what is read here is bounded, and checked again against the memory.
use crate::{
    dtype::DType,
    layout::{Layout, Lengths, MOST_DIMENSIONS},
};
use std::borrow::Cow;

/// The first byte of what follows.
const VERSION: u8 = 3;

/// What a ticket says.
#[derive(Clone, PartialEq, Debug)]
pub struct Body<'a> {
    /// Name of the backend.
    pub backend: &'a str,
    /// The device's UUID as hexadecimal digits, if it has one.
    pub uuid: Option<&'a str>,
    /// Whether any process of the exporter's user may open it. A hint for those who pass a copy on: it says no more of the
    /// memory than its exporter did.
    pub is_for_same_user: bool,
    pub contents: Cow<'a, Contents>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Contents {
    Array(Vec<u8>, Layout),
    /// Tickets of memory; arrays with their names, each with which memory it is in.
    Arrays(Vec<Vec<u8>>, Vec<(String, usize, Layout)>),
    Event(Vec<u8>),
    /// A ticket of the memory that a channel is in, and one of the event that its arrays are ready by.
    Channel(Vec<u8>, Layout, Option<Vec<u8>>),
}

impl<'a> Body<'a> {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(512); // more than an array's has
        out.push(VERSION);
        put(&mut out, self.backend.as_bytes());
        put(&mut out, self.uuid.unwrap_or_default().as_bytes());
        out.push(u8::from(self.is_for_same_user));
        match &*self.contents {
            Contents::Array(ticket, layout) => {
                out.push(0);
                put(&mut out, ticket);
                put_layout(&mut out, layout);
            }
            Contents::Arrays(tickets, arrays) => {
                out.push(1);
                number(&mut out, tickets.len());
                tickets.iter().for_each(|ticket| put(&mut out, ticket));
                number(&mut out, arrays.len());
                for (name, memory, layout) in arrays {
                    put(&mut out, name.as_bytes());
                    number(&mut out, *memory);
                    put_layout(&mut out, layout);
                }
            }
            Contents::Event(ticket) => {
                out.push(2);
                put(&mut out, ticket);
            }
            Contents::Channel(ticket, layout, event) => {
                out.push(3);
                put(&mut out, ticket);
                put_layout(&mut out, layout);
                put(&mut out, event.as_deref().unwrap_or_default());
            }
        }
        out
    }
    /// `None` unless the bytes are exactly what [`encode`](Self::encode) makes of something.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        if from.byte()? != VERSION {
            return None;
        }
        let backend = from.text()?;
        let uuid = Some(from.text()?).filter(|uuid| !uuid.is_empty());
        let is_for_same_user = match from.byte()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let contents = match from.byte()? {
            0 => Contents::Array(from.bytes()?.to_vec(), from.layout()?),
            1 => {
                let mut tickets = Vec::new(); // not of the size that the sender claims
                for _ in 0..from.number()? {
                    tickets.push(from.bytes()?.to_vec());
                }
                let mut arrays = Vec::new();
                for _ in 0..from.number()? {
                    let (name, memory) = (from.text()?.to_owned(), from.number()?);
                    if memory >= tickets.len() {
                        return None;
                    }
                    arrays.push((name, memory, from.layout()?));
                }
                Contents::Arrays(tickets, arrays)
            }
            2 => Contents::Event(from.bytes()?.to_vec()),
            3 => {
                let (ticket, layout) = (from.bytes()?.to_vec(), from.layout()?);
                let event = Some(from.bytes()?.to_vec()).filter(|event| !event.is_empty());
                Contents::Channel(ticket, layout, event)
            }
            _ => return None,
        };
        let contents = Cow::Owned(contents);
        from.0.is_empty().then_some(Self { backend, uuid, is_for_same_user, contents })
    }
}

fn number(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
}
fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    number(out, bytes.len());
    out.extend_from_slice(bytes);
}
pub fn put_layout(out: &mut Vec<u8>, layout: &Layout) {
    out.extend_from_slice(&[layout.dtype.code, layout.dtype.bits]);
    out.extend_from_slice(&(layout.offset as u64).to_le_bytes());
    number(out, layout.shape.len());
    for value in layout.shape.iter().chain(&layout.strides) {
        out.extend_from_slice(&value.to_le_bytes());
    }
}

/// What [`put_layout`] makes of a layout, and nothing else.
pub fn layout_of(bytes: &[u8]) -> Option<Layout> {
    let mut from = Reader(bytes);
    let layout = from.layout()?;
    from.0.is_empty().then_some(layout)
}

struct Reader<'a>(&'a [u8]);
impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }
    fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }
    fn number(&mut self) -> Option<usize> {
        usize::try_from(u32::from_le_bytes(self.take()?)).ok()
    }
    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
    fn text(&mut self) -> Option<&'a str> {
        str::from_utf8(self.bytes()?).ok()
    }
    fn layout(&mut self) -> Option<Layout> {
        let [code, bits] = self.take()?;
        let dtype = DType::of_dlpack(code, bits, 1)?;
        let offset = usize::try_from(u64::from_le_bytes(self.take()?)).ok()?;
        let dimensions = self.number()?;
        if dimensions > MOST_DIMENSIONS {
            return None;
        }
        let mut values = [Lengths::new(), Lengths::new()];
        for list in &mut values {
            for _ in 0..dimensions {
                list.push(i64::from_le_bytes(self.take()?));
            }
        }
        let [shape, strides] = values;
        Some(Layout { dtype, offset, shape, strides })
    }
}
