//! The eleven `urIPC*` entries, for all adapters. An adapter describes its objects ([`SharesMemory`],
//! [`SharesPhysicalMemory`], [`SharesEvents`]); `ur-ipc` handles access, transfer and lifetime; this module decides
//! which codes are returned.
mod handles;
mod opens;

use crate::{
    api::Objects,
    error::{Error, ErrorCode, Reason, Result},
    memory::{HostBytes, UsmPtr},
    object::{Borrowed, Owned},
};
use handles::Given;
pub use opens::Opens;
use std::sync::{Mutex, MutexGuard};
use ur_ipc::{ENVELOPE_LEN, Kind, Offer};
use ur_lock::locked;
use ur_mapping::PerProcess;

/// What an address refers to.
#[derive(Debug)]
pub enum Located<T> {
    /// Device USM that this process allocated.
    Device(T),
    /// Host USM.
    Host,
    /// Shared USM.
    Shared,
    /// Memory that was opened in this process, whichever process exported it.
    Opened,
    /// Memory that was freed and is kept only by opens of it.
    Freed,
    /// Memory of another context.
    OtherContext,
    /// No USM allocation.
    Nobodys,
}

/// Device memory that can be shared; the `urIPC*MemHandleExp` entries use this.
pub trait SharesMemory: Objects {
    /// Whether `UR_DEVICE_INFO_IPC_MEMORY_SUPPORT_EXP` is true for all devices of the context.
    ///
    /// # Errors
    /// Those of the query.
    fn shares_memory(context: &Self::Context) -> Result<bool>;
    /// What is at an address; for device memory, the offer of the range from there to its end.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn locate(context: Borrowed<'_, Self::Context>, at: UsmPtr) -> Result<Located<Offer>>;
    /// Whether the memory is still allocated. Called after an offer of it was exported.
    fn is_allocated(object: u64) -> bool;
    /// Opens a ticket; returns the address of the shared range in this process. Opens are counted.
    ///
    /// # Errors
    /// The errors of `ur_ipc` and of the driver.
    fn open_memory(
        context: Borrowed<'_, Self::Context>,
        device: Borrowed<'_, Self::Device>,
        ticket: &[u8; ENVELOPE_LEN],
    ) -> Result<UsmPtr>;
    /// Ends one open that returned `at`.
    ///
    /// # Errors
    /// `INVALID_VALUE` if there is none.
    fn close_memory(context: Borrowed<'_, Self::Context>, at: UsmPtr) -> Result<()>;
}

/// Physical memory that can be shared; the `urIPC*PhysMemHandleExp` entries use this.
pub trait SharesPhysicalMemory: Objects {
    /// Whether `UR_DEVICE_INFO_IPC_PHYSICAL_MEMORY_SUPPORT_EXP` is true for all devices of the context.
    ///
    /// # Errors
    /// Those of the query.
    fn shares_physical_memory(context: &Self::Context) -> Result<bool>;
    /// Whether it was made with `UR_PHYSICAL_MEM_FLAG_ENABLE_IPC`, or opened.
    fn is_shareable(memory: &Self::PhysicalMem) -> bool;
    /// Whether it was opened.
    fn is_opened(memory: &Self::PhysicalMem) -> bool;
    /// The offer of the memory.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn offer_physical_memory(memory: Borrowed<'_, Self::PhysicalMem>) -> Result<Offer>;
    /// Opens a ticket; returns a new object, even if this process made the ticket.
    ///
    /// # Errors
    /// The errors of `ur_ipc` and of the driver.
    fn open_physical_memory(
        context: Borrowed<'_, Self::Context>,
        device: Borrowed<'_, Self::Device>,
        ticket: &[u8; ENVELOPE_LEN],
    ) -> Result<Owned<Self::PhysicalMem>, Refusal>;
}

/// The facts that decide whether an event can be shared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventFacts {
    /// The answer to `UR_DEVICE_INFO_IPC_EVENT_SUPPORT_EXP` for its device.
    pub is_supported: bool,
    /// Made with `UR_EXP_EVENT_FLAG_IPC_EXP`.
    pub is_shareable: bool,
    /// Was returned by `urIPCOpenEventHandleExp`.
    pub is_opened: bool,
    /// Records times.
    pub has_profiling: bool,
}

