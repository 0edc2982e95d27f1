//! The device: the processor and the memory of this host.
use super::{
    Cpu, Device,
    adapter::version,
    host::{free_memory, host, part_uuid, uuid},
    image::LONGEST_SIDE,
    native_code::ARGUMENT_BYTES,
    partition::{self, Part},
    streams,
};
use std::sync::Arc;
use ur_adapter::{error::Result, info::Answer, object::Object, partition::Rule};
use ur_core::over_driver::device::HasDevices;
use ur_hal::{Clocks, NativeHandles, OpensDevices, PlatformFacts, host_clock};
use ur_sys::*;

/// The whole processor (the root device), or a part of it (a sub-device).
#[derive(Debug)]
pub struct DriverDevice {
    pub(super) part: Option<Part>,
}
/// By identity: partitioning creates new devices each time.
impl PartialEq for DriverDevice {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}
impl DriverDevice {
    /// The logical processors of a sub-device, by the kernel's numbers; `None` for the root device, which has
    /// all that this process may run on.
    pub fn cpus(&self) -> Option<&[usize]> {
        self.part.as_ref().map(|part| &*part.cpus)
    }
    /// The number of logical processors.
    pub fn compute_units(&self) -> usize {
        self.cpus().map_or(host().cores as usize, <[usize]>::len)
    }
}
/// A context; it has no state, because the device can access all memory.
#[derive(Debug)]
pub struct DriverContext;

/// The root device.
#[cfg(test)]
pub(super) fn the_device() -> ur_adapter::object::Owned<Device> {
    ur_core::over_driver::roots::<Cpu>().next().expect("there is one").clone()
}

impl OpensDevices for Cpu {
    const NAME: &'static str = "a native CPU";
    fn devices() -> ur_hal::Result<Vec<Arc<DriverDevice>>> {
        Ok(vec![Arc::new(DriverDevice { part: None })])
    }
    fn platform(_: &Arc<DriverDevice>) -> ur_hal::Result<PlatformFacts> {
        Ok(PlatformFacts {
            name: "Causeway native CPU".into(),
            vendor: "Causeway".into(),
            version: version().into(),
            extensions: String::new(),
            handle: None,
        })
    }
    fn parent(device: &Arc<DriverDevice>) -> Option<Arc<DriverDevice>> {
        device.part.as_ref().map(|part| Arc::clone(&part.parent))
    }
    /// The machine's: what belongs to a part can be opened for all of it.
    fn uuid(_: &Arc<DriverDevice>) -> ur_hal::Result<[u8; 16]> {
        Ok(uuid()?)
    }
    fn clocks(_: &Arc<DriverDevice>) -> ur_hal::Result<Clocks> {
        let now = host_clock();
        Ok(Clocks { device: now, host: now })
    }
    fn open(_: &[Arc<DriverDevice>]) -> ur_hal::Result<DriverContext> {
        Ok(DriverContext)
    }
}
impl NativeHandles for Cpu {}

