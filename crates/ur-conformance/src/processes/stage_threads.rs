//! Commands in which several threads of a peer use one handle or one object at once.
use super::{
    stage::{Refusal, Said, Stage, number, ok, unhex, wrong},
    stage_queue::called,
};
use crate::{
    bench::{Bench, Usm, share::Kind},
    case::{Stop, Verdict},
    ensure,
    families::kernel::idle_kernel,
    must, same,
};
use std::{
    ffi::c_void,
    ptr::{null, null_mut, with_exposed_provenance_mut},
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::{Duration, Instant},
};
use ur_sys::*;

/// Maps an object. Where the driver allows only one mapping of each object, waits until no other thread has
/// one.
fn map_in_turn(b: &Bench, object: *mut c_void, bytes: usize) -> Verdict<*mut c_void> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(at) = b.map_again(object, bytes)? {
            return Ok(at);
        }
        ensure!(Instant::now() < deadline, "the object is not mapped in time");
        std::thread::yield_now();
    }
}

const THREADS: usize = 8;
/// How long a thread waits for the others.
const PATIENCE: Duration = Duration::from_secs(30);
const BYTES: usize = 4096;

pub fn act(stage: &mut Stage, words: &[&str]) -> Said {
    match *words {
        // Each thread repeatedly opens the ticket, checks the contents, and closes.
        ["swarm", kind, ticket, rounds, byte] => {
            let (kind, bytes, rounds) = (Kind::named(kind), unhex(ticket), number(rounds)?);
            let byte = number(byte)? as u8;
            stage.bench.needs(kind.query())?;
            stage.bench.together(THREADS, |b, _| -> Verdict {
                for _ in 0..rounds {
                    let object = b.open(kind, &bytes)?;
                    match kind {
                        Kind::Memory => {
                            same!(b.read(object, BYTES)?, [byte; BYTES], "what is shared");
                        }
                        Kind::Physical => {
                            let step = b.granularity()?;
                            let at = map_in_turn(b, object, step)?;
                            same!(b.read(at, BYTES)?, [byte; BYTES], "what is shared");
                            b.unmap(at, step)?;
                        }
                        Kind::Event => b.wait(&[object])?,
                    }
                    let code = b.close_code(kind, object)?;
                    b.succeeded("close", code)?;
                }
                Ok(())
            })?;
            ok()
        }
        // Each thread repeatedly gets a handle and puts it.
        ["swarm-get", kind, name, rounds] => {
            let (kind, rounds) = (Kind::named(kind), number(rounds)?);
            let object = stage.object(name)?.1.expose_provenance();
            stage.bench.together(THREADS, |b, _| {
                let object = with_exposed_provenance_mut(object);
                for _ in 0..rounds {
                    let given = b.get(kind, object)?;
                    same!(b.put_code(kind, given.data)?, ur_result_t::SUCCESS, "a put");
                }
                Ok::<(), Stop>(())
            })?;
            ok()
        }
        // Each thread puts fills into an out-of-order queue of its own, a function of the host's behind them, and a signal of
        // its event behind all of it. Nobody waits here.
        ["swarm-signal", ref names @ ..] => {
            let queues = (0..names.len()).map(|index| stage.queue(&format!("ooo{index}")));
            let queues: Vec<_> = queues
                .map(|queue| Ok(queue?.0.expose_provenance()))
                .collect::<Result<_, Refusal>>()?;
            let events: Vec<_> =
                stage.raws(names)?.into_iter().map(<*mut c_void>::expose_provenance).collect();
            let at = stage.bench.alloc(Usm::Device, 64 * names.len())?.expose_provenance();
            stage.bench.together(names.len(), |b, index| {
                let handle = |all: &[usize]| with_exposed_provenance_mut(all[index]);
                let (queue, event) = (ur_queue_handle_t(handle(&queues)), handle(&events));
                let at = with_exposed_provenance_mut(at + 64 * index);
                let (byte, none) = (7_u8, null_mut());
                let mut last = [ur_event_handle_t::NULL; 1];
                for round in 0..3 {
                    let mut fill = ur_event_handle_t::NULL;
                    let (count, list) = if round == 0 { (0, null()) } else { (1, last.as_ptr()) };
                    let byte = (&raw const byte).cast();
                    must!(b, enqueue.usm_fill(queue, at, 1, byte, 64, count, list, &mut fill));
                    if round > 0 {
                        must!(b, event.release(last[0]));
                    }
                    last = [fill];
                }
                let (call, list) = (Some(called as _), last.as_ptr());
                let no_event = null_mut();
                must!(b, enqueue_exp.host_task_exp(queue, call, none, null(), 1, list, no_event));
                must!(b, event.release(last[0]));
                b.signal(queue, event, &[])
            })?;
            ok()
        }
        // Ends this process while other threads of it enqueue commands and wait for them.
        ["exit-busy"] => {
            let rounds = [const { AtomicUsize::new(0) }; 5];
            stage.bench.together(rounds.len(), |b, index| {
                if index == 0 {
                    let deadline = Instant::now() + PATIENCE;
                    while rounds[1..].iter().any(|one| one.load(SeqCst) < 100) {
                        ensure!(Instant::now() < deadline, "the threads enqueue nothing");
                        std::thread::yield_now();
                    }
                    std::process::exit(0);
                }
                let queue = b.new_queue(ur_queue_flags_t::default())?;
                let at = b.alloc(Usm::Device, 64)?;
                let kernel = idle_kernel(b).ok();
                let (byte, one) = (7_u8, [1_usize]);
                let round = || -> Verdict {
                    let (byte, one) = ((&raw const byte).cast(), one.as_ptr());
                    let (mut event, no_arguments, none) = (ur_event_handle_t::NULL, null(), null());
                    match kernel {
                        Some(kernel) => must!(
                            b,
                            enqueue_exp.kernel_launch_with_args_exp(
                                queue,
                                kernel,
                                1,
                                null(),
                                one,
                                one,
                                0,
                                no_arguments,
                                null(),
                                0,
                                none,
                                &mut event,
                            )
                        ),
                        None => {
                            must!(b, enqueue.usm_fill(queue, at, 1, byte, 64, 0, none, &mut event))
                        }
                    }
                    b.wait(&[event.0])?;
                    must!(b, event.release(event));
                    Ok(())
                };
                while round().is_ok() {
                    rounds[index].fetch_add(1, SeqCst);
                }
                loop {
                    std::thread::park(); // refused, since the process ends
                }
            })?;
            ok()
        }
        _ => Err(wrong(format!("no such line: {words:?}"))),
    }
}