/// Events that can be shared; the `urIPC*EventHandleExp` entries use this.
pub trait SharesEvents: Objects {
    /// Whether `UR_DEVICE_INFO_IPC_EVENT_SUPPORT_EXP` is true for all devices of the context.
    fn shares_events(context: &Self::Context) -> bool;
    /// The facts that decide whether this event can be shared.
    fn event_facts(event: &Self::Event) -> EventFacts;
    /// The offer of the event.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn offer_event(event: Borrowed<'_, Self::Event>) -> Result<Offer>;
    /// Opens a ticket; returns a new event, marked as opened, even if this process made the ticket.
    ///
    /// # Errors
    /// The errors of `ur_ipc` and of the driver.
    fn open_event(
        context: Borrowed<'_, Self::Context>,
        ticket: &[u8; ENVELOPE_LEN],
    ) -> Result<Owned<Self::Event>>;
}

/// Why physical memory could not be opened: for these entries, a denial by the kernel has a code of its own.
#[derive(Debug)]
pub struct Refusal(Error);
impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self(error)
    }
}
impl From<ur_ipc::Error> for Refusal {
    fn from(error: ur_ipc::Error) -> Self {
        let is_denied = error.kind() == ur_ipc::ErrorKind::Denied;
        let error = Error::from(error);
        Self(if is_denied { error.with_code(ErrorCode::InvalidArgument) } else { error })
    }
}
impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        refusal.0
    }
}

static GIVEN: PerProcess<Mutex<Given>> = PerProcess::new();
fn given() -> MutexGuard<'static, Given> {
    locked(GIVEN.get())
}
/// Records that the owner freed a shared object, or released its last handle: opening a ticket of it returns that
/// error, and everything kept for tickets that were not put is released. Putting them later still succeeds.
pub fn freed(object: u64, kind: Kind) {
    ur_ipc::freed(object, kind);
    given().freed(kind, object); // after `ur_ipc` has recorded it: what stays of each handle refers to that
}

fn supported(is: bool, entry: &'static str) -> Result<()> {
    let why = || {
        format!(
            "{entry}: the context's devices do not share this with other processes \
             (UR_DEVICE_INFO_IPC_MEMORY_SUPPORT_EXP, …_IPC_PHYSICAL_MEMORY_SUPPORT_EXP and \
             …_IPC_EVENT_SUPPORT_EXP say what a device shares)"
        )
    };
    Error::unless(is, ErrorCode::UnsupportedFeature, why)
}
fn refused<T>(why: impl Into<std::borrow::Cow<'static, str>>) -> Result<T> {
    Err(Error::new(ErrorCode::InvalidValue, why))
}
/// The bytes of a ticket, if their number is right.
fn ticket(data: HostBytes<'_>) -> Result<[u8; ENVELOPE_LEN]> {
    data.exactly().map_or_else(
        || {
            let why = format!(
                "a handle has {ENVELOPE_LEN} bytes and {} were given: send and receive all of it",
                data.len()
            );
            Err(Error::new(ErrorCode::InvalidValue, why).because(Reason::WrongSize))
        },
        Ok,
    )
}
/// Makes the export that the caller requests; the caller may read its bytes until it puts them.
fn give(offer: Offer) -> Result<(UsmPtr, usize)> {
    let (kind, object) = (offer.kind, offer.object);
    let export = Box::new(ur_ipc::export(offer)?);
    Ok((given().add(kind, object, export)?, ENVELOPE_LEN))
}
/// Withdraws the export whose bytes are at an address.
fn put(kind: Kind, bytes: UsmPtr) -> Result<()> {
    // The export is withdrawn after the lock is released.
    let taken = given().take(kind, bytes.addr());
    match taken {
        Some(handle) => {
            drop(handle);
            Ok(())
        }
        None => refused(format!(
            "{bytes:?} is not what Get returned for this kind of object, or it was put already: put the pointer, not a copy of the bytes, and once"
        )),
    }
}

