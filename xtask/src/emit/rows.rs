//! Generates `crates/ur-cpu/tests/generated/entries.rs`: one row for each entry, so that a test can call
//! every entry with words and knows the meaning of each word.
use super::{NOTICE, Output, flags_type, rust_type, rustfmt, slot, wrapped};
use crate::{
    model::{Direction, Entry, EnumKind, Param, Role, Spec, Type},
    names,
};
use std::fmt::Write;

/// Generates the file.
pub fn file(spec: &Spec) -> Result<Output, String> {
    let mut s = format!(
        "{NOTICE}//! Every entry of the table: how to call it with words, and what its parameters are.\n\
         #![expect(unsafe_code, reason = \"plays the C caller\")]\n\
         use super::table::{{Entry, Param, Role::*, argument, entry}};\n\
         use std::mem::{{offset_of, size_of}};\nuse ur_sys::*;\n\n\
         /// In the order of the table.\npub static ENTRIES: &[Entry] = &[\n"
    );
    for table in &spec.tables {
        let member = names::member(&table.name);
        for entry in &table.entries {
            let params: Vec<_> = entry.params.iter().map(|p| param(spec, entry, p)).collect();
            let slot = slot(&entry.name, &table.member);
            let row =
                format!("entry!(\"{}\", {member}.{slot}, {}),", entry.name, params.join(", "));
            let _ = writeln!(s, "    {}", wrapped(&row, 4));
        }
    }
    s.push_str("];\n");
    let path = "crates/ur-cpu/tests/generated/entries.rs".into();
    Ok(Output { path, text: rustfmt(&s)? })
}

fn param(spec: &Spec, entry: &Entry, p: &Param) -> String {
    let need = if p.optional { "optional" } else { "required" };
    format!("{need} {} = {}", p.name, role(spec, entry, p))
}
/// The index of the parameter called `name`.
fn place(entry: &Entry, name: &str) -> String {
    format!("{:?}", entry.params.iter().position(|p| p.name == name))
}
fn role(spec: &Spec, entry: &Entry, p: &Param) -> String {
    let size_of_answer =
        |one: &Param| matches!(&one.role, Role::Answer { size, .. } if *size == p.name);
    match &p.ty {
        Type::Name(name) if spec.is_handle(name) => format!("Handle(\"{name}\")"),
        Type::Name(name) => match spec.enumeration(name) {
            Some(e) if e.kind == EnumKind::Flags => {
                format!("Flags({}::VALID.0)", flags_type(&e.c))
            }
            Some(e) => format!("Enumerator({}::VALUES[0].0)", e.c),
            None if spec.callback(name).is_some() => "Callback".into(),
            None if spec.record(name).is_some() => {
                format!("Value(size_of::<{}>())", rust_type(spec, &p.ty))
            }
            None if entry.params.iter().any(size_of_answer) => "AnswerSize".into(),
            None if name == "usize" => "Size".into(),
            None => "Number".into(),
        },
        Type::Pointer { to, .. } => pointer(spec, entry, p, to),
        Type::Array { .. } => "Pointer(None)".into(),
    }
}
fn pointer(spec: &Spec, entry: &Entry, p: &Param, to: &Type) -> String {
    if let Role::Answer { size, .. } = &p.role
        && p.direction != Direction::In
    {
        let at = entry.params.iter().position(|one| one.name == p.name).map_or(0, |at| at + 1);
        let told = entry.params[at..].iter().find(|one| one.direction == Direction::Out);
        let told = told.map_or("None".into(), |one| place(entry, &one.name));
        return format!("Answer({}, {told})", place(entry, size));
    }
    let count = match &p.role {
        Role::List(count) | Role::WaitList(count) => place(entry, count),
        _ => "None".into(),
    };
    let base = to.base();
    match (p.direction, to) {
        (Direction::In, Type::Name(name)) if spec.is_handle(name) => match p.role {
            Role::WaitList(_) => format!("WaitList({count})"),
            _ => format!("Handles(\"{name}\", {count})"),
        },
        (Direction::In, Type::Name(name)) if spec.record(name).is_some() => {
            record(spec, name, &count)
        }
        (Direction::In, _) if base == "c_char" => "Text".into(),
        (Direction::In, _) => format!("Pointer({count})"),
        (Direction::InOut, _) => "InOut".into(),
        (Direction::Out, _) if p.nulled => "OutNull".into(),
        (Direction::Out, _) => format!("Out({count})"),
    }
}
/// A struct that the caller passes by pointer: its size, its `stype`, and the words of it that are checked.
fn record(spec: &Spec, name: &str, count: &str) -> String {
    let Some(record) = spec.record(name) else { return "Pointer(None)".into() };
    let c = &record.c;
    let stype = match &record.stype {
        Some(stype) => {
            format!(
                "Some(ur_structure_type_t::{}.0)",
                names::constant(stype, "ur_structure_type_t")
            )
        }
        None => "None".into(),
    };
    let checked = record.fields.iter().filter_map(|field| {
        let Type::Name(ty) = &field.ty else { return None };
        let e = spec.enumeration(ty).filter(|_| field.name != "stype")?;
        let wrong = match e.kind {
            EnumKind::Flags => format!("!{}::VALID.0", flags_type(&e.c)),
            _ => "0x7fff_fffe".into(),
        };
        Some(format!("(offset_of!({c}, {}), {wrong})", names::escape(&field.name)))
    });
    let checked: Vec<_> = checked.collect();
    format!("Record(size_of::<{c}>(), {stype}, &[{}], {count})", checked.join(", "))
}
