//! Answers to `urDeviceGetInfo`, from the driver's attributes and from what this adapter supports. Properties
//! that are not answered here get the core's default answer.
use super::DriverDevice;
use super::{
    attribute::Attribute as A, backing, device, driver::Dialect, native::device as native,
    shared_words,
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::Backend,
};
use ur_sys::{ur_device_info_t as I, *};

/// A function that answers some properties and returns `None` for all others.
type Answers<D> = fn(&DriverDevice<D>, I, &mut Answer<'_>) -> Option<Result<()>>;

/// Answers the properties that differ from the core's defaults; `None` for all others.
pub(super) fn tell<D: Dialect>(
    device: &DriverDevice<D>,
    name: I,
    answer: &mut Answer<'_>,
) -> Option<Result<()>> {
    let asked: [Answers<D>; 6] = [identity, shape, numbers, memory, usm, images];
    asked.into_iter().find_map(|ask| ask(device, name, answer))
}
/// Answers with the attribute's value.
fn number<D: Dialect>(device: &DriverDevice<D>, attribute: A, to: &mut Answer<'_>) -> Result<()> {
    to.value(&(device.get(attribute)? as u32))
}
fn size<D: Dialect>(device: &DriverDevice<D>, attribute: A) -> Result<usize> {
    Ok(device.get(attribute)?.max(0) as usize)
}
/// Fails if the attribute is 0, which here means that the driver does not report it.
fn known<D: Dialect>(device: &DriverDevice<D>, attribute: A) -> Result<()> {
    match device.get(attribute)? {
        0 => Err(Error::new(
            ErrorCode::UnsupportedEnumeration,
            format!("this driver of {} does not tell {attribute:?}", D::NAME),
        )),
        _ => Ok(()),
    }
}

/// Name, vendor, versions and availability of compilers.
fn identity<D: Dialect>(
    device: &DriverDevice<D>,
    name: I,
    answer: &mut Answer<'_>,
) -> Option<Result<()>> {
    let (is_cuda, n) = (D::BACKEND == Backend::Cuda, device.number());
    let driver = || native::version::<D>().map(|v| (v / 1000, v % 1000 / 10));
    Some(match name {
        I::VENDOR_ID => answer.value(&if is_cuda { 0x10de_u32 } else { 0x1002 }),
        I::VENDOR => answer.str(if is_cuda { "NVIDIA Corporation" } else { "AMD Corporation" }),
        I::DEVICE_ID => device_id::<D>(n).and_then(|id| answer.value(&id)),
        I::NAME => native::name::<D>(n).and_then(|name| answer.str(&name)),
        I::DRIVER_VERSION => driver().and_then(|(major, minor)| {
            let name = D::NAME;
            answer.str(&format!("{name} {major}.{minor}"))
        }),
        I::BACKEND_RUNTIME_VERSION => {
            driver().and_then(|(major, minor)| answer.str(&format!("{major}.{minor}")))
        }
        // The SYCL runtime derives the architecture from this: 9.0 is sm_90.
        I::VERSION => {
            device.capability().and_then(|(major, minor)| answer.str(&format!("{major}.{minor}")))
        }
        I::IP_VERSION => device
            .capability()
            .and_then(|(major, minor)| answer.value(&((major * 10 + minor) as u32))),
        I::EXTENSIONS => answer.str("cl_khr_fp64 cl_khr_fp16 cl_khr_subgroups"),
        I::UUID => answer.slice(&device.uuid()),
        I::PCI_ADDRESS => native::pci_address::<D>(n).and_then(|at| answer.str(&at)),
        I::COMPILER_AVAILABLE | I::LINKER_AVAILABLE | I::GLOBAL_VARIABLE_SUPPORT => {
            answer.bool(is_cuda)
        }
        I::IS_INTEGRATED_GPU => device.has(A::Integrated).and_then(|yes| answer.bool(yes)),
        _ => return None,
    })
}
/// The PCI device id. The driver does not report it; sysfs does.
fn device_id<D: Dialect>(number: i32) -> Result<u32> {
    let at = native::pci_address::<D>(number)?.to_lowercase();
    let file = format!("/sys/bus/pci/devices/{at}/device");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).map_err(|_| {
        Error::new(
            ErrorCode::UnsupportedEnumeration,
            format!("the driver does not tell the model's number, and {file} cannot be read"),
        )
    })
}

