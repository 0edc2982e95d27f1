//! Event pools: pages of cells, each for an event with two states (or a counter, if the pool was created for
//! those). Other processes can open them.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    cell::{Hold, Page, Seat},
    context, device,
    event::{Event, Homes, Kind, Times},
    handle::{self, Object, raw},
    inject::{self, Answer},
    raw, ticket,
};
use std::sync::{Arc, Mutex};
use ze_sys::*;

/// A pool of events.
pub struct Pool {
    page: Arc<Page>,
    flags: ze_event_pool_flags_t,
    /// The flags of its counters; `None`: its events have two states.
    counter: Option<ze_event_counter_based_flags_t>,
    /// Whether it was opened by an IPC handle.
    opened: bool,
    context: usize,
    /// The numbers of its devices; empty: all.
    devices: Vec<u32>,
}
impl Object for Pool {
    const TAG: u64 = 0x7a65_6576_706f_6f6c;
}
impl Pool {
    fn times(&self) -> Times {
        if self.flags & ZE_EVENT_POOL_FLAG_KERNEL_MAPPED_TIMESTAMP != 0 {
            Times::Mapped
        } else if self.flags & ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP != 0 {
            Times::Device
        } else {
            Times::None
        }
    }
}
fn pool(raw: ze_event_pool_handle_t) -> Answer<Arc<Pool>> {
    handle::get(raw!(raw))
}
fn end(raw: ze_event_pool_handle_t, opened: bool) -> Answer {
    if pool(raw)?.opened != opened {
        return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    handle::destroy::<Pool>(raw!(raw)).map(drop)
}
/// The counter flags in the caller's chain of structures.
fn counters(desc: &ze_event_pool_desc_t) -> Answer<Option<ze_event_counter_based_flags_t>> {
    let stype = ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC;
    let Some(exp) = raw::find::<ze_event_pool_counter_based_exp_desc_t>(desc.pNext, stype) else {
        return Ok(None);
    };
    let flags = raw::get(exp)?.flags;
    let ipc = desc.flags & ZE_EVENT_POOL_FLAG_IPC != 0;
    match flags {
        _ if ipc || !inject::counter_events() => Err(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE),
        0 => Ok(Some(ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE)),
        1..=3 => Ok(Some(flags)),
        _ => Err(ZE_RESULT_ERROR_INVALID_ENUMERATION),
    }
}
entries! {
    fn zeEventPoolCreate(
        context: ze_context_handle_t,
        desc: *const ze_event_pool_desc_t,
        count: u32,
        devices: *mut ze_device_handle_t,
        to: *mut ze_event_pool_handle_t,
    ) {
        context::get(context)?;
        let desc = raw::get(desc)?;
        if desc.flags > 0xf {
            return Err(ZE_RESULT_ERROR_INVALID_ENUMERATION);
        }
        if desc.count == 0 || (devices.is_null() && count != 0) {
            return Err(ZE_RESULT_ERROR_INVALID_SIZE);
        }
        let number = |device| device::get(device).map(|device| device.index);
        let devices = raw::list(devices, count as usize)?.into_iter().map(number);
        let devices = devices.collect::<Answer<Vec<_>>>()?;
        let (page, counter) = (Page::new(desc.count)?, counters(&desc)?);
        let (flags, context) = (desc.flags, context.expose_provenance());
        let pool = Pool { page, flags, counter, opened: false, context, devices };
        raw::put(to, handle::make(pool).cast())
    }
    fn zeEventPoolDestroy(pool: ze_event_pool_handle_t) { end(pool, false) }
    fn zeEventPoolCloseIpcHandle(pool: ze_event_pool_handle_t) { end(pool, true) }
    fn zeEventPoolGetIpcHandle(of: ze_event_pool_handle_t, to: *mut ze_ipc_event_pool_handle_t) {
        let pool = pool(of)?;
        if pool.opened || pool.flags & ZE_EVENT_POOL_FLAG_IPC == 0 {
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        raw::put(to, ze_ipc_event_pool_handle_t { data: ticket::pool(&pool.page, pool.flags)? })
    }
    fn zeEventPoolPutIpcHandle(context: ze_context_handle_t, _ipc: ze_ipc_event_pool_handle_t) {
        context::get(context).map(drop)
    }
    fn zeEventPoolOpenIpcHandle(
        context: ze_context_handle_t,
        ipc: ze_ipc_event_pool_handle_t,
        to: *mut ze_event_pool_handle_t,
    ) {
        context::get(context)?;
        let (page, flags) = ticket::open_pool(ipc.data)?;
        let context = context.expose_provenance();
        let pool = Pool { page, flags, counter: None, opened: true, context, devices: vec![] };
        raw::put(to, handle::make(pool).cast())
    }
    fn zeEventPoolGetContextHandle(of: ze_event_pool_handle_t, to: *mut ze_context_handle_t) {
        raw::put(to, std::ptr::with_exposed_provenance_mut(pool(of)?.context))
    }
    fn zeEventPoolGetFlags(of: ze_event_pool_handle_t, to: *mut ze_event_pool_flags_t) {
        raw::put(to, pool(of)?.flags)
    }
    fn zeEventCreate(
        of: ze_event_pool_handle_t,
        desc: *const ze_event_desc_t,
        to: *mut ze_event_handle_t,
    ) {
        let (pool, desc) = (pool(of)?, raw::get(desc)?);
        if desc.signal > 7 || desc.wait > 7 {
            return Err(ZE_RESULT_ERROR_INVALID_ENUMERATION);
        }
        let seat = Seat::of(&pool.page, desc.index).ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
        // A new event is not signalled; one that another process created keeps its state.
        if !pool.opened {
            seat.renew();
        }
        let counter = |flags| Kind::Counter { flags, opened: false };
        let event = Event {
            hold: Hold::Pooled(seat),
            kind: pool.counter.map_or(Kind::Flag, counter),
            times: pool.times(),
            signal_scope: desc.signal,
            wait_scope: desc.wait,
            homes: match pool.devices.is_empty() {
                true => Homes::All,
                false => Homes::Pool(pool.devices.clone()),
            },
            pool: of.expose_provenance(),
            exporter: 0,
            snapshot: None,
            moving: Mutex::new(None),
        };
        raw::put(to, handle::make(event).cast())
    }
}
