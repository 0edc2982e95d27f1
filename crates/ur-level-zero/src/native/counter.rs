//! Counter-based events: which of the driver's functions for them exist, and under which names. The functions
//! of newer versions of the specification are preferred to the older `zex` extension. Determined once for
//! each driver, at first use.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::driver::{Outcome, RawContext, RawDevice, RawDriver, RawEvent, driver, unwrapped},
    call::function,
    context::NativeContext,
    event::{AdoptedEvent, CounterEvent},
};
use std::sync::Arc;
use ur_hal::{Error, Result, made};
use ur_lock::PerKey;
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

impl Counters {
    /// What `driver`, to which `device` belongs, supports.
    ///
    /// # Errors
    /// The driver's, if something has run out so that it cannot be tried now.
    pub fn of(driver: RawDriver, device: RawDevice) -> Result<Self> {
        static KNOWN: PerKey<RawDriver, Counters> = PerKey::new();
        KNOWN.get(driver, || Self::find(driver, device).or_else(unless_ran_out))
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
        let try_out = |(maker, sharing)| Self::try_out(&context, device, maker, sharing);
        let core = newer().map_or(Ok(None), try_out)?;
        if core.is_some_and(|core| core.sharing.is_some()) {
            return Ok(core.unwrap_or_default());
        }
        Ok(match (core, older(raw).map_or(Ok(None), try_out)?) {
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
    ) -> Result<Option<Self>> {
        let shares = ZE_EVENT_COUNTER_BASED_FLAG_HOST_VISIBLE | ZE_EVENT_COUNTER_BASED_FLAG_IPC;
        let make = |flags| {
            let raw = made(|to| maker.make(context.raw(), device, flags, to))?;
            Ok(AdoptedEvent::adopted(raw, true, ()))
        };
        if let Err(error) = make(ZE_EVENT_COUNTER_BASED_FLAG_HOST_VISIBLE) {
            return unless_ran_out(error);
        }
        let try_sharing = |sharing: Sharing| {
            let event = make(shares)?;
            let mut ipc = ze_ipc_event_counter_based_handle_t::default();
            // SAFETY: an owned event with the flag; `ipc` is writable.
            let status = unsafe { (sharing.get)(event.raw(), &raw mut ipc) };
            Outcome::new("the driver's handle of an event", Some(status)).ok()?;
            Ok(Some(sharing))
        };
        let sharing = sharing.map_or(Ok(None), |one| try_sharing(one).or_else(unless_ran_out))?;
        Ok(Some(Self { maker: Some(maker), sharing }))
    }
}
/// What there is if the driver fails: nothing, unless something has run out, which says nothing of what it can do.
fn unless_ran_out<T: Default>(error: Error) -> Result<T> {
    if error.kind().has_run_out() { Err(error) } else { Ok(T::default()) }
}
impl Maker {
    /// Creates an event.
    pub(super) fn make(
        &self,
        context: RawContext,
        device: RawDevice,
        flags: ze_event_counter_based_flags_t,
        to: *mut Option<RawEvent>,
    ) -> Outcome {
        let desc = ze_event_counter_based_desc_t {
            stype: self.stype,
            flags,
            signal: ZE_EVENT_SCOPE_FLAG_HOST,
            wait: ZE_EVENT_SCOPE_FLAG_HOST,
            ..Default::default()
        };
        // SAFETY: both handles are live; `desc` has its type; `to` is writable.
        Outcome::new(self.call, Some(unsafe { (self.create)(context, device, &desc, to) }))
    }
}
/// The functions of the specification.
fn newer() -> Option<(Maker, Option<Sharing>)> {
    let (driver, stype) = (driver(), ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_DESC);
    let create = driver.event_counter_based_create?;
    let sharing = (|| {
        let get = driver.event_counter_based_get_ipc_handle?;
        let open = driver.event_counter_based_open_ipc_handle?;
        Some(Sharing { get, open, close: driver.event_counter_based_close_ipc_handle? })
    })();
    Some((Maker { call: "zeEventCounterBasedCreate", create, stype }, sharing))
}
/// The functions by their older names. Events that they create are unwrapped driver handles, which a loader
/// that wraps handles does not accept.
fn older(raw: RawDriver) -> Option<(Maker, Option<Sharing>)> {
    if unwrapped(raw) != raw {
        return None;
    }
    // SAFETY: the function of that name has this prototype.
    let create: Create = unsafe { function(raw, c"zexCounterBasedEventCreate2") }?;
    let sharing = (|| {
        Some(Sharing {
            // SAFETY: the function of that name has this prototype.
            get: unsafe { function(raw, c"zexCounterBasedEventGetIpcHandle") }?,
            // SAFETY: as above.
            open: unsafe { function(raw, c"zexCounterBasedEventOpenIpcHandle") }?,
            // SAFETY: as above.
            close: unsafe { function(raw, c"zexCounterBasedEventCloseIpcHandle") }?,
        })
    })();
    Some((Maker { call: "zexCounterBasedEventCreate2", create, stype: ZEX_DESC }, sharing))
}
