//! Adapter, platform, device and contexts. One of each of the first three, which are made when they are first asked for.
use super::{Example, NAME, event::now, memory::TOTAL};
use std::sync::{Arc, Mutex, OnceLock};
use ur_adapter::{
    api::{AdapterApi, ContextApi, PlatformApi},
    blank::{Claim, Query},
    callback::ContextDeleter,
    error::{Error, ErrorCode, Result},
    info::Answer,
    log,
    object::{Borrowed, Object, Owned},
};
use ur_core::over_driver::{device::HasDevices, own_handle, usm_pool::DevicePools};
use ur_hal::Clocks;
use ur_lock::locked;
use ur_sys::*;

#[derive(Debug)]
pub struct Adapter;
#[derive(Debug)]
pub struct Platform;
#[derive(Debug)]
pub struct Device;

macro_rules! ones { ($($one:ident: $t:ident;)*) => { $(
    pub fn $one() -> Owned<$t> {
        static ONE: OnceLock<Owned<$t>> = OnceLock::new();
        ONE.get_or_init(|| Owned::new($t)).clone()
    }
)* } }
ones! { the_adapter: Adapter; the_platform: Platform; the_device: Device; }

/// Who the device is to other processes: a ticket of another device is refused by it. A real one asks its driver.
pub const UUID: [u8; 16] = *b"example device 1";
/// The refusal of a property that there is not.
pub fn unknown(name: impl std::fmt::Debug) -> Error {
    let why = format!("the example device has no answer to {name:?}");
    Error::new(ErrorCode::UnsupportedEnumeration, why)
}

impl AdapterApi for Example {
    fn adapter_get() -> Result<Vec<Owned<Adapter>>> {
        log::open(super::BACKEND, NAME);
        Ok(vec![the_adapter()])
    }
    fn adapter_get_info(
        adapter: Borrowed<'_, Adapter>,
        name: ur_adapter_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_adapter_info_t::BACKEND => answer.value(&ur_backend_t::OFFLOAD.0),
            ur_adapter_info_t::REFERENCE_COUNT => answer.value(&adapter.api_refs()),
            ur_adapter_info_t::VERSION => answer.value(&1u32),
            _ => Err(unknown(name)),
        }
    }
}
impl PlatformApi for Example {
    fn platform_get(_: Borrowed<'_, Adapter>) -> Result<Vec<Owned<Platform>>> {
        Ok(vec![the_platform()])
    }
    fn platform_get_info(
        _: Borrowed<'_, Platform>,
        name: ur_platform_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_platform_info_t::NAME => answer.str("Example"),
            ur_platform_info_t::VENDOR_NAME => answer.str("Nobody"),
            ur_platform_info_t::VERSION => answer.str(env!("CARGO_PKG_VERSION")),
            ur_platform_info_t::EXTENSIONS => answer.str(""),
            ur_platform_info_t::PROFILE => answer.str("FULL_PROFILE"),
            ur_platform_info_t::BACKEND => answer.value(&ur_backend_t::OFFLOAD.0),
            ur_platform_info_t::ADAPTER => answer.handle(&the_adapter()),
            _ => Err(unknown(name)),
        }
    }
    fn platform_get_api_version(_: Borrowed<'_, Platform>) -> Result<ur_api_version_t> {
        Ok(ur_api_version_t::CURRENT)
    }
}
impl HasDevices for Example {
    fn roots(_: &Platform) -> Vec<Owned<Device>> {
        vec![the_device()]
    }
    fn kind(_: &Device) -> ur_device_type_t {
        ur_device_type_t::MCA // no GPU and no CPU
    }
    fn platform(_: &Device) -> Owned<Platform> {
        the_platform()
    }
    /// What the core cannot know. What nobody says here or there is UNSUPPORTED_ENUMERATION.
    fn tell(
        _: Borrowed<'_, Device>,
        name: ur_device_info_t,
        answer: &mut Answer<'_>,
    ) -> Option<Result<()>> {
        use ur_device_info_t as I;
        Some(match name {
            I::NAME => answer.str("Files and a thread"),
            I::VENDOR => answer.str("Nobody"),
            I::DRIVER_VERSION | I::VERSION => answer.str(env!("CARGO_PKG_VERSION")),
            I::UUID => answer.value(&UUID),
            I::GLOBAL_MEM_SIZE | I::MAX_MEM_ALLOC_SIZE => answer.value(&(TOTAL as u64)),
            I::PROFILING_TIMER_RESOLUTION => answer.value(&1usize),
            I::QUEUE_PROPERTIES | I::QUEUE_ON_HOST_PROPERTIES => {
                answer.value(&super::queue::flags().bits())
            }
            I::USM_HOST_SUPPORT | I::USM_DEVICE_SUPPORT | I::USM_SINGLE_SHARED_SUPPORT => {
                answer.value(&ur_device_usm_access_capability_flags_t::ACCESS.bits())
            }
            I::HOST_UNIFIED_MEMORY
            | I::IPC_MEMORY_SUPPORT_EXP
            | I::IPC_EVENT_SUPPORT_EXP
            | I::ASYNC_USM_ALLOCATIONS_SUPPORT_EXP => answer.bool(true),
            // It has none of these, which is said in the form that each answer has.
            I::ATOMIC_64
            | I::BACKEND_RUNTIME_VERSION
            | I::COMPILER_AVAILABLE
            | I::DOUBLE_FP_CONFIG
            | I::ERROR_CORRECTION_SUPPORT
            | I::EXTENSIONS
            | I::GLOBAL_MEM_CACHELINE_SIZE
            | I::GLOBAL_MEM_CACHE_SIZE
            | I::GLOBAL_VARIABLE_SUPPORT
            | I::HALF_FP_CONFIG
            | I::IL_VERSION
            | I::IMAGE2D_MAX_HEIGHT
            | I::IMAGE2D_MAX_WIDTH
            | I::IMAGE3D_MAX_DEPTH
            | I::IMAGE3D_MAX_HEIGHT
            | I::IMAGE3D_MAX_WIDTH
            | I::IMAGE_MAX_ARRAY_SIZE
            | I::IMAGE_MAX_BUFFER_SIZE
            | I::IMAGE_SUPPORT
            | I::IPC_PHYSICAL_MEMORY_SUPPORT_EXP
            | I::LINKER_AVAILABLE
            | I::MAX_CLOCK_FREQUENCY
            | I::MAX_COMPUTE_UNITS
            | I::MAX_CONSTANT_BUFFER_SIZE
            | I::MAX_PARAMETER_SIZE
            | I::MEM_BASE_ADDR_ALIGN
            | I::NUM_COMPUTE_UNITS
            | I::PER_EVENT_PROFILING_SUPPORT_EXP
            | I::SINGLE_FP_CONFIG
            | I::USM_CROSS_SHARED_SUPPORT
            | I::USM_HOST_ALLOC_REGISTER_SUPPORT_EXP
            | I::USM_SYSTEM_SHARED_SUPPORT
            | I::VENDOR_ID
            | I::VIRTUAL_MEMORY_SUPPORT => name.shape()?.answer(Claim::Nothing, |_| vec![], answer),
            _ => return None,
        })
    }
    fn native_device(device: &Object<Device>) -> ur_native_handle_t {
        device.as_handle().expose_provenance()
    }
    fn device_of_native(native: ur_native_handle_t) -> Result<Owned<Device>> {
        own_handle::find(native)
    }
    fn clocks(_: &Device) -> Result<Clocks> {
        let now = now();
        Ok(Clocks { device: now, host: now })
    }
    fn wait_for_device(_: &Object<Device>) -> Result<()> {
        super::queue::moments(0).iter().for_each(super::queue::Moment::wait);
        Ok(())
    }
}

