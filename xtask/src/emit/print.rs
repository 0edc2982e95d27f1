//! Generates `crates/ur-loader/src/print/`: the types of all values of the API, as tables that one printer
//! interprets, and the exported functions, which refer to a table each.
use super::{
    NOTICE, Output, c_name, flags_type,
    header::{self, print::camel},
    rust_type, rustfmt, wrapped,
};
use crate::{
    model::{Answer, Entry, Enum, EnumKind, Param, Record, Role, Spec, Type},
    names,
};
use std::fmt::Write;

/// Returns the generated files.
pub fn files(spec: &Spec) -> Result<Vec<Output>, String> {
    let file = |name: &str, text: String| -> Result<Output, String> {
        let path = format!("crates/ur-loader/src/print/{name}.rs");
        Ok(Output { path, text: rustfmt(&text)? })
    };
    Ok(vec![
        file("values", values(spec))?,
        file("records", records(spec)?)?,
        file("queries", queries(spec))?,
        file("calls", calls(spec)?)?,
        file("symbols", symbols(spec))?,
    ])
}

/// Which member of a union is valid, depending on the tag in the member before it: union, tag, member.
const TAGS: &[(&str, &str, &str)] = &[
    ("DevicePartitionValue", "UR_DEVICE_PARTITION_EQUALLY", "equally"),
    ("DevicePartitionValue", "UR_DEVICE_PARTITION_BY_COUNTS", "count"),
    ("DevicePartitionValue", "UR_DEVICE_PARTITION_BY_AFFINITY_DOMAIN", "affinity_domain"),
    ("ProgramMetadataValue", "UR_PROGRAM_METADATA_TYPE_UINT32", "data32"),
    ("ProgramMetadataValue", "UR_PROGRAM_METADATA_TYPE_UINT64", "data64"),
    ("ProgramMetadataValue", "UR_PROGRAM_METADATA_TYPE_BYTE_ARRAY", "pData"),
    ("ProgramMetadataValue", "UR_PROGRAM_METADATA_TYPE_STRING", "pString"),
    ("ExpKernelArgValue", "UR_EXP_KERNEL_ARG_TYPE_VALUE", "value"),
    ("ExpKernelArgValue", "UR_EXP_KERNEL_ARG_TYPE_POINTER", "pointer"),
    ("ExpKernelArgValue", "UR_EXP_KERNEL_ARG_TYPE_MEM_OBJ", "memObjTuple"),
    ("ExpKernelArgValue", "UR_EXP_KERNEL_ARG_TYPE_SAMPLER", "sampler"),
];

/// Every exported function with the type that it prints, as rows for a macro that defines the symbols.
fn symbols(spec: &Spec) -> String {
    let mut s = format!(
        "{NOTICE}//! The names and types of all functions that are exported from here.\n\n\
         /// Passes a row for each function to the macro `then`.\n#[macro_export]\nmacro_rules! print_symbols {{\n($then:ident) => {{ $then! {{\n"
    );
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(
            s,
            "urPrint{name}({value}, buffer: *mut c_char, size: usize, out_size: *mut usize);"
        );
    };
    for e in &spec.enums {
        let plural = if e.kind == EnumKind::Flags { "s" } else { "" };
        row(&format!("{}{plural}", camel(&e.c)), &format!("value: {}", enum_type(e)));
    }
    for r in spec.records.iter().filter(|r| !r.union) {
        row(&camel(&r.c), &format!("value: {}", r.c));
    }
    for e in spec.entries() {
        row(&camel(&header::params_struct(e)), "params: *const c_void");
    }
    row("FunctionParams", "function: ur_function_t, params: *const c_void");
    s.push_str("} };\n}\n");
    s
}

/// Returns the names of all these functions.
pub fn exported(spec: &Spec) -> Vec<String> {
    let rows = symbols(spec);
    let names = rows.lines().filter_map(|line| line.split_once('(').map(|(name, _)| name));
    names.filter(|name| name.starts_with("urPrint")).map(str::to_string).collect()
}

