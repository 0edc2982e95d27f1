//! Facts about a device, from the driver's attributes and from what this driver supports.
use super::{
    DriverDevice, Family,
    attribute::Attribute as A,
    device,
    driver::{Api, Dialect},
    native::device as native,
};
use std::sync::Arc;
use ur_hal::{
    Capabilities, Capability as C, DescribesDevices, DeviceFacts, DeviceKind, Error, ErrorKind,
    FloatFeatures as F, HardwareVersion, ImageLimits, PartitionsDevices, Result, UsmAccess,
    UsmSupport,
};

impl<D: Dialect> DescribesDevices for Family<D> {
    fn kind(_: &Arc<DriverDevice<D>>) -> DeviceKind {
        DeviceKind::Gpu
    }
    fn facts(device: &Arc<DriverDevice<D>>) -> Result<DeviceFacts> {
        let is_cuda = D::API == Api::Cuda;
        let version = native::version::<D>()?;
        let version = format!("{}.{}", version / 1000, version % 1000 / 10);
        let number = |attribute| Ok::<_, Error>(device.told(attribute)?.map(|n| n as u32));
        let ieee =
            F::DENORM | F::INF_NAN | F::ROUND_TO_NEAREST | F::ROUND_TO_ZERO | F::ROUND_TO_INF;
        let is_integrated = device.has(A::Integrated)?;
        Ok(DeviceFacts {
            name: native::name::<D>(device.number())?,
            vendor: if is_cuda { "NVIDIA Corporation" } else { "AMD Corporation" }.into(),
            vendor_id: if is_cuda { 0x10de } else { 0x1002 },
            driver_version: format!("{} {version}", D::NAME),
            runtime_version: version,
            extensions: "cl_khr_fp64 cl_khr_fp16 cl_khr_subgroups".into(),
            capabilities: capabilities(device)?,
            compute_units: device.get(A::Units)? as u32,
            registers: number(A::Registers)?,
            // What every driver accepts; some accept more on newer devices.
            argument_bytes: Some(4096),
            constant_arguments: Some(9),
            clock_mhz: number(A::Clock)?.map(|khz| khz / 1000),
            timer_resolution: Some(500), // that of the driver's events
            half: if has_since(device, 6)? { ieee | F::FMA } else { F::default() },
            single: ieee | F::FMA | F::CORRECTLY_ROUNDED_DIVIDE_SQRT,
            double: ieee | F::FMA,
            is_integrated,
            cache_line: Some(128),
            buffer_alignment: number(A::TextureAlignment)?,
            ..DeviceFacts::default()
        })
    }
    /// The SYCL runtime derives the architecture from this: 9.0 is sm_90.
    fn hardware_version(device: &Arc<DriverDevice<D>>) -> Result<Option<HardwareVersion>> {
        let (major, minor) = device.capability()?;
        let number = Some((major * 10 + minor) as u32);
        Ok(Some(HardwareVersion { text: format!("{major}.{minor}"), number }))
    }
    /// The driver does not report it; sysfs does.
    fn model_number(device: &Arc<DriverDevice<D>>) -> Result<Option<u32>> {
        let at = native::pci_address::<D>(device.number())?.to_lowercase();
        let file = format!("/sys/bus/pci/devices/{at}/device");
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let number = u32::from_str_radix(text.trim().trim_start_matches("0x"), 16);
        number.map(Some).map_err(|_| {
            let why =
                format!("the driver does not tell the model's number, and {file} cannot be read");
            Error::new(ErrorKind::UnknownOption, why)
        })
    }
    fn pci_address(device: &Arc<DriverDevice<D>>) -> Result<Option<String>> {
        native::pci_address::<D>(device.number()).map(Some)
    }
    fn free_memory(device: &Arc<DriverDevice<D>>) -> Result<Option<u64>> {
        Ok(Some(device.enter()?.memory()?.0 as u64))
    }
    fn memory_clock(device: &Arc<DriverDevice<D>>) -> Result<Option<u32>> {
        Ok(known(device, A::MemoryClock)?.map(|khz| khz as u32 / 1000))
    }
    fn bus_width(device: &Arc<DriverDevice<D>>) -> Result<Option<u32>> {
        Ok(known(device, A::BusWidth)?.map(|bits| bits as u32))
    }
    /// Two transfers of the bus width in each clock cycle.
    fn bandwidth(device: &Arc<DriverDevice<D>>) -> Result<Option<u64>> {
        let both = known(device, A::MemoryClock)?.zip(known(device, A::BusWidth)?);
        Ok(both.map(|(khz, bits)| khz as u64 * 1000 * 2 * bits as u64 / 8))
    }
    fn cache_size(device: &Arc<DriverDevice<D>>) -> Result<Option<u64>> {
        Ok(size(device, A::L2Cache)?.map(|bytes| bytes as u64))
    }
    fn constant_memory(device: &Arc<DriverDevice<D>>) -> Result<Option<u64>> {
        Ok(size(device, A::ConstantMemory)?.map(|bytes| bytes as u64))
    }
    /// Images are arrays that textures read and surfaces read and write: the smaller one of both limits counts.
    fn image_limits(device: &Arc<DriverDevice<D>>) -> Result<Option<ImageLimits>> {
        let least = |one, other| {
            let (one, other) = (size(device, one)?, size(device, other)?);
            Ok::<_, Error>(one.map(|side| side.min(other.unwrap_or(usize::MAX))))
        };
        Ok(Some(ImageLimits {
            are_supported: device::has_images::<D>(),
            two: [
                least(A::Texture2dWidth, A::Surface2dWidth)?,
                least(A::Texture2dHeight, A::Surface2dHeight)?,
            ],
            three: [
                least(A::Texture3dWidth, A::Surface3dWidth)?,
                least(A::Texture3dHeight, A::Surface3dHeight)?,
                least(A::Texture3dDepth, A::Surface3dDepth)?,
            ],
            layers: least(A::TextureLayers, A::SurfaceLayers)?,
            buffer: size(device, A::LinearWidth)?,
            ..ImageLimits::NONE
        }))
    }
    fn usm_support(device: &Arc<DriverDevice<D>>) -> Result<Option<UsmSupport>> {
        // Access at all; access by host and device at the same time; atomic operations that both observe.
        let access = |reached: bool, concurrent: bool, atomic: bool| {
            UsmAccess::of([
                (reached, UsmAccess::ACCESS),
                (reached && concurrent, UsmAccess::CONCURRENT),
                (reached && atomic, UsmAccess::ATOMIC),
                (reached && concurrent && atomic, UsmAccess::ATOMIC_CONCURRENT),
            ])
        };
        let (concurrent, atomic) = (device.has(A::ConcurrentManaged)?, device.has(A::HostAtomics)?);
        // Managed memory migrates to the processor that uses it, so atomic operations are always local to it.
        let managed = access(device.has(A::Managed)?, concurrent, concurrent);
        Ok(Some(UsmSupport {
            host: access(device.has(A::MapsHostMemory)?, true, atomic),
            device: UsmAccess::ALL,
            shared: managed,
            cross_shared: managed,
            system: access(device.has(A::Pageable)?, concurrent, atomic),
        }))
    }
    fn has_virtual_memory(device: &Arc<DriverDevice<D>>) -> Result<Option<bool>> {
        device.has(A::VirtualMemory).map(Some)
    }
}
impl<D: Dialect> PartitionsDevices for Family<D> {}
/// Whether the compute capability has at least this major version. AMD numbers its architectures differently, and all
/// supported ones have the features that need at most 6.
fn has_since<D: Dialect>(device: &DriverDevice<D>, major: i32) -> Result<bool> {
    match D::API {
        Api::Cuda => device.capability().map(|(ours, _)| ours >= major),
        Api::Hip => Ok(major <= 6),
    }
}
fn capabilities<D: Dialect>(device: &DriverDevice<D>) -> Result<Capabilities> {
    // Sub-groups and groups stay on one multiprocessor, and the device has a global timer.
    let only_cuda = [C::Compiler, C::Linker, C::Variables, C::KernelClocks, C::NativeAssert];
    let since_8 = [C::Bfloat16, C::Bfloat16Conversions, C::AsyncBarrier];
    let since_7 = [C::SequentialConsistency, C::IndependentSubGroups];
    let all = Capabilities::NONE
        .with_all_if(&only_cuda, D::API == Api::Cuda)
        .with_all_if(&since_8, has_since(device, 8)?)
        .with_all_if(&since_7, has_since(device, 7)?)
        .with_if(C::Atomics64, has_since(device, 6)?)
        .with_if(C::ErrorCorrection, device.has(A::Ecc)?)
        .with_if(C::OrderedAllocation, device.has(A::Pools)?)
        .with_if(C::Pinning, device.has(A::HostRegister)?);
    Ok(all)
}
fn size<D: Dialect>(device: &DriverDevice<D>, attribute: A) -> Result<Option<usize>> {
    Ok(device.told(attribute)?.map(|value| value.max(0) as usize))
}
/// The attribute's value, unless it is 0, which means for some that the driver does not report them.
fn known<D: Dialect>(device: &DriverDevice<D>, attribute: A) -> Result<Option<i32>> {
    Ok(device.told(attribute)?.filter(|value| *value != 0))
}
