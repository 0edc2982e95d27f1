//! An adapter without a device: just enough to test how the generated entries treat their arguments. The tests that use
//! it act as the C caller.
#![allow(dead_code, reason = "each test file uses its part")]
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU32, Ordering::SeqCst},
};
use ur_adapter::{
    api::*,
    entry,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::*,
    shim::BarrierEvent,
};
use ur_sys::*;

pub struct Toy;
pub struct Adapter;
pub struct Platform;
pub struct Device;
pub struct Context;
/// Counts its drops, visible to the test.
pub struct Event(pub Arc<AtomicU32>);
/// What commands on this queue do.
pub enum Queue {
    Working,
    Failing,
    Panicking,
}
impl Drop for Event {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

pub static TABLE: ur_dditable_t = entry::table::<Toy>();

macro_rules! bodies { ($($t:ident, $code:ident;)*) => { $(
    impl Body for $t {
        const TAG: Tag = Tag::new(Backend::Mock, Kind::$t);
        const INVALID: ErrorCode = ErrorCode::$code;
        fn slab() -> &'static Slab<Self> {
            static SLAB: Slab<$t> = Slab::new(&TABLE);
            &SLAB
        }
    }
)* } }
bodies! {
    Adapter, InvalidValue;
    Platform, InvalidPlatform;
    Device, InvalidDevice;
    Context, InvalidContext;
    Queue, InvalidQueue;
    Event, InvalidEvent;
}

impl Objects for Toy {
    type Adapter = Adapter;
    type Platform = Platform;
    type Device = Device;
    type Context = Context;
    type Event = Event;
    type Queue = Queue;
    type Program = Never<{ Kind::Program as u16 }>;
    type Kernel = Never<{ Kind::Kernel as u16 }>;
    type Sampler = Never<{ Kind::Sampler as u16 }>;
    type Mem = Never<{ Kind::Mem as u16 }>;
    type PhysicalMem = Never<{ Kind::PhysicalMem as u16 }>;
    type UsmPool = Never<{ Kind::UsmPool as u16 }>;
    type ExpExternalMem = Never<{ Kind::ExternalMem as u16 }>;
    type ExpExternalSemaphore = Never<{ Kind::ExternalSemaphore as u16 }>;
    type ExpCommandBuffer = Never<{ Kind::CommandBuffer as u16 }>;
    type ExpCommandBufferCommand = Never<{ Kind::CommandBufferCommand as u16 }>;
    type ExpGraph = Never<{ Kind::Graph as u16 }>;
    type ExpExecutableGraph = Never<{ Kind::ExecutableGraph as u16 }>;
}

/// The same three platforms for every caller.
pub fn platforms() -> &'static [Owned<Platform>] {
    static ALL: OnceLock<Vec<Owned<Platform>>> = OnceLock::new();
    ALL.get_or_init(|| (0..3).map(|_| Owned::new(Platform)).collect())
}
impl PlatformApi for Toy {
    fn platform_get(_: Borrowed<'_, Adapter>) -> Result<Vec<Owned<Platform>>> {
        Ok(platforms().to_vec())
    }
}
impl ContextApi for Toy {
    fn context_create(
        _: &[Borrowed<'_, Device>],
        _: Option<&ur_context_properties_t>,
    ) -> Result<Owned<Context>> {
        Ok(Owned::new(Context))
    }
    fn context_get_info(
        _: Borrowed<'_, Context>,
        name: ur_context_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_context_info_t::NUM_DEVICES => answer.value(&7u32),
            _ => Err(ErrorCode::UnsupportedEnumeration.into()),
        }
    }
}
impl EventApi for Toy {}
impl EnqueueApi for Toy {
    fn enqueue_events_wait(
        queue: Borrowed<'_, Queue>,
        _: &[Borrowed<'_, Event>],
        want_event: bool,
    ) -> Result<Option<Owned<Event>>> {
        match **queue {
            Queue::Working => Ok(want_event.then(|| Owned::new(Event(Arc::default())))),
            Queue::Failing => {
                Err(Error::new(ErrorCode::OutOfResources, "the toy is full; empty it"))
            }
            Queue::Panicking => panic!("a bug in an adapter"),
        }
    }
    fn enqueue_events_wait_with_barrier_ext(
        _: Borrowed<'_, Queue>,
        _: Option<&ur_exp_enqueue_ext_properties_t>,
        _: &[Borrowed<'_, Event>],
        event: BarrierEvent<'_, Event>,
    ) -> Result<Option<Owned<Event>>> {
        match event {
            BarrierEvent::Make => Ok(Some(Owned::new(Event(Arc::default())))),
            BarrierEvent::None | BarrierEvent::Signal(_) => Ok(None),
        }
    }
}

macro_rules! unsupported { ($($api:ident)*) => { $(impl $api for Toy {})* } }
unsupported! {
    AdapterApi DeviceApi DeviceExpApi EventExpApi ProgramApi ProgramExpApi KernelApi QueueApi
    QueueExpApi SamplerApi MemApi PhysicalMemApi EnqueueExpApi UsmApi UsmExpApi
    BindlessImagesExpApi CommandApi CommandBufferExpApi GraphExpApi IpcExpApi MemoryExportExpApi
    UsmP2pExpApi VirtualMemApi
}

/// A handle that the caller owns, and the number of drops of its body.
pub fn counted_event() -> (ur_event_handle_t, Arc<AtomicU32>) {
    let drops = Arc::default();
    let handle = Owned::new(Event(Arc::clone(&drops))).publish();
    (ur_event_handle_t(handle.cast()), drops)
}
pub fn event() -> ur_event_handle_t {
    counted_event().0
}
pub fn queue(kind: Queue) -> ur_queue_handle_t {
    ur_queue_handle_t(Owned::new(kind).publish().cast())
}
pub fn adapter() -> ur_adapter_handle_t {
    ur_adapter_handle_t(Owned::new(Adapter).publish().cast())
}
pub fn context() -> ur_context_handle_t {
    ur_context_handle_t(Owned::new(Context).publish().cast())
}
