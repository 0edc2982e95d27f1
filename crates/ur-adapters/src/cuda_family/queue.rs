//! Queues as C knows them. An in-order queue is one stream; an out-of-order queue has several, its
//! lanes, which commands take in turn. What commands are is `enqueue.rs`'s.
//!
//! What the flags come to:
//!
//! | Flags | |
//! | --- | --- |
//! | `OUT_OF_ORDER_EXEC_MODE_ENABLE`, `PROFILING_ENABLE` | as documented |
//! | `PRIORITY_LOW`, `PRIORITY_HIGH` | the least and the greatest priority of streams |
//! | `USE_DEFAULT_STREAM` | an in-order queue is the driver's default stream |
//! | `SYNC_WITH_DEFAULT_STREAM` | its streams are ordered with the default stream |
//! | `DISCARD_EVENTS`, `SUBMISSION_BATCHED`, `SUBMISSION_IMMEDIATE`, `LOW_POWER_EVENTS_SUPPORT_EXP` | hints; nothing changes |
//! | `ON_DEVICE`, `ON_DEVICE_DEFAULT` | refused: `INVALID_QUEUE_PROPERTIES` |
use super::{
    Context, Device, Family,
    driver::{Dialect, RawStream},
    lane::Lane,
    native::{context::Entered, event::Pooled, stream::Stream},
    shared_event::{Counters, Debts, Registered, await_all},
};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*},
};
use ur_adapter::{
    api::{QueueApi, QueueExpApi},
    chain,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Owned},
};
use ur_ipc::arena;
use ur_sys::{
    ur_native_handle_t, ur_queue_flags_t, ur_queue_index_properties_t, ur_queue_info_t,
    ur_queue_native_desc_t, ur_queue_native_properties_t, ur_queue_properties_t,
};

/// Streams of an out-of-order queue.
const LANES: usize = 8;
/// How many engines there are to choose from.
pub(super) const ENGINES: u32 = 1;

/// What `ur_queue_handle_t` points at.
#[derive(Debug)]
pub struct Queue<D: Dialect> {
    context: Owned<Context<D>>,
    device: Owned<Device<D>>,
    flags: ur_queue_flags_t,
    work: Arc<Work<D>>,
}