fn values(spec: &Spec) -> String {
    let mut s =
        format!("{NOTICE}//! Printing of enumerators and flags.\nuse ur_sys::*;\n\nvalues! {{\n");
    for e in &spec.enums {
        let (flags, ty) = match e.kind {
            EnumKind::Flags => ("flag", flags_type(&e.c)),
            _ if e.name == "ApiVersion" => ("version", e.c.clone()),
            _ => ("value", e.c.clone()),
        };
        let plural = if flags == "flag" { "s" } else { "" };
        let name = format!("urPrint{}{plural}", camel(&e.c));
        let _ = writeln!(s, "{flags} {name}: {ty};");
    }
    s.push_str("}\n");
    s
}

/// Returns the printer's `Kind` for a type. `list` is the length of the list if the type is a pointer to one.
fn kind(spec: &Spec, ty: &Type, list: Option<&str>) -> Result<String, String> {
    Ok(match ty {
        Type::Name(n) => named(spec, n)?,
        Type::Array { of, length } => {
            format!("Array(&{}, {length})", kind(spec, of, None)?)
        }
        Type::Pointer { to, .. } => match &**to {
            // The reference prints a byte that is pointed at as a boolean.
            Type::Name(n) if n == "u8" => "Pointer(&Truth)".into(),
            Type::Name(n) if n == "c_void" => "Address".into(),
            Type::Name(n) if n == "c_char" => "Text".into(),
            to => match list {
                Some(count) => format!("List(&{}, {count})", kind(spec, to, None)?),
                None => format!("Pointer(&{})", kind(spec, to, None)?),
            },
        },
    })
}
fn named(spec: &Spec, name: &str) -> Result<String, String> {
    match name {
        "Bool" => return Ok("Truth".into()),
        "ApiVersion" => return Ok("Version".into()),
        _ => {}
    }
    if let Some(alias) = spec.aliases.iter().find(|a| a.name == name) {
        return kind(spec, &alias.of, None);
    }
    if spec.callback(name).is_some() {
        return Ok("Bare".into());
    }
    if spec.is_handle(name) {
        return Ok("Address".into());
    }
    if let Some(e) = spec.enumeration(name) {
        let flags = e.kind == EnumKind::Flags && e.name != name;
        return Ok(match flags {
            true => format!("Flags({}::NAMES)", flags_type(&e.c)),
            false => format!("Enum({}::NAMES)", enum_type(e)),
        });
    }
    if let Some(r) = spec.record(name) {
        return Ok(format!("Record(&{})", constant(r)));
    }
    Ok(match name {
        "u8" => "U8",
        "c_char" => "Char",
        "u32" => "U32",
        "i32" => "I32",
        "u64" => "U64",
        "usize" | "uintptr_t" => "Usize",
        "f32" => "F32",
        "f64" => "F64",
        "bool" => "Bool",
        _ => return Err(format!("no way is known to print a {name}")),
    }
    .into())
}
fn enum_type(e: &Enum) -> String {
    match e.kind {
        EnumKind::Flags => flags_type(&e.c),
        _ => e.c.clone(),
    }
}
fn constant(r: &Record) -> String {
    r.c.trim_start_matches("ur_").trim_end_matches("_t").to_ascii_uppercase()
}

