//! `crates/ur-loader/src/layers/{check,rows}.rs`: what parameters must be, as conditions over C's own
//! arguments; and what each entry does to the objects that it is given.
use super::{NOTICE, Output, header, rust_type, rustfmt};
use crate::{
    model::{Direction, Entry, Enum, EnumKind, Fault, Param, Role, Spec, Type, When},
    names,
};
use std::{collections::BTreeSet, fmt::Write};
use syn::{BinOp, Expr};

/// How long a line of `check` is.
const WIDTH: usize = 100;

/// The files.
pub fn files(spec: &Spec) -> Result<Vec<Output>, String> {
    let file = |name: &str, text: String| -> Result<Output, String> {
        let path = format!("crates/ur-loader/src/layers/{name}.rs");
        Ok(Output { path, text: rustfmt(&text)? })
    };
    Ok(vec![file("check", checks(spec)?)?, file("rows", rows(spec)?)?])
}

fn checks(spec: &Spec) -> Result<String, String> {
    let mut rows = String::new();
    let mut asked = BTreeSet::new();
    for e in spec.tables.iter().flat_map(|t| &t.entries) {
        let params: Vec<_> = e
            .params
            .iter()
            .map(|p| format!("{}: {}", names::escape(&p.name), rust_type(spec, &p.ty)))
            .collect();
        let rules = rules(spec, e, &mut asked)?;
        let (head, end) = (format!("{}(", names::function(&e.name)), rules.is_empty());
        wrap(&mut rows, 4, (&head, &params, if end { ") {}" } else { ") {" }));
        if !end {
            rules.iter().for_each(|rule| rule.write(&mut rows));
            rows.push_str("    }\n");
        }
    }
    Ok(format!(
        "{NOTICE}//! What parameters must be: null, range and size, as the specification says of each entry. The words\n\
         //! are those of `rules`.\n\
         #![expect(unsafe_code, reason = \"reads structs that C hands in\")]\n\
         #![allow(unused_variables, unused_unsafe, clippy::too_many_arguments, clippy::missing_safety_doc, clippy::manual_range_patterns, clippy::manual_range_contains, reason = \"one form for all entries\")]\n\
         use super::rules::*;\nuse std::ffi::{{c_char, c_void}};\nuse ur_sys::*;\n\n{}checks! {{\n{rows}}}\n",
        types(spec, &asked)
    ))
}
/// The types that rows ask by: handles, enumerations with their values, sets of flags.
fn types(spec: &Spec, asked: &BTreeSet<String>) -> String {
    let (mut handles, mut flags, mut values) = (Vec::new(), Vec::new(), String::new());
    for name in asked {
        let c = super::c_name(spec, name);
        match spec.enumeration(name) {
            None => handles.push(c),
            Some(e) if e.kind == EnumKind::Flags && e.name != *name => flags.push(c),
            Some(e) => {
                let _ = writeln!(values, "    {c}: {},", ranges(e));
            }
        }
    }
    let list = |names: &[String]| {
        let mut s = String::new();
        names.iter().for_each(|name| fill(&mut s, name, " "));
        s
    };
    format!(
        "handles! {{\n{}\n}}\nflags! {{\n{}\n}}\nvalues! {{\n{values}}}\n",
        list(&handles),
        list(&flags)
    )
}
/// A head, items with commas, and a tail: on one line, or the items on as many as they need.
fn wrap(s: &mut String, indent: usize, (head, items, tail): (&str, &[String], &str)) {
    let line = format!("{:indent$}{head}{}{tail}\n", "", items.join(", "));
    if line.len() <= WIDTH {
        s.push_str(&line);
        return;
    }
    let inner = indent + 4;
    let _ = write!(s, "{:indent$}{head}\n{:inner$}", "", "");
    let mut column = inner;
    for (i, item) in items.iter().enumerate() {
        if i > 0 && column + item.len() + 3 > WIDTH {
            let _ = write!(s, ",\n{:inner$}", "");
            column = inner;
        } else if i > 0 {
            s.push_str(", ");
            column += 2;
        }
        s.push_str(item);
        column += item.len();
    }
    let _ = writeln!(s, "\n{:indent$}{tail}", "");
}
/// Puts a word behind what there is, on a new line where the last one is full.
fn fill(s: &mut String, word: &str, between: &str) {
    let last = s.len() - s.rfind('\n').map_or(0, |at| at + 1);
    if s.is_empty() || last + word.len() > WIDTH {
        s.push_str(if s.is_empty() { "    " } else { "\n    " });
    } else {
        s.push_str(between);
    }
    s.push_str(word);
}
/// `InvalidValue` → `ERROR_INVALID_VALUE`.
fn result(spec: &Spec, code: &str) -> Result<String, String> {
    let results = spec.enumeration("Result").ok_or("no enum Result")?;
    let v = results.variants.iter().find(|v| v.name == format!("Error{code}"));
    v.map(|v| names::constant(&v.c, &results.c)).ok_or(format!("no result Error{code}"))
}

