//! Launches among other commands and other threads: order, events and their times, processors of
//! sub-devices, what stays alive as long as a kernel runs, and what is refused.
#![expect(unsafe_code, reason = "plays the C caller")]
mod common;
use common::{code::*, mems::Mems, ur::*};
use std::{
    collections::BTreeSet,
    ffi::c_void,
    ptr::{null, null_mut},
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    thread,
};
use ur_result_t as R;

#[track_caller]
fn code<T: std::fmt::Debug>(outcome: Outcome<T>) -> R {
    outcome.expect_err("a refusal").code
}
fn of<T>(values: &mut [T]) -> *const c_void {
    values.as_mut_ptr().cast_const().cast()
}
unsafe extern "C" fn nothing(_args: *const *mut c_void, _at: *const State) {}
/// A kernel that does nothing, and its program.
fn idle(codes: &Codes) -> (ur_program_handle_t, ur_kernel_handle_t) {
    let program = codes.table(&[pair(c"nothing", nothing), END]).unwrap();
    codes.build(program).unwrap();
    (program, codes.kernel(program, "nothing").unwrap())
}
/// Mappings of loaded code.
fn loaded() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains("causeway-code")).count()
}

#[test]
fn ranges_that_cannot_be_run_are_refused_with_the_documented_code() {
    let codes = Codes::new();
    let (program, kernel) = idle(&codes);
    type Case<'a> = (Option<&'a [usize]>, &'a [usize], Option<&'a [usize]>, R);
    const MANY: usize = usize::MAX;
    let cases: [Case<'_>; 14] = [
        (None, &[], None, R::ERROR_INVALID_WORK_DIMENSION),
        (None, &[1, 1, 1, 1], None, R::ERROR_INVALID_WORK_DIMENSION),
        (None, &[0], None, R::ERROR_INVALID_WORK_DIMENSION),
        (None, &[4, 0, 4], None, R::ERROR_INVALID_WORK_DIMENSION),
        (None, &[4], Some(&[0]), R::ERROR_INVALID_WORK_GROUP_SIZE),
        (None, &[4, 4], Some(&[4, 0]), R::ERROR_INVALID_WORK_GROUP_SIZE),
        (None, &[10], Some(&[3]), R::ERROR_INVALID_WORK_GROUP_SIZE),
        (None, &[4], Some(&[8]), R::ERROR_INVALID_WORK_GROUP_SIZE),
        (None, &[8, 9, 8], Some(&[8, 2, 8]), R::ERROR_INVALID_WORK_GROUP_SIZE),
        (None, &[1 << 30], Some(&[1 << 30]), R::ERROR_INVALID_WORK_GROUP_SIZE),
        (
            None,
            &[1 << 20, 1 << 20, 1 << 23],
            Some(&[1 << 20, 1 << 20, 1 << 23]),
            R::ERROR_INVALID_WORK_GROUP_SIZE,
        ),
        (None, &[1 << 30, 1 << 30, 1 << 30], None, R::ERROR_INVALID_VALUE),
        (None, &[MANY, 2], Some(&[1, 1]), R::ERROR_INVALID_VALUE),
        (Some(&[MANY]), &[2], None, R::ERROR_INVALID_VALUE),
    ];
    for (offset, global, local, expected) in cases {
        let range = Items { offset, global, local };
        let refused = codes.launch_on(codes.queue, kernel, range, &[], &[]).expect_err("refused");
        assert_eq!(refused.code, expected, "{range:?}: {}", refused.sentence);
        assert!(refused.sentence.len() > 20, "{range:?}: {}", refused.sentence);
    }
    codes.release(kernel);
    codes.release_program(program);
}
#[test]
fn arguments_that_are_not_one_for_each_index_or_are_none_are_refused() {
    let codes = Codes::new();
    let (program, kernel) = idle(&codes);
    let word = 5_u32;
    let mut unknown = value(0, &word);
    unknown.r#type = ur_exp_kernel_arg_type_t(77);
    let mut empty = value(0, &word);
    empty.size = 0;
    let mut huge = value(0, &word);
    huge.size = usize::MAX;
    let mut nowhere = value(0, &word);
    nowhere.value.value = null();
    let (wrong, other) = (ur_mem_handle_t(kernel.0), ur_sampler_handle_t(kernel.0));
    let cases: [(&[ur_exp_kernel_arg_properties_t], R); 11] = [
        (&[value(0, &word), value(0, &word)], R::ERROR_INVALID_KERNEL_ARGS),
        (&[value(0, &word), value(2, &word)], R::ERROR_INVALID_KERNEL_ARGS),
        (&[value(1, &word)], R::ERROR_INVALID_KERNEL_ARGS),
        (&[value(u32::MAX, &word)], R::ERROR_INVALID_KERNEL_ARGS),
        (&[unknown], R::ERROR_INVALID_ENUMERATION),
        (&[empty], R::ERROR_INVALID_KERNEL_ARGUMENT_SIZE),
        (&[huge], R::ERROR_INVALID_KERNEL_ARGUMENT_SIZE),
        (&[nowhere], R::ERROR_INVALID_KERNEL_ARGUMENT_SIZE),
        (&[buffer(0, wrong)], R::ERROR_INVALID_MEM_OBJECT),
        (&[sampler(0, other)], R::ERROR_INVALID_SAMPLER),
        (&[local(0, usize::MAX), local(1, 1)], R::ERROR_OUT_OF_RESOURCES),
    ];
    for (at, (arguments, expected)) in cases.into_iter().enumerate() {
        let refused = codes.launch_on(codes.queue, kernel, items(&[1]), arguments, &[]);
        assert_eq!(code(refused), expected, "case {at}");
    }
    let too_much = [local(0, 200 << 10), local(1, 200 << 10)];
    let refused = codes.launch_on(codes.queue, kernel, items(&[1]), &too_much, &[]);
    assert_eq!(code(refused), R::ERROR_OUT_OF_RESOURCES);
    codes.run(kernel, items(&[1]), &[local(0, 200 << 10)]).unwrap();
    codes.release(kernel);
    codes.release_program(program);
}
#[test]
fn other_contexts_other_properties_and_wrong_handles_are_refused() {
    let (codes, other) = (Codes::new(), Codes::new());
    let (program, kernel) = idle(&codes);
    let on = |queue, kernel| codes.launch_on(queue, kernel, items(&[1]), &[], &[]);
    assert_eq!(code(on(other.queue, kernel)), R::ERROR_INVALID_CONTEXT);
    assert_eq!(code(on(ur_queue_handle_t::NULL, kernel)), R::ERROR_INVALID_NULL_HANDLE);
    let null = ur_kernel_handle_t::NULL;
    assert_eq!(code(on(codes.queue, null)), R::ERROR_INVALID_NULL_HANDLE);
    let no_kernel = ur_kernel_handle_t(program.0);
    assert_eq!(code(on(codes.queue, no_kernel)), R::ERROR_INVALID_KERNEL);
    let not_an_event = [ur_event_handle_t(kernel.0)];
    let refused = codes.launch_on(codes.queue, kernel, items(&[1]), &[], &not_an_event);
    assert_eq!(code(refused), R::ERROR_INVALID_EVENT_WAIT_LIST);
    for (flags, expected) in [
        (ur_kernel_launch_flags_t::COOPERATIVE, R::ERROR_INVALID_OPERATION),
        (ur_kernel_launch_flags_t::default(), R::SUCCESS),
    ] {
        assert_eq!(with_properties(&codes, kernel, flags), expected);
    }
    codes.release(kernel);
    codes.release_program(program);
}
fn with_properties(
    codes: &Codes,
    kernel: ur_kernel_handle_t,
    flags: ur_kernel_launch_flags_t,
) -> R {
    let stype = ur_structure_type_t::KERNEL_LAUNCH_EXT_PROPERTIES;
    let list = ur_kernel_launch_ext_properties_t { stype, pNext: null_mut(), flags };
    call!(enqueue_exp.kernel_launch_with_args_exp(
        codes.queue,
        kernel,
        1,
        null(),
        &1,
        null(),
        0,
        null(),
        &list,
        0,
        null(),
        null_mut()
    ))
}
#[test]
fn execution_options_are_taken_in_their_form_and_refused_in_others() {
    let codes = Codes::new();
    let (program, kernel) = idle(&codes);
    use ur_kernel_exec_info_t as I;
    let room = [0_usize; 4];
    let set = |name, size| {
        let at = room.as_ptr().cast();
        call!(kernel.set_exec_info(kernel, name, size, null(), at))
    };
    let cases = [
        (I::USM_INDIRECT_ACCESS, size_of::<ur_bool_t>(), R::SUCCESS),
        (I::USM_INDIRECT_ACCESS, 3, R::ERROR_INVALID_SIZE),
        (I::USM_PTRS, 32, R::SUCCESS),
        (I::USM_PTRS, 9, R::ERROR_INVALID_SIZE),
        (I::USM_PTRS, 0, R::ERROR_INVALID_SIZE),
        (I::CACHE_CONFIG, 4, R::SUCCESS),
        (I::CACHE_CONFIG, 8, R::ERROR_INVALID_SIZE),
        (I(0x7000), 4, R::ERROR_INVALID_ENUMERATION),
    ];
    for (name, size, expected) in cases {
        assert_eq!(set(name, size), expected, "{name:?}, {size} bytes");
    }
    let answer = call!(kernel.set_exec_info(kernel, I::USM_PTRS, 8, null(), null()));
    assert_eq!(answer, R::ERROR_INVALID_NULL_POINTER);
    codes.release(kernel);
    codes.release_program(program);
}

