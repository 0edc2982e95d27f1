//! Answers to `urDeviceGetInfo`, from the driver's attributes and from what this adapter supports. Properties
//! that are not answered here get the core's default answer.
use super::DriverDevice;
use super::{
    attribute::Attribute as A,
    backing, device,
    driver::{Api, Dialect},
    native::device as native,
    shared_words,
};
use ur_adapter::{error, info::Answer};
use ur_hal::{Error, ErrorKind, Result};
use ur_sys::{ur_device_info_t as I, *};

/// Answers the properties that differ from the core's defaults; returns `false` for all others.
pub(super) fn tell<D: Dialect>(
    device: &DriverDevice<D>,
    name: I,
    answer: &mut Answer<'_>,
) -> error::Result<bool> {
    Ok(identity(device, name, answer)?
        || shape(device, name, answer)?
        || numbers(device, name, answer)?
        || memory(device, name, answer)?
        || usm(device, name, answer)?
        || images(device, name, answer)?)
}
/// Answers with the attribute's value.
fn number<D: Dialect>(
    device: &DriverDevice<D>,
    attribute: A,
    to: &mut Answer<'_>,
) -> error::Result<()> {
    to.value(&(device.get(attribute)? as u32))
}
fn size<D: Dialect>(device: &DriverDevice<D>, attribute: A) -> Result<usize> {
    Ok(device.get(attribute)?.max(0) as usize)
}
/// The attribute's value, unless it is 0, which means for some that the driver does not report them.
fn known<D: Dialect>(device: &DriverDevice<D>, attribute: A) -> Result<i32> {
    match device.get(attribute)? {
        0 => Err(Error::new(
            ErrorKind::UnknownOption,
            format!("this driver of {} does not tell {attribute:?}", D::NAME),
        )),
        value => Ok(value),
    }
}

/// Name, vendor, versions and availability of compilers.
fn identity<D: Dialect>(
    device: &DriverDevice<D>,
    name: I,
    answer: &mut Answer<'_>,
) -> error::Result<bool> {
    let (is_cuda, n) = (D::API == Api::Cuda, device.number());
    let version = || native::version::<D>().map(|v| format!("{}.{}", v / 1000, v % 1000 / 10));
    match name {
        I::VENDOR_ID => answer.value(&if is_cuda { 0x10de_u32 } else { 0x1002 }),
        I::VENDOR => answer.str(if is_cuda { "NVIDIA Corporation" } else { "AMD Corporation" }),
        I::DEVICE_ID => answer.value(&device_id::<D>(n)?),
        I::NAME => answer.str(&native::name::<D>(n)?),
        I::DRIVER_VERSION => answer.str(&format!("{} {}", D::NAME, version()?)),
        I::BACKEND_RUNTIME_VERSION => answer.str(&version()?),
        // The SYCL runtime derives the architecture from this: 9.0 is sm_90.
        I::VERSION => {
            let (major, minor) = device.capability()?;
            answer.str(&format!("{major}.{minor}"))
        }
        I::IP_VERSION => {
            let (major, minor) = device.capability()?;
            answer.value(&((major * 10 + minor) as u32))
        }
        I::EXTENSIONS => answer.str("cl_khr_fp64 cl_khr_fp16 cl_khr_subgroups"),
        I::UUID => answer.slice(&device.uuid()),
        I::PCI_ADDRESS => answer.str(&native::pci_address::<D>(n)?),
        I::COMPILER_AVAILABLE | I::LINKER_AVAILABLE | I::GLOBAL_VARIABLE_SUPPORT => {
            answer.bool(is_cuda)
        }
        I::IS_INTEGRATED_GPU => answer.bool(device.has(A::Integrated)?),
        _ => return Ok(false),
    }?;
    Ok(true)
}
/// The PCI device id. The driver does not report it; sysfs does.
fn device_id<D: Dialect>(number: i32) -> Result<u32> {
    let at = native::pci_address::<D>(number)?.to_lowercase();
    let file = format!("/sys/bus/pci/devices/{at}/device");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).map_err(|_| {
        Error::new(
            ErrorKind::UnknownOption,
            format!("the driver does not tell the model's number, and {file} cannot be read"),
        )
    })
}

