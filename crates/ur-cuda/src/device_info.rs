//! What a device says of itself, answered from what the driver says of it. What an adapter decides
//! is answered as it is decided here; what this one does not have is a plain no.
use super::{
    Device, attribute::Attribute as A, backing, device, driver::Dialect, native::device as native,
    platform::the_platform, queue, shared_event,
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Backend, Borrowed},
};
use ur_sys::{ur_device_info_t as I, *};

/// Answers some properties, and leaves others (`None`) to somebody else.
type Answers<D> = fn(&Device<D>, I, &mut Answer<'_>) -> Option<Result<()>>;

/// One property.
///
/// # Errors
/// `UNSUPPORTED_ENUMERATION` for what neither driver nor adapter can tell; the driver's own.
pub(super) fn answer<D: Dialect>(
    device: Borrowed<'_, Device<D>>,
    name: I,
    answer: &mut Answer<'_>,
) -> Result<()> {
    let asked: [Answers<D>; 8] = [identity, shape, numbers, vectors, memory, usm, images, optional];
    if name == I::REFERENCE_COUNT {
        return answer.value(&device.api_refs());
    }
    asked.into_iter().find_map(|ask| ask(&device, name, answer)).unwrap_or_else(|| {
        Err(Error::new(
            ErrorCode::UnsupportedEnumeration,
            format!("a device of {} has no answer to {name:?}", D::NAME),
        ))
    })
}
/// A number of the driver's, as it is.
fn number<D: Dialect>(device: &Device<D>, attribute: A, to: &mut Answer<'_>) -> Result<()> {
    to.value(&(device.get(attribute)? as u32))
}
fn size<D: Dialect>(device: &Device<D>, attribute: A) -> Result<usize> {
    Ok(device.get(attribute)?.max(0) as usize)
}
/// A number of the driver's that is 0 where the driver does not say.
fn known<D: Dialect>(device: &Device<D>, attribute: A) -> Result<()> {
    match device.get(attribute)? {
        0 => Err(Error::new(
            ErrorCode::UnsupportedEnumeration,
            format!("this driver of {} does not tell {attribute:?}", D::NAME),
        )),
        _ => Ok(()),
    }
}

/// What it is called, what it belongs to, whether it can be used.
fn identity<D: Dialect>(
    device: &Device<D>,
    name: I,
    answer: &mut Answer<'_>,
) -> Option<Result<()>> {
    let (is_cuda, n) = (D::BACKEND == Backend::Cuda, device.number());
    let driver = || native::version::<D>().map(|v| (v / 1000, v % 1000 / 10));
    Some(match name {
        I::TYPE => answer.value(&ur_device_type_t::GPU.0),
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
        // The SYCL runtime takes this for the architecture: 9.0 is sm_90.
        I::VERSION => {
            device.capability().and_then(|(major, minor)| answer.str(&format!("{major}.{minor}")))
        }
        I::IP_VERSION => device
            .capability()
            .and_then(|(major, minor)| answer.value(&((major * 10 + minor) as u32))),
        I::PROFILE => answer.str("FULL_PROFILE"),
        I::BUILT_IN_KERNELS => answer.str(""),
        I::EXTENSIONS => answer.str("cl_khr_fp64 cl_khr_fp16 cl_khr_subgroups"),
        I::PLATFORM => answer.handle(&the_platform::<D>()),
        // There are no parts of devices, nor devices made of several.
        I::PARENT_DEVICE | I::COMPOSITE_DEVICE => answer.value(&std::ptr::null_mut::<u8>()),
        I::COMPONENT_DEVICES => answer.slice::<*mut u8>(&[]),
        I::SUPPORTED_PARTITIONS => answer.slice::<u32>(&[]),
        I::PARTITION_TYPE => answer.slice::<u64>(&[]),
        I::PARTITION_MAX_SUB_DEVICES | I::PARTITION_AFFINITY_DOMAIN => answer.value(&0_u32),
        I::BUILD_ON_SUBDEVICE => answer.bool(false),
        I::UUID => answer.slice(&device.uuid()),
        I::PCI_ADDRESS => native::pci_address::<D>(n).and_then(|at| answer.str(&at)),
        I::ENDIAN_LITTLE | I::AVAILABLE => answer.bool(true),
        I::COMPILER_AVAILABLE | I::LINKER_AVAILABLE | I::GLOBAL_VARIABLE_SUPPORT => {
            answer.bool(is_cuda)
        }
        I::IS_INTEGRATED_GPU => device.has(A::Integrated).and_then(|yes| answer.bool(yes)),
        _ => return None,
    })
}
/// What the PCI bus knows the model as. The driver does not say; the kernel does.
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

/// How large what it computes may be.
fn shape<D: Dialect>(device: &Device<D>, name: I, answer: &mut Answer<'_>) -> Option<Result<()>> {
    let sizes = |[x, y, z]: [A; 3]| -> Result<[usize; 3]> {
        Ok([size(device, x)?, size(device, y)?, size(device, z)?])
    };
    let (grid, group) = ([A::GridX, A::GridY, A::GridZ], [A::GroupX, A::GroupY, A::GroupZ]);
    Some(match name {
        I::MAX_COMPUTE_UNITS | I::NUM_COMPUTE_UNITS => number(device, A::Units, answer),
        I::MAX_WORK_ITEM_DIMENSIONS => answer.value(&3_u32),
        I::MAX_WORK_ITEM_SIZES => sizes(group).and_then(|sizes| answer.slice(&sizes)),
        I::MAX_WORK_GROUP_SIZE => size(device, A::GroupItems).and_then(|n| answer.value(&n)),
        I::MAX_WORK_GROUPS_3D => sizes(grid).and_then(|sizes| answer.slice(&sizes)),
        I::MAX_WORK_GROUPS => {
            let all = |of: [usize; 3]| of.into_iter().fold(1, usize::saturating_mul);
            sizes(grid).and_then(|sizes| answer.value(&all(sizes)))
        }
        I::MAX_NUM_SUB_GROUPS => {
            let most =
                || Ok(size(device, A::GroupItems)?.div_ceil(size(device, A::SubGroup)?.max(1)));
            most().and_then(|most| answer.value(&(most as u32)))
        }
        I::SUB_GROUP_SIZES_INTEL => device.get(A::SubGroup).and_then(|n| answer.slice(&[n as u32])),
        I::MAX_REGISTERS_PER_WORK_GROUP => number(device, A::Registers, answer),
        // What every driver takes; some take more on newer devices.
        I::MAX_PARAMETER_SIZE => answer.value(&4096_usize),
        I::KERNEL_LAUNCH_CAPABILITIES => launches(device).and_then(|f| answer.value(&f.bits())),
        _ => return None,
    })
}
fn launches<D: Dialect>(device: &Device<D>) -> Result<ur_kernel_launch_properties_flags_t> {
    use ur_kernel_launch_properties_flags_t as F;
    let clusters = if device.has(A::Clusters)? { F::CLUSTER_DIMENSION } else { F::default() };
    let cooperative = if device.has(A::Cooperative)? { F::COOPERATIVE } else { F::default() };
    Ok(clusters | cooperative | F::WORK_GROUP_MEMORY)
}

/// What its numbers, clocks and atomic operations are like.
fn numbers<D: Dialect>(device: &Device<D>, name: I, answer: &mut Answer<'_>) -> Option<Result<()>> {
    use ur_device_fp_capability_flags_t as F;
    let ieee = F::DENORM | F::INF_NAN | F::ROUND_TO_NEAREST | F::ROUND_TO_ZERO | F::ROUND_TO_INF;
    // What an architecture brought. AMD's are numbered otherwise, and all in use have these two.
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
        I::ATOMIC_MEMORY_SCOPE_CAPABILITIES | I::ATOMIC_FENCE_SCOPE_CAPABILITIES => {
            answer.value(&ur_memory_scope_capability_flags_t::VALID.bits())
        }
        // Sub-groups and groups stay on one multiprocessor, and the device has a timer of its own.
        I::CLOCK_SUB_GROUP_SUPPORT_EXP
        | I::CLOCK_WORK_GROUP_SUPPORT_EXP
        | I::CLOCK_DEVICE_SUPPORT_EXP
        | I::USE_NATIVE_ASSERT => answer.bool(D::BACKEND == Backend::Cuda),
        I::MAX_CLOCK_FREQUENCY => {
            device.get(A::Clock).and_then(|khz| answer.value(&(khz as u32 / 1000)))
        }
        I::ADDRESS_BITS => answer.value(&u64::BITS),
        I::PROFILING_TIMER_RESOLUTION => answer.value(&500_usize), // nanoseconds, of driver events
        I::EXECUTION_CAPABILITIES => {
            answer.value(&ur_device_exec_capability_flags_t::KERNEL.bits())
        }
        I::QUEUE_PROPERTIES | I::QUEUE_ON_HOST_PROPERTIES => answer.value(&queue::flags().bits()),
        I::QUEUE_ON_DEVICE_PROPERTIES => answer.value(&0_u32),
        I::MAX_COMPUTE_QUEUE_INDICES => answer.value(&queue::ENGINES),
        I::PREFERRED_INTEROP_USER_SYNC => answer.bool(true),
        I::PRINTF_BUFFER_SIZE => answer.value(&(1_usize << 20)), // the driver's own default
        _ => return None,
    })
}
/// Work-items compute on single numbers.
fn vectors<D: Dialect>(_: &Device<D>, name: I, answer: &mut Answer<'_>) -> Option<Result<()>> {
    matches!(
        name,
        I::PREFERRED_VECTOR_WIDTH_CHAR
            | I::PREFERRED_VECTOR_WIDTH_SHORT
            | I::PREFERRED_VECTOR_WIDTH_INT
            | I::PREFERRED_VECTOR_WIDTH_LONG
            | I::PREFERRED_VECTOR_WIDTH_LONG_LONG
            | I::PREFERRED_VECTOR_WIDTH_FLOAT
            | I::PREFERRED_VECTOR_WIDTH_DOUBLE
            | I::PREFERRED_VECTOR_WIDTH_HALF
            | I::NATIVE_VECTOR_WIDTH_CHAR
            | I::NATIVE_VECTOR_WIDTH_SHORT
            | I::NATIVE_VECTOR_WIDTH_INT
            | I::NATIVE_VECTOR_WIDTH_LONG
            | I::NATIVE_VECTOR_WIDTH_LONG_LONG
            | I::NATIVE_VECTOR_WIDTH_FLOAT
            | I::NATIVE_VECTOR_WIDTH_DOUBLE
            | I::NATIVE_VECTOR_WIDTH_HALF
    )
    .then(|| answer.value(&1_u32))
}

