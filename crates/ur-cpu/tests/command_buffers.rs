//! Command buffers as a C program records, changes and runs them: each kind of command, the order of
//! commands and of executions, events, and all that is refused.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
mod common;
use common::{code::*, commands::*, mems, mems::Mems, ur::*};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::atomic::{AtomicU64, Ordering::*},
    thread,
    time::Instant,
};
use ur_result_t as R;

#[track_caller]
fn code<T: std::fmt::Debug>(outcome: Outcome<T>) -> R {
    outcome.expect_err("a refusal").code
}
/// `*args[0] = *args[1]`, plainly.
unsafe extern "C" fn put(args: *const *mut c_void, _: *const State) {
    unsafe { (*args).cast::<u64>().write((*args.add(1)).cast::<u64>().read()) };
}
/// `*args[0] += *args[1]`, not atomically: runs that overlap are found out.
unsafe extern "C" fn add(args: *const *mut c_void, _: *const State) {
    unsafe {
        let to = (*args).cast::<u64>();
        let old = to.read_volatile();
        thread::yield_now();
        to.write_volatile(old + (*args.add(1)).cast::<u64>().read());
    }
}
/// Counts items; the argument counts.
unsafe extern "C" fn count(args: *const *mut c_void, _: *const State) {
    unsafe { &*(*args).cast::<AtomicU64>() }.fetch_add(1, Relaxed);
}
/// Waits until as many as `*args[1]` are here.
unsafe extern "C" fn meet(args: *const *mut c_void, _: *const State) {
    let here = unsafe { &*(*args).cast::<AtomicU64>() };
    let all = unsafe { (*args.add(1)).cast::<u64>().read() };
    here.fetch_add(1, AcqRel);
    let start = Instant::now();
    while here.load(Acquire) < all && start.elapsed() < common::PATIENCE {
        thread::yield_now();
    }
}
fn kernels(commands: &Commands) -> [ur_kernel_handle_t; 4] {
    let pairs =
        [pair(c"put", put), pair(c"add", add), pair(c"count", count), pair(c"meet", meet), END];
    let program = commands.codes.table(&pairs).unwrap();
    commands.codes.build(program).unwrap();
    let kernels =
        ["put", "add", "count", "meet"].map(|name| commands.codes.kernel(program, name).unwrap());
    commands.codes.release_program(program);
    kernels
}
fn at<T>(value: &T) -> *const c_void {
    (&raw const *value).cast()
}

