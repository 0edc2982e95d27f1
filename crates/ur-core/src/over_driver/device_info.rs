//! Answers to `urDeviceGetInfo`, once for every driver: from what the driver says of a device
//! ([`DescribesDevices`](ur_hal::DescribesDevices)), from what follows from the core, and defaults for what no driver has.
use super::{DriverDevice, device::HasDevices, objects::Device};
use std::sync::OnceLock;
use ur_adapter::{
    default_answers::{Claim, Query, Shape},
    error::Result,
    info::{Answer, Plain},
    object::{Borrowed, Object},
    partition::as_pairs,
};
use ur_hal::{
    Capability as C, DeviceFacts, DeviceKind, EventSharing, ImageLimits, LaunchLimits,
    PartitionKind, UsmSupport,
};
use ur_lock::get_or_try;
use ur_sys::{ur_device_info_t as I, *};

/// Answers a property; returns `false` if the device has no answer to it.
pub(super) fn answer<D: HasDevices>(
    device: Borrowed<'_, Device<D>>,
    name: I,
    answer: &mut Answer<'_>,
) -> Result<bool> {
    if let Some((row, column)) = vector(name) {
        answer.value(&D::vector_widths(device.driver())?[row][column])?;
        return Ok(true);
    }
    if relations::<D>(&device, name, answer)?
        || partitions::<D>(&device, name, answer)?
        || identity::<D>(&device, name, answer)?
        || launches::<D>(&device, name, answer)?
        || compute::<D>(&device, name, answer)?
        || memory::<D>(&device, name, answer)?
        || sharing::<D>(&device, name, answer)?
        || images::<D>(&device, name, answer)?
        || recordings::<D>(name, answer)?
        || constants(name, answer)?
    {
        return Ok(true);
    }
    if let Some(feature) = feature(name) {
        answer.bool(facts::<D>(&device)?.capabilities.has(feature))?;
        return Ok(true);
    }
    let lacked = name.shape().filter(|shape| is_lacked(name, *shape));
    let Some(shape) = lacked else { return Ok(false) };
    shape.answer(Claim::Nothing, |_| vec![], answer)?;
    Ok(true)
}
/// What UR calls a kind of device.
pub(super) fn kind(of: DeviceKind) -> ur_device_type_t {
    match of {
        DeviceKind::Cpu => ur_device_type_t::CPU,
        DeviceKind::Gpu => ur_device_type_t::GPU,
        DeviceKind::Fpga => ur_device_type_t::FPGA,
        DeviceKind::Mca => ur_device_type_t::MCA,
        DeviceKind::Vpu => ur_device_type_t::VPU,
    }
}
/// What the driver says once and for all. It is asked until it has succeeded.
fn known<D: HasDevices, T: Send + Sync + 'static>(
    device: &Device<D>,
    ask: impl FnOnce(&DriverDevice<D>) -> ur_hal::Result<T>,
) -> Result<&T> {
    Ok(get_or_try(device.known.get::<OnceLock<T>>(), || ask(device.driver()))?)
}
fn facts<D: HasDevices>(device: &Device<D>) -> Result<&DeviceFacts> {
    known(device, D::facts)
}
/// Answers with a value, if there is one; returns whether there is.
fn maybe<T: Plain>(value: Option<T>, answer: &mut Answer<'_>) -> Result<bool> {
    value.iter().try_for_each(|value| answer.value(value))?;
    Ok(value.is_some())
}
/// Answers with a text, if there is one; returns whether there is.
fn maybe_text(text: Option<&str>, answer: &mut Answer<'_>) -> Result<bool> {
    text.iter().try_for_each(|text| answer.str(text))?;
    Ok(text.is_some())
}
/// Answers with a truth.
fn truth(is: bool, answer: &mut Answer<'_>) -> Result<bool> {
    maybe(Some(u8::from(is)), answer)
}

