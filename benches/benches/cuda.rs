//! CUDA: measures our adapter beside the driver alone, in the same run. Without a driver and a device it says
//! so and measures nothing.
#[path = "cuda/api.rs"]
mod api;
#[path = "cuda/bare.rs"]
mod bare;
#[path = "cuda/chain.rs"]
mod chain;
#[path = "cuda/raw.rs"]
mod raw;

use api::Ur;
use causeway_benches::*;
use std::{
    ffi::CStr,
    hint::black_box,
    time::{Duration, Instant},
};
use ur_sys::ur_event_handle_t;

const GIB: usize = 1 << 30;
const MIB: usize = 1 << 20;
/// Calls in one block, for calls that take microseconds.
const MANY: u32 = 1_000;
/// A kernel with one argument that does nothing.
const PTX: &CStr = c".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing(.param .u64 at)\n{\n  ret;\n}\n";

fn main() -> Result<()> {
    match role().as_deref() {
        Some("importer") => return importer(),
        Some("chain") => return chain::second(),
        Some(other) => return Err(format!("there is no part {other}").into()),
        None => {}
    }
    if !raw::is_there() {
        println!("skipped: there is no CUDA driver with a device");
        return Ok(());
    }
    println!("{}; medians of {BLOCKS} interleaved blocks", raw::names()?);
    raw::start()?;
    let ur = Ur::start()?;
    launches(&ur)?;
    memory(&ur)?;
    foreign(&ur)?;
    copies(&ur)?;
    chain::first()?;
    opens(&ur)
}

fn timed(mut body: impl FnMut() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    body()?;
    Ok(start.elapsed())
}
/// Times `MANY` runs of `body`; afterwards runs `after`, which is not timed.
fn often(
    mut body: impl FnMut() -> Result<()>,
    after: impl FnOnce() -> Result<()>,
) -> Result<Duration> {
    let took = timed(|| (0..MANY).try_for_each(|_| body()))?;
    after()?;
    Ok(took)
}

fn launches(ur: &Ur) -> Result<()> {
    let at = ur.alloc(64)?;
    let kernel = ur.kernel(PTX, c"nothing")?;
    let (function, stream) = (raw::function(PTX, c"nothing")?, raw::stream()?);
    let mut argument = at.addr() as u64;
    Comparison::of(
        "kernel launch, no event",
        BLOCKS,
        || often(|| ur.launch(kernel, at, None), || ur.finish()),
        || often(|| raw::launch(function, &mut argument, stream), || raw::synchronize(stream)),
    )?
    .report(MANY, "cuLaunchKernel", 1.3);
    let event = raw::event()?;
    let mut events = vec![];
    Comparison::of(
        "kernel launch with an event",
        BLOCKS,
        || {
            let took = often(
                || {
                    let mut event = ur_event_handle_t::NULL;
                    ur.launch(kernel, at, Some(&mut event))?;
                    events.push(event);
                    Ok(())
                },
                || ur.finish(),
            );
            events.drain(..).try_for_each(|event| ur.release(event))?;
            took
        },
        || {
            let body = || {
                raw::launch(function, &mut argument, stream)?;
                raw::record(event, stream)
            };
            often(body, || raw::synchronize(stream))
        },
    )?
    .report(MANY, "launch and record", 1.3);
    ur.free(at)
}

fn memory(ur: &Ur) -> Result<()> {
    const TIMES: u32 = 100;
    let block =
        |body: &mut dyn FnMut() -> Result<()>| timed(|| (0..TIMES).try_for_each(|_| body()));
    Comparison::of(
        "allocate and free 1 MiB",
        BLOCKS,
        || block(&mut || ur.free(black_box(ur.alloc(MIB)?))),
        || block(&mut || raw::free(black_box(raw::alloc(MIB)?))),
    )?
    .report(TIMES, "cuMemAlloc, cuMemFree", 0.05);
    // One allocation stays shared, so that the thread that serves importers is running already.
    let (at, other) = (ur.alloc(GIB)?, ur.alloc(MIB)?);
    let kept = ur.get(other)?;
    let mut times: Vec<_> = (0..BLOCKS)
        .map(|_| {
            let start = Instant::now();
            let (data, _) = ur.get(at)?;
            let took = start.elapsed();
            ur.put(data)?;
            Ok(took)
        })
        .collect::<Result<_>>()?;
    println!("{:<44} {:>10.3?}  (limit 2 µs)", "get a handle, warm", median(&mut times));
    ur.put(kept.0)?;
    ur.free(other)?;
    ur.free(at)
}

