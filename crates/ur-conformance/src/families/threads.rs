//! Several threads that share a buffer, a pool, a program or a mapped object: no operation is lost, repeated
//! or mixed up. `threads_queue.rs` tests queues, events and handles; `rules/together.rs` tests each entry's
//! results under concurrency.
use super::{kernel, memory, program::new_program};
use crate::{
    bench::{Bench, USM, Usm},
    case::{Case, Verdict},
    cases, ensure, must, same,
};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    let mut all = cases! { "threads";
        "urUSMDeviceAlloc, urUSMHostAlloc, urUSMSharedAlloc", "a pool serves several threads", "eight threads allocate from one pool, and nobody gets what another has", pool;
        "urUSMFree", "any thread may free", "what one thread allocated, others free at once", freed_by_others;
        "urEnqueueMemBufferWrite, urEnqueueMemBufferRead", "commands of several threads on one buffer", "eight threads write and read their parts of one buffer through one queue", parts;
        "urEnqueueMemBufferMap, urEnqueueMemUnmap", "maps of several threads", "eight threads map, write and unmap their parts of one buffer", maps;
        "urMemBufferPartition, urMemRelease", "parts of one buffer", "eight threads make and release parts of one buffer", partitions;
        "urKernelCreate, urEnqueueKernelLaunchWithArgsExp", "kernels of one program are apart", "eight threads launch kernels of their own, with arguments of their own", own_kernels;
        "urEnqueueKernelLaunchWithArgsExp", "arguments belong to their launch", "eight threads launch one kernel with arguments of their own", one_kernel;
        "urKernelCreateWithNativeHandle, urEnqueueKernelLaunchWithArgsExp", "arguments belong to their launch", "eight threads launch kernels of one native handle with arguments of their own", one_native_kernel;
        "urProgramBuild", "a program is built once", "eight threads build one program, and each finds its kernels", build;
        "urVirtualMemReserve, urVirtualMemMap, urVirtualMemUnmap, urVirtualMemFree", "mappings of several threads", "eight threads map one object, each at a place of its own", mappings;
        "urCommandBufferCreateExp, urCommandBufferAppendUSMFillExp, urEnqueueCommandBufferExp", "command buffers are apart", "eight threads record and run command buffers of their own in one queue", recordings;
    };
    all.extend(super::threads_queue::cases());
    all
}
pub const THREADS: usize = 8;
const PART: usize = 4096;

