//! The device. One, which is there as long as the process is; adapter, platform and contexts are the core's.
use super::{Example, memory::TOTAL};
use std::{sync::OnceLock, time::Instant};
use ur_adapter::{
    default_answers::{Claim, Query},
    error::Result,
    info::Answer,
    object::Object,
};
use ur_core::over_driver::{self, device::HasDevices};
use ur_hal::{Clocks, NativeHandles, OpensDevices, PlatformFacts};
use ur_sys::*;

// What handles of C point at.
pub type Device = over_driver::Device<Example>;
pub type Context = over_driver::Context<Example>;

/// Who the device is to other processes: a ticket of another device is refused by it. A real one asks its driver.
pub const UUID: [u8; 16] = *b"example device 1";
/// The time on the device's clock, in nanoseconds.
pub fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64 + 1
}
/// What is said that queues can be asked for. Of the hints none makes a difference.
fn flags() -> ur_queue_flags_t {
    use ur_queue_flags_t as F;
    let hints =
        F::PRIORITY_LOW | F::PRIORITY_HIGH | F::SUBMISSION_BATCHED | F::SUBMISSION_IMMEDIATE;
    F::OUT_OF_ORDER_EXEC_MODE_ENABLE | F::PROFILING_ENABLE | F::DISCARD_EVENTS | hints
}
/// The driver's verbs. Of a device there is nothing to say but that it is there, and of a context nothing at all.
impl OpensDevices for Example {
    const NAME: &'static str = "the example device";
    fn devices() -> ur_hal::Result<Vec<()>> {
        Ok(vec![()])
    }
    fn platform(_: &()) -> ur_hal::Result<PlatformFacts> {
        let [name, vendor, version, extensions] =
            ["Example", "Nobody", env!("CARGO_PKG_VERSION"), ""].map(String::from);
        Ok(PlatformFacts { name, vendor, version, extensions, handle: None })
    }
    fn clocks(_: &()) -> ur_hal::Result<Clocks> {
        let now = now();
        Ok(Clocks { device: now, host: now })
    }
    fn open(_: &[()]) -> ur_hal::Result<()> {
        Ok(())
    }
}
impl NativeHandles for Example {}
impl HasDevices for Example {
    fn kind(_: &()) -> ur_device_type_t {
        ur_device_type_t::GPU // of SYCL's kinds the nearest: its runtime takes CPUs and GPUs alone
    }
    /// What the core cannot know. What nobody says here or there is UNSUPPORTED_ENUMERATION.
    fn tell(_: &(), name: ur_device_info_t, answer: &mut Answer<'_>) -> Result<bool> {
        use ur_device_info_t as I;
        match name {
            I::NAME => answer.str("Files and a thread"),
            I::VENDOR => answer.str("Nobody"),
            I::DRIVER_VERSION | I::VERSION => answer.str(env!("CARGO_PKG_VERSION")),
            I::UUID => answer.value(&UUID),
            I::GLOBAL_MEM_SIZE | I::MAX_MEM_ALLOC_SIZE => answer.value(&(TOTAL as u64)),
            I::PROFILING_TIMER_RESOLUTION => answer.value(&1usize),
            I::QUEUE_PROPERTIES | I::QUEUE_ON_HOST_PROPERTIES => answer.value(&flags().bits()),
            I::USM_HOST_SUPPORT | I::USM_DEVICE_SUPPORT | I::USM_SINGLE_SHARED_SUPPORT => {
                answer.value(&ur_device_usm_access_capability_flags_t::ACCESS.bits())
            }
            I::HOST_UNIFIED_MEMORY
            | I::IPC_MEMORY_SUPPORT_EXP
            | I::IPC_EVENT_SUPPORT_EXP
            | I::IPC_PHYSICAL_MEMORY_SUPPORT_EXP
            | I::VIRTUAL_MEMORY_SUPPORT
            | I::PER_EVENT_PROFILING_SUPPORT_EXP
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
            | I::LINKER_AVAILABLE
            | I::MAX_CLOCK_FREQUENCY
            | I::MAX_COMPUTE_UNITS
            | I::MAX_CONSTANT_BUFFER_SIZE
            | I::MAX_PARAMETER_SIZE
            | I::MEM_BASE_ADDR_ALIGN
            | I::NUM_COMPUTE_UNITS
            | I::SINGLE_FP_CONFIG
            | I::USM_CROSS_SHARED_SUPPORT
            | I::USM_HOST_ALLOC_REGISTER_SUPPORT_EXP
            | I::USM_SYSTEM_SHARED_SUPPORT
            | I::VENDOR_ID => match name.shape() {
                Some(shape) => shape.answer(Claim::Nothing, |_| vec![], answer),
                None => return Ok(false),
            },
            _ => return Ok(false),
        }?;
        Ok(true)
    }
    fn wait_for_device(_: &Object<Device>) -> Result<()> {
        super::stream::moments(0).iter().for_each(super::stream::Moment::wait);
        Ok(())
    }
}
