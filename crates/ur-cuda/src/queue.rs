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
    lane::{Lane, Mark, captured},
    native::{
        context::Entered,
        event::Pooled,
        stream::{Stream, StreamHome},
    },
    shared_event::{Counters, Debts, Registered, await_all},
};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*},
};
use ur_adapter::{
    api::{QueueApi, QueueExpApi},
    chain,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Owned},
};
use ur_core::{
    memory::deferred_free::{self, Moment as _},
    profiling::Profile,
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
        let fresh = Lane::new(stream.never_waiting(Arc::clone(self.device.driver())));
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
    /// Whether a stream of it is captured.
    pub(super) fn is_capturing(&self, _on: &Entered<D>) -> Result<bool> {
        self.used().try_fold(false, |is, lane| Ok(is || lane.is_capturing()?))
    }
    /// # Errors
    /// `INVALID_OPERATION` while a stream of it is captured: see [`Lane::check_capture`].
    pub(super) fn check_capture(&self, _on: &Entered<D>, what: &str) -> Result<()> {
        self.used().try_for_each(|lane| lane.check_capture(what))
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
        let _on = self.device.enter()?; // the default stream is that of the current context
        self.used().try_fold(true, |idle, lane| Ok(lane.is_idle()? && idle))
    }
    fn finish(&self) -> Result<()> {
        let _on = self.device.enter()?;
        // Others' work may take its time: a thread sleeps for that, where the driver would spin.
        await_all(&self.open_debts());
        let done = self.used().try_for_each(|lane| lane.synchronize(&self.device));
        self.tell_failure(&done);
        let checked = done.and_then(|()| self.check());
        if checked.is_err() && self.is_idle().unwrap_or(false) {
            self.debts().have_gone_on();
        }
        checked
    }
    /// A failure of the driver's is one of the whole context: what its streams owe others never comes.
    pub(super) fn tell_failure<T>(&self, outcome: &Result<T>) {
        if outcome.is_err() {
            self.counters.fail();
        }
    }
    /// Up to where its streams have to come for everything that was submitted so far and may know of
    /// memory as old as the object with the number `since`. The driver is not asked.
    fn note(self: &Arc<Self>, since: u64, into: &mut Vec<Moment<D>>) {
        for (lane, there) in (0..).zip(&self.lanes) {
            let number = there.get().and_then(|there| there.last_since(since));
            into.extend(number.map(|number| Moment { work: Arc::clone(self), lane, number }));
        }
    }
}

/// Queues, and what released ones have still to do: those of this process, or those of one context.
#[derive(Debug)]
pub struct Everyone<D: Dialect>(RwLock<Vec<Arc<Work<D>>>>);
impl<D: Dialect> Everyone<D> {
    pub(super) const fn new() -> Self {
        Self(RwLock::new(Vec::new()))
    }
    fn all(&self) -> RwLockReadGuard<'_, Vec<Arc<Work<D>>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
    fn add(&self, work: &Arc<Work<D>>) {
        // What is over and idle goes; the driver is not asked under the lock.
        let over: Vec<_> = self.all().iter().filter(|w| w.is_over.load(Acquire)).cloned().collect();
        let gone: Vec<_> = over.iter().filter(|w| is_done(w.is_idle())).collect();
        let is_gone = |w: &Arc<Work<D>>| gone.iter().any(|g| Arc::ptr_eq(g, w));
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let taken: Vec<_> = all.extract_if(.., |w| is_gone(w)).collect();
        all.push(Arc::clone(work));
        drop(all);
        drop(taken); // streams are destroyed: not under the lock
    }
    fn of(&self, is_meant: impl Fn(&Work<D>) -> bool) -> Vec<Arc<Work<D>>> {
        self.all().iter().filter(|work| is_meant(work)).cloned().collect()
    }
    /// What was submitted so far to these queues and may know of memory as old as the object with the
    /// number `since`. No driver is asked.
    pub(super) fn ticket(&self, since: u64) -> Ticket<D> {
        let mut moments = vec![];
        self.all().iter().for_each(|work| work.note(since, &mut moments));
        Ticket(moments)
    }
}

/// Whether the driver says that something is done. What failed is done: nothing runs any more in a context
/// that is broken or gone. But that the question made no sense says nothing of the answer.
fn is_done(said: Result<bool>) -> bool {
    said.unwrap_or_else(|error| error.code() != ErrorCode::InvalidContext)
}

