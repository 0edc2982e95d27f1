//! USM: allocations of the three kinds, queries about addresses, and the end of allocations.
use crate::{
    ask,
    bench::{Bench, USM, Usm},
    case::{Case, Stop, Verdict},
    cases, ensure, info, must, refused, same,
};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    cases! { "usm";
        "urUSMDeviceAlloc, urUSMHostAlloc, urUSMSharedAlloc", "allocations hold what is written", "every kind and size holds what is written into it", holds;
        "urUSMDeviceAlloc, urUSMHostAlloc, urUSMSharedAlloc", "allocations do not overlap", "a thousand allocations lie apart", apart;
        "urUSMDeviceAlloc, urUSMHostAlloc, urUSMSharedAlloc", "the alignment that is asked for", "every alignment up to a page is kept", aligned;
        "urUSMDeviceAlloc", "UR_RESULT_ERROR_INVALID_USM_SIZE: the size exceeds the device's largest allowed allocation", "device memory larger than the device allows is INVALID_USM_SIZE", too_large;
        "urUSMSharedAlloc", "UR_RESULT_ERROR_INVALID_USM_SIZE: the size exceeds the device's largest allowed allocation", "shared memory larger than the device allows is INVALID_USM_SIZE", too_large_shared;
        "urUSMHostAlloc", "UR_RESULT_ERROR_INVALID_USM_SIZE: the size exceeds some context device's largest allowed allocation", "host memory larger than a device allows is INVALID_USM_SIZE", too_large_host;
        "urUSMGetMemAllocInfo", "UR_USM_ALLOC_INFO_TYPE, _BASE_PTR, _SIZE, _DEVICE", "an allocation is known for what it is, at its start and inside", known;
        "urUSMGetMemAllocInfo", "UR_USM_TYPE_UNKNOWN for what is no USM", "an address of nobody's is of unknown type", unknown;
        "urUSMGetMemAllocInfo", "the end of an allocation is not in it", "the address behind an allocation is not taken for it", behind;
        "urUSMFree", "UR_RESULT_ERROR_INVALID_MEM_OBJECT", "memory of nobody's is INVALID_MEM_OBJECT", nobodys;
        "urUSMFree", "UR_RESULT_ERROR_INVALID_MEM_OBJECT", "memory that was freed is INVALID_MEM_OBJECT", twice;
        "urUSMFree", "UR_RESULT_ERROR_INVALID_MEM_OBJECT", "an address inside of an allocation is INVALID_MEM_OBJECT, and the allocation stays", inside;
        "urUSMFree", "what is freed can be had again", "a hundred thousand rounds of allocation and free end", rounds;
        "urUSMFree", "contexts keep apart what is theirs", "memory of another context is not freed", other_context;
        "urUSMHostAlloc", "the host reaches host USM", "host memory is written by the device and read by the host", host_reads;
        "urUSMDeviceAlloc", "counts are exact under concurrency", "eight threads allocate and free at once", threads;
    }
}
const SIZES: [usize; 6] = [1, 63, 4096, 65_537, 1 << 20, (8 << 20) + 3];

