//! Memory behind arrays: allocated here, or opened from a ticket and closed with its last array; and which memory an
//! address is in, so that what another library made of an array is shared in place.
use crate::{
    failure::{Failure, Result},
    layout::Layout,
    linger,
    loan::Loan,
    session::{Session, stay_reachable},
};
use causeway::{Access, Buffer, Export, Policy, Ticket, fork_count};
use std::{
    collections::BTreeMap,
    ops::Range,
    ptr,
    sync::{Arc, Mutex, PoisonError, Weak},
};

/// A piece of memory of a device.
pub struct Memory {
    pub session: Arc<Session>,
    /// An export that stands as long as this.
    standing: Mutex<Option<Export<Buffer<u8>>>>,
    buffer: Buffer<u8>,
    origin: Origin,
    /// If it is a part of what was opened, where that begins, and what is told when it is not used any more.
    part: Option<(usize, Loan)>,
}

/// Where memory comes from.
#[derive(Clone)]
enum Origin {
    /// It was allocated here. A copy of what was for reading only is not for this process to write either, if it opens it.
    Made {
        is_for_reading: bool,
    },
    /// It was opened from a ticket of other memory of this process, in which it begins at that byte.
    Own(Arc<Memory>, usize),
    Opened(Opened),
}
/// How memory of another process was opened.
#[derive(Clone)]
struct Opened {
    /// It is sent on by this ticket.
    ticket: Arc<Ticket<Buffer<u8>>>,
    /// Whether any process of its exporter's user may open it.
    is_for_same_user: bool,
}