/// A gate of memory that a kernel waits at: whether it is there, whether it may go, what it left.
#[derive(Default)]
struct Gate([AtomicU32; 3]);
impl Gate {
    fn arrived(&self) {
        common::eventually("the kernel runs", || self.0[0].load(SeqCst) == 1);
    }
    fn open(&self) {
        self.0[1].store(1, SeqCst);
    }
    fn argument(&self) -> ur_exp_kernel_arg_properties_t {
        pointer(0, (&raw const *self).cast())
    }
}

#[test]
fn kernels_and_copies_of_one_queue_run_in_order() {
    let Some(example) = example() else { return };
    let mems = Mems::new();
    let codes = Codes { ur: mems.ur, queue: mems.queue };
    let scaled = codes.kernel_of(example, "scaled");
    let increment = codes.kernel_of(example, "increment");
    let host: Vec<u8> = (0..50_000_i32).flat_map(i32::to_ne_bytes).collect();
    let (a, b) = (mems.holding(&host), mems.holding(&vec![0; host.len()]));
    let mut events = Vec::new();
    for _ in 0..20 {
        // b = a * 3 + 1, b += 2, a = b
        let arguments = [buffer(0, b), buffer(1, a), value(2, &1_i32)];
        events.push(codes.launch_on(codes.queue, scaled, items(&[50_000]), &arguments, &[]));
        let arguments = [buffer(0, b), value(1, &2_i32)];
        events.push(codes.launch_on(codes.queue, increment, items(&[50_000]), &arguments, &[]));
        mems.copy([b, a], [0, 0], host.len()).unwrap();
    }
    let mut got = vec![0; host.len()];
    mems.read(a, 0, &mut got).unwrap();
    let step = |n: i32| n.wrapping_mul(3).wrapping_add(3);
    let expected = (0..50_000).map(|n| (0..20).fold(n, |n, _| step(n)));
    assert_eq!(got, expected.flat_map(i32::to_ne_bytes).collect::<Vec<u8>>());
    events.into_iter().for_each(|event| codes.wait(event.unwrap()));
    mems.release_all([a, b]);
    codes.release(scaled);
    codes.release(increment);
}
#[test]
fn a_launch_waits_for_its_events_and_its_times_are_in_order() {
    let Some(example) = example() else { return };
    let codes = Codes::new();
    let flags = ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE;
    let queue = codes.ur.new_queue(flags | ur_queue_flags_t::PROFILING_ENABLE);
    let (gate, increment) =
        (codes.kernel_of(example, "gate"), codes.kernel_of(example, "increment"));
    let closed = Gate::default();
    let first = codes.launch_on(queue, gate, items(&[1]), &[closed.argument()], &[]).unwrap();
    closed.arrived();
    let mut numbers = vec![0_i32; 10_000];
    let arguments = [pointer(0, of(&mut numbers)), value(1, &4_i32)];
    let second = codes.launch_on(queue, increment, items(&[10_000]), &arguments, &[first]).unwrap();
    let status = |event| -> u32 {
        let name = ur_event_info_t::COMMAND_EXECUTION_STATUS;
        codes.ur.value(|size, to, ret| call!(event.get_info(event, name, size, to, ret))).unwrap()
    };
    assert_ne!(status(second), ur_event_status_t::COMPLETE.0);
    closed.open();
    assert_eq!(call!(event.wait(1, &second)), R::SUCCESS);
    assert_eq!(status(first), ur_event_status_t::COMPLETE.0);
    assert!(numbers.iter().all(|&n| n == 4));
    let name = ur_event_info_t::COMMAND_TYPE;
    let kind: u32 =
        codes.ur.value(|size, to, ret| call!(event.get_info(second, name, size, to, ret))).unwrap();
    assert_eq!(kind, ur_command_t::KERNEL_LAUNCH.0);
    use ur_profiling_info_t as P;
    let time = |event, name| -> u64 {
        codes
            .ur
            .value(|size, to, ret| call!(event.get_profiling_info(event, name, size, to, ret)))
            .unwrap()
    };
    let names = [P::COMMAND_QUEUED, P::COMMAND_SUBMIT, P::COMMAND_START, P::COMMAND_END];
    for event in [first, second] {
        let times = names.map(|name| time(event, name));
        assert!(times.is_sorted() && times[0] > 0 && times[2] < times[3], "{times:?}");
    }
    assert!(time(first, P::COMMAND_END) <= time(second, P::COMMAND_START));
    codes.wait(first);
    codes.wait(second);
    [gate, increment].iter().for_each(|kernel| codes.release(*kernel));
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
}
#[test]
fn sixteen_threads_launch_on_one_queue_and_on_their_own() {
    let Some(example) = example() else { return };
    let codes = Codes::new();
    let increment = Anyones(codes.kernel_of(example, "increment"));
    for own in [false, true] {
        thread::scope(|scope| {
            for seed in 0..16_usize {
                scope.spawn(move || {
                    let flags = ur_queue_flags_t::default();
                    let queue = if own { codes.ur.new_queue(flags) } else { codes.queue };
                    let mut numbers = vec![0_i32; 100 + seed * 997];
                    let to = of(&mut numbers);
                    let range = [numbers.len()];
                    let mut sum = 0;
                    let events: Vec<_> = (0..50_i32)
                        .map(|n| {
                            sum += n;
                            // The value is taken at the call.
                            let arguments = [pointer(0, to), value(1, &n)];
                            let kernel = increment.kernel();
                            codes.launch_on(queue, kernel, items(&range), &arguments, &[]).unwrap()
                        })
                        .collect();
                    events.into_iter().for_each(|event| codes.wait(event));
                    assert!(numbers.iter().all(|&n| n == sum));
                    if own {
                        assert_eq!(call!(queue.release(queue)), R::SUCCESS);
                    }
                });
            }
        });
    }
    codes.release(increment.kernel());
}
#[test]
fn kernels_of_a_sub_device_stay_on_its_processors() {
    let Some(example) = example() else { return };
    let codes = Codes::new();
    let Some(part) = codes.ur.a_part() else {
        return println!("skipped: one processor cannot be split");
    };
    let mut queue = ur_queue_handle_t::NULL;
    let context = codes.ur.context;
    assert_eq!(call!(queue.create(context, part, null(), &mut queue)), R::SUCCESS);
    let kernel = codes.kernel_of(example, "where");
    let before = rustix::thread::sched_getaffinity(None).unwrap();
    let mut seen = BTreeSet::new();
    for _ in 0..10 {
        let mut out = vec![-1_i32; 20_000];
        let arguments = [pointer(0, of(&mut out)), value(1, &200_u32)];
        codes.wait(codes.launch_on(queue, kernel, items(&[20_000]), &arguments, &[]).unwrap());
        seen.extend(out);
    }
    assert_eq!(seen.len(), 1, "one processor: {seen:?}");
    let after = rustix::thread::sched_getaffinity(None).unwrap();
    assert_eq!(before.count(), after.count(), "this thread may run where it could");
    codes.release(kernel);
    assert_eq!(call!(queue.release(queue)), R::SUCCESS);
    assert_eq!(call!(device.release(part)), R::SUCCESS);
}
#[test]
fn what_a_running_kernel_uses_stays_until_it_has_ended_and_its_code_is_unloaded_then() {
    common::alone(|| {
        let Some(example) = example() else { return };
        let mems = Mems::new();
        let codes = Codes { ur: mems.ur, queue: mems.queue };
        let (closed, gate) = (Gate::default(), codes.kernel_of(example, "gate"));
        assert!(loaded() > 0, "its program is released, its code is there");
        let increment = codes.kernel_of(example, "increment");
        let first = codes.launch_on(codes.queue, gate, items(&[1]), &[closed.argument()], &[]);
        closed.arrived();
        let mut numbers = vec![1_i32; 5000];
        let at = of(&mut numbers).cast_mut();
        let mem = mems.buffer(ur_mem_flags_t::USE_HOST_POINTER, 20_000, at).unwrap();
        let arguments = [buffer(0, mem), value(1, &8_i32)];
        let second = codes.launch_on(codes.queue, increment, items(&[5000]), &arguments, &[]);
        mems.release(mem);
        [gate, increment].iter().for_each(|kernel| codes.release(*kernel));
        assert!(loaded() > 0, "it runs");
        closed.open();
        codes.wait(first.unwrap());
        codes.wait(second.unwrap());
        assert_eq!(closed.0[2].load(SeqCst), 7);
        assert!(numbers.iter().all(|&n| n == 9));
        mems.finish();
        common::eventually("the code is unloaded", || loaded() == 0);
    });
}
#[test]
fn objects_that_are_loaded_one_after_the_other_are_told_apart() {
    let source = |n: i32| format!("void answer(int *const *args, void *at) {{ *args[0] = {n}; }}");
    let codes = Codes::new();
    let mut kernels = Vec::new();
    for n in 1..=5 {
        let Some(object) = compiled(&source(n)) else { return };
        kernels.push((n, codes.kernel_of(&object, "answer")));
    }
    for (n, kernel) in kernels {
        let mut out = [0_i32];
        codes.run(kernel, items(&[1]), &[pointer(0, of(&mut out))]).unwrap();
        assert_eq!(out, [n]);
        codes.release(kernel);
    }
}
#[test]
fn independent_launches_overlap() {
    let Some(example) = example() else { return };
    let codes = Codes::new();
    let gate = codes.kernel_of(example, "gate");
    let flags = ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE;
    let (one, two) = (codes.ur.new_queue(flags), codes.ur.new_queue(ur_queue_flags_t::default()));
    let gates = [const { Gate([const { AtomicU32::new(0) }; 3]) }; 3];
    let launch = |queue, of: &Gate| {
        codes.launch_on(queue, gate, items(&[1]), &[of.argument()], &[]).unwrap()
    };
    let events = [launch(one, &gates[0]), launch(one, &gates[1]), launch(two, &gates[2])];
    gates.iter().for_each(Gate::arrived);
    gates.iter().for_each(Gate::open);
    events.into_iter().for_each(|event| codes.wait(event));
    codes.release(gate);
    [one, two].iter().for_each(|queue| assert_eq!(call!(queue.release(*queue)), R::SUCCESS));
}
#[test]
fn group_sizes_are_not_suggested_for_what_cannot_be_launched() {
    let (codes, other) = (Codes::new(), Codes::new());
    let (program, kernel) = idle(&codes);
    let mut local = [0_usize; 3];
    let local = local.as_mut_ptr();
    let zero = [0_usize; 4];
    let ask = |kernel, queue, dims, global: *const usize, local| {
        let offset = zero.as_ptr();
        call!(kernel.get_suggested_local_work_size(kernel, queue, dims, offset, global, local))
    };
    let some = [8_usize, 8, 8, 8];
    let some = some.as_ptr();
    let (none, no_queue) = (ur_kernel_handle_t::NULL, ur_queue_handle_t::NULL);
    assert_eq!(ask(none, codes.queue, 1, some, local), R::ERROR_INVALID_NULL_HANDLE);
    assert_eq!(ask(kernel, no_queue, 1, some, local), R::ERROR_INVALID_NULL_HANDLE);
    assert_eq!(ask(kernel, codes.queue, 1, null(), local), R::ERROR_INVALID_NULL_POINTER);
    assert_eq!(ask(kernel, codes.queue, 1, some, null_mut()), R::ERROR_INVALID_NULL_POINTER);
    assert_eq!(ask(kernel, codes.queue, 0, some, local), R::ERROR_INVALID_WORK_DIMENSION);
    assert_eq!(ask(kernel, codes.queue, 4, some, local), R::ERROR_INVALID_WORK_DIMENSION);
    assert_eq!(ask(kernel, codes.queue, 1, &0, local), R::SUCCESS, "any size would do");
    assert_eq!(ask(kernel, other.queue, 1, some, local), R::ERROR_INVALID_CONTEXT);
    assert_eq!(ask(kernel, codes.queue, 3, some, local), R::SUCCESS);
    codes.release(kernel);
    codes.release_program(program);
}