/// A queue's streams. They outlive it for as long as they have something to do.
#[derive(Debug)]
pub(super) struct Work<D: Dialect> {
    device: Owned<Device<D>>,
    /// The address of the context's handle: compared, never followed.
    context: usize,
    priority: i32,
    /// Whether its streams are ordered with the default stream.
    in_step: bool,
    /// In the order in which they are taken; one that nobody has taken yet is not there.
    lanes: Box<[OnceLock<Lane<D>>]>,
    next: AtomicUsize,
    /// The last barrier and its number.
    fence: Mutex<Option<Arc<Pooled<D>>>>,
    fences: AtomicU64,
    is_over: AtomicBool,
    has_debts: AtomicBool,
    debts: Mutex<Debts>,
    counters: Counters<D>,
    registered: Registered<D>,
}
impl<D: Dialect> Work<D> {
    fn new(
        device: Owned<Device<D>>,
        context: usize,
        (priority, in_step): (i32, bool),
        lanes: usize,
    ) -> Self {
        Self {
            device,
            context,
            priority,
            in_step,
            lanes: (0..lanes).map(|_| OnceLock::new()).collect(),
            next: AtomicUsize::new(0),
            fence: Mutex::new(None),
            fences: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            has_debts: AtomicBool::new(false),
            debts: Mutex::default(),
            counters: Counters::new(),
            registered: Registered::new(),
        }
    }
    fn lane(&self, on: &Entered<D>, number: usize) -> Result<&Lane<D>> {
        let place = &self.lanes[number];
        if let Some(lane) = place.get() {
            return Ok(lane);
        }
        let stream = match self.in_step {
            true => Stream::create_in_step(on, self.priority)?,
            false => Stream::create(on, self.priority)?,
        };
        let fresh = Lane::new(stream.never_waiting(self.device.clone()));
        Ok(place.get_or_init(|| fresh))
    }
    /// The lane that the next command takes.
    pub(super) fn next(&self, on: &Entered<D>) -> Result<&Lane<D>> {
        let number = match self.lanes.len() {
            1 => 0,
            many => self.next.fetch_add(1, Relaxed) % many, // any number will do
        };
        self.lane(on, number)
    }
    /// Those that have been used.
    fn used(&self) -> impl Iterator<Item = &Lane<D>> {
        self.lanes.iter().filter_map(OnceLock::get)
    }
    fn fence(&self) -> MutexGuard<'_, Option<Arc<Pooled<D>>>> {
        self.fence.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Puts `lane` behind the last barrier.
    pub(super) fn keep_behind_barrier(&self, lane: &Lane<D>) -> Result<()> {
        let number = self.fences.load(Acquire); // pairs with `set_fence`
        lane.fence(number, || self.fence().clone())
    }
    /// Puts the first lane, which C can ask for, behind the last barrier.
    pub(super) fn keep_first_behind_barrier(&self, on: &Entered<D>) -> Result<()> {
        let lane = self.lane(on, 0)?;
        lane.lend();
        self.keep_behind_barrier(lane)
    }
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS`, once, if its streams waited for what never came: what was behind
    /// it ran too early.
    pub(super) fn check(&self) -> Result<()> {
        if self.has_debts.load(Acquire) {
            let mut debts = self.debts();
            let left = debts.check()?;
            self.has_debts.store(left, Release);
        }
        Ok(())
    }
    /// What its streams wait for that others owe; mostly nothing.
    pub(super) fn open_debts(&self) -> Vec<arena::Debt> {
        if self.has_debts.load(Acquire) { self.debts().open() } else { vec![] }
    }
    fn debts(&self) -> MutexGuard<'_, Debts> {
        self.debts.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// One of its streams waits for that.
    pub(super) fn owe(&self, owed: arena::Debt) {
        self.debts().add(owed);
        self.has_debts.store(true, Release);
    }
    /// The words that its streams write and wait for.
    pub(super) fn registered(&self) -> &Registered<D> {
        &self.registered
    }
    /// The counters that its shared signals complete.
    pub(super) fn counters(&self) -> &Counters<D> {
        &self.counters
    }
    /// `lane` waits for everything that the other lanes have.
    pub(super) fn gather(&self, on: &Entered<D>, lane: &Lane<D>) -> Result<()> {
        for other in self.used().filter(|other| !std::ptr::eq(*other, lane)) {
            if !other.is_idle()? {
                let event = self.device.events().take(on, false)?;
                event.record(other.stream())?;
                lane.stream().wait_for(&event)?;
            }
        }
        Ok(())
    }
    /// All that comes later waits for what `lane` has by now.
    pub(super) fn set_fence(&self, on: &Entered<D>, lane: &Lane<D>) -> Result<()> {
        if self.lanes.len() == 1 {
            return Ok(());
        }
        let event = self.device.events().take(on, false)?;
        event.record(lane.stream())?;
        let old = self.fence().replace(Arc::new(event));
        self.fences.fetch_add(1, AcqRel); // after the fence is there
        drop(old);
        Ok(())
    }
    pub(super) fn is_idle(&self) -> Result<bool> {
        self.used().try_fold(true, |idle, lane| Ok(lane.is_idle()? && idle))
    }
    fn finish(&self) -> Result<()> {
        let _on = self.device.enter()?;
        // Others' work may take its time: a thread sleeps for that, where the driver would spin.
        await_all(&self.open_debts());
        let done = self.used().try_for_each(Lane::synchronize);
        self.tell_failure(&done);
        done.and_then(|()| self.check())
    }
    /// A failure of the driver's is one of the whole context: what its streams owe others never comes.
    pub(super) fn tell_failure<T>(&self, outcome: &Result<T>) {
        if outcome.is_err() {
            self.counters.fail();
        }
    }
    /// What it takes to know when everything submitted so far is done.
    fn note(&self, into: &mut Vec<Arc<Pooled<D>>>) -> Result<()> {
        let mut on = None;
        for lane in self.used() {
            if on.is_none() {
                on = Some(self.device.enter()?);
            }
            let Some(on) = &on else { break };
            into.extend(lane.mark(&self.device, on)?);
        }
        Ok(())
    }
}

/// The queues of this process, and what released ones have still to do.
#[derive(Debug)]
pub struct Everyone<D: Dialect>(Mutex<Vec<Arc<Work<D>>>>);
impl<D: Dialect> Everyone<D> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }
    fn all(&self) -> MutexGuard<'_, Vec<Arc<Work<D>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn add(&self, work: &Arc<Work<D>>) {
        // What is over and idle goes; the driver is not asked under the lock.
        let over: Vec<_> = self.all().iter().filter(|w| w.is_over.load(Acquire)).cloned().collect();
        let gone: Vec<_> = over.iter().filter(|w| w.is_idle().unwrap_or(true)).collect();
        let mut all = self.all();
        let left = |w: &Arc<Work<D>>| !gone.iter().any(|g| Arc::ptr_eq(g, w));
        let kept: Vec<_> = all.drain(..).filter(left).collect();
        *all = kept;
        all.push(Arc::clone(work));
    }
    fn of(&self, is_meant: impl Fn(&Work<D>) -> bool) -> Vec<Arc<Work<D>>> {
        self.all().iter().filter(|work| is_meant(work)).cloned().collect()
    }
}

/// Everything submitted up to a moment.
#[derive(Debug)]
pub(super) struct Ticket<D: Dialect>(Vec<Arc<Pooled<D>>>);
impl<D: Dialect> Ticket<D> {
    /// Whether it is done; what failed is done.
    pub(super) fn is_over(&self) -> bool {
        self.0.iter().all(|event| event.is_complete().unwrap_or(true))
    }
    /// Waits until it is done; how commands ended is for their queues and events to tell.
    pub(super) fn wait(&self) {
        self.0.iter().for_each(|event| drop(event.synchronize()));
    }
}
/// What was submitted so far to queues of the context with this handle; 0: of all contexts.
/// A queue whose driver is gone has nothing to wait for.
pub(super) fn ticket<D: Dialect>(context: usize) -> Ticket<D> {
    let mut events = vec![];
    for work in D::statics().queues_now.of(|w| context == 0 || w.context == context) {
        let _ = work.note(&mut events);
    }
    Ticket(events)
}
/// Waits for all commands submitted so far to queues of `device`.
///
/// # Errors
/// The driver's own, those of earlier commands among them.
pub(super) fn wait_for_device<D: Dialect>(device: &Device<D>) -> Result<()> {
    let on = device.enter()?;
    for work in D::statics().queues_now.of(|work| work.device.number() == device.number()) {
        await_all(&work.open_debts());
    }
    on.synchronize()
}

impl<D: Dialect> Queue<D> {
    /// The context it was made for.
    pub fn context(&self) -> &Owned<Context<D>> {
        &self.context
    }
    /// The device that runs its commands.
    pub fn device(&self) -> &Owned<Device<D>> {
        &self.device
    }
    /// Whether commands run in the order of their submission.
    pub fn is_in_order(&self) -> bool {
        self.work.lanes.len() == 1
    }
    /// Whether its events have times.
    pub fn is_profiling(&self) -> bool {
        self.flags.contains(ur_queue_flags_t::PROFILING_ENABLE)
    }
    pub(super) fn work(&self) -> &Work<D> {
        &self.work
    }
    /// The stream of an in-order queue, the first of an out-of-order one.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn first_stream(&self) -> Result<&Stream<D>> {
        let on = self.device.enter()?;
        let lane = self.work.lane(&on, 0)?;
        lane.lend();
        Ok(lane.stream())
    }
    fn make(
        context: Owned<Context<D>>,
        device: Owned<Device<D>>,
        flags: ur_queue_flags_t,
        stream: Option<Stream<D>>,
    ) -> Result<Owned<Self>> {
        use ur_queue_flags_t as F;
        let on = device.enter()?;
        let (least, greatest) = on.priorities()?;
        let priority = match () {
            () if flags.contains(F::PRIORITY_LOW) => least,
            () if flags.contains(F::PRIORITY_HIGH) => greatest,
            () => 0,
        };
        let in_order = !flags.contains(F::OUT_OF_ORDER_EXEC_MODE_ENABLE) || stream.is_some();
        let lanes = if in_order { 1 } else { LANES };
        let kind = (priority, flags.contains(F::SYNC_WITH_DEFAULT_STREAM));
        let work = Work::new(device.clone(), context.as_handle().addr(), kind, lanes);
        match stream {
            Some(stream) => drop(work.lanes[0].set(Lane::new(stream))),
            None => _ = work.lane(&on, 0)?, // so that a driver that is out of streams says so now
        }
        drop(on);
        let work = Arc::new(work);
        D::statics().queues_now.add(&work);
        Ok(Owned::new(Self { context, device, flags, work }))
    }
}
impl<D: Dialect> Drop for Queue<D> {
    fn drop(&mut self) {
        self.work.used().for_each(|lane| lane.leave(&self.device));
        self.work.is_over.store(true, Release); // its lanes stay until they are idle
    }
}

/// The flags that queues take.
pub(super) fn flags() -> ur_queue_flags_t {
    use ur_queue_flags_t as F;
    let order = F::OUT_OF_ORDER_EXEC_MODE_ENABLE | F::PROFILING_ENABLE | F::DISCARD_EVENTS;
    let hints =
        F::PRIORITY_LOW | F::PRIORITY_HIGH | F::SUBMISSION_BATCHED | F::SUBMISSION_IMMEDIATE;
    order | hints | F::USE_DEFAULT_STREAM | F::SYNC_WITH_DEFAULT_STREAM
}
/// # Errors
/// `INVALID_QUEUE_PROPERTIES` for flags that no queue has, and for an engine that there is not.
fn check(properties: &ur_queue_properties_t) -> Result<()> {
    use ur_queue_flags_t as F;
    let refused = |why: String| Err(Error::new(ErrorCode::InvalidQueueProperties, why));
    if properties.flags.intersects(F::ON_DEVICE | F::ON_DEVICE_DEFAULT) {
        return refused("this device has no queues of its own: leave ON_DEVICE out".into());
    }
    match chain::extension::<ur_queue_index_properties_t>(properties)? {
        Some(index) if index.computeIndex >= ENGINES => refused(format!(
            "there is no compute engine {}: this device has {ENGINES}, counted from 0",
            index.computeIndex
        )),
        _ => Ok(()),
    }
}

impl<D: Dialect> QueueApi for Family<D> {
    fn queue_create(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        properties: Option<&ur_queue_properties_t>,
    ) -> Result<Owned<Queue<D>>> {
        use ur_queue_flags_t as F;
        context.check(device)?;
        properties.map_or(Ok(()), check)?;
        let flags = properties.map_or(F::default(), |p| p.flags);
        let stream = flags.contains(F::USE_DEFAULT_STREAM).then(|| Stream::adopted(None, false));
        Queue::make(context.own()?, device.own()?, flags, stream)
    }
    fn queue_get_info(
        queue: Borrowed<'_, Queue<D>>,
        name: ur_queue_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_queue_info_t::CONTEXT => answer.handle(&queue.context),
            ur_queue_info_t::DEVICE => answer.handle(&queue.device),
            ur_queue_info_t::FLAGS => answer.value(&queue.flags.bits()),
            ur_queue_info_t::REFERENCE_COUNT => answer.value(&queue.api_refs()),
            ur_queue_info_t::EMPTY => {
                let _on = queue.device.enter()?;
                answer.bool(queue.work.is_idle()?)
            }
            ur_queue_info_t::SIZE => Err(Error::new(
                ErrorCode::InvalidQueue,
                "only queues made with ON_DEVICE have a size",
            )),
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("a queue of {} has no answer to {name:?}", D::NAME),
            )),
        }
    }
    /// The stream: of an out-of-order queue the first of several.
    fn queue_get_native_handle(
        queue: Borrowed<'_, Queue<D>>,
        _desc: Option<&ur_queue_native_desc_t>,
    ) -> Result<ur_native_handle_t> {
        Ok(queue.first_stream()?.raw().map_or(0, RawStream::addr) as ur_native_handle_t)
    }
    /// An in-order queue over a stream; 0 is the default stream.
    fn queue_create_with_native_handle(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context<D>>,
        device: Option<Borrowed<'_, Device<D>>>,
        properties: Option<&ur_queue_native_properties_t>,
    ) -> Result<Owned<Queue<D>>> {
        device.map_or(Ok(()), |device| context.check(device))?;
        let device = match device {
            Some(device) => device.own()?,
            None => context.devices()[0].clone(),
        };
        let owned = properties.is_some_and(|p| p.isNativeHandleOwned);
        let stream = Stream::adopted(RawStream::from_addr(native), owned);
        Queue::make(context.own()?, device, ur_queue_flags_t::default(), Some(stream))
    }
    fn queue_finish(queue: Owned<Queue<D>>) -> Result<()> {
        queue.work.finish()
    }
    /// Whatever is submitted is on its way.
    fn queue_flush(queue: Borrowed<'_, Queue<D>>) -> Result<()> {
        queue.device.context().map(drop)
    }
}
impl<D: Dialect> QueueExpApi for Family<D> {}
