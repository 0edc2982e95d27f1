//! Valid wait lists: a command that waits for an incomplete event is incomplete, and completes when the event
//! does. The arguments give the command work to do.
use super::{arguments::Arguments, words::with_event};
use crate::{
    bench::{Bench, word},
    case::{Case, Stop, Verdict},
    ensure,
    raw::Word,
    same,
    spec::{Entry, Param, Type},
};
use std::ffi::c_void;
use ur_sys::{ur_event_status_t, ur_queue_flags_t, ur_result_t as R};

pub fn cases(family: &'static str, entry: &'static Entry) -> Vec<Case> {
    let is_command = entry.name.starts_with("urEnqueue");
    let list = entry.params.iter().position(|param| param.wait_list.is_some());
    let out = entry.params.iter().position(is_event);
    let (Some(list), Some(out), true) = (list, out, is_command) else { return Vec::new() };
    let rule = "a command waits for the events of its list";
    let each = [
        (true, "a command that waits is complete when its event is, and not before"),
        (false, "a command that waits for what is complete gets done"),
    ];
    let case = |(held, name): (bool, &str)| {
        Case::new(family, &entry.name, rule, name, move |b| waits(b, entry, list, out, held))
    };
    // A native command may run inside the call, and wait for its list there.
    let blocks = entry.name == "urEnqueueNativeCommandExp";
    each.into_iter().filter(|(held, _)| !(blocks && *held)).map(case).collect()
}
pub fn is_event(param: &Param) -> bool {
    let event = Type::Pointer(Box::new(Type::Name("Event".into())));
    param.ty == event && (param.out || param.inout)
}
fn waits(b: &Bench, entry: &'static Entry, list: usize, out: usize, held: bool) -> Verdict {
    let mut arguments = Arguments::valid(b, entry)?;
    let other = b.new_queue(ur_queue_flags_t::default())?;
    let gate = if held { Some(b.gate(other)?) } else { None };
    let first = b.follow(other, &[])?;
    if !held {
        b.wait(&[first])?;
    }
    with_event(&mut arguments, list, first)?;
    if let Some(blocking) = entry.params.iter().position(|p| p.name.starts_with("blocking")) {
        arguments.words[blocking] = Word::One(0);
    }
    let code = arguments.call()?;
    if code == R::ERROR_INVALID_VALUE && entry.name.contains("DeviceGlobalVariable") {
        return Err(Stop::skipped("the suite has no program with a variable"));
    }
    b.succeeded(&entry.name, code)?;
    let made = arguments.areas.get(&out).map_or(0, |area| area.number(0, 8)) as usize;
    let made = std::ptr::with_exposed_provenance_mut::<c_void>(made);
    crate::bench::exists(made)?;
    if let Some(gate) = &gate {
        b.meanwhile()?;
        let early = b.status(made)?;
        ensure!(early != ur_event_status_t::COMPLETE, "complete before what it waits for");
        gate.open();
    }
    b.wait(&[made])?;
    same!(b.status(made)?, ur_event_status_t::COMPLETE, "the status after the wait");
    for event in [made, first] {
        b.adapter.call("urEventRelease", &[word(event)]);
    }
    b.adapter.call("urQueueRelease", &[word(other.0)]);
    Ok(())
}
