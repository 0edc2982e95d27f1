//! The device. One, which is there as long as the process is; adapter, platform and contexts are the core's.
use super::Example;
use std::{sync::OnceLock, time::Instant};
use ur_hal::{
    Capabilities, Capability, Clocks, DescribesDevices, DeviceFacts, DeviceKind, HardwareVersion,
    NativeHandles, OpensDevices, PartitionsDevices, PlatformFacts, Result, UsmAccess, UsmSupport,
};

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
    fn devices() -> Result<Vec<()>> {
        Ok(vec![()])
    }
    fn platform(_: &()) -> Result<PlatformFacts> {
        let [name, vendor, version, extensions] =
            ["Example", "Nobody", env!("CARGO_PKG_VERSION"), ""].map(String::from);
        Ok(PlatformFacts { name, vendor, version, extensions, handle: None })
    }
    fn uuid(_: &()) -> Result<[u8; 16]> {
        Ok(UUID)
    }
    fn clocks(_: &()) -> Result<Clocks> {
        let now = now();
        Ok(Clocks { device: now, host: now })
    }
    fn open(_: &[()]) -> Result<()> {
        Ok(())
    }
}
impl NativeHandles for Example {}
impl PartitionsDevices for Example {}
/// What the core cannot know. Of what is not said here the device has nothing.
impl DescribesDevices for Example {
    fn kind(_: &()) -> DeviceKind {
        DeviceKind::Gpu // of SYCL's kinds the nearest: its runtime takes CPUs and GPUs alone
    }
    fn facts(_: &()) -> Result<DeviceFacts> {
        use Capability::{OrderedAllocation, SequentialConsistency};
        Ok(DeviceFacts {
            name: "Files and a thread".into(),
            vendor: "Nobody".into(),
            driver_version: env!("CARGO_PKG_VERSION").into(),
            capabilities: Capabilities::of(&[OrderedAllocation, SequentialConsistency]),
            timer_resolution: Some(1),
            is_integrated: true,
            ..DeviceFacts::default()
        })
    }
    fn hardware_version(_: &()) -> Result<Option<HardwareVersion>> {
        Ok(Some(HardwareVersion { text: env!("CARGO_PKG_VERSION").into(), number: None }))
    }
    fn usm_support(_: &()) -> Result<Option<UsmSupport>> {
        let (host, device, shared) = (UsmAccess::ACCESS, UsmAccess::ACCESS, UsmAccess::ACCESS);
        Ok(Some(UsmSupport { host, device, shared, ..UsmSupport::default() }))
    }
    fn has_virtual_memory(_: &()) -> Result<Option<bool>> {
        Ok(Some(true))
    }
}
