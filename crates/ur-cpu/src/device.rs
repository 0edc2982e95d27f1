//! The device: the processor and memory of this host, described as they are.
use super::{
    Adapter, Cpu, Platform,
    code::MAX_WORK_GROUP,
    host::{free_memory, host, part_uuid, uuid},
    image::LONGEST_SIDE,
    native_code::{ARGUMENT_BYTES, LOCAL_MEMORY},
    partition::{self, Part},
    platform::{the_platform, version},
    queue,
};
use std::sync::OnceLock;
use ur_adapter::{
    api::{DeviceApi, DeviceExpApi},
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Owned},
    partition::rule,
};
use ur_core::over_driver::own_handle;
use ur_sys::*;

/// What `ur_device_handle_t` points at: the whole processor (the root device), or a part of it.
#[derive(Debug)]
pub struct Device {
    pub(super) part: Option<Part>,
}
impl Device {
    /// Whether this is the whole processor.
    pub fn is_root(&self) -> bool {
        self.part.is_none()
    }
    /// The whole processor, of which this may be a part.
    pub fn root(&self) -> Owned<Self> {
        the_device()
    }
    /// The device this is a part of; `None` for the root.
    pub fn parent(&self) -> Option<&Owned<Self>> {
        self.part.as_ref().map(|part| &part.parent)
    }
    /// The logical processors of a sub-device, by the kernel's numbers; `None` for the root, which
    /// has all that this process may run on.
    pub fn cpus(&self) -> Option<&[usize]> {
        self.part.as_ref().map(|part| &*part.cpus)
    }
    /// How many logical processors it has.
    pub fn compute_units(&self) -> usize {
        self.cpus().map_or(host().cores as usize, <[usize]>::len)
    }
}

/// The root device, of which a process has one.
pub(super) fn the_device() -> Owned<Device> {
    static DEVICE: OnceLock<Owned<Device>> = OnceLock::new();
    DEVICE.get_or_init(|| Owned::new(Device { part: None })).clone()
}

/// Nanoseconds of the clock that profiling and global timestamps are in.
pub(super) fn now() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Answers some properties, and leaves others to somebody else.
type Answers = fn(&Device, ur_device_info_t, &mut Answer<'_>) -> Option<Result<()>>;

impl DeviceApi for Cpu {
    fn device_get(
        _platform: Borrowed<'_, Platform>,
        kind: ur_device_type_t,
    ) -> Result<Vec<Owned<Device>>> {
        Ok(match kind {
            ur_device_type_t::DEFAULT | ur_device_type_t::ALL | ur_device_type_t::CPU => {
                vec![the_device()]
            }
            _ => vec![],
        })
    }
    fn device_get_info(
        device: Borrowed<'_, Device>,
        name: ur_device_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        const ASKED: [Answers; 5] = [identity, compute, memory, images, optional];
        if name == ur_device_info_t::REFERENCE_COUNT {
            return answer.value(&device.api_refs());
        }
        ASKED.into_iter().find_map(|ask| ask(&device, name, answer)).unwrap_or_else(|| {
            Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("a CPU has no answer to {name:?}"),
            ))
        })
    }
    fn device_partition(
        device: Borrowed<'_, Device>,
        properties: &ur_device_partition_properties_t,
    ) -> Result<Vec<Owned<Device>>> {
        partition::partition(device, &rule(properties)?)
    }
    fn device_get_native_handle(device: Borrowed<'_, Device>) -> Result<ur_native_handle_t> {
        own_handle::of(&device)
    }
    fn device_create_with_native_handle(
        native: ur_native_handle_t,
        _adapter: Borrowed<'_, Adapter>,
        _properties: Option<&ur_device_native_properties_t>,
    ) -> Result<Owned<Device>> {
        own_handle::find(native)
    }
    fn device_select_binary(
        _device: Borrowed<'_, Device>,
        binaries: &[ur_device_binary_t],
    ) -> Result<u32> {
        ur_core::program::link::select_binary::<Self>(binaries)
    }
    fn device_get_global_timestamps(_device: Borrowed<'_, Device>) -> Result<(u64, u64)> {
        let now = now();
        Ok((now, now))
    }
}
impl DeviceExpApi for Cpu {
    fn device_wait_exp(device: Owned<Device>) -> Result<()> {
        queue::wait_for_device(&device);
        Ok(())
    }
}

