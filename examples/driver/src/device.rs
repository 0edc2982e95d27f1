//! The device. One, which is there as long as the process is; adapter, platform and contexts are the core's.
use super::{Example, memory::TOTAL};
use std::{sync::OnceLock, time::Instant};
use ur_adapter::{error::Result, info::Answer, object::Object};
use ur_core::over_driver::{self, device::HasDevices};
use ur_hal::{Clocks, NativeHandles, OpensDevices, PlatformFacts};
use ur_sys::*;

// What handles of C point at.
pub type Device = over_driver::Device<Example>;

/// Who the device is to other processes: a ticket of another device is refused by it. A real one asks its driver.
pub const UUID: [u8; 16] = *b"example device 1";
/// The time on the device's clock, in nanoseconds.
pub fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64 + 1
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
    fn uuid(_: &()) -> ur_hal::Result<[u8; 16]> {
        Ok(UUID)
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
    /// What the core cannot know. Of what is not said here or there the device has none.
    fn tell(_: &(), name: ur_device_info_t, answer: &mut Answer<'_>) -> Result<bool> {
        use ur_device_info_t as I;
        match name {
            I::NAME => answer.str("Files and a thread"),
            I::VENDOR => answer.str("Nobody"),
            I::DRIVER_VERSION | I::VERSION => answer.str(env!("CARGO_PKG_VERSION")),
            I::UUID => answer.value(&UUID),
            I::GLOBAL_MEM_SIZE | I::MAX_MEM_ALLOC_SIZE => answer.value(&(TOTAL as u64)),
            I::PROFILING_TIMER_RESOLUTION => answer.value(&1usize),
            I::USM_HOST_SUPPORT | I::USM_DEVICE_SUPPORT | I::USM_SINGLE_SHARED_SUPPORT => {
                answer.value(&ur_device_usm_access_capability_flags_t::ACCESS.bits())
            }
            I::HOST_UNIFIED_MEMORY
            | I::IPC_MEMORY_SUPPORT_EXP
            | I::IPC_EVENT_SUPPORT_EXP
            | I::IPC_PHYSICAL_MEMORY_SUPPORT_EXP
            | I::VIRTUAL_MEMORY_SUPPORT
            | I::ASYNC_USM_ALLOCATIONS_SUPPORT_EXP => answer.bool(true),
            _ => return Ok(false),
        }?;
        Ok(true)
    }
    fn wait_for_device(_: &Object<Device>) -> Result<()> {
        super::stream::moments(0).iter().for_each(super::stream::Moment::wait);
        Ok(())
    }
}
