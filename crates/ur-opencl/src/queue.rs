//! Queues. How far one has come is a number: of commands that were put into it, and of those that are known to be over,
//! since a marker behind them is. Memory that is freed waits for such numbers ([`Moment`]).
use super::{
    Context, Device, DriverDevice, OpenCl,
    driver::{RawEvent, RawQueue},
    event::{End, Pending, Signal, failure},
    memory::Memory,
    native::{
        event as native,
        own::Own,
        queue::{Made, NativeQueue, Waits, given},
        work::Ability,
    },
    platform,
};
use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, Ordering::*},
};
use ur_adapter::{
    api::QueueApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Object, Owned},
    per_process::PerProcess,
};
use ur_core::{memory::deferred_free, profiling::Profile};
use ur_hal::Status;
use ur_ipc::arena::{Arena, Counter, Debt};
use ur_lock::locked;
use ur_sys::*;

/// What a queue is to those who wait for it; it outlives its handle until all that was put into it is over.
#[derive(Debug)]
pub struct Stream {
    native: NativeQueue,
    can: Ability,
    context: usize,
    device: Arc<DriverDevice>,
    /// How many commands were put into it, and how many of those are known to be over.
    put: AtomicU64,
    over: AtomicU64,
    /// A marker, behind so many commands.
    mark: Mutex<Option<(u64, Own<RawEvent>)>>,
    /// Commands that wait for what may fail. In an in-order queue a failure concerns all that was put behind it.
    risky: Mutex<Vec<Arc<End>>>,
    /// Whether one failed of which `urQueueFinish` has not told yet.
    has_failed: AtomicBool,
    is_gone: AtomicBool,
    /// Held by whoever puts a command into it: some commands are several of the driver's, between which no other may come.
    turn: Mutex<()>,
}
impl Stream {
    fn asked(&self, may_mark: bool) {
        let mut mark = locked(&self.mark);
        if let Some((number, event)) = &*mark
            && native::status(event).is_final()
        {
            self.over.fetch_max(*number, AcqRel);
            *mark = None;
        }
        let put = self.put.load(Acquire);
        if may_mark && mark.is_none() && self.over.load(Acquire) < put {
            let mut made = None;
            let marked = self.native.marker(Waits(&[]), Made(Some(&mut made)));
            let event = marked.and_then(|()| self.native.flush()).and_then(|()| given(made));
            match event {
                Ok(event) => *mark = Some((put, event)),
                // Nothing runs there any more.
                Err(_) => _ = self.over.fetch_max(put, AcqRel),
            }
        }
    }
    fn is_idle(&self) -> bool {
        self.asked(true);
        self.asked(false);
        self.over.load(Acquire) >= self.put.load(Acquire)
    }
    /// Waits for all that was put into it.
    fn drain(&self) -> Result<()> {
        let put = self.put.load(Acquire);
        self.native.finish()?;
        self.over.fetch_max(put, AcqRel);
        Ok(())
    }
    /// Those commands that may still fail; what has failed is noted.
    fn at_risk(&self) -> Vec<Arc<End>> {
        let mut risky = locked(&self.risky);
        risky.retain(|end| match end.status() {
            Status::Complete => false,
            Status::Failed => {
                self.has_failed.store(true, Release);
                false
            }
            _ => true,
        });
        risky.clone()
    }
}
/// A place in a queue: behind so many commands.
#[derive(Clone, Debug)]
pub struct Moment {
    stream: Arc<Stream>,
    number: u64,
}
impl deferred_free::Moment for Moment {
    fn lane(&self) -> (usize, u32) {
        (Arc::as_ptr(&self.stream).addr(), 0)
    }
    fn number(&self) -> u64 {
        self.number
    }
    fn has_passed(&self) -> bool {
        self.stream.over.load(Acquire) >= self.number
    }
    fn ask(&self, may_mark: bool) {
        self.stream.asked(may_mark);
    }
}
/// The queues of this process. Those whose handle has gone stay until they are idle.
static STREAMS: PerProcess<Mutex<Vec<Arc<Stream>>>> = PerProcess::new();
fn streams(which: impl Fn(&Stream) -> bool) -> Vec<Arc<Stream>> {
    let mut all = locked(STREAMS.get());
    all.retain(|one| !(one.is_gone.load(Acquire) && one.is_idle()));
    all.iter().filter(|one| which(one)).cloned().collect()
}
/// What was submitted so far to queues of a context; 0: of all.
pub(super) fn moments(context: usize) -> Vec<Moment> {
    let of = |stream: Arc<Stream>| Moment { number: stream.put.load(Acquire), stream };
    let asked = streams(|one| context == 0 || one.context == context).into_iter().map(of);
    asked.filter(|moment| !deferred_free::Moment::has_passed(moment)).collect()
}
/// Waits for all queues of a context; 0: of all.
///
/// # Errors
/// The driver's own.
pub(super) fn wait_for_context(context: usize) -> Result<()> {
    platform::check_fork()?;
    streams(|one| context == 0 || one.context == context).iter().try_for_each(|one| one.drain())
}
/// Waits for all queues of a device and of its parts.
///
/// # Errors
/// The driver's own.
pub(super) fn wait_for_device(device: &Object<Device>) -> Result<()> {
    fn is_of(one: &DriverDevice, device: &DriverDevice) -> bool {
        one.raw() == device.raw() || one.parent().is_some_and(|parent| is_of(parent, device))
    }
    platform::check_fork()?;
    streams(|one| is_of(&one.device, device)).iter().try_for_each(|one| one.drain())
}

