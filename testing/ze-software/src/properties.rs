//! The properties of a device: those of a mid-range graphics card, whose execution units are the host's
//! processor.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    allocations, clock,
    device::{self, Device},
    external,
    inject::{self, Answer},
    knob::{self, Profile},
    raw,
};
use ze_sys::*;

/// The number of subslices of a whole device; a subdevice has its share of them.
const SUBSLICES: u32 = 8;
const EUS: u32 = 8;
const THREADS: u32 = 8;
/// The largest number of work-items in a group.
pub const GROUP: u32 = 1024;
/// The size of a group's local memory in bytes.
pub const LOCAL_MEMORY: u32 = 64 << 10;
/// The supported subgroup sizes.
pub const SUBGROUPS: [u32; 3] = [8, 16, 32];
const VENDOR: u32 = 0x8086;
const DEVICE: u32 = 0xe20b;

/// The version of the graphics IP: the architecture in bits 22 to 31, the release in bits 14 to 21, the
/// revision in bits 0 to 5.
fn ip_version() -> u32 {
    let (architecture, release, revision) = match knob::profile() {
        Profile::Igpu => (12, 70, 4),
        Profile::Plain | Profile::Bmg => (20, 1, 0),
        Profile::Pvc => (12, 60, 7),
    };
    architecture << 22 | release << 14 | revision
}

/// The size of a device's memory in bytes.
pub fn memory(device: &Device) -> u64 {
    let whole = knob::number("MEMORY", 4096) << 20;
    whole / u64::from(device.share())
}
/// The size of the largest allocation without relaxed limits, in bytes.
pub fn largest(device: &Device) -> u64 {
    memory(device) / 2
}
pub fn uuid(device: &Device) -> [u8; 16] {
    let mut id = *b"ze-software\0\0\0\0\0";
    id[12] = device.index as u8;
    id[13] = device.part.map_or(0, |part| part as u8 + 1);
    id
}
fn subslices(device: &Device) -> u32 {
    (SUBSLICES / device.share()).max(1)
}
fn describe(device: &Device, properties: &mut ze_device_properties_t) {
    let is_part = device.part.is_some() && device::hierarchy() != device::Hierarchy::Flat;
    let part = if is_part { ZE_DEVICE_PROPERTY_FLAG_SUBDEVICE } else { 0 };
    properties.type_ = ZE_DEVICE_TYPE_GPU;
    properties.vendorId = VENDOR;
    properties.deviceId = DEVICE;
    let integrated = match knob::profile() {
        Profile::Igpu => ZE_DEVICE_PROPERTY_FLAG_INTEGRATED,
        _ => 0,
    };
    properties.flags = part | integrated | ZE_DEVICE_PROPERTY_FLAG_ONDEMANDPAGING;
    properties.subdeviceId = device.part.unwrap_or(0);
    properties.coreClockRate = 1600;
    properties.maxMemAllocSize = largest(device);
    properties.maxHardwareContexts = 64 << 10;
    properties.maxCommandQueuePriority = 0;
    properties.numThreadsPerEU = THREADS;
    properties.physicalEUSimdWidth = 16;
    properties.numEUsPerSubslice = EUS;
    properties.numSubslicesPerSlice = subslices(device);
    properties.numSlices = 1;
    // The first version of the structure has nanoseconds per tick, the second has ticks per second.
    properties.timerResolution = match properties.stype {
        ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2 => clock::cycles_per_second(),
        _ => clock::resolution(),
    };
    (properties.timestampValidBits, properties.kernelTimestampValidBits) = clock::valid_bits();
    properties.uuid.id = uuid(device);
    properties.name = raw::name("Software GPU");
}
/// Fills the structures in the chain of the device's properties.
fn extend(device: &Device, next: *const core::ffi::c_void) -> Answer {
    for (stype, at) in raw::chain(next) {
        match stype {
            ZE_STRUCTURE_TYPE_DEVICE_LUID_EXT_PROPERTIES => {
                raw::amend(at.cast::<ze_device_luid_ext_properties_t>(), |p| {
                    p.luid.id = [0x7a, 0x65, 0, 0, 0, 0, 0, device.index as u8];
                    p.nodeMask = 1 << device.index.min(31);
                    Ok(())
                })?;
            }
            ZE_STRUCTURE_TYPE_DEVICE_IP_VERSION_EXT => {
                raw::amend(at.cast::<ze_device_ip_version_ext_t>(), |p| {
                    p.ipVersion = ip_version();
                    Ok(())
                })?;
            }
            ZE_STRUCTURE_TYPE_EU_COUNT_EXT => raw::amend(at.cast::<ze_eu_count_ext_t>(), |p| {
                p.numTotalEUs = subslices(device) * EUS;
                Ok(())
            })?,
            ZE_STRUCTURE_TYPE_DEVICE_USABLEMEM_SIZE_EXT_PROPERTIES => {
                raw::amend(at.cast::<ze_device_usablemem_size_ext_properties_t>(), |p| {
                    p.currUsableMemSize = allocations::free(device);
                    Ok(())
                })?;
            }
            ZE_STRUCTURE_TYPE_DEVICE_EVENT_PROPERTIES => {
                raw::amend(at.cast::<ze_device_event_properties_t>(), |p| {
                    p.flags = 0;
                    Ok(())
                })?;
            }
            ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_PROPERTIES => {
                raw::amend(at.cast::<ze_mutable_command_list_exp_properties_t>(), |p| {
                    p.mutableCommandListFlags = 0;
                    p.mutableCommandFlags = mutable();
                    Ok(())
                })?;
            }
            _ => {} // unknown structures are left unchanged
        }
    }
    Ok(())
}
/// What can be changed in a recorded launch.
fn mutable() -> ze_mutable_command_exp_flags_t {
    if inject::hidden("zeCommandListUpdateMutableCommandsExp") {
        return 0;
    }
    ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_ARGUMENTS
        | ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_COUNT
        | ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_SIZE
        | ZE_MUTABLE_COMMAND_EXP_FLAG_GLOBAL_OFFSET
        | ZE_MUTABLE_COMMAND_EXP_FLAG_SIGNAL_EVENT
        | ZE_MUTABLE_COMMAND_EXP_FLAG_WAIT_EVENTS
        | ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_INSTRUCTION
}

