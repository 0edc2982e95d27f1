//! Answers about memory, USM, sharing with other processes, and the sizes of images.
use super::super::{
    DriverDevice,
    extensions::Extensions,
    native::{device as native, ipc, physical_memory, sysman::Sysman, virtual_memory},
    options, streams,
};
use ur_adapter::{error::Result, info::Answer};
use ur_core::over_driver::device::untold;
use ur_sys::{ur_device_info_t as I, *};
use ze_sys::*;

/// Sizes, clocks and bandwidth of memory.
pub(super) fn answer(device: &DriverDevice, name: I, answer: &mut Answer<'_>) -> Result<bool> {
    let (raw, properties) = (device.raw(), device.properties());
    let most = |of: fn(&ze_device_memory_properties_t) -> u32| -> Result<u32> {
        Ok(native::memories(raw)?.iter().map(|one| of(one)).max().unwrap_or(0))
    };
    match name {
        I::GLOBAL_MEM_SIZE => answer.value(&total(device)?),
        I::GLOBAL_MEM_FREE => answer.value(&free(device, name)?),
        I::MAX_MEM_ALLOC_SIZE if options().relaxed_limits => {
            answer.value(&total(device)?.max(properties.maxMemAllocSize))
        }
        I::MAX_MEM_ALLOC_SIZE => answer.value(&properties.maxMemAllocSize),
        // Constants are read like one-dimensional images.
        I::MAX_CONSTANT_BUFFER_SIZE => answer.value(&native::image(raw)?.maxImageBufferSize),
        I::GLOBAL_MEM_CACHELINE_SIZE => answer.value(&64_u32),
        I::GLOBAL_MEM_CACHE_SIZE => {
            let sizes = native::caches(raw)?.into_iter().map(|one| one.cacheSize as u64);
            answer.value(&sizes.max().unwrap_or(0))
        }
        // In bits: sub-buffers may start at any byte.
        I::MEM_BASE_ADDR_ALIGN => answer.value(&8_u32),
        I::ERROR_CORRECTION_SUPPORT => {
            answer.bool(properties.flags & ZE_DEVICE_PROPERTY_FLAG_ECC != 0)
        }
        I::HOST_UNIFIED_MEMORY => answer.bool(device.is_integrated()),
        I::MEMORY_CLOCK_RATE => answer.value(&most(|one| one.maxClockRate)?),
        I::MEMORY_BUS_WIDTH => answer.value(&most(|one| one.maxBusWidth)?),
        I::MAX_MEMORY_BANDWIDTH => match native::bandwidth(raw)? {
            0 => Err(untold(name)),
            rate => answer.value(&rate),
        },
        _ => return Ok(false),
    }?;
    Ok(true)
}
/// Bytes of all memories; integrated graphics have none, and report the largest allocation instead.
fn total(device: &DriverDevice) -> Result<u64> {
    let all: u64 = native::memories(device.raw())?.iter().map(|one| one.totalSize).sum();
    Ok(if all == 0 { device.properties().maxMemAllocSize } else { all })
}
/// Free bytes: from the device's properties, or from the system management interface.
fn free(device: &DriverDevice, name: I) -> Result<u64> {
    if device.platform().extensions().has("ZE_extension_device_usablemem_size_properties") {
        let told = native::extended::<ze_device_usablemem_size_ext_properties_t>(device.raw())?;
        return Ok(told.currUsableMemSize);
    }
    let told = Sysman::find(device.uuid()).map_or(Ok(None), Sysman::free_memory)?;
    told.ok_or_else(|| untold(name))
}

/// Access to the kinds of USM, and support of sharing them.
pub(super) fn usm(device: &DriverDevice, name: I, answer: &mut Answer<'_>) -> Result<bool> {
    type Of = fn(&ze_device_memory_access_properties_t) -> u32;
    let of: Option<Of> = match name {
        I::USM_HOST_SUPPORT => Some(|told| told.hostAllocCapabilities),
        I::USM_DEVICE_SUPPORT => Some(|told| told.deviceAllocCapabilities),
        I::USM_SINGLE_SHARED_SUPPORT => Some(|told| told.sharedSingleDeviceAllocCapabilities),
        I::USM_CROSS_SHARED_SUPPORT => Some(|told| told.sharedCrossDeviceAllocCapabilities),
        I::USM_SYSTEM_SHARED_SUPPORT => Some(|told| told.sharedSystemAllocCapabilities),
        _ => None,
    };
    if let Some(of) = of {
        // The driver's flags have the same numbers as the specification's.
        let known = ur_device_usm_access_capability_flags_t::VALID.bits();
        answer.value(&(of(&*native::access(device.raw())?) & known))?;
        return Ok(true);
    }
    match name {
        I::IPC_MEMORY_SUPPORT_EXP => answer.bool(ipc::is_supported(device)?),
        I::IPC_PHYSICAL_MEMORY_SUPPORT_EXP => {
            answer.bool(physical_memory::has_descriptors(device)?)
        }
        I::IPC_EVENT_SUPPORT_EXP => answer.bool(streams::has_sharing(device)),
        I::MEMORY_EXPORT_EXPORTABLE_DEVICE_MEM_EXP => answer.bool(exports(device)?),
        I::USM_HOST_ALLOC_REGISTER_SUPPORT_EXP => {
            answer.bool(device.platform().extensions().function(Extensions::IMPORT).is_some())
        }
        I::VIRTUAL_MEMORY_SUPPORT => answer.bool(virtual_memory::is_supported(device)?),
        I::ASYNC_USM_ALLOCATIONS_SUPPORT_EXP => answer.bool(true),
        _ => return Ok(false),
    }?;
    Ok(true)
}
/// Whether its memory can be exported as file descriptors.
fn exports(device: &DriverDevice) -> Result<bool> {
    let told = native::external(device.raw())?;
    let wanted = ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF | ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD;
    Ok(told.memoryAllocationExportTypes & wanted != 0)
}

/// Limits of images and samplers.
pub(super) fn images(device: &DriverDevice, name: I, answer: &mut Answer<'_>) -> Result<bool> {
    type Of = fn(&ze_device_image_properties_t) -> usize;
    let of: Option<Of> = match name {
        I::IMAGE2D_MAX_WIDTH | I::IMAGE2D_MAX_HEIGHT => Some(|told| told.maxImageDims2D as usize),
        I::IMAGE3D_MAX_WIDTH | I::IMAGE3D_MAX_HEIGHT | I::IMAGE3D_MAX_DEPTH => {
            Some(|told| told.maxImageDims3D as usize)
        }
        I::IMAGE_MAX_ARRAY_SIZE => Some(|told| told.maxImageArraySlices as usize),
        I::IMAGE_MAX_BUFFER_SIZE => Some(|told| told.maxImageBufferSize as usize),
        _ => None,
    };
    let told = || native::image(device.raw());
    if let Some(of) = of {
        answer.value(&of(&*told()?))?;
        return Ok(true);
    }
    match name {
        I::IMAGE_SUPPORT => answer.bool(told()?.maxImageDims1D > 0),
        I::MAX_READ_IMAGE_ARGS => answer.value(&told()?.maxReadImageArgs),
        I::MAX_WRITE_IMAGE_ARGS => answer.value(&told()?.maxWriteImageArgs),
        // the driver has no images that can be both read and written
        I::MAX_READ_WRITE_IMAGE_ARGS => answer.value(&0_u32),
        I::MAX_SAMPLERS => answer.value(&told()?.maxSamplers),
        _ => return Ok(false),
    }?;
    Ok(true)
}
