//! The adapter without a backend: one platform, one device and objects of most kinds, which do nothing. It
//! isolates the cost and the checks of the entry points: loaders are measured and shims are fuzzed with it.
//! Its device reports no capabilities.
use std::{
    ffi::{CStr, c_void},
    sync::OnceLock,
};
use ur_adapter::default_answers::{Claim, Query, withdraw};
use ur_adapter::{
    api::*,
    entry,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Backend, Body, Borrowed, Kind, Never, Owned, Slab, Tag},
};
use ur_sys::*;

/// The adapter that does nothing.
#[derive(Debug)]
pub struct Null;

/// The object behind every handle of this adapter.
#[derive(Debug)]
pub struct Blank<const KIND: u16>;

/// The table of this adapter.
pub static TABLE: ur_dditable_t = entry::table::<Null>();

macro_rules! blanks { ($($object:ident = $kind:ident, $code:ident;)*) => { $(
    impl Body for Blank<{ Kind::$kind as u16 }> {
        const TAG: Tag = Tag::new(Backend::Null, Kind::$kind);
        const INVALID: ErrorCode = ErrorCode::$code;
        fn slab() -> &'static Slab<Self> {
            static SLAB: Slab<Blank<{ Kind::$kind as u16 }>> = Slab::new(&TABLE);
            &SLAB
        }
    }
    type $object = Blank<{ Kind::$kind as u16 }>;
)* } }
blanks! {
    Adapter = Adapter, InvalidValue;
    Platform = Platform, InvalidPlatform;
    Device = Device, InvalidDevice;
    Context = Context, InvalidContext;
    Queue = Queue, InvalidQueue;
    Event = Event, InvalidEvent;
    Program = Program, InvalidProgram;
    Kernel = Kernel, InvalidKernel;
    Sampler = Sampler, InvalidSampler;
    Mem = Mem, InvalidMemObject;
    PhysicalMem = PhysicalMem, InvalidMemObject;
    UsmPool = UsmPool, InvalidValue;
    CommandBuffer = CommandBuffer, InvalidCommandBufferExp;
    Graph = Graph, InvalidGraph;
}

impl Objects for Null {
    type Adapter = Adapter;
    type Platform = Platform;
    type Device = Device;
    type Context = Context;
    type Event = Event;
    type Queue = Queue;
    type Program = Program;
    type Kernel = Kernel;
    type Sampler = Sampler;
    type Mem = Mem;
    type PhysicalMem = PhysicalMem;
    type UsmPool = UsmPool;
    type ExpCommandBuffer = CommandBuffer;
    type ExpGraph = Graph;
    type ExpExternalMem = Never<{ Kind::ExternalMem as u16 }>;
    type ExpExternalSemaphore = Never<{ Kind::ExternalSemaphore as u16 }>;
    type ExpCommandBufferCommand = Never<{ Kind::CommandBufferCommand as u16 }>;
    type ExpExecutableGraph = Never<{ Kind::ExecutableGraph as u16 }>;
}

/// Objects of which a process has only one.
macro_rules! ones { ($($one:ident: $t:ty;)*) => { $(
    fn $one() -> Owned<$t> {
        static ONE: OnceLock<Owned<$t>> = OnceLock::new();
        ONE.get_or_init(|| Owned::new(Blank)).clone()
    }
)* } }
ones! {
    the_adapter: Adapter;
    the_platform: Platform;
    the_device: Device;
}

/// Answers a query as an adapter without any capability.
fn nothing(name: impl Query + std::fmt::Debug, answer: &mut Answer<'_>) -> Result<()> {
    let shape = name.shape().ok_or_else(|| {
        let why = format!("the adapter without a backend has no answer to {name:?}");
        Error::new(ErrorCode::UnsupportedEnumeration, why)
    })?;
    shape.answer(Claim::Nothing, none, answer)
}
/// Returns no handles.
fn none(_kind: Kind) -> Vec<*mut c_void> {
    vec![]
}