/// Measures handles of memory that another library of this process allocated, got again while it is exported.
/// The yardstick is the driver's own IPC handle of the same memory, where it has one.
fn foreign(ur: &Ur) -> Result<()> {
    const BYTES: usize = 96 * MIB;
    const TIMES: u32 = 100;
    let linear = raw::alloc(BYTES)?;
    let memories = [
        ("cudaMalloc", linear),
        ("a memory pool", raw::pooled(BYTES)?),
        ("5 mappings of 20 MiB", raw::segment(BYTES, 20 * MIB)?),
        ("48 mappings of 2 MiB", raw::segment(BYTES, 2 * MIB)?),
    ];
    for (name, at) in memories {
        let at = std::ptr::with_exposed_provenance_mut(at as usize);
        let kept = ur.get(at)?;
        let mut got = vec![];
        let compared = Comparison::of(
            format!("get again 96 MiB of {name}"),
            BLOCKS,
            || {
                let took = timed(|| {
                    (0..TIMES).try_for_each(|_| {
                        got.push(ur.get(at)?);
                        Ok(())
                    })
                });
                got.drain(..).try_for_each(|(data, _)| ur.put(data))?;
                took
            },
            || timed(|| (0..TIMES).try_for_each(|_| raw::handle(linear).map(drop))),
        )?;
        println!(
            "{:<44} {:>10.3?}  (limit 2 µs)  cuIpcGetMemHandle {:>10.3?}, control {:.2}",
            compared.what,
            compared.ours / TIMES,
            compared.bare / TIMES,
            compared.control
        );
        ur.put(kept.0)?;
    }
    raw::free(linear)
}

fn copies(ur: &Ur) -> Result<()> {
    let (to, from, stream) = (ur.alloc(GIB)?, ur.alloc(GIB)?, raw::stream()?);
    let (bare_to, bare_from) = (raw::alloc(GIB)?, raw::alloc(GIB)?);
    let compared = Comparison::of(
        "copy 1 GiB within the device",
        21,
        || timed(|| ur.copy(to, from, GIB).and_then(|()| ur.finish())),
        || {
            timed(|| {
                raw::copy(bare_to, bare_from, GIB, stream).and_then(|()| raw::synchronize(stream))
            })
        },
    )?;
    compared.report(1, "cuMemcpyAsync", 1.02);
    [bare_to, bare_from].into_iter().try_for_each(raw::free)?;
    [to, from].into_iter().try_for_each(|at| ur.free(at))
}

/// Serves the importer's requests: `fresh`, a handle of 1 GiB that it has never opened and will close again;
/// `keep`, one that it keeps open.
fn opens(ur: &Ur) -> Result<()> {
    let door = bare::Door::open()?;
    let mut peer = Peer::start("importer")?;
    peer.tell(door.name())?;
    loop {
        let asked = peer.hear()?;
        if asked == "end" {
            return Ok(());
        }
        if asked != "fresh" && asked != "keep" {
            println!("{asked}");
            continue;
        }
        let at = ur.alloc(GIB)?;
        let (data, size) = ur.get(at)?;
        peer.tell(&hex::encode(Ur::bytes((data, size))))?;
        if asked == "keep" {
            continue;
        }
        peer.hear()?; // the importer has opened and closed it
        ur.put(data)?;
        ur.free(at)?;
        ur.finish()?;
    }
}
fn importer() -> Result<()> {
    let name = asked()?.ok_or("the exporter is gone")?;
    let bare = bare::Caller::connect(&name[0], GIB)?;
    raw::start()?;
    let ur = Ur::start()?;
    let handle = |which: &str| -> Result<Vec<u8>> {
        answer(which)?;
        Ok(hex::decode(&asked()?.ok_or("the exporter is gone")?[0])?)
    };
    let compared = Comparison::of(
        "first open of 1 GiB",
        31,
        || {
            let handle = handle("fresh")?;
            let start = Instant::now();
            let at = ur.open(&handle)?;
            let took = start.elapsed();
            ur.close(at)?;
            ur.finish()?;
            answer("opened")?;
            Ok(took)
        },
        || {
            let start = Instant::now();
            let opened = bare.open()?;
            let took = start.elapsed();
            raw::close(opened, GIB)?;
            Ok(took)
        },
    )?;
    let (ratio, control) = (compared.ratio(), compared.control);
    answer(&format!(
        "{:<44} {:>10.3?}  descriptor, import, map {:>10.3?}  ratio {ratio:.2} (at most 1.15), control {control:.2}",
        compared.what, compared.ours, compared.bare
    ))?;
    let handle = handle("keep")?;
    let kept = ur.open(&handle)?;
    let (mut open, mut close) = (vec![], vec![]);
    for _ in 0..BLOCKS {
        let mut opened = vec![];
        let once = |opened: &mut Vec<_>| -> Result<()> {
            opened.push(ur.open(&handle)?);
            Ok(())
        };
        open.push(timed(|| (0..MANY).try_for_each(|_| once(&mut opened)))? / MANY);
        close.push(timed(|| opened.drain(..).try_for_each(|at| ur.close(at)))? / MANY);
    }
    answer(&format!(
        "{:<44} {:>10.3?}  (limit 1 µs)",
        "open again what is open",
        median(&mut open)
    ))?;
    answer(&format!(
        "{:<44} {:>10.3?}  (limit 1 µs)",
        "close what is open elsewhere",
        median(&mut close)
    ))?;
    ur.close(kept)?;
    answer("end")
}
