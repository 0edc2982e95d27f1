//! Generates `crates/ur-loader/src/layers/check.rs`: the conditions on parameters, in terms of C's arguments.
use super::{NOTICE, Output, header, own_enumerator, rust_type, rustfmt};
use crate::{
    model::{Direction, Entry, Enum, EnumKind, Fault, Param, Role, Spec, Type, When},
    names,
};
use std::{collections::BTreeSet, fmt::Write};
use syn::{BinOp, Expr};

/// The line width of the generated file.
const WIDTH: usize = 100;

/// Generates the file.
pub fn file(spec: &Spec) -> Result<Output, String> {
    let path = "crates/ur-loader/src/layers/check.rs".into();
    Ok(Output { path, text: rustfmt(&checks(spec)?)? })
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
        "{NOTICE}//! The checks of each entry's parameters that the specification documents: null, range and size. The macros\n\
         //! are in `rules`.\n\
         #![expect(unsafe_code, reason = \"reads structs that C hands in\")]\n\
         #![allow(unused_variables, unused_unsafe, clippy::too_many_arguments, clippy::missing_safety_doc, clippy::manual_range_patterns, clippy::manual_range_contains, reason = \"one form for all entries\")]\n\
         use super::rules::*;\nuse std::ffi::{{c_char, c_void}};\nuse ur_sys::*;\n\n{}checks! {{\n{rows}}}\n",
        types(spec, &asked)
    ))
}
/// The types that rows check: handles, enumerations with their values, flags.
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
/// Writes a head, items with commas, and a tail: on one line, or the items on several lines.
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
/// Appends a word, on a new line if the last one is full.
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