/// Up to where a stream must have come.
#[derive(Debug)]
pub struct Moment<D: Dialect> {
    work: Arc<Work<D>>,
    lane: u32,
    number: u64,
}
impl<D: Dialect> Clone for Moment<D> {
    fn clone(&self) -> Self {
        Self { work: Arc::clone(&self.work), ..*self }
    }
}
impl<D: Dialect> Moment<D> {
    fn in_lane(&self) -> Option<&Lane<D>> {
        self.work.lanes[self.lane as usize].get()
    }
}
impl<D: Dialect> deferred_free::Moment for Moment<D> {
    fn lane(&self) -> (usize, u32) {
        (Arc::as_ptr(&self.work).addr(), self.lane)
    }
    fn number(&self) -> u64 {
        self.number
    }
    fn has_passed(&self) -> bool {
        self.in_lane().is_none_or(|lane| lane.has_passed(self.number))
    }
    fn ask(&self, may_mark: bool) {
        if let Some(lane) = self.in_lane() {
            lane.ask(self.number, &self.work.device, may_mark);
        }
    }
}
/// Everything submitted up to a moment.
#[derive(Debug)]
pub struct Ticket<D: Dialect>(Vec<Moment<D>>);
impl<D: Dialect> Ticket<D> {
    /// What it consists of.
    pub(super) fn into_moments(self) -> Vec<Moment<D>> {
        self.0
    }
    /// Whether it is done; what failed is done.
    pub(super) fn is_over(&self) -> bool {
        self.0.iter().all(|moment| {
            if !moment.has_passed() {
                moment.ask(true);
            }
            moment.has_passed()
        })
    }
    /// Waits until it is done.
    ///
    /// # Errors
    /// `INVALID_OPERATION` if a queue's stream is being captured, so that it cannot be waited for; the
    /// driver's own, those of commands among them.
    fn finish(&self) -> Result<()> {
        let mut marks = vec![];
        for moment in self.0.iter().filter(|moment| !moment.has_passed()) {
            let (Some(lane), device) = (moment.in_lane(), &moment.work.device) else { continue };
            match lane.mark(device, &device.enter()?)? {
                Mark::Nothing => {}
                Mark::Event(event) => marks.push(event),
                Mark::Captured => return Err(captured("waiting for all queues of the context")),
            }
        }
        let mut done = Ok(());
        for mark in marks {
            done = done.and(mark.wait()); // all have ended when this returns
        }
        done
    }
    /// Waits until it is done; how commands ended is for their queues and events to tell.
    ///
    /// # Errors
    /// `INVALID_OPERATION` if a queue's stream is being captured, so that it cannot be waited for.
    pub(super) fn wait(&self) -> Result<()> {
        match self.finish() {
            Err(error) if error.code() == ErrorCode::InvalidOperation => Err(error),
            _ => Ok(()),
        }
    }
}
/// What was submitted so far to queues of the context with this handle; 0: of all contexts.
pub(super) fn ticket<D: Dialect>(context: usize) -> Ticket<D> {
    let mut moments = vec![];
    for work in D::statics().queues_now.of(|w| context == 0 || w.context == context) {
        work.note(0, &mut moments);
    }
    Ticket(moments)
}
/// Waits for all commands submitted so far to queues of `device`.
///
/// # Errors
/// The driver's own, those of earlier commands among them.
pub(super) fn wait_for_device<D: Dialect>(device: &Device<D>) -> Result<()> {
    // Not the context as a whole: that would break captures of others in it.
    let mut moments = vec![];
    for work in D::statics().queues_now.of(|work| work.device.number() == device.number()) {
        await_all(&work.open_debts());
        work.note(0, &mut moments);
    }
    Ticket(moments).finish()
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
    /// Which times the events of its commands tell.
    pub(super) fn profile(&self) -> Profile {
        if self.is_profiling() { Profile::Phases } else { Profile::Off }
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
            Some(stream) => {
                drop(work.lanes[0].set(Lane::new(stream.of(Arc::clone(device.driver())))))
            }
            None => _ = work.lane(&on, 0)?, // so that a driver that is out of streams says so now
        }
        drop(on);
        let work = Arc::new(work);
        D::statics().queues_now.add(&work);
        context.queues().add(&work);
        Ok(Owned::new(Self { context, device, flags, work }))
    }
}
impl<D: Dialect> Drop for Queue<D> {
    fn drop(&mut self) {
        self.work.used().for_each(|lane| lane.leave(&self.device));
        self.work.is_over.store(true, Release); // its lanes stay until they are idle
    }
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

/// The number that names another stream on each thread: `CU_STREAM_PER_THREAD`.
const PER_THREAD: usize = 2;
/// Up to this number, handles name the default streams of the current context.
const DEFAULTS: usize = 2;

/// The device whose context an adopted stream belongs to: `wished`, or any of the context's where C `named`
/// none.
///
/// # Errors
/// `INVALID_VALUE` for a stream of another context, and for one that each thread has of its own.
fn whose<D: Dialect>(
    stream: &Stream<D>,
    wished: Owned<Device<D>>,
    all: &[Owned<Device<D>>],
    named: bool,
) -> Result<Owned<Device<D>>> {
    let number = stream.raw().map_or(0, RawStream::addr);
    if number == PER_THREAD {
        return Err(Error::new(
            ErrorCode::InvalidValue,
            "2 (CU_STREAM_PER_THREAD) names another stream on each thread that uses it, and a queue may be \
             used on any: create a stream, and make the queue of that",
        ));
    }
    let on = wished.enter()?;
    let home = if number <= DEFAULTS { None } else { stream.home()? };
    drop(on);
    let Some(home) = home else { return Ok(wished) };
    if home.is_of(&wished)? {
        return Ok(wished);
    }
    let others = all.iter().filter(|_| !named);
    for device in others {
        if home.is_of(device)? {
            return Ok(device.clone());
        }
    }
    let why = match home {
        StreamHome::Context(_) => {
            "the stream belongs to another context than the primary one of this device: name the \
                                   device whose primary context it was made in, or make one in it \
                                   (cuDevicePrimaryCtxRetain)"
                .into()
        }
        StreamHome::Device(number) => format!(
            "the stream was made on device {number} of {}: name that device, with a context that has it, or make the \
             stream on this one",
            D::NAME
        ),
    };
    Err(Error::new(ErrorCode::InvalidValue, why))
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
        let is_named = device.is_some();
        let device = match device {
            Some(device) => device.own()?,
            None => context.devices()[0].clone(),
        };
        let owned = properties.is_some_and(|p| p.isNativeHandleOwned);
        let stream = Stream::adopted(RawStream::from_addr(native), owned);
        let device = whose(&stream, device, context.devices(), is_named)?;
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
