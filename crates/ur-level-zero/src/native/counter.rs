//! Counter-based events: which of the driver's functions for them exist, and under which names. The functions
//! of newer versions of the specification are preferred to the older `zex` extension. Determined once for
//! each driver, at first use.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::driver::{RawContext, RawDevice, RawDriver, RawEvent, driver, extension, unwrapped},
    context::NativeContext,
    event::CounterEvent,
};
use std::{
    ffi::{CStr, c_void},
    mem::transmute,
    ptr::{NonNull, null},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};
use ur_hal::Result;
use ze_sys::*;

pub(super) type Create = unsafe extern "C" fn(
    RawContext,
    RawDevice,
    *const ze_event_counter_based_desc_t,
    *mut Option<RawEvent>,
) -> ze_result_t;
pub(super) type Get =
    unsafe extern "C" fn(RawEvent, *mut ze_ipc_event_counter_based_handle_t) -> ze_result_t;
pub(super) type Open = unsafe extern "C" fn(
    RawContext,
    ze_ipc_event_counter_based_handle_t,
    *mut Option<RawEvent>,
) -> ze_result_t;
pub(super) type Close = unsafe extern "C" fn(RawEvent) -> ze_result_t;

/// The structure type for the older function; fields and flags are the same.
const ZEX_DESC: ze_structure_type_t = 0x0003_001c;

/// The function that creates events.
#[derive(Clone, Copy, Debug)]
pub struct Maker {
    pub(super) call: &'static str,
    pub(super) create: Create,
    pub(super) stype: ze_structure_type_t,
}
/// The functions that share them between processes.
#[derive(Clone, Copy, Debug)]
pub struct Sharing {
    pub(super) get: Get,
    pub(super) open: Open,
    pub(super) close: Close,
}
/// What a driver supports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// `None` if it has no counter-based events.
    pub maker: Option<Maker>,
    /// `None` if they cannot be shared between processes.
    pub sharing: Option<Sharing>,
}

unsafe extern "C" fn core_create(
    context: RawContext,
    device: RawDevice,
    desc: *const ze_event_counter_based_desc_t,
    event: *mut Option<RawEvent>,
) -> ze_result_t {
    // SAFETY: the caller upholds the driver's conditions.
    let told = unsafe { driver().event_counter_based_create(context, device, desc, event) };
    told.status().unwrap_or(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE)
}
unsafe extern "C" fn core_get(
    event: RawEvent,
    ipc: *mut ze_ipc_event_counter_based_handle_t,
) -> ze_result_t {
    // SAFETY: as above.
    let told = unsafe { driver().event_counter_based_get_ipc_handle(event, ipc) };
    told.status().unwrap_or(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE)
}
unsafe extern "C" fn core_open(
    context: RawContext,
    ipc: ze_ipc_event_counter_based_handle_t,
    event: *mut Option<RawEvent>,
) -> ze_result_t {
    // SAFETY: as above.
    let told = unsafe { driver().event_counter_based_open_ipc_handle(context, ipc, event) };
    told.status().unwrap_or(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE)
}
unsafe extern "C" fn core_close(event: RawEvent) -> ze_result_t {
    // SAFETY: as above.
    let told = unsafe { driver().event_counter_based_close_ipc_handle(event) };
    told.status().unwrap_or(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE)
}