/// `urIPCGetMemHandleExp`
///
/// # Errors
/// `INVALID_VALUE` for an address that is not in device memory of this process.
pub fn get_memory<A: SharesMemory>(
    context: Borrowed<'_, A::Context>,
    at: UsmPtr,
) -> Result<(UsmPtr, usize)> {
    supported(A::shares_memory(&context)?, "urIPCGetMemHandleExp")?;
    let offer = match A::locate(context, at)? {
        Located::Device(offer) => offer,
        Located::Host => {
            return refused(format!("{at:?} is host memory: only device memory can be shared"));
        }
        Located::Shared => {
            return refused(format!("{at:?} is shared USM: only device memory can be shared"));
        }
        Located::Opened => {
            return refused(format!("{at:?} was opened here: its exporter shares it, nobody else"));
        }
        Located::Freed => return refused(format!("{at:?} was freed")),
        Located::OtherContext => {
            return refused(format!("{at:?} belongs to another context: share it from there"));
        }
        Located::Nobodys => return refused(format!("{at:?} is in no USM allocation")),
    };
    let object = offer.object;
    let (bytes, size) = give(offer)?;
    if !A::is_allocated(object) {
        // Another thread freed it meanwhile, before the export was registered: record that now.
        freed(object, Kind::Memory);
        put(Kind::Memory, bytes)?;
        return refused(format!("{at:?} was freed while it was being shared"));
    }
    Ok((bytes, size))
}
/// `urIPCPutMemHandleExp`
///
/// # Errors
/// `INVALID_VALUE` for a pointer that Get did not return.
pub fn put_memory<A: SharesMemory>(context: Borrowed<'_, A::Context>, data: UsmPtr) -> Result<()> {
    supported(A::shares_memory(&context)?, "urIPCPutMemHandleExp")?;
    put(Kind::Memory, data)
}
/// `urIPCOpenMemHandleExp`
///
/// # Errors
/// `INVALID_VALUE` with the reason, and the errors of system limits.
pub fn open_memory<A: SharesMemory>(
    context: Borrowed<'_, A::Context>,
    device: Borrowed<'_, A::Device>,
    data: HostBytes<'_>,
) -> Result<UsmPtr> {
    supported(A::shares_memory(&context)?, "urIPCOpenMemHandleExp")?;
    A::open_memory(context, device, &ticket(data)?)
}
/// `urIPCCloseMemHandleExp`
///
/// # Errors
/// `INVALID_VALUE` for an address that no open returned.
pub fn close_memory<A: SharesMemory>(context: Borrowed<'_, A::Context>, at: UsmPtr) -> Result<()> {
    supported(A::shares_memory(&context)?, "urIPCCloseMemHandleExp")?;
    A::close_memory(context, at)
}

/// `urIPCGetPhysMemHandleExp`
///
/// # Errors
/// `INVALID_ARGUMENT` for an object that was not made to be shared.
pub fn get_physical_memory<A: SharesPhysicalMemory>(
    context: Borrowed<'_, A::Context>,
    memory: Borrowed<'_, A::PhysicalMem>,
) -> Result<(UsmPtr, usize)> {
    supported(A::shares_physical_memory(&context)?, "urIPCGetPhysMemHandleExp")?;
    if !A::is_shareable(&memory) {
        return Err(Error::new(
            ErrorCode::InvalidArgument,
            "the physical memory was not made to be shared: create it with UR_PHYSICAL_MEM_FLAG_ENABLE_IPC",
        ));
    }
    give(A::offer_physical_memory(memory)?)
}
/// `urIPCPutPhysMemHandleExp`
///
/// # Errors
/// `INVALID_VALUE` for a pointer that Get did not return.
pub fn put_physical_memory<A: SharesPhysicalMemory>(
    context: Borrowed<'_, A::Context>,
    data: UsmPtr,
) -> Result<()> {
    supported(A::shares_physical_memory(&context)?, "urIPCPutPhysMemHandleExp")?;
    put(Kind::PhysicalMemory, data)
}
/// `urIPCOpenPhysMemHandleExp`
///
/// # Errors
/// `INVALID_ARGUMENT` if the kernel denied it, `INVALID_VALUE` with the reason, and the errors of system limits.
pub fn open_physical_memory<A: SharesPhysicalMemory>(
    context: Borrowed<'_, A::Context>,
    device: Borrowed<'_, A::Device>,
    data: HostBytes<'_>,
) -> Result<Owned<A::PhysicalMem>> {
    supported(A::shares_physical_memory(&context)?, "urIPCOpenPhysMemHandleExp")?;
    Ok(A::open_physical_memory(context, device, &ticket(data)?)?)
}
/// `urIPCClosePhysMemHandleExp`, before the shim releases the caller's reference.
///
/// # Errors
/// `INVALID_VALUE` for an object that was not opened.
pub fn close_physical_memory<A: SharesPhysicalMemory>(
    context: Borrowed<'_, A::Context>,
    memory: Borrowed<'_, A::PhysicalMem>,
) -> Result<()> {
    supported(A::shares_physical_memory(&context)?, "urIPCClosePhysMemHandleExp")?;
    match A::is_opened(&memory) {
        true => Ok(()),
        false => refused("the physical memory was created here, not opened: release it instead"),
    }
}

