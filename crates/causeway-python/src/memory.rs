//! Memory behind arrays: allocated here, or opened from a ticket and closed with its last array; and which memory an
//! address is in, so that what another library made of an array is shared in place.
use crate::{
    failure::{Failure, Result},
    layout::Layout,
    linger,
    loan::Loan,
    session::{Session, stay_reachable},
};
use causeway::{Buffer, Export, Policy, Ticket};
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
    opened: Option<Arc<[u8]>>,
    /// If it is a part of what was opened, where that begins, and what is told when it is not used any more.
    part: Option<(usize, Loan)>,
}

/// The memory of this process by its addresses; one may be open several times.
static LIVE: Mutex<BTreeMap<usize, Vec<Weak<Memory>>>> = Mutex::new(BTreeMap::new());

/// What other processes open.
pub struct Offer {
    pub ticket: Vec<u8>,
    /// Stands until it is dropped; none where another process stands for it.
    pub export: Option<Export<Buffer<u8>>>,
    /// Where the ticket's memory begins, in bytes from the beginning of the memory.
    pub start: isize,
}

impl Memory {
    /// At least one byte of a device's memory; what is in it is unspecified. `policy` says who may open and write it.
    pub fn allocate(session: &Arc<Session>, bytes: usize, policy: Policy) -> Result<Arc<Self>> {
        if bytes as u64 > session.memory && session.memory > 0 {
            let (has, name) = (session.memory, session.name());
            let sentence = format!("{bytes} bytes cannot be: {name} has {has} in all");
            return Err(Failure::new("OutOfMemory", sentence));
        }
        let buffer = Buffer::with_policy(&session.context, bytes.max(1), policy)?;
        Ok(Self::known(session, buffer, None, None))
    }
    /// # Errors
    /// `InvalidUse` for memory that was not made for what is `wanted`, where anything is.
    pub fn is_as(&self, wanted: Option<Policy>) -> Result<()> {
        let Some(wanted) = wanted else { return Ok(()) };
        if self.opened.is_some() {
            let sentence = "this array was opened from a ticket: who may open and write it is said by the process that made it; share(array) passes it on as it is";
            return Err(Failure::misuse(sentence));
        }
        if self.buffer.policy() == wanted {
            return Ok(());
        }
        let sentence = "who may open memory, and who may write it, is fixed when it is made: make this array by empty(…, access=…, read_only=…), or share a copy, array(…, access=…, read_only=…)";
        Err(Failure::misuse(sentence))
    }
    /// Whether this process may write it.
    pub fn is_writable(&self) -> bool {
        self.buffer.is_writable()
    }
    pub fn open(session: &Arc<Session>, ticket: &[u8]) -> Result<Arc<Self>> {
        let buffer = session.context.open(&Ticket::<Buffer<u8>>::from_bytes(ticket))?;
        Ok(Self::known(session, buffer, Some(ticket.into()), None))
    }
    /// A part of this, which is of use for as long as `loan`.
    pub fn lend(&self, range: Range<usize>, loan: Loan) -> Result<Arc<Self>> {
        let (start, buffer) = (range.start, self.buffer.slice(range)?);
        Ok(Self::known(&self.session, buffer, self.opened.clone(), Some((start, loan))))
    }
    fn known(
        session: &Arc<Session>,
        buffer: Buffer<u8>,
        opened: Option<Arc<[u8]>>,
        part: Option<(usize, Loan)>,
    ) -> Arc<Self> {
        let (session, standing) = (session.clone(), Mutex::new(None));
        let new = Arc::new(Self { session, standing, buffer, opened, part });
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
    /// Keeps it mapped.
    pub fn buffer(&self) -> Buffer<u8> {
        self.buffer.clone()
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
        if let Some((ticket, start)) = self.opened_with() {
            return Ok(Offer { ticket, export: None, start });
        }
        stay_reachable()?;
        let start = range.start.min(self.len() - 1); // arrays without elements may begin at the end
        let export = self.buffer.slice(start..range.end.max(start + 1))?.share()?;
        let ticket = export.ticket().as_bytes().to_vec();
        Ok(Offer { ticket, export: Some(export), start: start.cast_signed() })
    }
    /// The ticket that it was opened with, and where the ticket's memory begins. A part stays in use from here on, for
    /// whoever opens that ticket.
    fn opened_with(&self) -> Option<(Vec<u8>, isize)> {
        let start = match &self.part {
            Some((start, loan)) => {
                loan.keep();
                -start.cast_signed()
            }
            None => 0,
        };
        Some((self.opened.as_ref()?.to_vec(), start))
    }
    /// A ticket that opens as long as this process keeps the memory, and where its memory begins; that of another process
    /// opens as long as it is offered there.
    pub fn standing(&self) -> Result<(Vec<u8>, isize)> {
        self.session.usable()?;
        if let Some(opened) = self.opened_with() {
            return Ok(opened);
        }
        stay_reachable()?;
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        let export = match standing.take() {
            Some(export) => export,
            None => self.buffer.share()?,
        };
        Ok((standing.insert(export).ticket().as_bytes().to_vec(), 0))
    }
    /// Whether others can be sent to it: memory of another process may have been withdrawn there.
    pub fn is_offered(&self) -> bool {
        let opens = |ticket: &Arc<[u8]>| Self::open(&self.session, ticket).is_ok();
        self.opened.as_ref().is_none_or(opens)
    }
    /// The address of so many bytes from `at` on, where the host can write them.
    pub fn on_host(&self, at: usize, bytes: usize) -> Option<usize> {
        let is_inside = at.checked_add(bytes)? <= self.len();
        (is_inside && self.session.is_cpu()).then(|| self.address() + at)
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
    pub fn copy(
        &self,
        layout: &Layout,
        to: &Arc<Session>,
        policy: Policy,
    ) -> Result<(Arc<Self>, Layout)> {
        let range = layout.within(self.len()).ok_or_else(Failure::damaged)?;
        let copy = Self::allocate(to, range.len(), policy)?;
        let mut bytes = vec![0; range.len()];
        self.read(range.start, &mut bytes)?;
        copy.write(0, &bytes)?;
        Ok((copy, layout.clone().moved(range.start.cast_signed())))
    }
}
impl Drop for Memory {
    fn drop(&mut self) {
        let is_last = live(|live| {
            let Some(all) = live.get_mut(&self.address()) else { return true };
            all.retain(|one| one.strong_count() > 0);
            let is_last = all.is_empty();
            if is_last {
                live.remove(&self.address());
            }
            is_last
        });
        // Where another is open at the same address, that is what the next open finds.
        if let (true, Some(ticket), None) = (is_last, &self.opened, &self.part) {
            linger::keep(&self.session, &self.buffer, ticket);
        }
    }
}

fn live<T>(with: impl FnOnce(&mut BTreeMap<usize, Vec<Weak<Memory>>>) -> T) -> T {
    with(&mut LIVE.lock().unwrap_or_else(PoisonError::into_inner))
}
