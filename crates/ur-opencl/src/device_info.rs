//! What a device says of itself: mostly what the driver says, in the form that UR has from OpenCL. What most have alike the
//! core answers.
use super::{
    DriverDevice, OpenCl,
    cl::*,
    native::{
        memory::Reach,
        own::{Tells, number, text},
    },
};
use std::sync::Arc;
use ur_adapter::{error::Result, info::Answer};
use ur_core::over_driver::device::HasDevices;
use ur_hal::ErrorKind;
use ur_sys::{ur_device_info_t as I, *};

/// Answers what the driver tells, and what is otherwise than on most; returns `false` for what the core answers.
impl HasDevices for OpenCl {
    fn tell(device: &Arc<DriverDevice>, name: I, answer: &mut Answer<'_>) -> Result<bool> {
        Ok(as_told(device, name, answer)?
            || truths(device, name, answer)?
            || memory(device, name, answer)?
            || numbers(device, name, answer)?)
    }
}
/// What has the same form in both, by UR's name and OpenCL's number: the latter's name is `CL_DEVICE_` and the same, unless it is there.
type Same = [(I, cl_uint)];
const TEXTS: &Same = &[
    (I::NAME, 0x102B),
    (I::VENDOR, 0x102C),
    (I::DRIVER_VERSION, 0x102D), // CL_DRIVER_VERSION
    (I::VERSION, 0x102F),
    (I::BACKEND_RUNTIME_VERSION, 0x102F), // CL_DEVICE_VERSION
    (I::PROFILE, 0x102E),
    (I::EXTENSIONS, 0x1030),
    (I::BUILT_IN_KERNELS, 0x103F),
];
const NUMBERS: &Same = &[
    (I::VENDOR_ID, 0x1001),
    (I::MAX_COMPUTE_UNITS, 0x1002),
    (I::NUM_COMPUTE_UNITS, 0x1002), // CL_DEVICE_MAX_COMPUTE_UNITS
    (I::MAX_CLOCK_FREQUENCY, 0x100C),
    (I::ADDRESS_BITS, 0x100D),
    (I::MAX_READ_IMAGE_ARGS, 0x100E),
    (I::MAX_WRITE_IMAGE_ARGS, 0x100F),
    (I::MAX_READ_WRITE_IMAGE_ARGS, 0x104C),
    (I::IMAGE2D_MAX_WIDTH, 0x1011),
    (I::IMAGE2D_MAX_HEIGHT, 0x1012),
    (I::IMAGE3D_MAX_WIDTH, 0x1013),
    (I::IMAGE3D_MAX_HEIGHT, 0x1014),
    (I::IMAGE3D_MAX_DEPTH, 0x1015),
    (I::IMAGE_MAX_ARRAY_SIZE, 0x1041),
    (I::IMAGE_MAX_BUFFER_SIZE, 0x1040),
    (I::MAX_PARAMETER_SIZE, 0x1017),
    (I::MAX_SAMPLERS, 0x1018),
    (I::MEM_BASE_ADDR_ALIGN, 0x1019),
    (I::GLOBAL_MEM_CACHELINE_SIZE, 0x101D),
    (I::GLOBAL_MEM_CACHE_SIZE, 0x101E),
    (I::MAX_CONSTANT_BUFFER_SIZE, 0x1020),
    (I::MAX_CONSTANT_ARGS, 0x1021),
    (I::PROFILING_TIMER_RESOLUTION, 0x1025),
    (I::PRINTF_BUFFER_SIZE, 0x1049),
    (I::PARTITION_MAX_SUB_DEVICES, 0x1043),
    (I::MAX_NUM_SUB_GROUPS, 0x105C),
    (I::IP_VERSION, 0x4250), // CL_DEVICE_IP_VERSION_INTEL
    (I::DEVICE_ID, 0x4251),  // CL_DEVICE_ID_INTEL
    (I::GLOBAL_MEM_CACHE_TYPE, 0x101C),
    (I::LOCAL_MEM_TYPE, 0x1022),
];
const TRUTHS: &Same = &[
    (I::AVAILABLE, 0x1027),
    (I::ENDIAN_LITTLE, 0x1026),
    (I::COMPILER_AVAILABLE, 0x1028),
    (I::LINKER_AVAILABLE, 0x103E),
    (I::IMAGE_SUPPORT, 0x1016),
    (I::ERROR_CORRECTION_SUPPORT, 0x1024),
    (I::HOST_UNIFIED_MEMORY, 0x1035),
    (I::PREFERRED_INTEROP_USER_SYNC, 0x1048),
    (I::SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS, 0x105D),
];
fn as_told(device: &DriverDevice, name: I, answer: &mut Answer<'_>) -> Result<bool> {
    let told = |table: &Same| {
        let row = table.iter().find(|row| row.0 == name)?;
        Some(device.raw().told(row.1))
    };
    if let Some(told) = told(TEXTS) {
        answer.str(&text(&told?))?;
    } else if let Some(told) = told(TRUTHS) {
        answer.bool(told.is_ok_and(|bytes| number(&bytes) != 0))?;
    } else if let Some(told) = told(NUMBERS) {
        match (name, told) {
            // What came with later versions than the driver's is none there.
            (I::MAX_NUM_SUB_GROUPS, Err(_)) => answer.value(&1_u32),
            (I::MAX_READ_WRITE_IMAGE_ARGS, Err(_)) => answer.value(&0_u32),
            // An extension's, which the driver has or has not.
            (I::IP_VERSION | I::DEVICE_ID, Err(error)) => {
                Err(error.with_kind(ErrorKind::UnknownOption).into())
            }
            (_, told) => answer.slice(&told?),
        }?;
    } else {
        return Ok(false);
    }
    Ok(true)
}
fn truths(device: &DriverDevice, name: I, answer: &mut Answer<'_>) -> Result<bool> {
    let (facts, extensions) = (device.facts(), device.platform().extensions());
    let told = |name| device.raw().number(name).is_ok_and(|n| n != 0);
    let listed = |one: &str| {
        let all = device.raw().text(CL_DEVICE_EXTENSIONS).unwrap_or_default();
        all.split_whitespace().any(|listed| listed == one)
    };
    let is_system = facts.can.reach == Reach::System;
    let is = match name {
        I::BUILD_ON_SUBDEVICE => true,
        I::ATOMIC_64 => listed("cl_khr_int64_base_atomics"),
        I::BFLOAT16 => listed("cl_intel_bfloat16"),
        I::BFLOAT16_CONVERSIONS_NATIVE => listed("cl_intel_bfloat16_conversions"),
        I::USE_NATIVE_ASSERT => listed("cl_intel_devicelib_assert"),
        I::IS_INTEGRATED_GPU => {
            told(CL_DEVICE_HOST_UNIFIED_MEMORY)
                && device.raw().number(CL_DEVICE_TYPE).is_ok_and(|n| n & CL_DEVICE_TYPE_GPU != 0)
        }
        I::PROGRAM_SET_SPECIALIZATION_CONSTANTS => {
            !device.raw().text(CL_DEVICE_IL_VERSION).unwrap_or_default().is_empty()
        }
        I::GLOBAL_VARIABLE_SUPPORT => extensions.has("get_variable"),
        I::VIRTUAL_MEMORY_SUPPORT
        | I::IPC_MEMORY_SUPPORT_EXP
        | I::IPC_PHYSICAL_MEMORY_SUPPORT_EXP
        | I::USM_HOST_ALLOC_REGISTER_SUPPORT_EXP
        | I::MEMORY_EXPORT_EXPORTABLE_DEVICE_MEM_EXP => is_system,
        I::USM_P2P_SUPPORT_EXP => false,
        I::IPC_EVENT_SUPPORT_EXP => true,
        I::ASYNC_USM_ALLOCATIONS_SUPPORT_EXP
        | I::USM_POOL_SUPPORT
        | I::USM_CONTEXT_MEMCPY_SUPPORT_EXP => facts.can.reach != Reach::None,
        _ => return Ok(false),
    };
    answer.bool(is)?;
    Ok(true)
}
/// What memory it has and who can reach it.
fn memory(device: &DriverDevice, name: I, answer: &mut Answer<'_>) -> Result<bool> {
    use ur_device_usm_access_capability_flags_t as F;
    let facts = device.facts();
    let usm = |told: u32| match facts.can.reach {
        Reach::System => F::VALID.bits(),
        Reach::Usm => device.raw().number(told).map_or(0, |n| n as u32 & F::VALID.bits()),
        Reach::Svm => match told {
            CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL
            | CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL => 0,
            _ => F::ACCESS.bits(),
        },
        Reach::None => 0,
    };
    match name {
        I::GLOBAL_MEM_SIZE => answer.value(&facts.memory[0]),
        I::MAX_MEM_ALLOC_SIZE => answer.value(&facts.memory[1]),
        I::GLOBAL_MEM_FREE if facts.can.reach == Reach::System => {
            let Some(free) = ur_system::host::free_memory() else { return Ok(false) };
            answer.value(&free.min(facts.memory[0]))
        }
        I::USM_HOST_SUPPORT => answer.value(&usm(CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL)),
        I::USM_DEVICE_SUPPORT => answer.value(&usm(CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL)),
        I::USM_SINGLE_SHARED_SUPPORT => {
            answer.value(&usm(CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL))
        }
        I::USM_CROSS_SHARED_SUPPORT => {
            answer.value(&usm(CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL))
        }
        I::USM_SYSTEM_SHARED_SUPPORT => {
            answer.value(&usm(CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL))
        }
        I::UUID => answer.slice(&device.uuid()),
        _ => return Ok(false),
    }?;
    Ok(true)
}
/// What has another form than in OpenCL.
fn numbers(device: &DriverDevice, name: I, answer: &mut Answer<'_>) -> Result<bool> {
    let told = |name| device.raw().number(name).unwrap_or(0);
    match name {
        I::SINGLE_FP_CONFIG => answer.value(&floats(told(CL_DEVICE_SINGLE_FP_CONFIG)).bits()),
        I::DOUBLE_FP_CONFIG => answer.value(&floats(told(CL_DEVICE_DOUBLE_FP_CONFIG)).bits()),
        I::HALF_FP_CONFIG => answer.value(&floats(told(CL_DEVICE_HALF_FP_CONFIG)).bits()),
        I::EXECUTION_CAPABILITIES => answer.value(&(told(CL_DEVICE_EXECUTION_CAPABILITIES) as u32)),
        I::IL_VERSION => answer.str(&device.raw().text(CL_DEVICE_IL_VERSION).unwrap_or_default()),
        I::QUEUE_PROPERTIES | I::QUEUE_ON_HOST_PROPERTIES => answer.value(&queue_flags().bits()),
        I::SUB_GROUP_SIZES_INTEL => answer.slice(&device.facts().sub_groups),
        I::ATOMIC_MEMORY_ORDER_CAPABILITIES => {
            answer.value(&orders(told(CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES)).bits())
        }
        I::ATOMIC_FENCE_ORDER_CAPABILITIES => {
            answer.value(&orders(told(CL_DEVICE_ATOMIC_FENCE_CAPABILITIES)).bits())
        }
        I::ATOMIC_MEMORY_SCOPE_CAPABILITIES => {
            answer.value(&scopes(told(CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES)).bits())
        }
        I::ATOMIC_FENCE_SCOPE_CAPABILITIES => {
            answer.value(&scopes(told(CL_DEVICE_ATOMIC_FENCE_CAPABILITIES)).bits())
        }
        I::SUPPORTED_PARTITIONS => {
            use ur_device_partition_t as P;
            let own = device.raw().numbers(CL_DEVICE_PARTITION_PROPERTIES).unwrap_or_default();
            let known = [P::EQUALLY.0, P::BY_COUNTS.0, P::BY_AFFINITY_DOMAIN.0];
            let all: Vec<u32> =
                known.into_iter().filter(|one| own.contains(&(*one as usize))).collect();
            answer.slice(&all)
        }
        I::PARTITION_AFFINITY_DOMAIN => {
            let all = ur_device_affinity_domain_flags_t::VALID.bits();
            answer.value(&(told(CL_DEVICE_PARTITION_AFFINITY_DOMAIN) as u32 & all))
        }
        _ => return Ok(false),
    }?;
    Ok(true)
}
/// What queues can be asked for.
fn queue_flags() -> ur_queue_flags_t {
    use ur_queue_flags_t as F;
    let hints =
        F::PRIORITY_LOW | F::PRIORITY_HIGH | F::SUBMISSION_BATCHED | F::SUBMISSION_IMMEDIATE;
    F::OUT_OF_ORDER_EXEC_MODE_ENABLE | F::PROFILING_ENABLE | F::DISCARD_EVENTS | hints
}
/// OpenCL's flags of floating point as UR's.
fn floats(flags: u64) -> ur_device_fp_capability_flags_t {
    use ur_device_fp_capability_flags_t as F;
    let all = [
        F::DENORM,
        F::INF_NAN,
        F::ROUND_TO_NEAREST,
        F::ROUND_TO_ZERO,
        F::ROUND_TO_INF,
        F::FMA,
        F::SOFT_FLOAT,
        F::CORRECTLY_ROUNDED_DIVIDE_SQRT,
    ];
    chosen(flags, all.into_iter().enumerate().map(|(bit, flag)| (1 << bit, flag)))
}
fn chosen<F: Default + std::ops::BitOr<Output = F>>(
    flags: u64,
    pairs: impl IntoIterator<Item = (u64, F)>,
) -> F {
    let set = pairs.into_iter().filter(|(bit, _)| flags & bit != 0);
    set.fold(F::default(), |all, (_, flag)| all | flag)
}
/// OpenCL names one order of acquiring and releasing where UR has three.
fn orders(flags: u64) -> ur_memory_order_capability_flags_t {
    use ur_memory_order_capability_flags_t as F;
    chosen(
        flags | CL_DEVICE_ATOMIC_ORDER_RELAXED, // which every device has
        [
            (CL_DEVICE_ATOMIC_ORDER_RELAXED, F::RELAXED),
            (CL_DEVICE_ATOMIC_ORDER_ACQ_REL, F::ACQUIRE | F::RELEASE | F::ACQ_REL),
            (CL_DEVICE_ATOMIC_ORDER_SEQ_CST, F::SEQ_CST),
        ],
    )
}
fn scopes(flags: u64) -> ur_memory_scope_capability_flags_t {
    use ur_memory_scope_capability_flags_t as F;
    chosen(
        flags | CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP,
        [
            (CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP, F::WORK_ITEM | F::SUB_GROUP | F::WORK_GROUP),
            (CL_DEVICE_ATOMIC_SCOPE_DEVICE, F::DEVICE),
            (CL_DEVICE_ATOMIC_SCOPE_ALL_DEVICES, F::SYSTEM),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_keep_their_meaning() {
        use ur_device_fp_capability_flags_t as F;
        assert_eq!(floats(0b1000_0100), F::ROUND_TO_NEAREST | F::CORRECTLY_ROUNDED_DIVIDE_SQRT);
        let all = orders(CL_DEVICE_ATOMIC_ORDER_ACQ_REL);
        assert!(all.contains(ur_memory_order_capability_flags_t::RELAXED));
        assert!(!all.contains(ur_memory_order_capability_flags_t::SEQ_CST));
        assert!(scopes(0).contains(ur_memory_scope_capability_flags_t::WORK_GROUP));
    }
}