/// Numbers of compute units, registers and parameter bytes.
fn shape<D: Dialect>(
    device: &DriverDevice<D>,
    name: I,
    answer: &mut Answer<'_>,
) -> Option<Result<()>> {
    Some(match name {
        I::MAX_COMPUTE_UNITS | I::NUM_COMPUTE_UNITS => number(device, A::Units, answer),
        I::MAX_REGISTERS_PER_WORK_GROUP => number(device, A::Registers, answer),
        // What every driver accepts; some accept more on newer devices.
        I::MAX_PARAMETER_SIZE => answer.value(&4096_usize),
        _ => return None,
    })
}
/// Floating-point, atomic and clock capabilities.
fn numbers<D: Dialect>(
    device: &DriverDevice<D>,
    name: I,
    answer: &mut Answer<'_>,
) -> Option<Result<()>> {
    use ur_device_fp_capability_flags_t as F;
    let ieee = F::DENORM | F::INF_NAN | F::ROUND_TO_NEAREST | F::ROUND_TO_ZERO | F::ROUND_TO_INF;
    // Whether the compute capability has at least this major version. AMD numbers its architectures
    // differently, and all supported ones have the features that need at most 6.
    let since = |major: i32| match D::BACKEND {
        Backend::Cuda => device.capability().map(|(ours, _)| ours >= major),
        _ => Ok(major <= 6),
    };
    Some(match name {
        I::SINGLE_FP_CONFIG => {
            answer.value(&(ieee | F::FMA | F::CORRECTLY_ROUNDED_DIVIDE_SQRT).bits())
        }
        I::DOUBLE_FP_CONFIG => answer.value(&(ieee | F::FMA).bits()),
        I::HALF_FP_CONFIG => since(6)
            .and_then(|yes| answer.value(&if yes { ieee | F::FMA } else { F::default() }.bits())),
        I::BFLOAT16 | I::BFLOAT16_CONVERSIONS_NATIVE | I::ASYNC_BARRIER => {
            since(8).and_then(|yes| answer.bool(yes))
        }
        I::ATOMIC_64 => since(6).and_then(|yes| answer.bool(yes)),
        I::SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS => since(7).and_then(|yes| answer.bool(yes)),
        I::ATOMIC_MEMORY_ORDER_CAPABILITIES | I::ATOMIC_FENCE_ORDER_CAPABILITIES => {
            use ur_memory_order_capability_flags_t as O;
            let weak = O::RELAXED | O::ACQUIRE | O::RELEASE | O::ACQ_REL;
            since(7)
                .and_then(|yes| answer.value(&if yes { weak | O::SEQ_CST } else { weak }.bits()))
        }
        // Sub-groups and groups stay on one multiprocessor, and the device has a global timer.
        I::CLOCK_SUB_GROUP_SUPPORT_EXP
        | I::CLOCK_WORK_GROUP_SUPPORT_EXP
        | I::CLOCK_DEVICE_SUPPORT_EXP
        | I::USE_NATIVE_ASSERT => answer.bool(D::BACKEND == Backend::Cuda),
        I::MAX_CLOCK_FREQUENCY => {
            device.get(A::Clock).and_then(|khz| answer.value(&(khz as u32 / 1000)))
        }
        I::PROFILING_TIMER_RESOLUTION => answer.value(&500_usize), // nanoseconds: the resolution of driver events
        _ => return None,
    })
}
/// Sizes and capabilities of its memory.
fn memory<D: Dialect>(
    device: &DriverDevice<D>,
    name: I,
    answer: &mut Answer<'_>,
) -> Option<Result<()>> {
    let bytes = |of: A| size(device, of).map(|bytes| bytes as u64);
    Some(match name {
        I::GLOBAL_MEM_SIZE | I::MAX_MEM_ALLOC_SIZE => {
            native::memory::<D>(device.number()).and_then(|all| answer.value(&(all as u64)))
        }
        I::GLOBAL_MEM_FREE => device
            .enter()
            .and_then(|on| on.memory())
            .and_then(|(free, _)| answer.value(&(free as u64))),
        I::GLOBAL_MEM_CACHELINE_SIZE => answer.value(&128_u32),
        I::GLOBAL_MEM_CACHE_SIZE => bytes(A::L2Cache).and_then(|n| answer.value(&n)),
        I::MAX_CONSTANT_BUFFER_SIZE => bytes(A::ConstantMemory).and_then(|n| answer.value(&n)),
        I::MAX_CONSTANT_ARGS => answer.value(&9_u32),
        // In bits: the alignment of sub-buffers.
        I::MEM_BASE_ADDR_ALIGN => {
            device.get(A::TextureAlignment).and_then(|bytes| answer.value(&(bytes as u32 * 8)))
        }
        I::ERROR_CORRECTION_SUPPORT => device.has(A::Ecc).and_then(|yes| answer.bool(yes)),
        I::HOST_UNIFIED_MEMORY => device.has(A::Integrated).and_then(|yes| answer.bool(yes)),
        I::MEMORY_CLOCK_RATE => known(device, A::MemoryClock)
            .and_then(|()| device.get(A::MemoryClock))
            .and_then(|khz| answer.value(&(khz as u32 / 1000))),
        I::MEMORY_BUS_WIDTH => {
            known(device, A::BusWidth).and_then(|()| number(device, A::BusWidth, answer))
        }
        // Two transfers of the bus width in each clock cycle.
        I::MAX_MEMORY_BANDWIDTH => known(device, A::MemoryClock)
            .and_then(|()| Ok(bytes(A::MemoryClock)? * 1000 * 2 * bytes(A::BusWidth)? / 8))
            .and_then(|rate| answer.value(&rate)),
        I::VIRTUAL_MEMORY_SUPPORT => device.has(A::VirtualMemory).and_then(|b| answer.bool(b)),
        I::ASYNC_USM_ALLOCATIONS_SUPPORT_EXP => device.has(A::Pools).and_then(|b| answer.bool(b)),
        I::USM_HOST_ALLOC_REGISTER_SUPPORT_EXP => {
            device.has(A::HostRegister).and_then(|yes| answer.bool(yes))
        }
        _ => return None,
    })
}

