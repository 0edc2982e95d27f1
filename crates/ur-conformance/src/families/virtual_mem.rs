//! Virtual memory: address ranges that are reserved, mapped, protected and freed; and physical memory.
use crate::{
    ask,
    bench::Bench,
    case::{Case, Stop, Verdict},
    cases, ensure, info, must, same,
};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    let mut all = cases! { "virtual_mem";
        "urVirtualMemGranularityGetInfo", "steps are powers of two", "the recommended step is a multiple of the least", steps;
        "urVirtualMemReserve, urVirtualMemFree", "ranges do not overlap", "a hundred ranges lie apart and are given back", ranges;
        "urVirtualMemReserve", "a wish for a place", "a range that is free is had where it was", wish;
        "urVirtualMemMap, urVirtualMemUnmap", "a mapped range is memory", "what is mapped holds what is written, and still does when mapped elsewhere", moved;
        "urVirtualMemMap", "two mappings of one object", "two mappings show the same bytes", twice;
        "urVirtualMemMap", "an offset into the object", "parts of an object are mapped by their offset, out of order", parts;
        "urVirtualMemMap", "a range is mapped once", "a range that is mapped is not mapped again", occupied;
        "urVirtualMemMap", "within the object", "a mapping that runs past its object is refused", past;
        "urVirtualMemMap", "whole steps", "a range that is not whole steps is refused", odd;
        "urVirtualMemSetAccess, urVirtualMemGetInfo", "UR_VIRTUAL_MEM_INFO_ACCESS_MODE", "the access that is set is the access that is told", access;
        "urVirtualMemSetAccess", "READ_ONLY", "a command that writes where memory is mapped for reading only is refused, one that reads there is not", read_only;
        "urVirtualMemSetAccess, urMemBufferCreate", "READ_ONLY; UR_MEM_FLAG_USE_HOST_POINTER", "a command that writes into a buffer over memory mapped for reading only is refused, or writes into a copy", buffer_over_read_only;
        "urVirtualMemUnmap", "only what is mapped is unmapped", "a range that was never reserved is refused", strange;
        "urVirtualMemFree", "only what is reserved is given back", "a range is given back once", free_twice;
    };
    all.extend(cases! { "physical_mem";
        "urPhysicalMemCreate, urPhysicalMemGetInfo", "UR_PHYSICAL_MEM_INFO_SIZE, _CONTEXT, _DEVICE, _PROPERTIES", "physical memory says what it is", facts;
        "urPhysicalMemRelease", "mappings keep physical memory alive", "what is mapped stays when the object is released", outlived;
        "urPhysicalMemCreate", "whole steps", "a size that is not whole steps is refused", odd_size;
        "urPhysicalMemCreate", "flags are answered as given", "an object made to be shared says so", shared_flag;
    });
    all
}

/// Reserves a range of one granule.
pub fn reserved(bench: &Bench) -> Verdict<*mut c_void> {
    let (context, bytes, mut at) = (bench.context()?, bench.granularity()?, null_mut());
    must!(bench, virtual_mem.reserve(context, null(), bytes, &mut at));
    Ok(at)
}
fn needs(b: &Bench) -> Verdict<usize> {
    b.needs(ur_device_info_t::VIRTUAL_MEMORY_SUPPORT)?;
    b.granularity()
}
const READ_WRITE: ur_virtual_mem_access_flags_t = ur_virtual_mem_access_flags_t::READ_WRITE;

