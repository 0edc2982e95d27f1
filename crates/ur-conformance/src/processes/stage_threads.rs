//! Commands in which several threads of a peer use one handle or one object at once.
use super::stage::{Said, Stage, number, ok, unhex, wrong};
use crate::{
    bench::{Bench, share::Kind},
    case::{Stop, Verdict},
    ensure, same,
};
use std::{
    ffi::c_void,
    time::{Duration, Instant},
};
use ur_sys::ur_result_t;

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
                let object = std::ptr::with_exposed_provenance_mut(object);
                for _ in 0..rounds {
                    let given = b.get(kind, object)?;
                    same!(b.put_code(kind, given.data)?, ur_result_t::SUCCESS, "a put");
                }
                Ok::<(), Stop>(())
            })?;
            ok()
        }
        _ => Err(wrong(format!("no such line: {words:?}"))),
    }
}