/// `urIPCGetEventHandleExp`
///
/// # Errors
/// `INVALID_EVENT` for an event that was not made to be shared, or was opened; `UNSUPPORTED_FEATURE` for an event with
/// profiling, or whose device does not support sharing.
pub fn get_event<A: SharesEvents>(event: Borrowed<'_, A::Event>) -> Result<(UsmPtr, usize)> {
    let facts = A::event_facts(&event);
    supported(facts.is_supported, "urIPCGetEventHandleExp")?;
    if facts.is_opened {
        let why = "the event was opened here: its exporter shares it, nobody else";
        return Err(Error::new(ErrorCode::InvalidEvent, why));
    }
    if facts.has_profiling {
        let why = "an event that records times cannot be shared: create it without UR_EXP_EVENT_FLAG_ENABLE_PROFILING";
        return Err(Error::new(ErrorCode::UnsupportedFeature, why));
    }
    if !facts.is_shareable {
        let why = "the event was not made to be shared: create it with UR_EXP_EVENT_FLAG_IPC_EXP";
        return Err(Error::new(ErrorCode::InvalidEvent, why));
    }
    give(A::offer_event(event)?)
}
/// `urIPCPutEventHandleExp`
///
/// # Errors
/// `INVALID_VALUE` for a pointer that Get did not return.
pub fn put_event<A: SharesEvents>(context: Borrowed<'_, A::Context>, data: UsmPtr) -> Result<()> {
    supported(A::shares_events(&context), "urIPCPutEventHandleExp")?;
    put(Kind::Event, data)
}
/// `urIPCOpenEventHandleExp`
///
/// # Errors
/// `UNSUPPORTED_FEATURE` if a device of the context does not support it, `INVALID_VALUE` with the reason, and the
/// errors of system limits.
pub fn open_event<A: SharesEvents>(
    context: Borrowed<'_, A::Context>,
    data: HostBytes<'_>,
) -> Result<Owned<A::Event>> {
    supported(A::shares_events(&context), "urIPCOpenEventHandleExp")?;
    A::open_event(context, &ticket(data)?)
}

