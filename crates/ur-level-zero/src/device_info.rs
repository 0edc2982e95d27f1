//! Answers to `urDeviceGetInfo`, from the driver's properties, as Unified Runtime's own adapters for Level
//! Zero give them. Properties that are not answered here get the core's default answer; memory and sharing
//! are in `device_info/memory.rs`.
mod memory;
mod optional;

use super::{
    Device, DriverDevice,
    native::{device as native, driver::text, sysman::Sysman},
    partition,
};
use std::sync::Arc;
use ur_adapter::{error::Result, info::Answer};
use ur_core::over_driver::device::untold;
use ur_sys::{ur_device_info_t as I, *};
use ze_sys::*;

/// Answers the properties that differ from the core's defaults; returns `false` for all others.
pub(super) fn tell(device: &Arc<DriverDevice>, name: I, answer: &mut Answer<'_>) -> Result<bool> {
    Ok(relations(device, name, answer)?
        || identity(device, name, answer)?
        || shape(device, name, answer)?
        || numbers(device, name, answer)?
        || memory::answer(device, name, answer)?
        || memory::usm(device, name, answer)?
        || memory::images(device, name, answer)?
        || optional::answer(device, name, answer)?)
}

/// Sub-devices, composite devices and components.
fn relations(device: &Arc<DriverDevice>, name: I, answer: &mut Answer<'_>) -> Result<bool> {
    match name {
        I::SUPPORTED_PARTITIONS => answer.slice(&partition::supported(device)?),
        I::PARTITION_MAX_SUB_DEVICES => answer.value(&partition::count(device)?),
        I::PARTITION_AFFINITY_DOMAIN => answer.value(&partition::domains(device)?.bits()),
        I::COMPOSITE_DEVICE => match device.composite()? {
            Some(whole) => answer.handle(&*Device::of(whole)?),
            None => answer.value(&0_usize), // a null handle
        },
        I::COMPONENT_DEVICES => {
            let parts = device.components()?.into_iter().map(Device::of);
            let parts: Vec<_> = parts.collect::<Result<_>>()?;
            answer.handles(parts.iter().map(|one| &**one))
        }
        I::PARTITION_TYPE => answer.slice(&partition::rule_of(device)),
        _ => return Ok(false),
    }?;
    Ok(true)
}