/// A query that supports only the reference count.
macro_rules! counts {
    ($get_info:ident, $object:ident, $name:ident, $entry:literal) => {
        fn $get_info(
            object: Borrowed<'_, $object>,
            name: $name,
            answer: &mut Answer<'_>,
        ) -> Result<()> {
            match name {
                $name::REFERENCE_COUNT => answer.value(&object.api_refs()),
                _ => Error::unsupported($entry),
            }
        }
    };
}
impl AdapterApi for Null {
    fn adapter_get() -> Result<Vec<Owned<Adapter>>> {
        Ok(vec![the_adapter()])
    }
    fn adapter_get_info(
        adapter: Borrowed<'_, Adapter>,
        name: ur_adapter_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_adapter_info_t::BACKEND => answer.value(&ur_backend_t::UNKNOWN.0),
            ur_adapter_info_t::REFERENCE_COUNT => answer.value(&adapter.api_refs()),
            ur_adapter_info_t::VERSION => answer.value(&1u32),
            other => nothing(other, answer),
        }
    }
}
impl PlatformApi for Null {
    fn platform_get(_adapter: Borrowed<'_, Adapter>) -> Result<Vec<Owned<Platform>>> {
        Ok(vec![the_platform()])
    }
    fn platform_get_info(
        _platform: Borrowed<'_, Platform>,
        name: ur_platform_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_platform_info_t::NAME => answer.str("Causeway null"),
            ur_platform_info_t::VENDOR_NAME => answer.str("Causeway"),
            ur_platform_info_t::VERSION => answer.str(env!("CARGO_PKG_VERSION")),
            ur_platform_info_t::PROFILE => answer.str("FULL_PROFILE"),
            ur_platform_info_t::BACKEND => answer.value(&ur_backend_t::UNKNOWN.0),
            ur_platform_info_t::ADAPTER => answer.handle(&the_adapter()),
            other => nothing(other, answer),
        }
    }
    fn platform_get_api_version(_platform: Borrowed<'_, Platform>) -> Result<ur_api_version_t> {
        Ok(ur_api_version_t::CURRENT)
    }
}
/// The device type for accelerators that fit no other type.
const KIND: ur_device_type_t = ur_device_type_t::CUSTOM;