/// Implements the eleven entries for an adapter that shares all three kinds of object: `share_entries!(Cpu);`, or
/// `share_entries!(impl[D: Dialect] Family<D>);` for a generic one.
#[macro_export]
macro_rules! share_entries {
    ($adapter:ty) => {
        $crate::share_entries!(impl[] $adapter);
    };
    (impl[$($generics:tt)*] $adapter:ty) => {
        impl<$($generics)*> $crate::api::IpcExpApi for $adapter {
            fn ipc_get_mem_handle_exp(
                context: $crate::object::Borrowed<'_, Self::Context>,
                mem: $crate::memory::UsmPtr,
            ) -> $crate::error::Result<($crate::memory::UsmPtr, usize)> {
                $crate::share::get_memory::<Self>(context, mem)
            }
            fn ipc_put_mem_handle_exp(
                context: $crate::object::Borrowed<'_, Self::Context>,
                data: $crate::memory::UsmPtr,
            ) -> $crate::error::Result<()> {
                $crate::share::put_memory::<Self>(context, data)
            }
            fn ipc_open_mem_handle_exp(
                context: $crate::object::Borrowed<'_, Self::Context>,
                device: $crate::object::Borrowed<'_, Self::Device>,
                data: $crate::memory::HostBytes<'_>,
            ) -> $crate::error::Result<$crate::memory::UsmPtr> {
                $crate::share::open_memory::<Self>(context, device, data)
            }
            fn ipc_close_mem_handle_exp(
                context: $crate::object::Borrowed<'_, Self::Context>,
                mem: $crate::memory::UsmPtr,
            ) -> $crate::error::Result<()> {
                $crate::share::close_memory::<Self>(context, mem)
            }
            fn ipc_get_phys_mem_handle_exp(
                context: $crate::object::Borrowed<'_, Self::Context>,
                memory: $crate::object::Borrowed<'_, Self::PhysicalMem>,
            ) -> $crate::error::Result<($crate::memory::UsmPtr, usize)> {
                $crate::share::get_physical_memory::<Self>(context, memory)
            }
            fn ipc_put_phys_mem_handle_exp(
                context: $crate::object::Borrowed<'_, Self::Context>,
                data: $crate::memory::UsmPtr,
            ) -> $crate::error::Result<()> {
                $crate::share::put_physical_memory::<Self>(context, data)
            }
            fn ipc_open_phys_mem_handle_exp(
                context: $crate::object::Borrowed<'_, Self::Context>,
                device: $crate::object::Borrowed<'_, Self::Device>,
                data: $crate::memory::HostBytes<'_>,
            ) -> $crate::error::Result<$crate::object::Owned<Self::PhysicalMem>> {
                $crate::share::open_physical_memory::<Self>(context, device, data)
            }
            fn ipc_close_phys_mem_handle_exp(
                context: $crate::object::Borrowed<'_, Self::Context>,
                memory: $crate::object::Borrowed<'_, Self::PhysicalMem>,
            ) -> $crate::error::Result<()> {
                $crate::share::close_physical_memory::<Self>(context, memory)
            }
            fn ipc_get_event_handle_exp(
                event: $crate::object::Borrowed<'_, Self::Event>,
            ) -> $crate::error::Result<($crate::memory::UsmPtr, usize)> {
                $crate::share::get_event::<Self>(event)
            }
            fn ipc_put_event_handle_exp(
                context: $crate::object::Borrowed<'_, Self::Context>,
                data: $crate::memory::UsmPtr,
            ) -> $crate::error::Result<()> {
                $crate::share::put_event::<Self>(context, data)
            }
            fn ipc_open_event_handle_exp(
                context: $crate::object::Borrowed<'_, Self::Context>,
                data: $crate::memory::HostBytes<'_>,
            ) -> $crate::error::Result<$crate::object::Owned<Self::Event>> {
                $crate::share::open_event::<Self>(context, data)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn putting_what_was_not_got_is_an_error() {
        let local = 0_u64;
        for kind in [Kind::Memory, Kind::PhysicalMemory, Kind::Event] {
            let error = put(kind, UsmPtr::new((&raw const local).cast()).unwrap()).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidValue);
            assert!(error.to_string().contains("put the pointer"), "{error}");
        }
    }
    #[test]
    fn what_devices_do_not_share_is_said_of_them() {
        let error = supported(false, "urIPCGetMemHandleExp").unwrap_err();
        assert_eq!(error.code(), ErrorCode::UnsupportedFeature);
        let said = error.to_string();
        assert!(said.contains("the context's devices") && !said.contains("adapter"), "{said}");
    }
    #[test]
    fn what_the_kernel_denied_has_its_own_code_for_physical_memory() {
        let denied = || ur_ipc::Error::new(ur_ipc::ErrorKind::Denied, "no");
        assert_eq!(Error::from(Refusal::from(denied())).code(), ErrorCode::InvalidArgument);
        assert_eq!(Error::from(denied()).code(), ErrorCode::InvalidValue);
        let gone = ur_ipc::Error::new(ur_ipc::ErrorKind::ExporterGone, "no");
        assert_eq!(Error::from(Refusal::from(gone)).code(), ErrorCode::InvalidValue);
    }
}
