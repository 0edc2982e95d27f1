//! Several threads that share a queue, an event or a handle: each command runs once and each callback is
//! called once.
use super::threads::{THREADS, back, sent};
use crate::{
    bench::{
        Bench, Usm,
        share::{KINDS, Kind},
    },
    case::{Case, Verdict},
    cases, ensure, must, same,
};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::{Duration, Instant},
};
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    let mut all = cases! { "threads";
        "urEventWait", "several threads may wait", "eight threads wait for the same thousand events", waits;
        "urEventSetCallback", "each callback is called once", "eight threads set callbacks on one event as it completes", callbacks;
        "urEnqueueEventsWaitWithBarrierExt", "the latest signal is the state", "eight threads signal one event, each from a queue of its own", signals;
        "urEnqueueHostTaskExp", "each function is called once", "host tasks of eight threads run once each, one after the other", tasks;
        "urQueueFinish, urQueueFlush", "several threads may finish one queue", "eight threads finish and flush one queue while others enqueue", finish;
        "urEventWait, urQueueFinish", "waits of several threads", "eight threads wait for commands of an out-of-order queue each", out_of_order;
        "urContextCreate, urQueueCreate", "whole lives at once", "eight threads make a context and a queue, use and release them", lives;
    };
    for kind in KINDS {
        let (family, entries) = match kind {
            Kind::Memory => (
                "ipc_memory",
                [
                    "urIPCGetMemHandleExp, urIPCPutMemHandleExp",
                    "urIPCOpenMemHandleExp, urIPCCloseMemHandleExp",
                ],
            ),
            Kind::Physical => (
                "ipc_physical",
                [
                    "urIPCGetPhysMemHandleExp, urIPCPutPhysMemHandleExp",
                    "urIPCOpenPhysMemHandleExp, urIPCClosePhysMemHandleExp",
                ],
            ),
            Kind::Event => (
                "ipc_event",
                ["urIPCGetEventHandleExp, urIPCPutEventHandleExp", "urIPCOpenEventHandleExp"],
            ),
        };
        let rule = "several threads share, open and close at once";
        let name = "eight threads get handles of one object and put them";
        all.push(Case::new(family, entries[0], rule, name, move |b| gets(b, kind)));
        let name = "eight threads of the exporting process open and close one handle";
        all.push(Case::new(family, entries[1], rule, name, move |b| opens(b, kind)));
    }
    all
}
fn waits(b: &Bench) -> Verdict {
    let queue = b.queue()?;
    let gate = b.gate(queue)?;
    let events: Vec<_> =
        (0..1000).map(|_| b.follow(queue, &[]).map(sent)).collect::<Verdict<_>>()?;
    b.together(THREADS, |b, index| {
        let events: Vec<_> = events.iter().map(|at| back(*at)).collect();
        if index == 0 {
            gate.open();
        }
        b.wait(&events)?;
        for event in &events {
            same!(b.status(*event)?, ur_event_status_t::COMPLETE, "a status after the wait");
        }
        Ok(())
    })?;
    for event in events {
        must!(b, event.release(ur_event_handle_t(back(event))));
    }
    Ok(())
}
/// Waits until a function was called `expected` times, and checks that it is not called more.
fn eventually(calls: &AtomicUsize, expected: usize) -> Verdict {
    let deadline = Instant::now() + Duration::from_secs(20);
    while calls.load(SeqCst) < expected {
        let found = calls.load(SeqCst);
        ensure!(Instant::now() < deadline, "{found} calls where {expected} were expected");
        std::thread::yield_now();
    }
    same!(calls.load(SeqCst), expected, "calls");
    Ok(())
}
static CALLED: AtomicUsize = AtomicUsize::new(0);
extern "C" fn called(event: ur_event_handle_t, how: ur_execution_info_t, _: *mut c_void) {
    let is_right = !event.is_null() && how == ur_execution_info_t::COMPLETE;
    CALLED.fetch_add(if is_right { 1 } else { 1_000_000 }, SeqCst);
}
fn callbacks(b: &Bench) -> Verdict {
    CALLED.store(0, SeqCst);
    let (queue, complete) = (b.queue()?, ur_execution_info_t::COMPLETE);
    let gate = b.gate(queue)?;
    let event = sent(b.follow(queue, &[])?);
    b.together(THREADS, |b, index| {
        for round in 0..20 {
            if (index, round) == (0, 10) {
                gate.open();
            }
            let event = ur_event_handle_t(back(event));
            must!(b, event.set_callback(event, complete, Some(called), null_mut()));
        }
        Ok(())
    })?;
    b.wait(&[back(event)])?;
    eventually(&CALLED, THREADS * 20)?;
    must!(b, event.release(ur_event_handle_t(back(event))));
    Ok(())
}
fn signals(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::REUSABLE_EVENTS_SUPPORT_EXP)?;
    let event = sent(b.new_event(ur_exp_event_flags_t::default())?);
    b.together(THREADS, |b, _| {
        let queue = b.new_queue(ur_queue_flags_t::default())?;
        for _ in 0..200 {
            b.signal(queue, back(event), &[])?;
            b.wait(&[back(event)])?;
        }
        b.finish(queue)?;
        must!(b, queue.release(queue));
        Ok(())
    })?;
    b.wait(&[back(event)])?;
    same!(b.status(back(event))?, ur_event_status_t::COMPLETE, "the status when all is done");
    must!(b, event.release(ur_event_handle_t(back(event))));
    Ok(())
}
fn out_of_order(b: &Bench) -> Verdict {
    b.together(THREADS, |b, index| {
        let queue = b.new_queue(ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE)?;
        let at = b.alloc(Usm::Device, 64)?;
        for round in 0..1000_usize {
            let mut events: Vec<ur_event_handle_t> = Vec::new();
            for _ in 0..3 {
                let (count, list) = match events.last() {
                    None => (0, null()),
                    Some(last) => (1, &raw const *last),
                };
                let (mut event, byte) = (ur_event_handle_t::NULL, (&raw const round).cast());
                must!(b, enqueue.usm_fill(queue, at, 3, byte, 63, count, list, &mut event));
                events.push(event);
            }
            match (round + index) % 2 {
                0 => b.wait(&[events[2].0])?,
                _ => b.finish(queue)?,
            }
            for event in events {
                same!(b.status(event.0)?, ur_event_status_t::COMPLETE, "a status after the wait");
                must!(b, event.release(event));
            }
        }
        must!(b, queue.release(queue));
        Ok(())
    })
}
static TASKS: AtomicUsize = AtomicUsize::new(0);
static INSIDE: AtomicUsize = AtomicUsize::new(0);
extern "C" fn task(_: *mut c_void) {
    // On an in-order queue no two tasks run at the same time.
    let alone = INSIDE.fetch_add(1, SeqCst) == 0;
    std::thread::yield_now();
    INSIDE.fetch_sub(1, SeqCst);
    TASKS.fetch_add(if alone { 1 } else { 1_000_000 }, SeqCst);
}
fn tasks(b: &Bench) -> Verdict {
    TASKS.store(0, SeqCst);
    b.together(THREADS, |b, _| {
        let (queue, none) = (b.queue()?, null_mut());
        for _ in 0..100 {
            must!(
                b,
                enqueue_exp.host_task_exp(queue, Some(task), none, null(), 0, null(), null_mut())
            );
        }
        Ok(())
    })?;
    b.finish(b.queue()?)?;
    eventually(&TASKS, THREADS * 100)
}
fn finish(b: &Bench) -> Verdict {
    b.together(THREADS, |b, index| {
        let queue = b.queue()?;
        for _ in 0..50 {
            match index % 4 {
                0 => b.finish(queue)?,
                1 => must!(b, queue.flush(queue)),
                _ => {
                    let event = b.follow(queue, &[])?;
                    b.finish(queue)?;
                    same!(b.status(event)?, ur_event_status_t::COMPLETE, "after finish");
                    must!(b, event.release(ur_event_handle_t(event)));
                }
            }
        }
        Ok(())
    })
}
fn lives(b: &Bench) -> Verdict {
    b.together(THREADS, |b, _| {
        for _ in 0..20 {
            // A bench of its own, whose context and queue end with it.
            let own = Bench::new(b.adapter, b.subject.clone());
            let event = own.follow(own.queue()?, &[])?;
            own.wait(&[event])?;
            must!(own, event.release(ur_event_handle_t(event)));
        }
        Ok(())
    })
}
fn gets(b: &Bench, kind: Kind) -> Verdict {
    b.needs(kind.query())?;
    let object = sent(b.shareable(kind)?);
    b.together(THREADS, |b, _| {
        for _ in 0..50 {
            let given = b.get(kind, back(object))?;
            ensure!(!given.bytes.is_empty(), "a handle of no bytes");
            let code = b.put_code(kind, given.data)?;
            b.succeeded("put", code)?;
        }
        Ok(())
    })
}
fn opens(b: &Bench, kind: Kind) -> Verdict {
    b.needs(kind.query())?;
    let given = b.get(kind, b.shareable(kind)?)?;
    let (bytes, data) = (given.bytes.clone(), given.data);
    b.together(THREADS, |b, _| {
        for _ in 0..50 {
            let opened = b.open(kind, &bytes)?;
            if kind == Kind::Event {
                b.wait(&[opened])?;
            }
            let code = b.close_code(kind, opened)?;
            b.succeeded("close", code)?;
        }
        Ok(())
    })?;
    let code = b.put_code(kind, data)?;
    b.succeeded("put", code)
}
