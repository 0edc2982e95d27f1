//! Lanes: an immediate command list of a queue's, what has to be kept until it has passed, and, where
//! a queue submits in batches, the list that is being filled.
use super::{
    driver::RawDevice,
    native::{
        event::{EventKind, PooledEvent},
        list::{List, NativeList},
    },
    signal::Cache,
};
use std::{collections::VecDeque, ptr::null, sync::Arc};
use ur_adapter::error::Result;

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
    device: RawDevice,
    /// The longest pattern that its engines fill with.
    pattern: usize,
    /// The number of the last barrier that it is behind.
    pub(super) fence: u64,
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
        let list = Arc::new(list);
        let (held, passing, batch, sent) = Default::default();
        Self { list, device, pattern, fence: 0, held, passing, batch, sent }
    }
    /// The immediate list.
    pub(super) fn list(&self) -> &Arc<NativeList> {
        &self.list
    }
    /// A turn at the immediate list without waits and signal.
    pub(super) fn turn(&self) -> List<'static> {
        List::new(self.list.raw(), (self.device, self.pattern), &[], None)
    }
    /// What a turn needs to know of its engines.
    pub(super) fn engines(&self) -> (RawDevice, usize) {
        (self.device, self.pattern)
    }
    /// Keeps an event until everything up to now and a little more has passed.
    pub(super) fn hold(&mut self, event: Arc<PooledEvent>) {
        self.held.push(event);
    }
    /// Lets go of what has passed.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn tidy(&mut self, cache: &Cache) -> Result<()> {
        if self.held.len() < HELD || self.batch.is_some() {
            return Ok(());
        }
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
    ) -> Result<super::driver::RawList> {
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
    /// The driver's own.
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