/// Numbers of compute units, registers and parameter bytes.
fn shape<D: Dialect>(
    device: &DriverDevice<D>,
    name: I,
    answer: &mut Answer<'_>,
) -> error::Result<bool> {
    match name {
        I::MAX_COMPUTE_UNITS | I::NUM_COMPUTE_UNITS => number(device, A::Units, answer),
        I::MAX_REGISTERS_PER_WORK_GROUP => number(device, A::Registers, answer),
        // What every driver accepts; some accept more on newer devices.
        I::MAX_PARAMETER_SIZE => answer.value(&4096_usize),
        _ => return Ok(false),
    }?;
    Ok(true)
}
/// Floating-point, atomic and clock capabilities.
fn numbers<D: Dialect>(
    device: &DriverDevice<D>,
    name: I,
    answer: &mut Answer<'_>,
) -> error::Result<bool> {
    use ur_device_fp_capability_flags_t as F;
    let ieee = F::DENORM | F::INF_NAN | F::ROUND_TO_NEAREST | F::ROUND_TO_ZERO | F::ROUND_TO_INF;
    // Whether the compute capability has at least this major version. AMD numbers its architectures
    // differently, and all supported ones have the features that need at most 6.
    let since = |major: i32| match D::API {
        Api::Cuda => device.capability().map(|(ours, _)| ours >= major),
        _ => Ok(major <= 6),
    };
    match name {
        I::SINGLE_FP_CONFIG => {
            answer.value(&(ieee | F::FMA | F::CORRECTLY_ROUNDED_DIVIDE_SQRT).bits())
        }
        I::DOUBLE_FP_CONFIG => answer.value(&(ieee | F::FMA).bits()),
        I::HALF_FP_CONFIG => {
            answer.value(&if since(6)? { ieee | F::FMA } else { F::default() }.bits())
        }
        I::BFLOAT16 | I::BFLOAT16_CONVERSIONS_NATIVE | I::ASYNC_BARRIER => answer.bool(since(8)?),
        I::ATOMIC_64 => answer.bool(since(6)?),
        I::SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS => answer.bool(since(7)?),
        I::ATOMIC_MEMORY_ORDER_CAPABILITIES | I::ATOMIC_FENCE_ORDER_CAPABILITIES => {
            use ur_memory_order_capability_flags_t as O;
            let weak = O::RELAXED | O::ACQUIRE | O::RELEASE | O::ACQ_REL;
            answer.value(&if since(7)? { weak | O::SEQ_CST } else { weak }.bits())
        }
        // Sub-groups and groups stay on one multiprocessor, and the device has a global timer.
        I::CLOCK_SUB_GROUP_SUPPORT_EXP
        | I::CLOCK_WORK_GROUP_SUPPORT_EXP
        | I::CLOCK_DEVICE_SUPPORT_EXP
        | I::USE_NATIVE_ASSERT => answer.bool(D::API == Api::Cuda),
        I::MAX_CLOCK_FREQUENCY => answer.value(&(device.get(A::Clock)? as u32 / 1000)),
        I::PROFILING_TIMER_RESOLUTION => answer.value(&500_usize), // nanoseconds: the resolution of driver events
        _ => return Ok(false),
    }?;
    Ok(true)
}
/// Sizes and capabilities of its memory.
fn memory<D: Dialect>(
    device: &DriverDevice<D>,
    name: I,
    answer: &mut Answer<'_>,
) -> error::Result<bool> {
    let bytes = |of: A| size(device, of).map(|bytes| bytes as u64);
    match name {
        I::GLOBAL_MEM_SIZE | I::MAX_MEM_ALLOC_SIZE => answer.value(&(device.memory()? as u64)),
        I::GLOBAL_MEM_FREE => answer.value(&(device.enter()?.memory()?.0 as u64)),
        I::GLOBAL_MEM_CACHELINE_SIZE => answer.value(&128_u32),
        I::GLOBAL_MEM_CACHE_SIZE => answer.value(&bytes(A::L2Cache)?),
        I::MAX_CONSTANT_BUFFER_SIZE => answer.value(&bytes(A::ConstantMemory)?),
        I::MAX_CONSTANT_ARGS => answer.value(&9_u32),
        // In bits: the alignment of sub-buffers.
        I::MEM_BASE_ADDR_ALIGN => answer.value(&(device.get(A::TextureAlignment)? as u32 * 8)),
        I::ERROR_CORRECTION_SUPPORT => answer.bool(device.has(A::Ecc)?),
        I::HOST_UNIFIED_MEMORY => answer.bool(device.has(A::Integrated)?),
        I::MEMORY_CLOCK_RATE => answer.value(&(known(device, A::MemoryClock)? as u32 / 1000)),
        I::MEMORY_BUS_WIDTH => answer.value(&(known(device, A::BusWidth)? as u32)),
        // Two transfers of the bus width in each clock cycle.
        I::MAX_MEMORY_BANDWIDTH => {
            let (khz, bits) = (known(device, A::MemoryClock)?, known(device, A::BusWidth)?);
            answer.value(&(khz as u64 * 1000 * 2 * bits as u64 / 8))
        }
        I::VIRTUAL_MEMORY_SUPPORT => answer.bool(device.has(A::VirtualMemory)?),
        I::ASYNC_USM_ALLOCATIONS_SUPPORT_EXP => answer.bool(device.has(A::Pools)?),
        I::USM_HOST_ALLOC_REGISTER_SUPPORT_EXP => answer.bool(device.has(A::HostRegister)?),
        _ => return Ok(false),
    }?;
    Ok(true)
}

