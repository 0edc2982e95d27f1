//! The device: the processor and the memory of this host.
use super::{
    Cpu,
    adapter::version,
    host::{free_memory, host, part_uuid, uuid},
    image::LONGEST_SIDE,
    is_opencl,
    native_code::ARGUMENT_BYTES,
    partition::Part,
};
use std::sync::Arc;
use ur_hal::{
    Capabilities, Capability, Clocks, DescribesDevices, DeviceFacts, DeviceKind, FloatFeatures,
    HardwareVersion, ImageLimits, NativeHandles, OpensDevices, PlatformFacts, Result, UsmAccess,
    UsmSupport, VectorWidths, host_clock,
};

/// The whole processor (the root device), or a part of it (a sub-device).
#[derive(Debug)]
pub struct DriverDevice {
    pub(super) part: Option<Part>,
}
/// By identity: partitioning creates new devices each time.
impl PartialEq for DriverDevice {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}
impl DriverDevice {
    /// The logical processors of a sub-device, by the kernel's numbers; `None` for the root device, which has
    /// all that this process may run on.
    pub fn cpus(&self) -> Option<&[usize]> {
        self.part.as_ref().map(|part| &*part.cpus)
    }
    /// The number of logical processors.
    pub fn compute_units(&self) -> usize {
        self.cpus().map_or(host().cores as usize, <[usize]>::len)
    }
}
/// A context; it has no state, because the device can access all memory.
#[derive(Debug)]
pub struct DriverContext;

impl OpensDevices for Cpu {
    const NAME: &'static str = "a native CPU";
    fn devices() -> Result<Vec<Arc<DriverDevice>>> {
        Ok(vec![Arc::new(DriverDevice { part: None })])
    }
    fn platform(_: &Arc<DriverDevice>) -> Result<PlatformFacts> {
        Ok(PlatformFacts {
            name: "Causeway native CPU".into(),
            vendor: "Causeway".into(),
            version: version(is_opencl()).into(),
            extensions: String::new(),
            handle: None,
        })
    }
    fn parent(device: &Arc<DriverDevice>) -> Option<Arc<DriverDevice>> {
        device.part.as_ref().map(|part| Arc::clone(&part.parent))
    }
    /// The machine's: what belongs to a part can be opened for all of it.
    fn uuid(_: &Arc<DriverDevice>) -> Result<[u8; 16]> {
        Ok(uuid()?)
    }
    fn clocks(_: &Arc<DriverDevice>) -> Result<Clocks> {
        let now = host_clock();
        Ok(Clocks { device: now, host: now })
    }
    fn open(_: &[Arc<DriverDevice>]) -> Result<DriverContext> {
        Ok(DriverContext)
    }
}
impl NativeHandles for Cpu {}

impl DescribesDevices for Cpu {
    fn kind(_: &Arc<DriverDevice>) -> DeviceKind {
        DeviceKind::Cpu
    }
    fn facts(device: &Arc<DriverDevice>) -> Result<DeviceFacts> {
        use Capability as C;
        use FloatFeatures as F;
        let (host, release) = (host(), env!("CARGO_PKG_VERSION"));
        let ieee = F::DENORM | F::INF_NAN | F::ROUND_TO_NEAREST | F::ROUND_TO_ZERO;
        let floats = ieee | F::ROUND_TO_INF | F::FMA;
        Ok(DeviceFacts {
            name: host.name.clone(),
            vendor: host.vendor.clone(),
            driver_version: release.into(),
            runtime_version: release.into(),
            // Any host pointer can be used as it is.
            capabilities: Capabilities::of(&[
                C::Linker,
                C::BuildsForParts,
                C::Variables,
                C::NativeKernels,
                C::Atomics64,
                C::SequentialConsistency,
                C::SrgbImages,
                C::OrderedAllocation,
                C::Pinning,
            ]),
            compute_units: device.compute_units() as u32,
            argument_bytes: Some(ARGUMENT_BYTES),
            clock_mhz: Some(host.clock_mhz),
            timer_resolution: Some(1),
            single: floats,
            double: floats,
            is_integrated: true,
            is_uncached: host.cache == 0,
            has_local_in_memory: true,
            cache_line: Some(host.line),
            buffer_alignment: Some(host.line), // which suffices for the widest vectors too
            ..DeviceFacts::default()
        })
    }
    /// Derived from its processors.
    fn uuid_of_part(device: &Arc<DriverDevice>) -> Result<Option<[u8; 16]>> {
        Ok(device.cpus().map(part_uuid).transpose()?)
    }
    fn hardware_version(_: &Arc<DriverDevice>) -> Result<Option<HardwareVersion>> {
        Ok(Some(HardwareVersion { text: version(is_opencl()).into(), number: None }))
    }
    fn vector_widths(_: &Arc<DriverDevice>) -> Result<[VectorWidths; 2]> {
        let lanes = |bytes: u32| host().vector_bytes() / bytes;
        Ok([[lanes(1), lanes(2), lanes(4), lanes(8), lanes(4), lanes(8), 0]; 2])
    }
    fn free_memory(_: &Arc<DriverDevice>) -> Result<Option<u64>> {
        Ok(free_memory())
    }
    fn cache_size(_: &Arc<DriverDevice>) -> Result<Option<u64>> {
        Ok(Some(host().cache))
    }
    fn constant_memory(_: &Arc<DriverDevice>) -> Result<Option<u64>> {
        Ok(Some(host().memory))
    }
    /// There is no other device.
    fn usm_support(_: &Arc<DriverDevice>) -> Result<Option<UsmSupport>> {
        let all = UsmAccess::ALL;
        Ok(Some(UsmSupport { host: all, device: all, shared: all, cross_shared: all, system: all }))
    }
    fn has_virtual_memory(_: &Arc<DriverDevice>) -> Result<Option<bool>> {
        Ok(Some(true))
    }
    fn exports_memory(_: &Arc<DriverDevice>) -> Result<Option<bool>> {
        Ok(Some(true))
    }
    /// Images are in host memory: the limits are those of the arithmetic.
    fn image_limits(_: &Arc<DriverDevice>) -> Result<Option<ImageLimits>> {
        let side = Some(LONGEST_SIDE);
        Ok(Some(ImageLimits {
            are_supported: true,
            two: [side; 2],
            three: [side; 3],
            layers: side,
            ..ImageLimits::NONE
        }))
    }
}