fn holds(b: &Bench) -> Verdict {
    for kind in USM {
        let mut kept = Vec::new();
        for (index, bytes) in SIZES.into_iter().enumerate() {
            let at = b.alloc(kind, bytes)?;
            b.write(at, &vec![index as u8 + 1; bytes])?;
            kept.push((at, bytes, index as u8 + 1));
        }
        for (at, bytes, byte) in kept {
            let read = b.read(at, bytes)?;
            ensure!(read.iter().all(|n| *n == byte), "{kind:?} of {bytes} bytes has changed");
            b.free(at)?;
        }
    }
    Ok(())
}
fn apart(b: &Bench) -> Verdict {
    for kind in USM {
        let all: Vec<_> =
            (0..1000).map(|n| Ok((b.alloc(kind, 100 + n)?, 100 + n))).collect::<Verdict<_>>()?;
        let mut sorted: Vec<_> = all.iter().map(|(at, n)| (at.addr(), *n)).collect();
        sorted.sort_unstable();
        for pair in sorted.windows(2) {
            ensure!(pair[0].0 + pair[0].1 <= pair[1].0, "{kind:?}: {pair:x?} overlap");
        }
        all.into_iter().try_for_each(|(at, _)| b.free(at))?;
    }
    Ok(())
}
fn described(b: &Bench, kind: Usm, align: u32, bytes: usize) -> Verdict<*mut c_void> {
    let (stype, hints) = (ur_structure_type_t::USM_DESC, ur_usm_advice_flags_t::default());
    let desc = ur_usm_desc_t { stype, pNext: null(), hints, align };
    let (none, mut at) = (ur_usm_pool_handle_t::NULL, null_mut());
    let (context, device) = (b.context()?, b.device()?);
    match kind {
        Usm::Device => must!(b, usm.device_alloc(context, device, &desc, none, bytes, &mut at)),
        Usm::Shared => must!(b, usm.shared_alloc(context, device, &desc, none, bytes, &mut at)),
        Usm::Host => must!(b, usm.host_alloc(context, &desc, none, bytes, &mut at)),
    }
    crate::bench::exists(at)?;
    Ok(at)
}
fn aligned(b: &Bench) -> Verdict {
    for kind in USM {
        for align in [1, 2, 8, 64] {
            // Three allocations, so that they are not aligned by chance.
            let all = [1, 7, 100].map(|bytes| described(b, kind, align, bytes));
            for at in all {
                let at = at?;
                ensure!(at.addr() % align as usize == 0, "{kind:?} at {at:p}, aligned to {align}");
                b.free(at)?;
            }
        }
        for align in [128, 256, 1024, 4096] {
            let (code, at) = match described(b, kind, align, 100) {
                Ok(at) => (ur_result_t::SUCCESS, at),
                // An adapter may refuse an alignment larger than that of the device's largest type.
                Err(Stop::Failed(why)) if why.contains("INVALID_VALUE") => continue,
                Err(other) => return Err(other),
            };
            ensure!(at.addr() % align as usize == 0, "{code:?} at {at:p}, aligned to {align}");
            b.free(at)?;
        }
    }
    Ok(())
}
fn largest(b: &Bench) -> Verdict<usize> {
    let device = b.device()?;
    let most = info!(b, device.get_info(device, ur_device_info_t::MAX_MEM_ALLOC_SIZE), u64);
    let most = usize::try_from(most).map_err(|e| Stop::failed(e.to_string()))?;
    most.checked_add(4096).ok_or_else(|| Stop::skipped("the device allows every size"))
}
fn too_large(b: &Bench) -> Verdict {
    let (context, device, bytes, mut at) = (b.context()?, b.device()?, largest(b)?, null_mut());
    let none = ur_usm_pool_handle_t::NULL;
    refused!(
        b,
        ERROR_INVALID_USM_SIZE,
        usm.device_alloc(context, device, null(), none, bytes, &mut at)
    );
    ensure!(at.is_null(), "the result is written to");
    Ok(())
}
fn too_large_shared(b: &Bench) -> Verdict {
    let (context, device, bytes, mut at) = (b.context()?, b.device()?, largest(b)?, null_mut());
    let none = ur_usm_pool_handle_t::NULL;
    refused!(
        b,
        ERROR_INVALID_USM_SIZE,
        usm.shared_alloc(context, device, null(), none, bytes, &mut at)
    );
    ensure!(at.is_null(), "the result is written to");
    Ok(())
}
fn too_large_host(b: &Bench) -> Verdict {
    let (context, bytes, mut at) = (b.context()?, largest(b)?, null_mut());
    let none = ur_usm_pool_handle_t::NULL;
    refused!(b, ERROR_INVALID_USM_SIZE, usm.host_alloc(context, null(), none, bytes, &mut at));
    ensure!(at.is_null(), "the result is written to");
    Ok(())
}
fn kind_of(b: &Bench, at: *const c_void) -> Verdict<ur_usm_type_t> {
    let context = b.context()?;
    let kind = info!(b, usm.get_mem_alloc_info(context, at, ur_usm_alloc_info_t::TYPE), u32);
    Ok(ur_usm_type_t(kind))
}
fn known(b: &Bench) -> Verdict {
    use ur_usm_alloc_info_t as Info;
    let (context, device) = (b.context()?, b.device()?);
    let types = [ur_usm_type_t::DEVICE, ur_usm_type_t::HOST, ur_usm_type_t::SHARED];
    for (kind, expected) in USM.into_iter().zip(types) {
        let start = b.alloc(kind, 5000)?;
        for offset in [0, 1, 4999] {
            let at = start.wrapping_byte_add(offset).cast_const();
            same!(kind_of(b, at)?, expected, "the type of {kind:?} memory at {offset}");
            let base = info!(b, usm.get_mem_alloc_info(context, at, Info::BASE_PTR), usize);
            same!(base, start.addr(), "the base of {kind:?} memory at {offset}");
            let size = info!(b, usm.get_mem_alloc_info(context, at, Info::SIZE), usize);
            ensure!((5000..5000 + 4096).contains(&size), "{kind:?} memory of {size} bytes");
            if kind != Usm::Host {
                let of = info!(b, usm.get_mem_alloc_info(context, at, Info::DEVICE), usize);
                same!(of, device.0.addr(), "the device of {kind:?} memory");
            }
        }
        b.free(start)?;
    }
    Ok(())
}
fn unknown(b: &Bench) -> Verdict {
    b.context()?;
    let mine = [0_u8; 64];
    same!(kind_of(b, mine.as_ptr().cast())?, ur_usm_type_t::UNKNOWN, "the type of the stack");
    Ok(())
}
fn behind(b: &Bench) -> Verdict {
    let (at, bytes) = (b.alloc(Usm::Device, 4096)?, 1 << 20);
    let end = at.wrapping_byte_add(bytes).cast_const();
    let context = b.context()?;
    if kind_of(b, end)? != ur_usm_type_t::UNKNOWN {
        let base =
            info!(b, usm.get_mem_alloc_info(context, end, ur_usm_alloc_info_t::BASE_PTR), usize);
        ensure!(base != at.addr(), "an address far behind is taken for the allocation");
    }
    b.free(at)
}
fn nobodys(b: &Bench) -> Verdict {
    let (context, mut mine) = (b.context()?, [0_u8; 64]);
    refused!(b, ERROR_INVALID_MEM_OBJECT, usm.free(context, mine.as_mut_ptr().cast()));
    Ok(())
}
fn twice(b: &Bench) -> Verdict {
    let context = b.context()?;
    for kind in USM {
        let at = b.alloc(kind, 4096)?;
        b.free(at)?;
        refused!(b, ERROR_INVALID_MEM_OBJECT, usm.free(context, at));
    }
    Ok(())
}
fn inside(b: &Bench) -> Verdict {
    let context = b.context()?;
    for kind in USM {
        let at = b.alloc(kind, 4096)?;
        b.write(at, &[3; 4096])?;
        refused!(b, ERROR_INVALID_MEM_OBJECT, usm.free(context, at.wrapping_byte_add(64)));
        same!(b.read(at, 4096)?, vec![3; 4096], "what the allocation holds");
        b.free(at)?;
    }
    Ok(())
}
fn rounds(b: &Bench) -> Verdict {
    for n in 0..100_000 {
        let at = b.alloc(Usm::Device, 1 + n % 10_000)?;
        b.free(at)?;
    }
    Ok(())
}
fn other_context(b: &Bench) -> Verdict {
    let (at, other) = (b.alloc(Usm::Device, 4096)?, b.new_context()?);
    let code = ask!(b, usm.free(other, at));
    ensure!(code != ur_result_t::SUCCESS, "freed through a context that it is not of");
    must!(b, context.release(other));
    b.free(at)
}
#[expect(unsafe_code, reason = "reads host USM as a host program does")]
fn host_reads(b: &Bench) -> Verdict {
    let (queue, at) = (b.queue()?, b.alloc(Usm::Host, 4096)?);
    let (byte, none) = (0x42_u8, null_mut());
    must!(b, enqueue.usm_fill(queue, at, 1, (&raw const byte).cast(), 4096, 0, null(), none));
    b.finish(queue)?;
    // SAFETY: host USM of 4096 bytes, and no enqueued command writes to it.
    let read = unsafe { std::slice::from_raw_parts(at.cast::<u8>(), 4096) };
    ensure!(read.iter().all(|n| *n == byte), "the host does not see what the device wrote");
    b.free(at)
}
fn threads(b: &Bench) -> Verdict {
    b.context()?;
    let (adapter, subject) = (b.adapter, b.subject.clone());
    let spawned: Vec<_> = (0..8)
        .map(|thread| {
            let subject = subject.clone();
            std::thread::spawn(move || -> Verdict {
                let b = Bench::new(adapter, subject);
                for round in 0..50 {
                    let all: Vec<_> = (0..10)
                        .map(|n| b.alloc(Usm::Device, 100 << (n % 6)))
                        .collect::<Verdict<_>>()?;
                    for at in &all {
                        b.write(*at, &[thread; 100])?;
                    }
                    for at in all {
                        same!(b.read(at, 100)?, vec![thread; 100], "round {round}");
                        b.free(at)?;
                    }
                }
                Ok(())
            })
        })
        .collect();
    for thread in spawned {
        thread.join().map_err(|_| Stop::failed("a thread panicked"))??;
    }
    Ok(())
}
