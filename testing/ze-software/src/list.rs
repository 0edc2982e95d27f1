//! Command lists: recorded ones, which queues execute, and immediate ones, which have a line of their own.
//! This file creates and destroys lists and appends commands; the commands themselves are in other files.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    alone::Alone,
    command::{Call, Command, Work},
    context,
    device::{self, Device},
    engine,
    event::{self, Kind, deadline},
    handle::{self, Object, raw},
    inject::Answer,
    line::{Line, Ready},
    property_lists::groups,
    raw,
};
use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
};
use ur_lock::locked;
use ze_sys::*;

/// The recording of a list that is not immediate.
#[derive(Default)]
pub struct Recorded {
    pub commands: Vec<Command>,
    pub closed: bool,
    /// Whether it was executed since it was recorded.
    pub ran: bool,
    /// How many identifiers were given to mutable commands.
    pub ids: u64,
    /// The identifier of the next command; 0 for none.
    pub next_id: u64,
}
/// How the commands of a list get to run.
pub enum Way {
    Recorded(Mutex<Recorded>),
    Immediate(Arc<Line>, ze_command_queue_desc_t),
}
/// A command list.
pub struct List {
    pub way: Way,
    /// No other list has it, in any process.
    number: u64,
    pub device: Arc<Device>,
    context: usize,
    pub ordinal: u32,
    /// For lists that are not immediate.
    flags: ze_command_list_flags_t,
    pub in_order: bool,
    pub mutable: bool,
    /// For immediate lists.
    alone: Alone,
    /// Whether the last command signals no event, and nobody has synchronized with the list since. If so,
    /// Intel's driver has to flush when the host waits, on devices whose caches are not coherent with the
    /// host.
    is_unseen: AtomicBool,
}
impl Object for List {
    const TAG: u64 = 0x7a65_636f_6d6c_6973;
}
// SAFETY: the only pointer is the descriptor's chain, which is never followed after the call that created the
// list.
unsafe impl Send for List {}
// SAFETY: as above.
unsafe impl Sync for List {}

/// A number for a list: the process's, and how many it has made.
fn next_number() -> u64 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    u64::from(std::process::id()) << 32 | u64::from(NEXT.fetch_add(1, Relaxed))
}

/// The events of an append: the one that it signals and those that it waits for.
#[derive(Clone, Copy)]
pub struct Events {
    pub signal: ze_event_handle_t,
    pub count: u32,
    pub waits: *mut ze_event_handle_t,
}
impl Events {
    /// No events.
    pub const NONE: Self =
        Self { signal: std::ptr::null_mut(), count: 0, waits: std::ptr::null_mut() };
    /// The current states of the events to wait for.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_SIZE` for a count without a list; [`handle::get`]'s for invalid handles.
    fn captured(&self, on: &Device) -> Answer<Vec<event::Wait>> {
        if self.waits.is_null() && self.count != 0 {
            return Err(ZE_RESULT_ERROR_INVALID_SIZE);
        }
        let handles = raw::list(self.waits, self.count as usize)?;
        let captured = |handle| {
            let event = event::get(handle)?;
            event.check(on);
            Ok(event.capture())
        };
        handles.into_iter().map(captured).collect()
    }
}