/// What it is called, what it belongs to, whether it can be used.
fn identity(
    device: &Device,
    name: ur_device_info_t,
    answer: &mut Answer<'_>,
) -> Option<Result<()>> {
    use ur_device_info_t as I;
    Some(match name {
        I::TYPE => answer.value(&ur_device_type_t::CPU.0),
        // No PCI vendor stands for a processor; the SYCL runtime asks for a number all the same.
        I::VENDOR_ID => answer.value(&0u32),
        I::NAME => answer.str(&host().name),
        I::VENDOR => answer.str(&host().vendor),
        I::DRIVER_VERSION | I::BACKEND_RUNTIME_VERSION => answer.str(env!("CARGO_PKG_VERSION")),
        I::VERSION => answer.str(version()),
        I::PROFILE => answer.str("FULL_PROFILE"),
        I::BUILT_IN_KERNELS | I::EXTENSIONS => answer.str(""),
        I::PLATFORM => answer.handle(&the_platform()),
        I::PARENT_DEVICE => match device.parent() {
            Some(parent) => answer.handle(parent),
            None => answer.value(&std::ptr::null_mut::<u8>()),
        },
        // Whole as it is, and part of no composite: components are what GPUs have.
        I::COMPONENT_DEVICES => answer.slice::<*mut u8>(&[]),
        I::COMPOSITE_DEVICE => answer.value(&std::ptr::null_mut::<u8>()),
        I::UUID => match device.cpus() {
            None => uuid().and_then(|uuid| answer.slice(&uuid)),
            Some(cpus) => part_uuid(cpus).and_then(|uuid| answer.slice(&uuid)),
        },
        I::AVAILABLE | I::ENDIAN_LITTLE => answer.bool(cfg!(target_endian = "little")),
        // There is no compiler for intermediate code; native code is linked by name.
        I::COMPILER_AVAILABLE => answer.bool(false),
        I::LINKER_AVAILABLE | I::BUILD_ON_SUBDEVICE | I::GLOBAL_VARIABLE_SUPPORT => {
            answer.bool(true)
        }
        I::SUPPORTED_PARTITIONS => {
            partition::supported(device).and_then(|rules| answer.slice(&rules))
        }
        I::PARTITION_TYPE => answer.slice(device.part.as_ref().map_or(&[][..], |p| &p.rule)),
        I::PARTITION_MAX_SUB_DEVICES => answer.value(&partition::most_parts(device)),
        I::PARTITION_AFFINITY_DOMAIN => {
            partition::affinity(device).and_then(|domains| answer.value(&domains.bits()))
        }
        I::IS_INTEGRATED_GPU => answer.bool(false),
        _ => return None,
    })
}

