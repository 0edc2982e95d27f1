//! Resource limits that are reached at a sharing entry, on either side, each with its own code; and devices
//! that do not belong to the context. A refused call works once the limit is raised, and releasing needs no
//! resources.
//!
//! Of the eleven sharing entries, the three gets and the three opens can exhaust a resource. Memory is
//! limited by `RLIMIT_AS` in the calling process. Not tested: lack of memory in an open of physical memory,
//! which maps nothing before the program does; and exhaustion in put and close, which allocate nothing, as
//! the cases without descriptors show.
use super::{
    SHARED, Shared,
    peer::{Peer, Place},
    stage::unhex,
};
use crate::{
    ask,
    bench::{Bench, share::Kind},
    case::{Case, Stop, Verdict},
    ensure, must,
};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_sys::*;

const RESOURCES: &str =
    "UR_RESULT_ERROR_OUT_OF_RESOURCES when descriptors or mappings are exhausted";
const MEMORY: &str = "UR_RESULT_ERROR_OUT_OF_HOST_MEMORY or OUT_OF_DEVICE_MEMORY when memory is";
/// No descriptors beyond standard input, output and error.
const NONE: &str = "limit 3";
const ENOUGH: &str = "limit 1024";

pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for s in &SHARED {
        all.extend([
            s.case(s.get, RESOURCES, "without a descriptor left, get is OUT_OF_RESOURCES, and works later", get),
            s.case(s.get, MEMORY, "without addresses left, get is OUT_OF_HOST_MEMORY or OUT_OF_DEVICE_MEMORY, and works later", get_without_addresses),
            s.case(s.put, "gives back", "put works without a descriptor left", put),
            s.case(s.open, RESOURCES, "an importer without a descriptor left opens nothing, with OUT_OF_RESOURCES, and later does", open),
            s.case(s.open, RESOURCES, "of an exporter without a descriptor left nothing is opened, with OUT_OF_RESOURCES, and later it is", exporter),
            s.case(s.close, "gives back", "what was opened is closed without a descriptor left", close),
        ]);
        if s.kind != "event" {
            let rule = "UR_RESULT_ERROR_INVALID_DEVICE for a device outside of the context";
            all.push(s.case(
                s.open,
                rule,
                "another process's handle is not opened for a device outside of the context",
                foreign_device,
            ));
        }
        if s.kind != "physical" {
            all.push(s.case(
                s.open,
                RESOURCES,
                "an importer without a mapping left opens nothing, with OUT_OF_RESOURCES",
                mappings,
            ));
            all.push(s.case(s.open, MEMORY, "an importer without addresses left opens nothing, with OUT_OF_HOST_MEMORY or OUT_OF_DEVICE_MEMORY", addresses));
        }
    }
    all
}
fn get(b: &Bench, s: &Shared) -> Verdict {
    let place = Place::new(b)?;
    let mut exporter = place.peer()?;
    exporter.must(&format!("make {} it", s.kind))?;
    exporter.must(NONE)?;
    exporter.refused(&format!("get {} it", s.kind), "OUT_OF_RESOURCES")?;
    exporter.must(ENOUGH)?;
    let ticket = exporter.must(&format!("get {} it", s.kind))?;
    place.peer()?.must(&format!("cycle {} {ticket} 1", s.kind))?;
    Ok(())
}
/// The first get of a process needs more than later ones: the memory that is shared with importers, and the
/// thread that serves them.
fn get_without_addresses(b: &Bench, s: &Shared) -> Verdict {
    let place = Place::new(b)?;
    let mut exporter = place.peer()?;
    exporter.must(&format!("make {} it", s.kind))?;
    let get = format!("get {} it", s.kind);
    exporter.must("limit-addresses 0")?;
    let answer = exporter.ask(&get)?;
    ensure!(is_of_memory(&answer) || !answer.starts_with('!'), "answered {answer}");
    exporter.must("unlimit-addresses")?;
    let ticket = exporter.must(&get)?;
    place.peer()?.must(&format!("cycle {} {ticket} 1", s.kind))?;
    if !answer.starts_with('!') {
        return Err(Stop::skipped("getting takes no addresses of this process here"));
    }
    Ok(())
}
/// Whether the answer is that memory is exhausted.
fn is_of_memory(answer: &str) -> bool {
    let codes = ["HOST", "DEVICE"].map(|of| format!("!UR_RESULT_ERROR_OUT_OF_{of}_MEMORY"));
    codes.iter().any(|code| answer.starts_with(code))
}
fn put(b: &Bench, s: &Shared) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    exporter.must(NONE)?;
    exporter.must(&format!("put {} {ticket}", s.kind))?;
    exporter.must(ENOUGH)?;
    importer.refused(&format!("open {} there {ticket}", s.kind), "INVALID_VALUE")?;
    Ok(())
}
fn open(b: &Bench, s: &Shared) -> Verdict {
    let (_place, _exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    importer.must(NONE)?;
    importer.refused(&format!("open {} there {ticket}", s.kind), "OUT_OF_RESOURCES")?;
    importer.must(ENOUGH)?;
    importer.must(&format!("cycle {} {ticket} 2", s.kind))?;
    Ok(())
}
fn exporter(b: &Bench, s: &Shared) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    exporter.must(ENOUGH)?;
    exporter.must("fill-descriptors")?;
    importer.refused(&format!("open {} there {ticket}", s.kind), "OUT_OF_RESOURCES")?;
    exporter.must("empty-descriptors")?;
    importer.must(&format!("cycle {} {ticket} 2", s.kind))?;
    Ok(())
}
fn close(b: &Bench, s: &Shared) -> Verdict {
    let (_place, _exporter, mut importer, ticket) = Place::shared(b, s.kind)?;
    importer.must(&format!("open {} there {ticket}", s.kind))?;
    importer.must(NONE)?;
    importer.must(&format!("close {} there", s.kind))?;
    importer.must(ENOUGH)?;
    importer.must(&format!("cycle {} {ticket} 2", s.kind))?;
    Ok(())
}
/// An importer that is connected to the exporter already, so that only the open itself needs resources.
fn connected(place: &Place, exporter: &mut Peer) -> Verdict<Peer> {
    let mut importer = place.peer()?;
    let other = exporter.shares("physical", "other")?;
    importer.must(&format!("open physical other {other}"))?;
    Ok(importer)
}
fn mappings(b: &Bench, s: &Shared) -> Verdict {
    b.needs(ur_device_info_t::IPC_PHYSICAL_MEMORY_SUPPORT_EXP)?;
    let place = Place::new(b)?;
    let mut exporter = place.peer()?;
    let ticket = exporter.shares(s.kind, "it")?;
    let mut importer = connected(&place, &mut exporter)?;
    importer.must_slowly("fill-maps")?;
    importer.refused(&format!("open {} there {ticket}", s.kind), "OUT_OF_RESOURCES")?;
    Ok(())
}
fn addresses(b: &Bench, s: &Shared) -> Verdict {
    b.needs(ur_device_info_t::IPC_PHYSICAL_MEMORY_SUPPORT_EXP)?;
    let place = Place::new(b)?;
    let mut exporter = place.peer()?;
    let open = match s.has_bytes() {
        true => format!("many-open {}", exporter.must("many-get 1 67108864")?),
        false => format!("open event there {}", exporter.shares("event", "it")?),
    };
    let mut importer = connected(&place, &mut exporter)?;
    importer.must("limit-addresses 4")?;
    let answer = importer.ask(&open)?;
    if answer == "ok" {
        return Err(Stop::skipped("opening takes no addresses of this process here"));
    }
    ensure!(is_of_memory(&answer), "answered {answer}");
    importer.must("unlimit-addresses")?;
    importer.must(&open)?;
    Ok(())
}
fn foreign_device(b: &Bench, s: &Shared) -> Verdict {
    let kind = Kind::named(s.kind);
    b.needs(kind.query())?;
    let parts = crate::families::device::parts(b)?;
    let place = Place::new(b)?;
    let mut exporter = place.neighbour()?;
    let ticket = unhex(&exporter.shares(s.kind, "it")?);
    let mut context = ur_context_handle_t::NULL;
    must!(b, context.create(1, &parts[0], null(), &mut context));
    let (data, size, device) =
        (ticket.as_ptr().cast_mut().cast::<c_void>(), ticket.len(), parts[1]);
    let mut object = null_mut::<c_void>();
    let to = &raw mut object;
    let code = match kind {
        Kind::Memory => ask!(b, ipc_exp.open_mem_handle_exp(context, device, data, size, to)),
        _ => ask!(b, ipc_exp.open_phys_mem_handle_exp(context, device, data, size, to.cast())),
    };
    b.was_refused(s.open, code, ur_result_t::ERROR_INVALID_DEVICE)?;
    ensure!(object.is_null(), "a result is written");
    must!(b, context.release(context));
    parts.iter().try_for_each(|part| {
        must!(b, device.release(*part));
        Ok(())
    })
}