impl HasDevices for Cpu {
    fn kind(_: &Arc<DriverDevice>) -> ur_device_type_t {
        ur_device_type_t::CPU
    }
    fn tell(
        device: &Arc<DriverDevice>,
        name: ur_device_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<bool> {
        Ok(identity(device, name, answer)?
            || compute(device, name, answer)?
            || memory(device, name, answer)?
            || images(device, name, answer)?)
    }
    fn vector_widths(_: &Arc<DriverDevice>) -> Result<[[u32; 7]; 2]> {
        let lanes = |bytes: u32| host().vector_bytes() / bytes;
        Ok([[lanes(1), lanes(2), lanes(4), lanes(8), lanes(4), lanes(8), 0]; 2])
    }
    fn parts(device: &Arc<DriverDevice>, rule: &Rule) -> Result<Vec<Arc<DriverDevice>>> {
        partition::partition(device, rule)
    }
    fn wait_for_device(device: &Object<Device>) -> Result<()> {
        streams::wait_for_device(device.driver());
        Ok(())
    }
}

/// Name, vendor, versions and partitioning.
fn identity(
    device: &DriverDevice,
    name: ur_device_info_t,
    answer: &mut Answer<'_>,
) -> Result<bool> {
    use ur_device_info_t as I;
    match name {
        I::NAME => answer.str(&host().name),
        I::VENDOR => answer.str(&host().vendor),
        I::DRIVER_VERSION | I::BACKEND_RUNTIME_VERSION => answer.str(env!("CARGO_PKG_VERSION")),
        I::VERSION => answer.str(version()),
        // A part's UUID is derived from its processors.
        I::UUID => match device.cpus() {
            None => answer.slice(&uuid()?),
            Some(cpus) => answer.slice(&part_uuid(cpus)?),
        },
        I::LINKER_AVAILABLE | I::BUILD_ON_SUBDEVICE | I::GLOBAL_VARIABLE_SUPPORT => {
            answer.bool(true)
        }
        I::SUPPORTED_PARTITIONS => answer.slice(&partition::supported(device)?),
        I::PARTITION_TYPE => answer.slice(device.part.as_ref().map_or(&[][..], |p| &p.rule)),
        I::PARTITION_MAX_SUB_DEVICES => answer.value(&partition::most_parts(device)),
        I::PARTITION_AFFINITY_DOMAIN => answer.value(&partition::affinity(device)?.bits()),
        _ => return Ok(false),
    }?;
    Ok(true)
}

/// Compute units, floating-point capabilities and clocks.
fn compute(device: &DriverDevice, name: ur_device_info_t, answer: &mut Answer<'_>) -> Result<bool> {
    use ur_device_info_t as I;
    match name {
        I::MAX_COMPUTE_UNITS | I::NUM_COMPUTE_UNITS => {
            answer.value(&(device.compute_units() as u32))
        }
        I::SINGLE_FP_CONFIG | I::DOUBLE_FP_CONFIG => {
            use ur_device_fp_capability_flags_t as F;
            let ieee = F::DENORM | F::INF_NAN | F::ROUND_TO_NEAREST | F::ROUND_TO_ZERO;
            answer.value(&(ieee | F::ROUND_TO_INF | F::FMA).bits())
        }
        I::MAX_CLOCK_FREQUENCY => answer.value(&host().clock_mhz),
        I::MAX_PARAMETER_SIZE => answer.value(&ARGUMENT_BYTES),
        I::PROFILING_TIMER_RESOLUTION => answer.value(&1usize),
        I::EXECUTION_CAPABILITIES => {
            use ur_device_exec_capability_flags_t as F;
            answer.value(&(F::KERNEL | F::NATIVE_KERNEL).bits())
        }
        _ => return Ok(false),
    }?;
    Ok(true)
}

/// Sizes of memory and caches, and access to USM.
fn memory(_: &DriverDevice, name: ur_device_info_t, answer: &mut Answer<'_>) -> Result<bool> {
    use ur_device_info_t as I;
    match name {
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
        I::LOCAL_MEM_TYPE => answer.value(&ur_device_local_mem_type_t::GLOBAL.0),
        // In bits: a cache line, which suffices for the widest vectors too.
        I::MEM_BASE_ADDR_ALIGN => answer.value(&(host().line * 8)),
        // There is no other device, and any host pointer can be used directly.
        I::USM_HOST_SUPPORT
        | I::USM_DEVICE_SUPPORT
        | I::USM_SINGLE_SHARED_SUPPORT
        | I::USM_CROSS_SHARED_SUPPORT
        | I::USM_SYSTEM_SHARED_SUPPORT => {
            answer.value(&ur_device_usm_access_capability_flags_t::VALID.bits())
        }
        I::VIRTUAL_MEMORY_SUPPORT
        | I::HOST_UNIFIED_MEMORY
        | I::IPC_MEMORY_SUPPORT_EXP
        | I::IPC_PHYSICAL_MEMORY_SUPPORT_EXP
        | I::IPC_EVENT_SUPPORT_EXP
        | I::ATOMIC_64
        | I::ASYNC_USM_ALLOCATIONS_SUPPORT_EXP
        | I::USM_HOST_ALLOC_REGISTER_SUPPORT_EXP
        | I::MEMORY_EXPORT_EXPORTABLE_DEVICE_MEM_EXP => answer.bool(true),
        _ => return Ok(false),
    }?;
    Ok(true)
}

/// Images and samplers. They are in host memory, so the limits are those of the arithmetic and of the number
/// of arguments.
fn images(_: &DriverDevice, name: ur_device_info_t, answer: &mut Answer<'_>) -> Result<bool> {
    use ur_device_info_t as I;
    match name {
        I::IMAGE_SUPPORT | I::IMAGE_SRGB => answer.bool(true),
        I::IMAGE2D_MAX_WIDTH
        | I::IMAGE2D_MAX_HEIGHT
        | I::IMAGE3D_MAX_WIDTH
        | I::IMAGE3D_MAX_HEIGHT
        | I::IMAGE3D_MAX_DEPTH
        | I::IMAGE_MAX_ARRAY_SIZE => answer.value(&LONGEST_SIDE),
        _ => return Ok(false),
    }?;
    Ok(true)
}
