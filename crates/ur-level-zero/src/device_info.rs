//! Facts about a device, from the driver's properties, as Unified Runtime's own adapters for Level Zero answer.
use super::{
    DriverDevice, LevelZero,
    extensions::Extensions,
    native::{device as native, driver::text, sysman::Sysman, virtual_memory},
    options,
};
use std::sync::Arc;
use ur_hal::{
    BlockAccess, Capabilities, Capability as C, DescribesDevices, DeviceFacts, DeviceKind,
    ErrorKind, FloatFeatures, HardwareVersion, ImageLimits, Luid, Result, ThrottleReasons,
    UnitLayout, UsmAccess, UsmSupport, VectorWidths,
};
use ze_sys::*;

impl DescribesDevices for LevelZero {
    fn kind(device: &Arc<DriverDevice>) -> DeviceKind {
        match device.properties().type_ {
            ZE_DEVICE_TYPE_CPU => DeviceKind::Cpu,
            ZE_DEVICE_TYPE_FPGA => DeviceKind::Fpga,
            ZE_DEVICE_TYPE_MCA => DeviceKind::Mca,
            ZE_DEVICE_TYPE_VPU => DeviceKind::Vpu,
            _ => DeviceKind::Gpu,
        }
    }
    fn facts(device: &Arc<DriverDevice>) -> Result<DeviceFacts> {
        let (code, properties) = (device.code(), device.properties());
        let version = version(device.platform().version());
        let spirv = code.spirvVersionSupported;
        Ok(DeviceFacts {
            name: text(&properties.name),
            vendor: "Intel(R) Corporation".into(),
            vendor_id: properties.vendorId,
            driver_version: version.clone(),
            runtime_version: version,
            extensions: extensions(device)?,
            il_version: Some(format!("SPIR-V_{}.{}", spirv >> 16, spirv & 0xffff)),
            capabilities: capabilities(device)?,
            compute_units: properties.numSlices * properties.numSubslicesPerSlice,
            unit_layout: Some(UnitLayout {
                slices: properties.numSlices,
                subslices: properties.numSubslicesPerSlice,
                units: properties.numEUsPerSubslice,
                threads: properties.numThreadsPerEU,
                lanes: properties.physicalEUSimdWidth,
            }),
            sub_group_sizes: Some(sub_groups(device).to_vec()),
            argument_bytes: Some(code.maxArgumentsSize as usize),
            read_write_images: Some(0), // an image is read or written
            printf_bytes: Some(code.printfBufferSize as usize),
            clock_mhz: Some(properties.coreClockRate),
            timer_resolution: Some(device.clock().resolution() as usize),
            half: floats(code.fp16flags),
            single: floats(code.fp32flags),
            double: floats(code.fp64flags),
            is_integrated: device.is_integrated(),
            cache_line: Some(64),
            buffer_alignment: Some(1),
            has_plain_queues: true,
            ..DeviceFacts::default()
        })
    }
    /// The SYCL runtime derives the architecture from this, for example 12.60.7.
    fn hardware_version(device: &Arc<DriverDevice>) -> Result<Option<HardwareVersion>> {
        let ip = ip_version(device)?;
        let (architecture, release, revision) = (ip >> 22, ip >> 14 & 0xff, ip & 0x3f);
        let text = format!("{architecture}.{release}.{revision}");
        Ok(Some(HardwareVersion { text, number: Some(ip).filter(|ip| *ip != 0) }))
    }
    fn model_number(device: &Arc<DriverDevice>) -> Result<Option<u32>> {
        Ok(Some(device.properties().deviceId))
    }
    fn pci_address(device: &Arc<DriverDevice>) -> Result<Option<String>> {
        let ze_pci_address_ext_t { domain, bus, device, function } =
            native::pci(device.raw())?.address;
        Ok(Some(format!("{domain:04x}:{bus:02x}:{device:02x}.{function:x}")))
    }
    fn luid(device: &Arc<DriverDevice>) -> Result<Option<Luid>> {
        if !device.platform().extensions().has("ZE_extension_device_luid") {
            return Ok(None);
        }
        let told = native::extended::<ze_device_luid_ext_properties_t>(device.raw())?;
        Ok(Some(Luid { id: told.luid.id, node_mask: told.nodeMask }))
    }
    fn execution_units(device: &Arc<DriverDevice>) -> Result<Option<u32>> {
        eus(device).map(Some)
    }
    /// A slice has its share of its parent's.
    fn parallel_units(device: &Arc<DriverDevice>) -> Result<Option<u32>> {
        let all = eus(device)?;
        let is_slice = device.engine().is_some();
        Ok(Some(if is_slice { all / device.compute()?.engines.max(1) } else { all }))
    }
    /// Integrated graphics have no memory, and report the largest allocation instead.
    fn told_memory(device: &Arc<DriverDevice>) -> Result<Option<u64>> {
        let all: u64 = native::memories(device.raw())?.iter().map(|one| one.totalSize).sum();
        Ok(Some(if all == 0 { device.properties().maxMemAllocSize } else { all }))
    }
    fn told_allocation(device: &Arc<DriverDevice>) -> Result<Option<u64>> {
        let most = device.properties().maxMemAllocSize;
        match options().relaxed_limits {
            true => Ok(Self::told_memory(device)?.map(|all| all.max(most))),
            false => Ok(Some(most)),
        }
    }
    /// From the device's properties, or from the system management interface.
    fn free_memory(device: &Arc<DriverDevice>) -> Result<Option<u64>> {
        if device.platform().extensions().has("ZE_extension_device_usablemem_size_properties") {
            let told = native::extended::<ze_device_usablemem_size_ext_properties_t>(device.raw())?;
            return Ok(Some(told.currUsableMemSize));
        }
        Sysman::find(device.uuid()).map_or(Ok(None), Sysman::free_memory)
    }
    fn memory_clock(device: &Arc<DriverDevice>) -> Result<Option<u32>> {
        most(device, |memory| memory.maxClockRate).map(Some)
    }
    fn bus_width(device: &Arc<DriverDevice>) -> Result<Option<u32>> {
        most(device, |memory| memory.maxBusWidth).map(Some)
    }
    fn bandwidth(device: &Arc<DriverDevice>) -> Result<Option<u64>> {
        Ok(Some(native::bandwidth(device.raw())?).filter(|rate| *rate != 0))
    }
    fn cache_size(device: &Arc<DriverDevice>) -> Result<Option<u64>> {
        let sizes = native::caches(device.raw())?.into_iter().map(|one| one.cacheSize as u64);
        Ok(Some(sizes.max().unwrap_or(0)))
    }
    /// Constants are read like one-dimensional images.
    fn constant_memory(device: &Arc<DriverDevice>) -> Result<Option<u64>> {
        Ok(Some(native::image(device.raw())?.maxImageBufferSize))
    }
    fn image_limits(device: &Arc<DriverDevice>) -> Result<Option<ImageLimits>> {
        let told = native::image(device.raw())?;
        Ok(Some(ImageLimits {
            are_supported: told.maxImageDims1D > 0,
            two: [Some(told.maxImageDims2D as usize); 2],
            three: [Some(told.maxImageDims3D as usize); 3],
            layers: Some(told.maxImageArraySlices as usize),
            buffer: Some(told.maxImageBufferSize as usize),
            arguments: [Some(told.maxReadImageArgs), Some(told.maxWriteImageArgs)],
            samplers: Some(told.maxSamplers),
        }))
    }
    /// The driver's flags have the same numbers.
    fn usm_support(device: &Arc<DriverDevice>) -> Result<Option<UsmSupport>> {
        let told = native::access(device.raw())?;
        Ok(Some(UsmSupport {
            host: UsmAccess::from_bits(told.hostAllocCapabilities),
            device: UsmAccess::from_bits(told.deviceAllocCapabilities),
            shared: UsmAccess::from_bits(told.sharedSingleDeviceAllocCapabilities),
            cross_shared: UsmAccess::from_bits(told.sharedCrossDeviceAllocCapabilities),
            system: UsmAccess::from_bits(told.sharedSystemAllocCapabilities),
        }))
    }
    /// The extension's flags have the same numbers.
    fn block_access(device: &Arc<DriverDevice>) -> Result<Option<BlockAccess>> {
        let told = native::extended::<native::BlockArrays>(device.raw())?;
        Ok(Some(BlockAccess::from_bits(told.flags)))
    }
    fn throttle_reasons(device: &Arc<DriverDevice>) -> Result<Option<ThrottleReasons>> {
        let told = Sysman::find(device.uuid()).map_or(Ok(None), Sysman::throttle_reasons)?;
        Ok(told.map(throttling))
    }
    fn has_virtual_memory(device: &Arc<DriverDevice>) -> Result<Option<bool>> {
        virtual_memory::is_supported(device).map(Some)
    }
    fn exports_memory(device: &Arc<DriverDevice>) -> Result<Option<bool>> {
        let told = native::external(device.raw())?;
        let wanted = ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF | ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD;
        Ok(Some(told.memoryAllocationExportTypes & wanted != 0))
    }
    /// The driver reports it for root devices, with `ZE_FLAT_DEVICE_HIERARCHY=COMBINED`.
    fn composite(device: &Arc<DriverDevice>) -> Result<Option<Arc<DriverDevice>>> {
        let composites = device.platform().composites();
        if composites.is_empty() || device.parent().is_some() {
            return Ok(None);
        }
        let whole = native::whole(device.raw())?;
        Ok(composites.iter().find(|one| Some(one.raw()) == whole).cloned())
    }
    fn components(device: &Arc<DriverDevice>) -> Result<Vec<Arc<DriverDevice>>> {
        let platform = device.platform();
        if platform.composites().iter().all(|one| one.raw() != device.raw()) {
            return Ok(vec![]);
        }
        let parts = native::parts(device.raw())?;
        let devices = platform.devices().iter();
        Ok(devices.filter(|one| parts.contains(&one.raw())).cloned().collect())
    }
    /// As reported by the driver, or by the width of its execution units.
    fn vector_widths(device: &Arc<DriverDevice>) -> Result<[VectorWidths; 2]> {
        let told = native::vectors(device.raw());
        let wished = options().vector_bytes;
        let wished = told.iter().find(|widths| Some(widths.vector_width_size) == wished);
        let Some(told) = wished.or(told.first()) else {
            let by_bytes = |bytes: u32| device.properties().physicalEUSimdWidth / bytes;
            return Ok([[1, 2, 4, 8, 4, 8, 2].map(by_bytes); 2]);
        };
        let preferred = [
            told.preferred_vector_width_char,
            told.preferred_vector_width_short,
            told.preferred_vector_width_int,
            told.preferred_vector_width_long,
            told.preferred_vector_width_float,
            told.preferred_vector_width_double,
            told.preferred_vector_width_half,
        ];
        let native = [
            told.native_vector_width_char,
            told.native_vector_width_short,
            told.native_vector_width_int,
            told.native_vector_width_long,
            told.native_vector_width_float,
            told.native_vector_width_double,
            told.native_vector_width_half,
        ];
        Ok([preferred, native])
    }
}
fn capabilities(device: &DriverDevice) -> Result<Capabilities> {
    const EVERY: Capabilities = Capabilities::of(&[
        C::Compiler,
        C::Linker,
        C::LoadedLinker,
        C::JointCompiler,
        C::Variables,
        C::SpecializationConstants,
        C::ExplicitSimd,
        C::NativeAssert, // of the driver's compiler
        C::SequentialConsistency,
        C::OrderedAllocation,
    ]);
    let has_atomics = device.code().flags & ZE_DEVICE_MODULE_FLAG_INT64_ATOMICS != 0;
    let has_ecc = device.properties().flags & ZE_DEVICE_PROPERTY_FLAG_ECC != 0;
    let imports = device.platform().extensions().function(Extensions::IMPORT).is_some();
    Ok(EVERY
        .with_if(C::Bfloat16Conversions, converts_bfloat16(device)?)
        .with_if(C::Atomics64, has_atomics)
        .with_if(C::ErrorCorrection, has_ecc)
        .with_if(C::Pinning, imports))
}
/// The version of the hardware: architecture in the upper ten bits, then release, and revision in the lowest
/// six; 0 if the driver does not report it.
pub(super) fn ip_version(device: &DriverDevice) -> Result<u32> {
    Ok(native::extended::<ze_device_ip_version_ext_t>(device.raw())?.ipVersion)
}
/// Formats a driver version as Intel does: major, minor, and the build in the lower half.
fn version(of: u32) -> String {
    format!("{}.{}.{}", of >> 24, of >> 16 & 0xff, of & 0xffff)
}
fn extensions(device: &DriverDevice) -> Result<String> {
    let flags = device.code().flags;
    let mut all = String::from(
        "cl_khr_il_program cl_khr_subgroups cl_intel_subgroups cl_intel_subgroups_short \
         cl_intel_required_subgroup_size ",
    );
    for (flag, named) in [
        (ZE_DEVICE_MODULE_FLAG_FP16, "cl_khr_fp16 "),
        (ZE_DEVICE_MODULE_FLAG_FP64, "cl_khr_fp64 "),
        (
            ZE_DEVICE_MODULE_FLAG_INT64_ATOMICS,
            "cl_khr_int64_base_atomics cl_khr_int64_extended_atomics ",
        ),
    ] {
        all += if flags & flag != 0 { named } else { "" };
    }
    if told(native::image(device.raw()))?.is_some_and(|images| images.maxImageDims3D > 0) {
        all += "cl_khr_3d_image_writes ";
    }
    if converts_bfloat16(device)? {
        all += "cl_intel_bfloat16_conversions ";
    }
    Ok(all)
}
/// Some drivers list this extension; the hardware supports it since Xe HPC.
fn converts_bfloat16(device: &DriverDevice) -> Result<bool> {
    if device.platform().extensions().has("ZE_extension_bfloat16_conversions") {
        return Ok(true);
    }
    Ok(told(ip_version(device))?.is_some_and(|ip| ip >= 12 << 22 | 60 << 14))
}
/// What the driver tells; `None` if it does not know the query. Any other failure may pass, and is an error.
fn told<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(None),
        answer => answer.map(Some),
    }
}
/// The sub-group sizes that kernels can have.
pub(super) fn sub_groups(device: &DriverDevice) -> &[u32] {
    let limits = device.limits();
    let count = (limits.numSubGroupSizes as usize).min(limits.subGroupSizes.len());
    &limits.subGroupSizes[..count]
}
/// The number of execution units: as reported, or the product of slices, subslices and units of each.
fn eus(device: &DriverDevice) -> Result<u32> {
    let properties = device.properties();
    let counted = match device.platform().extensions().has("ZE_extension_eu_count") {
        true => native::extended::<ze_eu_count_ext_t>(device.raw())?.numTotalEUs,
        false => 0,
    };
    let parts =
        properties.numSlices * properties.numSubslicesPerSlice * properties.numEUsPerSubslice;
    Ok(if counted == 0 { parts } else { counted })
}
/// The largest property of its memories; 0 if it has none.
fn most(device: &DriverDevice, of: fn(&ze_device_memory_properties_t) -> u32) -> Result<u32> {
    Ok(native::memories(device.raw())?.iter().map(|one| of(one)).max().unwrap_or(0))
}
fn throttling(reasons: u32) -> ThrottleReasons {
    use ThrottleReasons as T;
    let pairs = [
        (ZES_FREQ_THROTTLE_REASON_FLAG_AVE_PWR_CAP, T::POWER_CAP),
        (ZES_FREQ_THROTTLE_REASON_FLAG_BURST_PWR_CAP, T::POWER_CAP),
        (ZES_FREQ_THROTTLE_REASON_FLAG_CURRENT_LIMIT, T::CURRENT_LIMIT),
        (ZES_FREQ_THROTTLE_REASON_FLAG_THERMAL_LIMIT, T::THERMAL_LIMIT),
        (ZES_FREQ_THROTTLE_REASON_FLAG_PSU_ALERT, T::PSU_ALERT),
        (ZES_FREQ_THROTTLE_REASON_FLAG_SW_RANGE, T::SW_RANGE),
        (ZES_FREQ_THROTTLE_REASON_FLAG_HW_RANGE, T::HW_RANGE),
    ];
    let known = pairs.iter().fold(0, |all, (flag, _)| all | flag);
    let named = T::of(pairs.map(|(flag, reason)| (reasons & flag != 0, reason)));
    if reasons & !known != 0 { named | T::OTHER } else { named }
}
fn floats(flags: u32) -> FloatFeatures {
    use FloatFeatures as F;
    let pairs = [
        (ZE_DEVICE_FP_FLAG_DENORM, F::DENORM),
        (ZE_DEVICE_FP_FLAG_INF_NAN, F::INF_NAN),
        (ZE_DEVICE_FP_FLAG_ROUND_TO_NEAREST, F::ROUND_TO_NEAREST),
        (ZE_DEVICE_FP_FLAG_ROUND_TO_ZERO, F::ROUND_TO_ZERO),
        (ZE_DEVICE_FP_FLAG_ROUND_TO_INF, F::ROUND_TO_INF),
        (ZE_DEVICE_FP_FLAG_FMA, F::FMA),
        (ZE_DEVICE_FP_FLAG_ROUNDED_DIVIDE_SQRT, F::CORRECTLY_ROUNDED_DIVIDE_SQRT),
        (ZE_DEVICE_FP_FLAG_SOFT_FLOAT, F::SOFT_FLOAT),
    ];
    F::of(pairs.map(|(flag, feature)| (flags & flag != 0, feature)))
}
