//! Generates `crates/ur-adapter/src/entry`: the functions of the C ABI, one for each slot, generic over the
//! adapter.
use super::{
    NOTICE, Output, api, check, doc, own_enumerator, rust_type, rustfmt,
    shape::{self, Arg, Shape},
    slot,
};
use crate::{
    model::{Entry, EnumKind, Spec, Table, Type},
    names,
};
use std::fmt::Write;

const SAFETY: &str = "        // SAFETY: forwarded from the C caller's own contract.\n";

/// Returns all generated files of the folder.
pub fn files(spec: &Spec) -> Result<Vec<Output>, String> {
    let mut files = vec![("mod".to_string(), module(spec))];
    for table in &spec.tables {
        files.push((names::member(&table.name), family(spec, table)));
    }
    let file = |(name, text): (String, String)| {
        let text = rustfmt(&format!("{NOTICE}{text}"))?;
        Ok(Output { path: format!("crates/ur-adapter/src/entry/{name}.rs"), text })
    };
    files.into_iter().map(file).collect()
}

fn module(spec: &Spec) -> String {
    let mut s = String::from(
        "//! The functions of the C ABI, generic over the adapter: each checks its arguments, calls the adapter and\n//! writes the results.\n\
         use crate::api::Adapter;\nuse ur_sys::ur_dditable_t;\n\n",
    );
    let members: Vec<_> = spec.tables.iter().map(|t| names::member(&t.name)).collect();
    members.iter().for_each(|m| s.push_str(&format!("pub mod {m};\n")));
    s.push_str("\npub use crate::shim::fill;\n\n/// The complete table of an adapter for C callers. No slot is null.\npub const fn table<A: Adapter>() -> ur_dditable_t {\n    ur_dditable_t {\n");
    members.iter().for_each(|m| s.push_str(&format!("{m}: {m}::table::<A>(),\n")));
    s.push_str("    }\n}\n");
    s
}

fn family(spec: &Spec, table: &Table) -> String {
    let mut bodies = String::new();
    let mut slots = String::new();
    for e in &table.entries {
        let name = names::function(&e.name);
        let slot = slot(&e.name, &table.member);
        let target = match shape::overrides(e) {
            true => format!("shim::{name}::<A::Adapter>"),
            false => format!("{name}::<A>"),
        };
        let _ = writeln!(slots, "        {slot}: Some({target}),");
        if !shape::overrides(e) {
            bodies.push_str(&function(spec, table, e));
        }
    }
    let mut uses = String::new();
    for (word, path) in [
        ("enter_as::<", "crate::error::enter_as"),
        ("ErrorCode::", "crate::error::ErrorCode"),
        ("UsmPtr::", "crate::memory::UsmPtr"),
        ("HostBytes::", "crate::memory::HostBytes"),
        ("Answer::", "crate::info::Answer"),
        ("Held::", "crate::object::Held"),
        ("ContextDeleter::", "crate::callback::ContextDeleter"),
        ("EventCallback::", "crate::callback::EventCallback"),
        ("HostFunction::", "crate::callback::HostFunction"),
        ("shim::", "crate::shim"),
    ] {
        if bodies.contains(word) || slots.contains(word) {
            let _ = writeln!(uses, "use {path};");
        }
    }
    let ffi: Vec<_> = ["c_char", "c_void"].into_iter().filter(|w| bodies.contains(w)).collect();
    if !ffi.is_empty() {
        let _ = writeln!(uses, "use std::ffi::{{{}}};", ffi.join(", "));
    }
    format!(
        "//! The C entries of `{0}`.\n#![expect(unsafe_code, reason = \"the C ABI\")]\n#![allow(clippy::manual_range_contains, reason = \"conditions as the specification writes them\")]\nuse crate::api::{2};\n{uses}use ur_sys::*;\n\n\
         /// The entries of the family, for C callers.\npub const fn table<A: {2}>() -> {1} {{\n    {1} {{\n{slots}    }}\n}}\n\n{bodies}",
        table.member,
        table.c,
        api::trait_name(table),
    )
}

fn signature(spec: &Spec, table: &Table, entry: &Entry) -> String {
    let params: Vec<_> = entry
        .params
        .iter()
        .map(|p| format!("{}: {}", names::escape(&p.name), rust_type(spec, &p.ty)))
        .collect();
    format!(
        "unsafe extern \"C\" fn {}<A: {}>({}) -> ur_result_t",
        names::function(&entry.name),
        api::trait_name(table),
        params.join(", ")
    )
}