/// A rule of a row.
enum Rule {
    /// These arguments must be valid by their types: each with its C name.
    Given(Order, Vec<(String, String)>),
    /// This member must be valid by its type.
    Member(Order, String, String),
    /// This condition must not hold: the code, the condition, and the condition as text.
    Never(String, String, String),
    /// A list and its count, with the code if only one of both is given, and the C names.
    Paired(String, [String; 2], [String; 2]),
    /// The size of an answer's buffer, the buffer, and the pointer for the answer's size, with the C names.
    Answer([String; 3], [String; 3]),
    /// A list of events, its count, and the C name.
    Events(String, String, String),
}
impl Rule {
    fn write(&self, s: &mut String) {
        match self {
            Self::Given(_, all) => {
                let all: Vec<_> = all.iter().map(|(name, c)| format!("{name} {c:?}")).collect();
                wrap(s, 8, ("given(", &all, ")"));
            }
            Self::Member(_, member, c) => {
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
            Self::Paired(code, names, [list, count]) => {
                let names = names.join(" ");
                let line = format!("        paired({code} {names}");
                let c = format!("{list:?} {count:?})");
                let between =
                    if line.len() + 1 + c.len() <= WIDTH { " " } else { "\n            " };
                let _ = writeln!(s, "{line}{between}{c}");
            }
            Self::Answer(names, [size, value, written]) => {
                let names = names.join(" ");
                let _ = writeln!(s, "        answer({names} {size:?} {value:?} {written:?})");
            }
            Self::Events(list, count, c) => {
                let _ = writeln!(s, "        events({list} {count} {c:?})");
            }
        }
    }
}
/// The order in which rules are checked: first that pointers and handles are given, then that enumerations
/// are valid in arguments and in members of structs, and only then values and their combinations. Within one
/// kind the order is that of the parameters, and of the documented errors.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    Pointers,
    Handles,
    Enumerations,
    Values,
    Events,
    Late,
}
impl Order {
    fn of_code(code: &str) -> Self {
        match code {
            "ERROR_INVALID_NULL_POINTER" => Self::Pointers,
            "ERROR_INVALID_NULL_HANDLE" => Self::Handles,
            "ERROR_INVALID_ENUMERATION" => Self::Enumerations,
            _ => Self::Values,
        }
    }
    fn of(rule: &Rule) -> Self {
        match rule {
            // Arguments of one kind, and members, carry their order.
            Rule::Given(order, _) | Rule::Member(order, ..) => *order,
            Rule::Never(code, ..) | Rule::Paired(code, ..) => Self::of_code(code),
            Rule::Answer(..) => Self::Pointers,
            Rule::Events(..) => Self::Events,
        }
    }
}
/// Returns the rules for an entry's arguments in the order in which they are checked; adds the types that
/// they check to `asked`.
fn rules(spec: &Spec, e: &Entry, asked: &mut BTreeSet<String>) -> Result<Vec<Rule>, String> {
    let mut all = Vec::new();
    for order in [Order::Pointers, Order::Handles, Order::Enumerations] {
        let of = e.params.iter().filter(|p| is_given(spec, p) && kind(spec, p) == order);
        let named = |p: &Param| (names::escape(&p.name), header::parameter(spec, &e.name, p));
        let given: Vec<_> = of.map(named).collect();
        if !given.is_empty() {
            all.push(Rule::Given(order, given));
        }
    }
    for p in e.params.iter().filter(|p| is_given(spec, p)) {
        if let Type::Name(n) = &p.ty
            && spec.callback(n).is_none()
        {
            asked.insert(n.clone());
        }
    }
    for p in &e.params {
        members(spec, e, p, &mut all, asked);
    }
    faults(spec, e, &mut all)?;
    for p in &e.params {
        if let Role::WaitList(count) = &p.role {
            let c = header::parameter(spec, &e.name, p);
            all.push(Rule::Events(p.name.clone(), count.clone(), c));
        }
    }
    all.sort_by_key(Order::of); // stable
    Ok(all)
}
/// Returns the order of an argument that is checked by its type alone.
fn kind(spec: &Spec, p: &Param) -> Order {
    match &p.ty {
        Type::Name(n) if spec.is_handle(n) => Order::Handles,
        Type::Name(n) if spec.callback(n).is_none() => Order::Enumerations,
        _ => Order::Pointers,
    }
}
/// Whether an argument is checked by its type alone.
fn is_given(spec: &Spec, p: &Param) -> bool {
    match &p.ty {
        Type::Name(n) if spec.is_handle(n) || spec.callback(n).is_some() => !p.optional,
        Type::Name(n) => spec.enumeration(n).is_some(),
        Type::Pointer { .. } => !p.optional,
        _ => false,
    }
}
/// Returns the values of an enumeration, as a pattern.
fn ranges(e: &Enum) -> String {
    let mut numbers: Vec<u32> = e.variants.iter().map(|v| v.number).collect();
    numbers.extend(own_enumerator(&e.name).map(|(_, number)| number));
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
/// Adds the rules for the members of a struct that is pointed at.
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
        // If the entry documents another code for the member, that is checked first.
        let flags = spec.enumeration(ty).is_some_and(|e| e.kind == EnumKind::Flags);
        let own = !flags
            && e.errors.iter().any(|fault| match &fault.when {
                When::Expr(when) if fault.code != "InvalidEnumeration" => {
                    let when = quote::quote!(#when).to_string().replace(" . ", ".");
                    when.contains(&format!("{}.{}", p.name, names::escape(&f.name)))
                }
                _ => false,
            });
        let order = if own { Order::Late } else { Order::Enumerations };
        all.push(Rule::Member(order, member, format!("{c}->{}", f.name)));
    }
}

/// Adds the conditions that the entry documents.
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
        let never = || Rule::Never(code.clone(), condition.clone(), in_c(spec, e, words));
        let c = |name: &String| in_c(spec, e, name);
        if let Some(names) = answer(rest) {
            all.push({
                let c = names.each_ref().map(c);
                Rule::Answer(names, c)
            });
            all.push(never());
            rest = &rest[3..];
        } else if let Some(names) = paired(rest) {
            all.push({
                let c = names.each_ref().map(c);
                Rule::Paired(code.clone(), names, c)
            });
            rest = &rest[2..];
        } else {
            all.push(never());
            rest = after;
        }
    }
    Ok(())
}
/// Translates the text of a condition to C: parameters get their C names, members an arrow where the struct
/// is pointed at.
fn in_c(spec: &Spec, e: &Entry, words: &str) -> String {
    let words = words.replace("r#", "");
    let (mut said, mut rest) = (String::new(), words.as_str());
    while let Some(at) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '_') {
        let (before, from) = rest.split_at(at);
        let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (name, after) = from.split_at(from.find(|c| !of_name(c)).unwrap_or(from.len()));
        said.push_str(before);
        let is_member = said.ends_with(['.', '>']);
        let param = e.params.iter().find(|p| p.name == name && !is_member);
        said.push_str(&param.map_or(name.into(), |p| header::parameter(spec, &e.name, p)));
        let member =
            after.strip_prefix('.').filter(|_| param.is_some_and(|p| p.ty.pointee().is_some()));
        said.push_str(if member.is_some() { "->" } else { "" });
        rest = member.unwrap_or(after);
    }
    said + rest
}
/// A code, the condition for it, and the condition as text.
type Told = (String, String, String);

