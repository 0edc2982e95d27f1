//! Devices: how they are listed, their properties, clocks and partitions.
use crate::{
    bench::Bench,
    case::{Case, Stop, Verdict},
    cases, ensure, info, must, same,
};
use std::ptr::{null, null_mut};
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    cases! { "device";
        "urDeviceGet", "DEFAULT is one of ALL", "the default device is one of all", default_of_all;
        "urDeviceGet", "a type lists devices of that type", "every type lists devices of that type and no others", typed;
        "urDeviceGet", "num_entries bounds what is written", "no more devices are written than there is room for", bounded;
        "urDeviceGet", "devices are listed, not made", "listing twice gives the same handles", twice;
        "urDeviceGetInfo", "UR_DEVICE_INFO_PLATFORM", "a device's platform is the one that lists it", platform;
        "urDeviceGetInfo", "UR_DEVICE_INFO_MAX_WORK_ITEM_SIZES", "there is a largest size for each dimension", dimensions;
        "urDeviceGetInfo", "UR_DEVICE_INFO_GLOBAL_MEM_SIZE", "no allocation may be larger than the memory", sizes;
        "urDeviceGetInfo", "UR_DEVICE_INFO_PARENT_DEVICE", "a device that is no part has no parent", parent;
        "urDeviceGetInfo", "answers are the same each time", "name, vendor and version do not change", steady;
        "urDeviceGetGlobalTimestamps", "device and host clock are read together", "both clocks go on and neither goes back", clocks;
        "urDeviceGetGlobalTimestamps", "either pointer may be null", "either clock is read alone", one_clock;
        "urDevicePartition", "splits a device", "equal parts are devices of their own with the device as parent", partition;
        "urDevicePartition", "sub-devices end with their last reference", "a part lives by its count and the device outlives it", part_counts;
        "urDeviceGetNativeHandle, urDeviceCreateWithNativeHandle", "a native handle leads back", "a device made of a native handle is the device", native;
        "urDeviceWaitExp", "blocks until all submitted work is done", "what was enqueued before is complete after it", wait;
    }
}