/// Which kinds of USM the device and the host can access, and what can be shared with other processes.
fn usm<D: Dialect>(
    device: &DriverDevice<D>,
    name: I,
    answer: &mut Answer<'_>,
) -> Option<Result<()>> {
    Some(match name {
        I::USM_HOST_SUPPORT
        | I::USM_DEVICE_SUPPORT
        | I::USM_SINGLE_SHARED_SUPPORT
        | I::USM_CROSS_SHARED_SUPPORT
        | I::USM_SYSTEM_SHARED_SUPPORT => {
            access(device, name).and_then(|flags| answer.value(&flags.bits()))
        }
        I::IPC_MEMORY_SUPPORT_EXP => device.is_shared().and_then(|yes| answer.bool(yes)),
        I::IPC_PHYSICAL_MEMORY_SUPPORT_EXP => {
            backing::is_physical_shared(device).and_then(|yes| answer.bool(yes))
        }
        I::IPC_EVENT_SUPPORT_EXP => {
            shared_words::is_supported(device).map_err(Into::into).and_then(|yes| answer.bool(yes))
        }
        _ => return None,
    })
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
) -> Option<Result<()>> {
    let least = |one: A, other: A| -> Result<usize> {
        Ok(size(device, one)?.min(size(device, other).or_else(|error| match error.code() {
            ErrorCode::UnsupportedEnumeration => Ok(usize::MAX),
            _ => Err(error),
        })?))
    };
    let sides = match name {
        I::IMAGE2D_MAX_WIDTH => Some(least(A::Texture2dWidth, A::Surface2dWidth)),
        I::IMAGE2D_MAX_HEIGHT => Some(least(A::Texture2dHeight, A::Surface2dHeight)),
        I::IMAGE3D_MAX_WIDTH => Some(least(A::Texture3dWidth, A::Surface3dWidth)),
        I::IMAGE3D_MAX_HEIGHT => Some(least(A::Texture3dHeight, A::Surface3dHeight)),
        I::IMAGE3D_MAX_DEPTH => Some(least(A::Texture3dDepth, A::Surface3dDepth)),
        I::IMAGE_MAX_ARRAY_SIZE => Some(least(A::TextureLayers, A::SurfaceLayers)),
        I::IMAGE_MAX_BUFFER_SIZE => Some(size(device, A::LinearWidth)),
        _ => None,
    };
    if let Some(side) = sides {
        return Some(side.and_then(|side| answer.value(&side)));
    }
    Some(match name {
        I::IMAGE_SUPPORT => answer.bool(device::has_images::<D>()),
        _ => return None,
    })
}