impl Counters {
    /// What `driver`, to which `device` belongs, supports.
    pub fn of(driver: RawDriver, device: RawDevice) -> Self {
        static KNOWN: Mutex<Vec<(RawDriver, Counters)>> = Mutex::new(Vec::new());
        /// The first driver, without a lock: usually there is only one.
        static FIRST: OnceLock<(RawDriver, Counters)> = OnceLock::new();
        if let Some((_, counters)) = FIRST.get().filter(|first| first.0 == driver) {
            return *counters;
        }
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |one: &&(RawDriver, Self)| one.0 == driver;
        if let Some((_, counters)) = known().iter().find(same) {
            return *counters;
        }
        let found = Self::find(driver, device).unwrap_or_default();
        FIRST.get_or_init(|| (driver, found));
        known().push((driver, found));
        found
    }
    /// A new event that can be signalled repeatedly; with `shared` it can be shared between processes. `None`
    /// if the driver has no counter-based events.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn reusable(
        &self,
        context: &Arc<NativeContext>,
        device: RawDevice,
        shared: bool,
    ) -> Result<Option<CounterEvent>> {
        let make = |maker| CounterEvent::create(maker, context, device, (false, shared));
        self.maker.as_ref().map(make).transpose()
    }
    /// Determines the support by creating an event and a handle of it: a loader exports its functions even if
    /// the driver does not have them.
    fn find(raw: RawDriver, device: RawDevice) -> Result<Self> {
        let context = NativeContext::create(raw, &[device])?;
        let core = Maker {
            call: "zeEventCounterBasedCreate",
            create: core_create,
            stype: ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_DESC,
        };
        let core_sharing = Sharing { get: core_get, open: core_open, close: core_close };
        if let Some(counters) = Self::try_out(&context, device, core, Some(core_sharing))
            && counters.sharing.is_some()
        {
            return Ok(counters);
        }
        let zex =
            older(raw).and_then(|(maker, sharing)| Self::try_out(&context, device, maker, sharing));
        Ok(match (Self::try_out(&context, device, core, None), zex) {
            (_, Some(zex)) if zex.sharing.is_some() => zex,
            (Some(core), _) => core,
            (None, zex) => zex.unwrap_or_default(),
        })
    }
    fn try_out(
        context: &NativeContext,
        device: RawDevice,
        maker: Maker,
        sharing: Option<Sharing>,
    ) -> Option<Self> {
        let shares = ZE_EVENT_COUNTER_BASED_FLAG_HOST_VISIBLE | ZE_EVENT_COUNTER_BASED_FLAG_IPC;
        let make = |flags| {
            let made = maker.make(context.raw(), device, flags);
            made.0.filter(|_| made.1 == ZE_RESULT_SUCCESS)
        };
        let plain = make(ZE_EVENT_COUNTER_BASED_FLAG_HOST_VISIBLE)?;
        // SAFETY: created above, and owned.
        unsafe { driver().event_destroy(plain) }.let_go();
        let sharing = sharing.filter(|sharing| {
            let Some(event) = make(shares) else { return false };
            let mut ipc = ze_ipc_event_counter_based_handle_t::default();
            // SAFETY: an owned event with the flag; `ipc` is writable.
            let told = unsafe { (sharing.get)(event, &raw mut ipc) };
            // SAFETY: created above, and owned.
            unsafe { driver().event_destroy(event) }.let_go();
            told == ZE_RESULT_SUCCESS
        });
        Some(Self { maker: Some(maker), sharing })
    }
}
impl Maker {
    /// The event, if it was created, and the driver's status.
    pub(super) fn make(
        &self,
        context: RawContext,
        device: RawDevice,
        flags: ze_event_counter_based_flags_t,
    ) -> (Option<RawEvent>, ze_result_t) {
        let scope = ZE_EVENT_SCOPE_FLAG_HOST;
        let desc = ze_event_counter_based_desc_t {
            stype: self.stype,
            pNext: null(),
            flags,
            signal: scope,
            wait: scope,
        };
        let mut raw = None;
        // SAFETY: both handles are live; `desc` has its type; `raw` is writable.
        let told = unsafe { (self.create)(context, device, &raw const desc, &raw mut raw) };
        (raw, told)
    }
}
/// The functions by their older names. Events that they create are unwrapped driver handles, which a loader
/// that wraps handles does not accept.
fn older(raw: RawDriver) -> Option<(Maker, Option<Sharing>)> {
    if unwrapped(raw) != raw {
        return None;
    }
    let find = |name: &CStr| extension(raw, name);
    let create = find(c"zexCounterBasedEventCreate2")?;
    // SAFETY: the function of that name has this prototype.
    let create = unsafe { transmute::<NonNull<c_void>, Create>(create) };
    let maker = Maker { call: "zexCounterBasedEventCreate2", create, stype: ZEX_DESC };
    let sharing = (|| {
        let get = find(c"zexCounterBasedEventGetIpcHandle")?;
        let open = find(c"zexCounterBasedEventOpenIpcHandle")?;
        let close = find(c"zexCounterBasedEventCloseIpcHandle")?;
        Some(Sharing {
            // SAFETY: the function of that name has this prototype.
            get: unsafe { transmute::<NonNull<c_void>, Get>(get) },
            // SAFETY: as above.
            open: unsafe { transmute::<NonNull<c_void>, Open>(open) },
            // SAFETY: as above.
            close: unsafe { transmute::<NonNull<c_void>, Close>(close) },
        })
    })();
    Some((maker, sharing))
}