/// One rule of a row.
enum Rule {
    /// These are there, or values of their types: each with what C calls it.
    Given(Vec<(String, String)>),
    /// This member is a value of its type.
    Member(String, String),
    /// This is not so: the code, the condition, and the condition in words.
    Never(String, String, String),
    /// A list and its count, with the code that is answered where either is missing.
    Paired(String, String, String),
    /// The room for an answer, where it goes, and where its size goes.
    Answer(String, String, String),
    /// A list of events, its count, and what C calls it.
    Events(String, String, String),
}
impl Rule {
    fn write(&self, s: &mut String) {
        match self {
            Self::Given(all) => {
                let all: Vec<_> = all.iter().map(|(name, c)| format!("{name} {c:?}")).collect();
                wrap(s, 8, ("given(", &all, ")"));
            }
            Self::Member(member, c) => {
                let _ = writeln!(s, "        member({member} {c:?})");
            }
            Self::Never(code, condition, words) => {
                let line = format!("        never({code} {condition}, ");
                let fits = line.len() + words.len() + 3 <= WIDTH;
                let between = if fits { "" } else { "\n            " };
                let _ = writeln!(
                    s,
                    "{}{between}{words:?})",
                    line.trim_end_matches(|c| !fits && c == ' ')
                );
            }
            Self::Paired(code, list, count) => {
                let _ = writeln!(s, "        paired({code} {list} {count})");
            }
            Self::Answer(size, value, written) => {
                let _ = writeln!(s, "        answer({size} {value} {written})");
            }
            Self::Events(list, count, c) => {
                let _ = writeln!(s, "        events({list} {count} {c:?})");
            }
        }
    }
}
/// What must be of an entry's arguments, in the order in which it is asked; the types that are asked
/// after are added.
fn rules(spec: &Spec, e: &Entry, asked: &mut BTreeSet<String>) -> Result<Vec<Rule>, String> {
    let mut all = Vec::new();
    let mut given = Vec::new();
    for p in e.params.iter().filter(|p| is_given(spec, p)) {
        given.push((names::escape(&p.name), header::parameter(spec, &e.name, p)));
        if let Type::Name(n) = &p.ty
            && spec.callback(n).is_none()
        {
            asked.insert(n.clone());
        }
    }
    if !given.is_empty() {
        all.push(Rule::Given(given));
    }
    faults(spec, e, &mut all)?;
    // After what the entry says of members itself, perhaps with another code.
    for p in &e.params {
        members(spec, e, p, &mut all, asked);
    }
    for p in &e.params {
        if let Role::WaitList(count) = &p.role {
            let c = header::parameter(spec, &e.name, p);
            all.push(Rule::Events(p.name.clone(), count.clone(), c));
        }
    }
    Ok(all)
}
/// Whether something is asked of an argument by its type alone.
fn is_given(spec: &Spec, p: &Param) -> bool {
    match &p.ty {
        Type::Name(n) if spec.is_handle(n) || spec.callback(n).is_some() => !p.optional,
        Type::Name(n) => spec.enumeration(n).is_some(),
        Type::Pointer { .. } => !p.optional,
        _ => false,
    }
}
/// The values of an enumeration, as a pattern.
fn ranges(e: &Enum) -> String {
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
    let mut s = String::new();
    for (from, to) in ranges {
        let range = if from == to { from.to_string() } else { format!("{from}..={to}") };
        s.push_str(if s.is_empty() { "" } else { " | " });
        s.push_str(&range);
    }
    s
}
/// What structs that are pointed at have in them.
fn members(spec: &Spec, e: &Entry, p: &Param, all: &mut Vec<Rule>, asked: &mut BTreeSet<String>) {
    let (Direction::In, Role::Plain, Some(to)) = (p.direction, &p.role, p.ty.pointee()) else {
        return;
    };
    let Type::Name(n) = to else { return };
    let Some(record) = spec.record(n) else { return };
    let c = header::parameter(spec, &e.name, p);
    for f in &record.fields {
        let Type::Name(ty) = &f.ty else { continue };
        if f.name == "stype" || spec.enumeration(ty).is_none() {
            continue;
        }
        asked.insert(ty.clone());
        let member = format!("{}.{}", names::escape(&p.name), names::escape(&f.name));
        all.push(Rule::Member(member, format!("{c}->{}", f.name)));
    }
}

