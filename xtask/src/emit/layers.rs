//! `crates/ur-loader/src/layers/{check,rows}.rs`: what parameters must be, as conditions over C's own
//! arguments; and what each entry does to the objects that it is given.
use super::{NOTICE, Output, header, rust_type, rustfmt};
use crate::{
    model::{Direction, Entry, EnumKind, Fault, Param, Role, Spec, Type, When},
    names,
};
use std::fmt::Write;
use syn::{BinOp, Expr};

/// The files.
pub fn files(spec: &Spec) -> Result<Vec<Output>, String> {
    let file = |name: &str, text: String| -> Result<Output, String> {
        let path = format!("crates/ur-loader/src/layers/{name}.rs");
        Ok(Output { path, text: rustfmt(&text)? })
    };
    Ok(vec![file("check", checks(spec)?)?, file("rows", rows(spec)?)?])
}

fn checks(spec: &Spec) -> Result<String, String> {
    let mut s = format!(
        "{NOTICE}//! What parameters must be: null, range and size, as the specification says of each entry.\n\
         #![expect(unsafe_code, clippy::multiple_unsafe_ops_per_block, reason = \"reads structs that C hands in\")]\n\
         #![allow(unused_variables, unused_parens, unused_unsafe, clippy::unnecessary_cast, clippy::too_many_arguments, clippy::nonminimal_bool, clippy::missing_safety_doc, clippy::double_parens, clippy::manual_range_patterns, clippy::overly_complex_bool_expr, reason = \"one form for all entries\")]\n\
         use super::{{Verdict, wait_list}};\nuse std::ffi::{{c_char, c_void}};\nuse ur_sys::*;\n"
    );
    for e in spec.tables.iter().flat_map(|t| &t.entries) {
        let params: Vec<_> = e
            .params
            .iter()
            .map(|p| format!("{}: {}", names::escape(&p.name), rust_type(spec, &p.ty)))
            .collect();
        let _ = write!(
            s,
            "\n/// Of `{}`.\n#[inline]\npub unsafe fn {}({}) -> Verdict {{\n",
            e.name,
            names::function(&e.name),
            params.join(", ")
        );
        for (code, condition, why) in conditions(spec, e) {
            let code = result(spec, &code)?;
            let _ = writeln!(
                s,
                "// SAFETY: pointers that are not null are to be read, says the caller.\nif unsafe {{ {condition} }} {{ return Err((ur_result_t::{code}, {why:?})); }}"
            );
        }
        s.push_str("Ok(())\n}\n");
    }
    Ok(s)
}
/// `InvalidValue` → `ERROR_INVALID_VALUE`.
fn result(spec: &Spec, code: &str) -> Result<String, String> {
    let results = spec.enumeration("Result").ok_or("no enum Result")?;
    let v = results.variants.iter().find(|v| v.name == format!("Error{code}"));
    v.map(|v| names::constant(&v.c, &results.c)).ok_or(format!("no result Error{code}"))
}