/// A counter for each arena.
type Counters = Vec<(Arena, Arc<Counter>)>;
/// What `ur_queue_handle_t` points at.
#[derive(Debug)]
pub struct Queue {
    context: Owned<Context>,
    device: Owned<Device>,
    flags: ur_queue_flags_t,
    stream: Arc<Stream>,
    /// The counters by which signals reach other processes, one for each arena. The lock is held from the reservation of a
    /// value until the command that pays it is in the queue.
    counters: Mutex<Counters>,
}
/// What queues can be asked for.
pub(super) fn flags() -> ur_queue_flags_t {
    use ur_queue_flags_t as F;
    let hints =
        F::PRIORITY_LOW | F::PRIORITY_HIGH | F::SUBMISSION_BATCHED | F::SUBMISSION_IMMEDIATE;
    F::OUT_OF_ORDER_EXEC_MODE_ENABLE | F::PROFILING_ENABLE | F::DISCARD_EVENTS | hints
}
impl Drop for Queue {
    fn drop(&mut self) {
        let _ = self.stream.native.flush(); // what fails is told by nobody any more
        self.stream.is_gone.store(true, Release);
    }
}
impl Queue {
    fn new(
        context: Owned<Context>,
        device: Owned<Device>,
        flags: ur_queue_flags_t,
        native: NativeQueue,
    ) -> Owned<Self> {
        let stream = Arc::new(Stream {
            native,
            can: Ability { reach: context.driver().reach(), ..device.facts().can },
            context: context.as_handle().addr(),
            device: Arc::clone(device.driver()),
            put: AtomicU64::new(0),
            over: AtomicU64::new(0),
            mark: Mutex::default(),
            risky: Mutex::default(),
            has_failed: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
            turn: Mutex::default(),
        });
        streams(|_| false); // those that are over go
        locked(STREAMS.get()).push(Arc::clone(&stream));
        Owned::new(Self { context, device, flags, stream, counters: Mutex::default() })
    }
    pub(super) fn place(&self) -> (&Owned<Context>, &Owned<Device>) {
        (&self.context, &self.device)
    }
    /// Whether times are noted of its commands.
    pub(super) fn profile(&self) -> Profile {
        match self.flags.contains(ur_queue_flags_t::PROFILING_ENABLE) {
            true => Profile::Phases,
            false => Profile::Off,
        }
    }
    /// Puts a command into it: `put` is given the driver's queue, what its device can do, what to wait for, and where the
    /// event goes if there is one.
    ///
    /// # Errors
    /// `put`'s; the driver's own. Then nothing is put into it.
    pub(super) fn put(
        &self,
        waits: &[Pending],
        (profile, wants): (Profile, bool),
        put: impl FnOnce(&NativeQueue, Ability, Waits<'_>, Made<'_>) -> Result<()>,
    ) -> Result<Option<Arc<End>>> {
        platform::check_fork()?;
        let stream = &self.stream;
        let mut kept = vec![];
        for one in waits {
            kept.push(one.event(self.context.driver())?);
        }
        let mut behind: Vec<Debt> = vec![];
        let mut depend = |one: &Pending| {
            let name = |debt: &Debt| (debt.word_address(), debt.value());
            for debt in one.debts() {
                if !behind.iter().any(|known| name(known) == name(debt)) {
                    behind.push(debt.clone());
                }
            }
        };
        waits.iter().for_each(&mut depend);
        let turn = locked(&stream.turn);
        let at_risk = stream.at_risk();
        if stream.native.is_in_order()
            && let Some(last) = at_risk.into_iter().next_back()
        {
            kept.push(last.event.clone());
            depend(&Pending::Here(last));
        }
        let is_risky = !behind.is_empty();
        let mut raws: Vec<_> = kept.iter().map(Own::raw).collect();
        // Each once: where one that is named twice fails, Intel's runtime frees the waiting command's event under us.
        raws.sort_unstable_by_key(|raw| raw.addr());
        raws.dedup();
        let mut made = None;
        let event = (wants || is_risky).then_some(&mut made);
        // Told before it runs: no later than that is it submitted.
        let submitted = if profile.is_on() { super::device::now(&self.device) } else { 0 };
        put(&stream.native, stream.can, Waits(&raws), Made(event))?;
        stream.put.fetch_add(1, AcqRel);
        stream.native.flush()?;
        let Some(event) = made.map(Own::given) else { return Ok(None) };
        let context = Arc::clone(self.context.driver());
        let end = Arc::new(End { event, context, profile, submitted, behind });
        if is_risky {
            let mut risky = locked(&stream.risky);
            if stream.native.is_in_order() {
                risky.clear(); // it is behind them, and fails with them
            }
            risky.push(Arc::clone(&end));
        }
        drop(turn);
        Ok(wants.then_some(end))
    }
    /// Puts a barrier into it, and has `signal` stand for its end.
    ///
    /// # Errors
    /// As for `put`.
    pub(super) fn signal(
        &self,
        waits: &[Pending],
        signal: &Signal,
        barrier: impl FnOnce(&NativeQueue, Ability, Waits<'_>, Made<'_>) -> Result<()>,
    ) -> Result<()> {
        let none = || Error::from(ErrorCode::Unknown);
        let slot = match signal {
            Signal::Local(last, is_timed) => {
                // Of a signal one moment is told.
                let is_told = *is_timed || self.profile().is_on();
                let profile = if is_told { Profile::Instant } else { Profile::Off };
                let end = self.put(waits, (profile, true), barrier)?;
                *locked(last) = Some(end.ok_or_else(none)?);
                return Ok(());
            }
            Signal::Shared(slot) => slot,
        };
        let (counters, counter) = self.counter_of(slot.arena())?;
        let end = self.put(waits, (Profile::Off, true), barrier)?.ok_or_else(none)?;
        let (value, payer, of) = (counter.reserve(), Arc::clone(&counter), Arc::clone(&end));
        let paid =
            native::call_when_over(&end.event, move |is_good| match is_good && !of.is_doomed() {
                true => payer.complete(value),
                false => payer.fail(),
            });
        if let Err(error) = paid {
            counter.fail();
            return Err(error);
        }
        let published = ur_core::unseen::judge(slot.publish(&counter, value));
        drop(counters);
        published
    }
    /// The counters, with the one for an arena among them. One that is not there is taken without the lock, since another
    /// process may have to be asked for it.
    fn counter_of(&self, arena: &Arena) -> Result<(MutexGuard<'_, Counters>, Arc<Counter>)> {
        let mut fresh = None;
        loop {
            let mut all = locked(&self.counters);
            all.retain(|(of, counter)| {
                !counter.is_retired() && (of.id() == arena.id() || !of.is_orphaned())
            });
            if let Some(counter) = fresh.take() {
                all.push((arena.clone(), Arc::new(counter)));
            }
            let known = all.iter().find(|(of, _)| of.id() == arena.id());
            if let Some(counter) = known.map(|(_, counter)| Arc::clone(counter)) {
                return Ok((all, counter));
            }
            drop(all);
            fresh = Some(arena.take_counter()?);
        }
    }
}

