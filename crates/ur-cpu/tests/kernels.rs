//! What kernels get and do, as a C program sees it: ids, arguments of every kind, local memory,
//! functions of a table and of a shared object, all processors, and what a kernel tells of itself.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
mod common;
use common::{code::*, mems::Mems, ur::*};
use std::{
    collections::BTreeSet,
    ffi::c_void,
    ptr::{null, null_mut},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};
use ur_result_t as R;

#[track_caller]
fn code<T: std::fmt::Debug>(outcome: Outcome<T>) -> R {
    outcome.expect_err("a refusal").code
}
fn of<T>(values: &mut [T]) -> *const c_void {
    values.as_mut_ptr().cast_const().cast()
}

unsafe extern "C" fn put_linear_id(args: *const *mut c_void, at: *const State) {
    let (to, at) = unsafe { (*args, &*at) };
    unsafe { to.cast::<usize>().add(at.global_id[0]).write(at.global_id[0] * 2 + 1) };
}
static CALLED: AtomicU64 = AtomicU64::new(0);
unsafe extern "C" fn count(_args: *const *mut c_void, _at: *const State) {
    CALLED.fetch_add(1, Relaxed);
}

#[test]
fn functions_of_this_process_run_for_each_of_a_million_items() {
    let codes = Codes::new();
    let pairs = [pair(c"put", put_linear_id), pair(c"count", count), END];
    let program = codes.table(&pairs).unwrap();
    codes.build(program).unwrap();
    let kernel = codes.kernel(program, "put").unwrap();
    let mut out = vec![0_usize; 1_000_000];
    codes.run(kernel, items(&[out.len()]), &[pointer(0, of(&mut out))]).unwrap();
    assert!(out.iter().enumerate().all(|(i, &n)| n == i * 2 + 1));
    let counting = codes.kernel(program, "count").unwrap();
    codes.run(counting, items(&[1000, 10, 3]), &[]).unwrap();
    assert_eq!(CALLED.load(Relaxed), 30_000);
    codes.release(kernel);
    codes.release(counting);
    codes.release_program(program);
}
#[test]
fn every_field_of_an_items_record_is_right() {
    let Some(example) = example() else { return };
    let codes = Codes::new();
    let kernel = codes.kernel_of(example, "describe");
    type Case<'a> = (&'a [usize], Option<&'a [usize]>, &'a [usize]);
    let cases: [Case<'_>; 5] = [
        (&[24], None, &[6]),
        (&[24], Some(&[5]), &[1]),
        (&[8, 6], Some(&[100, 7]), &[2, 3]),
        (&[4, 6, 10], Some(&[1, 2, 3]), &[2, 3, 5]),
        (&[4, 6, 10], None, &[4, 6, 10]),
    ];
    for (global, offset, local) in cases {
        let items = Items { offset, global, local: Some(local) };
        let three = |given: &[usize], rest| [0, 1, 2].map(|d| *given.get(d).unwrap_or(&rest));
        let (n, l, o) = (three(global, 1), three(local, 1), three(offset.unwrap_or(&[]), 0));
        let mut out = vec![State::default(); n.iter().product()];
        codes.run(kernel, items, &[pointer(0, of(&mut out))]).unwrap();
        for (i, got) in out.iter().enumerate() {
            let place = [i % n[0], i / n[0] % n[1], i / n[0] / n[1]];
            let local_id = [0, 1, 2].map(|d| place[d] % l[d]);
            let expected = State {
                global_id: [0, 1, 2].map(|d| place[d] + o[d]),
                global_range: n,
                group_size: l,
                group_id: [0, 1, 2].map(|d| place[d] / l[d]),
                local_id,
                groups: [0, 1, 2].map(|d| n[d] / l[d]),
                global_offset: o,
                sub_groups: l.iter().product::<usize>() as u32,
                sub_group_id: (local_id[0] + l[0] * (local_id[1] + l[1] * local_id[2])) as u32,
                sub_group_local_id: 0,
                sub_group_size: 1,
            };
            assert_eq!(*got, expected, "item {i} of {items:?}");
        }
    }
    codes.release(kernel);
}
#[test]
fn group_sizes_that_are_suggested_divide_the_range() {
    let Some(example) = example() else { return };
    let codes = Codes::new();
    let kernel = codes.kernel_of(example, "describe");
    let ranges: [&[usize]; 8] =
        [&[1], &[7], &[1009], &[1 << 20], &[1_000_003], &[30, 77], &[64, 64, 64], &[1, 1, 13]];
    for global in ranges {
        let mut local = vec![0_usize; global.len()];
        let (n, at) = (global.len() as u32, global.as_ptr());
        let zero = [0_usize; 3];
        let answer = call!(kernel.get_suggested_local_work_size(
            kernel,
            codes.queue,
            n,
            zero.as_ptr(),
            at,
            local.as_mut_ptr()
        ));
        assert_eq!(answer, R::SUCCESS);
        let mut again = vec![0_usize; global.len()];
        let arguments = [pointer(0, null())];
        let answer = call!(kernel.get_suggested_local_work_size_with_args(
            kernel,
            codes.queue,
            n,
            zero.as_ptr(),
            at,
            1,
            arguments.as_ptr(),
            again.as_mut_ptr()
        ));
        assert_eq!((answer, &again), (R::SUCCESS, &local));
        let info = ur_device_info_t::MAX_WORK_GROUP_SIZE;
        let device = codes.ur.device;
        let most: usize = codes
            .ur
            .value(|size, to, ret| call!(device.get_info(device, info, size, to, ret)))
            .unwrap();
        assert!(local.iter().product::<usize>() <= most, "{local:?}");
        assert!(global.iter().zip(&local).all(|(g, l)| *l > 0 && g % l == 0), "{local:?}");
        if global.iter().product::<usize>() > 1 << 18 {
            continue;
        }
        let mut out = vec![State::default(); global.iter().product()];
        codes.run(kernel, items(global), &[pointer(0, of(&mut out))]).unwrap();
        for state in out {
            assert_eq!(state.group_size[..global.len()], local[..], "launches use the same");
        }
    }
    codes.release(kernel);
}
#[test]
fn local_memory_is_a_groups_own() {
    let Some(example) = example() else { return };
    let codes = Codes::new();
    let kernel = codes.kernel_of(example, "group_sum");
    let mut numbers: Vec<i32> = (0..100_000).collect();
    let mut sums = vec![0_i64; 1000];
    let arguments = [pointer(0, of(&mut sums)), pointer(1, of(&mut numbers)), local(2, 8)];
    let range = Items { offset: None, global: &[100_000], local: Some(&[100]) };
    codes.run(kernel, range, &arguments).unwrap();
    for (group, sum) in sums.iter().enumerate() {
        let expected: i64 = numbers[group * 100..][..100].iter().map(|&n| i64::from(n)).sum();
        assert_eq!(*sum, expected, "group {group}");
    }
    codes.release(kernel);
}
#[test]
fn values_samplers_and_pieces_of_local_memory_arrive_aligned_and_apart() {
    let Some(example) = example() else { return };
    let codes = Codes::new();
    #[repr(C)]
    struct Line(f32, f64, [u8; 16]);
    let kernel = codes.kernel_of(example, "line");
    let mut out = [0_f64; 10];
    let mut by = Line(2.0, 0.5, [0; 16]);
    by.2[15] = 100;
    codes.run(kernel, items(&[10]), &[pointer(0, of(&mut out)), value(1, &by)]).unwrap();
    assert_eq!(out[..3], [100.5, 102.5, 104.5]);
    codes.release(kernel);

    let desc = ur_sampler_desc_t {
        stype: ur_structure_type_t::SAMPLER_DESC,
        pNext: null_mut(),
        normalizedCoords: true,
        addressingMode: ur_sampler_addressing_mode_t::REPEAT,
        filterMode: ur_sampler_filter_mode_t::LINEAR,
    };
    let mut handle = ur_sampler_handle_t::NULL;
    let context = codes.ur.context;
    assert_eq!(call!(sampler.create(context, &desc, &mut handle)), R::SUCCESS);
    let kernel = codes.kernel_of(example, "look");
    let mut out = [0_u64; 4];
    let arguments =
        [local(3, 1), pointer(0, of(&mut out)), sampler(1, handle), local(4, 100), local(2, 129)];
    codes.run(kernel, items(&[1]), &arguments).unwrap();
    let mode = u64::from(ur_sampler_addressing_mode_t::REPEAT.0);
    assert_eq!(out[0], 1 | 2 | mode << 2);
    let mut places = [(out[1], 129), (out[2], 1), (out[3], 100)];
    places.sort_unstable();
    assert!(places.iter().all(|(at, _)| at % 128 == 0), "{places:?}");
    assert!(places.windows(2).all(|two| two[0].0 + two[0].1 <= two[1].0), "{places:?}");
    codes.release(kernel);
    assert_eq!(call!(sampler.release(handle)), R::SUCCESS);
}
#[test]
fn buffers_and_parts_of_them_arrive_as_the_address_of_their_first_byte() {
    let Some(example) = example() else { return };
    let mems = Mems::new();
    let codes = Codes { ur: mems.ur, queue: mems.queue };
    let kernel = codes.kernel_of(example, "scaled");
    let bytes: Vec<u8> = (0..1000_i32).flat_map(i32::to_ne_bytes).collect();
    let (a, out) = (mems.holding(&bytes), mems.holding(&bytes));
    let half = mems.part(out, ur_mem_flags_t::default(), 2048, 1952).unwrap();
    let arguments = [buffer(0, half), buffer(1, a), value(2, &-5_i32)];
    codes.run(kernel, items(&[488]), &arguments).unwrap();
    let mut got = vec![0; 4000];
    mems.read(out, 0, &mut got).unwrap();
    let expected = |i: i32| if i < 512 { i } else { (i - 512) * 3 - 5 };
    let expected: Vec<u8> = (0..1000).flat_map(|i| expected(i).to_ne_bytes()).collect();
    assert_eq!(got, expected);
    mems.release_all([half, out, a]);
    codes.release(kernel);
}
#[test]
fn usm_of_every_kind_is_the_kernels_as_well() {
    let Some(example) = example() else { return };
    let codes = Codes::new();
    let kernel = codes.kernel_of(example, "increment");
    for usm in [Usm::Device, Usm::Host, Usm::Shared] {
        let at = codes.ur.alloc(usm, 4000).unwrap();
        unsafe { at.write_bytes(0, 4000) };
        for _ in 0..3 {
            codes.run(kernel, items(&[1000]), &[pointer(0, at), value(1, &7_i32)]).unwrap();
        }
        let got = unsafe { std::slice::from_raw_parts(at.cast::<i32>(), 1000) };
        assert!(got.iter().all(|&n| n == 21));
        codes.ur.free(at).unwrap();
    }
    codes.release(kernel);
}
#[test]
fn all_processors_take_part_in_a_large_launch() {
    let Some(example) = example() else { return };
    let codes = Codes::new();
    let kernel = codes.kernel_of(example, "where");
    let own = rustix::thread::sched_getaffinity(None).unwrap();
    let cores = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| own.is_set(cpu)).count();
    let mut seen = BTreeSet::new();
    common::eventually("every processor takes part", || {
        let mut out = vec![-1_i32; 100_000];
        let arguments = [pointer(0, of(&mut out)), value(1, &200_u32)];
        codes.run(kernel, items(&[out.len()]), &arguments).unwrap();
        assert!(!out.contains(&-1), "every item ran");
        seen.extend(out);
        seen.len() >= cores.min(2)
    });
    codes.release(kernel);
}
#[test]
fn a_kernel_tells_its_name_program_context_and_references() {
    let codes = Codes::new();
    let program = codes.table(&[pair(c"put", put_linear_id), END]).unwrap();
    codes.build(program).unwrap();
    let kernel = codes.kernel(program, "put").unwrap();
    use ur_kernel_info_t as I;
    let text =
        |name| codes.text(|size, to, ret| call!(kernel.get_info(kernel, name, size, to, ret)));
    let number = |name| -> Outcome<u32> {
        codes.ur.value(|size, to, ret| call!(kernel.get_info(kernel, name, size, to, ret)))
    };
    let handle = |name| -> Outcome<usize> {
        codes.ur.value(|size, to, ret| call!(kernel.get_info(kernel, name, size, to, ret)))
    };
    assert_eq!(text(I::FUNCTION_NAME), "put");
    assert_eq!(text(I::ATTRIBUTES), "");
    assert_eq!(handle(I::CONTEXT), Ok(codes.ur.context.0.addr()));
    assert_eq!(handle(I::PROGRAM), Ok(program.0.addr()));
    assert_eq!(number(I::REFERENCE_COUNT), Ok(1));
    assert_eq!(call!(kernel.retain(kernel)), R::SUCCESS);
    assert_eq!(number(I::REFERENCE_COUNT), Ok(2));
    codes.release(kernel);
    for unknown in [I::NUM_ARGS, I::NUM_REGS, I::SPILL_MEM_SIZE] {
        assert_eq!(code(number(unknown)), R::ERROR_UNSUPPORTED_ENUMERATION, "{unknown:?}");
    }
    assert_eq!(code(number(I(0x7000))), R::ERROR_INVALID_ENUMERATION);
    let mut small = [0_u8; 2];
    let at = small.as_mut_ptr().cast();
    let answer = call!(kernel.get_info(kernel, I::FUNCTION_NAME, 2, at, null_mut()));
    assert_eq!(answer, R::ERROR_INVALID_SIZE);

    let mut native = 0;
    assert_eq!(call!(kernel.get_native_handle(kernel, &mut native)), R::SUCCESS);
    let (mut same, context) = (ur_kernel_handle_t::NULL, codes.ur.context);
    let none = null();
    let answer = call!(kernel.create_with_native_handle(native, context, program, none, &mut same));
    assert_eq!((answer, same.0), (R::SUCCESS, kernel.0));
    codes.release(same);
    let other = codes.table(&[pair(c"put", put_linear_id), END]).unwrap();
    let answer = call!(kernel.create_with_native_handle(native, context, other, none, &mut same));
    assert_eq!(answer, R::ERROR_INVALID_PROGRAM);
    codes.release(kernel);
    assert_eq!(code(number(I::REFERENCE_COUNT)), R::ERROR_INVALID_KERNEL);
    codes.release_program(other);
    codes.release_program(program);
}
#[test]
fn what_a_kernel_tells_of_groups_is_what_launches_take() {
    let codes = Codes::new();
    let program = codes.table(&[pair(c"put", put_linear_id), END]).unwrap();
    codes.build(program).unwrap();
    let (kernel, device) = (codes.kernel(program, "put").unwrap(), codes.ur.device);
    use ur_kernel_group_info_t as G;
    use ur_kernel_sub_group_info_t as S;
    let size = |name| -> Outcome<usize> {
        codes.ur.value(|size, to, ret| {
            call!(kernel.get_group_info(kernel, device, name, size, to, ret))
        })
    };
    let three = |name| -> Outcome<[usize; 3]> {
        codes.ur.value(|size, to, ret| {
            call!(kernel.get_group_info(kernel, device, name, size, to, ret))
        })
    };
    let sub = |name| -> Outcome<u32> {
        codes.ur.value(|size, to, ret| {
            call!(kernel.get_sub_group_info(kernel, device, name, size, to, ret))
        })
    };
    let most = size(G::WORK_GROUP_SIZE).unwrap();
    assert_eq!(size(G::LOCAL_MEM_SIZE), Ok(0));
    assert_eq!(size(G::PRIVATE_MEM_SIZE), Ok(0));
    assert_eq!(size(G::PREFERRED_WORK_GROUP_SIZE_MULTIPLE), Ok(1));
    assert_eq!(size(G::COMPILE_MAX_LINEAR_WORK_GROUP_SIZE), Ok(0));
    assert_eq!(three(G::COMPILE_WORK_GROUP_SIZE), Ok([0; 3]));
    assert_eq!(three(G::COMPILE_MAX_WORK_GROUP_SIZE), Ok([0; 3]));
    assert_eq!(three(G::GLOBAL_WORK_SIZE), Ok([usize::MAX; 3]), "there is no limit");
    assert_eq!(sub(S::MAX_SUB_GROUP_SIZE), Ok(1));
    assert_eq!(sub(S::MAX_NUM_SUB_GROUPS), Ok(most as u32));
    assert_eq!(sub(S::COMPILE_NUM_SUB_GROUPS), Ok(0));
    assert_eq!(sub(S::SUB_GROUP_SIZE_INTEL), Ok(0));
    let mut out = vec![0_usize; most];
    let range = Items { offset: None, global: &[most], local: Some(&[most]) };
    codes.run(kernel, range, &[pointer(0, of(&mut out))]).unwrap();
    assert_eq!(out[most - 1], most * 2 - 1);
    let mut count = 0;
    let answer =
        call!(kernel.suggest_max_cooperative_group_count(kernel, device, 1, &most, 0, &mut count));
    assert_eq!(answer, R::ERROR_UNSUPPORTED_FEATURE);
    codes.release(kernel);
    codes.release_program(program);
}
