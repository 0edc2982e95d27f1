//! A lane: one immediate command list of a queue, the objects that must be kept until it has executed its
//! commands, and, if the queue submits in batches, the list that is being filled.
use super::{
    driver::{RawDevice, RawList},
    fate::{Dependencies, Fate},
    host_task::signal_surely,
    native::{
        event::{EventKind, PooledEvent},
        list::{List, NativeList},
    },
    signal::Cache,
};
use std::{collections::VecDeque, ptr::null, sync::Arc};
use ur_hal::{Result, objects_so_far};

/// The number of kept events from which a mark is appended behind them.
const HELD: usize = 64;

/// A list that is being filled.
#[derive(Debug)]
struct Batch {
    list: NativeList,
    commands: u32,
    /// What its commands signal: the host does, if the driver refuses the batch.
    ends: Vec<Arc<PooledEvent>>,
    /// Whether the driver took it.
    fate: Arc<Fate>,
    /// That, as what the events of its commands depend on.
    dependencies: Dependencies,
}
/// An immediate command list of a queue.
#[derive(Debug)]
pub(super) struct Lane {
    /// The immediate list.
    pub(super) list: Arc<NativeList>,
    raw: RawList,
    /// The previous list, which may still be executing.
    before: Option<Arc<NativeList>>,
    device: RawDevice,
    /// The longest fill pattern of its engines, in bytes.
    pattern: usize,
    /// The number of the last barrier that it waits for.
    pub(super) fence: u64,
    /// The number of commands appended so far, and so that of the last one.
    pub(super) count: u64,
    /// The last command, if it has an event for the application and nothing marks its end yet: see
    /// `lazy_event.rs`.
    pub(super) tail: Option<u64>,
    /// Marks behind such commands, with the commands' numbers, that no event uses yet.
    pub(super) marks: VecDeque<(u64, EventKind)>,
    /// The sequence number of objects (`objects_so_far`) when the last command was appended. The commands
    /// cannot use younger memory.
    pub(super) latest: u64,
    /// Pending marks for deferred frees, each with the number of the last command before it.
    pub(super) frees: VecDeque<(u64, EventKind)>,
    /// Pooled events that it waits for or that the host signals; kept until it has passed them.
    held: Vec<Arc<PooledEvent>>,
    /// Events kept earlier, and the mark behind their last use.
    passing: Option<(Vec<Arc<PooledEvent>>, EventKind)>,
    batch: Option<Batch>,
    /// Submitted batches, each with the mark behind it.
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
    /// Continues in another list, whose first command waits for everything in this one; `mark` is the event
    /// used for it.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn go_on_in(&mut self, list: NativeList, mark: &EventKind) -> Result<()> {
        self.turn().signal(mark.raw())?;
        list.turn(self.engines()).wait_for(&[mark.raw()])?;
        self.raw = list.raw();
        self.before = Some(std::mem::replace(&mut self.list, Arc::new(list)));
        Ok(())
    }
    /// Its handle.
    #[inline]
    pub(super) fn raw(&self) -> RawList {
        self.raw
    }
    /// Access to the immediate list without waits and without a signal.
    pub(super) fn turn(&self) -> List<'static> {
        self.list.turn(self.engines())
    }
    /// Appends a mark behind everything in the immediate list.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn mark(&self, cache: &Cache) -> Result<EventKind> {
        let mark = cache.take(false)?;
        self.turn().signal(mark.raw())?;
        Ok(mark)
    }
    /// The device, and the longest fill pattern of its engines.
    #[inline]
    pub(super) fn engines(&self) -> (RawDevice, usize) {
        (self.device, self.pattern)
    }
    /// Counts a command that is about to be appended, and returns its number, starting at 1.
    #[inline]
    pub(super) fn count_one(&mut self) -> u64 {
        self.latest = objects_so_far();
        self.count += 1;
        self.count
    }
    /// Objects to be kept until all current commands have been executed.
    #[inline]
    pub(super) fn held(&mut self) -> &mut Vec<Arc<PooledEvent>> {
        &mut self.held
    }
    /// Drops kept events that the list has passed, if there are many.
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
        let mark = self.mark(cache)?;
        let passed = self.passing.replace((std::mem::take(&mut self.held), mark));
        if let Some((_, mark)) = passed {
            cache.give(mark, false);
        }
        Ok(())
    }
    /// Whether there is a batch that has not been submitted.
    pub(super) fn has_batch(&self) -> bool {
        self.batch.is_some()
    }
    /// The list of the batch that is being filled, for one more command; `make` creates a new list if
    /// necessary.
    ///
    /// # Errors
    /// The errors of `make`; else the driver's error.
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
            let fate = Fate::by_thread();
            let (ends, dependencies) = (vec![], Dependencies::of(&fate));
            self.batch = Some(Batch { list, commands: 0, ends, fate, dependencies });
        }
        let batch = self.batch.as_mut().expect("there is one, or was just made");
        batch.commands += 1;
        Ok(batch.list.raw())
    }
    /// A list whose batch is complete, reset for reuse.
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
    /// The number of commands in the batch.
    pub(super) fn filled(&self) -> u32 {
        self.batch.as_ref().map_or(0, |batch| batch.commands)
    }
    /// The last command of the batch signals this; what its end depends on until the batch is submitted.
    pub(super) fn batch_signals(&mut self, end: &EventKind) -> Option<Dependencies> {
        let batch = self.batch.as_mut()?;
        if let EventKind::Pooled(event) = end {
            batch.ends.push(Arc::clone(event));
        }
        Some(batch.dependencies.clone())
    }
    /// Submits the batch, if there is one. Returns what became of it if the driver refuses: its commands never run, and their events
    /// are signalled, so that nothing waits for them.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn send(&mut self, cache: &Cache) -> std::result::Result<(), Arc<Fate>> {
        let Some(Batch { list, ends, fate, .. }) = self.batch.take() else { return Ok(()) };
        fate.meet(|| {
            let mark = cache.take(false)?;
            list.close()?;
            let turn = List::new(self.list.raw(), self.engines(), &[], Some(mark.raw()));
            turn.execute(list.raw())?;
            self.sent.push_back((list, mark));
            Ok(())
        });
        if !fate.has_failed() {
            let _later = self.tidy(cache); // a batch that is sent before it is full has put it off
            return Ok(());
        }
        ends.iter().for_each(|end| signal_surely(end));
        Err(fate)
    }
}
