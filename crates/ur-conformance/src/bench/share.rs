//! The eleven sharing entries by kind of object, events that can be signalled, and a gate that blocks a
//! queue.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
use super::{Bench, NO_LIST};
use crate::{ask, case::Verdict, ensure, info, must};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};
use ur_sys::*;

/// The three kinds of object that processes share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Memory,
    Physical,
    Event,
}
pub const KINDS: [Kind; 3] = [Kind::Memory, Kind::Physical, Kind::Event];
impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Physical => "physical",
            Self::Event => "event",
        }
    }
    /// # Panics
    /// Panics if the word names no kind.
    pub fn named(word: &str) -> Self {
        *KINDS.iter().find(|kind| kind.word() == word).unwrap_or_else(|| panic!("{word}"))
    }
    /// The device query that tells whether the kind can be shared.
    pub fn query(self) -> ur_device_info_t {
        match self {
            Self::Memory => ur_device_info_t::IPC_MEMORY_SUPPORT_EXP,
            Self::Physical => ur_device_info_t::IPC_PHYSICAL_MEMORY_SUPPORT_EXP,
            Self::Event => ur_device_info_t::IPC_EVENT_SUPPORT_EXP,
        }
    }
}
/// The handle bytes that `Get` returns, which are valid until `Put`.
#[derive(Clone, Debug)]
pub struct Given {
    pub data: *mut c_void,
    pub bytes: Vec<u8>,
}