/// The memory of the process with this `fork_count` by its addresses; one may be open several times.
static LIVE: Mutex<(u64, ByAddress)> = Mutex::new((0, BTreeMap::new()));
type ByAddress = BTreeMap<usize, Vec<Weak<Memory>>>;

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
        Self::made(session, bytes, policy, false)
    }
    fn made(
        session: &Arc<Session>,
        bytes: usize,
        policy: Policy,
        is_for_reading: bool,
    ) -> Result<Arc<Self>> {
        if bytes as u64 > session.memory && session.memory > 0 {
            let (has, name) = (session.memory, session.name());
            let sentence = format!("{bytes} bytes cannot be: {name} has {has} in all");
            return Err(Failure::new("OutOfMemory", sentence));
        }
        let buffer = Buffer::with_policy(&session.context, bytes.max(1), policy)?;
        Ok(Self::known(session, buffer, Origin::Made { is_for_reading }, None))
    }
    /// # Errors
    /// `InvalidUse` for memory that was not made for what is `wanted`, where anything is.
    pub fn is_as(&self, wanted: Option<Policy>) -> Result<()> {
        let Some(wanted) = wanted else { return Ok(()) };
        if let Origin::Own(whole, _) = &self.origin {
            return whole.is_as(Some(wanted));
        }
        if matches!(self.origin, Origin::Opened(_)) {
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
        let is_for_reading = match &self.origin {
            Origin::Made { is_for_reading } => *is_for_reading,
            Origin::Own(whole, _) => !whole.is_writable(),
            Origin::Opened(_) => false,
        };
        self.buffer.is_writable() && !is_for_reading
    }
    /// Opens a ticket; `is_for_same_user` is what it says of who may.
    pub fn open(
        session: &Arc<Session>,
        ticket: Ticket<Buffer<u8>>,
        is_for_same_user: bool,
    ) -> Result<Arc<Self>> {
        let buffer = session.context.open(&ticket)?;
        Ok(Self::opened(session, buffer, ticket, is_for_same_user))
    }
    /// Opens many tickets.
    pub fn open_all(
        session: &Arc<Session>,
        tickets: Vec<Ticket<Buffer<u8>>>,
        is_for_same_user: bool,
    ) -> Result<Vec<Arc<Self>>> {
        let buffers = session.context.open_all(&tickets)?;
        let opened = |(buffer, ticket)| Self::opened(session, buffer, ticket, is_for_same_user);
        Ok(buffers.into_iter().zip(tickets).map(opened).collect())
    }
    fn opened(
        session: &Arc<Session>,
        buffer: Buffer<u8>,
        ticket: Ticket<Buffer<u8>>,
        is_for_same_user: bool,
    ) -> Arc<Self> {
        let origin = match Self::made_here(session, &buffer) {
            Some(own) => own,
            None => Origin::Opened(Opened { ticket: Arc::new(ticket), is_for_same_user }),
        };
        Self::known(session, buffer, origin, None)
    }
    /// The memory of this process that a ticket of it has opened: what came back is shared, and sent, as what it is.
    fn made_here(session: &Arc<Session>, opened: &Buffer<u8>) -> Option<Origin> {
        let found = Self::find(opened.address(), opened.len())?;
        let is_made =
            matches!(found.origin, Origin::Made { .. }) && Arc::ptr_eq(&found.session, session);
        let start = opened.address() - found.address();
        is_made.then_some(Origin::Own(found, start))
    }
    /// A part of this, which is of use for as long as `loan`.
    pub fn lend(&self, range: Range<usize>, loan: Loan) -> Result<Arc<Self>> {
        let (start, buffer) = (range.start, self.buffer.slice(range)?);
        Ok(Self::known(&self.session, buffer, self.origin.clone(), Some((start, loan))))
    }
    fn known(
        session: &Arc<Session>,
        buffer: Buffer<u8>,
        origin: Origin,
        part: Option<(usize, Loan)>,
    ) -> Arc<Self> {
        let (session, standing) = (session.clone(), Mutex::new(None));
        let new = Arc::new(Self { session, standing, buffer, origin, part });
        if new.is_listed() {
            live(|live| live.entry(new.address()).or_default().push(Arc::downgrade(&new)));
        }
        new
    }
    /// Whether it is found by its addresses. What is in other memory of this process is found as that.
    fn is_listed(&self) -> bool {
        self.part.is_some() || !matches!(self.origin, Origin::Own(..))
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
    ///
    /// # Errors
    /// `Withdrawn`, `Freed` or `ExporterGone` for memory of another process that can be opened no more.
    pub fn offer(&self, range: Range<usize>) -> Result<Offer> {
        self.session.usable()?;
        if let Some((whole, at)) = self.own() {
            let Offer { ticket, export, start } = whole.offer(range.start + at..range.end + at)?;
            return Ok(Offer { ticket, export, start: start - at.cast_signed() });
        }
        if let Some((ticket, start)) = self.opened_with() {
            self.opens().map_err(|failure| match failure.is_of_a_dead_ticket() {
                true => failure.said(DEAD),
                false => failure,
            })?;
            return Ok(Offer { ticket, export: None, start });
        }
        stay_reachable()?;
        let start = range.start.min(self.len() - 1); // arrays without elements may begin at the end
        let export = self.buffer.slice(start..range.end.max(start + 1))?.share()?;
        let ticket = export.ticket().as_bytes().to_vec();
        Ok(Offer { ticket, export: Some(export), start: start.cast_signed() })
    }
    /// The memory of this process in which it is, and where it begins there.
    fn own(&self) -> Option<(&Arc<Self>, usize)> {
        match &self.origin {
            Origin::Own(whole, at) => {
                Some((whole, at + self.part.as_ref().map_or(0, |part| part.0)))
            }
            _ => None,
        }
    }
    /// The ticket that it was opened with, and where the ticket's memory begins. A part stays in use from here on, for
    /// whoever opens that ticket.
    fn opened_with(&self) -> Option<(Vec<u8>, isize)> {
        let Origin::Opened(opened) = &self.origin else { return None };
        let start = match &self.part {
            Some((start, loan)) => {
                loan.keep();
                -start.cast_signed()
            }
            None => 0,
        };
        Some((opened.ticket.as_bytes().to_vec(), start))
    }
    /// A ticket that opens as long as this process keeps the memory, and where its memory begins; that of another process
    /// opens as long as it is offered there.
    pub fn standing(&self) -> Result<(Vec<u8>, isize)> {
        self.session.usable()?;
        if let Some((whole, at)) = self.own() {
            if let Some((_, loan)) = &self.part {
                loan.keep();
            }
            let (ticket, start) = whole.standing()?;
            return Ok((ticket, start - at.cast_signed()));
        }
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
    /// Whether another process made it.
    pub fn is_of_another(&self) -> bool {
        matches!(self.origin, Origin::Opened(_))
    }
    /// Whether any process of its exporter's user may open it, as far as is known here.
    pub fn is_for_same_user(&self) -> bool {
        match &self.origin {
            Origin::Made { .. } => self.buffer.policy().access == Access::SameUser,
            Origin::Own(whole, _) => whole.is_for_same_user(),
            Origin::Opened(opened) => opened.is_for_same_user,
        }
    }
    /// What tells it from all other memory that is in use here.
    pub fn whole(&self) -> usize {
        self.own().map_or(ptr::from_ref(self), |(whole, _)| Arc::as_ptr(whole)).addr()
    }
    /// Whether it was made here and another process has it open.
    pub fn is_open_elsewhere(&self) -> bool {
        match &self.origin {
            // An adapter that does not know it has it kept no longer than until it was received.
            Origin::Made { .. } => self.buffer.is_open_elsewhere().unwrap_or(false),
            Origin::Own(whole, _) => whole.is_open_elsewhere(),
            Origin::Opened(_) => false,
        }
    }
    /// Opens the ticket of memory of another process once more, which may have been withdrawn there.
    pub fn opens(&self) -> Result<()> {
        let Origin::Opened(opened) = &self.origin else { return Ok(()) };
        self.session.context.open(&opened.ticket).map(drop).map_err(Failure::from)
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
    /// The bytes of this memory that an array of this process touches.
    ///
    /// # Errors
    /// `InvalidUse` for one whose elements lie where such elements may not be.
    pub fn range_of(&self, layout: &Layout) -> Result<Range<usize>> {
        let crooked = "this array lies in shareable memory at an address that elements of its type cannot have: copy it first";
        layout.within(self.len()).ok_or_else(|| Failure::misuse(crooked))
    }
    /// A copy of what an array touches, on the same device or on another, and the array in it.
    pub fn copy(
        &self,
        layout: &Layout,
        to: &Arc<Session>,
        policy: Policy,
    ) -> Result<(Arc<Self>, Layout)> {
        let range = self.range_of(layout)?;
        let copy = Self::allocate(to, range.len(), policy)?;
        self.copy_into(copy, layout, range)
    }
    fn copy_into(
        &self,
        copy: Arc<Self>,
        layout: &Layout,
        range: Range<usize>,
    ) -> Result<(Arc<Self>, Layout)> {
        let mut bytes = vec![0; range.len().min(PIECE)];
        for start in range.clone().step_by(PIECE) {
            let piece = &mut bytes[..(range.end - start).min(PIECE)];
            self.read(start, piece)?;
            copy.write(start - range.start, piece)?;
        }
        Ok((copy, layout.clone().moved(range.start.cast_signed())))
    }
    /// A copy to send instead of memory whose exporter is gone, or offers it no more: no more open than that was.
    ///
    /// # Errors
    /// `Withdrawn` where others than processes of the exporter's user could open it, or this is not known here.
    pub fn copy_to_send(&self, layout: &Layout) -> Result<(Arc<Self>, Layout)> {
        if !self.is_for_same_user() {
            return Err(Failure::new("Withdrawn", RESTRICTED));
        }
        let is_read_only = !self.is_writable();
        let policy = Policy { access: Access::SameUser, is_read_only };
        let range = self.range_of(layout)?;
        let copy = Self::made(&self.session, range.len(), policy, is_read_only)?;
        self.copy_into(copy, layout, range)
    }
}
/// Bytes that a copy moves at once.
const PIECE: usize = 4 << 20;
/// What is said of the array of a dead ticket.
const DEAD: &str = "the process that made this array has ended, or offers it no more, so that its ticket opens nothing: share a copy, share(array(x)), or keep the array and its export in that process";
/// What is said where no copy may be made.
const RESTRICTED: &str = "the process that made this array has ended, or offers it no more, and a copy would be open to more processes than the array was: send it while that process keeps it, or make the copy yourself, array(x, access=…)";
impl Drop for Memory {
    fn drop(&mut self) {
        if !self.is_listed() {
            return;
        }
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
        if let (true, Origin::Opened(opened), None) = (is_last, &self.origin, &self.part) {
            linger::keep(&self.session, &self.buffer, &opened.ticket);
        }
    }
}

fn live<T>(with: impl FnOnce(&mut ByAddress) -> T) -> T {
    let mut live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
    if live.0 != fork_count() {
        // What a forked child inherited is not mapped there: other memory of its own may have the addresses.
        *live = (fork_count(), BTreeMap::new());
    }
    with(&mut live.1)
}
