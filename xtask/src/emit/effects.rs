//! Generates `crates/ur-loader/src/layers/rows.rs`: what each entry does to its objects.
use super::{NOTICE, Output, rustfmt, wrapped};
use crate::{
    model::{Direction, Entry, Param, Role, Spec, Type},
    names,
};
use std::fmt::Write;

/// Generates the file.
pub fn file(spec: &Spec) -> Result<Output, String> {
    let path = "crates/ur-loader/src/layers/rows.rs".into();
    Ok(Output { path, text: rustfmt(&rows(spec)?)? })
}

/// Entries that end objects without a reference count.
const ENDS: &[(&str, &str)] = &[
    ("urIPCClosePhysMemHandleExp", "phys_mem"),
    ("urUSMPoolDestroyExp", "pool"),
    ("urGraphDestroyExp", "graph"),
    ("urGraphExecutableGraphDestroyExp", "executable_graph"),
];
/// Kinds of objects that entries list without giving the caller a reference.
const LISTED: &[&str] = &["Platform", "Device"];

fn rows(spec: &Spec) -> Result<String, String> {
    let mut s = format!(
        "{NOTICE}//! What each entry does to the objects that it is given.\n\
         #![allow(non_upper_case_globals, missing_docs, reason = \"each has its entry's name\")]\n\
         use super::effect::{{Act::*, Class, Effect, Holding::*, Kind, Row, Size::*, Span::*, rows}};\nuse crate::print::calls;\n\nrows! {{\n"
    );
    for e in spec.tables.iter().flat_map(|t| &t.entries) {
        let mut effects = Vec::new();
        for (i, p) in e.params.iter().enumerate() {
            if let Some((kind, act)) = act(spec, e, p)? {
                effects.push(format!("{i} {kind}: {act}"));
            }
        }
        let spans = e.params.iter().enumerate().filter_map(|(i, p)| span(e, i, p));
        let mut row = format!("{} ({})", names::function(&e.name), effects.join(", "));
        for (word, all) in [("touches", spans.collect()), ("and", holdings(e)?)] {
            if !all.is_empty() {
                let _ = write!(row, " {word} [{}]", all.join(", "));
            }
        }
        s.push_str(&wrapped(&(row + ";"), 4));
    }
    s.push_str("}\n");
    Ok(s)
}
fn act(spec: &Spec, e: &Entry, p: &Param) -> Result<Option<(String, String)>, String> {
    let at = |name: &str| e.params.iter().position(|p| p.name == name);
    if let Role::Answer { name, size } = &p.role {
        let (Some(name), Some(size)) = (at(name), at(size)) else { return Ok(None) };
        let written = p.direction != Direction::In;
        return Ok(written.then(|| ("Any".into(), format!("Answer({name}, {size})"))));
    }
    let base = p.ty.base();
    if !spec.is_handle(base) || base == "LoaderConfig" {
        return Ok(None);
    }
    let count = match &p.role {
        Role::List(n) | Role::WaitList(n) => Some(at(n).ok_or(format!("{}: no {n}", e.name))?),
        _ => None,
    };
    let counted = super::shape::counting(spec, e);
    let ends = ENDS.contains(&(e.name.as_str(), p.name.as_str()));
    let looked_up = LISTED.contains(&base) && (e.name.contains("Get"));
    let act = match (&p.ty, p.direction, count) {
        (Type::Name(_), ..) => match counted {
            Some((_, true)) => "Release".into(),
            Some((_, false)) => "Retain".into(),
            None if ends || p.role == Role::Released => "Release".into(),
            None => "Use".into(),
        },
        (_, Direction::In, Some(n)) => format!("UseList({n})"),
        (_, Direction::In, None) => "UseAt".into(),
        (_, _, Some(n)) if looked_up => format!("NoteList({n})"),
        (_, _, Some(n)) => format!("MakeList({n})"),
        _ if e.name == "urEnqueueEventsWaitWithBarrierExt" => "MakeOrSignal".into(),
        _ if looked_up || e.name.contains("GetDefault") || e.name.contains("GetDevicePool") => {
            "Note".into()
        }
        _ => "Make".into(),
    };
    Ok(Some((base.strip_prefix("Exp").unwrap_or(base).into(), act)))
}
/// The resources identified by an address that entries give: the entry, the parameter for the address, the
/// class, the name, and the length, as a variant of `Size` with names of parameters.
const GIVES: &[(&str, &str, &str, &str, &str)] = &[
    ("urUSMHostAlloc", "mem", "Usm", "host USM", "Bytes(size)"),
    ("urUSMDeviceAlloc", "mem", "Usm", "device USM", "Bytes(size)"),
    ("urUSMSharedAlloc", "mem", "Usm", "shared USM", "Bytes(size)"),
    ("urUSMPitchedAllocExp", "mem", "Usm", "pitched USM", "Pitched(result_pitch, height)"),
    ("urEnqueueUSMHostAllocExp", "mem", "Usm", "host USM", "Bytes(size)"),
    ("urEnqueueUSMDeviceAllocExp", "mem", "Usm", "device USM", "Bytes(size)"),
    ("urEnqueueUSMSharedAllocExp", "mem", "Usm", "shared USM", "Bytes(size)"),
    ("urMemoryExportAllocExportableMemoryExp", "mem", "Usm", "exportable USM", "Bytes(size)"),
    ("urVirtualMemReserve", "start_ret", "Range", "range of addresses", "Bytes(size)"),
    (
        "urIPCGetMemHandleExp",
        "ipc_mem_handle_data",
        "Ticket",
        "IPC handle of USM",
        "At(ipc_mem_handle_data_size_ret)",
    ),
    (
        "urIPCGetPhysMemHandleExp",
        "ipc_phys_mem_handle_data",
        "Ticket",
        "IPC handle of physical memory",
        "At(ipc_phys_mem_handle_data_size_ret)",
    ),
    (
        "urIPCGetEventHandleExp",
        "ipc_event_handle_data",
        "Ticket",
        "IPC handle of an event",
        "At(ipc_event_handle_data_size_ret)",
    ),
    ("urIPCOpenMemHandleExp", "mem", "Opened", "memory of an IPC handle", ""),
];
/// The resources that entries take back: the entry, the parameter with the address, the class.
const TAKES: &[(&str, &str, &str)] = &[
    ("urUSMFree", "mem", "Usm"),
    ("urEnqueueUSMFreeExp", "mem", "Usm"),
    ("urMemoryExportFreeExportableMemoryExp", "mem", "Usm"),
    ("urVirtualMemFree", "start", "Range"),
    ("urIPCPutMemHandleExp", "ipc_mem_handle_data", "Ticket"),
    ("urIPCPutPhysMemHandleExp", "ipc_phys_mem_handle_data", "Ticket"),
    ("urIPCPutEventHandleExp", "ipc_event_handle_data", "Ticket"),
    ("urIPCCloseMemHandleExp", "mem", "Opened"),
];