/// Devices whose objects can be used together.
#[derive(Debug)]
pub struct Context {
    devices: Vec<Owned<Device>>,
    deleters: Mutex<Vec<ContextDeleter>>,
    pub pools: DevicePools<Example>,
    pub driver: Arc<DriverContext>,
}
/// What a context is to the driver: nothing.
#[derive(Debug)]
pub struct DriverContext;
impl Context {
    pub fn devices(&self) -> &[Owned<Device>] {
        &self.devices
    }
    pub fn check(&self, device: Borrowed<'_, Device>) -> Result<()> {
        match self.devices.iter().any(|one| one.same(&device)) {
            true => Ok(()),
            false => Err(Error::new(ErrorCode::InvalidDevice, "the context has another device")),
        }
    }
}
impl Drop for Context {
    fn drop(&mut self) {
        let deleters = std::mem::take(&mut *locked(&self.deleters));
        deleters.into_iter().for_each(ContextDeleter::call);
    }
}
impl ContextApi for Example {
    fn context_create(
        devices: &[Borrowed<'_, Device>],
        _: Option<&ur_context_properties_t>,
    ) -> Result<Owned<Context>> {
        if devices.is_empty() {
            return Err(Error::new(ErrorCode::InvalidValue, "a context needs a device"));
        }
        let devices = devices.iter().map(|one| one.own()).collect::<Result<_>>()?;
        let (deleters, pools) = (Mutex::default(), DevicePools::default());
        Ok(Owned::new(Context { devices, deleters, pools, driver: Arc::new(DriverContext) }))
    }
    fn context_get_info(
        context: Borrowed<'_, Context>,
        name: ur_context_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_context_info_t as I;
        match name {
            I::NUM_DEVICES => answer.value(&(context.devices.len() as u32)),
            I::DEVICES => answer.handles(context.devices.iter().map(|one| &**one)),
            I::REFERENCE_COUNT => answer.value(&context.api_refs()),
            I::USM_MEMCPY2D_SUPPORT | I::USM_FILL2D_SUPPORT => answer.bool(true),
            _ => Err(unknown(name)),
        }
    }
    fn context_set_extended_deleter(
        context: Borrowed<'_, Context>,
        deleter: ContextDeleter,
    ) -> Result<()> {
        locked(&context.deleters).push(deleter);
        Ok(())
    }
}