fn records(spec: &Spec) -> Result<String, String> {
    let mut s = format!(
        "{NOTICE}//! The members of structs, and the functions that print structs.\nuse super::kind::{{Count::*, Kind::*, Member, Record, Tag, plain}};\nuse std::mem::offset_of;\nuse ur_sys::*;\n\nrecords! {{\n"
    );
    for r in spec.records.iter().filter(|r| !r.union) {
        let mut members = Vec::new();
        for f in &r.fields {
            let count =
                f.list.as_deref().map(|n| count(r.fields.iter().map(|f| f.name.as_str()), n));
            let kind = match spec.record(f.ty.base()) {
                Some(u) if u.union => union(spec, r, u)?,
                _ if f.name == "pNext" => "Next".into(),
                _ if r.name.starts_with("ExpCommandBufferUpdate")
                    && f.ty.pointee().is_some()
                    && f.list.is_none() =>
                {
                    "Bare".into()
                }
                _ if r.name == "DevicePartitionProperties" => kind(spec, &f.ty, None)?,
                _ => kind(spec, &f.ty, count.transpose()?.as_deref())?,
            };
            members.push(format!("{}: {kind}", names::escape(&f.name)));
        }
        let stype = r.stype.as_ref().map_or(String::new(), |c| {
            format!(" as {}", names::constant(c, "ur_structure_type_t"))
        });
        let (name, print) = (constant(r), camel(&r.c));
        let row = format!("{name} {}{stype} by urPrint{print} {{ {} }}", r.c, members.join(", "));
        s.push_str(&wrapped(&row, 4));
    }
    s.push_str("}\n");
    Ok(s)
}
/// Returns where the length of a list is found.
fn count<'n>(mut of: impl Iterator<Item = &'n str>, name: &str) -> Result<String, String> {
    if name.parse::<usize>().is_ok() {
        return Ok(format!("Fixed({name})"));
    }
    match of.position(|n| n == name) {
        Some(at) => Ok(format!("Sibling({at})")),
        None => Err(format!("no {name} says how long a list is")),
    }
}
fn union(spec: &Spec, of: &Record, u: &Record) -> Result<String, String> {
    let tag = of.fields.iter().position(|f| f.name == "type");
    let tag =
        tag.ok_or(format!("{}: no type says which member of {} is meant", of.name, u.name))?;
    let mut members = Vec::new();
    for (_, c, member) in TAGS.iter().filter(|(name, ..)| *name == u.name) {
        let f = u.fields.iter().find(|f| f.name == *member).ok_or(format!("no {member}"))?;
        let e = spec.enums.iter().find_map(|e| e.variants.iter().find(|v| v.c == *c));
        let value = e.ok_or(format!("no {c}"))?.number;
        let kind = kind(spec, &f.ty, None)?;
        members.push(format!("Tag {{ value: {value}, name: \"{member}\", kind: {kind} }}"));
    }
    Ok(format!("Union(\"{}\", {tag}, &[{}])", u.c, members.join(", ")))
}

fn queries(spec: &Spec) -> String {
    let mut s = format!(
        "{NOTICE}//! The type of the answer to each query.\nuse super::{{kind::{{Answer, Kind::*, Query}}, records::*}};\nuse std::ffi::{{c_char, c_void}};\nuse ur_sys::*;\n\nqueries! {{\n"
    );
    for query in spec.enums.iter().filter(|e| e.kind == EnumKind::Query) {
        let _ = writeln!(s, "    {} {} {{", query_constant(&query.c), query.c);
        for v in &query.variants {
            let (many, ty) = match &v.answer {
                // The reference ignores the size of the `Binaries` list and prints only its first element.
                Some(Answer::Many(t)) => (v.name != "Binaries", t),
                Some(Answer::One(t)) => (false, t),
                None => continue,
            };
            let Ok(mut kind) = kind(spec, ty, None) else { continue };
            if ty.pointee().is_some_and(|t| t.base() == "c_void") {
                kind = "Bare".into();
            }
            let size = if v.name == "Binaries" { "()".into() } else { rust_type(spec, ty) };
            let many = if many { "many" } else { "one" };
            s.push_str(&wrapped(&format!("{} {} {many} {size} = {kind};", v.number, v.c), 8));
        }
        s.push_str("    }\n");
    }
    s.push_str("}\n");
    s
}
/// `ur_device_info_t` → `DEVICE_INFO`.
fn query_constant(c: &str) -> String {
    c.trim_start_matches("ur_").trim_end_matches("_t").to_ascii_uppercase()
}

