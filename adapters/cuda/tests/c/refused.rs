//! The driver refuses one call of a command, each that it makes in turn, once. The command is refused or not, but those
//! behind it stand where they stood, the memory of a command is the caller's again when it is over or refused, and what was
//! refused does not happen later. Without the software driver the tests say so and are skipped.
use crate::{c::*, call, calls::*, gate::Gate, refuser::Refuser};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};
use ur_sys::{
    ur_event_status_t as Status, ur_mem_flags_t as F, ur_queue_flags_t as Flags, ur_result_t as R,
    *,
};

/// What commands of these tests use.
const BYTES: usize = 4096;
/// How long a gate stays shut that another thread opens.
const SHUT: Duration = Duration::from_millis(8);
/// In order, and out of order.
const NO_FLAGS: Flags = Flags(0);
const BOTH: [Flags; 2] = [NO_FLAGS, Flags::OUT_OF_ORDER_EXEC_MODE_ENABLE];

fn one() -> Option<(One, Refuser)> {
    Some((One::new()?, Refuser::new()?))
}
/// A queue behind a barrier that waits for what stands at a gate in another queue.
struct Behind {
    gate: &'static Gate,
    held: ur_queue_handle_t,
    queue: ur_queue_handle_t,
    memory: *mut c_void,
}
impl Behind {
    fn new(one: &One, flags: Flags) -> Self {
        let (gate, memory) = (Gate::shut(), one.device_memory(BYTES));
        let (held, behind) = (queue(one, NO_FLAGS), queue(one, flags));
        gate.hold(held);
        let event = fill(held, memory, 0);
        let_go(barrier(behind, &[event]));
        let_go(event);
        Self { gate, held, queue: behind, memory }
    }
    /// Opens the gate after a while.
    fn open_soon(&self) {
        let gate = self.gate;
        std::thread::spawn(move || {
            std::thread::sleep(SHUT);
            gate.open();
        });
    }
    fn end(self, one: &One) {
        self.gate.open();
        release(self.held);
        release(self.queue);
        one.free(self.memory);
    }
}
/// A buffer of the context with this in each byte.
fn buffer(one: &One, byte: u8) -> ur_mem_handle_t {
    buffer_of(one, [byte; BYTES].as_mut_ptr(), F::ALLOC_COPY_HOST_POINTER)
}
/// A buffer that is made of `host`.
fn buffer_of(one: &One, host: *mut u8, how: F) -> ur_mem_handle_t {
    let properties = ur_buffer_properties_t {
        stype: ur_structure_type_t::BUFFER_PROPERTIES,
        pNext: null_mut(),
        pHost: host.cast(),
    };
    let (mut made, flags) = (ur_mem_handle_t::NULL, F::READ_WRITE | how);
    let code =
        call!(mem.buffer_create(one.context, flags, BYTES, &raw const properties, &mut made));
    assert_eq!(code, R::SUCCESS);
    made
}
fn fill_buffer(
    queue: ur_queue_handle_t,
    buffer: ur_mem_handle_t,
    byte: u8,
    after: ur_event_handle_t,
) -> Result<ur_event_handle_t, R> {
    let (pattern, mut event) = ((&raw const byte).cast(), NO_EVENT);
    let (count, list) = if after.is_null() { (0, null()) } else { (1, &raw const after) };
    let code = call!(
        enqueue.mem_buffer_fill(queue, buffer, pattern, 1, 0, BYTES, count, list, &mut event)
    );
    if code == R::SUCCESS { Ok(event) } else { Err(code) }
}