/// Name, vendor, versions and extensions.
fn identity(device: &DriverDevice, name: I, answer: &mut Answer<'_>) -> Result<bool> {
    let (properties, platform) = (device.properties(), device.platform());
    match name {
        I::VENDOR_ID => answer.value(&properties.vendorId),
        I::VENDOR => answer.str("Intel(R) Corporation"),
        I::DEVICE_ID => answer.value(&properties.deviceId),
        I::NAME => answer.str(&text(&properties.name)),
        I::DRIVER_VERSION | I::BACKEND_RUNTIME_VERSION => answer.str(&version(platform.version())),
        // The SYCL runtime derives the architecture from this, for example 12.60.7.
        I::VERSION => {
            let ip = ip_version(device)?;
            let (architecture, release, revision) = (ip >> 22, ip >> 14 & 0xff, ip & 0x3f);
            answer.str(&format!("{architecture}.{release}.{revision}"))
        }
        I::IL_VERSION => {
            let spirv = device.code().spirvVersionSupported;
            answer.str(&format!("SPIR-V_{}.{}", spirv >> 16, spirv & 0xffff))
        }
        I::IP_VERSION => match ip_version(device)? {
            0 => Err(untold(name)),
            ip => answer.value(&ip),
        },
        I::EXTENSIONS => answer.str(&extensions(device)),
        I::UUID => answer.slice(&device.uuid()),
        I::PCI_ADDRESS => {
            let ze_pci_address_ext_t { domain, bus, device, function } =
                native::pci(device.raw())?.address;
            answer.str(&format!("{domain:04x}:{bus:02x}:{device:02x}.{function:x}"))
        }
        I::LUID | I::NODE_MASK => luid(device, name, answer),
        I::COMPILER_AVAILABLE | I::LINKER_AVAILABLE | I::GLOBAL_VARIABLE_SUPPORT => {
            answer.bool(true)
        }
        I::IS_INTEGRATED_GPU => answer.bool(device.is_integrated()),
        _ => return Ok(false),
    }?;
    Ok(true)
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
fn extensions(device: &DriverDevice) -> String {
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
    if native::image(device.raw()).is_ok_and(|images| images.maxImageDims3D > 0) {
        all += "cl_khr_3d_image_writes ";
    }
    if converts_bfloat16(device) {
        all += "cl_intel_bfloat16_conversions ";
    }
    all
}
/// Some drivers list this extension; the hardware supports it since Xe HPC.
fn converts_bfloat16(device: &DriverDevice) -> bool {
    let listed = device.platform().extensions().has("ZE_extension_bfloat16_conversions");
    listed || ip_version(device).is_ok_and(|ip| ip >= 12 << 22 | 60 << 14)
}
fn luid(device: &DriverDevice, name: I, answer: &mut Answer<'_>) -> Result<()> {
    if !device.platform().extensions().has("ZE_extension_device_luid") {
        return Err(untold(name));
    }
    let told = native::extended::<ze_device_luid_ext_properties_t>(device.raw())?;
    match name {
        I::LUID => answer.slice(&told.luid.id),
        _ => answer.value(&told.nodeMask),
    }
}

/// Numbers of execution units, sub-groups and parameter bytes.
fn shape(device: &DriverDevice, name: I, answer: &mut Answer<'_>) -> Result<bool> {
    let (limits, properties) = (device.limits(), device.properties());
    let sizes = sub_groups(device);
    match name {
        I::MAX_COMPUTE_UNITS => answer.value(&units(device)?),
        I::NUM_COMPUTE_UNITS => {
            answer.value(&(properties.numSlices * properties.numSubslicesPerSlice))
        }
        I::MAX_NUM_SUB_GROUPS => {
            let least = sizes.iter().copied().min().unwrap_or(1).max(1);
            answer.value(&limits.maxTotalGroupSize.div_ceil(least))
        }
        I::SUB_GROUP_SIZES_INTEL => answer.slice(sizes),
        I::MAX_PARAMETER_SIZE => answer.value(&(device.code().maxArgumentsSize as usize)),
        I::GPU_EU_COUNT => answer.value(&eus(device)?),
        I::GPU_EU_SIMD_WIDTH => answer.value(&properties.physicalEUSimdWidth),
        I::GPU_EU_SLICES => answer.value(&properties.numSlices),
        I::GPU_EU_COUNT_PER_SUBSLICE | I::EUS_PER_XE_CORE => {
            answer.value(&properties.numEUsPerSubslice)
        }
        I::GPU_SUBSLICES_PER_SLICE | I::XE_CORES_PER_CLUSTER => {
            answer.value(&properties.numSubslicesPerSlice)
        }
        I::GPU_HW_THREADS_PER_EU => answer.value(&properties.numThreadsPerEU),
        _ => return Ok(false),
    }?;
    Ok(true)
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
/// The number of execution units; a slice has its share of its parent's.
fn units(device: &DriverDevice) -> Result<u32> {
    let all = eus(device)?;
    Ok(if device.engine().is_some() { all / device.compute()?.engines.max(1) } else { all })
}

/// Floating-point, atomic, clock and queue capabilities.
fn numbers(device: &DriverDevice, name: I, answer: &mut Answer<'_>) -> Result<bool> {
    let (code, properties) = (device.code(), device.properties());
    match name {
        I::SINGLE_FP_CONFIG => answer.value(&floats(code.fp32flags).bits()),
        I::DOUBLE_FP_CONFIG => answer.value(&floats(code.fp64flags).bits()),
        I::HALF_FP_CONFIG => answer.value(&floats(code.fp16flags).bits()),
        I::BFLOAT16_CONVERSIONS_NATIVE => answer.bool(converts_bfloat16(device)),
        I::ATOMIC_64 => answer.bool(code.flags & ZE_DEVICE_MODULE_FLAG_INT64_ATOMICS != 0),
        I::USE_NATIVE_ASSERT => answer.bool(true), // implemented by the driver's compiler
        I::MAX_CLOCK_FREQUENCY => answer.value(&properties.coreClockRate),
        I::PROFILING_TIMER_RESOLUTION => answer.value(&(device.clock().resolution() as usize)),
        I::QUEUE_PROPERTIES | I::QUEUE_ON_HOST_PROPERTIES => {
            use ur_queue_flags_t as F;
            answer.value(&(F::OUT_OF_ORDER_EXEC_MODE_ENABLE | F::PROFILING_ENABLE).bits())
        }
        I::MAX_COMPUTE_QUEUE_INDICES => {
            answer.value(&if device.engine().is_some() { 1 } else { device.compute()?.engines })
        }
        I::CURRENT_CLOCK_THROTTLE_REASONS => {
            let told = Sysman::find(device.uuid()).map_or(Ok(None), Sysman::throttle_reasons)?;
            answer.value(&throttling(told.ok_or_else(|| untold(name))?).bits())
        }
        I::PRINTF_BUFFER_SIZE => answer.value(&(code.printfBufferSize as usize)),
        _ => return Ok(false),
    }?;
    Ok(true)
}
/// Converts the driver's throttle reasons to the specification's flags.
fn throttling(reasons: u32) -> ur_device_throttle_reasons_flags_t {
    use ur_device_throttle_reasons_flags_t as F;
    let pairs = [
        (ZES_FREQ_THROTTLE_REASON_FLAG_AVE_PWR_CAP, F::POWER_CAP),
        (ZES_FREQ_THROTTLE_REASON_FLAG_BURST_PWR_CAP, F::POWER_CAP),
        (ZES_FREQ_THROTTLE_REASON_FLAG_CURRENT_LIMIT, F::CURRENT_LIMIT),
        (ZES_FREQ_THROTTLE_REASON_FLAG_THERMAL_LIMIT, F::THERMAL_LIMIT),
        (ZES_FREQ_THROTTLE_REASON_FLAG_PSU_ALERT, F::PSU_ALERT),
        (ZES_FREQ_THROTTLE_REASON_FLAG_SW_RANGE, F::SW_RANGE),
        (ZES_FREQ_THROTTLE_REASON_FLAG_HW_RANGE, F::HW_RANGE),
    ];
    let known = pairs.iter().fold(0, |all, (flag, _)| all | flag);
    let other = if reasons & !known != 0 { F::OTHER } else { F::default() };
    let set = pairs.into_iter().filter(|(flag, _)| reasons & flag != 0);
    set.fold(other, |all, (_, flag)| all | flag)
}
/// Converts the driver's floating-point flags to the specification's.
fn floats(flags: u32) -> ur_device_fp_capability_flags_t {
    use ur_device_fp_capability_flags_t as F;
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
    let set = pairs.into_iter().filter(|(flag, _)| flags & flag != 0);
    set.fold(F::default(), |all, (_, flag)| all | flag)
}
/// The preferred and the native vector widths of each element type: as reported by the driver, or by the
/// width of its execution units.
pub(super) fn vector_widths(device: &DriverDevice) -> [[u32; 7]; 2] {
    let told = native::vectors(device.raw());
    let wished = super::options().vector_bytes;
    let wished = told.iter().find(|widths| Some(widths.vector_width_size) == wished);
    let Some(told) = wished.or(told.first()) else {
        let by_bytes = |bytes: u32| device.properties().physicalEUSimdWidth / bytes;
        return [[1, 2, 4, 8, 4, 8, 2].map(by_bytes); 2];
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
    [preferred, native]
}
