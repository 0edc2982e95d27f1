//! Properties of devices that are not the driver's: those that follow from the core, and defaults for what no driver
//! has, each in the type that UR defines for it.
use super::{device::HasDevices, objects::Device};
use ur_adapter::{
    default_answers::{Claim, Query, Shape},
    error::Result,
    info::Answer,
    object::Borrowed,
};
use ur_hal::{Capability, LaunchLimits};
use ur_sys::{ur_device_info_t as I, *};

/// Answers a property that is not the driver's; returns `false` if only a driver could answer it.
pub(super) fn answer<D: HasDevices>(
    device: Borrowed<'_, Device<D>>,
    name: I,
    answer: &mut Answer<'_>,
) -> Result<bool> {
    if let Some((row, column)) = vector(name) {
        answer.value(&D::vector_widths(device.driver())?[row][column])?;
        return Ok(true);
    }
    if relations::<D>(device, name, answer)?
        || launches::<D>(&device, name, answer)?
        || recordings(name, answer)?
        || constants(name, answer)?
    {
        return Ok(true);
    }
    if let Some(has) = features(name) {
        answer.bool(has)?;
        return Ok(true);
    }
    let lacked = name.shape().filter(|shape| is_lacked(name, *shape));
    let Some(shape) = lacked else { return Ok(false) };
    shape.answer(Claim::Nothing, |_| vec![], answer)?;
    Ok(true)
}
/// Relations to other objects.
fn relations<D: HasDevices>(
    device: Borrowed<'_, Device<D>>,
    name: I,
    answer: &mut Answer<'_>,
) -> Result<bool> {
    match name {
        I::REFERENCE_COUNT => answer.value(&device.api_refs()),
        I::TYPE => answer.value(&D::kind(device.driver()).0),
        I::PLATFORM => answer.handle(&device.platform),
        I::PARENT_DEVICE => match device.parent() {
            Some(parent) => answer.handle(parent),
            None => answer.value(&std::ptr::null_mut::<u8>()),
        },
        _ => return Ok(false),
    }?;
    Ok(true)
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
        I::MAX_NUM_SUB_GROUPS => {
            |limits, answer| answer.value(&(limits.items.div_ceil(limits.sub_group) as u32))
        }
        I::SUB_GROUP_SIZES_INTEL => |limits, answer| answer.slice(&[limits.sub_group as u32]),
        I::LOCAL_MEM_SIZE => |limits, answer| answer.value(&(limits.local_memory as u64)),
        I::KERNEL_LAUNCH_CAPABILITIES => {
            use ur_kernel_launch_properties_flags_t as F;
            let (has, _) = D::launches(device)?;
            let flags = [
                (Capability::CooperativeLaunch, F::COOPERATIVE),
                (Capability::Clusters, F::CLUSTER_DIMENSION),
                (Capability::ScratchMemory, F::WORK_GROUP_MEMORY),
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
/// Defaults for properties that the driver does not answer.
fn constants(name: I, answer: &mut Answer<'_>) -> Result<bool> {
    match name {
        I::PROFILE => answer.str("FULL_PROFILE"),
        I::MAX_WORK_ITEM_DIMENSIONS => answer.value(&3_u32),
        I::ADDRESS_BITS => answer.value(&usize::BITS),
        I::PRINTF_BUFFER_SIZE => answer.value(&(1_usize << 20)),
        I::MAX_CONSTANT_ARGS => answer.value(&64_u32),
        I::LOCAL_MEM_TYPE => answer.value(&ur_device_local_mem_type_t::LOCAL.0),
        I::GLOBAL_MEM_CACHE_TYPE => answer.value(&ur_device_mem_cache_type_t::READ_WRITE_CACHE.0),
        I::EXECUTION_CAPABILITIES => {
            answer.value(&ur_device_exec_capability_flags_t::KERNEL.bits())
        }
        I::ATOMIC_MEMORY_ORDER_CAPABILITIES | I::ATOMIC_FENCE_ORDER_CAPABILITIES => {
            answer.value(&ur_memory_order_capability_flags_t::VALID.bits())
        }
        I::ATOMIC_MEMORY_SCOPE_CAPABILITIES | I::ATOMIC_FENCE_SCOPE_CAPABILITIES => {
            answer.value(&ur_memory_scope_capability_flags_t::VALID.bits())
        }
        I::QUEUE_PROPERTIES | I::QUEUE_ON_HOST_PROPERTIES => {
            use ur_queue_flags_t as F;
            let order = F::OUT_OF_ORDER_EXEC_MODE_ENABLE | F::PROFILING_ENABLE | F::DISCARD_EVENTS;
            let priority = F::PRIORITY_LOW | F::PRIORITY_HIGH;
            let batches = F::SUBMISSION_BATCHED | F::SUBMISSION_IMMEDIATE;
            let default = F::USE_DEFAULT_STREAM | F::SYNC_WITH_DEFAULT_STREAM;
            answer.value(&(order | priority | batches | default).bits())
        }
        I::MAX_COMPUTE_QUEUE_INDICES => answer.value(&1_u32),
        I::MAX_READ_IMAGE_ARGS | I::MAX_WRITE_IMAGE_ARGS | I::MAX_READ_WRITE_IMAGE_ARGS => {
            answer.value(&128_u32)
        }
        I::MAX_SAMPLERS => answer.value(&16_u32),
        _ => return Ok(false),
    }?;
    Ok(true)
}
/// Command buffers and graphs. Every kind of update is supported, because the core keeps what is recorded.
fn recordings(name: I, answer: &mut Answer<'_>) -> Result<bool> {
    use ur_device_command_buffer_update_capability_flags_t as F;
    match name {
        I::COMMAND_BUFFER_SUPPORT_EXP
        | I::COMMAND_BUFFER_EVENT_SUPPORT_EXP
        | I::COMMAND_BUFFER_SUBGRAPH_SUPPORT_EXP
        | I::GRAPH_RECORD_AND_REPLAY_SUPPORT_EXP => answer.bool(true),
        I::COMMAND_BUFFER_UPDATE_CAPABILITIES_EXP => answer.value(&F::VALID.bits()),
        _ => return Ok(false),
    }?;
    Ok(true)
}
/// Whether a feature exists, for features that the driver does not answer.
fn features(name: I) -> Option<bool> {
    Some(match name {
        I::ENDIAN_LITTLE => cfg!(target_endian = "little"),
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
        | I::ENQUEUE_NATIVE_COMMAND_SUPPORT_EXP => true,
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
            I::BACKEND_RUNTIME_VERSION
                | I::BUILT_IN_KERNELS
                | I::COMPONENT_DEVICES
                | I::COMPOSITE_DEVICE
                | I::EXTENSIONS
                | I::GLOBAL_MEM_CACHELINE_SIZE
                | I::GLOBAL_MEM_CACHE_SIZE
                | I::IMAGE2D_MAX_HEIGHT
                | I::IMAGE2D_MAX_WIDTH
                | I::IMAGE3D_MAX_DEPTH
                | I::IMAGE3D_MAX_HEIGHT
                | I::IMAGE3D_MAX_WIDTH
                | I::IMAGE_MAX_ARRAY_SIZE
                | I::IMAGE_MAX_BUFFER_SIZE
                | I::IMAGE_PITCH_ALIGN_EXP
                | I::MAX_CLOCK_FREQUENCY
                | I::MAX_COMPUTE_UNITS
                | I::MAX_CONSTANT_BUFFER_SIZE
                | I::MAX_IMAGE_LINEAR_HEIGHT_EXP
                | I::MAX_IMAGE_LINEAR_PITCH_EXP
                | I::MAX_IMAGE_LINEAR_WIDTH_EXP
                | I::MAX_PARAMETER_SIZE
                | I::MEM_BASE_ADDR_ALIGN
                | I::MIPMAP_MAX_ANISOTROPY_EXP
                | I::NUM_COMPUTE_UNITS
                | I::PARTITION_MAX_SUB_DEVICES
                | I::PARTITION_TYPE
                | I::SUPPORTED_PARTITIONS
                | I::VENDOR_ID
        ),
    }
}
/// The row and column of a property in [`HasDevices::vector_widths`].
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
