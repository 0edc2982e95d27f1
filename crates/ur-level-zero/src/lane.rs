//! Lanes: an immediate command list of a queue's, what has to be kept until it has passed, and, where
//! a queue submits in batches, the list that is being filled.
use super::{
    driver::{RawDevice, RawList},
    native::{
        event::{EventKind, PooledEvent},
        list::{List, NativeList},
    },
    signal::Cache,
};
use std::{collections::VecDeque, ptr::null, sync::Arc};
use ur_adapter::error::Result;
use ur_core::memory::objects::objects_so_far;

/// So many waited-for events are kept before a mark is set behind them.
const HELD: usize = 64;

/// A list that is being filled.
#[derive(Debug)]
struct Batch {
    list: NativeList,
    commands: u32,
}
/// One of a queue's lists.
#[derive(Debug)]
pub(super) struct Lane {
    list: Arc<NativeList>,
    raw: RawList,
    /// The list that went before, which may have something to do yet.
    before: Option<Arc<NativeList>>,
    device: RawDevice,
    /// The longest pattern that its engines fill with.
    pattern: usize,
    /// The number of the last barrier that it is behind.
    pub(super) fence: u64,
    /// How many commands were put into it.
    count: u64,
    /// The last command, if C has an event of it and nothing marks its end: see `tail.rs`.
    pub(super) tail: Option<u64>,
    /// Marks behind such commands, by their numbers, that nobody has asked for yet.
    pub(super) marks: VecDeque<(u64, EventKind)>,
    /// How many objects there were when the last command was put into it: memory that is younger it does not
    /// know of.
    latest: u64,
    /// Marks under way for memory that was freed, with the numbers of the last commands before them.
    pub(super) frees: VecDeque<(u64, EventKind)>,
    /// Events from pools that it waits for or that the host signals: kept until it has passed them.
    held: Vec<Arc<PooledEvent>>,
    /// Those before, and the mark behind them.
    passing: Option<(Vec<Arc<PooledEvent>>, EventKind)>,
    batch: Option<Batch>,
    /// Batches under way, each with the mark behind it.
    sent: VecDeque<(NativeList, EventKind)>,
}
impl Lane {
    pub(super) fn new(list: NativeList, device: RawDevice, pattern: usize) -> Self {
        let (raw, list) = (list.raw(), Arc::new(list));
        let (held, passing, batch, sent) = Default::default();
        let (fence, count, tail, marks) = Default::default();
        let (latest, frees) = Default::default();
        Self {
            latest,
            frees,
            list,
            raw,
            before: None,
            device,
            pattern,
            fence,
            count,
            tail,
            marks,
            held,
            passing,
            batch,
            sent,
        }
    }
    /// The immediate list.
    pub(super) fn list(&self) -> &Arc<NativeList> {
        &self.list
    }
    /// Goes on in another list, whose first command waits for all that is in this one; `mark` stands for that.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn go_on_in(&mut self, list: NativeList, mark: &EventKind) -> Result<()> {
        self.turn().signal(mark.raw())?;
        List::new(list.raw(), self.engines(), &[], None).wait_for(&[mark.raw()])?;
        self.raw = list.raw();
        self.before = Some(std::mem::replace(&mut self.list, Arc::new(list)));
        Ok(())
    }
    /// Its handle.
    #[inline]
    pub(super) fn raw(&self) -> RawList {
        self.raw
    }
    /// A turn at the immediate list without waits and signal.
    pub(super) fn turn(&self) -> List<'static> {
        List::new(self.list.raw(), (self.device, self.pattern), &[], None)
    }
    /// What a turn needs to know of its engines.
    #[inline]
    pub(super) fn engines(&self) -> (RawDevice, usize) {
        (self.device, self.pattern)
    }
    /// Counts one more command, which is about to be put into it: its number there, from 1 on.
    #[inline]
    pub(super) fn count_one(&mut self) -> u64 {
        self.latest = objects_so_far();
        self.count += 1;
        self.count
    }
    /// How many objects there were when the last command was put into it, and one.
    pub(super) fn latest(&self) -> u64 {
        self.latest
    }
    /// The number of the last command.
    #[inline]
    pub(super) fn count(&self) -> u64 {
        self.count
    }
    /// What is put there is kept until everything up to now and a little more has passed.
    #[inline]
    pub(super) fn held(&mut self) -> &mut Vec<Arc<PooledEvent>> {
        &mut self.held
    }
    /// Lets go of what has passed.
    ///
    /// # Errors
    /// Returns the driver's error.
    #[inline]
    pub(super) fn tidy(&mut self, cache: &Cache) -> Result<()> {
        if self.held.len() < HELD || self.batch.is_some() {
            return Ok(());
        }
        self.set_mark(cache)
    }
    #[cold]
    fn set_mark(&mut self, cache: &Cache) -> Result<()> {
        if let Some((_, mark)) = &self.passing
            && !mark.is_complete()?
        {
            return Ok(());
        }
        let mark = cache.take(false)?;
        self.turn().signal(mark.raw())?;
        let passed = self.passing.replace((std::mem::take(&mut self.held), mark));
        if let Some((_, mark)) = passed {
            cache.give(mark, false);
        }
        Ok(())
    }
    /// Whether something waits in a batch.
    pub(super) fn has_batch(&self) -> bool {
        self.batch.is_some()
    }
    /// A turn's list in the batch that is being filled; `make` makes a new one.
    ///
    /// # Errors
    /// `make`'s, and the driver's own.
    pub(super) fn batch(
        &mut self,
        cache: &Cache,
        make: impl FnOnce(*const std::ffi::c_void) -> Result<NativeList>,
    ) -> Result<RawList> {
        if self.batch.is_none() {
            let list = match self.rested(cache)? {
                Some(list) => list,
                None => make(null())?,
            };
            self.batch = Some(Batch { list, commands: 0 });
        }
        let batch = self.batch.as_mut().expect("there is one, or was just made");
        batch.commands += 1;
        Ok(batch.list.raw())
    }
    /// A list whose batch is done, empty again.
    fn rested(&mut self, cache: &Cache) -> Result<Option<NativeList>> {
        let is_done = |(_, mark): &(NativeList, EventKind)| mark.is_complete();
        if !self.sent.front().map_or(Ok(false), is_done)? {
            return Ok(None);
        }
        let Some((list, mark)) = self.sent.pop_front() else { return Ok(None) };
        cache.give(mark, false);
        list.reset()?;
        Ok(Some(list))
    }
    /// How many commands the batch has.
    pub(super) fn filled(&self) -> u32 {
        self.batch.as_ref().map_or(0, |batch| batch.commands)
    }
    /// Sends the batch off, if there is one.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn send(&mut self, cache: &Cache) -> Result<()> {
        let Some(batch) = self.batch.take() else { return Ok(()) };
        batch.list.close()?;
        let mark = cache.take(false)?;
        let turn = List::new(self.list.raw(), self.engines(), &[], Some(mark.raw()));
        turn.execute(batch.list.raw())?;
        self.sent.push_back((batch.list, mark));
        Ok(())
    }
}