fn holdings(e: &Entry) -> Result<Vec<String>, String> {
    let at = |name: &str| {
        let found = e.params.iter().position(|p| p.name == name);
        found.ok_or(format!("{} has no parameter {name}", e.name))
    };
    let mut all = Vec::new();
    for (_, param, class, what, size) in GIVES.iter().filter(|g| g.0 == e.name) {
        let size = match size.trim_end_matches(')').split_once('(') {
            None => "None".into(),
            Some((how, of)) => {
                let of: Vec<_> = of.split(", ").map(at).collect::<Result<_, _>>()?;
                let of: Vec<_> = of.iter().map(usize::to_string).collect();
                format!("Some({how}({}))", of.join(", "))
            }
        };
        all.push(format!(
            "Gives {{ param: {}, class: Class::{class}, what: {what:?}, size: {size}, pool: {:?} }}",
            at(param)?,
            at("pool").ok()
        ));
    }
    for (_, param, class) in TAKES.iter().filter(|t| t.0 == e.name) {
        all.push(format!("Takes {{ param: {}, class: Class::{class} }}", at(param)?));
    }
    Ok(all)
}
/// Returns the part of an operand that is accessed, if the parameters determine it.
fn span(e: &Entry, i: usize, p: &Param) -> Option<String> {
    let (from, size) = p.bounds.as_ref()?;
    let at = |name: &str| e.params.iter().position(|p| p.name == name);
    if let Some(region) = at(size).filter(|i| e.params[*i].ty.base() == "RectRegion") {
        let block = format!("param: {i}, block: ({}, {region})", at(from)?);
        if e.name.contains("Image") {
            return Some(format!("Image {{ {block} }}"));
        }
        // The pitches are named like the origin.
        let pitch = |of: &str| at(&format!("{}{of}_pitch", from.strip_suffix("origin")?));
        let pitches = (pitch("row")?, pitch("slice")?);
        return Some(format!("Rect {{ {block}, pitches: {pitches:?} }}"));
    }
    let by = match size.split_once(" * ") {
        Some((one, other)) => format!("Product({}, {})", at(one)?, at(other)?),
        None => format!("Bytes({})", at(size)?),
    };
    match (p.ty.pointee().is_some(), from.as_str()) {
        (true, "0") => Some(format!("Usm {{ param: {i}, size: {by} }}")),
        (false, from) => Some(format!("Buffer {{ param: {i}, from: {}, size: {by} }}", at(from)?)),
        _ => None,
    }
}
