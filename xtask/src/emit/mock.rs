//! Generates `crates/ur-mock/src/answers.rs`: the mock adapter's entries, each of which succeeds and returns
//! a result of the right type. The entries in `BY_HAND` are written by hand.
use super::{
    NOTICE, Output, api, rustfmt,
    shape::{self, Arg, Shape},
};
use crate::{
    model::{Entry, Spec, Table, Type},
    names,
};
use std::fmt::Write;

/// Entries whose results depend on their arguments; `overrides.rs` has a function for each.
const BY_HAND: &[&str] = &[
    "urAdapterGet",
    "urBindlessImagesImageGetInfoExp",
    "urDeviceCreateWithNativeHandle",
    "urDeviceGet",
    "urDeviceSelectBinary",
    "urEnqueueEventsWaitWithBarrierExt",
    "urEnqueueMemUnmap",
    "urEnqueueUSMFreeExp",
    "urEventSetCallback",
    "urGraphDestroyExp",
    "urGraphExecutableGraphDestroyExp",
    "urIPCGetMemHandleExp",
    "urIPCOpenMemHandleExp",
    "urIPCPutEventHandleExp",
    "urIPCPutMemHandleExp",
    "urIPCPutPhysMemHandleExp",
    "urPlatformCreateWithNativeHandle",
    "urPlatformGet",
    "urQueueGetInfo",
    "urUSMFree",
    "urUSMGetMemAllocInfo",
    "urUSMPoolGetInfoExp",
    "urVirtualMemFree",
];

/// Generates the file.
pub fn file(spec: &Spec) -> Result<Output, String> {
    let mut s = format!(
        "{NOTICE}//! The entries of the mock adapter without hooks.\n\
         #![allow(unused_variables, reason = \"what is not asked for is not looked at\")]\n\
         #![allow(clippy::too_many_arguments, clippy::type_complexity, reason = \"as many as C's\")]\n\
         use super::{{overrides, Mock, Counter, memory, objects::{{Adapter, *}}}};\n\
         use std::ffi::{{CStr, c_void}};\n\
         use ur_adapter::{{api::*, callback::*, error::Result, info::Answer, memory::{{HostBytes, UsmPtr}}, object::{{Borrowed, Owned}}, shim::BarrierEvent}};\n\
         use ur_sys::*;\n"
    );
    s.push_str("\nimpl Objects for Mock {\n");
    for h in spec.handles.iter().filter(|h| h.name != "LoaderConfig") {
        let _ = writeln!(s, "type {0} = {0};", h.name);
    }
    s.push_str("}\n");
    s.push_str("\nimpl CommandApi for Mock {}\n");
    for table in &spec.tables {
        family(spec, table, &mut s);
    }
    Ok(Output { path: "crates/ur-mock/src/answers.rs".into(), text: rustfmt(&s)? })
}

fn family(spec: &Spec, table: &Table, s: &mut String) {
    let _ = writeln!(s, "\nimpl {} for Mock {{", api::trait_name(table));
    for e in table.entries.iter().filter(|e| !shape::overrides(e)) {
        if shape::counting(spec, e).is_none() {
            s.push_str(&method(spec, e));
        }
    }
    s.push_str("}\n");
}

fn method(spec: &Spec, entry: &Entry) -> String {
    let args = shape::of(spec, entry);
    let params: Vec<_> = args.iter().filter_map(|a| shape::parameter(spec, entry, a)).collect();
    let list: Vec<_> = params.iter().map(|(n, t)| format!("{n}: {t}")).collect();
    let name = names::function(&entry.name);
    let body = match BY_HAND.contains(&entry.name.as_str()) {
        true => {
            let names: Vec<_> = params.iter().map(|(n, _)| n.as_str()).collect();
            format!("overrides::{name}({})", names.join(", "))
        }
        false => body(spec, entry, &args),
    };
    let text = format!(
        "fn {name}({}) -> Result<{}> {{\n{body}\n}}\n",
        list.join(", "),
        api::tuple(&api::results(&args))
    );
    text.replace("Self::", "")
}

