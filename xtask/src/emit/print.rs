//! `crates/ur-loader/src/print/`: what every value of the API is made of, as tables that one printer
//! reads, and the exported functions that name a table each.
use super::{
    NOTICE, Output, c_name, flags_type,
    header::{self, print::camel},
    rust_type, rustfmt,
};
use crate::{
    model::{Answer, Entry, Enum, EnumKind, Param, Record, Role, Spec, Type},
    names,
};
use std::fmt::Write;

/// The files.
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

/// Which member of a union is meant, by what the member in front of it says: union, tag, member.
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

/// Every exported function, with the type of what it prints, for a macro to make symbols of.
fn symbols(spec: &Spec) -> String {
    let mut s = format!(
        "{NOTICE}//! The names and types of all that is exported from here.\n\n\
         /// Hands a row for each function to the macro `then`.\n#[macro_export]\nmacro_rules! print_symbols {{\n($then:ident) => {{ $then! {{\n"
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

/// The names of all these functions.
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

/// How a value of this type looks, as the printer's `Kind`. `count` finds the length of a list.
fn kind(spec: &Spec, ty: &Type, list: Option<&str>) -> Result<String, String> {
    Ok(match ty {
        Type::Name(n) => named(spec, n)?,
        Type::Array { of, length } => {
            format!("Kind::Array(&{}, {length})", kind(spec, of, None)?)
        }
        Type::Pointer { to, .. } => match &**to {
            // Of a byte that is pointed at the reference says whether it is one.
            Type::Name(n) if n == "u8" => "Kind::Pointer(&Kind::Truth)".into(),
            Type::Name(n) if n == "c_void" => "Kind::Address".into(),
            Type::Name(n) if n == "c_char" => "Kind::Text".into(),
            to => match list {
                Some(count) => format!("Kind::List(&{}, {count})", kind(spec, to, None)?),
                None => format!("Kind::Pointer(&{})", kind(spec, to, None)?),
            },
        },
    })
}
fn named(spec: &Spec, name: &str) -> Result<String, String> {
    match name {
        "Bool" => return Ok("Kind::Truth".into()),
        "ApiVersion" => return Ok("Kind::Version".into()),
        _ => {}
    }
    if let Some(alias) = spec.aliases.iter().find(|a| a.name == name) {
        return kind(spec, &alias.of, None);
    }
    if spec.callback(name).is_some() {
        return Ok("Kind::Bare".into());
    }
    if spec.is_handle(name) {
        return Ok("Kind::Address".into());
    }
    if let Some(e) = spec.enumeration(name) {
        let flags = e.kind == EnumKind::Flags && e.name != name;
        return Ok(match flags {
            true => format!("Kind::Flags({}::NAMES)", flags_type(&e.c)),
            false => format!("Kind::Enum({}::NAMES)", enum_type(e)),
        });
    }
    if let Some(r) = spec.record(name) {
        return Ok(format!("Kind::Record(&{})", constant(r)));
    }
    Ok(match name {
        "u8" => "Kind::U8",
        "c_char" => "Kind::Char",
        "u32" => "Kind::U32",
        "i32" => "Kind::I32",
        "u64" => "Kind::U64",
        "usize" | "uintptr_t" => "Kind::Usize",
        "f32" => "Kind::F32",
        "f64" => "Kind::F64",
        "bool" => "Kind::Bool",
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
        "{NOTICE}//! What structs are made of, and printing of them.\nuse super::kind::{{Count, Kind, Member, Record, Tag}};\nuse std::mem::offset_of;\nuse ur_sys::*;\n"
    );
    for r in &spec.records {
        let mut members = String::new();
        for f in &r.fields {
            let count =
                f.list.as_deref().map(|n| count(r.fields.iter().map(|f| f.name.as_str()), n));
            let kind = match spec.record(f.ty.base()) {
                Some(u) if u.union => union(spec, r, u)?,
                _ if f.name == "pNext" => "Kind::Next".into(),
                _ if r.name.starts_with("ExpCommandBufferUpdate")
                    && f.ty.pointee().is_some()
                    && f.list.is_none() =>
                {
                    "Kind::Bare".into()
                }
                _ if r.name == "DevicePartitionProperties" => kind(spec, &f.ty, None)?,
                _ => kind(spec, &f.ty, count.transpose()?.as_deref())?,
            };
            let at = names::escape(&f.name);
            let _ = writeln!(
                members,
                "Member {{ name: \"{}\", at: offset_of!({}, {at}), kind: {kind} }},",
                f.name, r.c
            );
        }
        if r.union {
            continue;
        }
        let stype = match &r.stype {
            Some(c) => format!(
                "Some(ur_structure_type_t::{}.0)",
                names::constant(c, "ur_structure_type_t")
            ),
            None => "None".into(),
        };
        let _ = write!(
            s,
            "\n/// `{c}`\npub static {}: Record = Record {{ name: \"{c}\", stype: {stype}, size: size_of::<{c}>(), members: &[\n{members}] }};\n",
            constant(r),
            c = r.c
        );
    }
    let list = |which: &dyn Fn(&Record) -> bool| {
        let those = spec.records.iter().filter(|r| !r.union && which(r));
        those.map(|r| format!("&{}", constant(r))).collect::<Vec<_>>().join(", ")
    };
    let _ = write!(
        s,
        "\n/// The structs that chains may have.\npub static CHAINED: &[&Record] = &[{}];\n\n/// All structs.\npub static RECORDS: &[&Record] = &[{}];\n",
        list(&|r| r.stype.is_some()),
        list(&|_| true),
    );
    s.push_str("\nrecords! {\n");
    for r in spec.records.iter().filter(|r| !r.union) {
        let _ = writeln!(s, "urPrint{}: {} = {};", camel(&r.c), r.c, constant(r));
    }
    s.push_str("}\n");
    Ok(s)
}
/// Where the length of a list is found.
fn count<'n>(mut of: impl Iterator<Item = &'n str>, name: &str) -> Result<String, String> {
    if name.parse::<usize>().is_ok() {
        return Ok(format!("Count::Fixed({name})"));
    }
    match of.position(|n| n == name) {
        Some(at) => Ok(format!("Count::Sibling({at})")),
        None => Err(format!("no {name} says how long a list is")),
    }
}
fn union(spec: &Spec, of: &Record, u: &Record) -> Result<String, String> {
    let tag = of.fields.iter().position(|f| f.name == "type");
    let tag =
        tag.ok_or(format!("{}: no type says which member of {} is meant", of.name, u.name))?;
    let mut members = String::new();
    for (_, c, member) in TAGS.iter().filter(|(name, ..)| *name == u.name) {
        let f = u.fields.iter().find(|f| f.name == *member).ok_or(format!("no {member}"))?;
        let e = spec.enums.iter().find_map(|e| e.variants.iter().find(|v| v.c == *c));
        let value = e.ok_or(format!("no {c}"))?.number;
        let kind = kind(spec, &f.ty, None)?;
        let _ = write!(members, "Tag {{ value: {value}, name: \"{member}\", kind: {kind} }}, ");
    }
    Ok(format!("Kind::Union(\"{}\", {tag}, &[{members}])", u.c))
}

fn queries(spec: &Spec) -> String {
    let mut s = format!(
        "{NOTICE}//! What shape the answer to each query has.\nuse super::{{kind::{{Answer, Kind, Query}}, records::*}};\nuse std::ffi::c_void;\nuse ur_sys::*;\n"
    );
    for query in spec.enums.iter().filter(|e| e.kind == EnumKind::Query) {
        let mut answers = String::new();
        for v in &query.variants {
            let Some((many, ty)) = (match &v.answer {
                Some(Answer::One(t)) => Some((false, t)),
                Some(Answer::Many(t)) => Some((true, t)),
                None => None,
            }) else {
                continue;
            };
            let Ok(mut kind) = kind(spec, ty, None) else { continue };
            if ty.pointee().is_some_and(|t| t.base() == "c_void") {
                kind = "Kind::Bare".into();
            }
            let many = many && v.name != "Binaries";
            let size = match ty {
                Type::Name(n) if n == "c_char" => "1".into(),
                Type::Name(n) if n == "c_void" => continue,
                // Whose size the reference does not look at.
                _ if v.name == "Binaries" => "0".into(),
                _ => format!("size_of::<{}>()", rust_type(spec, ty)),
            };
            let _ = writeln!(
                answers,
                "Answer {{ of: {}, name: \"{}\", many: {many}, size: {size}, kind: {kind} }},",
                v.number, v.c
            );
        }
        let name = query.c.trim_start_matches("ur_").trim_end_matches("_t").to_ascii_uppercase();
        let _ = write!(
            s,
            "\n/// `{}`\npub static {name}: Query = Query {{ answers: &[\n{answers}] }};\n",
            query.c
        );
    }
    s
}

fn calls(spec: &Spec) -> Result<String, String> {
    let mut s = format!(
        "{NOTICE}//! What the parameters of calls are, and printing of them.\nuse super::{{kind::{{Call, Count, Kind, Parameter}}, queries::*, records::*}};\nuse std::ffi::{{c_char, c_void}};\nuse ur_sys::*;\n"
    );
    let mut all = String::new();
    let mut exported = String::new();
    for e in spec.entries() {
        let name = names::function(&e.name).to_ascii_uppercase();
        let mut params = String::new();
        for p in &e.params {
            let _ = writeln!(
                params,
                "Parameter {{ name: \"{}\", kind: {} }},",
                header::parameter(spec, &e.name, p),
                parameter(spec, e, p)?
            );
        }
        let number = number(spec, e)?;
        let _ = write!(
            s,
            "\n/// `{c}`\npub static {name}: Call = Call {{ name: \"{c}\", function: {number}, params: &[\n{params}] }};\n",
            c = e.name
        );
        let _ = write!(all, "&{name}, ");
        let _ = writeln!(exported, "urPrint{} = {name};", camel(&header::params_struct(e)));
    }
    let _ = write!(
        s,
        "\n/// Every call, in the specification's order.\npub static CALLS: &[&Call] = &[{all}];\n\ncalls! {{\n{exported}}}\n"
    );
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
/// Pointers that the reference prints without looking whether they are null.
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
/// Whether the reference prints all elements of a list of these, and not the first alone.
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
        return Ok("Kind::Bare".into());
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
            let query = query.trim_start_matches("ur_").trim_end_matches("_t").to_ascii_uppercase();
            match (at(name), at(size)) {
                (Some(name), Some(size)) => Ok(format!("Kind::Answer(&{query}, {name}, {size})")),
                _ => Err(format!("{}: an answer without a name or a size", entry.name)),
            }
        }
        // By their names these are handles, by their types numbers.
        _ if matches!(&p.ty, Type::Name(n) if n.ends_with("NativeHandle")) => {
            Ok("Kind::Address".into())
        }
        _ => kind(spec, &p.ty, None),
    }
}
