//! Programs and kernels as a C program has them, on whatever driver of CUDA there is: a real one, or a software
//! one that was loaded under its name before. Without a device the tests say so and are skipped.
mod c;

use c::*;
use std::{ffi::c_void, ptr::null};
use ur_sys::{
    ur_kernel_cache_config_t, ur_kernel_exec_info_t, ur_kernel_launch_flags_t, ur_result_t as R,
};

const PTX: &str = include_str!("kernels.ptx");

#[test]
fn every_item_of_a_range_runs_once_with_and_without_an_offset() {
    let Some(cuda) = Cuda::new() else { return };
    let add = cuda.kernel_of(PTX, c"add");
    for (offset, global, local) in [
        (None, &[4096][..], None),
        (None, &[16, 16, 16], None),
        (None, &[16, 16, 16], Some(&[4, 2, 8][..])),
        (Some(&[100][..]), &[1000], None),
        (Some(&[1, 2, 3]), &[15, 14, 13], None),
        (Some(&[0, 0]), &[16, 7], Some(&[8, 7])),
    ] {
        let (at, five) = (cuda.device_memory(4 * 4096), 5_u32);
        cuda.write(at, &[0_u32; 4096]);
        let arguments = [pointer(0, at), value(1, &five)];
        cuda.done(cuda.launch(add, offset, global, local, &arguments, &[]));
        let mut expected = [0_u32; 4096];
        let (start, end) = (three(offset.unwrap_or(&[]), 0), three(global, 1));
        for z in start[2]..start[2] + end[2] {
            for y in start[1]..start[1] + end[1] {
                for x in start[0]..start[0] + end[0] {
                    expected[x + 16 * y + 256 * z] += 5;
                }
            }
        }
        assert_eq!(cuda.read::<u32, 4096>(at), expected, "{offset:?} {global:?} {local:?}");
        cuda.free(at);
    }
    cuda.release(add);
}
fn three(given: &[usize], rest: usize) -> [usize; 3] {
    let mut all = [rest; 3];
    all.iter_mut().zip(given).for_each(|(to, from)| *to = *from);
    all
}

#[test]
fn local_memory_is_one_block_also_where_it_must_be_asked_for() {
    let Some(cuda) = Cuda::new() else { return };
    let reduce = cuda.kernel_of(PTX, c"reduce");
    let (from, to) = (cuda.device_memory(4 * 1024), cuda.device_memory(4 * 1024));
    cuda.write(from, &std::array::from_fn::<u32, 1024, _>(|n| n as u32));
    // The second is more than a kernel has unless it is asked for.
    for bytes in [4 * 256, 60 << 10] {
        cuda.write(to, &[0_u32; 1024]);
        let arguments = [pointer(0, from), pointer(1, to), local(2, bytes)];
        cuda.done(cuda.launch(reduce, None, &[1024], Some(&[256]), &arguments, &[]));
        let sums: [u32; 4] = std::array::from_fn(|g| (256 * g as u32..256 * (g as u32 + 1)).sum());
        assert_eq!(cuda.read::<u32, 4>(to), sums);
    }
    let too_much = [pointer(0, from), pointer(1, to), local(2, 64 << 20)];
    let refused = cuda.launch(reduce, None, &[1024], Some(&[256]), &too_much, &[]);
    assert_eq!(refused.unwrap_err(), R::ERROR_OUT_OF_RESOURCES);
    cuda.free(from);
    cuda.free(to);
    cuda.release(reduce);
}

#[test]
fn records_and_several_arrays_are_arguments() {
    #[repr(C)]
    struct Record {
        array: *mut c_void,
        a: u32,
        b: u32,
        c: u64,
    }
    let Some(cuda) = Cuda::new() else { return };
    let (record, sum) = (cuda.kernel_of(PTX, c"record"), cuda.kernel_of(PTX, c"vector_add"));
    let [a, b, to] = [(); 3].map(|()| cuda.device_memory(4 * 64));
    let all = Record { array: a, a: 1, b: 20, c: 300 };
    let first = cuda.launch(record, None, &[64], None, &[value(0, &all)], &[]).unwrap();
    let ten = Record { array: b, a: 10, b: 0, c: 0 };
    let second = cuda.launch(record, None, &[64], None, &[value(0, &ten)], &[]).unwrap();
    let n = 63_u32;
    cuda.write(to, &[7_u32; 64]);
    // In any order, and behind both.
    let arguments = [value(3, &n), pointer(1, b), pointer(0, a), pointer(2, to)];
    cuda.done(cuda.launch(sum, None, &[64], Some(&[32]), &arguments, &[first, second]));
    let mut expected = [331_u32; 64];
    expected[63] = 7;
    assert_eq!(cuda.read::<u32, 64>(to), expected);
    [first, second].into_iter().for_each(|event| cuda.release_event(event));
    [a, b, to].into_iter().for_each(|at| cuda.free(at));
    cuda.release(record);
    cuda.release(sum);
}