fn calls(spec: &Spec) -> Result<String, String> {
    let mut s = format!(
        "{NOTICE}//! The parameters of calls, and the functions that print them.\n#![allow(non_upper_case_globals, reason = \"each has its entry's name\")]\nuse super::{{kind::{{Call, Count::*, Kind::*, Parameter}}, queries::*, records::*}};\nuse std::ffi::{{c_char, c_void}};\nuse ur_sys::*;\n\ncalls! {{\n"
    );
    for e in spec.entries() {
        let mut params = Vec::new();
        for p in &e.params {
            let name = header::parameter(spec, &e.name, p);
            params.push(format!("{name}: {}", parameter(spec, e, p)?));
        }
        let (name, print) = (names::function(&e.name), camel(&header::params_struct(e)));
        let (number, params) = (number(spec, e)?, params.join(", "));
        let row = format!("{number} {} {name} by urPrint{print} ({params});", e.name);
        s.push_str(&wrapped(&row, 4));
    }
    s.push_str("}\n");
    Ok(s)
}
fn number(spec: &Spec, e: &Entry) -> Result<String, String> {
    let functions = spec.enumeration("Function").ok_or("no enum Function")?;
    let c = format!("UR_FUNCTION_{}", names::function(&e.name).to_ascii_uppercase());
    let variant = functions.variants.iter().find(|v| v.c == c);
    match variant {
        Some(v) => Ok(format!("{}", v.number)),
        None => Err(format!("no {c}")),
    }
}
/// Pointers that the reference prints without checking for null.
const BARE: &[(&str, &str)] = &[
    ("urBindlessImagesFreeMappedLinearMemoryExp", "mem"),
    ("urIPCCloseMemHandleExp", "mem"),
    ("urIPCGetMemHandleExp", "mem"),
    ("urIPCOpenEventHandleExp", "ipc_event_handle_data"),
    ("urIPCOpenMemHandleExp", "ipc_mem_handle_data"),
    ("urIPCOpenMemHandleExp", "mem"),
    ("urIPCOpenPhysMemHandleExp", "ipc_phys_mem_handle_data"),
    ("urMemoryExportAllocExportableMemoryExp", "mem"),
    ("urMemoryExportExportMemoryHandleExp", "mem"),
    ("urMemoryExportExportMemoryHandleExp", "mem_handle_ret"),
    ("urMemoryExportFreeExportableMemoryExp", "mem"),
];
/// Whether the reference prints all elements of such a list, and not only the first.
fn is_listed(spec: &Spec, entry: &Entry, ty: &Type) -> bool {
    let record = spec.record(ty.base()).is_some() && ty.base() != "DeviceBinary";
    match entry.name.as_str() {
        "urKernelSetSpecializationConstants" => false,
        "urProgramCreateWithBinary" => true,
        _ => spec.is_handle(ty.base()) || record,
    }
}
fn parameter(spec: &Spec, entry: &Entry, p: &Param) -> Result<String, String> {
    if BARE.contains(&(entry.name.as_str(), p.name.as_str())) {
        return Ok("Bare".into());
    }
    let at = |name: &str| entry.params.iter().position(|p| p.name == name);
    match &p.role {
        Role::List(n) | Role::WaitList(n) if is_listed(spec, entry, &p.ty) => {
            let names = entry.params.iter().map(|p| p.name.as_str());
            let count = count(names, n).map_err(|e| format!("{}: {e}", entry.name))?;
            kind(spec, &p.ty, Some(&count))
        }
        Role::Answer { name, size } => {
            let param = entry.params.iter().find(|p| p.name == *name);
            let query = param.map(|p| c_name(spec, p.ty.base())).unwrap_or_default();
            let query = query_constant(&query);
            match (at(name), at(size)) {
                (Some(name), Some(size)) => Ok(format!("Answer(&{query}, {name}, {size})")),
                _ => Err(format!("{}: an answer without a name or a size", entry.name)),
            }
        }
        // Their names call them handles; their types are integers.
        _ if matches!(&p.ty, Type::Name(n) if n.ends_with("NativeHandle")) => Ok("Address".into()),
        _ => kind(spec, &p.ty, None),
    }
}
