//! Memory behind arrays: allocated here, or opened from a ticket and closed with its last array; and which memory an
//! address is in, so that what another library made of an array is shared in place.
use crate::{
    failure::{Failure, Result},
    layout::Layout,
    session::Session,
};
use causeway::{Buffer, Export, Ticket};
use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, Mutex, PoisonError, Weak},
};

/// A piece of memory of a device.
pub struct Memory {
    pub session: Arc<Session>,
    /// An export that stands as long as this.
    standing: Mutex<Option<Export<Buffer<u8>>>>,
    buffer: Buffer<u8>,
    /// The ticket that it was opened with: it is sent on by that.
    opened: Option<Vec<u8>>,
}

/// The memory of this process by its addresses; one may be open several times.
static LIVE: Mutex<BTreeMap<usize, Vec<Weak<Memory>>>> = Mutex::new(BTreeMap::new());

/// What other processes open.
pub struct Offer {
    pub ticket: Vec<u8>,
    /// Stands until it is dropped; none where another process stands for it.
    pub export: Option<Export<Buffer<u8>>>,
    /// Which byte of the memory the ticket's memory begins with.
    pub start: usize,
}

impl Memory {
    /// At least one byte of a device's memory; what is in it is unspecified.
    pub fn allocate(session: &Arc<Session>, bytes: usize) -> Result<Arc<Self>> {
        let buffer = Buffer::new(&session.context, bytes.max(1))?;
        Ok(Self::known(session, buffer, None))
    }
    pub fn open(session: &Arc<Session>, ticket: &[u8]) -> Result<Arc<Self>> {
        let buffer = session.context.open(&Ticket::<Buffer<u8>>::from_bytes(ticket))?;
        Ok(Self::known(session, buffer, Some(ticket.to_vec())))
    }
    fn known(session: &Arc<Session>, buffer: Buffer<u8>, opened: Option<Vec<u8>>) -> Arc<Self> {
        let new =
            Arc::new(Self { session: session.clone(), standing: Mutex::new(None), buffer, opened });
        live(|live| live.entry(new.address()).or_default().push(Arc::downgrade(&new)));
        new
    }
    /// The memory of this module that has these bytes of the process.
    pub fn find(address: usize, bytes: usize) -> Option<Arc<Self>> {
        let found = live(|live| {
            let (_, all) = live.range(..=address).next_back()?;
            all.iter().find_map(Weak::upgrade)
        })?; // dropped, if it is not the one, without the lock
        (address.checked_add(bytes)? <= found.address() + found.len()).then_some(found)
    }
    pub fn address(&self) -> usize {
        self.buffer.address()
    }
    pub fn len(&self) -> usize {
        self.buffer.len()
    }
    /// Offers these bytes to other processes.
    pub fn offer(&self, range: Range<usize>) -> Result<Offer> {
        self.session.usable()?;
        if let Some(ticket) = &self.opened {
            return Ok(Offer { ticket: ticket.clone(), export: None, start: 0 });
        }
        let start = range.start.min(self.len() - 1); // arrays without elements may begin at the end
        let export = self.buffer.slice(start..range.end.max(start + 1))?.share()?;
        Ok(Offer { ticket: export.ticket().as_bytes().to_vec(), export: Some(export), start })
    }
    /// A ticket of all of it that opens as long as this process keeps the memory; that of another process as long as
    /// it is offered there.
    pub fn standing(&self) -> Result<Vec<u8>> {
        self.session.usable()?;
        if let Some(ticket) = &self.opened {
            return Ok(ticket.clone());
        }
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        let export = match standing.take() {
            Some(export) => export,
            None => self.buffer.share()?,
        };
        Ok(standing.insert(export).ticket().as_bytes().to_vec())
    }
    /// Whether others can be sent to it: memory of another process may have been withdrawn there.
    pub fn is_offered(&self) -> bool {
        let opens = |ticket: &Vec<u8>| Self::open(&self.session, ticket).is_ok();
        self.opened.as_ref().is_none_or(opens)
    }
    /// Writes bytes to the beginning; returns when that is done.
    pub fn write(&self, at: usize, bytes: &[u8]) -> Result<()> {
        self.session.usable()?;
        if bytes.is_empty() {
            return Ok(());
        }
        Ok(self.buffer.slice(at..at + bytes.len())?.copy_from_slice(&self.session.queue, bytes)?)
    }
    /// Copies to the beginning of `out`, as many bytes as that has; returns when that is done.
    pub fn read(&self, at: usize, out: &mut [u8]) -> Result<()> {
        self.session.usable()?;
        if out.is_empty() {
            return Ok(());
        }
        Ok(self.buffer.slice(at..at + out.len())?.copy_to_slice(&self.session.queue, out)?)
    }
    /// A copy of what an array touches, on the same device or on another, and the array in it.
    pub fn copy(&self, layout: &Layout, to: &Arc<Session>) -> Result<(Arc<Self>, Layout)> {
        let range = layout.within(self.len()).ok_or_else(Failure::damaged)?;
        let copy = Self::allocate(to, range.len())?;
        let mut bytes = vec![0; range.len()];
        self.read(range.start, &mut bytes)?;
        copy.write(0, &bytes)?;
        Ok((copy, layout.clone().moved(range.start)))
    }
}
impl Drop for Memory {
    fn drop(&mut self) {
        live(|live| {
            if let Some(all) = live.get_mut(&self.address()) {
                all.retain(|one| one.strong_count() > 0);
                if all.is_empty() {
                    live.remove(&self.address());
                }
            }
        });
    }
}

fn live<T>(with: impl FnOnce(&mut BTreeMap<usize, Vec<Weak<Memory>>>) -> T) -> T {
    with(&mut LIVE.lock().unwrap_or_else(PoisonError::into_inner))
}