impl DeviceApi for Null {
    fn device_get(
        _platform: Borrowed<'_, Platform>,
        kind: ur_device_type_t,
    ) -> Result<Vec<Owned<Device>>> {
        Ok(match kind {
            ur_device_type_t::ALL | ur_device_type_t::DEFAULT | KIND => vec![the_device()],
            _ => vec![],
        })
    }
    fn device_get_info(
        device: Borrowed<'_, Device>,
        name: ur_device_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_device_info_t::NAME => answer.str("null"),
            ur_device_info_t::TYPE => answer.value(&KIND.0),
            ur_device_info_t::PLATFORM => answer.handle(&the_platform()),
            ur_device_info_t::REFERENCE_COUNT => answer.value(&device.api_refs()),
            other => nothing(other, answer),
        }
    }
}
impl ContextApi for Null {
    counts!(context_get_info, Context, ur_context_info_t, "urContextGetInfo");
    fn context_create(
        _devices: &[Borrowed<'_, Device>],
        _properties: Option<&ur_context_properties_t>,
    ) -> Result<Owned<Context>> {
        Ok(Owned::new(Blank))
    }
}
impl QueueApi for Null {
    fn queue_create(
        _context: Borrowed<'_, Context>,
        _device: Borrowed<'_, Device>,
        _properties: Option<&ur_queue_properties_t>,
    ) -> Result<Owned<Queue>> {
        Ok(Owned::new(Blank))
    }
    fn queue_get_info(
        queue: Borrowed<'_, Queue>,
        name: ur_queue_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_queue_info_t::REFERENCE_COUNT => answer.value(&queue.api_refs()),
            ur_queue_info_t::SIZE => {
                let why = "only queues on a device have a size, and this one is on the host";
                Err(Error::new(ErrorCode::InvalidQueue, why))
            }
            _ => Error::unsupported("urQueueGetInfo"),
        }
    }
    fn queue_finish(_queue: Owned<Queue>) -> Result<()> {
        Ok(())
    }
    fn queue_flush(_queue: Borrowed<'_, Queue>) -> Result<()> {
        Ok(())
    }
}
impl EventApi for Null {
    counts!(event_get_info, Event, ur_event_info_t, "urEventGetInfo");
    fn event_wait(_events: &[Owned<Event>]) -> Result<()> {
        Ok(())
    }
}
impl EventExpApi for Null {
    fn event_create_exp(
        _context: Borrowed<'_, Context>,
        _device: Borrowed<'_, Device>,
        properties: &ur_exp_event_desc_t,
    ) -> Result<Owned<Event>> {
        if properties.flags.contains(ur_exp_event_flags_t::ENABLE_PROFILING) {
            let why = "nothing runs, so that there is nothing to time";
            return Err(Error::new(ErrorCode::UnsupportedFeature, why));
        }
        Ok(Owned::new(Blank))
    }
}
impl ProgramApi for Null {
    counts!(program_get_info, Program, ur_program_info_t, "urProgramGetInfo");
    fn program_create_with_binary(
        _context: Borrowed<'_, Context>,
        _devices: &[Borrowed<'_, Device>],
        _lengths: &[usize],
        _binaries: &[*const u8],
        _properties: Option<&ur_program_properties_t>,
    ) -> Result<Owned<Program>> {
        Ok(Owned::new(Blank))
    }
}
impl KernelApi for Null {
    counts!(kernel_get_info, Kernel, ur_kernel_info_t, "urKernelGetInfo");
    fn kernel_create(_program: Borrowed<'_, Program>, _name: &CStr) -> Result<Owned<Kernel>> {
        Ok(Owned::new(Blank))
    }
}
impl SamplerApi for Null {
    counts!(sampler_get_info, Sampler, ur_sampler_info_t, "urSamplerGetInfo");
    fn sampler_create(
        _context: Borrowed<'_, Context>,
        _desc: &ur_sampler_desc_t,
    ) -> Result<Owned<Sampler>> {
        Ok(Owned::new(Blank))
    }
}
impl MemApi for Null {
    counts!(mem_get_info, Mem, ur_mem_info_t, "urMemGetInfo");
    fn mem_buffer_create(
        _context: Borrowed<'_, Context>,
        _flags: ur_mem_flags_t,
        _size: usize,
        _properties: Option<&ur_buffer_properties_t>,
    ) -> Result<Owned<Mem>> {
        Ok(Owned::new(Blank))
    }
}
impl PhysicalMemApi for Null {
    counts!(physical_mem_get_info, PhysicalMem, ur_physical_mem_info_t, "urPhysicalMemGetInfo");
    fn physical_mem_create(
        _context: Borrowed<'_, Context>,
        _device: Borrowed<'_, Device>,
        _size: usize,
        _properties: Option<&ur_physical_mem_properties_t>,
    ) -> Result<Owned<PhysicalMem>> {
        Ok(Owned::new(Blank))
    }
}
impl UsmApi for Null {
    counts!(usm_pool_get_info, UsmPool, ur_usm_pool_info_t, "urUSMPoolGetInfo");
    fn usm_pool_create(
        _context: Borrowed<'_, Context>,
        _desc: &ur_usm_pool_desc_t,
    ) -> Result<Owned<UsmPool>> {
        Ok(Owned::new(Blank))
    }
}
impl CommandBufferExpApi for Null {
    counts!(
        command_buffer_get_info_exp,
        CommandBuffer,
        ur_exp_command_buffer_info_t,
        "urCommandBufferGetInfoExp"
    );
    fn command_buffer_create_exp(
        _context: Borrowed<'_, Context>,
        _device: Borrowed<'_, Device>,
        desc: &ur_exp_command_buffer_desc_t,
    ) -> Result<Owned<CommandBuffer>> {
        if desc.isUpdatable != 0 {
            let why = "the device says that it changes no recorded command";
            return Err(Error::new(ErrorCode::UnsupportedFeature, why));
        }
        Ok(Owned::new(Blank))
    }
}
impl GraphExpApi for Null {
    fn graph_create_exp(_context: Borrowed<'_, Context>) -> Result<Owned<Graph>> {
        Ok(Owned::new(Blank))
    }
    fn graph_destroy_exp(graph: Borrowed<'_, Graph>) -> Result<()> {
        withdraw(graph)
    }
}

impl BindlessImagesExpApi for Null {}
impl DeviceExpApi for Null {}
impl CommandApi for Null {}
impl EnqueueApi for Null {}
impl EnqueueExpApi for Null {}
impl IpcExpApi for Null {}
impl MemoryExportExpApi for Null {}
impl ProgramExpApi for Null {}
impl QueueExpApi for Null {}
impl UsmExpApi for Null {}
impl UsmP2pExpApi for Null {}
impl VirtualMemApi for Null {}