/// A handle or address as a number, which can be sent to threads.
pub fn sent(at: *mut c_void) -> usize {
    at.expose_provenance()
}
pub fn back(at: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(at)
}
/// A byte that identifies the thread and the round.
fn mark(index: usize, round: usize) -> u8 {
    (index * 31 + round * 7 + 1) as u8
}
fn pool(b: &Bench) -> Verdict {
    let pool = b.new_pool()?;
    let handle = sent(pool.0);
    b.together(THREADS, |b, index| {
        let (context, device, pool) =
            (b.context()?, b.device()?, ur_usm_pool_handle_t(back(handle)));
        for round in 0..40 {
            let (kind, mut at) = (USM[(index + round) % 3], null_mut());
            let bytes = 64 << (round % 8);
            match kind {
                Usm::Device => {
                    must!(b, usm.device_alloc(context, device, null(), pool, bytes, &mut at))
                }
                Usm::Shared => {
                    must!(b, usm.shared_alloc(context, device, null(), pool, bytes, &mut at))
                }
                Usm::Host => must!(b, usm.host_alloc(context, null(), pool, bytes, &mut at)),
            }
            b.write(at, &vec![mark(index, round); bytes])?;
            std::thread::yield_now();
            same!(b.read(at, bytes)?, vec![mark(index, round); bytes], "what a thread wrote");
            b.free(at)?;
        }
        Ok(())
    })?;
    must!(b, usm.pool_release(pool));
    Ok(())
}
fn freed_by_others(b: &Bench) -> Verdict {
    for kind in USM {
        let all: Vec<_> =
            (0..THREADS * 50).map(|_| b.alloc(kind, 1000).map(sent)).collect::<Verdict<_>>()?;
        b.together(THREADS, |b, index| {
            all.iter().skip(index).step_by(THREADS).try_for_each(|at| b.free(back(*at)))
        })?;
    }
    Ok(())
}
fn parts(b: &Bench) -> Verdict {
    for flags in [ur_queue_flags_t::default(), ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE] {
        let (queue, buffer) =
            (b.new_queue(flags)?, b.new_buffer(ur_mem_flags_t::READ_WRITE, THREADS * PART)?);
        let (queue_at, buffer_at) = (sent(queue.0), sent(buffer.0));
        b.together(THREADS, |b, index| {
            let (queue, buffer) =
                (ur_queue_handle_t(back(queue_at)), ur_mem_handle_t(back(buffer_at)));
            let (offset, none) = (index * PART, null_mut());
            for round in 0..30 {
                let (there, mut found) = ([mark(index, round); PART], [0; PART]);
                let (from, to) = (there.as_ptr().cast(), found.as_mut_ptr().cast());
                must!(
                    b,
                    enqueue.mem_buffer_write(
                        queue,
                        buffer,
                        true,
                        offset,
                        PART,
                        from,
                        0,
                        null(),
                        none
                    )
                );
                must!(
                    b,
                    enqueue.mem_buffer_read(queue, buffer, true, offset, PART, to, 0, null(), none)
                );
                ensure!(found == there, "another's bytes in the part of thread {index}");
            }
            Ok(())
        })?;
        must!(b, mem.release(buffer));
        must!(b, queue.release(queue));
    }
    Ok(())
}
fn maps(b: &Bench) -> Verdict {
    let (flags, bytes) = (ur_map_flags_t::READ | ur_map_flags_t::WRITE, THREADS * PART);
    let buffer = b.new_buffer(ur_mem_flags_t::READ_WRITE, bytes)?;
    memory::write(b, buffer, 0, &vec![0; bytes])?;
    let handle = sent(buffer.0);
    b.together(THREADS, |b, index| {
        let (queue, buffer, none) = (b.queue()?, ur_mem_handle_t(back(handle)), null_mut());
        for round in 0..20 {
            let (mut at, offset) = (null_mut(), index * PART);
            must!(
                b,
                enqueue.mem_buffer_map(
                    queue,
                    buffer,
                    true,
                    flags,
                    offset,
                    PART,
                    0,
                    null(),
                    none,
                    &mut at
                )
            );
            b.write(at, &[mark(index, round); PART])?;
            must!(b, enqueue.mem_unmap(queue, buffer, at, 0, null(), none));
            b.finish(queue)?;
        }
        Ok(())
    })?;
    let expected: Vec<_> = (0..bytes).map(|n| mark(n / PART, 19)).collect();
    ensure!(
        memory::read(b, buffer, 0, bytes)? == expected,
        "what was written through a map is lost"
    );
    must!(b, mem.release(buffer));
    Ok(())
}
fn partitions(b: &Bench) -> Verdict {
    let buffer = b.new_buffer(ur_mem_flags_t::READ_WRITE, THREADS * PART)?;
    let handle = sent(buffer.0);
    b.together(THREADS, |b, index| {
        let (stype, kind) = (ur_structure_type_t::BUFFER_REGION, ur_buffer_create_type_t::REGION);
        let region = ur_buffer_region_t { stype, pNext: null(), origin: index * PART, size: PART };
        for round in 0..30 {
            let (flags, mut part) = (ur_mem_flags_t::READ_WRITE, ur_mem_handle_t::NULL);
            must!(
                b,
                mem.buffer_partition(
                    ur_mem_handle_t(back(handle)),
                    flags,
                    kind,
                    &region,
                    &mut part
                )
            );
            memory::write(b, part, 0, &[mark(index, round); PART])?;
            let found = memory::read(b, part, 0, PART)?;
            same!(found, [mark(index, round); PART], "the part of thread {index}");
            must!(b, mem.release(part));
        }
        Ok(())
    })?;
    let count = crate::info!(b, mem.get_info(buffer, ur_mem_info_t::REFERENCE_COUNT), u32);
    same!(count, 1, "the count of the buffer, its parts gone");
    must!(b, mem.release(buffer));
    Ok(())
}
const ITEMS: usize = 64;
const LAUNCHES: u32 = 40;
/// An array of zeros, which the launches of one thread add numbers to.
fn array(b: &Bench) -> Verdict<*mut c_void> {
    let at = b.alloc(Usm::Device, 4 * ITEMS)?;
    b.write(at, &[0; 4 * ITEMS])?;
    Ok(at)
}
fn adds_up(b: &Bench, at: *mut c_void, index: usize) -> Verdict {
    let sum: u32 = (0..LAUNCHES).map(|round| round * (index as u32 + 1)).sum();
    let expected: Vec<_> = (0..ITEMS).flat_map(|_| sum.to_ne_bytes()).collect();
    same!(b.read(at, 4 * ITEMS)?, expected, "the sums of thread {index}");
    b.free(at)
}
/// In every round, adds the round's number times `index + 1` to every item.
fn launches(b: &Bench, of: ur_kernel_handle_t, index: usize) -> Verdict {
    launches_in(b, b.queue()?, of, index)
}
fn launches_in(
    b: &Bench,
    queue: ur_queue_handle_t,
    of: ur_kernel_handle_t,
    index: usize,
) -> Verdict {
    let at = array(b)?;
    for round in 0..LAUNCHES {
        let value = round * (index as u32 + 1);
        let second = ur_exp_kernel_arg_value_t { value: (&raw const value).cast() };
        let kind = ur_exp_kernel_arg_type_t::VALUE;
        let arguments = [kernel::pointer(at), kernel::argument(1, kind, second)];
        let (global, list, none) = ([16_usize, 4, 1], arguments.as_ptr(), null_mut());
        let (sizes, offset, local) = (global.as_ptr(), null(), null());
        must!(
            b,
            enqueue_exp.kernel_launch_with_args_exp(
                queue,
                of,
                2,
                offset,
                sizes,
                local,
                2,
                list,
                null(),
                0,
                null(),
                none
            )
        );
    }
    b.finish(queue)?;
    adds_up(b, at, index)
}
fn own_kernels(b: &Bench) -> Verdict {
    let program = new_program(b)?;
    let handle = sent(program.0);
    b.together(THREADS, |b, index| {
        let mut of = ur_kernel_handle_t::NULL;
        must!(b, kernel.create(ur_program_handle_t(back(handle)), c"add".as_ptr(), &mut of));
        launches(b, of, index)?;
        must!(b, kernel.release(of));
        Ok(())
    })?;
    must!(b, program.release(program));
    Ok(())
}
fn one_kernel(b: &Bench) -> Verdict {
    let of = kernel::new_kernel(b)?;
    let handle = sent(of.0);
    b.together(THREADS, |b, index| launches(b, ur_kernel_handle_t(back(handle)), index))?;
    must!(b, kernel.release(of));
    Ok(())
}
fn one_native_kernel(b: &Bench) -> Verdict {
    let (program, mut of, mut native) = (new_program(b)?, ur_kernel_handle_t::NULL, 0);
    must!(b, kernel.create(program, c"add".as_ptr(), &mut of));
    must!(b, kernel.get_native_handle(of, &mut native));
    let handle = sent(program.0);
    b.together(THREADS, |b, index| {
        let (context, program) = (b.context()?, ur_program_handle_t(back(handle)));
        let mut own = ur_kernel_handle_t::NULL;
        must!(b, kernel.create_with_native_handle(native, context, program, null(), &mut own));
        // In a queue of its own, since launches in one queue are one after the other.
        let queue = b.new_queue(ur_queue_flags_t::default())?;
        (0..50).try_for_each(|_| launches_in(b, queue, own, index))?;
        must!(b, queue.release(queue));
        must!(b, kernel.release(own));
        Ok(())
    })?;
    must!(b, kernel.release(of));
    must!(b, program.release(program));
    Ok(())
}
fn build(b: &Bench) -> Verdict {
    let [program, other] = super::program::rivals(b)?;
    let handle = sent(program.0);
    b.together(THREADS, |b, _| {
        let (context, program) = (b.context()?, ur_program_handle_t(back(handle)));
        must!(b, program.build(context, program, null()));
        for name in [c"add", c"x"] {
            let mut kernel = ur_kernel_handle_t::NULL;
            must!(b, kernel.create(program, name.as_ptr(), &mut kernel));
            must!(b, kernel.release(kernel));
        }
        Ok(())
    })?;
    for program in [program, other] {
        must!(b, program.release(program));
    }
    Ok(())
}
fn mappings(b: &Bench) -> Verdict {
    let step = b.granularity()?;
    let physical = b.new_physical(THREADS * step, ur_physical_mem_flags_t::default())?;
    let handle = sent(physical.0);
    b.together(THREADS, |b, index| {
        let (context, bytes, access) =
            (b.context()?, step, ur_virtual_mem_access_flags_t::READ_WRITE);
        let (object, offset) = (ur_physical_mem_handle_t(back(handle)), index * step);
        for round in 0..20 {
            let mut at = null_mut();
            must!(b, virtual_mem.reserve(context, null(), bytes, &mut at));
            must!(b, virtual_mem.map(context, at, bytes, object, offset, access));
            if round > 0 {
                same!(b.read(at, PART)?, [mark(index, round - 1); PART], "what it held");
            }
            b.write(at, &[mark(index, round); PART])?;
            b.unmap(at, bytes)?;
        }
        Ok(())
    })?;
    must!(b, physical_mem.release(physical));
    Ok(())
}
fn recordings(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::COMMAND_BUFFER_SUPPORT_EXP)?;
    b.together(THREADS, |b, index| {
        let (at, queue) = (b.alloc(Usm::Device, PART)?, b.queue()?);
        for round in 0..10 {
            let (byte, buffer) = (mark(index, round), b.new_command_buffer()?);
            let pattern = (&raw const byte).cast();
            let (none, no) = (null_mut(), null_mut());
            must!(
                b,
                command_buffer_exp.append_usm_fill_exp(
                    buffer,
                    at,
                    pattern,
                    1,
                    PART,
                    0,
                    null(),
                    0,
                    null(),
                    none,
                    null_mut(),
                    no
                )
            );
            must!(b, command_buffer_exp.finalize_exp(buffer));
            must!(b, enqueue_exp.command_buffer_exp(queue, buffer, 0, null(), null_mut()));
            b.finish(queue)?;
            same!(b.read(at, PART)?, [byte; PART], "what thread {index} recorded");
            must!(b, command_buffer_exp.release_exp(buffer));
        }
        b.free(at)
    })
}
