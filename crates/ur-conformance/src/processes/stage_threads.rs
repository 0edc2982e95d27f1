//! What several threads of a peer do at once with one handle, or with one object.
use super::stage::{Said, Stage, number, ok, unhex, wrong};
use crate::{
    bench::share::Kind,
    case::{Stop, Verdict},
    same,
};
use ur_sys::ur_result_t;

const THREADS: usize = 8;
const BYTES: usize = 4096;

pub fn act(stage: &mut Stage, words: &[&str]) -> Said {
    match *words {
        // Each thread opens, sees the byte that is there, and closes, so many times.
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
                            let at = b.map(object, step)?;
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
        // Each thread gets a handle and puts it, so many times.
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