#[test]
fn a_range_without_items_runs_nothing_and_keeps_the_order() {
    let Some(cuda) = Cuda::new() else { return };
    let fill = cuda.kernel_of(PTX, c"fill");
    let (at, nine) = (cuda.device_memory(4), 9_u32);
    cuda.write(at, &[1_u32]);
    let arguments = [pointer(0, at), value(1, &nine)];
    cuda.done(cuda.launch(fill, None, &[0], None, &arguments, &[]));
    cuda.done(cuda.launch(fill, None, &[4, 0, 4], Some(&[1, 1, 1]), &arguments, &[]));
    assert_eq!(cuda.read::<u32, 1>(at), [1]);
    cuda.free(at);
    cuda.release(fill);
}

#[test]
fn launches_that_cannot_be_are_refused_and_run_nothing() {
    let Some(cuda) = Cuda::new() else { return };
    let (fill, limited) = (cuda.kernel_of(PTX, c"fill"), cuda.kernel_of(PTX, c"limited"));
    let (at, four, long) = (cuda.device_memory(4 * 4096), 4_u32, 8_u64);
    cuda.write(at, &[1_u32; 4096]);
    let good = [pointer(0, at), value(1, &four)];
    let code = |kernel, global: &[usize], local: Option<&[usize]>, arguments: &[Argument]| {
        cuda.launch(kernel, None, global, local, arguments, &[]).unwrap_err()
    };
    assert_eq!(code(fill, &[7], Some(&[2]), &good), R::ERROR_INVALID_WORK_GROUP_SIZE);
    assert_eq!(code(fill, &[4096], Some(&[4096]), &good), R::ERROR_INVALID_WORK_GROUP_SIZE);
    assert_eq!(code(fill, &[1, 70000], Some(&[1, 1]), &good), R::ERROR_INVALID_WORK_GROUP_SIZE);
    assert_eq!(code(fill, &[usize::MAX, 4], None, &good), R::ERROR_INVALID_VALUE);
    assert_eq!(code(limited, &[128], Some(&[128]), &good[..1]), R::ERROR_INVALID_WORK_GROUP_SIZE);
    assert_eq!(code(fill, &[1], None, &good[..1]), R::ERROR_INVALID_KERNEL_ARGS);
    assert_eq!(code(fill, &[1], None, &[good[0], good[0]]), R::ERROR_INVALID_KERNEL_ARGS);
    let wrong = [pointer(0, at), value(1, &long)];
    assert_eq!(code(fill, &[1], None, &wrong), R::ERROR_INVALID_KERNEL_ARGUMENT_SIZE);
    assert_eq!(cuda.read::<u32, 4096>(at), [1; 4096]);
    // Sizes that are left to us are within what the kernel says of itself.
    cuda.done(cuda.launch(limited, None, &[4096], None, &good[..1], &[]));
    let size = cuda.read::<u32, 1>(at)[0];
    assert!((1..=64).contains(&size), "groups of {size} items");
    cuda.free(at);
    cuda.release(fill);
    cuda.release(limited);
}

#[test]
fn variables_of_a_program_are_read_written_and_counted_in_by_either_name() {
    let Some(cuda) = Cuda::new() else { return };
    let program =
        cuda.program(PTX.as_bytes(), Some((c"sycl_name@global_id_mapping", b"counter"))).unwrap();
    cuda.build(program, null()).unwrap();
    let count = cuda.kernel(program, c"count").unwrap();
    let (mut bytes, mut at) = (0, std::ptr::null_mut());
    let code = call!(program.get_global_variable_pointer(
        cuda.device,
        program,
        c"counter".as_ptr(),
        &mut bytes,
        &mut at
    ));
    assert_eq!((code, bytes, at.is_null()), (R::SUCCESS, 4, false));
    assert_eq!(cuda.read::<u32, 1>(at), [7]);
    cuda.done(cuda.launch(count, None, &[1000], None, &[], &[]));
    let mut value = 0_u32;
    let read = |name: &std::ffi::CStr, offset, count, to: &mut u32| {
        let (to, none) = ((&raw mut *to).cast::<c_void>(), std::ptr::null_mut());
        call!(enqueue.device_global_variable_read(
            cuda.queue,
            program,
            name.as_ptr(),
            true,
            count,
            offset,
            to,
            0,
            null(),
            none
        ))
    };
    assert_eq!(read(c"sycl_name", 0, 4, &mut value), R::SUCCESS);
    assert_eq!(value, 1007);
    let (from, none) = ([5_u8, 6], std::ptr::null_mut());
    let code = call!(enqueue.device_global_variable_write(
        cuda.queue,
        program,
        c"counter".as_ptr(),
        true,
        2,
        1,
        from.as_ptr().cast(),
        0,
        null(),
        none
    ));
    assert_eq!(code, R::SUCCESS);
    assert_eq!(read(c"counter", 0, 4, &mut value), R::SUCCESS);
    assert_eq!(value.to_le_bytes(), [(1007 & 0xff) as u8, 5, 6, 0]);
    for (name, offset, count) in
        [(c"none", 0, 4), (c"counter", 1, 4), (c"counter", 0, 0), (c"counter", usize::MAX, 2)]
    {
        assert_eq!(
            read(name, offset, count, &mut value),
            R::ERROR_INVALID_VALUE,
            "{name:?} {offset} {count}"
        );
    }
    cuda.release(count);
    cuda.release_program(program);
}

