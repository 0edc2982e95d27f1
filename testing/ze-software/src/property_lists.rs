//! The properties of a device that come as lists: memories, caches, queue groups and vector widths.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{device, inject::Answer, knob, properties, raw};
use std::sync::LazyLock;
use ze_sys::*;

/// Returns a list of structures in the usual way of Level Zero. `one` fills a structure, whose type and chain
/// are the caller's.
fn fill<T: Copy>(
    count: *mut u32,
    to: *mut T,
    all: usize,
    mut one: impl FnMut(usize, &mut T) -> Answer,
) -> Answer {
    let room = raw::get(count)? as usize;
    if room == 0 || to.is_null() {
        return raw::put(count, all as u32);
    }
    for i in 0..room.min(all) {
        raw::amend(to.wrapping_add(i), |value| one(i, value))?;
    }
    raw::put(count, room.min(all) as u32)
}
/// A queue group: its capabilities, the length of its longest fill pattern in bytes, and the number of its
/// queues.
pub struct Group {
    pub flags: u32,
    pub pattern: usize,
    pub queues: u32,
}
/// Compute, the main copy engine, and the link copy engines, with as many queues as `ZE_SOFTWARE_ENGINES`
/// says. Groups without queues are left out.
pub fn groups() -> &'static [Group] {
    static GROUPS: LazyLock<Vec<Group>> = LazyLock::new(|| {
        let told = knob::text("ENGINES").unwrap_or_else(|| "4,1,2".to_owned());
        let compute = ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE
            | ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY
            | ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COOPERATIVE_KERNELS;
        let copy = ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY;
        let kinds = [(compute, usize::MAX), (copy, 16), (copy, 16)];
        let counts = told.split(',').map(|count| count.trim().parse().unwrap_or(0));
        let group = |((flags, pattern), queues)| Group { flags, pattern, queues };
        kinds.into_iter().zip(counts).map(group).filter(|group| group.queues != 0).collect()
    });
    &GROUPS
}

entries! {
    fn zeDeviceGetCommandQueueGroupProperties(
        device: ze_device_handle_t,
        count: *mut u32,
        to: *mut ze_command_queue_group_properties_t,
    ) {
        device::get(device)?;
        fill(count, to, groups().len(), |i, p| {
            p.flags = groups()[i].flags;
            p.maxMemoryFillPatternSize = groups()[i].pattern;
            p.numQueues = groups()[i].queues;
            Ok(())
        })
    }
    fn zeDeviceGetMemoryProperties(
        device: ze_device_handle_t,
        count: *mut u32,
        to: *mut ze_device_memory_properties_t,
    ) {
        let device = device::get(device)?;
        fill(count, to, 1, |_, p| {
            (p.flags, p.maxClockRate, p.maxBusWidth) = (0, 3200, 1024);
            p.totalSize = properties::memory(&device);
            p.name = raw::name("HBM");
            let ext = ZE_STRUCTURE_TYPE_DEVICE_MEMORY_EXT_PROPERTIES;
            if let Some(at) = raw::find::<ze_device_memory_ext_properties_t>(p.pNext, ext) {
                raw::amend(at, |e| {
                    e.type_ = ZE_DEVICE_MEMORY_EXT_TYPE_HBM2;
                    e.physicalSize = properties::memory(&device);
                    (e.readBandwidth, e.writeBandwidth) = (3200, 3200);
                    e.bandwidthUnit = ZE_BANDWIDTH_UNIT_BYTES_PER_NANOSEC;
                    Ok(())
                })?;
            }
            Ok(())
        })
    }
    fn zeDeviceGetCacheProperties(
        device: ze_device_handle_t,
        count: *mut u32,
        to: *mut ze_device_cache_properties_t,
    ) {
        device::get(device)?;
        fill(count, to, 1, |_, p| {
            (p.flags, p.cacheSize) = (0, 16 << 20);
            let ext = ZE_STRUCTURE_TYPE_DEVICE_CACHELINE_SIZE_EXT;
            if let Some(at) = raw::find::<ze_device_cache_line_size_ext_t>(p.pNext, ext) {
                raw::amend(at, |line| {
                    line.cacheLineSize = 64;
                    Ok(())
                })?;
            }
            Ok(())
        })
    }
    fn zeDeviceGetVectorWidthPropertiesExt(
        device: ze_device_handle_t,
        count: *mut u32,
        to: *mut ze_device_vector_width_properties_ext_t,
    ) {
        device::get(device)?;
        fill(count, to, 1, |_, p| {
            p.vector_width_size = 32;
            (p.preferred_vector_width_char, p.native_vector_width_char) = (16, 16);
            (p.preferred_vector_width_short, p.native_vector_width_short) = (8, 8);
            (p.preferred_vector_width_int, p.native_vector_width_int) = (4, 4);
            (p.preferred_vector_width_long, p.native_vector_width_long) = (1, 1);
            (p.preferred_vector_width_float, p.native_vector_width_float) = (1, 1);
            (p.preferred_vector_width_double, p.native_vector_width_double) = (1, 1);
            (p.preferred_vector_width_half, p.native_vector_width_half) = (8, 8);
            Ok(())
        })
    }
}