impl QueueApi for OpenCl {
    fn queue_create(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        properties: Option<&ur_queue_properties_t>,
    ) -> Result<Owned<Queue>> {
        platform::check_fork()?;
        context.check(device)?;
        let asked = properties.map_or(ur_queue_flags_t::default(), |p| p.flags);
        if !flags().contains(asked) {
            let why = "OpenCL has no queues on the device and no default stream";
            return Err(Error::new(ErrorCode::InvalidQueueProperties, why));
        }
        let is_in_order = !asked.contains(ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE);
        let extensions = context.driver().extensions();
        let native = NativeQueue::new(context.raw(), device.raw(), is_in_order, extensions)?;
        Ok(Queue::new(context.own()?, device.own()?, asked, native))
    }
    fn queue_get_info(
        queue: Borrowed<'_, Queue>,
        name: ur_queue_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_queue_info_t as I;
        match name {
            I::CONTEXT => answer.handle(&queue.context),
            I::DEVICE => answer.handle(&queue.device),
            I::FLAGS => answer.value(&queue.flags.bits()),
            I::REFERENCE_COUNT => answer.value(&queue.api_refs()),
            I::EMPTY => answer.bool(queue.stream.is_idle()),
            I::SIZE => {
                Err(Error::new(ErrorCode::InvalidQueue, "only queues on a device have a size"))
            }
            _ => {
                let why = format!("a queue of OpenCL has no answer to {name:?}");
                Err(Error::new(ErrorCode::UnsupportedEnumeration, why))
            }
        }
    }
    fn queue_get_native_handle(
        queue: Borrowed<'_, Queue>,
        _: Option<&ur_queue_native_desc_t>,
    ) -> Result<ur_native_handle_t> {
        Ok(queue.stream.native.raw().addr() as ur_native_handle_t)
    }
    fn queue_create_with_native_handle(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context>,
        device: Option<Borrowed<'_, Device>>,
        properties: Option<&ur_queue_native_properties_t>,
    ) -> Result<Owned<Queue>> {
        use super::{cl::*, native::own::Tells};
        platform::check_fork()?;
        let Some(raw) = RawQueue::from_addr(native) else {
            return Err(Error::new(ErrorCode::InvalidNullHandle, "the native queue is null"));
        };
        if raw.number(CL_QUEUE_CONTEXT)? as usize != context.raw().addr() {
            let why = "the native queue is of another context";
            return Err(Error::new(ErrorCode::InvalidContext, why));
        }
        let its = raw.number(CL_QUEUE_DEVICE)? as usize;
        let found = context.devices().iter().find(|one| one.raw().addr() == its);
        let device = match (device, found) {
            (Some(device), _) if device.raw().addr() == its => device.own()?,
            (None, Some(device)) => device.clone(),
            _ => {
                let why = "the native queue is of another device";
                return Err(Error::new(ErrorCode::InvalidDevice, why));
            }
        };
        let is_owned = properties.is_some_and(|one| one.isNativeHandleOwned);
        let native =
            NativeQueue::adopted(raw, context.raw(), is_owned, context.driver().extensions())?;
        let flags = match native.is_in_order() {
            true => ur_queue_flags_t::default(),
            false => ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE,
        };
        Ok(Queue::new(context.own()?, device, flags, native))
    }
    fn queue_finish(queue: Owned<Queue>) -> Result<()> {
        platform::check_fork()?;
        let stream = &queue.stream;
        stream.drain()?;
        stream.at_risk();
        deferred_free::sweep_all::<Memory>();
        match stream.has_failed.swap(false, AcqRel) {
            false => Ok(()),
            true => Err(failure()),
        }
    }
    fn queue_flush(queue: Borrowed<'_, Queue>) -> Result<()> {
        platform::check_fork()?;
        queue.stream.native.flush()
    }
}