fn function(spec: &Spec, table: &Table, entry: &Entry) -> String {
    let text = format!("`{}`", entry.name);
    let head = format!("{}{}", doc(&text, "").replace("///", "//"), signature(spec, table, entry));
    if let Some((kind, release)) = shape::counting(spec, entry) {
        let call = if release { "release" } else { "retain" };
        let name = &entry.params[0].name;
        return format!(
            "{head} {{\n    // SAFETY: forwarded from the C caller's own contract.\n    unsafe {{ shim::{call}::<A::Adapter, A::{kind}>(\"{}\", {name}.0) }}\n}}\n\n",
            entry.name
        );
    }
    let args = shape::of(spec, entry);
    let nulls: String = args.iter().map(|a| nulled(spec, a)).collect();
    let keep = if nulls.is_empty() { "" } else { "let code = " };
    let mut s = format!("{head} {{\n    {keep}enter_as::<A::Adapter>(\"{}\", || {{\n", entry.name);
    if shape::checks_process(table, entry) {
        s.push_str("        A::check_usable()?;\n");
    }
    args.iter().for_each(|a| s.push_str(&handles(entry, a)));
    args.iter().for_each(|a| s.push_str(&presence(a)));
    args.iter().for_each(|a| s.push_str(&values(spec, a)));
    if shape::is_checked_first(entry) {
        let given: Vec<_> = shape::handles(&args).map(|a| names::escape(&a.param.name)).collect();
        let check = names::function(&entry.name);
        let _ = writeln!(s, "        A::check_{check}({})?;", given.join(", "));
    }
    let mut seen = Vec::new();
    for fault in &entry.errors {
        if let Some(when) = check::condition(spec, entry, fault)
            && !seen.contains(&when)
        {
            s.push_str(&refusal(&when, &fault.code));
            seen.push(when);
        }
    }
    args.iter().for_each(|a| s.push_str(&conversion(entry, a)));
    for fault in &entry.errors {
        if let Some(when) = check::of_elements(spec, entry, fault) {
            s.push_str(&refusal(&when, &fault.code));
        }
    }
    s.push_str(&call(entry, &args));
    args.iter().for_each(|a| s.push_str(&result(entry, a)));
    let closed = match entry.name.as_str() {
        "urIPCClosePhysMemHandleExp" => "phys_mem",
        "urUSMPoolDestroyExp" => "pool",
        _ => "",
    };
    if !closed.is_empty() {
        let _ = writeln!(
            s,
            "        // SAFETY: with the close, the caller gives up its reference.\n        unsafe {{ {closed}.release() }}?;"
        );
    }
    s.push_str("        Ok(())\n    })");
    if !nulls.is_empty() {
        let _ = write!(s, ";\n    if code != ur_result_t::SUCCESS {{\n{nulls}    }}\n    code");
    }
    s.push_str("\n}\n\n");
    s
}

/// Converts a count to the type that the functions for lists take.
fn as_u32(entry: &Entry, count: &str) -> String {
    let narrow = entry.params.iter().any(|p| p.name == count && p.ty.base() == "u32");
    if narrow { count.to_string() } else { format!("u32::try_from({count}).unwrap_or(u32::MAX)") }
}