/// What memory it has.
fn memory<D: Dialect>(device: &Device<D>, name: I, answer: &mut Answer<'_>) -> Option<Result<()>> {
    let bytes = |of: A| size(device, of).map(|bytes| bytes as u64);
    Some(match name {
        I::GLOBAL_MEM_SIZE | I::MAX_MEM_ALLOC_SIZE => {
            native::memory::<D>(device.number()).and_then(|all| answer.value(&(all as u64)))
        }
        I::GLOBAL_MEM_FREE => device
            .enter()
            .and_then(|on| on.memory())
            .and_then(|(free, _)| answer.value(&(free as u64))),
        I::GLOBAL_MEM_CACHE_TYPE => answer.value(&ur_device_mem_cache_type_t::READ_WRITE_CACHE.0),
        I::GLOBAL_MEM_CACHELINE_SIZE => answer.value(&128_u32),
        I::GLOBAL_MEM_CACHE_SIZE => bytes(A::L2Cache).and_then(|n| answer.value(&n)),
        I::MAX_CONSTANT_BUFFER_SIZE => bytes(A::ConstantMemory).and_then(|n| answer.value(&n)),
        I::MAX_CONSTANT_ARGS => answer.value(&9_u32),
        I::LOCAL_MEM_TYPE => answer.value(&ur_device_local_mem_type_t::LOCAL.0),
        I::LOCAL_MEM_SIZE => {
            device.local_memory().and_then(|bytes| answer.value(&u64::from(bytes)))
        }
        // In bits: where a part of a buffer may begin.
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
        // Two words of the bus's width a cycle.
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

/// Who reaches which kind of USM, and what of it other processes can be given.
fn usm<D: Dialect>(device: &Device<D>, name: I, answer: &mut Answer<'_>) -> Option<Result<()>> {
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
            shared_event::is_supported(device).and_then(|yes| answer.bool(yes))
        }
        I::USM_POOL_SUPPORT
        | I::USM_P2P_SUPPORT_EXP
        | I::USM_CONTEXT_MEMCPY_SUPPORT_EXP
        | I::REUSABLE_EVENTS_SUPPORT_EXP
        | I::PER_EVENT_PROFILING_SUPPORT_EXP
        | I::TIMESTAMP_RECORDING_SUPPORT_EXP
        | I::DEVICE_WAIT_SUPPORT_EXP
        | I::ENQUEUE_HOST_TASK_SUPPORT_EXP
        | I::ENQUEUE_NATIVE_COMMAND_SUPPORT_EXP => answer.bool(true),
        _ => return None,
    })
}
fn access<D: Dialect>(
    device: &Device<D>,
    name: I,
) -> Result<ur_device_usm_access_capability_flags_t> {
    use ur_device_usm_access_capability_flags_t as F;
    // Reached at all; by host and device at the same time; with atomic operations that both see.
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
        // Managed memory moves to whoever uses it: atomic operations are done where it is.
        _ => flags(device.has(A::Managed)?, concurrent, concurrent),
    })
}