/// Which kinds of USM the device and the host can access, and what can be shared with other processes.
fn usm<D: Dialect>(
    device: &DriverDevice<D>,
    name: I,
    answer: &mut Answer<'_>,
) -> error::Result<bool> {
    match name {
        I::USM_HOST_SUPPORT
        | I::USM_DEVICE_SUPPORT
        | I::USM_SINGLE_SHARED_SUPPORT
        | I::USM_CROSS_SHARED_SUPPORT
        | I::USM_SYSTEM_SHARED_SUPPORT => answer.value(&access(device, name)?.bits()),
        I::IPC_MEMORY_SUPPORT_EXP => answer.bool(device.is_shared()?),
        I::IPC_PHYSICAL_MEMORY_SUPPORT_EXP => answer.bool(backing::is_physical_shared(device)?),
        I::IPC_EVENT_SUPPORT_EXP => answer.bool(shared_words::is_supported(device)?),
        _ => return Ok(false),
    }?;
    Ok(true)
}
fn access<D: Dialect>(
    device: &DriverDevice<D>,
    name: I,
) -> Result<ur_device_usm_access_capability_flags_t> {
    use ur_device_usm_access_capability_flags_t as F;
    // Access at all; access by host and device at the same time; atomic operations that both observe.
    let flags = |reached: bool, concurrent: bool, atomic: bool| {
        let mut flags = if reached { F::ACCESS } else { F::default() };
        for (has, flag) in [
            (concurrent, F::CONCURRENT_ACCESS),
            (atomic, F::ATOMIC_ACCESS),
            (concurrent && atomic, F::ATOMIC_CONCURRENT_ACCESS),
        ] {
            flags = if reached && has { flags | flag } else { flags };
        }
        flags
    };
    let concurrent = device.has(A::ConcurrentManaged)?;
    Ok(match name {
        I::USM_DEVICE_SUPPORT => F::VALID,
        I::USM_HOST_SUPPORT => {
            flags(device.has(A::MapsHostMemory)?, true, device.has(A::HostAtomics)?)
        }
        I::USM_SYSTEM_SHARED_SUPPORT => {
            flags(device.has(A::Pageable)?, concurrent, device.has(A::HostAtomics)?)
        }
        // Managed memory migrates to the processor that uses it, so atomic operations are always local to it.
        _ => flags(device.has(A::Managed)?, concurrent, concurrent),
    })
}

/// Limits of images, which are arrays that textures read and surfaces read and write: the smaller one of the
/// limits of textures and of surfaces.
fn images<D: Dialect>(
    device: &DriverDevice<D>,
    name: I,
    answer: &mut Answer<'_>,
) -> error::Result<bool> {
    let least = |one: A, other: A| -> Result<usize> {
        Ok(size(device, one)?.min(size(device, other).or_else(|error| match error.kind() {
            ErrorKind::UnknownOption => Ok(usize::MAX),
            _ => Err(error),
        })?))
    };
    let side = match name {
        I::IMAGE_SUPPORT => return answer.bool(device::has_images::<D>()).map(|()| true),
        I::IMAGE2D_MAX_WIDTH => least(A::Texture2dWidth, A::Surface2dWidth)?,
        I::IMAGE2D_MAX_HEIGHT => least(A::Texture2dHeight, A::Surface2dHeight)?,
        I::IMAGE3D_MAX_WIDTH => least(A::Texture3dWidth, A::Surface3dWidth)?,
        I::IMAGE3D_MAX_HEIGHT => least(A::Texture3dHeight, A::Surface3dHeight)?,
        I::IMAGE3D_MAX_DEPTH => least(A::Texture3dDepth, A::Surface3dDepth)?,
        I::IMAGE_MAX_ARRAY_SIZE => least(A::TextureLayers, A::SurfaceLayers)?,
        I::IMAGE_MAX_BUFFER_SIZE => size(device, A::LinearWidth)?,
        _ => return Ok(false),
    };
    answer.value(&side)?;
    Ok(true)
}