/// Ends a call with `code` if `when` is true.
fn refusal(when: &str, code: &str) -> String {
    format!("        if {when} {{\n            return Err(ErrorCode::{code}.into());\n        }}\n")
}
/// Sets a result to null after an error, where the specification requires it.
fn nulled(spec: &Spec, a: &Arg<'_>) -> String {
    let n = names::escape(&a.param.name);
    match a.param.ty.pointee().filter(|_| a.param.nulled) {
        Some(handle) => {
            let handle = rust_type(spec, handle);
            format!("{SAFETY}        unsafe {{ shim::put({n}, {handle}::NULL) }};\n")
        }
        None => String::new(),
    }
}
/// First the handles: errors in them take precedence.
fn handles(entry: &Entry, a: &Arg<'_>) -> String {
    let n = names::escape(&a.param.name);
    let Shape::Handle { kind } = &a.shape else { return String::new() };
    let (call, own) = match (a.param.optional, entry.blocks) {
        (false, false) => ("handle", ""),
        (false, true) => ("handle", ".own()?"),
        (true, _) => ("optional_handle", ""),
    };
    format!("{SAFETY}        let {n} = unsafe {{ shim::{call}::<A::{kind}>({n}.0) }}?{own};\n")
}
/// Then pointers that must not be null; structs become references, so that conditions can read them.
fn presence(a: &Arg<'_>) -> String {
    let n = names::escape(&a.param.name);
    match (&a.shape, a.param.optional) {
        (Shape::Record { .. }, false) => {
            format!("{SAFETY}        let {n} = unsafe {{ shim::record({n}) }}?;\n")
        }
        (Shape::Record { .. }, true) => {
            format!("{SAFETY}        let {n} = unsafe {{ shim::optional_record({n}) }};\n")
        }
        (
            Shape::Address
            | Shape::Bytes { .. }
            | Shape::Text
            | Shape::OutHandle { .. }
            | Shape::OutHandles { .. }
            | Shape::OutData { .. }
            | Shape::OutAddress
            | Shape::OutText
            | Shape::OutValue { .. },
            false,
        ) => format!("        shim::present({n})?;\n"),
        (Shape::Raw, false) => match a.param.ty {
            Type::Pointer { .. } => format!("        shim::present({n})?;\n"),
            _ => format!(
                "        if {n}.is_none() {{\n            return Err(ErrorCode::InvalidNullPointer.into());\n        }}\n"
            ),
        },
        (Shape::Callback { .. }, false) => {
            format!("        let {n} = {n}.ok_or(ErrorCode::InvalidNullPointer)?;\n")
        }
        _ => String::new(),
    }
}
/// Then enumerations and flags, which must have values of the specification.
fn values(spec: &Spec, a: &Arg<'_>) -> String {
    let n = names::escape(&a.param.name);
    match &a.shape {
        Shape::Checked { flags } => {
            let own = own_enumerator(a.param.ty.base());
            let not_own = own.map_or(String::new(), |(name, _)| format!("{n} != {name} && "));
            refuse(&n, *flags, &not_own)
        }
        Shape::Record { .. } => {
            let Some(record) = spec.record(a.param.ty.base()) else { return String::new() };
            let flag_fields = record.fields.iter().filter(|f| {
                let e = spec.enumeration(f.ty.base());
                matches!(f.ty, Type::Name(_)) && e.is_some_and(|e| e.kind == EnumKind::Flags)
            });
            let there = match a.param.optional {
                true => format!("let Some({n}) = {n} && "),
                false => String::new(),
            };
            flag_fields
                .map(|f| refuse(&format!("{n}.{}", names::escape(&f.name)), true, &there))
                .collect()
        }
        _ => String::new(),
    }
}
fn refuse(value: &str, flags: bool, there: &str) -> String {
    let wrong = match flags {
        true => format!("{value}.unknown_bits() != 0"),
        false => format!("{value}.name().is_none()"),
    };
    format!(
        "        if {there}{wrong} {{\n            return Err(ErrorCode::InvalidEnumeration.into());\n        }}\n"
    )
}
/// Then the remaining conversions, lists last.
fn conversion(entry: &Entry, a: &Arg<'_>) -> String {
    let n = names::escape(&a.param.name);
    let optional = a.param.optional;
    let hold = |n: &str| match entry.blocks {
        true => format!("        let {n} = &*Held::new({n})?;\n"),
        false => String::new(),
    };
    match &a.shape {
        Shape::Bool => match a.param.ty.base() {
            "bool" => String::new(),
            _ => format!("        let {n} = {n} != 0;\n"),
        },
        Shape::Address if optional => format!("        let {n} = shim::optional_address({n});\n"),
        Shape::Address => format!("        let {n} = UsmPtr::new({n})?;\n"),
        Shape::Bytes { size } if optional => format!(
            "        let {n} = match {n}.is_null() {{ true => None, false => {{\n{SAFETY}Some(unsafe {{ HostBytes::new({n}, {size}) }}?) }} }};\n"
        ),
        Shape::Bytes { size } => {
            format!("{SAFETY}        let {n} = unsafe {{ HostBytes::new({n}, {size}) }}?;\n")
        }
        Shape::Text if optional => {
            format!("{SAFETY}        let {n} = unsafe {{ shim::optional_text({n}) }};\n")
        }
        Shape::Text => format!("{SAFETY}        let {n} = unsafe {{ shim::text({n}) }}?;\n"),
        Shape::Callback { wrapper, user_data } if optional => {
            format!(
                "{SAFETY}        let {n} = {n}.map(|f| unsafe {{ {wrapper}::new(f, {user_data}) }});\n"
            )
        }
        Shape::Callback { wrapper, user_data } => {
            format!("{SAFETY}        let {n} = unsafe {{ {wrapper}::new({n}, {user_data}) }};\n")
        }
        Shape::Answer { size, size_ret } => format!(
            "{SAFETY}        let mut answer = unsafe {{ Answer::new({size}, {n}, {size_ret}) }}?;\n"
        ),
        Shape::Data { count, .. } => {
            let call = if optional { "optional_data" } else { "data" };
            format!(
                "{SAFETY}        let {n} = unsafe {{ shim::{call}({n}, {count} as usize) }}?;\n"
            )
        }
        Shape::Handles { kind, count } => {
            let call = if optional { "optional_handles" } else { "handles" };
            let count = as_u32(entry, count);
            let list = format!(
                "{SAFETY}        let {n} = unsafe {{ shim::{call}::<A::{kind}>({n}.cast(), {count}) }}?;\n"
            );
            list + &hold(&n)
        }
        Shape::WaitList { count } => {
            let list = format!(
                "{SAFETY}        let {n} = unsafe {{ shim::wait_list::<A::Event>({n}.cast(), {count}) }}?;\n"
            );
            list + &hold(&n)
        }
        Shape::BarrierEvent => format!(
            "        let {n}_out = {n};\n{SAFETY}        let {n} = unsafe {{ shim::barrier_event::<A::Event>({n}.cast()) }}?;\n"
        ),
        _ => String::new(),
    }
}