/// How it computes.
fn compute(device: &Device, name: ur_device_info_t, answer: &mut Answer<'_>) -> Option<Result<()>> {
    use ur_device_info_t as I;
    let lanes = |bytes: u32| host().vector_bytes() / bytes;
    Some(match name {
        I::MAX_COMPUTE_UNITS | I::NUM_COMPUTE_UNITS => {
            answer.value(&(device.compute_units() as u32))
        }
        I::MAX_WORK_ITEM_DIMENSIONS => answer.value(&3u32),
        I::MAX_WORK_ITEM_SIZES => answer.slice(&[MAX_WORK_GROUP; 3]),
        I::MAX_WORK_GROUP_SIZE => answer.value(&MAX_WORK_GROUP),
        I::MAX_WORK_GROUPS_3D => answer.slice(&[usize::MAX; 3]),
        I::MAX_WORK_GROUPS => answer.value(&usize::MAX),
        I::SINGLE_FP_CONFIG | I::DOUBLE_FP_CONFIG => {
            use ur_device_fp_capability_flags_t as F;
            let ieee = F::DENORM | F::INF_NAN | F::ROUND_TO_NEAREST | F::ROUND_TO_ZERO;
            answer.value(&(ieee | F::ROUND_TO_INF | F::FMA).bits())
        }
        I::HALF_FP_CONFIG => answer.value(&0u32),
        I::PREFERRED_VECTOR_WIDTH_CHAR | I::NATIVE_VECTOR_WIDTH_CHAR => answer.value(&lanes(1)),
        I::PREFERRED_VECTOR_WIDTH_SHORT | I::NATIVE_VECTOR_WIDTH_SHORT => answer.value(&lanes(2)),
        I::PREFERRED_VECTOR_WIDTH_INT
        | I::NATIVE_VECTOR_WIDTH_INT
        | I::PREFERRED_VECTOR_WIDTH_FLOAT
        | I::NATIVE_VECTOR_WIDTH_FLOAT => answer.value(&lanes(4)),
        I::PREFERRED_VECTOR_WIDTH_LONG
        | I::NATIVE_VECTOR_WIDTH_LONG
        | I::PREFERRED_VECTOR_WIDTH_LONG_LONG
        | I::NATIVE_VECTOR_WIDTH_LONG_LONG
        | I::PREFERRED_VECTOR_WIDTH_DOUBLE
        | I::NATIVE_VECTOR_WIDTH_DOUBLE => answer.value(&lanes(8)),
        I::PREFERRED_VECTOR_WIDTH_HALF | I::NATIVE_VECTOR_WIDTH_HALF => answer.value(&0u32),
        I::MAX_CLOCK_FREQUENCY => answer.value(&host().clock_mhz),
        I::ADDRESS_BITS => answer.value(&usize::BITS),
        I::MAX_PARAMETER_SIZE => answer.value(&ARGUMENT_BYTES),
        I::PROFILING_TIMER_RESOLUTION => answer.value(&1usize),
        I::EXECUTION_CAPABILITIES => {
            use ur_device_exec_capability_flags_t as F;
            answer.value(&(F::KERNEL | F::NATIVE_KERNEL).bits())
        }
        I::QUEUE_PROPERTIES | I::QUEUE_ON_HOST_PROPERTIES => answer.value(&queue::flags().bits()),
        I::QUEUE_ON_DEVICE_PROPERTIES => answer.value(&0u32),
        I::MAX_COMPUTE_QUEUE_INDICES => answer.value(&queue::ENGINES),
        I::PREFERRED_INTEROP_USER_SYNC => answer.bool(true),
        I::PRINTF_BUFFER_SIZE => answer.value(&(1usize << 20)),
        I::MAX_NUM_SUB_GROUPS => answer.value(&(MAX_WORK_GROUP as u32)),
        I::SUB_GROUP_SIZES_INTEL => answer.slice(&[1u32]),
        I::SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS => answer.bool(false),
        I::KERNEL_LAUNCH_CAPABILITIES => answer.value(&0u32),
        I::ATOMIC_MEMORY_ORDER_CAPABILITIES | I::ATOMIC_FENCE_ORDER_CAPABILITIES => {
            answer.value(&ur_memory_order_capability_flags_t::VALID.bits())
        }
        I::ATOMIC_MEMORY_SCOPE_CAPABILITIES | I::ATOMIC_FENCE_SCOPE_CAPABILITIES => {
            answer.value(&ur_memory_scope_capability_flags_t::VALID.bits())
        }
        _ => return None,
    })
}

/// What memory it has and who can reach it.
fn memory(_: &Device, name: ur_device_info_t, answer: &mut Answer<'_>) -> Option<Result<()>> {
    use ur_device_info_t as I;
    Some(match name {
        I::GLOBAL_MEM_SIZE | I::MAX_MEM_ALLOC_SIZE | I::MAX_CONSTANT_BUFFER_SIZE => {
            answer.value(&host().memory)
        }
        I::GLOBAL_MEM_FREE => answer.value(&free_memory()),
        I::GLOBAL_MEM_CACHE_TYPE => answer.value(&match host().cache {
            0 => ur_device_mem_cache_type_t::NONE.0,
            _ => ur_device_mem_cache_type_t::READ_WRITE_CACHE.0,
        }),
        I::GLOBAL_MEM_CACHELINE_SIZE => answer.value(&host().line),
        I::GLOBAL_MEM_CACHE_SIZE => answer.value(&host().cache),
        I::MAX_CONSTANT_ARGS => answer.value(&64u32),
        I::LOCAL_MEM_TYPE => answer.value(&ur_device_local_mem_type_t::GLOBAL.0),
        I::LOCAL_MEM_SIZE => answer.value(&(LOCAL_MEMORY as u64)),
        // In bits: a line of cache, which is also what the widest vector wants.
        I::MEM_BASE_ADDR_ALIGN => answer.value(&(host().line * 8)),
        I::ERROR_CORRECTION_SUPPORT => answer.bool(false),
        I::HOST_UNIFIED_MEMORY => answer.bool(true),
        I::USM_HOST_SUPPORT | I::USM_DEVICE_SUPPORT | I::USM_SINGLE_SHARED_SUPPORT => {
            answer.value(&ur_device_usm_access_capability_flags_t::VALID.bits())
        }
        // There is no other device to share with, and any host pointer works as it is.
        I::USM_CROSS_SHARED_SUPPORT | I::USM_SYSTEM_SHARED_SUPPORT => {
            answer.value(&ur_device_usm_access_capability_flags_t::VALID.bits())
        }
        I::USM_POOL_SUPPORT | I::VIRTUAL_MEMORY_SUPPORT => answer.bool(true),
        I::IPC_MEMORY_SUPPORT_EXP
        | I::IPC_PHYSICAL_MEMORY_SUPPORT_EXP
        | I::IPC_EVENT_SUPPORT_EXP
        | I::REUSABLE_EVENTS_SUPPORT_EXP
        | I::PER_EVENT_PROFILING_SUPPORT_EXP
        | I::DEVICE_WAIT_SUPPORT_EXP
        | I::COMMAND_BUFFER_SUPPORT_EXP
        | I::COMMAND_BUFFER_EVENT_SUPPORT_EXP
        | I::COMMAND_BUFFER_SUBGRAPH_SUPPORT_EXP
        | I::GRAPH_RECORD_AND_REPLAY_SUPPORT_EXP => answer.bool(true),
        I::COMMAND_BUFFER_UPDATE_CAPABILITIES_EXP => {
            answer.value(&ur_device_command_buffer_update_capability_flags_t::VALID.bits())
        }
        I::ATOMIC_64
        | I::USM_CONTEXT_MEMCPY_SUPPORT_EXP
        | I::ENQUEUE_HOST_TASK_SUPPORT_EXP
        | I::ENQUEUE_NATIVE_COMMAND_SUPPORT_EXP
        | I::ASYNC_USM_ALLOCATIONS_SUPPORT_EXP
        | I::USM_HOST_ALLOC_REGISTER_SUPPORT_EXP
        | I::USM_P2P_SUPPORT_EXP
        | I::MEMORY_EXPORT_EXPORTABLE_DEVICE_MEM_EXP
        | I::TIMESTAMP_RECORDING_SUPPORT_EXP => answer.bool(true),
        _ => return None,
    })
}