/// Code, condition in Rust, and the condition in words.
fn conditions(spec: &Spec, e: &Entry) -> Vec<(String, String, String)> {
    let mut all = Vec::new();
    for p in &e.params {
        of_value(spec, e, p, &mut all);
    }
    for fault in &e.errors {
        if let Some((condition, words)) = of_fault(spec, e, fault) {
            all.push((fault.code.clone(), condition, words));
        }
    }
    // After what the entry says of members itself, perhaps with another code.
    for p in &e.params {
        of_members(spec, e, p, &mut all);
    }
    for p in &e.params {
        if let Role::WaitList(count) = &p.role {
            let condition = format!("wait_list({}, {count})", p.name);
            let c = header::parameter(spec, &e.name, p);
            all.push(("InvalidEventWaitList".into(), condition, format!("{c} holds a null event")));
        }
    }
    all
}
fn of_value(spec: &Spec, e: &Entry, p: &Param, all: &mut Vec<(String, String, String)>) {
    let (name, c) = (names::escape(&p.name), header::parameter(spec, &e.name, p));
    let mut add = |code: &str, condition: String, why: &str| {
        all.push((code.into(), condition, format!("{c} {why}")));
    };
    match &p.ty {
        Type::Name(n) if spec.is_handle(n) && !p.optional => {
            add("InvalidNullHandle", format!("{name}.is_null()"), "is null")
        }
        Type::Name(n) if spec.callback(n).is_some() && !p.optional => {
            add("InvalidNullPointer", format!("{name}.is_none()"), "is null")
        }
        Type::Name(n) => {
            if let Some((condition, why)) = of_enumeration(spec, n, &name) {
                add("InvalidEnumeration", condition, why);
            }
        }
        Type::Pointer { .. } if !p.optional => {
            add("InvalidNullPointer", format!("{name}.is_null()"), "is null")
        }
        _ => {}
    }
}
/// That a value is none of an enumeration or flag set.
fn of_enumeration(spec: &Spec, ty: &str, value: &str) -> Option<(String, &'static str)> {
    let e = spec.enumeration(ty)?;
    if e.kind == EnumKind::Flags && e.name != ty {
        return Some((format!("{value}.unknown_bits() != 0"), "has bits that are no flags"));
    }
    let mut numbers: Vec<u32> = e.variants.iter().map(|v| v.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for n in numbers {
        match ranges.last_mut() {
            Some((_, end)) if *end + 1 == n => *end = n,
            _ => ranges.push((n, n)),
        }
    }
    let pattern: Vec<_> = ranges
        .iter()
        .map(|(from, to)| if from == to { from.to_string() } else { format!("{from}..={to}") })
        .collect();
    Some((format!("!matches!({value}.0, {})", pattern.join(" | ")), "is no value of its type"))
}
/// What structs that are pointed at have in them.
fn of_members(spec: &Spec, e: &Entry, p: &Param, all: &mut Vec<(String, String, String)>) {
    let (Direction::In, Role::Plain, Some(to)) = (p.direction, &p.role, p.ty.pointee()) else {
        return;
    };
    let Type::Name(n) = to else { return };
    let Some(record) = spec.record(n) else { return };
    let c = header::parameter(spec, &e.name, p);
    for f in &record.fields {
        let Type::Name(ty) = &f.ty else { continue };
        if f.name == "stype" {
            continue;
        }
        let (name, member) = (names::escape(&p.name), names::escape(&f.name));
        if let Some((condition, why)) = of_enumeration(spec, ty, &format!("(*{name}).{member}")) {
            let there = if p.optional { format!("!{name}.is_null() && ") } else { String::new() };
            let why = format!("{c}->{} {why}", f.name);
            all.push(("InvalidEnumeration".into(), format!("{there}{condition}"), why));
        }
    }
}

fn of_fault(spec: &Spec, e: &Entry, fault: &Fault) -> Option<(String, String)> {
    let When::Expr(expr) = &fault.when else { return None };
    let translate = Translate { spec, e };
    let condition = translate.boolean(expr)?;
    // Members of a struct that may be absent are asked only where it is there.
    let mut guards = String::new();
    for p in e.params.iter().filter(|p| p.optional) {
        let (read, asked) = (format!("(*{}).", p.name), format!("{}.is_null()", p.name));
        if condition.contains(&read) && !condition.contains(&asked) {
            let _ = write!(guards, "!{asked} && ");
        }
    }
    let words = quote::quote!(#expr).to_string();
    let plain = words.replace(" . ", ".").replace("! ", "!").replace("null", "NULL");
    match guards.is_empty() {
        true => Some((condition, plain)),
        false => Some((format!("{guards}({condition})"), plain)),
    }
}
/// Conditions of the specification over C's own arguments; numbers are `u64`s.
struct Translate<'s> {
    spec: &'s Spec,
    e: &'s Entry,
}
impl Translate<'_> {
    fn param(&self, e: &Expr) -> Option<&Param> {
        let Expr::Path(p) = bare(e) else { return None };
        let name = p.path.get_ident()?.to_string();
        self.e.params.iter().find(|p| p.name == name)
    }
    fn boolean(&self, e: &Expr) -> Option<String> {
        match bare(e) {
            Expr::Binary(b) => match b.op {
                BinOp::And(_) => self.join(b, "&&"),
                BinOp::Or(_) => self.join(b, "||"),
                BinOp::BitAnd(_) => Some(format!("({}) != 0", self.number(e)?)),
                BinOp::Eq(_) | BinOp::Ne(_) => {
                    let not = if matches!(b.op, BinOp::Ne(_)) { "!" } else { "" };
                    for (one, other) in [(&b.left, &b.right), (&b.right, &b.left)] {
                        if is_null(other) {
                            return Some(format!("{not}{}", self.absent(one)?));
                        }
                    }
                    let op = if not.is_empty() { "==" } else { "!=" };
                    Some(format!("{} {op} {}", self.number(&b.left)?, self.number(&b.right)?))
                }
                BinOp::Lt(_) | BinOp::Gt(_) | BinOp::Le(_) | BinOp::Ge(_) => {
                    let op = &b.op;
                    let op = quote::quote!(#op).to_string();
                    Some(format!("{} {op} {}", self.number(&b.left)?, self.number(&b.right)?))
                }
                _ => None,
            },
            Expr::Unary(u) if matches!(u.op, syn::UnOp::Not(_)) => {
                Some(format!("!({})", self.boolean(&u.expr)?))
            }
            e @ Expr::Path(_) => Some(format!("!{}", self.absent(e)?)),
            _ => None,
        }
    }
    fn join(&self, b: &syn::ExprBinary, op: &str) -> Option<String> {
        Some(format!("({} {op} {})", self.boolean(&b.left)?, self.boolean(&b.right)?))
    }
    /// That a pointer, a handle or a callback is null.
    fn absent(&self, e: &Expr) -> Option<String> {
        if let Expr::Field(_) = bare(e) {
            let (place, ty) = self.field(bare(e))?;
            let pointer = matches!(ty, Type::Pointer { .. });
            return pointer.then(|| format!("{place}.is_null()"));
        }
        let p = self.param(e)?;
        let name = names::escape(&p.name);
        match &p.ty {
            Type::Pointer { .. } => Some(format!("{name}.is_null()")),
            Type::Name(n) if self.spec.is_handle(n) => Some(format!("{name}.is_null()")),
            Type::Name(n) if self.spec.callback(n).is_some() => Some(format!("{name}.is_none()")),
            _ => None,
        }
    }
    fn field(&self, e: &Expr) -> Option<(String, Type)> {
        let Expr::Field(f) = e else { return None };
        let syn::Member::Named(member) = &f.member else { return None };
        let p = self.param(&f.base)?;
        let record = self.spec.record(p.ty.base())?;
        let member = member.to_string();
        let member = member.trim_start_matches("r#");
        let field = record.fields.iter().find(|f| f.name == member)?;
        let (name, member) = (names::escape(&p.name), names::escape(member));
        let place = match p.ty {
            Type::Pointer { .. } if p.role == Role::Plain => format!("(*{name}).{member}"),
            Type::Name(_) => format!("{name}.{member}"),
            _ => return None,
        };
        Some((place, field.ty.clone()))
    }
    fn number(&self, e: &Expr) -> Option<String> {
        match bare(e) {
            Expr::Lit(l) => {
                let text = quote::quote!(#l).to_string();
                text.trim_end_matches(char::is_alphabetic).parse::<u64>().ok()?;
                Some(format!("{text}u64"))
            }
            Expr::Path(path) => match self.param(e) {
                Some(p) => self.as_number(&names::escape(&p.name), &p.ty),
                None => {
                    let name = path.path.get_ident()?.to_string();
                    let mut variants = self.spec.enums.iter().flat_map(|e| &e.variants);
                    Some(format!("{}u64", variants.find(|v| v.c == name)?.number))
                }
            },
            e @ Expr::Field(_) => {
                let (place, ty) = self.field(e)?;
                self.as_number(&place, &ty)
            }
            Expr::Binary(b) => {
                let (l, r) = (self.number(&b.left)?, self.number(&b.right)?);
                match b.op {
                    BinOp::Add(_) => Some(format!("({l}).saturating_add({r})")),
                    BinOp::Mul(_) => Some(format!("({l}).saturating_mul({r})")),
                    BinOp::Rem(_) => Some(format!("({l}).checked_rem({r}).unwrap_or(0)")),
                    BinOp::BitAnd(_) => Some(format!("(({l}) & ({r}))")),
                    BinOp::BitOr(_) => Some(format!("(({l}) | ({r}))")),
                    BinOp::Sub(_) => Some(format!("({l}).wrapping_sub({r})")),
                    _ => None,
                }
            }
            _ => None,
        }
    }
    fn as_number(&self, place: &str, ty: &Type) -> Option<String> {
        let Type::Name(n) = ty else { return None };
        match n.as_str() {
            "u8" | "u16" | "u32" | "u64" | "usize" | "bool" | "Bool" => {
                Some(format!("({place} as u64)"))
            }
            _ if self.spec.enumeration(n).is_some() => Some(format!("({place}.0 as u64)")),
            _ => None,
        }
    }
}
fn is_null(e: &Expr) -> bool {
    matches!(bare(e), Expr::Path(p) if p.path.is_ident("null"))
}
fn bare(e: &Expr) -> &Expr {
    match e {
        Expr::Paren(p) => bare(&p.expr),
        e => e,
    }
}

/// Entries that end an object though it has no count to go down.
const ENDS: &[(&str, &str)] = &[
    ("urIPCClosePhysMemHandleExp", "phys_mem"),
    ("urUSMPoolDestroyExp", "pool"),
    ("urGraphDestroyExp", "graph"),
    ("urGraphExecutableGraphDestroyExp", "executable_graph"),
];
/// Kinds whose handles are looked up, and not made for the caller, by entries that list them.
const LISTED: &[&str] = &["Platform", "Device"];

fn rows(spec: &Spec) -> Result<String, String> {
    let mut s = format!(
        "{NOTICE}//! What each entry does to the objects that it is given.\n\
         #![allow(non_upper_case_globals, missing_docs, reason = \"each has its entry's name\")]\n\
         use super::effect::{{Act, Class, Effect, Holding, Kind, Row, Size, Span}};\nuse crate::print::calls;\n"
    );
    for e in spec.tables.iter().flat_map(|t| &t.entries) {
        let name = names::function(&e.name);
        let mut effects = String::new();
        for (i, p) in e.params.iter().enumerate() {
            if let Some((kind, act)) = act(spec, e, p)? {
                let _ = write!(
                    effects,
                    "Effect {{ param: {i}, kind: Kind::{kind}, act: Act::{act} }}, "
                );
            }
        }
        let spans = e.params.iter().enumerate().filter_map(|(i, p)| span(e, i, p));
        let spans: String = spans.collect();
        let holdings = holdings(e)?;
        let _ = write!(
            s,
            "\npub static {name}: Row = Row {{ call: &calls::{}, effects: &[{effects}], spans: &[{spans}], holdings: &[{holdings}] }};\n",
            name.to_ascii_uppercase()
        );
    }
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
/// What an entry gives that is known by its address: the entry, where the address goes, its class, what it
/// is, and how long, in `Size`'s words with names of parameters.
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
/// What an entry takes back that is known by its address: the entry, the address, its class.
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

fn holdings(e: &Entry) -> Result<String, String> {
    let at = |name: &str| {
        let found = e.params.iter().position(|p| p.name == name);
        found.ok_or(format!("{} has no parameter {name}", e.name))
    };
    let mut s = String::new();
    for (_, param, class, what, size) in GIVES.iter().filter(|g| g.0 == e.name) {
        let size = match size.trim_end_matches(')').split_once('(') {
            None => "None".into(),
            Some((how, of)) => {
                let of: Vec<_> = of.split(", ").map(at).collect::<Result<_, _>>()?;
                let of: Vec<_> = of.iter().map(usize::to_string).collect();
                format!("Some(Size::{how}({}))", of.join(", "))
            }
        };
        let _ = write!(
            s,
            "Holding::Gives {{ param: {}, class: Class::{class}, what: {what:?}, size: {size}, pool: {:?} }}, ",
            at(param)?,
            at("pool").ok()
        );
    }
    for (_, param, class) in TAKES.iter().filter(|t| t.0 == e.name) {
        let _ = write!(s, "Holding::Takes {{ param: {}, class: Class::{class} }}, ", at(param)?);
    }
    Ok(s)
}
/// The bytes of an operand that are touched, if they are a run of a known length.
fn span(e: &Entry, i: usize, p: &Param) -> Option<String> {
    let (from, size) = p.bounds.as_ref()?;
    let at = |name: &str| e.params.iter().position(|p| p.name == name);
    let is_usm = p.ty.pointee().is_some();
    let by = match size.split_once(" * ") {
        Some((one, other)) => format!("Product({}, {})", at(one)?, at(other)?),
        None => format!("Bytes({})", at(size).filter(|i| !is_region(&e.params[*i]))?),
    };
    match (is_usm, from.as_str()) {
        (true, "0") => Some(format!("Span::Usm {{ param: {i}, size: Size::{by} }}, ")),
        (false, from) => {
            Some(format!("Span::Buffer {{ param: {i}, from: {}, size: Size::{by} }}, ", at(from)?))
        }
        _ => None,
    }
}
fn is_region(p: &Param) -> bool {
    p.ty.base() == "RectRegion"
}