impl Bench {
    pub fn get_code(&self, kind: Kind, object: *mut c_void) -> Verdict<(ur_result_t, Given)> {
        let (mut data, mut size) = (null_mut(), 0);
        let (context, to, n) = (self.context()?, &raw mut data, &raw mut size);
        let code = match kind {
            Kind::Memory => ask!(self, ipc_exp.get_mem_handle_exp(context, object, to, n)),
            Kind::Physical => {
                let object = ur_physical_mem_handle_t(object);
                ask!(self, ipc_exp.get_phys_mem_handle_exp(context, object, to, n))
            }
            Kind::Event => {
                ask!(self, ipc_exp.get_event_handle_exp(ur_event_handle_t(object), to, n))
            }
        };
        let given = |data: *mut c_void| {
            unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) }.to_vec()
        };
        let bytes = if code == ur_result_t::SUCCESS { given(data) } else { Vec::new() };
        Ok((code, Given { data, bytes }))
    }
    pub fn get(&self, kind: Kind, object: *mut c_void) -> Verdict<Given> {
        let (code, given) = self.get_code(kind, object)?;
        self.succeeded(&format!("get of {}", kind.word()), code)?;
        Ok(given)
    }
    pub fn put_code(&self, kind: Kind, data: *mut c_void) -> Verdict<ur_result_t> {
        let context = self.context()?;
        Ok(match kind {
            Kind::Memory => ask!(self, ipc_exp.put_mem_handle_exp(context, data)),
            Kind::Physical => ask!(self, ipc_exp.put_phys_mem_handle_exp(context, data)),
            Kind::Event => ask!(self, ipc_exp.put_event_handle_exp(context, data)),
        })
    }
    /// Opens handle bytes; returns the result and an address or handle, which is null unless the open
    /// succeeds.
    pub fn open_code(&self, kind: Kind, bytes: &[u8]) -> Verdict<(ur_result_t, *mut c_void)> {
        let (context, device, size) = (self.context()?, self.device()?, bytes.len());
        let (data, mut object) = (bytes.as_ptr().cast_mut().cast::<c_void>(), null_mut::<c_void>());
        let to = &raw mut object;
        let code = match kind {
            Kind::Memory => {
                ask!(self, ipc_exp.open_mem_handle_exp(context, device, data, size, to))
            }
            Kind::Physical => {
                ask!(self, ipc_exp.open_phys_mem_handle_exp(context, device, data, size, to.cast()))
            }
            Kind::Event => {
                ask!(self, ipc_exp.open_event_handle_exp(context, data, size, to.cast()))
            }
        };
        let is_set = !object.is_null();
        ensure!(is_set == (code == ur_result_t::SUCCESS), "{code:?}, and the result is {object:p}");
        Ok((code, object))
    }
    pub fn open(&self, kind: Kind, bytes: &[u8]) -> Verdict<*mut c_void> {
        let (code, object) = self.open_code(kind, bytes)?;
        self.succeeded(&format!("open of {}", kind.word()), code)?;
        Ok(object)
    }
    /// Closes what an open returned.
    pub fn close_code(&self, kind: Kind, object: *mut c_void) -> Verdict<ur_result_t> {
        let context = self.context()?;
        Ok(match kind {
            Kind::Memory => ask!(self, ipc_exp.close_mem_handle_exp(context, object)),
            Kind::Physical => {
                let object = ur_physical_mem_handle_t(object);
                ask!(self, ipc_exp.close_phys_mem_handle_exp(context, object))
            }
            Kind::Event => ask!(self, event.release(ur_event_handle_t(object))),
        })
    }
    pub fn new_event(&self, flags: ur_exp_event_flags_t) -> Verdict<*mut c_void> {
        let stype = ur_structure_type_t::EXP_EVENT_DESC;
        let desc = ur_exp_event_desc_t { stype, pNext: null(), flags };
        let (context, device, mut event) =
            (self.context()?, self.device()?, ur_event_handle_t::NULL);
        must!(self, event_exp.create_exp(context, device, &desc, &mut event));
        super::exists(event.0)?;
        Ok(event.0)
    }
    /// Creates an object of a kind that can be shared.
    pub fn shareable(&self, kind: Kind) -> Verdict<*mut c_void> {
        match kind {
            Kind::Memory => self.alloc(super::Usm::Device, 5000),
            Kind::Physical => {
                let flags = ur_physical_mem_flags_t::ENABLE_IPC;
                Ok(self.new_physical(self.granularity()?, flags)?.0)
            }
            Kind::Event => self.new_event(ur_exp_event_flags_t::IPC_EXP),
        }
    }
    pub fn signal_code(
        &self,
        queue: ur_queue_handle_t,
        event: *mut c_void,
        after: &[*mut c_void],
    ) -> Verdict<ur_result_t> {
        let (count, list) = list(after);
        let (mut event, none) = (ur_event_handle_t(event), null());
        Ok(ask!(self, enqueue.events_wait_with_barrier_ext(queue, none, count, list, &mut event)))
    }
    /// Signals a reusable event when the earlier commands of `queue` and `after` are complete.
    pub fn signal(
        &self,
        queue: ur_queue_handle_t,
        event: *mut c_void,
        after: &[*mut c_void],
    ) -> Verdict {
        let code = self.signal_code(queue, event, after)?;
        self.succeeded("urEnqueueEventsWaitWithBarrierExt", code)
    }
    /// Enqueues a command that completes after `after`; returns its event.
    pub fn follow_code(
        &self,
        queue: ur_queue_handle_t,
        after: &[*mut c_void],
    ) -> Verdict<(ur_result_t, *mut c_void)> {
        let ((count, list), mut event) = (list(after), ur_event_handle_t::NULL);
        let code = ask!(self, enqueue.events_wait(queue, count, list, &mut event));
        Ok((code, event.0))
    }
    pub fn follow(&self, queue: ur_queue_handle_t, after: &[*mut c_void]) -> Verdict<*mut c_void> {
        let (code, event) = self.follow_code(queue, after)?;
        self.succeeded("urEnqueueEventsWait", code)?;
        super::exists(event)?;
        Ok(event)
    }
    pub fn copy_behind_code(
        &self,
        queue: ur_queue_handle_t,
        after: &[*mut c_void],
    ) -> Verdict<ur_result_t> {
        let (from, mut to, (count, list)) = ([7_u8; 8], [0_u8; 8], list(after));
        let (at, source, none) = (to.as_mut_ptr().cast(), from.as_ptr().cast(), null_mut());
        let code = ask!(self, enqueue.usm_memcpy(queue, true, at, source, 8, count, list, none));
        Ok(if code == ur_result_t::SUCCESS && to != from {
            ur_result_t::ERROR_UNKNOWN
        } else {
            code
        })
    }
    pub fn wait_code(&self, events: &[*mut c_void]) -> Verdict<ur_result_t> {
        let count = u32::try_from(events.len()).expect("a short list");
        Ok(ask!(self, event.wait(count, events.as_ptr().cast())))
    }
    pub fn wait(&self, events: &[*mut c_void]) -> Verdict {
        let code = self.wait_code(events)?;
        self.succeeded("urEventWait", code)
    }
    pub fn status(&self, event: *mut c_void) -> Verdict<ur_event_status_t> {
        let (event, name) = (ur_event_handle_t(event), ur_event_info_t::COMMAND_EXECUTION_STATUS);
        Ok(ur_event_status_t(info!(self, event.get_info(event, name), u32)))
    }
    /// Runs commands on another queue for a while. Work that does not wait for anything completes meanwhile,
    /// so what is still incomplete is waiting. That something does not happen can only be observed over time.
    pub fn meanwhile(&self) -> Verdict {
        let queue = self.new_queue(ur_queue_flags_t::default())?;
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(20) {
            let event = self.follow(queue, &[])?;
            self.wait(&[event])?;
            must!(self, event.release(ur_event_handle_t(event)));
        }
        must!(self, queue.release(queue));
        Ok(())
    }
    pub fn finish(&self, queue: ur_queue_handle_t) -> Verdict {
        must!(self, queue.finish(queue));
        Ok(())
    }
    /// Maps all of `object` at an address that the adapter chooses.
    pub fn map(&self, object: *mut c_void, bytes: usize) -> Verdict<*mut c_void> {
        let (context, mut at) = (self.context()?, null_mut());
        must!(self, virtual_mem.reserve(context, null(), bytes, &mut at));
        super::exists(at)?;
        let (object, access) =
            (ur_physical_mem_handle_t(object), ur_virtual_mem_access_flags_t::READ_WRITE);
        must!(self, virtual_mem.map(context, at, bytes, object, 0, access));
        Ok(at)
    }
    /// Maps an object that may be mapped already; `None` where the driver allows only one mapping of each
    /// object.
    pub fn map_again(&self, object: *mut c_void, bytes: usize) -> Verdict<Option<*mut c_void>> {
        let (context, mut at) = (self.context()?, null_mut());
        must!(self, virtual_mem.reserve(context, null(), bytes, &mut at));
        super::exists(at)?;
        let (object, access) =
            (ur_physical_mem_handle_t(object), ur_virtual_mem_access_flags_t::READ_WRITE);
        let code = ask!(self, virtual_mem.map(context, at, bytes, object, 0, access));
        if code == ur_result_t::ERROR_UNSUPPORTED_FEATURE {
            must!(self, virtual_mem.free(context, at, bytes));
            return Ok(None);
        }
        self.succeeded("urVirtualMemMap", code)?;
        Ok(Some(at))
    }
    pub fn unmap(&self, at: *mut c_void, bytes: usize) -> Verdict {
        let context = self.context()?;
        must!(self, virtual_mem.unmap(context, at, bytes));
        must!(self, virtual_mem.free(context, at, bytes));
        Ok(())
    }
    /// Blocks the commands that are enqueued later in `queue` until the gate is opened or dropped.
    pub fn gate(&self, queue: ur_queue_handle_t) -> Verdict<Gate> {
        let gate = Gate(Arc::default());
        let data = Arc::into_raw(gate.0.clone()).cast_mut().cast();
        let ((n, list), none) = (NO_LIST, null_mut());
        must!(self, enqueue_exp.host_task_exp(queue, Some(pass), data, null(), n, list, none));
        Ok(gate)
    }
}
fn list(events: &[*mut c_void]) -> (u32, *const ur_event_handle_t) {
    match events {
        [] => NO_LIST,
        some => (u32::try_from(some.len()).expect("a short list"), some.as_ptr().cast()),
    }
}

type Latch = (Mutex<bool>, Condvar);
/// Blocks a queue until it is opened.
pub struct Gate(Arc<Latch>);
impl Gate {
    pub fn open(&self) {
        *self.0.0.lock().expect("nothing panics with the lock held") = true;
        self.0.1.notify_all();
    }
}
impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}
unsafe extern "C" fn pass(latch: *mut c_void) {
    let latch = unsafe { Arc::from_raw(latch.cast_const().cast::<Latch>()) };
    if let Ok(is_open) = latch.0.lock() {
        // A gate that is never opened must not block the process for ever.
        let long = Duration::from_secs(120);
        drop(latch.1.wait_timeout_while(is_open, long, |is_open| !*is_open));
    }
}