fn body(spec: &Spec, entry: &Entry, args: &[Arg<'_>]) -> String {
    if let Some(answer) = args.iter().find(|a| matches!(a.shape, Shape::Answer { .. })) {
        let crate::model::Role::Answer { name, .. } = &answer.param.role else {
            return "Ok(())".into();
        };
        let of = args.iter().find(|a| matches!(a.shape, Shape::Handle { .. }));
        let of = of.map_or("overrides", |a| &a.param.name);
        return format!("{of}.answer({}, answer)", names::escape(name));
    }
    let made: Vec<_> = args.iter().filter_map(|a| one(entry, a, args)).collect();
    let made = match made.as_slice() {
        [one] => one.clone(),
        many => format!("({})", many.join(", ")),
    };
    let remembers = made.contains("story.");
    let story = if remembers { story(spec, entry, args) } else { String::new() };
    let asks = entry.params.iter().any(|p| p.name == "usm_desc") && made.contains("memory::");
    let checked = if asks { "memory::aligned(usm_desc)?;\n" } else { "" };
    match made.strip_suffix('?') {
        Some(fallible) => format!("{checked}{story}{fallible}"),
        None => format!("{checked}{story}Ok({made})"),
    }
}

/// Returns the expression for one result.
fn one(entry: &Entry, arg: &Arg<'_>, args: &[Arg<'_>]) -> Option<String> {
    let name = &arg.param.name;
    Some(match &arg.shape {
        Shape::OutHandle { kind } if arg.param.optional => {
            format!("want_{name}.then(|| story.make::<{kind}>())")
        }
        Shape::OutHandle { kind } => format!("story.make::<{kind}>()"),
        Shape::OutHandles { kind, .. } => format!("vec![story.make::<{kind}>()]"),
        Shape::OutData { .. } => "vec![1; 3]".into(),
        Shape::OutAddress => format!("memory::block({}, {})?", size(args), usm(entry)),
        Shape::OutText => "c\"\"".into(),
        Shape::BarrierEvent => return None,
        Shape::OutValue { of } => match of.as_str() {
            "ur_native_handle_t" => {
                let first = args.iter().find(|a| matches!(a.shape, Shape::Handle { .. }))?;
                format!("{}.address()", first.param.name)
            }
            "ur_api_version_t" => "ur_api_version_t::CURRENT".into(),
            "bool" => "true".into(),
            "ur_bool_t" => "1".into(),
            "usize" if entry.params.iter().any(|p| p.name.contains("width")) => {
                "width_in_bytes".into()
            }
            "usize" => "size_of::<u64>()".into(),
            native if native.ends_with("_native_handle_t") => "Counter::handle()".into(),
            _ => "Counter::next()".into(),
        },
        _ => return None,
    })
}
/// The expression for the size of the memory whose address is returned.
fn size(args: &[Arg<'_>]) -> String {
    let plain =
        |name: &str| args.iter().find(|a| a.param.name == name && matches!(a.shape, Shape::Plain));
    match plain("size") {
        _ if plain("width_in_bytes").is_some() => "width_in_bytes.saturating_mul(height)".into(),
        Some(size) if size.param.ty.base() == "usize" => "size".into(),
        Some(_) => "usize::try_from(size).unwrap_or(usize::MAX)".into(),
        None => "size_of::<u64>()".into(),
    }
}
/// The USM type of that memory.
fn usm(entry: &Entry) -> String {
    let kinds = ["Host", "Device", "Shared"];
    let kind = kinds.iter().find(|k| entry.name.contains("USM") && entry.name.contains(**k));
    format!("ur_usm_type_t::{}", kind.unwrap_or(&"Unknown").to_ascii_uppercase())
}

/// The code that records the objects and numbers an object is created with.
fn story(spec: &Spec, entry: &Entry, args: &[Arg<'_>]) -> String {
    let mut s = String::from("let mut story = Story::default();\n");
    if let Some(command) = command(spec, entry) {
        let _ = writeln!(s, "story.note(\"COMMAND_TYPE\", ur_command_t::{command}.0);");
    }
    for a in args {
        let name = names::escape(&a.param.name);
        let note = |of: &str, value: &str| {
            format!("story.note(\"{}\", {value});\n", of.to_ascii_uppercase())
        };
        match &a.shape {
            Shape::Handle { .. } | Shape::Handles { .. } => {
                let _ = writeln!(s, "story.of(&{name});");
            }
            Shape::Checked { .. } => s.push_str(&note(&name, &format!("{name}.0"))),
            Shape::Bool => s.push_str(&note(&name, &format!("u64::from({name})"))),
            Shape::Plain if matches!(&a.param.ty, Type::Name(n) if n == "usize") => {
                s.push_str(&note(&name, &format!("{name} as u64")));
            }
            Shape::Record { .. } => {
                for (field, value) in numbers(spec, a.param.ty.base()) {
                    let value = match a.param.optional {
                        true => format!("{name}.map_or(0, |of| u64::from(of.{value}))"),
                        false => format!("u64::from({name}.{value})"),
                    };
                    s.push_str(&note(&field, &value));
                }
            }
            _ => {}
        }
    }
    s
}
/// Returns the command type that the event of a command reports.
fn command(spec: &Spec, entry: &Entry) -> Option<String> {
    let own = names::function(entry.name.strip_prefix("urEnqueue")?).to_ascii_uppercase();
    let plain = own.trim_end_matches("_EXP").trim_end_matches("_WITH_ARGS").to_string();
    let all = spec.enumeration("Command")?;
    let is = |c: &str| {
        let c = c.trim_start_matches("UR_COMMAND_").trim_start_matches("ENQUEUE_");
        c == own || c.trim_end_matches("_EXP") == plain
    };
    let found = all.variants.iter().find(|v| is(&v.c))?;
    Some(names::constant(&found.c, &all.c))
}
/// The enumerators, flags and booleans of a struct.
fn numbers(spec: &Spec, record: &str) -> Vec<(String, String)> {
    let Some(record) = spec.record(record) else { return vec![] };
    let number = |field: &crate::model::Field| {
        let Type::Name(ty) = &field.ty else { return None };
        let name = names::escape(&field.name);
        match spec.enumeration(ty) {
            Some(_) if field.name != "stype" => Some((field.name.clone(), format!("{name}.0"))),
            None if ty == "Bool" || ty == "bool" => Some((field.name.clone(), name)),
            _ => None,
        }
    };
    record.fields.iter().filter_map(number).collect()
}
