//! Objects outlive the release of the objects they were created from: for every kind of object and every
//! parent, all its queries give the same answers before and after.
use super::{
    arguments::Arguments,
    family,
    together::{Query, answer, changes, query},
};
use crate::{
    bench::{Bench, release_entry, word},
    case::{Case, Stop, Verdict},
    ensure, same,
    spec::{Entry, Spec, Type},
};
use ur_sys::ur_result_t as R;

/// The kinds of objects with their parents. Every kind except the context itself has a context.
const CHILDREN: [(&str, &[&str]); 17] = [
    ("Queue", &["Context"]),
    ("Event", &["Queue", "Context"]),
    ("ProfiledEvent", &["Queue", "Context"]),
    ("Mem", &["Context"]),
    ("Part", &["Mem", "Context"]),
    ("Image", &["Context"]),
    ("Sampler", &["Context"]),
    ("PhysicalMem", &["Context"]),
    ("UsmPool", &["Context"]),
    ("Program", &["Context"]),
    ("Kernel", &["Program", "Context"]),
    ("IdleKernel", &["Program", "Context"]),
    ("ExpCommandBuffer", &["Context"]),
    ("FinalizedCommandBuffer", &["Context"]),
    ("UpdatableCommandBuffer", &["Kernel", "Context"]),
    ("ExpGraph", &["Context"]),
    ("ExpExecutableGraph", &["ExpGraph", "Context"]),
];

pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (child, parents) in CHILDREN {
        let entry = release_entry(if child == "Part" { "Mem" } else { child });
        let Some(entry) = entry else { continue };
        let Some((table, _, _)) = Spec::get().entry(entry) else { continue };
        let family = family(&Spec::get().tables[table].name);
        let all_of = parents.join(", ");
        let rule = "objects outlive the release of their parents";
        let name = format!("a {child} answers as before when {all_of} and all else were released");
        all.push(Case::new(family, entry, rule, name, move |b| outlives(b, child)));
    }
    all
}
/// Returns the query entry of objects of a kind.
fn info(kind: &str) -> Option<(&'static Entry, Query)> {
    let object = match kind {
        "ProfiledEvent" => "Event",
        "Part" | "Image" => "Mem",
        "IdleKernel" => "Kernel",
        "FinalizedCommandBuffer" | "UpdatableCommandBuffer" => "ExpCommandBuffer",
        kind => kind,
    };
    let mut entries = Spec::get().tables.iter().flat_map(|table| &table.entries);
    let is_of = |entry: &&Entry| {
        let first = matches!(&entry.params[0].ty, Type::Name(name) if name == object);
        let is_plain = entry.name.ends_with("GetInfo") || entry.name.ends_with("GetInfoExp");
        first && is_plain && !entry.name.contains("Image")
    };
    entries
        .find(|entry| !entry.params.is_empty() && is_of(entry))
        .and_then(|e| Some((e, query(e)?)))
}
fn outlives(b: &Bench, child: &str) -> Verdict {
    // The parents belong to a bench of their own, which releases them when it is dropped.
    let own = Bench::new(b.adapter, b.subject.clone());
    let made = match child {
        "Part" => crate::families::memory::half(&own)?.0,
        child => own.make(child)?,
    };
    let Some((entry, query)) = info(child) else {
        // It has no query; it must exist to be released.
        drop(own);
        return released(b, child, made);
    };
    let mut arguments = Arguments::valid(b, entry)?;
    arguments.words[0] = word(made);
    let all = || -> Vec<_> {
        let variants = query.properties.variants.iter();
        let ask = |value| answer(b.adapter, entry, query, &arguments.words, value);
        variants.map(|variant| (variant.c.clone(), ask(variant.value))).collect()
    };
    let before = all();
    ensure!(before.iter().any(|(_, found)| found.0 == 0), "{child} answers nothing at all");
    drop(own);
    // If a parent was freed too early, new objects may take its place.
    let others: Vec<_> = ["Context", "Queue", "Mem"].into_iter().map(|kind| b.make(kind)).collect();
    for ((name, before), (_, after)) in before.iter().zip(all()) {
        same!((after.0, after.1), (before.0, before.1), "code and size of {name} afterwards");
        ensure!(changes(name) || after.2 == before.2, "{name} is answered otherwise afterwards");
    }
    for (kind, other) in ["Context", "Queue", "Mem"].into_iter().zip(others) {
        released(b, kind, other?)?;
    }
    released(b, child, made)
}
fn released(b: &Bench, kind: &str, made: *mut std::ffi::c_void) -> Verdict {
    let entry = release_entry(if kind == "Part" { "Mem" } else { kind });
    let entry = entry.ok_or_else(|| Stop::failed(format!("{kind}s are not released")))?;
    same!(b.adapter.call(entry, &[word(made)]), Some(R::SUCCESS), "the release of a {kind}");
    Ok(())
}
