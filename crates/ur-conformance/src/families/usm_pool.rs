//! USM pools, and allocation in queue order.
use super::device;
use crate::{
    bench::{Bench, USM, Usm, word},
    case::{Case, Verdict},
    cases, ensure, info, must,
    raw::Word,
    refused, same,
};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    time::Duration,
};
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    cases! { "usm_pool";
        "urUSMPoolCreate, urUSMPoolGetInfo", "UR_USM_POOL_INFO_CONTEXT", "a pool says of which context it is", context;
        "urUSMPoolCreate", "UR_USM_ALLOC_INFO_POOL", "memory of every kind comes from the pool and says so", serves;
        "urUSMPoolRelease", "allocations outlive the release of their pool", "memory of a pool holds its bytes after the pool was released", outlived;
        "urUSMPoolCreate", "UR_USM_POOL_FLAG_ZERO_INITIALIZE_BLOCK", "memory of such a pool is zero at first", zeroed;
        "urUSMPoolGetDefaultDevicePoolExp", "a device has a default pool", "the default pool of a device is the same each time and serves", default_pool;
        "urUSMPoolSetDevicePoolExp, urUSMPoolGetDevicePoolExp", "a device's pool can be changed", "the pool that is set is the pool that is got", set_pool;
        "urUSMPoolSetDevicePoolExp", "a pool is set for a device", "a sub-device does not have the pool of one that was released before", set_pool_of_part;
        "urUSMPoolTrimToExp", "gives back what is not used", "a pool is trimmed, and what is in use stays", trim;
        "urUSMPoolSetInfoExp, urUSMPoolGetInfoExp", "UR_USM_POOL_INFO_RELEASE_THRESHOLD_EXP", "a threshold that is set is the threshold that is got", threshold;
        "urEnqueueUSMDeviceAllocExp, urEnqueueUSMFreeExp", "allocation in the order of a queue", "device memory is had, used and given back in the order of a queue", queued_device;
        "urEnqueueUSMHostAllocExp, urEnqueueUSMFreeExp", "allocation in the order of a queue", "host memory is had, used and given back in the order of a queue", queued_host;
        "urEnqueueUSMSharedAllocExp, urEnqueueUSMFreeExp", "allocation in the order of a queue", "shared memory is had, used and given back in the order of a queue", queued_shared;
        "urUSMHostAllocRegisterExp, urUSMHostAllocUnregisterExp", "host memory of the program's becomes USM", "registered memory is host USM until it is unregistered", register;
        "urUSMHostAllocUnregisterExp", "UR_RESULT_ERROR_INVALID_VALUE: the host address range cannot be used", "memory that is not registered, or not any more, is INVALID_VALUE", not_registered;
        "urUSMPitchedAllocExp", "rows at a pitch", "every row of a pitched allocation holds what is written", pitched;
        "urUSMContextMemcpyExp", "a copy without a queue", "bytes are copied when the call returns", context_copy;
        "urUSMImportExp, urUSMReleaseExp", "host memory of the program's may be made known", "memory is imported, used and released", import;
        "urUSMReleaseExp, urUSMHostAllocRegisterExp", "a release ends an import", "a release that waits for commands does not end what was registered meanwhile", late_release;
    }
}
fn context(b: &Bench) -> Verdict {
    let pool = ur_usm_pool_handle_t(b.object("UsmPool")?);
    let found = info!(b, usm.pool_get_info(pool, ur_usm_pool_info_t::CONTEXT), usize);
    same!(found, b.context()?.0.addr(), "the context");
    Ok(())
}
fn alloc(b: &Bench, kind: Usm, pool: ur_usm_pool_handle_t, n: usize) -> Verdict<*mut c_void> {
    let (context, device, mut at) = (b.context()?, b.device()?, null_mut());
    match kind {
        Usm::Device => must!(b, usm.device_alloc(context, device, null(), pool, n, &mut at)),
        Usm::Shared => must!(b, usm.shared_alloc(context, device, null(), pool, n, &mut at)),
        Usm::Host => must!(b, usm.host_alloc(context, null(), pool, n, &mut at)),
    }
    crate::bench::exists(at)?;
    Ok(at)
}
fn serves(b: &Bench) -> Verdict {
    let context = b.context()?;
    for kind in USM {
        let pool = b.new_pool()?;
        for bytes in [1, 4096, 1 << 20] {
            let at = alloc(b, kind, pool, bytes)?;
            b.write(at, &vec![6; bytes])?;
            let of =
                info!(b, usm.get_mem_alloc_info(context, at, ur_usm_alloc_info_t::POOL), usize);
            same!(of, pool.0.addr(), "the pool of {kind:?} memory");
            b.free(at)?;
        }
        must!(b, usm.pool_release(pool));
    }
    Ok(())
}
fn outlived(b: &Bench) -> Verdict {
    for kind in USM {
        let pool = b.new_pool()?;
        let at = alloc(b, kind, pool, 5000)?;
        b.write(at, &[8; 5000])?;
        must!(b, usm.pool_release(pool));
        same!(b.read(at, 5000)?, vec![8; 5000], "{kind:?} memory after its pool");
        b.free(at)?;
    }
    Ok(())
}
fn zeroed(b: &Bench) -> Verdict {
    let stype = ur_structure_type_t::USM_POOL_DESC;
    let flags = ur_usm_pool_flags_t::ZERO_INITIALIZE_BLOCK;
    let mut desc = ur_usm_pool_desc_t { stype, pNext: null(), flags };
    let (context, mut pool) = (b.context()?, ur_usm_pool_handle_t::NULL);
    must!(b, usm.pool_create(context, &mut desc, &mut pool));
    for kind in USM {
        for _ in 0..3 {
            let at = alloc(b, kind, pool, 5000)?;
            let read = b.read(at, 5000)?;
            ensure!(read.iter().all(|byte| *byte == 0), "{kind:?} memory is not zero");
            b.write(at, &[1; 5000])?;
            b.free(at)?;
        }
    }
    must!(b, usm.pool_release(pool));
    Ok(())
}
fn default_pool(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::ASYNC_USM_ALLOCATIONS_SUPPORT_EXP)?;
    let (context, device) = (b.context()?, b.device()?);
    let (mut one, mut two) = (ur_usm_pool_handle_t::NULL, ur_usm_pool_handle_t::NULL);
    must!(b, usm_exp.pool_get_default_device_pool_exp(context, device, &mut one));
    must!(b, usm_exp.pool_get_default_device_pool_exp(context, device, &mut two));
    ensure!(!one.is_null(), "no pool");
    crate::bench::exists(one.0)?;
    same!(two, one, "the default pool, asked twice");
    let at = alloc(b, Usm::Device, one, 4096)?;
    b.free(at)
}
fn set_pool(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::ASYNC_USM_ALLOCATIONS_SUPPORT_EXP)?;
    let (context, device) = (b.context()?, b.device()?);
    let (pool, mut found) = (b.new_pool()?, ur_usm_pool_handle_t::NULL);
    must!(b, usm_exp.pool_set_device_pool_exp(context, device, pool));
    must!(b, usm_exp.pool_get_device_pool_exp(context, device, &mut found));
    same!(found, pool, "the device's pool");
    must!(b, usm_exp.pool_get_default_device_pool_exp(context, device, &mut found));
    must!(b, usm_exp.pool_set_device_pool_exp(context, device, found));
    must!(b, usm.pool_release(pool));
    Ok(())
}
fn set_pool_of_part(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::ASYNC_USM_ALLOCATIONS_SUPPORT_EXP)?;
    let (context, pool) = (b.context()?, b.new_pool()?);
    // So often that some have the handles of earlier ones.
    for _ in 0..200 {
        for part in device::parts(b)? {
            let mut found = ur_usm_pool_handle_t::NULL;
            must!(b, usm_exp.pool_get_device_pool_exp(context, part, &mut found));
            ensure!(found != pool, "a new sub-device has the pool of a released one");
            must!(b, usm_exp.pool_set_device_pool_exp(context, part, pool));
            must!(b, device.release(part));
        }
    }
    must!(b, usm.pool_release(pool));
    Ok(())
}
fn trim(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::ASYNC_USM_ALLOCATIONS_SUPPORT_EXP)?;
    let (context, device, pool) = (b.context()?, b.device()?, b.new_pool()?);
    let (kept, gone) = (alloc(b, Usm::Device, pool, 65_536)?, alloc(b, Usm::Device, pool, 65_536)?);
    b.write(kept, &[4; 65_536])?;
    b.free(gone)?;
    must!(b, usm_exp.pool_trim_to_exp(context, device, pool, 0));
    same!(b.read(kept, 65_536)?, vec![4; 65_536], "what is in use");
    b.free(kept)?;
    must!(b, usm.pool_release(pool));
    Ok(())
}
fn threshold(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::ASYNC_USM_ALLOCATIONS_SUPPORT_EXP)?;
    let (pool, name) = (b.new_pool()?, ur_usm_pool_info_t::RELEASE_THRESHOLD_EXP);
    let (mut set, mut found) = (1_usize << 20, 0_usize);
    must!(b, usm_exp.pool_set_info_exp(pool, name, (&raw mut set).cast(), 8));
    must!(b, usm_exp.pool_get_info_exp(pool, name, (&raw mut found).cast(), null_mut()));
    same!(found, set, "the threshold");
    must!(b, usm.pool_release(pool));
    Ok(())
}
fn queued(b: &Bench, kind: Usm) -> Verdict {
    b.needs(ur_device_info_t::ASYNC_USM_ALLOCATIONS_SUPPORT_EXP)?;
    let (queue, pool) = (b.queue()?, ur_usm_pool_handle_t::NULL);
    let (mut at, mut event) = (null_mut(), ur_event_handle_t::NULL);
    let (to, done, none) = (&raw mut at, &raw mut event, null());
    match kind {
        Usm::Device => {
            must!(
                b,
                enqueue_exp.usm_device_alloc_exp(queue, pool, 5000, null(), 0, none, to, done)
            );
        }
        Usm::Shared => {
            must!(
                b,
                enqueue_exp.usm_shared_alloc_exp(queue, pool, 5000, null(), 0, none, to, done)
            );
        }
        Usm::Host => {
            must!(b, enqueue_exp.usm_host_alloc_exp(queue, pool, 5000, null(), 0, none, to, done));
        }
    }
    ensure!(!at.is_null(), "no address");
    b.write(at, &[2; 5000])?;
    same!(b.read(at, 5000)?, vec![2; 5000], "what it holds");
    must!(b, enqueue_exp.usm_free_exp(queue, pool, at, 0, null(), null_mut()));
    b.finish(queue)?;
    must!(b, event.release(event));
    Ok(())
}
fn queued_device(b: &Bench) -> Verdict {
    queued(b, Usm::Device)
}
fn queued_host(b: &Bench) -> Verdict {
    queued(b, Usm::Host)
}
fn queued_shared(b: &Bench) -> Verdict {
    queued(b, Usm::Shared)
}
/// Whole pages of the program's own memory.
struct Pages(Vec<u8>);
impl Pages {
    fn new() -> Self {
        Self(vec![0; 3 * 4096])
    }
    fn at(&mut self) -> *mut c_void {
        let start = self.0.as_mut_ptr();
        start.wrapping_add(start.align_offset(4096)).cast()
    }
}
fn register(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::USM_HOST_ALLOC_REGISTER_SUPPORT_EXP)?;
    let (context, mut pages) = (b.context()?, Pages::new());
    let at = pages.at();
    must!(b, usm_exp.host_alloc_register_exp(context, at, 8192, null()));
    same!(type_of(b, at)?, ur_usm_type_t::HOST, "the type of registered memory");
    must!(b, usm_exp.host_alloc_unregister_exp(context, at));
    same!(type_of(b, at)?, ur_usm_type_t::UNKNOWN, "the type of unregistered memory");
    Ok(())
}
fn type_of(b: &Bench, at: *mut c_void) -> Verdict<ur_usm_type_t> {
    let (context, name) = (b.context()?, ur_usm_alloc_info_t::TYPE);
    Ok(ur_usm_type_t(info!(b, usm.get_mem_alloc_info(context, at.cast_const(), name), u32)))
}
fn not_registered(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::USM_HOST_ALLOC_REGISTER_SUPPORT_EXP)?;
    let (context, mut pages) = (b.context()?, Pages::new());
    let at = pages.at();
    refused!(b, ERROR_INVALID_VALUE, usm_exp.host_alloc_unregister_exp(context, at));
    must!(b, usm_exp.host_alloc_register_exp(context, at, 8192, null()));
    let inside = at.wrapping_byte_add(4096);
    refused!(b, ERROR_INVALID_VALUE, usm_exp.host_alloc_unregister_exp(context, inside));
    must!(b, usm_exp.host_alloc_unregister_exp(context, at));
    refused!(b, ERROR_INVALID_VALUE, usm_exp.host_alloc_unregister_exp(context, at));
    Ok(())
}
fn pitched(b: &Bench) -> Verdict {
    let (context, device, none) = (b.context()?, b.device()?, ur_usm_pool_handle_t::NULL);
    let (mut at, mut pitch) = (null_mut(), 0);
    must!(
        b,
        usm_exp.pitched_alloc_exp(context, device, null(), none, 100, 7, 4, &mut at, &mut pitch)
    );
    ensure!(pitch >= 100, "rows of 100 bytes at a pitch of {pitch}");
    for row in 0..7_u8 {
        b.write(at.wrapping_byte_add(usize::from(row) * pitch), &[row; 100])?;
    }
    for row in 0..7_u8 {
        let read = b.read(at.wrapping_byte_add(usize::from(row) * pitch), 100)?;
        same!(read, vec![row; 100], "row {row}");
    }
    b.free(at)
}
fn context_copy(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::USM_CONTEXT_MEMCPY_SUPPORT_EXP)?;
    let (context, at, mut back) = (b.context()?, b.alloc(Usm::Device, 1000)?, [0_u8; 1000]);
    let there = [5_u8; 1000];
    must!(b, usm_exp.context_memcpy_exp(context, at, there.as_ptr().cast(), 1000));
    must!(b, usm_exp.context_memcpy_exp(context, back.as_mut_ptr().cast(), at, 1000));
    same!(back, there, "what came back");
    b.free(at)
}
fn import(b: &Bench) -> Verdict {
    let (context, mut pages) = (b.context()?, Pages::new());
    let at = pages.at();
    must!(b, usm_exp.import_exp(context, at, 8192));
    b.write(at, &[3; 100])?;
    same!(b.read(at, 100)?, vec![3; 100], "what it holds");
    must!(b, usm_exp.release_exp(context, at));
    Ok(())
}
fn late_release(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::USM_HOST_ALLOC_REGISTER_SUPPORT_EXP)?;
    let (context, queue, mut pages) = (b.context()?, b.queue()?, Pages::new());
    let at = pages.at();
    must!(b, usm_exp.import_exp(context, at, 8192));
    let gate = b.gate(queue)?;
    let words = [word(context.0), word(at)];
    let more = [word(context.0), word(at), Word::One(8192), word(null())];
    let codes = std::thread::scope(|scope| {
        // Long enough for each call to begin: a release that begins later finds nothing to end. Some drivers register memory
        // only when the commands are over.
        let pause = || std::thread::sleep(Duration::from_millis(50));
        let released = scope.spawn(|| b.adapter.call("urUSMReleaseExp", &words));
        pause();
        let registered = scope.spawn(|| b.adapter.call("urUSMHostAllocRegisterExp", &more));
        pause();
        gate.open();
        [released.join(), registered.join()].map(|code| code.ok().flatten())
    });
    same!(codes, [Some(ur_result_t::SUCCESS); 2], "the release and the registration");
    same!(type_of(b, at)?, ur_usm_type_t::HOST, "the type of the memory that was registered");
    must!(b, usm_exp.host_alloc_unregister_exp(context, at));
    b.finish(queue)
}
