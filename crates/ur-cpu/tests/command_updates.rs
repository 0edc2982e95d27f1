//! Command buffers: what changes after they are finalized, what their queries answer, child command
//! buffers, and all that is refused.
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
};
use ur_result_t as R;
use ur_structure_type_t as S;

type Update = ur_exp_command_buffer_update_kernel_launch_desc_t;

#[track_caller]
fn code<T: std::fmt::Debug>(outcome: Outcome<T>) -> R {
    outcome.expect_err("a refusal").code
}
/// `out[id] = value`, for each item.
unsafe extern "C" fn put(args: *const *mut c_void, state: *const State) {
    unsafe {
        let id = (*state).global_id[0] + (*state).global_range[0] * (*state).global_id[1];
        (*args).cast::<u32>().add(id).write((*args.add(1)).cast::<u32>().read());
    }
}
/// The same, twice the value.
unsafe extern "C" fn double(args: *const *mut c_void, state: *const State) {
    unsafe {
        let id = (*state).global_id[0] + (*state).global_range[0] * (*state).global_id[1];
        (*args).cast::<u32>().add(id).write(2 * (*args.add(1)).cast::<u32>().read());
    }
}
struct Scene {
    c: Commands,
    put: ur_kernel_handle_t,
    double: ur_kernel_handle_t,
    out: *mut u32,
}
const ITEMS: usize = 64;
impl Scene {
    fn new() -> Self {
        let c = Commands::new();
        let pairs = [pair(c"put", put), pair(c"double", double), END];
        let program = c.codes.table(&pairs).unwrap();
        c.codes.build(program).unwrap();
        let [put, double] = ["put", "double"].map(|name| c.codes.kernel(program, name).unwrap());
        c.codes.release_program(program);
        let out = c.ur.alloc(Usm::Shared, ITEMS * 4).unwrap().cast();
        Self { c, put, double, out }
    }
    /// A finalized, updatable buffer with one launch over 8 items that writes 5.
    fn launch(&self) -> (Buffer, Command) {
        let buffer = self.c.create([true, false, false]).unwrap();
        let arguments = [pointer(0, self.out.cast()), value(1, &5_u32)];
        let ask = Ask { command: true, ..Ask::default() };
        let kernel = (self.put, &[self.double][..]);
        let made = self.c.launch(buffer, kernel, items(&[8]), &arguments, ask).unwrap();
        self.c.finalize(buffer).unwrap();
        (buffer, made.command)
    }
    fn update(&self, buffer: Buffer, updates: &[Update]) -> Outcome<()> {
        let (count, updates) = (updates.len() as u32, updates.as_ptr());
        self.c.ur.check(call!(command_buffer_exp.update_kernel_launch_exp(buffer, count, updates)))
    }
    /// Runs it on cleared memory; what is there then, up to the last that was written.
    fn run(&self, buffer: Buffer) -> Vec<u32> {
        unsafe { self.out.write_bytes(0, ITEMS) };
        self.c.run(buffer).unwrap();
        let all: Vec<u32> =
            (0..ITEMS).map(|i| unsafe { self.out.add(i).read_volatile() }).collect();
        let end = all.iter().rposition(|&n| n != 0).map_or(0, |last| last + 1);
        all[..end].to_vec()
    }
}
fn nothing(command: Command) -> Update {
    Update {
        stype: S::EXP_COMMAND_BUFFER_UPDATE_KERNEL_LAUNCH_DESC,
        pNext: null(),
        hCommand: command,
        hNewKernel: ur_kernel_handle_t::NULL,
        numNewMemObjArgs: 0,
        numNewPointerArgs: 0,
        numNewValueArgs: 0,
        newWorkDim: 1,
        pNewMemObjArgList: null(),
        pNewPointerArgList: null(),
        pNewValueArgList: null(),
        pNewGlobalWorkOffset: null_mut(),
        pNewGlobalWorkSize: null_mut(),
        pNewLocalWorkSize: null_mut(),
    }
}
fn new_pointer(index: u32, place: &*mut c_void) -> ur_exp_command_buffer_update_pointer_arg_desc_t {
    ur_exp_command_buffer_update_pointer_arg_desc_t {
        stype: S::EXP_COMMAND_BUFFER_UPDATE_POINTER_ARG_DESC,
        pNext: null(),
        argIndex: index,
        pProperties: null(),
        pNewPointerArg: (&raw const *place).cast(), // where it is, not what it is
    }
}
fn new_value(index: u32, value: &u32) -> ur_exp_command_buffer_update_value_arg_desc_t {
    ur_exp_command_buffer_update_value_arg_desc_t {
        stype: S::EXP_COMMAND_BUFFER_UPDATE_VALUE_ARG_DESC,
        pNext: null(),
        argIndex: index,
        argSize: 4,
        pProperties: null(),
        pNewValueArg: (&raw const *value).cast(),
    }
}