impl List {
    /// The recording of a list that is not immediate.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for an immediate list.
    pub fn recorded(&self) -> Answer<MutexGuard<'_, Recorded>> {
        match &self.way {
            Way::Recorded(recorded) => Ok(locked(recorded)),
            Way::Immediate(..) => Err(ZE_RESULT_ERROR_INVALID_ARGUMENT),
        }
    }
    fn immediate(&self) -> Answer<(&Arc<Line>, &ze_command_queue_desc_t)> {
        match &self.way {
            Way::Immediate(line, desc) => Ok((line, desc)),
            Way::Recorded(_) => Err(ZE_RESULT_ERROR_INVALID_ARGUMENT),
        }
    }
    /// The line that the lists on its engine share, if they share one.
    fn shared(&self) -> Option<Arc<Line>> {
        let (_, desc) = self.immediate().ok()?;
        engine::shared((self.device.index, self.ordinal, desc.index))
    }
    /// The copy as this list runs it: offloaded to the copy engine if the list has the offload hint.
    pub fn offloaded(&self, copy: Call) -> Call {
        match self.immediate() {
            Ok((_, desc)) if desc.flags & ZE_COMMAND_QUEUE_FLAG_COPY_OFFLOAD_HINT != 0 => {
                engine::offloaded(self.device.index, copy)
            }
            _ => copy,
        }
    }
    /// The promise of the event `raw`; `None` if `raw` is null.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for a counter-based event if the list is not in-order, or if the
    /// event is not for lists of this kind.
    pub fn promise(&self, raw: ze_event_handle_t) -> Answer<Option<event::Promise>> {
        if raw.is_null() {
            return Ok(None);
        }
        let (event, recorded) = (event::get(raw)?, matches!(self.way, Way::Recorded(_)));
        event.check(&self.device);
        if event.snapshot.is_some() {
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        if let Kind::Counter { flags, .. } = event.kind {
            let kind = if recorded {
                ZE_EVENT_COUNTER_BASED_FLAG_NON_IMMEDIATE
            } else {
                ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE
            };
            if !self.in_order || flags & kind == 0 {
                eprintln!("ze-software: a counter-based event is not for this kind of list");
                return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
            }
        }
        event.promise(recorded, self.number).map(Some)
    }
    /// Appends a command. `free`: among such commands only the order of the list matters.
    ///
    /// # Errors
    /// For invalid handles and for events that cannot be used with this list; in a synchronous list also the
    /// command's error.
    pub fn append(&self, work: Work, free: bool, events: Events) -> Answer {
        device::count_command()?;
        // Captures the waits before the signal, because the command may signal an event that it also waits
        // for.
        let waits = events.captured(&self.device)?;
        let promise = self.promise(events.signal)?;
        let command = Command { waits, work, promise, free: free && !self.in_order, id: 0 };
        match &self.way {
            Way::Immediate(..) => self.submit([command.once()]),
            Way::Recorded(_) => self.record(command),
        }
    }
    fn record(&self, mut command: Command) -> Answer {
        let mut recorded = self.recorded()?;
        if recorded.closed {
            eprintln!("ze-software: the command list is closed");
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        command.id = std::mem::take(&mut recorded.next_id);
        recorded.commands.push(command);
        Ok(())
    }
    /// Submits to the line of an immediate list.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for a list that is not immediate; in a synchronous list also a
    /// command's error.
    pub fn submit(&self, commands: impl IntoIterator<Item = Ready>) -> Answer {
        let (line, desc) = self.immediate()?;
        let _use = self.alone.begin("appends to");
        let mut is_unseen = false;
        line.submit(commands.into_iter().inspect(|ready| is_unseen = ready.promise.is_none()));
        self.is_unseen.store(is_unseen, Relaxed);
        if desc.mode == ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS { line.synchronize(None) } else { Ok(()) }
    }
    /// Adds one more run of all commands of a closed list to `into`. The run comes after all earlier commands
    /// and before all later ones.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for an immediate list or one that is not closed.
    pub fn run(&self, into: &mut Vec<Ready>) -> Answer {
        let mut recorded = self.recorded()?;
        if !recorded.closed {
            eprintln!("ze-software: a command list must be closed before it is executed");
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        let again = std::mem::replace(&mut recorded.ran, true);
        into.push(point(Vec::new(), None));
        // Renews all promises first: a command may wait for the event of another command of the same list.
        let mut ready: Vec<_> = recorded.commands.iter().map(|c| c.ready(again)).collect();
        for (command, ready) in recorded.commands.iter().zip(&mut ready) {
            ready.waits = command.waits.iter().map(event::Wait::fixed).collect();
        }
        into.append(&mut ready);
        Ok(())
    }
    /// The queue group that the list is for.
    fn group(&self) -> &'static crate::property_lists::Group {
        &groups()[self.ordinal as usize]
    }
    /// Fails for copy-only lists, which cannot run kernels.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE`.
    pub fn computes(&self) -> Answer {
        let compute = self.group().flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE != 0;
        if compute { Ok(()) } else { Err(ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE) }
    }
    /// The length of the longest fill pattern, in bytes.
    pub fn pattern(&self) -> usize {
        self.group().pattern
    }
}
/// A command that does nothing, and runs after all earlier and before all later commands.
pub fn point(waits: Vec<event::Wait>, promise: Option<event::Promise>) -> Ready {
    Ready { waits, work: None, promise, free: false }
}
/// Two commands that do nothing: one that waits for the events, and one that signals.
///
/// # Errors
/// As [`List::append`].
pub fn points(list: &List, events: Events) -> Answer<(Ready, Ready)> {
    let waits = events.captured(&list.device)?;
    Ok((point(waits, None), point(Vec::new(), list.promise(events.signal)?)))
}
/// The list behind `raw`.
///
/// # Errors
/// As [`handle::get`].
pub fn get(raw: ze_command_list_handle_t) -> Answer<Arc<List>> {
    handle::get(raw!(raw))
}
/// Checks the numbers of a queue group and of a queue in it.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` if there is no such group or queue.
pub fn engine(ordinal: u32, index: u32) -> Answer {
    let group = groups().get(ordinal as usize).ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    if index < group.queues { Ok(()) } else { Err(ZE_RESULT_ERROR_INVALID_ARGUMENT) }
}
fn of(context: ze_context_handle_t, device: ze_device_handle_t) -> Answer<Arc<Device>> {
    let (context, device) = (context::get(context)?, device::get(device)?);
    if context.has(&device) { Ok(device) } else { Err(ZE_RESULT_ERROR_INVALID_ARGUMENT) }
}
/// Runs recorded lists as one command of an immediate list.
fn nested(
    list: ze_command_list_handle_t,
    (lists, count): (*mut ze_command_list_handle_t, u32),
    events: Events,
) -> Answer {
    let list = get(list)?;
    list.immediate()?;
    if lists.is_null() || count == 0 {
        return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    }
    let (first, last) = points(&list, events)?;
    let mut all = vec![first];
    for one in raw::list(lists, count as usize)? {
        get(one)?.run(&mut all)?;
    }
    all.push(last);
    list.submit(all)
}
impl Drop for List {
    fn drop(&mut self) {
        if let Way::Immediate(line, _) = &self.way
            && self.shared().is_none()
        {
            line.close();
        }
    }
}

entries! {
    fn zeCommandListCreate(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        desc: *const ze_command_list_desc_t,
        to: *mut ze_command_list_handle_t,
    ) {
        let (device, desc) = (of(context, device)?, raw::get(desc)?);
        if desc.flags > 0x3f {
            return Err(ZE_RESULT_ERROR_INVALID_ENUMERATION);
        }
        engine(desc.commandQueueGroupOrdinal, 0)?;
        let mutable = ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_DESC;
        let list = List {
            way: Way::Recorded(Mutex::default()),
            number: next_number(),
            device,
            context: context.expose_provenance(),
            ordinal: desc.commandQueueGroupOrdinal,
            flags: desc.flags,
            in_order: desc.flags & ZE_COMMAND_LIST_FLAG_IN_ORDER != 0,
            mutable: raw::chain(desc.pNext).any(|(stype, _)| stype == mutable),
            alone: Alone::default(),
            is_unseen: AtomicBool::new(false),
        };
        raw::put(to, handle::make(list).cast())
    }
    fn zeCommandListCreateImmediate(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        desc: *const ze_command_queue_desc_t,
        to: *mut ze_command_list_handle_t,
    ) {
        let (device, desc) = (of(context, device)?, raw::get(desc)?);
        if desc.flags > 7 || desc.mode > 2 || desc.priority > 2 {
            return Err(ZE_RESULT_ERROR_INVALID_ENUMERATION);
        }
        engine(desc.ordinal, desc.index)?;
        let list = List {
            number: next_number(),
            way: Way::Immediate(
                engine::shared((device.index, desc.ordinal, desc.index)).unwrap_or_default(),
                desc,
            ),
            device,
            context: context.expose_provenance(),
            ordinal: desc.ordinal,
            flags: 0,
            in_order: desc.flags & ZE_COMMAND_QUEUE_FLAG_IN_ORDER != 0,
            mutable: false,
            alone: Alone::default(),
            is_unseen: AtomicBool::new(false),
        };
        raw::put(to, handle::make(list).cast())
    }
    fn zeCommandListDestroy(list: ze_command_list_handle_t) {
        handle::destroy::<List>(raw!(list)).map(drop)
    }
    fn zeCommandListClose(list: ze_command_list_handle_t) {
        let list = get(list)?;
        if let Way::Recorded(_) = list.way {
            list.recorded()?.closed = true;
        }
        Ok(())
    }
    fn zeCommandListReset(list: ze_command_list_handle_t) {
        let list = get(list)?;
        if let Way::Recorded(_) = list.way {
            let before = std::mem::take(&mut *list.recorded()?);
            drop(before);
        }
        Ok(())
    }
    fn zeCommandListHostSynchronize(list: ze_command_list_handle_t, timeout: u64) {
        let list = get(list)?;
        let line = list.immediate()?.0;
        let _use = list.alone.begin("synchronizes");
        device::check_lost()?;
        if list.is_unseen.swap(false, Relaxed) {
            engine::flush();
        }
        if timeout == 0 { line.poll() } else { line.synchronize(deadline(timeout)) }
    }
    fn zeCommandListImmediateAppendCommandListsExp(
        list: ze_command_list_handle_t,
        count: u32,
        lists: *mut ze_command_list_handle_t,
        signal: ze_event_handle_t,
        waiting: u32,
        waits: *mut ze_event_handle_t,
    ) {
        nested(list, (lists, count), Events { signal, count: waiting, waits })
    }
    fn zeCommandListImmediateAppendCommandListsWithParameters(
        list: ze_command_list_handle_t,
        count: u32,
        lists: *mut ze_command_list_handle_t,
        _next: *const std::ffi::c_void,
        signal: ze_event_handle_t,
        waiting: u32,
        waits: *mut ze_event_handle_t,
    ) {
        nested(list, (lists, count), Events { signal, count: waiting, waits })
    }
    fn zeCommandListGetDeviceHandle(list: ze_command_list_handle_t, to: *mut ze_device_handle_t) {
        raw::put(to, get(list)?.device.raw())
    }
    fn zeCommandListGetContextHandle(list: ze_command_list_handle_t, to: *mut ze_context_handle_t) {
        raw::put(to, std::ptr::with_exposed_provenance_mut(get(list)?.context))
    }
    fn zeCommandListGetOrdinal(list: ze_command_list_handle_t, to: *mut u32) {
        raw::put(to, get(list)?.ordinal)
    }
    fn zeCommandListImmediateGetIndex(list: ze_command_list_handle_t, to: *mut u32) {
        raw::put(to, get(list)?.immediate()?.1.index)
    }
    fn zeCommandListIsImmediate(list: ze_command_list_handle_t, to: *mut ze_bool_t) {
        raw::put(to, u8::from(get(list)?.immediate().is_ok()))
    }
    fn zeCommandListGetFlags(list: ze_command_list_handle_t, to: *mut ze_command_list_flags_t) {
        raw::put(to, get(list)?.flags)
    }
    fn zeCommandListImmediateGetFlags(
        list: ze_command_list_handle_t,
        to: *mut ze_command_queue_flags_t,
    ) {
        raw::put(to, get(list)?.immediate()?.1.flags)
    }
    fn zeCommandListImmediateGetMode(list: ze_command_list_handle_t, to: *mut ze_command_queue_mode_t) {
        raw::put(to, get(list)?.immediate()?.1.mode)
    }
    fn zeCommandListImmediateGetPriority(
        list: ze_command_list_handle_t,
        to: *mut ze_command_queue_priority_t,
    ) {
        raw::put(to, get(list)?.immediate()?.1.priority)
    }
}