#[test]
fn usm_commands_are_done_at_each_execution_and_not_before() {
    let c = Commands::new();
    let (buffer, mut to, mut from) = (c.loose(), [0_u8; 64], [7_u8; 64]);
    let (into, source) = (&raw mut to, &raw mut from);
    let one = c.copy(buffer, (into, source, 64), after(&[])).unwrap();
    let two = c.fill(buffer, (into.cast::<u8>(), &[1_u8, 2, 3], 33), after(&[one.point])).unwrap();
    assert_ne!(one.point, two.point);
    let (memory, none) = (into.cast::<c_void>().cast_const(), null_mut());
    let (p, n) = (ur_usm_migration_flags_t::default(), null_mut());
    let advice = ur_usm_advice_flags_t::default();
    let points = [two.point];
    for end in 0..2 {
        let code = match end {
            0 => call!(command_buffer_exp.append_usm_prefetch_exp(
                buffer,
                memory,
                64,
                p,
                1,
                points.as_ptr(),
                0,
                null(),
                none,
                null_mut(),
                n
            )),
            _ => call!(command_buffer_exp.append_usm_advise_exp(
                buffer,
                memory,
                64,
                advice,
                0,
                null(),
                0,
                null(),
                null_mut(),
                null_mut(),
                n
            )),
        };
        assert_eq!(code, R::SUCCESS);
    }
    c.finalize(buffer).unwrap();
    assert_eq!(unsafe { into.read_volatile() }, [0; 64]);
    for value in [7, 9] {
        unsafe { source.write_volatile([value; 64]) };
        c.run(buffer).unwrap();
        let now = unsafe { into.read_volatile() };
        assert!(now[..33].chunks(3).all(|three| three == [1, 2, 3]) && now[33..] == [value; 31]);
    }
    c.release(buffer);
}
#[test]
fn buffer_commands_are_recorded_and_keep_their_memory() {
    let (c, m) = (Commands::new(), Mems::new());
    let c = Commands { ur: m.ur, queue: m.queue, codes: c.codes };
    let [a, b] = [mems::counting(256), vec![0; 256]].map(|bytes| m.holding(&bytes));
    let (buffer, mut host, mut from) =
        (c.create([false, true, false]).unwrap(), [0_u8; 256], [5_u8; 16]);
    let (host, from) = (&raw mut host, &raw mut from);
    let (zero, region) = (mems::at([0; 3]), mems::of([4, 4, 2]));
    let none = after(&[]);
    let entries: [&dyn Fn() -> Outcome<Appended>; 7] = [
        &|| {
            c.append(none, |(n, p), (k, e), (t, u, v)| {
                call!(
                    command_buffer_exp
                        .append_mem_buffer_copy_exp(buffer, a, b, 0, 128, 128, n, p, k, e, t, u, v)
                )
            })
        },
        &|| {
            c.append(none, |(n, p), (k, e), (t, u, v)| {
                call!(command_buffer_exp.append_mem_buffer_write_exp(
                    buffer,
                    b,
                    8,
                    16,
                    from.cast(),
                    n,
                    p,
                    k,
                    e,
                    t,
                    u,
                    v
                ))
            })
        },
        &|| {
            c.append(none, |(n, p), (k, e), (t, u, v)| {
                let pattern = [3_u8, 4];
                call!(command_buffer_exp.append_mem_buffer_fill_exp(
                    buffer,
                    b,
                    pattern.as_ptr().cast(),
                    2,
                    64,
                    32,
                    n,
                    p,
                    k,
                    e,
                    t,
                    u,
                    v
                ))
            })
        },
        &|| {
            c.append(none, |(n, p), (k, e), (t, u, v)| {
                call!(command_buffer_exp.append_mem_buffer_copy_rect_exp(
                    buffer,
                    a,
                    b,
                    zero,
                    mems::at([100, 0, 0]),
                    region,
                    4,
                    16,
                    4,
                    16,
                    n,
                    p,
                    k,
                    e,
                    t,
                    u,
                    v
                ))
            })
        },
        &|| {
            c.append(none, |(n, p), (k, e), (t, u, v)| {
                call!(command_buffer_exp.append_mem_buffer_write_rect_exp(
                    buffer,
                    b,
                    mems::at([32, 0, 0]),
                    zero,
                    mems::of([4, 2, 1]),
                    4,
                    8,
                    8,
                    16,
                    from.cast(),
                    n,
                    p,
                    k,
                    e,
                    t,
                    u,
                    v
                ))
            })
        },
        &|| {
            c.append(none, |(n, p), (k, e), (t, u, v)| {
                call!(command_buffer_exp.append_mem_buffer_read_exp(
                    buffer,
                    b,
                    0,
                    250,
                    host.cast(),
                    n,
                    p,
                    k,
                    e,
                    t,
                    u,
                    v
                ))
            })
        },
        &|| {
            c.append(none, |(n, p), (k, e), (t, u, v)| {
                call!(command_buffer_exp.append_mem_buffer_read_rect_exp(
                    buffer,
                    b,
                    mems::at([8, 0, 0]),
                    mems::at([250, 0, 0]),
                    mems::of([6, 1, 1]),
                    6,
                    6,
                    6,
                    6,
                    host.cast(),
                    n,
                    p,
                    k,
                    e,
                    t,
                    u,
                    v
                ))
            })
        },
    ];
    entries.iter().for_each(|append| assert!(append().unwrap().point > 0));
    c.finalize(buffer).unwrap();
    m.release_all([a, b]); // the recording keeps both
    let event = c.enqueue_on(m.queue, buffer, &[]).unwrap();
    c.codes.wait(event);
    let source = mems::counting(256);
    let mut expected = vec![0_u8; 256];
    expected[128..].copy_from_slice(&source[..128]);
    expected[8..24].fill(5);
    expected[64..96].iter_mut().enumerate().for_each(|(i, byte)| *byte = [3, 4][i % 2]);
    expected[100..132].copy_from_slice(&source[..32]);
    expected[32..40].fill(5);
    let last = expected[8..14].to_vec();
    expected[250..].copy_from_slice(&last);
    assert_eq!(unsafe { host.read_volatile() }.to_vec(), expected);
    c.release(buffer);
}
#[test]
fn commands_follow_their_sync_points_and_in_an_in_order_buffer_each_other() {
    let c = Commands::new();
    let bytes = 1 << 20;
    let mut rows: Vec<Vec<u8>> = (0..6).map(|i| vec![i; bytes]).collect();
    let rows: Vec<*mut u8> = rows.iter_mut().map(|row| row.as_mut_ptr()).collect();
    for in_order in [false, true] {
        let buffer = c.create([false, in_order, false]).unwrap();
        let mut last: Vec<Point> = vec![];
        c.fill(buffer, (rows[0], &9_u8, bytes), after(&[]))
            .map(|one| last.push(one.point))
            .unwrap();
        for step in 1..rows.len() {
            let points = if in_order { &[][..] } else { &last[last.len() - 1..] };
            let made = c.copy(buffer, (rows[step], rows[step - 1], bytes), after(points)).unwrap();
            last.push(made.point);
        }
        c.finalize(buffer).unwrap();
        for _ in 0..20 {
            rows.iter().for_each(|&row| unsafe { row.write_bytes(0, bytes) });
            c.run(buffer).unwrap();
            assert!((0..bytes).all(|i| unsafe { rows[5].add(i).read() } == 9));
        }
        c.release(buffer);
    }
}
#[test]
fn independent_commands_overlap_and_those_behind_them_come_later() {
    let c = Commands::new();
    let [put, _, _, meet] = kernels(&c);
    for queue in [c.queue, c.out_of_order()] {
        let (buffer, here, all, mut seen) = (c.loose(), AtomicU64::new(0), 3_u64, 0_u64);
        let seen_at = &raw mut seen;
        let arguments = [pointer(0, at(&here)), value(1, &all)];
        let points: Vec<Point> = (0..all)
            .map(|_| {
                c.launch(buffer, (meet, &[]), items(&[1]), &arguments, after(&[])).unwrap().point
            })
            .collect();
        let read = [pointer(0, seen_at.cast()), pointer(1, at(&here))];
        c.launch(buffer, (put, &[]), items(&[1]), &read, after(&points)).unwrap();
        c.finalize(buffer).unwrap();
        let start = Instant::now();
        let event = c.enqueue_on(queue, buffer, &[]).unwrap();
        c.codes.wait(event);
        assert!(start.elapsed() < common::PATIENCE, "they waited for each other in vain");
        assert_eq!(unsafe { seen_at.read_volatile() }, all);
        c.release(buffer);
    }
}
#[test]
fn executions_of_one_buffer_follow_one_another_a_thousand_times_on_many_queues() {
    let c = Commands::new();
    let [_, add, _, _] = kernels(&c);
    let (buffer, mut sum, one) = (c.loose(), 0_u64, 1_u64);
    let sum = &raw mut sum;
    c.launch(
        buffer,
        (add, &[]),
        items(&[1]),
        &[pointer(0, sum.cast()), value(1, &one)],
        after(&[]),
    )
    .unwrap();
    c.finalize(buffer).unwrap();
    struct Any(Buffer, Commands);
    unsafe impl Sync for Any {}
    let any = Any(buffer, c);
    thread::scope(|scope| {
        for thread in 0..4 {
            let any = &any;
            scope.spawn(move || {
                let Any(buffer, c) = any;
                let queue = if thread % 2 == 0 {
                    c.out_of_order()
                } else {
                    c.ur.new_queue(Default::default())
                };
                for _ in 0..250 {
                    let event = c.enqueue_on(queue, *buffer, &[]).unwrap();
                    assert_eq!(call!(event.release(event)), R::SUCCESS);
                }
                c.finish(queue).unwrap();
                assert_eq!(call!(queue.release(queue)), R::SUCCESS);
            });
        }
    });
    assert_eq!(unsafe { sum.read_volatile() }, 1000);
    c.release(buffer);
}
#[test]
fn a_buffer_may_be_released_while_it_runs_and_keeps_what_it_uses() {
    let closed = mems::Gate::lasting();
    let c = Commands::new();
    let [put, others @ ..] = kernels(&c);
    let (buffer, value, mut to) = (c.loose(), 77_u64, 0_u64);
    let to = &raw mut to;
    c.launch(
        buffer,
        (put, &[]),
        items(&[1]),
        &[pointer(0, to.cast()), common::code::value(1, &value)],
        after(&[]),
    )
    .unwrap();
    c.finalize(buffer).unwrap();
    let gate = closed.close(c.queue);
    let event = c.enqueue_on(c.queue, buffer, &[gate]).unwrap();
    c.release(buffer);
    [put].iter().chain(&others).for_each(|&kernel| c.codes.release(kernel));
    assert_eq!(code(c.finalize(buffer)), R::ERROR_INVALID_COMMAND_BUFFER_EXP);
    closed.open();
    c.codes.wait(event);
    assert_eq!(unsafe { to.read_volatile() }, 77);
}
#[test]
fn the_event_of_an_execution_has_the_times_of_the_whole() {
    let c = Commands::new();
    let (buffer, mut to) = (c.create([false, false, true]).unwrap(), vec![0_u8; 4 << 20]);
    let ask = Ask { event: true, ..Ask::default() };
    let one = c.fill(buffer, (to.as_mut_ptr(), &1_u8, to.len()), ask).unwrap();
    c.finalize(buffer).unwrap();
    assert_eq!(c.status(one.event), Ok(ur_event_status_t::COMPLETE.0));
    let event = c.enqueue_on(c.queue, buffer, &[]).unwrap();
    assert_eq!(call!(event.wait(1, &event)), R::SUCCESS);
    let time = |event, name| -> u64 {
        c.ur.value(|size, to, ret| call!(event.get_profiling_info(event, name, size, to, ret)))
            .unwrap()
    };
    use ur_profiling_info_t as P;
    let [whole, part] = [event, one.event].map(|event| {
        [P::COMMAND_QUEUED, P::COMMAND_START, P::COMMAND_END].map(|name| time(event, name))
    });
    assert!(whole.is_sorted() && part.is_sorted(), "{whole:?} {part:?}");
    assert!(whole[1] <= part[1] && part[2] <= whole[2], "{whole:?} {part:?}");
    assert!(part[2] > part[1], "a fill of 4 MiB takes time");
    let kind: u32 =
        c.ur.value(|size, to, ret| {
            call!(event.get_info(event, ur_event_info_t::COMMAND_TYPE, size, to, ret))
        })
        .unwrap();
    assert_eq!(kind, ur_command_t::ENQUEUE_COMMAND_BUFFER_EXP.0);
    for event in [event, one.event] {
        assert_eq!(call!(event.release(event)), R::SUCCESS);
    }
    c.release(buffer);
}
#[test]
fn events_of_commands_are_signalled_by_each_execution_and_order_others() {
    let closed = mems::Gate::lasting();
    let c = Commands::new();
    let (buffer, mut to, from) = (c.loose(), [0_u8; 8], [3_u8; 8]);
    let to = &raw mut to;
    let gate = closed.close(c.out_of_order());
    // The first waits for somebody else's, the second for the first one's.
    let one = Ask { events: &[gate], event: true, ..Ask::default() };
    let one = c.copy(buffer, (to, &raw const from, 8), one).unwrap();
    let two = Ask { events: &[one.event], event: true, ..Ask::default() };
    let two = c.fill(buffer, (to.cast::<u8>(), &4_u8, 4), two).unwrap();
    c.finalize(buffer).unwrap();
    let event = c.enqueue_on(c.queue, buffer, &[]).unwrap();
    for pending in [one.event, two.event, event] {
        assert_eq!(c.status(pending), Ok(ur_event_status_t::SUBMITTED.0));
    }
    closed.open();
    assert_eq!(call!(event.wait(1, &two.event)), R::SUCCESS);
    assert_eq!(unsafe { to.read_volatile() }, [4, 4, 4, 4, 3, 3, 3, 3]);
    c.codes.wait(event);
    let code = call!(enqueue.events_wait_with_barrier(c.queue, 1, &one.event, null_mut()));
    assert_eq!(code, R::SUCCESS);
    c.finish(c.queue).unwrap();
    for event in [one.event, two.event, gate] {
        assert_eq!(call!(event.release(event)), R::SUCCESS);
    }
    c.release(buffer);
}
/// Waits until the counter has come so far.
fn reaches(counter: &AtomicU64, value: u64) {
    let start = Instant::now();
    while counter.load(Acquire) < value {
        assert!(start.elapsed() < common::PATIENCE, "{counter:?} does not become {value}");
        thread::yield_now();
    }
}
/// A function of a native command that does nothing.
unsafe extern "C" fn nothing(_: *mut c_void) {}
#[test]
fn a_childs_commands_follow_those_of_the_parent_whose_events_they_wait_for() {
    let c = Commands::new();
    let [_, _, count, meet] = kernels(&c);
    let [here, behind, beside] = [const { AtomicU64::new(0) }; 3];
    let (parent, child, two) = (c.loose(), c.loose(), 2_u64);
    let launch = |to, kernel, arguments: &[Argument], ask: Ask<'_>| {
        c.launch(to, (kernel, &[]), items(&[1]), arguments, ask).unwrap()
    };
    let ask = Ask { event: true, ..Ask::default() };
    let met = launch(parent, meet, &[pointer(0, at(&here)), value(1, &two)], ask);
    launch(child, count, &[pointer(0, at(&behind))], Ask { events: &[met.event], ..ask });
    for appended in 1..=2 {
        let (none, mut point) = (null_mut(), 0);
        let code = call!(command_buffer_exp.append_native_command_exp(
            parent,
            Some(nothing),
            none,
            child,
            0,
            null(),
            &raw mut point
        ));
        assert_eq!(code, R::SUCCESS, "{appended}");
    }
    launch(parent, count, &[pointer(0, at(&beside))], after(&[]));
    c.finalize(parent).unwrap();
    let event = c.enqueue_on(c.out_of_order(), parent, &[]).unwrap();
    reaches(&here, 1);
    reaches(&beside, 1);
    assert_eq!(
        behind.load(Acquire),
        0,
        "the child's command ran before what it waits for was over"
    );
    here.fetch_add(1, AcqRel);
    c.codes.wait(event);
    assert_eq!(behind.load(Acquire), 2);
    assert_eq!(call!(event.release(met.event)), R::SUCCESS);
    c.release(child);
    c.release(parent);
}
unsafe extern "C" fn count_one(counter: *mut c_void) {
    unsafe { &*counter.cast::<AtomicU64>() }.fetch_add(1, AcqRel);
}
#[test]
fn what_a_graph_records_follows_the_command_of_a_command_buffer_whose_event_it_waits_for() {
    let c = Commands::new();
    let [_, _, _, meet] = kernels(&c);
    let [here, behind, beside] = [const { AtomicU64::new(0) }; 3];
    let (buffer, queue, two) = (c.loose(), c.out_of_order(), 2_u64);
    let ask = Ask { event: true, ..Ask::default() };
    let arguments = [pointer(0, at(&here)), value(1, &two)];
    let met = c.launch(buffer, (meet, &[]), items(&[1]), &arguments, ask).unwrap();
    c.finalize(buffer).unwrap();
    assert_eq!(call!(queue_exp.begin_graph_capture_exp(queue)), R::SUCCESS);
    let mut recorded = vec![c.enqueue_on(queue, buffer, &[]).unwrap()];
    for (counter, events) in [(&behind, &[met.event][..]), (&beside, &[])] {
        recorded.push(c.host_task(queue, count_one, at(counter).cast_mut(), events).unwrap());
    }
    let (mut graph, mut ready, mut event) =
        (ur_exp_graph_handle_t::NULL, ur_exp_executable_graph_handle_t::NULL, Event::NULL);
    assert_eq!(call!(queue_exp.end_graph_capture_exp(queue, &mut graph)), R::SUCCESS);
    assert_eq!(call!(graph_exp.instantiate_graph_exp(graph, &mut ready)), R::SUCCESS);
    let code = call!(enqueue_exp.graph_exp(c.out_of_order(), ready, 0, null(), &mut event));
    assert_eq!(code, R::SUCCESS);
    reaches(&here, 1);
    reaches(&beside, 1);
    assert_eq!(behind.load(Acquire), 0, "the host task ran before what it waits for was over");
    here.fetch_add(1, AcqRel);
    c.codes.wait(event);
    assert_eq!(behind.load(Acquire), 1);
    for event in recorded.into_iter().chain([met.event]) {
        assert_eq!(call!(event.release(event)), R::SUCCESS);
    }
    assert_eq!(call!(graph_exp.executable_graph_destroy_exp(ready)), R::SUCCESS);
    assert_eq!(call!(graph_exp.destroy_exp(graph)), R::SUCCESS);
    c.release(buffer);
}