entries! {
    fn zeDeviceGetProperties(device: ze_device_handle_t, to: *mut ze_device_properties_t) {
        let device = device::get(device)?;
        raw::amend(to, |properties| {
            describe(&device, properties);
            extend(&device, properties.pNext)
        })
    }
    fn zeDeviceGetComputeProperties(
        device: ze_device_handle_t,
        to: *mut ze_device_compute_properties_t,
    ) {
        device::get(device)?;
        raw::amend(to, |p| {
            p.maxTotalGroupSize = GROUP;
            (p.maxGroupSizeX, p.maxGroupSizeY, p.maxGroupSizeZ) = (GROUP, GROUP, GROUP);
            let most = u32::MAX;
            (p.maxGroupCountX, p.maxGroupCountY, p.maxGroupCountZ) = (most, most, most);
            p.maxSharedLocalMemory = LOCAL_MEMORY;
            p.numSubGroupSizes = SUBGROUPS.len() as u32;
            p.subGroupSizes = [0; 8];
            p.subGroupSizes[..SUBGROUPS.len()].copy_from_slice(&SUBGROUPS);
            Ok(())
        })
    }
    fn zeDeviceGetModuleProperties(
        device: ze_device_handle_t,
        to: *mut ze_device_module_properties_t,
    ) {
        device::get(device)?;
        let floats = ZE_DEVICE_FP_FLAG_DENORM
            | ZE_DEVICE_FP_FLAG_INF_NAN
            | ZE_DEVICE_FP_FLAG_ROUND_TO_NEAREST
            | ZE_DEVICE_FP_FLAG_FMA;
        raw::amend(to, |p| {
            p.spirvVersionSupported = (1 << 16) | 4;
            p.flags = ZE_DEVICE_MODULE_FLAG_FP16
                | ZE_DEVICE_MODULE_FLAG_FP64
                | ZE_DEVICE_MODULE_FLAG_INT64_ATOMICS;
            (p.fp16flags, p.fp64flags) = (floats, floats | ZE_DEVICE_FP_FLAG_ROUNDED_DIVIDE_SQRT);
            p.fp32flags = p.fp64flags;
            p.maxArgumentsSize = 2048;
            p.printfBufferSize = 4 << 20;
            p.nativeKernelSupported.id = *b"ze-software-1.0\0";
            let atomics = ZE_STRUCTURE_TYPE_FLOAT_ATOMIC_EXT_PROPERTIES;
            if let Some(at) = raw::find::<ze_float_atomic_ext_properties_t>(p.pNext, atomics) {
                let global = ZE_DEVICE_FP_ATOMIC_EXT_FLAG_GLOBAL_LOAD_STORE
                    | ZE_DEVICE_FP_ATOMIC_EXT_FLAG_GLOBAL_ADD
                    | ZE_DEVICE_FP_ATOMIC_EXT_FLAG_GLOBAL_MIN_MAX;
                raw::amend(at, |a| {
                    (a.fp16Flags, a.fp32Flags, a.fp64Flags) = (0, global, global);
                    Ok(())
                })?;
            }
            Ok(())
        })
    }
    fn zeDeviceGetMemoryAccessProperties(
        device: ze_device_handle_t,
        to: *mut ze_device_memory_access_properties_t,
    ) {
        device::get(device)?;
        let alone = ZE_MEMORY_ACCESS_CAP_FLAG_RW | ZE_MEMORY_ACCESS_CAP_FLAG_ATOMIC;
        let all = alone
            | ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT
            | ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT_ATOMIC;
        raw::amend(to, |p| {
            p.hostAllocCapabilities = all;
            p.deviceAllocCapabilities = all;
            p.sharedSingleDeviceAllocCapabilities = all;
            p.sharedCrossDeviceAllocCapabilities = alone;
            p.sharedSystemAllocCapabilities = 0;
            Ok(())
        })
    }
    fn zeDeviceGetExternalMemoryProperties(
        device: ze_device_handle_t,
        to: *mut ze_device_external_memory_properties_t,
    ) {
        device::get(device)?;
        let kinds = external::kinds();
        raw::amend(to, |p| {
            (p.memoryAllocationImportTypes, p.memoryAllocationExportTypes) = (kinds, kinds);
            (p.imageImportTypes, p.imageExportTypes) = (0, 0);
            Ok(())
        })
    }
    fn zeDeviceGetImageProperties(
        device: ze_device_handle_t,
        to: *mut ze_device_image_properties_t,
    ) {
        device::get(device)?;
        raw::amend(to, |p| {
            (p.maxImageDims1D, p.maxImageDims2D, p.maxImageDims3D) = (16384, 16384, 2048);
            p.maxImageBufferSize = 1 << 30;
            p.maxImageArraySlices = 2048;
            (p.maxSamplers, p.maxReadImageArgs, p.maxWriteImageArgs) = (16, 128, 128);
            Ok(())
        })
    }
    fn zeDevicePciGetPropertiesExt(device: ze_device_handle_t, to: *mut ze_pci_ext_properties_t) {
        let device = device::get(device)?;
        raw::amend(to, |p| {
            p.address = ze_pci_address_ext_t { domain: 0, bus: 0x40 + device.index, device: 0, function: 0 };
            p.maxSpeed = ze_pci_speed_ext_t { genVersion: 5, width: 16, maxBandwidth: 64_000_000_000 };
            Ok(())
        })
    }
}
