//! The rules that follow from parameters themselves, and the documented conditions on them: each is violated
//! in turn, and the entry must return the code and write nothing.
use super::{
    arguments::Arguments,
    code,
    solve::{provoke, text},
};
use crate::{
    case::{Case, Stop},
    spec::{Entry, Param, Spec, Type, When},
};

/// A value that no enumeration has.
const NO_ENUMERATOR: u64 = 0x7fff_fff0;

pub fn cases(family: &'static str, entry: &'static Entry) -> Vec<Case> {
    let mut cases = Vec::new();
    for (index, param) in entry.params.iter().enumerate() {
        cases.extend(null(family, entry, index, param));
        cases.extend(number(family, entry, index, param));
        cases.extend(members(family, entry, index, param));
        cases.extend(other_kind(family, entry, index, param));
        if param.name == "sync_point_wait_list" {
            cases.push(sync_point(family, entry, index, param));
        }
        if param.wait_list.is_some() {
            cases.extend(wait_list(family, entry, index, param));
        }
    }
    for fault in &entry.errors {
        if let When::Holds(condition) = &fault.when {
            let said = text(condition);
            let (c, number) = code(&fault.code);
            let short = c.trim_start_matches("UR_RESULT_ERROR_").to_owned();
            cases.push(Case::new(
                family,
                &entry.name,
                format!("{c} if {said}"),
                format!("{short} if {said}, and nothing is written"),
                move |bench| {
                    let mut arguments = Arguments::valid(bench, entry)?;
                    if !provoke(&mut arguments, entry, &fault.code, condition) {
                        return Err(Stop::skipped("no arguments make only this condition true"));
                    }
                    arguments.refused(&[number])
                },
            ));
        }
    }
    cases
}