#[test]
fn groups_that_wait_for_each_other_clusters_and_scratch_memory_are_launched_where_there_are_any() {
    let Some(cuda) = Cuda::new() else { return };
    let (place, reduce) = (cuda.kernel_of(PTX, c"place"), cuda.kernel_of(PTX, c"reduce"));
    let (at, to) = (cuda.device_memory(4 * 256), cuda.device_memory(4 * 256));
    let arguments = [pointer(0, at)];
    let cluster = Cluster::new([2, 1, 1]);
    for (how, least) in [
        (Properties::new(COOPERATIVE, null()), 1),
        (Properties::new(ur_kernel_launch_flags_t::default(), cluster.chain()), 9),
    ] {
        cuda.write(at, &[0_u32; 256]);
        match cuda.launch_as(place, &how, &[256], &[64], &arguments) {
            // What a device has not is refused, and nothing runs.
            Err(code) => {
                assert_eq!((code, cuda.capability() < least), (R::ERROR_INVALID_OPERATION, true))
            }
            event => {
                cuda.done(event);
                assert_eq!(cuda.read::<u32, 256>(at), std::array::from_fn(|n| n as u32));
            }
        }
    }
    let odd = Cluster::new([3, 1, 1]);
    let how = Properties::new(ur_kernel_launch_flags_t::default(), odd.chain());
    let code = cuda.launch_as(place, &how, &[256], &[64], &arguments).unwrap_err();
    let expected =
        if cuda.capability() < 9 { R::ERROR_INVALID_OPERATION } else { R::ERROR_INVALID_VALUE };
    assert_eq!(code, expected);
    // Scratch memory comes first in the block: the argument's part lies behind it.
    let scratch = Scratch::new(1000);
    let how = Properties::new(ur_kernel_launch_flags_t::default(), scratch.chain());
    cuda.write(to, &[0_u32; 256]);
    cuda.write(at, &[3_u32; 256]);
    let arguments = [pointer(0, at), pointer(1, to), local(2, 256)];
    cuda.done(cuda.launch_as(reduce, &how, &[256], &[64], &arguments));
    assert_eq!(cuda.read::<u32, 4>(to), [192; 4]);
    let huge = Scratch::new(1 << 30);
    let how = Properties::new(ur_kernel_launch_flags_t::default(), huge.chain());
    let code = cuda.launch_as(reduce, &how, &[256], &[64], &arguments).unwrap_err();
    assert_eq!(code, R::ERROR_OUT_OF_RESOURCES);
    cuda.free(at);
    cuda.free(to);
    cuda.release(place);
    cuda.release(reduce);
}

#[test]
fn a_kernel_and_its_program_may_go_while_it_runs() {
    let Some(cuda) = Cuda::new() else { return };
    let (at, count) = (cuda.device_memory(4 << 10), 1_u32);
    for _ in 0..8 {
        let add = cuda.kernel_of(PTX, c"add");
        cuda.write(at, &[0_u32; 16]);
        let arguments = [pointer(0, at), value(1, &count)];
        let events =
            [(); 16].map(|()| cuda.launch(add, None, &[1 << 10], None, &arguments, &[]).unwrap());
        cuda.release(add);
        events.into_iter().for_each(|event| cuda.done(Ok(event)));
        assert_eq!(cuda.read::<u32, 16>(at), [16; 16]);
    }
    cuda.free(at);
}

#[test]
fn how_a_kernel_is_to_run_may_be_said_in_the_right_form() {
    use ur_kernel_exec_info_t as I;
    let Some(cuda) = Cuda::new() else { return };
    let fill = cuda.kernel_of(PTX, c"fill");
    let tell = |name, size, value: *const c_void| {
        call!(kernel.set_exec_info(fill, name, size, null(), value))
    };
    let (yes, pointers) = (1_u8, [fill.0; 2]);
    assert_eq!(tell(I::USM_INDIRECT_ACCESS, 1, (&raw const yes).cast()), R::SUCCESS);
    assert_eq!(tell(I::USM_PTRS, 16, pointers.as_ptr().cast()), R::SUCCESS);
    for config in [ur_kernel_cache_config_t::LARGE_SLM.0, ur_kernel_cache_config_t::LARGE_DATA.0, 0]
    {
        assert_eq!(tell(I::CACHE_CONFIG, 4, (&raw const config).cast()), R::SUCCESS);
    }
    let none = 9_u32;
    assert_eq!(tell(I::CACHE_CONFIG, 4, (&raw const none).cast()), R::ERROR_INVALID_VALUE);
    assert_eq!(tell(I::CACHE_CONFIG, 2, (&raw const none).cast()), R::ERROR_INVALID_SIZE);
    assert_eq!(tell(I::USM_PTRS, 7, pointers.as_ptr().cast()), R::ERROR_INVALID_SIZE);
    cuda.release(fill);
}