/// Recognizes the three rules for an answer's buffer at the beginning of `rest`.
fn answer(rest: &[Told]) -> Option<[String; 3]> {
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
    same.then(|| [size, value, written].map(String::from))
}
/// Recognizes the two rules for a list and its count at the beginning of `rest`.
fn paired(rest: &[Told]) -> Option<[String; 2]> {
    let [(code, _, words), (again, _, other), ..] = rest else { return None };
    let (list, count) = words.strip_suffix(" > 0")?.split_once(" == NULL && ")?;
    let same = code == again && *other == format!("{list} != NULL && {count} == 0");
    same.then(|| [list, count].map(String::from))
}
fn of_fault(spec: &Spec, e: &Entry, fault: &Fault) -> Option<(String, String)> {
    let When::Expr(expr) = &fault.when else { return None };
    let translate = Translate { spec, e };
    let condition = translate.boolean(expr)?;
    // Members of an optional struct are checked only if it is given.
    let mut guards = String::new();
    for p in e.params.iter().filter(|p| p.optional) {
        let (read, asked) = (format!("(*{}).", p.name), format!("{}.is_null()", p.name));
        if condition.contains(&read) && !condition.contains(&asked) {
            let _ = write!(guards, "!{asked} && ");
        }
    }
    // Members of a list's first element are checked only if the list is not empty.
    for p in &e.params {
        let Role::List(count) = &p.role else { continue };
        if condition.contains(&format!("(*{}).", p.name)) {
            let _ = write!(guards, "{count} > 0 && ");
        }
    }
    let words = quote::quote!(#expr).to_string();
    let plain = words.replace(" . ", ".").replace("! ", "!").replace("null", "NULL");
    match guards.is_empty() {
        true => Some((condition, plain)),
        false => Some((format!("{guards}({condition})"), plain)),
    }
}
/// Translates conditions of the specification to conditions on C's arguments.
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
    /// The condition that a pointer, a handle or a callback is null.
    fn absent(&self, e: &Expr) -> Option<String> {
        if let Expr::Field(_) = bare(e) {
            let (place, ty) = self.field(bare(e))?;
            let handle = matches!(&ty, Type::Name(n) if self.spec.is_handle(n));
            let pointer = matches!(ty, Type::Pointer { .. });
            return (pointer || handle).then(|| format!("{place}.is_null()"));
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
            Type::Pointer { .. } if matches!(p.role, Role::Plain | Role::List(_)) => {
                format!("(*{name}).{member}")
            }
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
            // An element of a list.
            Expr::Index(at) => {
                let p = self.param(&at.expr)?;
                let (index, of) = (self.number(&at.index)?, p.ty.pointee()?);
                self.as_number(&format!("{}.add({}).read()", p.name, index.text), of)
            }
            Expr::Binary(b) => {
                let (l, r) = (self.number(&b.left)?, self.number(&b.right)?);
                let differ = l.differs(&r);
                let ty = if differ { Some("u64".into()) } else { l.ty.clone().or(r.ty.clone()) };
                let [l, r] = alike(l, r);
                // A cast that is a whole argument needs no parentheses.
                let whole = r.strip_prefix('(').and_then(|r| r.strip_suffix(" as u64)"));
                let whole = whole.map_or(r.clone(), |r| format!("{r} as u64"));
                let text = match b.op {
                    BinOp::Add(_) => format!("{l}.saturating_add({whole})"),
                    BinOp::Mul(_) => format!("{l}.saturating_mul({whole})"),
                    BinOp::Rem(_) => format!("{l}.checked_rem({whole}).unwrap_or(0)"),
                    BinOp::BitAnd(_) => format!("({l} & {r})"),
                    BinOp::BitOr(_) => format!("({l} | {r})"),
                    BinOp::Sub(_) => format!("{l}.wrapping_sub({whole})"),
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
/// A number in a condition; a literal has no type.
struct Number {
    text: String,
    ty: Option<String>,
}
impl Number {
    fn differs(&self, other: &Self) -> bool {
        self.ty.is_some() && other.ty.is_some() && self.ty != other.ty
    }
}
/// Converts two numbers to the same type.
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

#[cfg(test)]
mod tests;
