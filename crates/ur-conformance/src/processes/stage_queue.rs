//! Commands of a peer about what stands in its queues: barriers, recorded commands, functions of the host's, and a forked child that has
//! inherited it all.
#![expect(unsafe_code, reason = "fork, and the C caller")]
use super::stage::{Said, Stage, number, ok, wrong};
use crate::{
    ask,
    bench::{Bench, Usm, share::Kind},
    case::{Stop, Verdict},
    ensure,
    families::command_buffer,
    must,
};
use std::{
    ffi::c_void,
    io::{Read as _, Write as _},
    ptr::{null, with_exposed_provenance_mut},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
};
use ur_lock::locked;
use ur_sys::*;

static CALLS: AtomicUsize = AtomicUsize::new(0);
pub unsafe extern "C" fn called(_: *mut c_void) {
    CALLS.fetch_add(1, SeqCst);
}

pub fn act(stage: &mut Stage, words: &[&str]) -> Said {
    match *words {
        // A command buffer that fills memory.
        ["record", name] => {
            let at = stage.bench.alloc(Usm::Device, 4096)?;
            let buffer = command_buffer::new(&stage.bench, true)?;
            command_buffer::fill(&stage.bench, buffer, at, 1)?;
            stage.check(ask!(stage.bench, command_buffer_exp.finalize_exp(buffer)))?;
            stage.recorded.insert(name.into(), buffer);
            ok()
        }
        ["run", queue, name, buffer, ref after @ ..] => {
            let (queue, after) = (stage.queue(queue)?, stage.raws(after)?);
            let buffer = *stage.recorded.get(buffer).ok_or_else(|| wrong("it is not recorded"))?;
            let (list, mut event) = (after.as_ptr().cast(), ur_event_handle_t::NULL);
            let (count, list) = (after.len() as u32, if after.is_empty() { null() } else { list });
            let b = &stage.bench;
            let code =
                ask!(b, enqueue_exp.command_buffer_exp(queue, buffer, count, list, &mut event));
            stage.check(code)?;
            stage.objects.insert(name.into(), (Kind::Event, event.0));
            ok()
        }
        // Enqueues a function that counts its calls.
        ["call", queue, name, ref after @ ..] => {
            let (queue, after) = (stage.queue(queue)?, stage.raws(after)?);
            let (list, mut event) = (after.as_ptr().cast(), ur_event_handle_t::NULL);
            let (count, list) = (after.len() as u32, if after.is_empty() { null() } else { list });
            let nothing = std::ptr::null_mut();
            let code = ask!(
                stage.bench,
                enqueue_exp.host_task_exp(
                    queue,
                    Some(called),
                    nothing,
                    null(),
                    count,
                    list,
                    &mut event
                )
            );
            stage.check(code)?;
            stage.objects.insert(name.into(), (Kind::Event, event.0));
            ok()
        }
        // A barrier behind these events.
        ["fence", queue, name, ref after @ ..] => {
            let (queue, after) = (stage.queue(queue)?, stage.raws(after)?);
            let (list, mut event) = (after.as_ptr().cast(), ur_event_handle_t::NULL);
            let (count, list) = (after.len() as u32, if after.is_empty() { null() } else { list });
            let b = &stage.bench;
            let code = ask!(b, enqueue.events_wait_with_barrier(queue, count, list, &mut event));
            stage.check(code)?;
            stage.objects.insert(name.into(), (Kind::Event, event.0));
            ok()
        }
        ["calls"] => Ok(CALLS.load(SeqCst).to_string()),
        // A forked child that ends at once, as programs end.
        ["fork-exit"] => {
            const STATUS: libc::c_int = 7;
            // SAFETY: no other thread of this program holds a lock that the child takes, but for those of the adapter.
            match unsafe { libc::fork() } {
                0 => {
                    // SAFETY: only sets a timer, which ends the process if it hangs.
                    unsafe { libc::alarm(15) };
                    // SAFETY: ends the child with what its parent has registered for that.
                    unsafe { libc::exit(STATUS) }
                }
                child if child > 0 => {
                    let mut status = 0;
                    // SAFETY: `child` is a child of this process, and `status` is writable.
                    unsafe { libc::waitpid(child, &raw mut status, 0) };
                    let is_good = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == STATUS;
                    if is_good { ok() } else { Ok(format!("the wait status {status:#x}")) }
                }
                _ => Err(wrong("fork failed")),
            }
        }
        // As many forked children ask and release an event of this process while another thread of it submits commands. The
        // answer has the codes that the last child got.
        ["inherit", children, name] => {
            let (children, event) = (number(children)?, stage.object(name)?.1.expose_provenance());
            let (is_over, codes) = (AtomicBool::new(false), Mutex::new(String::new()));
            stage.bench.together(2, |b, index| {
                if index == 0 {
                    let queue = b.new_queue(ur_queue_flags_t::default())?;
                    while !is_over.load(SeqCst) {
                        let event = b.follow(queue, &[])?;
                        b.wait(&[event])?;
                        must!(b, event.release(ur_event_handle_t(event)));
                    }
                    return Ok(());
                }
                let heirs = (0..children).try_for_each(|_| {
                    *locked(&codes) = heir(b, with_exposed_provenance_mut(event))?;
                    Ok(())
                });
                is_over.store(true, SeqCst);
                heirs
            })?;
            Ok(locked(&codes).clone())
        }
        _ => Err(wrong(format!("no such line: {words:?}"))),
    }
}
/// What a forked child is answered that asks, awaits and releases an event of its parent.
fn heir(b: &Bench, event: *mut c_void) -> Verdict<String> {
    let failed = |what: &str| Stop::failed(format!("{what} failed"));
    let (mut from, mut to) = std::io::pipe().map_err(|_| failed("pipe"))?;
    // SAFETY: no other thread of this program holds a lock that the child takes, but for those of the adapter.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: only sets a timer, which ends the process if it hangs.
            unsafe { libc::alarm(15) };
            let handle = ur_event_handle_t(event);
            let (name, mut status) = (ur_event_info_t::COMMAND_EXECUTION_STATUS, 0_u32);
            let (room, nothing) = ((&raw mut status).cast(), std::ptr::null_mut());
            let codes = || -> Verdict<String> {
                let asked = ask!(b, event.get_info(handle, name, 4, room, nothing));
                let waited = b.wait_code(&[event])?;
                let released = ask!(b, event.release(handle));
                Ok(format!("{asked:?} {waited:?} {released:?}"))
            };
            let said = codes().unwrap_or_else(|_| "no entry".into());
            let failed = to.write_all(said.as_bytes()).is_err();
            // SAFETY: ends the child without running the exit handlers of the parent.
            unsafe { libc::_exit(i32::from(failed)) }
        }
        child if child > 0 => {
            drop(to);
            let (mut said, mut status) = (String::new(), 0);
            from.read_to_string(&mut said).map_err(|_| failed("read"))?;
            // SAFETY: `child` is a child of this process, and `status` is writable.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            ensure!(
                status == 0,
                "a forked child with an inherited event ended with status {status}"
            );
            Ok(said)
        }
        _ => Err(failed("fork")),
    }
}