fn steps(b: &Bench) -> Verdict {
    needs(b)?;
    let (context, device) = (b.context()?, b.device()?);
    let least = ur_virtual_mem_granularity_info_t::MINIMUM;
    let least = info!(b, virtual_mem.granularity_get_info(context, device, 1, least), usize);
    let best = b.granularity()?;
    ensure!(least.is_power_of_two() && best % least == 0, "steps of {least} and {best}");
    Ok(())
}
fn ranges(b: &Bench) -> Verdict {
    let (bytes, context) = (needs(b)?, b.context()?);
    let all: Vec<_> = (0..100).map(|_| reserved(b)).collect::<Verdict<_>>()?;
    let mut sorted: Vec<_> = all.iter().map(|at| at.addr()).collect();
    sorted.sort_unstable();
    ensure!(sorted.windows(2).all(|pair| pair[0] + bytes <= pair[1]), "ranges overlap");
    ensure!(sorted.iter().all(|at| at % bytes == 0), "a range starts between steps");
    for at in all {
        must!(b, virtual_mem.free(context, at, bytes));
    }
    Ok(())
}
fn wish(b: &Bench) -> Verdict {
    let (bytes, context) = (needs(b)?, b.context()?);
    let at = reserved(b)?;
    must!(b, virtual_mem.free(context, at, bytes));
    let mut again = null_mut();
    let code = ask!(b, virtual_mem.reserve(context, at, bytes, &mut again));
    // The requested address may be ignored, but a range must be returned.
    if code == ur_result_t::SUCCESS {
        ensure!(!again.is_null(), "no range");
        must!(b, virtual_mem.free(context, again, bytes));
    }
    Ok(())
}
fn object(b: &Bench, bytes: usize) -> Verdict<ur_physical_mem_handle_t> {
    b.new_physical(bytes, ur_physical_mem_flags_t::default())
}
fn release(b: &Bench, object: ur_physical_mem_handle_t) -> Verdict {
    must!(b, physical_mem.release(object));
    Ok(())
}
fn moved(b: &Bench) -> Verdict {
    let bytes = needs(b)?;
    let object = object(b, bytes)?;
    let at = b.map(object.0, bytes)?;
    b.write(at, &vec![7; bytes])?;
    b.unmap(at, bytes)?;
    let at = b.map(object.0, bytes)?;
    let read = b.read(at, bytes)?;
    ensure!(read.iter().all(|byte| *byte == 7), "the bytes changed");
    b.unmap(at, bytes)?;
    release(b, object)
}
fn twice(b: &Bench) -> Verdict {
    let bytes = needs(b)?;
    let object = object(b, bytes)?;
    let one = b.map(object.0, bytes)?;
    let Some(two) = b.map_again(object.0, bytes)? else {
        let why = format!("the driver has one mapping of each object: {}", b.sentence());
        b.unmap(one, bytes)?;
        release(b, object)?;
        return Err(Stop::skipped(why));
    };
    ensure!(one != two, "both mappings have one address");
    b.write(one, &[1, 2, 3])?;
    same!(b.read(two, 3)?, [1, 2, 3], "the other mapping");
    b.unmap(one, bytes)?;
    same!(b.read(two, 3)?, [1, 2, 3], "the other mapping after the first is gone");
    b.unmap(two, bytes)?;
    release(b, object)
}
fn parts(b: &Bench) -> Verdict {
    let (bytes, context) = (needs(b)?, b.context()?);
    let (object, mut at) = (object(b, 3 * bytes)?, null_mut());
    let all = b.map(object.0, 3 * bytes)?;
    for part in 0..3_u8 {
        b.write(all.wrapping_byte_add(usize::from(part) * bytes), &[part + 1; 64])?;
    }
    must!(b, virtual_mem.reserve(context, null(), 3 * bytes, &mut at));
    for part in 0..3 {
        let to = at.wrapping_byte_add(part * bytes);
        let offset = (2 - part) * bytes;
        let code = ask!(b, virtual_mem.map(context, to, bytes, object, offset, READ_WRITE));
        if code == ur_result_t::ERROR_UNSUPPORTED_FEATURE && part == 0 {
            let why = format!("the driver maps objects once or from their start: {}", b.sentence());
            must!(b, virtual_mem.free(context, at, 3 * bytes));
            b.unmap(all, 3 * bytes)?;
            release(b, object)?;
            return Err(Stop::skipped(why));
        }
        b.succeeded("urVirtualMemMap", code)?;
        let read = b.read(to, 64)?;
        same!(read, vec![3 - part as u8; 64], "part {part} of the range");
    }
    for part in 0..3 {
        must!(b, virtual_mem.unmap(context, at.wrapping_byte_add(part * bytes), bytes));
    }
    must!(b, virtual_mem.free(context, at, 3 * bytes));
    b.unmap(all, 3 * bytes)?;
    release(b, object)
}
fn occupied(b: &Bench) -> Verdict {
    let (bytes, context) = (needs(b)?, b.context()?);
    let (one, two) = (object(b, bytes)?, object(b, bytes)?);
    let at = b.map(one.0, bytes)?;
    b.write(at, &[9; 64])?;
    let code = ask!(b, virtual_mem.map(context, at, bytes, two, 0, READ_WRITE));
    ensure!(code != ur_result_t::SUCCESS, "mapped over what is mapped");
    same!(b.read(at, 64)?, vec![9; 64], "what is mapped");
    b.unmap(at, bytes)?;
    release(b, one)?;
    release(b, two)
}
fn past(b: &Bench) -> Verdict {
    let (bytes, context) = (needs(b)?, b.context()?);
    let (object, mut at) = (object(b, bytes)?, null_mut());
    must!(b, virtual_mem.reserve(context, null(), 2 * bytes, &mut at));
    for (length, offset) in [(2 * bytes, 0), (bytes, bytes), (bytes, usize::MAX - bytes + 1)] {
        let code = ask!(b, virtual_mem.map(context, at, length, object, offset, READ_WRITE));
        ensure!(code != ur_result_t::SUCCESS, "mapped {length} bytes at {offset} of {bytes}");
    }
    must!(b, virtual_mem.free(context, at, 2 * bytes));
    release(b, object)
}
fn odd(b: &Bench) -> Verdict {
    let (bytes, context) = (needs(b)?, b.context()?);
    let mut at = null_mut();
    let code = ask!(b, virtual_mem.reserve(context, null(), bytes + 1, &mut at));
    ensure!(code != ur_result_t::SUCCESS, "reserved {} bytes in steps of {bytes}", bytes + 1);
    ensure!(at.is_null(), "the result is written to");
    Ok(())
}
fn access(b: &Bench) -> Verdict {
    use ur_virtual_mem_access_flags_t as Access;
    let (bytes, context) = (needs(b)?, b.context()?);
    let object = object(b, bytes)?;
    let at = b.map(object.0, bytes)?;
    let name = ur_virtual_mem_info_t::ACCESS_MODE;
    for flags in [Access::READ_ONLY, Access::NONE, Access::READ_WRITE] {
        must!(b, virtual_mem.set_access(context, at, bytes, flags));
        let found = info!(b, virtual_mem.get_info(context, at, bytes, name), u32);
        same!(Access(found), flags, "the access");
    }
    b.write(at, &[1; 64])?;
    b.unmap(at, bytes)?;
    release(b, object)
}
fn read_only(b: &Bench) -> Verdict {
    use ur_virtual_mem_access_flags_t as Access;
    let (bytes, context, queue) = (needs(b)?, b.context()?, b.queue()?);
    let object = object(b, bytes)?;
    let at = b.map(object.0, bytes)?;
    b.write(at, &[5; 64])?;
    must!(b, virtual_mem.set_access(context, at, bytes, Access::READ_ONLY));
    let (zeros, none) = ([0_u8; 64], null_mut());
    let (no, from) = (null(), zeros.as_ptr().cast());
    for code in [
        ask!(b, enqueue.usm_memcpy(queue, true, at, from, 64, 0, no, none)),
        ask!(b, enqueue.usm_fill(queue, at, 1, from, bytes, 0, no, none)),
        ask!(b, enqueue.usm_fill_2d(queue, at, 8, 1, from, 8, 8, 0, no, none)),
    ] {
        b.was_refused("a command that writes there", code, ur_result_t::ERROR_INVALID_VALUE)?;
    }
    same!(b.read(at, 64)?, vec![5; 64], "what is mapped");
    must!(b, virtual_mem.set_access(context, at, bytes, Access::READ_WRITE));
    b.write(at, &[6; 64])?;
    b.unmap(at, bytes)?;
    release(b, object)
}
fn buffer_over_read_only(b: &Bench) -> Verdict {
    use ur_virtual_mem_access_flags_t as Access;
    let (bytes, context, queue) = (needs(b)?, b.context()?, b.queue()?);
    let object = object(b, bytes)?;
    let at = b.map(object.0, bytes)?;
    b.write(at, &[5; 64])?;
    let stype = ur_structure_type_t::BUFFER_PROPERTIES;
    let properties = ur_buffer_properties_t { stype, pNext: null_mut(), pHost: at };
    let flags = ur_mem_flags_t::READ_WRITE | ur_mem_flags_t::USE_HOST_POINTER;
    let mut buffer = ur_mem_handle_t::NULL;
    must!(b, mem.buffer_create(context, flags, bytes, &properties, &mut buffer));
    must!(b, virtual_mem.set_access(context, at, bytes, Access::READ_ONLY));
    let (zeros, none, no) = ([0_u8; 64], null_mut(), null());
    let from = zeros.as_ptr().cast();
    let codes = [
        ask!(b, enqueue.mem_buffer_write(queue, buffer, true, 0, 64, from, 0, no, none)),
        ask!(b, enqueue.mem_buffer_fill(queue, buffer, from, 1, 0, 64, 0, no, none)),
    ];
    must!(b, queue.finish(queue));
    for code in codes {
        if code != ur_result_t::SUCCESS {
            b.was_refused("a command that writes there", code, ur_result_t::ERROR_INVALID_VALUE)?;
        }
    }
    same!(b.read(at, 64)?, vec![5; 64], "what is mapped");
    must!(b, virtual_mem.set_access(context, at, bytes, Access::READ_WRITE));
    must!(b, mem.release(buffer));
    b.unmap(at, bytes)?;
    release(b, object)
}
fn strange(b: &Bench) -> Verdict {
    let (bytes, context) = (needs(b)?, b.context()?);
    let mut mine = vec![0_u8; 2 * bytes];
    let start = mine.as_mut_ptr();
    let at = start.wrapping_add(start.align_offset(bytes)).cast();
    for code in [
        ask!(b, virtual_mem.unmap(context, at, bytes)),
        ask!(b, virtual_mem.free(context, at, bytes)),
        ask!(b, virtual_mem.set_access(context, at, bytes, READ_WRITE)),
    ] {
        ensure!(code != ur_result_t::SUCCESS, "memory of the program's is taken for a range");
    }
    mine[0] = 1; // still accessible
    Ok(())
}
fn free_twice(b: &Bench) -> Verdict {
    let (bytes, context) = (needs(b)?, b.context()?);
    let at = reserved(b)?;
    must!(b, virtual_mem.free(context, at, bytes));
    let code = ask!(b, virtual_mem.free(context, at, bytes));
    ensure!(code != ur_result_t::SUCCESS, "given back twice");
    Ok(())
}
fn facts(b: &Bench) -> Verdict {
    use ur_physical_mem_info_t as Info;
    let bytes = needs(b)?;
    let object = object(b, 2 * bytes)?;
    let found = info!(b, physical_mem.get_info(object, Info::SIZE), usize);
    same!(found, 2 * bytes, "the size");
    let found = info!(b, physical_mem.get_info(object, Info::CONTEXT), usize);
    same!(found, b.context()?.0.addr(), "the context");
    let found = info!(b, physical_mem.get_info(object, Info::DEVICE), usize);
    same!(found, b.device()?.0.addr(), "the device");
    release(b, object)
}
fn outlived(b: &Bench) -> Verdict {
    let bytes = needs(b)?;
    let object = object(b, bytes)?;
    let at = b.map(object.0, bytes)?;
    b.write(at, &[4; 64])?;
    release(b, object)?;
    same!(b.read(at, 64)?, vec![4; 64], "what is mapped");
    b.unmap(at, bytes)
}
fn odd_size(b: &Bench) -> Verdict {
    let (bytes, context, device) = (needs(b)?, b.context()?, b.device()?);
    let stype = ur_structure_type_t::PHYSICAL_MEM_PROPERTIES;
    let flags = ur_physical_mem_flags_t::default();
    let properties = ur_physical_mem_properties_t { stype, pNext: null_mut(), flags };
    let mut made = ur_physical_mem_handle_t::NULL;
    for size in [0, bytes + 1] {
        let code = ask!(b, physical_mem.create(context, device, size, &properties, &mut made));
        ensure!(code != ur_result_t::SUCCESS, "made {size} bytes in steps of {bytes}");
        ensure!(made.is_null(), "the result is written to");
    }
    Ok(())
}
fn shared_flag(b: &Bench) -> Verdict {
    let bytes = needs(b)?;
    b.needs(ur_device_info_t::IPC_PHYSICAL_MEMORY_SUPPORT_EXP)?;
    for flags in [ur_physical_mem_flags_t::default(), ur_physical_mem_flags_t::ENABLE_IPC] {
        let object = b.new_physical(bytes, flags)?;
        // The answer is the whole structure; the flags are its fifth 32-bit word.
        let name = ur_physical_mem_info_t::PROPERTIES;
        let words = info!(b, physical_mem.get_info(object, name), [u32; 6]);
        same!(words[0], ur_structure_type_t::PHYSICAL_MEM_PROPERTIES.0, "the structure's type");
        same!(words[4], flags.0, "the flags");
        release(b, object)?;
    }
    Ok(())
}