#[test]
fn the_device_says_that_all_of_a_launch_can_change() {
    let c = Commands::new();
    use ur_device_info_t as I;
    for name in [
        I::COMMAND_BUFFER_SUPPORT_EXP,
        I::COMMAND_BUFFER_EVENT_SUPPORT_EXP,
        I::COMMAND_BUFFER_SUBGRAPH_SUPPORT_EXP,
        I::GRAPH_RECORD_AND_REPLAY_SUPPORT_EXP,
    ] {
        let yes: Outcome<u8> =
            c.ur.value(|size, to, ret| call!(device.get_info(c.ur.device, name, size, to, ret)));
        assert_eq!(yes, Ok(1), "{name:?}");
    }
    let name = I::COMMAND_BUFFER_UPDATE_CAPABILITIES_EXP;
    let all: Outcome<u32> =
        c.ur.value(|size, to, ret| call!(device.get_info(c.ur.device, name, size, to, ret)));
    assert_eq!(all, Ok(0x3f));
}
#[test]
fn arguments_ranges_and_kernels_change_and_enqueued_executions_take_no_notice() {
    let s = Scene::new();
    let (buffer, command) = s.launch();
    assert_eq!(s.run(buffer), [5; 8]);
    // An argument, while an execution waits.
    let closed = mems::Gate::lasting();
    let gate = closed.close(s.c.queue);
    unsafe { s.out.write_bytes(0, ITEMS) };
    let before = s.c.enqueue_on(s.c.queue, buffer, &[gate]).unwrap();
    let seven = 7;
    let values = [new_value(1, &seven)];
    let update =
        Update { numNewValueArgs: 1, pNewValueArgList: values.as_ptr(), ..nothing(command) };
    s.update(buffer, &[update]).unwrap();
    closed.open();
    s.c.codes.wait(before);
    assert_eq!(unsafe { s.out.read_volatile() }, 5);
    assert_eq!(s.run(buffer), [7; 8]);
    // The kernel, and back again: each has arguments of its own.
    let out = s.out.cast();
    let pointers = [new_pointer(0, &out)];
    let both = Update { numNewPointerArgs: 1, pNewPointerArgList: pointers.as_ptr(), ..update };
    s.update(buffer, &[Update { hNewKernel: s.double, ..both }]).unwrap();
    assert_eq!(s.run(buffer), [14; 8]);
    s.update(buffer, &[Update { hNewKernel: s.put, ..nothing(command) }]).unwrap();
    assert_eq!(s.run(buffer), [7; 8]);
    // Size, offset, groups.
    let (mut size, mut offset, mut local) = ([12], [3], [4]);
    let update = Update { pNewGlobalWorkSize: size.as_mut_ptr(), ..nothing(command) };
    s.update(buffer, &[update]).unwrap();
    assert_eq!(s.run(buffer), [7; 12]);
    let update = Update {
        pNewGlobalWorkOffset: offset.as_mut_ptr(),
        pNewLocalWorkSize: local.as_mut_ptr(),
        ..nothing(command)
    };
    s.update(buffer, &[update]).unwrap();
    assert_eq!(s.run(buffer), [[0; 3].as_slice(), &[7; 12]].concat());
    // Dimensions.
    let (mut size, mut offset) = ([4, 5], [0, 0]);
    let update = Update {
        newWorkDim: 2,
        pNewGlobalWorkSize: size.as_mut_ptr(),
        pNewGlobalWorkOffset: offset.as_mut_ptr(),
        ..nothing(command)
    };
    s.update(buffer, &[update]).unwrap();
    assert_eq!(s.run(buffer), [7; 20]);
    s.c.release(buffer);
}
/// `out[0] = 77`, by the first item alone: two that write one word at once are a data race.
unsafe extern "C" fn lone(args: *const *mut c_void, state: *const State) {
    unsafe {
        if (*state).global_id[0] == 0 {
            (*args).cast::<u32>().write(77);
        }
    }
}
#[test]
fn a_kernel_in_the_place_of_another_takes_no_argument_of_that_one() {
    let s = Scene::new();
    let program = s.c.codes.table(&[pair(c"lone", lone), END]).unwrap();
    s.c.codes.build(program).unwrap();
    let lone = s.c.codes.kernel(program, "lone").unwrap();
    let buffer = s.c.create([true, false, false]).unwrap();
    let arguments = [pointer(0, s.out.cast()), value(1, &5_u32)];
    let ask = Ask { command: true, ..Ask::default() };
    let kernel = (s.put, &[lone, s.double][..]);
    let command = s.c.launch(buffer, kernel, items(&[8]), &arguments, ask).unwrap().command;
    s.c.finalize(buffer).unwrap();
    let (out, nine, index) = (s.out.cast(), 9, R::ERROR_INVALID_KERNEL_ARGUMENT_INDEX);
    let (pointers, values) = ([new_pointer(0, &out)], [new_value(1, &nine)]);
    let first = Update {
        hNewKernel: lone,
        numNewPointerArgs: 1,
        pNewPointerArgList: pointers.as_ptr(),
        ..nothing(command)
    };
    s.update(buffer, &[first]).unwrap();
    assert_eq!(s.run(buffer), [77]);
    // It was given one argument: there is no second that could be changed.
    let second =
        Update { numNewValueArgs: 1, pNewValueArgList: values.as_ptr(), ..nothing(command) };
    assert_eq!(code(s.update(buffer, &[second])), index);
    // The second alone leaves a gap where the old kernel had an argument.
    assert_eq!(code(s.update(buffer, &[Update { hNewKernel: s.double, ..second }])), index);
    assert_eq!(s.run(buffer), [77]);
    // Of two for one index the last counts; what it had before stays with the kernel that comes back.
    let eleven = 11;
    let values = [new_value(1, &nine), new_value(1, &eleven)];
    let back = Update {
        hNewKernel: s.put,
        numNewValueArgs: 2,
        pNewValueArgList: values.as_ptr(),
        ..nothing(command)
    };
    s.update(buffer, &[back]).unwrap();
    assert_eq!(s.run(buffer), [11; 8]);
    s.c.release(buffer);
    s.c.codes.release_program(program);
}
#[test]
fn pointers_and_memory_objects_change() {
    let s = Scene::new();
    let (buffer, command) = s.launch();
    let other = s.c.ur.alloc(Usm::Host, 64).unwrap();
    let pointers = [new_pointer(0, &other)];
    let update =
        Update { numNewPointerArgs: 1, pNewPointerArgList: pointers.as_ptr(), ..nothing(command) };
    s.update(buffer, &[update]).unwrap();
    assert_eq!(s.run(buffer), []);
    assert_eq!(unsafe { other.cast::<[u32; 8]>().read_volatile() }, [5; 8]);
    let m = Mems { ur: s.c.ur, queue: s.c.queue };
    let mem = m.holding(&[0; 32]);
    let mems = [ur_exp_command_buffer_update_memobj_arg_desc_t {
        stype: S::EXP_COMMAND_BUFFER_UPDATE_MEMOBJ_ARG_DESC,
        pNext: null(),
        argIndex: 0,
        pProperties: null(),
        hNewMemObjArg: mem,
    }];
    let update =
        Update { numNewMemObjArgs: 1, pNewMemObjArgList: mems.as_ptr(), ..nothing(command) };
    s.update(buffer, &[update]).unwrap();
    s.c.run(buffer).unwrap();
    let mut bytes = [0; 32];
    m.read(mem, 0, &mut bytes).unwrap();
    assert_eq!(bytes.as_chunks().0, [5_u32.to_ne_bytes(); 8]);
    m.release(mem);
    s.c.release(buffer);
}
#[test]
fn updates_that_are_wrong_change_nothing() {
    let s = Scene::new();
    let (buffer, command) = s.launch();
    let (stranger, other) = s.launch();
    let (nine, mut three, mut zero) = (9, [3], [0]);
    let (good, bad) = ([new_value(1, &nine)], [new_value(2, &nine)]);
    let good = Update { numNewValueArgs: 1, pNewValueArgList: good.as_ptr(), ..nothing(command) };
    let outsider = Scene::new();
    let cases = [
        (Update { newWorkDim: 0, ..nothing(command) }, R::ERROR_INVALID_WORK_DIMENSION),
        (Update { newWorkDim: 4, ..nothing(command) }, R::ERROR_INVALID_WORK_DIMENSION),
        (Update { newWorkDim: 2, ..nothing(command) }, R::ERROR_INVALID_VALUE),
        (Update { hNewKernel: outsider.put, ..nothing(command) }, R::ERROR_INVALID_VALUE),
        (Update { numNewValueArgs: 1, ..nothing(command) }, R::ERROR_INVALID_NULL_POINTER),
        (
            Update { numNewValueArgs: 1, pNewValueArgList: bad.as_ptr(), ..nothing(command) },
            R::ERROR_INVALID_KERNEL_ARGUMENT_INDEX,
        ),
        (
            Update { pNewLocalWorkSize: three.as_mut_ptr(), ..nothing(command) },
            R::ERROR_INVALID_WORK_GROUP_SIZE,
        ),
        (
            Update { pNewGlobalWorkSize: zero.as_mut_ptr(), ..nothing(command) },
            R::ERROR_INVALID_WORK_DIMENSION,
        ),
        (nothing(Command::NULL), R::ERROR_INVALID_NULL_HANDLE),
        (nothing(other), R::ERROR_INVALID_COMMAND_BUFFER_COMMAND_HANDLE_EXP),
        (
            nothing(ur_exp_command_buffer_command_handle_t(buffer.0)),
            R::ERROR_INVALID_COMMAND_BUFFER_COMMAND_HANDLE_EXP,
        ),
    ];
    for (update, refusal) in cases {
        assert_eq!(code(s.update(buffer, &[good, update])), refusal, "{update:?}");
        assert_eq!(s.run(buffer), [5; 8], "{update:?}");
    }
    assert_eq!(code(s.update(buffer, &[])), R::ERROR_INVALID_SIZE);
    s.c.release(stranger);
    let gone = R::ERROR_INVALID_COMMAND_BUFFER_COMMAND_HANDLE_EXP;
    assert_eq!(code(s.update(buffer, &[nothing(other)])), gone);
    s.c.release(buffer);
}
#[test]
fn only_finalized_updatable_buffers_change_and_only_launches() {
    let s = Scene::new();
    let c = s.c;
    let arguments = [pointer(0, s.out.cast()), value(1, &5_u32)];
    let ask = Ask { command: true, event: true, ..Ask::default() };
    let fixed = c.loose();
    let refused = c.launch(fixed, (s.put, &[]), items(&[8]), &arguments, ask);
    assert_eq!(code(refused), R::ERROR_INVALID_OPERATION);
    let buffer = c.create([true, false, false]).unwrap();
    let launch = c.launch(buffer, (s.put, &[]), items(&[8]), &arguments, ask).unwrap();
    let plain = Ask { command: true, ..Ask::default() };
    let fill = c.fill(buffer, (s.out, &1_u8, 4), plain).unwrap();
    let mut event = Event::NULL;
    let signal = |command, event: &mut Event| {
        call!(command_buffer_exp.update_signal_event_exp(command, &raw mut *event))
    };
    let waits = |command, events: &[Event]| {
        let (count, events) = (events.len() as u32, list(events));
        call!(command_buffer_exp.update_wait_events_exp(command, count, events))
    };
    assert_eq!(code(s.update(buffer, &[nothing(launch.command)])), R::ERROR_INVALID_OPERATION);
    assert_eq!(signal(launch.command, &mut event), R::ERROR_INVALID_OPERATION);
    assert_eq!(waits(launch.command, &[]), R::ERROR_INVALID_OPERATION);
    c.finalize(buffer).unwrap();
    c.finalize(fixed).unwrap();
    assert_eq!(code(s.update(fixed, &[nothing(launch.command)])), R::ERROR_INVALID_OPERATION);
    let nobody = nothing(Command::NULL);
    assert_eq!(code(s.update(fixed, &[nobody])), R::ERROR_INVALID_NULL_HANDLE);
    let refused = s.update(buffer, &[nothing(fill.command)]);
    assert_eq!(code(refused), R::ERROR_INVALID_COMMAND_BUFFER_COMMAND_HANDLE_EXP);
    assert_eq!(signal(fill.command, &mut event), R::ERROR_INVALID_OPERATION);
    assert_eq!(signal(launch.command, &mut event), R::SUCCESS);
    assert_eq!(waits(launch.command, &[event]), R::ERROR_INVALID_EVENT_WAIT_LIST);
    assert_eq!(waits(launch.command, &[]), R::SUCCESS);
    c.release(buffer);
    assert_eq!(
        signal(launch.command, &mut event),
        R::ERROR_INVALID_COMMAND_BUFFER_COMMAND_HANDLE_EXP
    );
}
#[test]
fn signal_and_wait_events_change() {
    let s = Scene::new();
    let c = s.c;
    let buffer = c.create([true, false, false]).unwrap();
    let closed = mems::Gate::lasting();
    let first = c.memcpy(c.queue, (s.out, s.out.wrapping_add(8), 4), &[]).unwrap();
    let ask = Ask { command: true, event: true, events: &[first], ..Ask::default() };
    let made = c.fill(buffer, (s.out, &1_u8, 4), ask).unwrap();
    c.finalize(buffer).unwrap();
    c.run(buffer).unwrap();
    let mut fresh = Event::NULL;
    let code = call!(command_buffer_exp.update_signal_event_exp(made.command, &mut fresh));
    assert_eq!(code, R::SUCCESS);
    let gate = closed.close(c.queue);
    let code = call!(command_buffer_exp.update_wait_events_exp(made.command, 1, &gate));
    assert_eq!(code, R::SUCCESS);
    let code = call!(command_buffer_exp.update_wait_events_exp(made.command, 1, &fresh));
    assert_eq!(code, R::ERROR_INVALID_EVENT_WAIT_LIST); // its own
    let whole = c.enqueue_on(c.out_of_order(), buffer, &[]).unwrap();
    let (submitted, complete) = (ur_event_status_t::SUBMITTED.0, ur_event_status_t::COMPLETE.0);
    assert_eq!(c.status(made.event), Ok(complete), "it is not the command's any more");
    assert_eq!(c.status(fresh), Ok(submitted));
    closed.open();
    c.codes.wait(fresh);
    c.codes.wait(whole);
    c.release(buffer);
}
#[test]
fn queries_answer_what_it_was_made_of() {
    let c = Commands::new();
    use ur_exp_command_buffer_info_t as I;
    for flags in [[false; 3], [true, false, true], [false, true, false]] {
        let buffer = c.create(flags).unwrap();
        let bytes: [u8; 24] =
            c.ur.value(|size, to, ret| {
                call!(command_buffer_exp.get_info_exp(buffer, I::DESCRIPTOR, size, to, ret))
            })
            .unwrap();
        assert_eq!(bytes[..4], S::EXP_COMMAND_BUFFER_DESC.0.to_ne_bytes());
        assert_eq!(bytes[16..19], flags.map(u8::from));
        let count = |expected: u32| {
            let name = I::REFERENCE_COUNT;
            let count = c.ur.value(|size, to, ret| {
                call!(command_buffer_exp.get_info_exp(buffer, name, size, to, ret))
            });
            assert_eq!(count, Ok(expected));
        };
        count(1);
        assert_eq!(call!(command_buffer_exp.retain_exp(buffer)), R::SUCCESS);
        count(2);
        c.release(buffer);
        count(1);
        let mut native = 0;
        assert_eq!(
            call!(command_buffer_exp.get_native_handle_exp(buffer, &mut native)),
            R::SUCCESS
        );
        assert_eq!(native, buffer.0.addr());
        c.release(buffer);
        let mut size = 0;
        let code =
            call!(command_buffer_exp.get_info_exp(buffer, I::DESCRIPTOR, 0, null_mut(), &mut size));
        assert_eq!(code, R::ERROR_INVALID_COMMAND_BUFFER_EXP);
    }
}
/// What a native command's function gets: the scene, the child, and how often it was called.
struct Native<'a>(&'a Scene, Buffer, u32);
unsafe extern "C" fn add_to_child(data: *mut c_void) {
    let native = unsafe { &mut *data.cast::<Native<'_>>() };
    native.2 += 1;
    let Native(s, child, _) = native;
    if !child.0.is_null() {
        let one = s.c.fill(*child, (s.out, &1_u8, 8), after(&[])).unwrap();
        s.c.fill(*child, (s.out, &2_u8, 4), after(&[one.point])).unwrap();
    }
}
#[test]
fn a_child_is_recorded_as_it_is_when_the_native_command_is_appended() {
    let s = Scene::new();
    let c = s.c;
    let [buffer, child] = [c.create([false, true, false]).unwrap(), c.loose()];
    c.fill(buffer, (s.out, &9_u8, 16), after(&[])).unwrap();
    let (mut native, mut point) = (Native(&s, child, 0), 0);
    let data = (&raw mut native).cast();
    let function: unsafe extern "C" fn(*mut c_void) = add_to_child;
    let append = |child: Buffer, points: &[Point], point: &mut Point| {
        let (count, points) = (points.len() as u32, list(points));
        call!(command_buffer_exp.append_native_command_exp(
            buffer,
            Some(function),
            data,
            child,
            count,
            points,
            &raw mut *point
        ))
    };
    assert_eq!(append(child, &[], &mut point), R::SUCCESS);
    let last = [point];
    c.copy(buffer, (s.out.wrapping_add(4), s.out, 16), after(&last)).unwrap();
    let refused = append(child, &[point + 1_000_000], &mut point);
    assert_eq!(refused, R::ERROR_INVALID_COMMAND_BUFFER_SYNC_POINT_EXP);
    c.finalize(buffer).unwrap();
    assert_eq!(append(child, &[], &mut point), R::ERROR_INVALID_OPERATION);
    assert_eq!(native.2, 1, "what is refused calls nothing");
    c.fill(child, (s.out, &3_u8, 16), after(&[])).unwrap(); // too late for the parent
    c.release(child);
    assert_eq!(
        s.run(buffer)[..8],
        [[0x0202_0202, 0x0101_0101, 0x0909_0909, 0x0909_0909]; 2].concat()
    );
    c.release(buffer);
}
#[test]
fn what_does_not_fit_is_refused_and_nothing_is_recorded() {
    let s = Scene::new();
    let c = s.c;
    let (buffer, other) = (c.loose(), c.loose());
    let foreign = c.fill(other, (s.out, &1_u8, 4), after(&[])).unwrap();
    let copy = |to: *mut u32, bytes, ask| c.copy(buffer, (to, s.out.cast_const(), bytes), ask);
    assert_eq!(code(copy(s.out, 0, after(&[]))), R::ERROR_INVALID_SIZE);
    assert_eq!(code(copy(s.out, ITEMS * 4 + 1, after(&[]))), R::ERROR_INVALID_SIZE);
    assert_eq!(code(copy(s.out, usize::MAX, after(&[]))), R::ERROR_INVALID_SIZE);
    assert_eq!(code(copy(null_mut(), 4, after(&[]))), R::ERROR_INVALID_NULL_POINTER);
    let points = [foreign.point];
    let stranger = R::ERROR_INVALID_COMMAND_BUFFER_SYNC_POINT_EXP;
    assert_eq!(code(copy(s.out.wrapping_add(4), 4, after(&points))), stranger);
    let pattern = c.fill(buffer, (s.out, &[1_u8, 2, 3], 4), after(&[]));
    assert_eq!(code(pattern), R::ERROR_INVALID_SIZE);
    let asked = Ask { command: true, ..Ask::default() };
    assert_eq!(code(copy(s.out.wrapping_add(4), 4, asked)), R::ERROR_INVALID_OPERATION);
    for (points, events, refusal) in [
        ((1, null()), (0, null()), R::ERROR_INVALID_COMMAND_BUFFER_SYNC_POINT_WAIT_LIST_EXP),
        (
            (0, points.as_ptr()),
            (0, null()),
            R::ERROR_INVALID_COMMAND_BUFFER_SYNC_POINT_WAIT_LIST_EXP,
        ),
        ((0, null()), (1, null()), R::ERROR_INVALID_EVENT_WAIT_LIST),
    ] {
        let code = call!(command_buffer_exp.append_usm_memcpy_exp(
            buffer,
            s.out.cast(),
            s.out.wrapping_add(4).cast(),
            4,
            points.0,
            points.1,
            events.0,
            events.1,
            null_mut(),
            null_mut(),
            null_mut()
        ));
        assert_eq!(code, refusal);
    }
    let launch = |kernel, others: &[_], items: Items<'_>| {
        let arguments = [pointer(0, s.out.cast()), value(1, &5_u32)];
        c.launch(buffer, (kernel, others), items, &arguments, after(&[]))
    };
    assert_eq!(code(launch(s.put, &[s.put], items(&[8]))), R::ERROR_INVALID_VALUE);
    assert_eq!(code(launch(s.put, &[], items(&[0]))), R::ERROR_INVALID_WORK_DIMENSION);
    let odd = Items { local: Some(&[3]), ..items(&[8]) };
    assert_eq!(code(launch(s.put, &[], odd)), R::ERROR_INVALID_WORK_GROUP_SIZE);
    assert_eq!(
        code(launch(ur_kernel_handle_t::NULL, &[], items(&[8]))),
        R::ERROR_INVALID_NULL_HANDLE
    );
    assert_eq!(
        code(launch(ur_kernel_handle_t(buffer.0), &[], items(&[8]))),
        R::ERROR_INVALID_KERNEL
    );
    assert_eq!(code(c.enqueue_on(c.queue, buffer, &[])), R::ERROR_INVALID_OPERATION);
    c.finalize(buffer).unwrap();
    assert_eq!(s.run(buffer), []);
    assert_eq!(code(c.finalize(buffer)), R::ERROR_INVALID_OPERATION);
    assert_eq!(code(copy(s.out, 4, after(&[]))), R::ERROR_INVALID_OPERATION);
    let elsewhere = Commands { ur: Ur { context: c.ur.new_context(), ..c.ur }, ..c };
    let queue = elsewhere.out_of_order();
    assert_eq!(code(c.enqueue_on(queue, buffer, &[])), R::ERROR_INVALID_QUEUE);
    if let Some(part) = c.ur.a_part() {
        let queue = Ur { device: part, ..c.ur }.new_queue(Default::default());
        assert_eq!(code(c.enqueue_on(queue, buffer, &[])), R::ERROR_INVALID_QUEUE);
    }
    let none = Buffer::NULL;
    assert_eq!(code(c.enqueue_on(c.queue, none, &[])), R::ERROR_INVALID_NULL_HANDLE);
    let wrong = ur_exp_command_buffer_handle_t(c.queue.0);
    assert_eq!(code(c.enqueue_on(c.queue, wrong, &[])), R::ERROR_INVALID_COMMAND_BUFFER_EXP);
    c.release(buffer);
    c.release(other);
}