/// Images and samplers, which are host data: their sides are bounded by the arithmetic only, and a
/// kernel takes as many as it has arguments. Bindless ones there are none, as their limits say.
fn images(_: &Device, name: ur_device_info_t, answer: &mut Answer<'_>) -> Option<Result<()>> {
    use ur_device_info_t as I;
    Some(match name {
        I::IMAGE_SUPPORT | I::IMAGE_SRGB => answer.bool(true),
        I::MAX_READ_IMAGE_ARGS | I::MAX_WRITE_IMAGE_ARGS | I::MAX_READ_WRITE_IMAGE_ARGS => {
            answer.value(&128u32)
        }
        I::MAX_SAMPLERS => answer.value(&16u32),
        I::IMAGE2D_MAX_WIDTH
        | I::IMAGE2D_MAX_HEIGHT
        | I::IMAGE3D_MAX_WIDTH
        | I::IMAGE3D_MAX_HEIGHT
        | I::IMAGE3D_MAX_DEPTH
        | I::IMAGE_MAX_ARRAY_SIZE => answer.value(&LONGEST_SIDE),
        // The ABI has no images made of buffers, and of linear ones only bindless.
        I::IMAGE_MAX_BUFFER_SIZE
        | I::MAX_IMAGE_LINEAR_WIDTH_EXP
        | I::MAX_IMAGE_LINEAR_HEIGHT_EXP
        | I::MAX_IMAGE_LINEAR_PITCH_EXP => answer.value(&0usize),
        I::IMAGE_PITCH_ALIGN_EXP | I::MIPMAP_MAX_ANISOTROPY_EXP => answer.value(&0u32),
        _ => return None,
    })
}

/// Features that this device does not have: a plain no, of the type the ABI gives.
fn optional(_: &Device, name: ur_device_info_t, answer: &mut Answer<'_>) -> Option<Result<()>> {
    use ur_device_info_t as I;
    Some(match name {
        I::_2D_BLOCK_ARRAY_CAPABILITIES_EXP => answer.value(&0u32),
        I::KERNEL_SET_SPECIALIZATION_CONSTANTS
        | I::PROGRAM_SET_SPECIALIZATION_CONSTANTS
        | I::ASYNC_BARRIER
        | I::MEM_CHANNEL_SUPPORT
        | I::HOST_PIPE_READ_WRITE_SUPPORT
        | I::ESIMD_SUPPORT
        | I::USE_NATIVE_ASSERT
        | I::BFLOAT16
        | I::BFLOAT16_CONVERSIONS_NATIVE
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
        | I::CLOCK_SUB_GROUP_SUPPORT_EXP
        | I::CLOCK_WORK_GROUP_SUPPORT_EXP
        | I::CLOCK_DEVICE_SUPPORT_EXP
        | I::MULTI_DEVICE_COMPILE_SUPPORT_EXP
        | I::DYNAMIC_LINK_SUPPORT_EXP => answer.bool(false),
        _ => return None,
    })
}
