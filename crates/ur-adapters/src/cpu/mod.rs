//! The CPU: the device that every machine has. Its queues are threads, its memory is memfds, its
//! events are words in shared memory. Kernels and images are not implemented yet and say so.
mod adapter;
mod context;
mod device;
mod host;
mod platform;

pub use context::Context;
use ur_adapter::{
    api::*,
    entry,
    error::ErrorCode,
    object::{Backend, Body, Kind, Never, Slab, Tag},
};
use ur_sys::ur_dditable_t;

/// The adapter of the host's own processor and memory.
#[derive(Debug)]
pub struct Cpu;

/// What `ur_adapter_handle_t` points at.
#[derive(Debug)]
pub struct Adapter;
/// What `ur_platform_handle_t` points at.
#[derive(Debug)]
pub struct Platform;
/// What `ur_device_handle_t` points at.
#[derive(Debug)]
pub struct Device;

/// The whole of this adapter, as C sees it.
pub static TABLE: ur_dditable_t = entry::table::<Cpu>();

macro_rules! bodies { ($($t:ty, $kind:ident, $code:ident;)*) => { $(
    impl Body for $t {
        const TAG: Tag = Tag::new(Backend::Cpu, Kind::$kind);
        const INVALID: ErrorCode = ErrorCode::$code;
        fn slab() -> &'static Slab<Self> {
            static SLAB: Slab<$t> = Slab::new(&TABLE);
            &SLAB
        }
    }
)* } }
bodies! {
    Adapter, Adapter, InvalidValue;
    Platform, Platform, InvalidPlatform;
    Device, Device, InvalidDevice;
    Context, Context, InvalidContext;
}