fn default_of_all(b: &Bench) -> Verdict {
    let (platform, all) = (b.platform()?, ur_device_type_t::DEFAULT);
    b.device()?;
    let mut one = ur_device_handle_t::NULL;
    must!(b, device.get(platform, all, 1, &mut one, null_mut()));
    ensure!(b.devices(platform)?.contains(&one), "the default device is not listed");
    Ok(())
}
fn typed(b: &Bench) -> Verdict {
    let platform = b.platform()?;
    b.device()?;
    let mut seen = 0;
    for kind in [ur_device_type_t::CPU, ur_device_type_t::GPU, ur_device_type_t::FPGA] {
        let mut list = [ur_device_handle_t::NULL; 64];
        let mut count = 0;
        let code = crate::ask!(b, device.get(platform, kind, 0, null_mut(), &mut count));
        if code != ur_result_t::SUCCESS || count == 0 {
            continue; // no device of that type
        }
        let room = count.min(64);
        must!(b, device.get(platform, kind, room, list.as_mut_ptr(), null_mut()));
        for device in &list[..room as usize] {
            let found = info!(b, device.get_info(*device, ur_device_info_t::TYPE), u32);
            same!(ur_device_type_t(found), kind, "the type of a device listed as {kind:?}");
            seen += 1;
        }
    }
    ensure!(seen <= b.devices(platform)?.len(), "more devices by type than there are");
    Ok(())
}
fn bounded(b: &Bench) -> Verdict {
    let (platform, all) = (b.platform()?, ur_device_type_t::ALL);
    b.device()?;
    let marker = ur_device_handle_t(null_mut::<u8>().wrapping_add(0x5a5a).cast());
    let mut some = [marker; 3];
    must!(b, device.get(platform, all, 1, some.as_mut_ptr(), null_mut()));
    ensure!(some[0] != marker, "nothing is written");
    same!(some[1], marker, "what is behind the room that was given");
    Ok(())
}
fn twice(b: &Bench) -> Verdict {
    let platform = b.platform()?;
    b.device()?;
    same!(b.devices(platform)?, b.devices(platform)?, "the devices, listed twice");
    Ok(())
}
fn platform(b: &Bench) -> Verdict {
    let device = b.device()?;
    let found = info!(b, device.get_info(device, ur_device_info_t::PLATFORM), usize);
    same!(found, b.platform()?.0.addr(), "the platform");
    Ok(())
}
fn dimensions(b: &Bench) -> Verdict {
    let device = b.device()?;
    let count = info!(b, device.get_info(device, ur_device_info_t::MAX_WORK_ITEM_DIMENSIONS), u32);
    let sizes =
        info!(b, device.get_info(device, ur_device_info_t::MAX_WORK_ITEM_SIZES), [usize; 3]);
    same!(count, 3, "dimensions");
    ensure!(sizes.iter().all(|size| *size > 0), "a dimension of size 0: {sizes:?}");
    Ok(())
}
fn sizes(b: &Bench) -> Verdict {
    let device = b.device()?;
    let all = info!(b, device.get_info(device, ur_device_info_t::GLOBAL_MEM_SIZE), u64);
    let one = info!(b, device.get_info(device, ur_device_info_t::MAX_MEM_ALLOC_SIZE), u64);
    ensure!(one > 0 && one <= all, "allocations of {one} bytes where there are {all}");
    Ok(())
}
fn parent(b: &Bench) -> Verdict {
    let device = b.device()?;
    let found = info!(b, device.get_info(device, ur_device_info_t::PARENT_DEVICE), usize);
    same!(found, 0, "the parent");
    Ok(())
}
fn steady(b: &Bench) -> Verdict {
    use ur_device_info_t as Info;
    let device = b.device()?;
    for name in [Info::NAME, Info::VENDOR, Info::VERSION, Info::DRIVER_VERSION] {
        let ask = || -> Verdict<Vec<u8>> {
            let mut text = vec![0_u8; 1024];
            let to = text.as_mut_ptr().cast();
            must!(b, device.get_info(device, name, text.len(), to, null_mut()));
            Ok(text)
        };
        let first = ask()?;
        same!(ask()?, first, "{name:?}, asked twice");
    }
    Ok(())
}
fn clocks(b: &Bench) -> Verdict {
    let device = b.device()?;
    let mut before = (0, 0);
    for _ in 0..100 {
        let (mut ours, mut host) = (0, 0);
        must!(b, device.get_global_timestamps(device, &mut ours, &mut host));
        ensure!(ours >= before.0 && host >= before.1, "a clock went back");
        before = (ours, host);
    }
    ensure!(before.0 > 0 && before.1 > 0, "a clock that stands: {before:?}");
    Ok(())
}
fn one_clock(b: &Bench) -> Verdict {
    let (device, mut ours, mut host) = (b.device()?, 0, 0);
    must!(b, device.get_global_timestamps(device, &mut ours, null_mut()));
    must!(b, device.get_global_timestamps(device, null_mut(), &mut host));
    must!(b, device.get_global_timestamps(device, null_mut(), null_mut()));
    ensure!(ours > 0 && host > 0, "a clock that stands: {ours}, {host}");
    Ok(())
}
/// Partitions the device into sub-devices of one compute unit each, at least two.
pub fn parts(b: &Bench) -> Verdict<Vec<ur_device_handle_t>> {
    use ur_device_info_t as Info;
    let device = b.device()?;
    let most = info!(b, device.get_info(device, Info::PARTITION_MAX_SUB_DEVICES), u32);
    let mut size = 0;
    let kinds = Info::SUPPORTED_PARTITIONS;
    must!(b, device.get_info(device, kinds, 0, null_mut(), &mut size));
    let mut kinds = vec![ur_device_partition_t(0); size / 4];
    let to = kinds.as_mut_ptr().cast();
    if size > 0 {
        must!(b, device.get_info(device, Info::SUPPORTED_PARTITIONS, size, to, null_mut()));
    }
    if most < 2 || !kinds.contains(&ur_device_partition_t::EQUALLY) {
        return Err(Stop::skipped("the device is not split into equal parts"));
    }
    b.promise();
    let property = ur_device_partition_property_t {
        r#type: ur_device_partition_t::EQUALLY,
        value: ur_device_partition_value_t { equally: 1 },
    };
    let properties = ur_device_partition_properties_t {
        stype: ur_structure_type_t::DEVICE_PARTITION_PROPERTIES,
        pNext: null_mut(),
        pProperties: &property,
        PropCount: 1,
    };
    let mut count = 0;
    must!(b, device.partition(device, &properties, 0, null_mut(), &mut count));
    let mut parts = vec![ur_device_handle_t::NULL; count as usize];
    let to = parts.as_mut_ptr();
    must!(b, device.partition(device, &properties, count, to, null_mut()));
    Ok(parts)
}
fn partition(b: &Bench) -> Verdict {
    let (device, parts) = (b.device()?, parts(b)?);
    ensure!(parts.len() > 1, "{} parts of one unit each", parts.len());
    for part in &parts {
        let parent = info!(b, device.get_info(*part, ur_device_info_t::PARENT_DEVICE), usize);
        same!(parent, device.0.addr(), "the parent of a part");
        let units = info!(b, device.get_info(*part, ur_device_info_t::MAX_COMPUTE_UNITS), u32);
        same!(units, 1, "the units of a part");
        let mut context = ur_context_handle_t::NULL;
        must!(b, context.create(1, part, null(), &mut context));
        must!(b, context.release(context));
    }
    parts.iter().try_for_each(|part| {
        must!(b, device.release(*part));
        Ok(())
    })
}
fn part_counts(b: &Bench) -> Verdict {
    let parts = parts(b)?;
    let refs = |part| -> Verdict<u32> {
        Ok(info!(b, device.get_info(part, ur_device_info_t::REFERENCE_COUNT), u32))
    };
    let part = parts[0];
    same!(refs(part)?, 1, "the count of a new part");
    must!(b, device.retain(part));
    same!(refs(part)?, 2, "the count after a retain");
    must!(b, device.release(part));
    same!(refs(part)?, 1, "the count after a release");
    parts.iter().try_for_each(|part| -> Verdict {
        must!(b, device.release(*part));
        Ok(())
    })?;
    b.queue()?;
    Ok(())
}
fn native(b: &Bench) -> Verdict {
    let (adapter, device, mut native) = (b.handle()?, b.device()?, 0);
    must!(b, device.get_native_handle(device, &mut native));
    let mut again = ur_device_handle_t::NULL;
    must!(b, device.create_with_native_handle(native, adapter, null(), &mut again));
    crate::bench::exists(again.0)?;
    same!(again, device, "the device of its native handle");
    Ok(())
}
fn wait(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::DEVICE_WAIT_SUPPORT_EXP)?;
    let (device, queue) = (b.device()?, b.queue()?);
    let at = b.alloc(crate::bench::Usm::Device, 1 << 20)?;
    let (mut event, byte) = (ur_event_handle_t::NULL, 7_u8);
    let pattern = (&raw const byte).cast();
    must!(b, enqueue.usm_fill(queue, at, 1, pattern, 1 << 20, 0, null(), &mut event));
    must!(b, device_exp.wait_exp(device));
    same!(b.status(event.0)?, ur_event_status_t::COMPLETE, "what was enqueued before");
    must!(b, event.release(event));
    b.free(at)
}