fn call(entry: &Entry, args: &[Arg<'_>]) -> String {
    let given = |a: &Arg<'_>| {
        let n = names::escape(&a.param.name);
        match &a.shape {
            Shape::Answer { .. } => Some("&mut answer".into()),
            Shape::OutHandle { .. } if a.param.optional => Some(format!("!{n}.is_null()")),
            Shape::OutHandle { .. }
            | Shape::OutHandles { .. }
            | Shape::OutData { .. }
            | Shape::OutAddress
            | Shape::OutText
            | Shape::OutValue { .. }
            | Shape::Consumed => None,
            _ => Some(n),
        }
    };
    let given: Vec<_> = args.iter().filter_map(given).collect();
    let method = format!("A::{}({})", names::function(&entry.name), given.join(", "));
    let taken: Vec<_> = args.iter().filter_map(taken).collect();
    match taken.as_slice() {
        [] => format!("        {method}?;\n"),
        [one] => format!("        let {one} = {method}?;\n"),
        many => format!("        let ({}) = {method}?;\n", many.join(", ")),
    }
}
fn taken(a: &Arg<'_>) -> Option<String> {
    match &a.shape {
        Shape::OutHandle { .. }
        | Shape::OutHandles { .. }
        | Shape::OutData { .. }
        | Shape::OutAddress
        | Shape::OutText
        | Shape::OutValue { .. }
        | Shape::BarrierEvent => Some(format!("{}_result", a.param.name)),
        _ => None,
    }
}
/// Writes a result to the C output parameter.
fn result(entry: &Entry, a: &Arg<'_>) -> String {
    let n = names::escape(&a.param.name);
    let Some(r) = taken(a) else { return String::new() };
    match &a.shape {
        Shape::OutHandle { .. } if a.param.optional => format!(
            "        if let Some(object) = {r} {{\n{SAFETY}            unsafe {{ shim::put_handle({n}.cast(), object) }};\n        }}\n"
        ),
        Shape::BarrierEvent => format!(
            "        if let Some(object) = {r} {{\n{SAFETY}            unsafe {{ shim::put_handle({n}_out.cast(), object) }};\n        }}\n"
        ),
        Shape::OutHandle { .. } => {
            format!("{SAFETY}        unsafe {{ shim::put_handle({n}.cast(), {r}) }};\n")
        }
        Shape::OutHandles { count, total, .. } => {
            let count = as_u32(entry, count);
            let total = total.clone().unwrap_or("std::ptr::null_mut()".into());
            format!(
                "{SAFETY}        unsafe {{ shim::put_handles({n}.cast(), {count}, {total}, {r}) }};\n"
            )
        }
        Shape::OutData { count, .. } => {
            format!("{SAFETY}        unsafe {{ shim::put_data({n}, {count} as usize, &{r}) }};\n")
        }
        Shape::OutAddress => {
            format!("{SAFETY}        unsafe {{ shim::put({n}.cast(), {r}.as_ptr()) }};\n")
        }
        Shape::OutText => {
            format!("{SAFETY}        unsafe {{ shim::put({n}.cast(), {r}.as_ptr()) }};\n")
        }
        _ => format!("{SAFETY}        unsafe {{ shim::put({n}, {r}) }};\n"),
    }
}