/// Creates a case in which one argument is made invalid.
fn spoilt(
    family: &'static str,
    entry: &'static Entry,
    what: &str,
    codes: &[&str],
    spoil: impl Fn(&mut Arguments<'_>) -> Option<()> + Send + Sync + 'static,
) -> Case {
    let numbers: Vec<_> = codes.iter().map(|name| code(name).1).collect();
    let short = code(codes[0]).0;
    let short = short.trim_start_matches("UR_RESULT_ERROR_");
    let unknown = "the adapter does not know the property asked for";
    let rule = match codes.get(1) {
        Some(second) => format!("{}: {unknown}", code(second).0),
        None => format!("{} if {what}", code(codes[0]).0),
    };
    let name = format!("{what} is {short}, and nothing is written");
    Case::new(family, &entry.name, rule, name, move |bench| {
        let mut arguments = Arguments::valid(bench, entry)?;
        spoil(&mut arguments).ok_or_else(|| Stop::skipped("the argument cannot be spoilt so"))?;
        arguments.refused(&numbers)
    })
}
fn null(
    family: &'static str,
    entry: &'static Entry,
    index: usize,
    param: &'static Param,
) -> Option<Case> {
    if param.optional {
        return None;
    }
    let is_callback = matches!(&param.ty, Type::Name(name) if Spec::get().callbacks.contains(name));
    let fault = match &param.ty {
        Type::Pointer(_) => "InvalidNullPointer",
        _ if is_callback => "InvalidNullPointer",
        ty if Spec::get().is_handle(ty) => "InvalidNullHandle",
        _ => return None,
    };
    let what = format!("a null {}", param.name);
    Some(spoilt(family, entry, &what, &[fault], move |arguments| {
        arguments.words[index] = crate::raw::Word::One(0);
        Some(())
    }))
}
fn number(
    family: &'static str,
    entry: &'static Entry,
    index: usize,
    param: &'static Param,
) -> Option<Case> {
    let Type::Name(name) = &param.ty else { return None };
    let one = Spec::get().enumeration(name)?;
    let codes: &[&str] = match one.query {
        Some(_) => &["InvalidEnumeration", "UnsupportedEnumeration"],
        None => &["InvalidEnumeration"],
    };
    let known = one.variants.iter().fold(0, |all, v| all | u64::from(v.value));
    let bad = if one.flags { 1 << (!known).trailing_zeros().min(31) } else { NO_ENUMERATOR };
    if one.flags && !known & 0xffff_ffff == 0 {
        return None; // every bit is a known flag
    }
    let kind = if one.flags { "unknown bit" } else { "number that is no enumerator" };
    let what = format!("a {kind} in {}", param.name).replace("a unknown", "an unknown");
    Some(spoilt(family, entry, &what, codes, move |arguments| arguments.set(index, None, bad)))
}
/// Unknown flags inside of input records. For enumerators in records the specification defines no code.
fn members(
    family: &'static str,
    entry: &'static Entry,
    index: usize,
    param: &'static Param,
) -> Vec<Case> {
    let spec = Spec::get();
    let Type::Pointer(to) = &param.ty else { return Vec::new() };
    let Type::Name(record) = &**to else { return Vec::new() };
    let Some(record) = spec.records.get(record).filter(|r| !param.out && !r.union) else {
        return Vec::new();
    };
    let mut cases = Vec::new();
    for (member, ty) in &record.fields {
        let Type::Name(name) = ty else { continue };
        let Some(one) = spec.enumeration(name).filter(|one| one.flags) else { continue };
        // A documented condition on the member defines the code.
        let documented = entry.errors.iter().any(|fault| match &fault.when {
            When::Holds(e) => text(e).contains(&format!("{}.{member}", param.name)),
            _ => false,
        });
        let known = one.variants.iter().fold(0, |all, v| all | u64::from(v.value));
        if documented || !known & 0xffff_ffff == 0 {
            continue;
        }
        let bad = 1 << (!known).trailing_zeros().min(31);
        let what = format!("an unknown bit in {}.{member}", param.name);
        cases.push(spoilt(family, entry, &what, &["InvalidEnumeration"], move |arguments| {
            arguments.set(index, None, 1)?;
            arguments.set(index, Some(member), bad)
        }));
    }
    cases
}
/// A handle of another kind, for entries that document a code for that.
fn other_kind(
    family: &'static str,
    entry: &'static Entry,
    index: usize,
    param: &'static Param,
) -> Option<Case> {
    let Type::Name(kind) = &param.ty else { return None };
    let fault = match kind.as_str() {
        "Platform" | "Device" | "Context" | "Queue" | "Event" | "Sampler" | "Program"
        | "Kernel" => format!("Invalid{kind}"),
        "Mem" => "InvalidMemObject".into(),
        "ExpCommandBuffer" => "InvalidCommandBufferExp".into(),
        "ExpCommandBufferCommand" => "InvalidCommandBufferCommandHandleExp".into(),
        "ExpGraph" => "InvalidGraph".into(),
        _ => return None,
    };
    if param.optional || !entry.errors.iter().any(|documented| documented.code == fault) {
        return None;
    }
    let stranger = if kind == "Context" { "Queue" } else { "Context" };
    let (c, number) = code(&fault);
    let what = format!("a {stranger} for {}", param.name);
    let short = c.trim_start_matches("UR_RESULT_ERROR_").to_owned();
    let name = format!("{what} is {short}, and nothing is written");
    let said = entry.errors.iter().find_map(|documented| match &documented.when {
        When::Words(words) if documented.code == fault => Some(words.as_str()),
        _ => None,
    });
    let rule = format!("{c}: {}", said.unwrap_or(&what));
    Some(Case::new(family, &entry.name, rule, name, move |bench| {
        let mut arguments = Arguments::valid(bench, entry)?;
        arguments.words[index] = crate::bench::word(bench.object(stranger)?);
        arguments.refused(&[number])
    }))
}
/// Invalid events in a wait list; and an invalid length of the list, for entries whose specification has no
/// condition for it.
fn wait_list(
    family: &'static str,
    entry: &'static Entry,
    index: usize,
    param: &'static Param,
) -> Vec<Case> {
    let count = param.wait_list.clone().unwrap_or_default();
    let written_down = entry
        .errors
        .iter()
        .any(|fault| fault.code == "InvalidEventWaitList" && matches!(fault.when, When::Holds(_)));
    let mut each = vec!["a null event in the list", "a queue in the list"];
    if !written_down {
        each.extend(["a count without a list", "a list of no events"]);
    }
    let (c, number) = code("InvalidEventWaitList");
    let case = |what: &'static str| {
        let said = match what {
            "a null event in the list" | "a queue in the list" => {
                "the wait list holds something that is not an event"
            }
            _ => "the wait list and its length do not fit",
        };
        let name = format!("{what} is INVALID_EVENT_WAIT_LIST, and nothing is written");
        let count = count.clone();
        Case::new(family, &entry.name, format!("{c} if {said}"), name, move |bench| {
            let mut arguments = Arguments::valid(bench, entry)?;
            let queue = bench.queue()?.0.expose_provenance() as u64;
            let missing = || Stop::failed("the list cannot be set");
            let counted = arguments.index(&count).ok_or_else(missing)?;
            let has_list = what != "a count without a list";
            arguments.set(index, None, u64::from(has_list)).ok_or_else(missing)?;
            let length = u64::from(what != "a list of no events");
            arguments.set(counted, None, length).ok_or_else(missing)?;
            let held = if what == "a queue in the list" { queue } else { 0 };
            arguments.areas[&index].poke(0, &held.to_ne_bytes());
            arguments.refused(&[number])
        })
    };
    each.into_iter().map(case).collect()
}
/// A sync point that does not exist in the command buffer.
fn sync_point(
    family: &'static str,
    entry: &'static Entry,
    index: usize,
    param: &'static Param,
) -> Case {
    let (c, number) = code("InvalidCommandBufferSyncPointExp");
    let count = param.list.clone().unwrap_or_default();
    let rule = format!("{c} if the list names a sync point that the command buffer has not");
    let name =
        "a sync point of nobody's is INVALID_COMMAND_BUFFER_SYNC_POINT_EXP, and nothing is written";
    Case::new(family, &entry.name, rule, name, move |bench| {
        let mut arguments = Arguments::valid(bench, entry)?;
        let missing = || Stop::failed("the list cannot be set");
        let counted = arguments.index(&count).ok_or_else(missing)?;
        arguments.set(index, None, 1).ok_or_else(missing)?;
        arguments.set(counted, None, 1).ok_or_else(missing)?;
        arguments.areas[&index].poke(0, &0x7fff_fff0_u32.to_ne_bytes());
        // Only updatable command buffers return commands, and this one is not updatable.
        if let Some(command) = arguments.index("command") {
            arguments.words[command] = crate::raw::Word::One(0);
        }
        arguments.refused(&[number])
    })
}