/// Relations to other objects.
fn relations<D: HasDevices>(
    device: &Object<Device<D>>,
    name: I,
    answer: &mut Answer<'_>,
) -> Result<bool> {
    match name {
        I::REFERENCE_COUNT => answer.value(&device.api_refs()),
        I::TYPE => answer.value(&kind(D::kind(device.driver())).0),
        I::PLATFORM => answer.handle(&device.platform),
        I::PARENT_DEVICE => match device.parent() {
            Some(parent) => answer.handle(parent),
            None => answer.value(&std::ptr::null_mut::<u8>()),
        },
        I::COMPOSITE_DEVICE => match D::composite(device.driver())? {
            Some(whole) => answer.handle(&*Device::<D>::of(&whole)?),
            None => answer.value(&std::ptr::null_mut::<u8>()),
        },
        I::COMPONENT_DEVICES => {
            let components = D::components(device.driver())?;
            let components = components.iter().map(Device::<D>::of).collect::<Result<Vec<_>>>()?;
            answer.handles(components.iter().map(|one| &**one))
        }
        _ => return Ok(false),
    }?;
    Ok(true)
}
/// How the device can be partitioned, and by what it came about.
fn partitions<D: HasDevices>(device: &Device<D>, name: I, answer: &mut Answer<'_>) -> Result<bool> {
    let driver = device.driver();
    match name {
        I::SUPPORTED_PARTITIONS => {
            let kind = |kind| match kind {
                PartitionKind::Equally => ur_device_partition_t::EQUALLY.0,
                PartitionKind::ByCounts => ur_device_partition_t::BY_COUNTS.0,
                PartitionKind::ByDomain => ur_device_partition_t::BY_AFFINITY_DOMAIN.0,
                PartitionKind::BySlice => ur_device_partition_t::BY_CSLICE.0,
            };
            let kinds: Vec<_> = D::partition_kinds(driver)?.into_iter().map(kind).collect();
            answer.slice(&kinds).map(|()| true)
        }
        I::PARTITION_MAX_SUB_DEVICES => maybe(D::most_parts(driver)?, answer),
        I::PARTITION_AFFINITY_DOMAIN => {
            let domains = D::affinity_domains(driver)?;
            maybe(domains.map(|domains| domains.bits()), answer)
        }
        I::PARTITION_TYPE => {
            let how = D::partition_of(driver);
            answer.slice(&how.map_or(vec![], |how| as_pairs(&how))).map(|()| true)
        }
        _ => Ok(false),
    }
}
/// Name, vendor, versions and numbers.
fn identity<D: HasDevices>(device: &Device<D>, name: I, answer: &mut Answer<'_>) -> Result<bool> {
    let (driver, facts) = (device.driver(), || facts(device));
    match name {
        I::NAME => maybe_text(Some(&facts()?.name), answer),
        I::VENDOR => maybe_text(Some(&facts()?.vendor), answer),
        I::VENDOR_ID => maybe(Some(facts()?.vendor_id), answer),
        I::DRIVER_VERSION => maybe_text(Some(&facts()?.driver_version), answer),
        I::BACKEND_RUNTIME_VERSION => maybe_text(Some(&facts()?.runtime_version), answer),
        I::EXTENSIONS => maybe_text(Some(&facts()?.extensions), answer),
        I::IL_VERSION => maybe_text(facts()?.il_version.as_deref(), answer),
        I::VERSION => {
            let version = D::hardware_version(driver)?;
            maybe_text(version.as_ref().map(|version| &*version.text), answer)
        }
        I::IP_VERSION => {
            let version = D::hardware_version(driver)?;
            maybe(version.and_then(|version| version.number), answer)
        }
        I::UUID => {
            let own = D::uuid_of_part(driver)?;
            maybe(Some(own.map_or_else(|| D::uuid(driver), Ok)?), answer)
        }
        I::DEVICE_ID => maybe(D::model_number(driver)?, answer),
        I::PCI_ADDRESS => maybe_text(D::pci_address(driver)?.as_deref(), answer),
        I::LUID => maybe(D::luid(driver)?.map(|luid| luid.id), answer),
        I::NODE_MASK => maybe(D::luid(driver)?.map(|luid| luid.node_mask), answer),
        I::IS_INTEGRATED_GPU => {
            truth(facts()?.is_integrated && D::kind(driver) != DeviceKind::Cpu, answer)
        }
        _ => Ok(false),
    }
}
/// Limits of launches.
fn launches<D: HasDevices>(device: &Device<D>, name: I, answer: &mut Answer<'_>) -> Result<bool> {
    type Of = fn(&LaunchLimits, &mut Answer<'_>) -> Result<()>;
    let of: Of = match name {
        I::MAX_WORK_ITEM_SIZES => |limits, answer| answer.slice(&limits.group),
        I::MAX_WORK_GROUP_SIZE => |limits, answer| answer.value(&limits.items),
        I::MAX_WORK_GROUPS_3D => |limits, answer| answer.slice(&limits.grid),
        I::MAX_WORK_GROUPS => {
            |limits, answer| answer.value(&limits.grid.into_iter().fold(1, usize::saturating_mul))
        }
        I::LOCAL_MEM_SIZE => |limits, answer| answer.value(&(limits.local_memory as u64)),
        I::MAX_NUM_SUB_GROUPS => {
            let limits = D::launches(device)?.1;
            let smallest = match &facts::<D>(device)?.sub_group_sizes {
                Some(sizes) => sizes.iter().min().map_or(1, |least| (*least).max(1) as usize),
                None => limits.sub_group,
            };
            answer.value(&(limits.items.div_ceil(smallest) as u32))?;
            return Ok(true);
        }
        I::SUB_GROUP_SIZES_INTEL => {
            match &facts::<D>(device)?.sub_group_sizes {
                Some(sizes) => answer.slice(sizes),
                None => answer.slice(&[D::launches(device)?.1.sub_group as u32]),
            }?;
            return Ok(true);
        }
        I::KERNEL_LAUNCH_CAPABILITIES => {
            use ur_kernel_launch_properties_flags_t as F;
            let (has, _) = D::launches(device)?;
            let flags = [
                (C::CooperativeLaunch, F::COOPERATIVE),
                (C::Clusters, F::CLUSTER_DIMENSION),
                (C::ScratchMemory, F::WORK_GROUP_MEMORY),
            ];
            let all = flags.into_iter().filter(|(what, _)| has.has(*what));
            answer.value(&all.fold(F::default(), |all, (_, flag)| all | flag).bits())?;
            return Ok(true);
        }
        _ => return Ok(false),
    };
    of(&D::launches(device)?.1, answer)?;
    Ok(true)
}
/// Compute units, numbers and clocks.
fn compute<D: HasDevices>(device: &Device<D>, name: I, answer: &mut Answer<'_>) -> Result<bool> {
    let (driver, facts) = (device.driver(), || facts(device));
    let layout = || facts().map(|facts| facts.unit_layout);
    match name {
        I::NUM_COMPUTE_UNITS => maybe(Some(facts()?.compute_units), answer),
        I::MAX_COMPUTE_UNITS => match D::parallel_units(driver)? {
            Some(units) => maybe(Some(units), answer),
            None => maybe(Some(facts()?.compute_units), answer),
        },
        I::GPU_EU_COUNT => maybe(D::execution_units(driver)?, answer),
        I::GPU_EU_SLICES => maybe(layout()?.map(|all| all.slices), answer),
        I::GPU_SUBSLICES_PER_SLICE | I::XE_CORES_PER_CLUSTER => {
            maybe(layout()?.map(|all| all.subslices), answer)
        }
        I::GPU_EU_COUNT_PER_SUBSLICE | I::EUS_PER_XE_CORE => {
            maybe(layout()?.map(|all| all.units), answer)
        }
        I::GPU_HW_THREADS_PER_EU => maybe(layout()?.map(|all| all.threads), answer),
        I::GPU_EU_SIMD_WIDTH => maybe(layout()?.map(|all| all.lanes), answer),
        I::MAX_REGISTERS_PER_WORK_GROUP => maybe(facts()?.registers, answer),
        I::MAX_PARAMETER_SIZE => maybe(facts()?.argument_bytes, answer),
        I::MAX_CONSTANT_ARGS => maybe(facts()?.constant_arguments, answer),
        I::MAX_READ_WRITE_IMAGE_ARGS => maybe(facts()?.read_write_images, answer),
        I::PRINTF_BUFFER_SIZE => maybe(facts()?.printf_bytes, answer),
        I::MAX_CLOCK_FREQUENCY => maybe(facts()?.clock_mhz, answer),
        I::PROFILING_TIMER_RESOLUTION => maybe(facts()?.timer_resolution, answer),
        I::CURRENT_CLOCK_THROTTLE_REASONS => {
            let reasons = D::throttle_reasons(driver)?;
            maybe(reasons.map(|reasons| reasons.bits()), answer)
        }
        I::HALF_FP_CONFIG => maybe(Some(facts()?.half.bits()), answer),
        I::SINGLE_FP_CONFIG => maybe(Some(facts()?.single.bits()), answer),
        I::DOUBLE_FP_CONFIG => maybe(Some(facts()?.double.bits()), answer),
        I::ATOMIC_MEMORY_ORDER_CAPABILITIES | I::ATOMIC_FENCE_ORDER_CAPABILITIES => {
            use ur_memory_order_capability_flags_t as O;
            let weak = O::RELAXED | O::ACQUIRE | O::RELEASE | O::ACQ_REL;
            let has_strong = facts()?.capabilities.has(C::SequentialConsistency);
            maybe(Some(if has_strong { weak | O::SEQ_CST } else { weak }.bits()), answer)
        }
        I::EXECUTION_CAPABILITIES => {
            use ur_device_exec_capability_flags_t as F;
            let has_native = facts()?.capabilities.has(C::NativeKernels);
            let native = if has_native { F::NATIVE_KERNEL } else { F::default() };
            maybe(Some((F::KERNEL | native).bits()), answer)
        }
        I::QUEUE_PROPERTIES | I::QUEUE_ON_HOST_PROPERTIES => {
            use ur_queue_flags_t as F;
            let order = F::OUT_OF_ORDER_EXEC_MODE_ENABLE | F::PROFILING_ENABLE;
            let priority = F::PRIORITY_LOW | F::PRIORITY_HIGH;
            let batches = F::SUBMISSION_BATCHED | F::SUBMISSION_IMMEDIATE;
            let default = F::USE_DEFAULT_STREAM | F::SYNC_WITH_DEFAULT_STREAM;
            let all = order | F::DISCARD_EVENTS | priority | batches | default;
            maybe(Some(if facts()?.has_plain_queues { order } else { all }.bits()), answer)
        }
        I::MAX_COMPUTE_QUEUE_INDICES => maybe(Some(D::engines(driver)?), answer),
        _ => Ok(false),
    }
}
/// Sizes and speed of memory and caches.
fn memory<D: HasDevices>(device: &Device<D>, name: I, answer: &mut Answer<'_>) -> Result<bool> {
    let (driver, facts) = (device.driver(), || facts(device));
    match name {
        I::GLOBAL_MEM_SIZE => match D::told_memory(driver)? {
            Some(bytes) => maybe(Some(bytes), answer),
            None => maybe(Some(D::memory_size(driver)? as u64), answer),
        },
        I::MAX_MEM_ALLOC_SIZE => match D::told_allocation(driver)? {
            Some(bytes) => maybe(Some(bytes), answer),
            None => maybe(Some(D::largest_allocation(driver)? as u64), answer),
        },
        I::GLOBAL_MEM_FREE => maybe(D::free_memory(driver)?, answer),
        I::MEMORY_CLOCK_RATE => maybe(D::memory_clock(driver)?, answer),
        I::MEMORY_BUS_WIDTH => maybe(D::bus_width(driver)?, answer),
        I::MAX_MEMORY_BANDWIDTH => maybe(D::bandwidth(driver)?, answer),
        I::GLOBAL_MEM_CACHE_SIZE => maybe(D::cache_size(driver)?, answer),
        I::GLOBAL_MEM_CACHELINE_SIZE => maybe(facts()?.cache_line, answer),
        I::GLOBAL_MEM_CACHE_TYPE => {
            use ur_device_mem_cache_type_t as T;
            let is_uncached = facts()?.is_uncached;
            maybe(Some(if is_uncached { T::NONE } else { T::READ_WRITE_CACHE }.0), answer)
        }
        I::LOCAL_MEM_TYPE => {
            use ur_device_local_mem_type_t as T;
            let is_global = facts()?.has_local_in_memory;
            maybe(Some(if is_global { T::GLOBAL } else { T::LOCAL }.0), answer)
        }
        I::MAX_CONSTANT_BUFFER_SIZE => maybe(D::constant_memory(driver)?, answer),
        // In bits.
        I::MEM_BASE_ADDR_ALIGN => maybe(facts()?.buffer_alignment.map(|bytes| bytes * 8), answer),
        I::HOST_UNIFIED_MEMORY => truth(facts()?.is_integrated, answer),
        I::VIRTUAL_MEMORY_SUPPORT => truth(D::has_virtual_memory(driver)?.unwrap_or(false), answer),
        I::_2D_BLOCK_ARRAY_CAPABILITIES_EXP => {
            maybe(D::block_access(driver)?.map(|access| access.bits()), answer)
        }
        _ => Ok(false),
    }
}
/// Access to USM, and what can be shared with other processes.
fn sharing<D: HasDevices>(device: &Device<D>, name: I, answer: &mut Answer<'_>) -> Result<bool> {
    let driver = device.driver();
    let usm = || -> Result<&UsmSupport> {
        known(device, |driver| Ok(D::usm_support(driver)?.unwrap_or_default()))
    };
    match name {
        I::USM_HOST_SUPPORT => answer.value(&usm()?.host.bits()),
        I::USM_DEVICE_SUPPORT => answer.value(&usm()?.device.bits()),
        I::USM_SINGLE_SHARED_SUPPORT => answer.value(&usm()?.shared.bits()),
        I::USM_CROSS_SHARED_SUPPORT => answer.value(&usm()?.cross_shared.bits()),
        I::USM_SYSTEM_SHARED_SUPPORT => answer.value(&usm()?.system.bits()),
        I::IPC_MEMORY_SUPPORT_EXP => answer.bool(D::shares_memory(driver)?),
        I::IPC_PHYSICAL_MEMORY_SUPPORT_EXP => answer.bool(D::shares_physical(driver)?),
        I::IPC_EVENT_SUPPORT_EXP => answer.bool(D::event_sharing(driver) != EventSharing::None),
        I::MEMORY_EXPORT_EXPORTABLE_DEVICE_MEM_EXP => {
            answer.bool(D::exports_memory(driver)?.unwrap_or(false))
        }
        _ => return Ok(false),
    }?;
    Ok(true)
}
/// Limits of images and samplers.
fn images<D: HasDevices>(device: &Device<D>, name: I, answer: &mut Answer<'_>) -> Result<bool> {
    type Of = fn(&ImageLimits, &mut Answer<'_>) -> Result<bool>;
    let of: Of = match name {
        I::IMAGE_SUPPORT => |limits, answer| truth(limits.are_supported, answer),
        I::IMAGE2D_MAX_WIDTH => |limits, answer| maybe(limits.two[0], answer),
        I::IMAGE2D_MAX_HEIGHT => |limits, answer| maybe(limits.two[1], answer),
        I::IMAGE3D_MAX_WIDTH => |limits, answer| maybe(limits.three[0], answer),
        I::IMAGE3D_MAX_HEIGHT => |limits, answer| maybe(limits.three[1], answer),
        I::IMAGE3D_MAX_DEPTH => |limits, answer| maybe(limits.three[2], answer),
        I::IMAGE_MAX_ARRAY_SIZE => |limits, answer| maybe(limits.layers, answer),
        I::IMAGE_MAX_BUFFER_SIZE => |limits, answer| maybe(limits.buffer, answer),
        I::MAX_READ_IMAGE_ARGS => |limits, answer| maybe(limits.arguments[0], answer),
        I::MAX_WRITE_IMAGE_ARGS => |limits, answer| maybe(limits.arguments[1], answer),
        I::MAX_SAMPLERS => |limits, answer| maybe(limits.samplers, answer),
        _ => return Ok(false),
    };
    of(known(device, |driver| Ok(D::image_limits(driver)?.unwrap_or(ImageLimits::NONE)))?, answer)
}
/// Defaults for properties that the driver does not answer.
fn constants(name: I, answer: &mut Answer<'_>) -> Result<bool> {
    match name {
        I::ENDIAN_LITTLE => answer.bool(cfg!(target_endian = "little")),
        // What the core implements over any driver.
        I::AVAILABLE
        | I::PREFERRED_INTEROP_USER_SYNC
        | I::USM_POOL_SUPPORT
        | I::USM_P2P_SUPPORT_EXP
        | I::USM_CONTEXT_MEMCPY_SUPPORT_EXP
        | I::REUSABLE_EVENTS_SUPPORT_EXP
        | I::PER_EVENT_PROFILING_SUPPORT_EXP
        | I::TIMESTAMP_RECORDING_SUPPORT_EXP
        | I::DEVICE_WAIT_SUPPORT_EXP
        | I::ENQUEUE_HOST_TASK_SUPPORT_EXP
        | I::ENQUEUE_NATIVE_COMMAND_SUPPORT_EXP => answer.bool(true),
        I::PROFILE => answer.str("FULL_PROFILE"),
        I::MAX_WORK_ITEM_DIMENSIONS => answer.value(&3_u32),
        I::ADDRESS_BITS => answer.value(&usize::BITS),
        I::PRINTF_BUFFER_SIZE => answer.value(&(1_usize << 20)),
        I::MAX_CONSTANT_ARGS => answer.value(&64_u32),
        I::ATOMIC_MEMORY_SCOPE_CAPABILITIES | I::ATOMIC_FENCE_SCOPE_CAPABILITIES => {
            answer.value(&ur_memory_scope_capability_flags_t::VALID.bits())
        }
        I::MAX_READ_IMAGE_ARGS | I::MAX_WRITE_IMAGE_ARGS | I::MAX_READ_WRITE_IMAGE_ARGS => {
            answer.value(&128_u32)
        }
        I::MAX_SAMPLERS => answer.value(&16_u32),
        _ => return Ok(false),
    }?;
    Ok(true)
}
/// Command buffers and graphs. Every kind of update is supported, because the core keeps what is recorded.
fn recordings<D: HasDevices>(name: I, answer: &mut Answer<'_>) -> Result<bool> {
    use ur_device_command_buffer_update_capability_flags_t as F;
    let has = !D::HAS_GRAPHS || D::executes_graphs();
    match name {
        I::COMMAND_BUFFER_SUPPORT_EXP
        | I::COMMAND_BUFFER_EVENT_SUPPORT_EXP
        | I::GRAPH_RECORD_AND_REPLAY_SUPPORT_EXP => answer.bool(has),
        I::COMMAND_BUFFER_SUBGRAPH_SUPPORT_EXP => answer.bool(!D::HAS_GRAPHS),
        I::COMMAND_BUFFER_UPDATE_CAPABILITIES_EXP => {
            answer.value(&if has { F::VALID } else { F::default() }.bits())
        }
        _ => return Ok(false),
    }?;
    Ok(true)
}
/// The capability behind a property.
fn feature(name: I) -> Option<C> {
    Some(match name {
        I::COMPILER_AVAILABLE => C::Compiler,
        I::LINKER_AVAILABLE => C::Linker,
        I::DYNAMIC_LINK_SUPPORT_EXP => C::LoadedLinker,
        I::MULTI_DEVICE_COMPILE_SUPPORT_EXP => C::JointCompiler,
        I::BUILD_ON_SUBDEVICE => C::BuildsForParts,
        I::GLOBAL_VARIABLE_SUPPORT => C::Variables,
        I::PROGRAM_SET_SPECIALIZATION_CONSTANTS => C::SpecializationConstants,
        I::ESIMD_SUPPORT => C::ExplicitSimd,
        I::USE_NATIVE_ASSERT => C::NativeAssert,
        I::BFLOAT16 => C::Bfloat16,
        I::BFLOAT16_CONVERSIONS_NATIVE => C::Bfloat16Conversions,
        I::ASYNC_BARRIER => C::AsyncBarrier,
        I::ATOMIC_64 => C::Atomics64,
        I::SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS => C::IndependentSubGroups,
        I::CLOCK_SUB_GROUP_SUPPORT_EXP
        | I::CLOCK_WORK_GROUP_SUPPORT_EXP
        | I::CLOCK_DEVICE_SUPPORT_EXP => C::KernelClocks,
        I::ERROR_CORRECTION_SUPPORT => C::ErrorCorrection,
        I::IMAGE_SRGB => C::SrgbImages,
        I::ASYNC_USM_ALLOCATIONS_SUPPORT_EXP => C::OrderedAllocation,
        I::USM_HOST_ALLOC_REGISTER_SUPPORT_EXP => C::Pinning,
        _ => return None,
    })
}
/// Whether a device has nothing of this unless its driver says so: no feature, and of these lists, limits and sizes none.
fn is_lacked(name: I, shape: Shape) -> bool {
    match shape {
        Shape::Truth => true,
        Shape::Flags(_) => name != I::CURRENT_CLOCK_THROTTLE_REASONS, // which is measured
        _ => matches!(
            name,
            I::BUILT_IN_KERNELS
                | I::GLOBAL_MEM_CACHELINE_SIZE
                | I::GLOBAL_MEM_CACHE_SIZE
                | I::IMAGE_PITCH_ALIGN_EXP
                | I::MAX_CLOCK_FREQUENCY
                | I::MAX_CONSTANT_BUFFER_SIZE
                | I::MAX_IMAGE_LINEAR_HEIGHT_EXP
                | I::MAX_IMAGE_LINEAR_PITCH_EXP
                | I::MAX_IMAGE_LINEAR_WIDTH_EXP
                | I::MAX_PARAMETER_SIZE
                | I::MEM_BASE_ADDR_ALIGN
                | I::MIPMAP_MAX_ANISOTROPY_EXP
                | I::PARTITION_MAX_SUB_DEVICES
        ),
    }
}
/// The row and column of a property in [`DescribesDevices::vector_widths`](ur_hal::DescribesDevices::vector_widths).
fn vector(name: I) -> Option<(usize, usize)> {
    Some(match name {
        I::PREFERRED_VECTOR_WIDTH_CHAR => (0, 0),
        I::PREFERRED_VECTOR_WIDTH_SHORT => (0, 1),
        I::PREFERRED_VECTOR_WIDTH_INT => (0, 2),
        I::PREFERRED_VECTOR_WIDTH_LONG | I::PREFERRED_VECTOR_WIDTH_LONG_LONG => (0, 3),
        I::PREFERRED_VECTOR_WIDTH_FLOAT => (0, 4),
        I::PREFERRED_VECTOR_WIDTH_DOUBLE => (0, 5),
        I::PREFERRED_VECTOR_WIDTH_HALF => (0, 6),
        I::NATIVE_VECTOR_WIDTH_CHAR => (1, 0),
        I::NATIVE_VECTOR_WIDTH_SHORT => (1, 1),
        I::NATIVE_VECTOR_WIDTH_INT => (1, 2),
        I::NATIVE_VECTOR_WIDTH_LONG | I::NATIVE_VECTOR_WIDTH_LONG_LONG => (1, 3),
        I::NATIVE_VECTOR_WIDTH_FLOAT => (1, 4),
        I::NATIVE_VECTOR_WIDTH_DOUBLE => (1, 5),
        I::NATIVE_VECTOR_WIDTH_HALF => (1, 6),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ur_hal::{AffinityDomains, BlockAccess, FloatFeatures, ThrottleReasons, UsmAccess};

    /// The core passes sets of the driver's on as they are.
    #[test]
    fn sets_have_the_bits_of_the_abi() {
        macro_rules! same { ($ours:ident = $theirs:ident: $($one:ident $(= $other:ident)?),*) => {
            $(same!(one $ours $theirs $one $($other)?);)*
            assert_eq!($ours::ALL.bits(), $theirs::VALID.bits());
        };
        (one $ours:ident $theirs:ident $one:ident) => { same!(one $ours $theirs $one $one) };
        (one $ours:ident $theirs:ident $one:ident $other:ident) => {
            assert_eq!($ours::$one.bits(), $theirs::$other.bits());
        } }
        same!(FloatFeatures = ur_device_fp_capability_flags_t: CORRECTLY_ROUNDED_DIVIDE_SQRT, ROUND_TO_NEAREST,
            ROUND_TO_ZERO, ROUND_TO_INF, INF_NAN, DENORM, FMA, SOFT_FLOAT);
        same!(UsmAccess = ur_device_usm_access_capability_flags_t: ACCESS, ATOMIC = ATOMIC_ACCESS,
            CONCURRENT = CONCURRENT_ACCESS, ATOMIC_CONCURRENT = ATOMIC_CONCURRENT_ACCESS);
        same!(AffinityDomains = ur_device_affinity_domain_flags_t: NUMA, L4_CACHE, L3_CACHE, L2_CACHE, L1_CACHE,
            NEXT_PARTITIONABLE);
        same!(ThrottleReasons = ur_device_throttle_reasons_flags_t: POWER_CAP, CURRENT_LIMIT, THERMAL_LIMIT, PSU_ALERT,
            SW_RANGE, HW_RANGE, OTHER);
        same!(BlockAccess = ur_exp_device_2d_block_array_capability_flags_t: LOAD, STORE);
    }
}