/// What the entry says must not be.
fn faults(spec: &Spec, e: &Entry, all: &mut Vec<Rule>) -> Result<(), String> {
    let mut told = Vec::new();
    for fault in &e.errors {
        let Some((condition, words)) = of_fault(spec, e, fault) else { continue };
        let one = (result(spec, &fault.code)?, condition, words);
        if !told.contains(&one) {
            told.push(one);
        }
    }
    let mut rest = told.as_slice();
    while let Some(((code, condition, words), after)) = rest.split_first() {
        if let Some(rule) = answer(rest) {
            all.push(rule);
            rest = &rest[3..];
        } else if let Some(rule) = paired(rest) {
            all.push(rule);
            rest = &rest[2..];
        } else {
            all.push(Rule::Never(code.clone(), condition.clone(), words.clone()));
            rest = after;
        }
    }
    Ok(())
}
/// A code, the condition that it is answered on, and the condition in words.
type Told = (String, String, String);

/// What is said of the room for an answer, if that is what comes first.
fn answer(rest: &[Told]) -> Option<Rule> {
    let (_, _, words) = rest.first()?;
    let (size, value) = words.strip_suffix(" != NULL")?.split_once(" == 0 && ")?;
    let written = rest.get(2)?.2.split_once(" && ")?.1.strip_suffix(" == NULL")?;
    let [large, null] = ["ERROR_INVALID_SIZE", "ERROR_INVALID_NULL_POINTER"];
    let all = [
        (large, format!("{size} == 0 && {value} != NULL")),
        (null, format!("{size} != 0 && {value} == NULL")),
        (null, format!("{value} == NULL && {written} == NULL")),
    ];
    let same = all.iter().zip(rest).all(|(all, told)| all.0 == told.0 && all.1 == told.2);
    same.then(|| Rule::Answer(size.into(), value.into(), written.into()))
}
/// What is said of a list and its count, if that is what comes first.
fn paired(rest: &[Told]) -> Option<Rule> {
    let [(code, _, words), (again, _, other), ..] = rest else { return None };
    let (list, count) = words.strip_suffix(" > 0")?.split_once(" == NULL && ")?;
    let same = code == again && *other == format!("{list} != NULL && {count} == 0");
    same.then(|| Rule::Paired(code.clone(), list.into(), count.into()))
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
/// Conditions of the specification over C's own arguments.
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
                BinOp::BitAnd(_) => Some(format!("{} != 0", self.number(e)?.text)),
                BinOp::Eq(_) | BinOp::Ne(_) => {
                    let not = if matches!(b.op, BinOp::Ne(_)) { "!" } else { "" };
                    for (one, other) in [(&b.left, &b.right), (&b.right, &b.left)] {
                        if is_null(other) {
                            return Some(format!("{not}{}", self.absent(one)?));
                        }
                    }
                    let op = if not.is_empty() { "==" } else { "!=" };
                    self.compare(b, op)
                }
                BinOp::Lt(_) | BinOp::Gt(_) | BinOp::Le(_) | BinOp::Ge(_) => {
                    let op = &b.op;
                    self.compare(b, &quote::quote!(#op).to_string())
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
    fn compare(&self, b: &syn::ExprBinary, op: &str) -> Option<String> {
        let [l, r] = alike(self.number(&b.left)?, self.number(&b.right)?);
        Some(format!("{l} {op} {r}"))
    }
    fn join(&self, b: &syn::ExprBinary, op: &str) -> Option<String> {
        let side = |e: &Expr| {
            let text = self.boolean(e)?;
            let other = match bare(e) {
                Expr::Binary(inner) if matches!(inner.op, BinOp::And(_)) => op == "||",
                Expr::Binary(inner) if matches!(inner.op, BinOp::Or(_)) => op == "&&",
                _ => false,
            };
            Some(if other { format!("({text})") } else { text })
        };
        Some(format!("{} {op} {}", side(&b.left)?, side(&b.right)?))
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
    fn number(&self, e: &Expr) -> Option<Number> {
        match bare(e) {
            Expr::Lit(l) => {
                let text = quote::quote!(#l).to_string();
                text.trim_end_matches(char::is_alphabetic).parse::<u64>().ok()?;
                Some(Number { text, ty: None })
            }
            Expr::Path(path) => match self.param(e) {
                Some(p) => self.as_number(&names::escape(&p.name), &p.ty),
                None => {
                    let name = path.path.get_ident()?.to_string();
                    let mut variants = self.spec.enums.iter().flat_map(|e| &e.variants);
                    let text = variants.find(|v| v.c == name)?.number.to_string();
                    Some(Number { text, ty: None })
                }
            },
            e @ Expr::Field(_) => {
                let (place, ty) = self.field(e)?;
                self.as_number(&place, &ty)
            }
            Expr::Binary(b) => {
                let (l, r) = (self.number(&b.left)?, self.number(&b.right)?);
                let differ = l.differs(&r);
                let ty = if differ { Some("u64".into()) } else { l.ty.clone().or(r.ty.clone()) };
                let [l, r] = alike(l, r);
                let text = match b.op {
                    BinOp::Add(_) => format!("{l}.saturating_add({r})"),
                    BinOp::Mul(_) => format!("{l}.saturating_mul({r})"),
                    BinOp::Rem(_) => format!("{l}.checked_rem({r}).unwrap_or(0)"),
                    BinOp::BitAnd(_) => format!("({l} & {r})"),
                    BinOp::BitOr(_) => format!("({l} | {r})"),
                    BinOp::Sub(_) => format!("{l}.wrapping_sub({r})"),
                    _ => return None,
                };
                Some(Number { text, ty })
            }
            _ => None,
        }
    }
    fn as_number(&self, place: &str, ty: &Type) -> Option<Number> {
        let Type::Name(n) = ty else { return None };
        let (text, ty) = match n.as_str() {
            "bool" => (format!("u32::from({place})"), "u32"),
            "Bool" => (place.to_string(), "u8"),
            "u8" | "u16" | "u32" | "u64" | "usize" => (place.to_string(), n.as_str()),
            _ if self.spec.enumeration(n).is_some() => (format!("{place}.0"), "u32"),
            _ => return None,
        };
        Some(Number { text, ty: Some(ty.into()) })
    }
}
/// A number in a condition; one that is written out is of any type.
struct Number {
    text: String,
    ty: Option<String>,
}
impl Number {
    fn differs(&self, other: &Self) -> bool {
        self.ty.is_some() && other.ty.is_some() && self.ty != other.ty
    }
}
/// Two numbers that are to meet, as ones of the same type.
fn alike(one: Number, other: Number) -> [String; 2] {
    let differ = one.differs(&other);
    [one, other].map(|n| match n.ty.as_deref() {
        Some(narrow) if differ && narrow != "u64" => format!("({} as u64)", n.text),
        _ => n.text,
    })
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
/// The part of an operand that is touched, if the parameters say it.
fn span(e: &Entry, i: usize, p: &Param) -> Option<String> {
    let (from, size) = p.bounds.as_ref()?;
    let at = |name: &str| e.params.iter().position(|p| p.name == name);
    if let Some(region) = at(size).filter(|i| e.params[*i].ty.base() == "RectRegion") {
        let block = format!("param: {i}, block: ({}, {region})", at(from)?);
        if e.name.contains("Image") {
            return Some(format!("Span::Image {{ {block} }}, "));
        }
        // They are called as the origin is.
        let pitch = |of: &str| at(&format!("{}{of}_pitch", from.strip_suffix("origin")?));
        let pitches = (pitch("row")?, pitch("slice")?);
        return Some(format!("Span::Rect {{ {block}, pitches: {pitches:?} }}, "));
    }
    let by = match size.split_once(" * ") {
        Some((one, other)) => format!("Product({}, {})", at(one)?, at(other)?),
        None => format!("Bytes({})", at(size)?),
    };
    match (p.ty.pointee().is_some(), from.as_str()) {
        (true, "0") => Some(format!("Span::Usm {{ param: {i}, size: Size::{by} }}, ")),
        (false, from) => {
            Some(format!("Span::Buffer {{ param: {i}, from: {}, size: Size::{by} }}, ", at(from)?))
        }
        _ => None,
    }
}