/// Images: arrays of the driver's, which textures read and surfaces read and write. Bindless ones
/// there are none, as their limits say.
fn images<D: Dialect>(device: &Device<D>, name: I, answer: &mut Answer<'_>) -> Option<Result<()>> {
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
        I::IMAGE_SRGB => answer.bool(false),
        I::MAX_READ_IMAGE_ARGS | I::MAX_WRITE_IMAGE_ARGS | I::MAX_READ_WRITE_IMAGE_ARGS => {
            answer.value(&128_u32)
        }
        I::MAX_SAMPLERS => answer.value(&16_u32),
        I::MAX_IMAGE_LINEAR_WIDTH_EXP
        | I::MAX_IMAGE_LINEAR_HEIGHT_EXP
        | I::MAX_IMAGE_LINEAR_PITCH_EXP => answer.value(&0_usize),
        I::IMAGE_PITCH_ALIGN_EXP | I::MIPMAP_MAX_ANISOTROPY_EXP => answer.value(&0_u32),
        _ => return None,
    })
}

/// Features that this adapter does not have: a plain no, of the type the ABI gives.
fn optional<D: Dialect>(_: &Device<D>, name: I, answer: &mut Answer<'_>) -> Option<Result<()>> {
    Some(match name {
        I::_2D_BLOCK_ARRAY_CAPABILITIES_EXP | I::COMMAND_BUFFER_UPDATE_CAPABILITIES_EXP => {
            answer.value(&0_u32)
        }
        I::KERNEL_SET_SPECIALIZATION_CONSTANTS
        | I::PROGRAM_SET_SPECIALIZATION_CONSTANTS
        | I::MEM_CHANNEL_SUPPORT
        | I::HOST_PIPE_READ_WRITE_SUPPORT
        | I::ESIMD_SUPPORT
        | I::COMMAND_BUFFER_SUPPORT_EXP
        | I::COMMAND_BUFFER_EVENT_SUPPORT_EXP
        | I::COMMAND_BUFFER_SUBGRAPH_SUPPORT_EXP
        | I::GRAPH_RECORD_AND_REPLAY_SUPPORT_EXP
        | I::MEMORY_EXPORT_EXPORTABLE_DEVICE_MEM_EXP
        | I::BINDLESS_IMAGES_SUPPORT_EXP
        | I::BINDLESS_IMAGES_SHARED_USM_SUPPORT_EXP
        | I::BINDLESS_IMAGES_1D_USM_SUPPORT_EXP
        | I::BINDLESS_IMAGES_2D_USM_SUPPORT_EXP
        | I::MIPMAP_SUPPORT_EXP
        | I::MIPMAP_ANISOTROPY_SUPPORT_EXP
        | I::MIPMAP_LEVEL_REFERENCE_SUPPORT_EXP
        | I::EXTERNAL_MEMORY_IMPORT_SUPPORT_EXP
        | I::EXTERNAL_SEMAPHORE_IMPORT_SUPPORT_EXP
        | I::CUBEMAP_SUPPORT_EXP
        | I::CUBEMAP_SEAMLESS_FILTERING_SUPPORT_EXP
        | I::BINDLESS_SAMPLED_IMAGE_FETCH_1D_USM_SUPPORT_EXP
        | I::BINDLESS_SAMPLED_IMAGE_FETCH_1D_SUPPORT_EXP
        | I::BINDLESS_SAMPLED_IMAGE_FETCH_2D_USM_SUPPORT_EXP
        | I::BINDLESS_SAMPLED_IMAGE_FETCH_2D_SUPPORT_EXP
        | I::BINDLESS_SAMPLED_IMAGE_FETCH_3D_SUPPORT_EXP
        | I::IMAGE_ARRAY_SUPPORT_EXP
        | I::BINDLESS_UNIQUE_ADDRESSING_PER_DIM_SUPPORT_EXP
        | I::BINDLESS_SAMPLE_1D_USM_SUPPORT_EXP
        | I::BINDLESS_SAMPLE_2D_USM_SUPPORT_EXP
        | I::BINDLESS_IMAGES_GATHER_SUPPORT_EXP
        | I::LOW_POWER_EVENTS_SUPPORT_EXP
        | I::MULTI_DEVICE_COMPILE_SUPPORT_EXP
        | I::DYNAMIC_LINK_SUPPORT_EXP => answer.bool(false),
        _ => return None,
    })
}