#[test]
fn what_follows_a_refused_command_stands_behind_the_barrier_before_it() {
    let Some((one, refuser)) = one() else { return };
    unsafe extern "C" fn nothing(_data: *mut c_void) {}
    let there = one.device_memory(BYTES);
    type Command<'a> = &'a dyn Fn(ur_queue_handle_t) -> R;
    let (no, list, byte) = (null_mut(), null(), b'x');
    let commands: [(&str, Command<'_>); 4] = [
        ("fill", &|queue| {
            let pattern = (&raw const byte).cast();
            call!(enqueue.usm_fill(queue, there, 1, pattern, BYTES, 0, list, no))
        }),
        ("barrier", &|queue| call!(enqueue.events_wait_with_barrier(queue, 0, list, no))),
        ("wait", &|queue| call!(enqueue.events_wait(queue, 0, list, no))),
        ("host task", &|queue| {
            call!(enqueue_exp.host_task_exp(queue, Some(nothing), no.cast(), null(), 0, list, no))
        }),
    ];
    for (flags, (name, command)) in BOTH.into_iter().flat_map(|one| commands.map(|c| (one, c))) {
        refuser.each(|nth| {
            let_go(waited(fill(one.queue, there, b'0')));
            let behind = Behind::new(&one, flags);
            let (code, calls) = refuser.during(nth, || command(behind.queue));
            assert!(nth.is_some() || code == R::SUCCESS, "{name}: {code:?}");
            let later: Vec<_> = (0..8).map(|_| fill(behind.queue, there, b'y')).collect();
            std::thread::sleep(Duration::from_millis(2));
            let early = later.iter().filter(|event| status(**event) == Status::COMPLETE).count();
            let seen = one.read::<u8, BYTES>(there)[0];
            assert_eq!((early, seen), (0, b'0'), "{flags:?}: {name}, call {nth:?}: {code:?}");
            behind.end(&one);
            assert_eq!(one.read::<u8, BYTES>(there), [b'y'; BYTES]);
            later.into_iter().for_each(let_go);
            calls
        });
    }
    one.free(there);
}

#[test]
fn the_memory_of_a_command_is_the_callers_when_it_is_over_or_refused() {
    let Some((one, refuser)) = one() else { return };
    let pair = One::pair();
    for one in [&one].into_iter().chain(pair.iter().flatten().take(1)) {
        let (there, mem) = (one.device_memory(BYTES), buffer(one, b'a'));
        // The caller's memory: it is read and written by address alone.
        let host: *mut u8 = Box::leak(Box::new([0_u8; BYTES])).as_mut_ptr();
        let set = |byte: u8| unsafe { host.write_bytes(byte, BYTES) };
        let is =
            |byte: u8| (0..BYTES).all(|n| unsafe { host.wrapping_add(n).read_volatile() } == byte);
        type Transfer<'a> = &'a dyn Fn(ur_queue_handle_t, bool) -> R;
        let (to, no) = (host.cast::<c_void>(), null_mut());
        // Two commands each: the second may be refused when there is the first.
        let halves = [0, BYTES / 2].map(|at| (at, to.wrapping_byte_add(at)));
        let list = null();
        let recorded = [
            recorded(one, |commands| {
                halves.map(|(at, to)| {
                    let (from, size) = (there.wrapping_byte_add(at), BYTES / 2);
                    call!(command_buffer_exp.append_usm_memcpy_exp(
                        commands,
                        to,
                        from,
                        size,
                        0,
                        list,
                        0,
                        null(),
                        null_mut(),
                        no,
                        null_mut()
                    ))
                })
            }),
            recorded(one, |commands| {
                halves.map(|(at, from)| {
                    call!(command_buffer_exp.append_mem_buffer_write_exp(
                        commands,
                        mem,
                        at,
                        BYTES / 2,
                        from,
                        0,
                        list,
                        0,
                        null(),
                        null_mut(),
                        no,
                        null_mut()
                    ))
                })
            }),
        ];
        let run = |q, commands| call!(enqueue_exp.command_buffer_exp(q, commands, 0, null(), no));
        let transfers: [(bool, Transfer<'_>); 6] = [
            (true, &|q, waits| {
                call!(enqueue.usm_memcpy(q, waits, to, there, BYTES, 0, null(), no))
            }),
            (true, &|q, waits| {
                call!(enqueue.mem_buffer_read(q, mem, waits, 0, BYTES, to, 0, null(), no))
            }),
            (false, &|q, waits| {
                call!(enqueue.usm_memcpy(q, waits, there, to, BYTES, 0, null(), no))
            }),
            (false, &|q, waits| {
                call!(enqueue.mem_buffer_write(q, mem, waits, 0, BYTES, to, 0, null(), no))
            }),
            (true, &|q, _never| run(q, recorded[0])),
            (false, &|q, _never| run(q, recorded[1])),
        ];
        let each = |way| transfers.into_iter().enumerate().map(move |one| (way, one));
        let ways = BOTH.into_iter().flat_map(|flags| [(flags, true), (flags, false)]);
        let can_wait = |number| number < 4;
        for ((flags, waits), (number, (reads, transfer))) in ways.flat_map(each) {
            if waits && !can_wait(number) {
                continue;
            }
            refuser.each(|nth| {
                let_go(waited(fill(one.queue, there, b'a')));
                let_go(waited(fill_buffer(one.queue, mem, b'a', NO_EVENT).unwrap()));
                set(b'h');
                let behind = Behind::new(one, flags);
                behind.open_soon();
                let (code, calls) = refuser.during(nth, || transfer(behind.queue, waits));
                let at = format!("{flags:?}, {waits}: transfer {number}, call {nth:?}: {code:?}");
                if !waits && code == R::SUCCESS {
                    assert_eq!(call!(queue.finish(behind.queue)), R::SUCCESS, "{at}");
                }
                assert!(nth.is_some() || code == R::SUCCESS, "{at}");
                assert!(code != R::SUCCESS || is(if reads { b'a' } else { b'h' }), "{at}");
                set(b'c'); // the caller's again
                behind.end(one);
                assert!(is(b'c'), "{at}: and was written later");
                let mut seen = [0_u8; BYTES];
                let read = match number % 2 {
                    0 => Ok(one.read::<u8, BYTES>(there)),
                    _ => match call!(enqueue.mem_buffer_read(
                        one.queue,
                        mem,
                        true,
                        0,
                        BYTES,
                        seen.as_mut_ptr().cast(),
                        0,
                        null(),
                        no
                    )) {
                        R::SUCCESS => Ok(seen),
                        code => Err(code),
                    },
                };
                let seen = read.unwrap();
                let all = |byte: u8| seen.iter().all(|seen| *seen == byte);
                let is_right = match (reads, code) {
                    (true, _) => all(b'a'),
                    (false, R::SUCCESS) => all(b'h'),
                    // Of an execution there may be its first command.
                    _ if !can_wait(number) => seen.iter().all(|byte| b"ah".contains(byte)),
                    _ => all(b'a') || all(b'h'),
                };
                assert!(is_right, "{at}: {:?}", &seen[..8]);
                calls
            });
        }
        for commands in recorded {
            assert_eq!(call!(command_buffer_exp.release_exp(commands)), R::SUCCESS);
        }
        assert_eq!(call!(mem.release(mem)), R::SUCCESS);
        one.free(there);
    }
}

#[test]
fn memory_that_a_buffer_was_given_is_not_filled_after_the_fill_was_refused() {
    let Some((one, refuser)) = one() else { return };
    // Each of its four words is filled by a call of its own, or it is written once and then copied.
    let pattern = *b"0123456789abcdef";
    for flags in BOTH {
        refuser.each(|nth| {
            let host: *mut u8 = Box::leak(Box::new([b'h'; BYTES])).as_mut_ptr();
            let mem = buffer_of(&one, host, F::USE_HOST_POINTER);
            let behind = Behind::new(&one, flags);
            behind.open_soon();
            let (code, calls) = refuser.during(nth, || {
                let (queue, pattern) = (behind.queue, (&raw const pattern).cast());
                let (list, none) = (null(), null_mut());
                call!(enqueue.mem_buffer_fill(queue, mem, pattern, 16, 0, BYTES, 0, list, none))
            });
            assert!(nth.is_some() || code == R::SUCCESS, "{code:?}");
            if code == R::SUCCESS {
                assert_eq!(call!(queue.finish(behind.queue)), R::SUCCESS);
            }
            assert_eq!(call!(mem.release(mem)), R::SUCCESS);
            unsafe { host.write_bytes(b'c', BYTES) }; // the caller's again
            behind.end(&one);
            let is = |n| unsafe { host.wrapping_add(n).read_volatile() } == b'c';
            assert!((0..BYTES).all(is), "{flags:?}, call {nth:?}: {code:?}: filled later");
            calls
        });
    }
}

#[test]
fn a_function_is_not_called_by_a_command_that_was_refused() {
    unsafe extern "C" fn count(data: *mut c_void) {
        unsafe { &*data.cast::<AtomicUsize>() }.fetch_add(1, Relaxed);
    }
    let Some((one, refuser)) = one() else { return };
    for flags in BOTH.into_iter().flat_map(|one| [one, one | Flags::PROFILING_ENABLE]) {
        refuser.each(|nth| {
            let (behind, calls_of_it) = (Behind::new(&one, flags), AtomicUsize::new(0));
            let (data, mut event) = ((&raw const calls_of_it).cast_mut().cast(), NO_EVENT);
            let (code, calls) = refuser.during(nth, || {
                let (queue, none) = (behind.queue, null());
                call!(enqueue_exp.host_task_exp(
                    queue,
                    Some(count),
                    data,
                    null(),
                    0,
                    none,
                    &mut event
                ))
            });
            behind.end(&one);
            let times = calls_of_it.load(Relaxed);
            assert_eq!(times, usize::from(code == R::SUCCESS), "{flags:?}, call {nth:?}: {code:?}");
            if code == R::SUCCESS {
                let_go(event);
            }
            calls
        });
    }
}

#[test]
fn bytes_of_a_refused_write_come_on_no_device_after_another_has_overwritten_them() {
    let Some(([first, second], refuser)) = One::pair().zip(Refuser::new()) else { return };
    let read = |one: &One, mem| {
        let (mut seen, none) = ([0_u8; BYTES], null_mut());
        let (queue, to) = (one.queue, seen.as_mut_ptr().cast());
        let code = call!(enqueue.mem_buffer_read(queue, mem, true, 0, BYTES, to, 0, null(), none));
        assert_eq!(code, R::SUCCESS);
        seen[0]
    };
    for half in [BYTES, BYTES / 2] {
        refuser.each(|nth| {
            let mem = buffer(&first, b'z');
            let behind = Behind::new(&first, NO_FLAGS);
            let byte = b'r';
            let (code, calls) = refuser.during(nth, || {
                let (pattern, none) = ((&raw const byte).cast(), null_mut());
                let queue = behind.queue;
                call!(enqueue.mem_buffer_fill(queue, mem, pattern, 1, 0, half, 0, null(), none))
            });
            if code == R::SUCCESS {
                behind.end(&first);
                assert_eq!(call!(mem.release(mem)), R::SUCCESS);
                return calls;
            }
            behind.open_soon();
            let_go(waited(fill_buffer(second.queue, mem, b'b', NO_EVENT).unwrap()));
            let early = read(&first, mem);
            behind.end(&first);
            let seen = [early, read(&first, mem), read(&second, mem)];
            assert_eq!(seen, [b'b'; 3], "{half} bytes, call {nth:?}: {code:?}");
            assert_eq!(call!(mem.release(mem)), R::SUCCESS);
            calls
        });
    }
}

#[test]
fn a_wait_that_fails_says_nothing_of_the_command() {
    let Some((one, refuser)) = one() else { return };
    let there = one.device_memory(BYTES);
    for (flags, is_event) in BOTH.into_iter().flat_map(|one| [(one, true), (one, false)]) {
        refuser.each(|nth| {
            let behind = Behind::new(&one, flags);
            let event = fill(behind.queue, there, b'w');
            behind.open_soon();
            let (code, calls) = refuser.during(nth, || match is_event {
                true => call!(event.wait(1, &raw const event)),
                false => call!(queue.finish(behind.queue)),
            });
            let at = format!("{flags:?}, call {nth:?}: {code:?}");
            assert!(nth.is_some() || code == R::SUCCESS, "{at}");
            assert_eq!(call!(event.wait(1, &raw const event)), R::SUCCESS, "{at}");
            assert_eq!(status(event), Status::COMPLETE, "{at}");
            let_go(waited(barrier(one.queue, &[event])));
            let_go(event);
            behind.end(&one);
            calls
        });
    }
    one.free(there);
}

#[test]
fn a_write_that_is_refused_hides_none_before_it_from_readers_on_another_device() {
    let Some(([first, second], refuser)) = One::pair().zip(Refuser::new()) else { return };
    for copies_first in [false, true] {
        refuser.each(|nth| {
            let mem = buffer(&first, b'z');
            let mut seen = [0_u8; BYTES];
            let to = seen.as_mut_ptr().cast();
            let (queue, list, none) = (second.queue, null(), null_mut());
            if copies_first {
                let code =
                    call!(enqueue.mem_buffer_read(queue, mem, true, 0, BYTES, to, 0, list, none));
                assert_eq!(code, R::SUCCESS);
            }
            let behind = Behind::new(&first, NO_FLAGS);
            let before = fill_buffer(behind.queue, mem, b'a', NO_EVENT).unwrap();
            let (over, calls) = refuser.during(nth, || fill_buffer(first.queue, mem, b'b', before));
            assert!(nth.is_some() || over.is_ok(), "{over:?}");
            let list = &raw const before;
            let mut read = NO_EVENT;
            let code =
                call!(enqueue.mem_buffer_read(queue, mem, false, 0, BYTES, to, 1, list, &mut read));
            assert_eq!(code, R::SUCCESS);
            behind.gate.open();
            wait(read);
            let is = |byte: u8| seen.iter().all(|seen| *seen == byte);
            assert!(is(b'a') || is(b'b'), "call {nth:?}, {over:?}: {:?}", &seen[..8]);
            if let Ok(event) = over {
                let_go(event);
            }
            let_go(before);
            let_go(read);
            behind.end(&first);
            assert_eq!(call!(queue.finish(first.queue)), R::SUCCESS);
            assert_eq!(call!(mem.release(mem)), R::SUCCESS);
            calls
        });
    }
}

#[test]
fn a_refused_execution_does_nothing_after_the_next_one_is_complete() {
    let Some((one, refuser)) = one() else { return };
    let (to, from) = (one.device_memory(BYTES), one.device_memory(BYTES));
    for is_first in [true, false] {
        refuser.each(|nth| {
            let commands = copies(&one, to, from);
            let run = |queue| {
                call!(enqueue_exp.command_buffer_exp(queue, commands, 0, null(), null_mut()))
            };
            if !is_first {
                assert_eq!(
                    (run(one.queue), call!(queue.finish(one.queue))),
                    (R::SUCCESS, R::SUCCESS)
                );
            }
            let_go(waited(fill(one.queue, from, b'1')));
            let behind = Behind::new(&one, NO_FLAGS);
            let (code, calls) = refuser.during(nth, || run(behind.queue));
            assert!(nth.is_some() || code == R::SUCCESS);
            behind.open_soon();
            assert_eq!((run(one.queue), call!(queue.finish(one.queue))), (R::SUCCESS, R::SUCCESS));
            let_go(waited(fill(one.queue, from, b'2')));
            behind.end(&one);
            assert_eq!(one.read::<u8, BYTES>(to), [b'1'; BYTES], "call {nth:?}: {code:?}");
            assert_eq!(call!(command_buffer_exp.release_exp(commands)), R::SUCCESS);
            calls
        });
    }
    one.free(to);
    one.free(from);
}
#[test]
fn an_execution_waits_for_the_last_one_though_one_in_between_was_refused() {
    let Some((one, refuser)) = one() else { return };
    let (to, from) = (one.device_memory(BYTES), one.device_memory(BYTES));
    let (commands, other) = (copies(&one, to, from), queue(&one, NO_FLAGS));
    let run =
        |queue, event| call!(enqueue_exp.command_buffer_exp(queue, commands, 0, null(), event));
    refuser.each(|nth| {
        let behind = Behind::new(&one, NO_FLAGS);
        assert_eq!(run(behind.queue, null_mut()), R::SUCCESS);
        let (code, calls) = refuser.during(nth, || run(other, null_mut()));
        let mut last = NO_EVENT;
        assert_eq!(run(one.queue, &mut last), R::SUCCESS);
        std::thread::sleep(Duration::from_millis(2));
        assert_ne!(status(last), Status::COMPLETE, "call {nth:?}: {code:?}");
        behind.end(&one);
        let_go(waited(last));
        calls
    });
    assert_eq!(call!(command_buffer_exp.release_exp(commands)), R::SUCCESS);
    release(other);
    one.free(to);
    one.free(from);
}
/// A command buffer with one copy.
fn copies(one: &One, to: *mut c_void, from: *mut c_void) -> ur_exp_command_buffer_handle_t {
    recorded(one, |commands| {
        let (list, none) = (null(), null_mut());
        [call!(command_buffer_exp.append_usm_memcpy_exp(
            commands,
            to,
            from,
            BYTES,
            0,
            list,
            0,
            null(),
            null_mut(),
            none,
            null_mut()
        ))]
    })
}
/// A command buffer with the commands that this appends.
fn recorded<const N: usize>(
    one: &One,
    append: impl FnOnce(ur_exp_command_buffer_handle_t) -> [R; N],
) -> ur_exp_command_buffer_handle_t {
    let mut commands = ur_exp_command_buffer_handle_t::NULL;
    let (context, device) = (one.context, one.device);
    let code =
        call!(command_buffer_exp.create_exp(context, device, &IN_ORDER_COMMANDS, &mut commands));
    assert_eq!(code, R::SUCCESS);
    assert_eq!(append(commands), [R::SUCCESS; N]);
    assert_eq!(call!(command_buffer_exp.finalize_exp(commands)), R::SUCCESS);
    commands
}
/// The event, once it is complete.
fn waited(event: ur_event_handle_t) -> ur_event_handle_t {
    wait(event);
    event
}

/// What the buffer has on the device of `one`.
fn read(one: &One, mem: ur_mem_handle_t) -> [u8; BYTES] {
    let (mut seen, list, none) = ([0_u8; BYTES], null(), null_mut());
    let (queue, to) = (one.queue, seen.as_mut_ptr().cast());
    let code = call!(enqueue.mem_buffer_read(queue, mem, true, 0, BYTES, to, 0, list, none));
    assert_eq!(code, R::SUCCESS);
    seen
}
#[test]
fn devices_agree_on_what_a_write_left_however_often_the_driver_refuses() {
    let Some(([first, second], refuser)) = One::pair().zip(Refuser::new()) else { return };
    for (times, flags) in [3, 12].into_iter().flat_map(|times| BOTH.map(|flags| (times, flags))) {
        refuser.times(times);
        refuser.each(|nth| {
            let mem = buffer(&first, b'o');
            for one in [&first, &second] {
                assert_eq!(read(one, mem), [b'o'; BYTES]); // each has it
            }
            let host: *mut u8 = Box::leak(Box::new([b'w'; BYTES])).as_mut_ptr();
            let behind = Behind::new(&first, flags);
            behind.open_soon();
            let mut event = NO_EVENT;
            let (code, calls) = refuser.during(nth, || {
                let (queue, from, list, to) = (behind.queue, host.cast(), null(), &mut event);
                call!(enqueue.mem_buffer_write(queue, mem, false, 0, BYTES, from, 0, list, to))
            });
            assert!(nth.is_some() || code == R::SUCCESS, "{code:?}");
            if code != R::SUCCESS {
                unsafe { host.write_bytes(b'c', BYTES) }; // the caller's again
            } else {
                let_go(event);
            }
            assert_eq!(call!(queue.finish(behind.queue)), R::SUCCESS);
            let seen = [&first, &second].map(|one| read(one, mem));
            let is = |byte| seen == [[byte; BYTES]; 2];
            let at = format!("{flags:?}, {times} calls from {nth:?} on: {code:?}");
            assert!(
                is(b'w') || code != R::SUCCESS && is(b'o'),
                "{at}: {:?}",
                seen.map(|one| one[0])
            );
            behind.end(&first);
            assert_eq!(call!(mem.release(mem)), R::SUCCESS);
            calls
        });
    }
    refuser.times(1);
}

/// A native command: fills the buffer, through its native handle, with what its queue does next.
struct Writes {
    at: *mut c_void,
    /// Whether it was called, and whether the driver took the fill.
    has_written: Option<bool>,
}
unsafe extern "C" fn writes(queue: ur_queue_handle_t, data: *mut c_void) {
    let me = unsafe { &mut *data.cast::<Writes>() };
    let (byte, list, none) = (b'w', null(), null_mut());
    let from = (&raw const byte).cast();
    let code = call!(enqueue.usm_fill(queue, me.at, 1, from, BYTES, 0, list, none));
    me.has_written = Some(code == R::SUCCESS);
}
#[test]
fn devices_agree_on_what_a_native_command_left_however_often_the_driver_refuses() {
    let Some(([first, second], refuser)) = One::pair().zip(Refuser::new()) else { return };
    for times in [1, 3, 12] {
        refuser.times(times);
        refuser.each(|nth| {
            let mem = buffer(&first, b'o');
            for one in [&first, &second] {
                assert_eq!(read(one, mem), [b'o'; BYTES]); // each has it
            }
            let mut native = 0;
            let code = call!(mem.get_native_handle(mem, first.device, &mut native));
            assert_eq!(code, R::SUCCESS);
            let at = std::ptr::with_exposed_provenance_mut(native);
            let mut me = Writes { at, has_written: None };
            let data = (&raw mut me).cast();
            let behind = Behind::new(&first, NO_FLAGS);
            behind.open_soon();
            let (code, calls) = refuser.during(nth, || {
                let (queue, mems, list, none) = (behind.queue, &mem, null(), null_mut());
                call!(enqueue_exp.native_command_exp(
                    queue,
                    Some(writes),
                    data,
                    1,
                    mems,
                    null(),
                    0,
                    list,
                    none
                ))
            });
            assert!(nth.is_some() || code == R::SUCCESS, "{code:?}");
            assert!(me.has_written.is_some() || code != R::SUCCESS, "it was not called");
            assert_eq!(call!(queue.finish(behind.queue)), R::SUCCESS);
            let left = if me.has_written == Some(true) { b'w' } else { b'o' };
            let seen = [&first, &second].map(|one| read(one, mem));
            let at = format!("{times} calls from {nth:?} on: {code:?}, {:?}", me.has_written);
            assert_eq!(seen, [[left; BYTES]; 2], "{at}");
            behind.end(&first);
            assert_eq!(call!(mem.release(mem)), R::SUCCESS);
            calls
        });
    }
    refuser.times(1);
}
