//! Reads values by the tables that describe their types, and writes them as text.
#![expect(unsafe_code, reason = "reads memory that a C caller vouches for")]
use super::{
    float::general,
    kind::{Call, Count, Kind, Query, Record, Tag},
    records::RECORDS,
};
use std::fmt::Write;

/// The text for a value without a name.
const UNKNOWN: &str = "unknown enumerator";
/// The text for a null pointer.
const NULL: &str = "nullptr";

/// Returns the name of `value`, or `UNKNOWN`.
pub fn name_of(names: &[(u32, &'static str)], value: u32) -> &'static str {
    names.iter().find(|(number, _)| *number == value).map_or(UNKNOWN, |(_, name)| name)
}

/// The address of a value. It is made only of an argument that the C caller promises to be valid, or by
/// following the tables from there; so whatever the table describes at this address is readable.
#[derive(Clone, Copy)]
struct At(*const u8);
impl At {
    fn read<T: Copy>(self) -> T {
        // SAFETY: the invariant of `At`; the read is unaligned because structs may be packed.
        unsafe { self.0.cast::<T>().read_unaligned() }
    }
    /// Returns the address that the pointer here holds, unless it is null.
    fn follow(self) -> Option<Self> {
        let to = self.read::<*const u8>();
        (!to.is_null()).then_some(Self(to))
    }
    fn add(self, bytes: usize) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
    /// Returns the string here, of at most `most` characters.
    fn text<'a>(self, most: usize) -> &'a [u8] {
        // SAFETY: by the invariant of `At`, there are `most` characters or an earlier NUL.
        let length = unsafe { libc::strnlen(self.0.cast(), most) };
        // SAFETY: `strnlen` just read as many bytes; the slice is used only during the call.
        unsafe { std::slice::from_raw_parts(self.0, length) }
    }
}

/// Formats a version as two numbers, whether or not it has a name.
pub fn version(version: u32) -> String {
    format!("{}.{}", version as i32 >> 16, version & 0xffff)
}

/// The values beside a value: members of the same struct, or parameters of the same call.
#[derive(Clone, Copy)]
enum Siblings {
    Members(&'static Record, At),
    Parameters(&'static Call, At),
    Alone,
}
impl Siblings {
    /// Returns the address and the type of a sibling.
    fn at(self, index: usize) -> Option<(At, Kind)> {
        match self {
            Self::Members(record, base) => {
                let member = record.members.get(index)?;
                Some((base.add(member.at), member.kind))
            }
            Self::Parameters(call, params) => {
                let kind = call.params.get(index)?.kind;
                Some((params.add(index * size_of::<*const u8>()).follow()?, kind))
            }
            Self::Alone => None,
        }
    }
    /// Returns the value of an integer sibling, and 0 for a sibling that is no integer.
    fn number(self, index: usize) -> usize {
        match self.at(index) {
            Some((at, Kind::U32 | Kind::Enum(_) | Kind::Flags(_))) => at.read::<u32>() as usize,
            Some((at, Kind::Usize | Kind::U64)) => at.read(),
            _ => 0,
        }
    }
}

/// Writes the parameters of `call`, each with its name.
///
/// # Safety
/// `params` holds a pointer to each parameter, and the memory that they point at is as the table says.
pub unsafe fn parameters(out: &mut String, call: &'static Call, params: *const *const u8) {
    let siblings = Siblings::Parameters(call, At(params.cast()));
    for (index, parameter) in call.params.iter().enumerate() {
        let _ = write!(out, "{}.{} = ", if index == 0 { "" } else { ", " }, parameter.name);
        sibling(out, siblings, index);
    }
}
/// Calls `each` with every parameter's name and text. For a call that failed, output parameters are not
/// followed, because the call may not have written them.
///
/// # Safety
/// As for `parameters`, except for output that a failed call has not written.
pub unsafe fn each_parameter(
    call: &'static Call,
    params: *const *const u8,
    failed: bool,
    mut each: impl FnMut(&'static str, &str),
) {
    let siblings = Siblings::Parameters(call, At(params.cast()));
    let mut text = String::new();
    for (index, parameter) in call.params.iter().enumerate() {
        text.clear();
        match siblings.at(index) {
            Some((at, Kind::Answer(..) | Kind::Pointer(Kind::Text))) if failed => {
                address(&mut text, at.read());
            }
            _ => sibling(&mut text, siblings, index),
        }
        each(parameter.name, &text);
    }
}
/// Writes a struct.
///
/// # Safety
/// `at` points at such a struct, and the memory that it points at is as the table says.
pub unsafe fn record(out: &mut String, record: &'static Record, at: *const u8) {
    structure(out, record, At(at));
}

fn sibling(out: &mut String, siblings: Siblings, index: usize) {
    match siblings.at(index) {
        Some((at, kind)) => value(out, kind, at, siblings),
        None => out.push_str(NULL),
    }
}
fn structure(out: &mut String, record: &'static Record, at: At) {
    let _ = write!(out, "(struct {}){{", record.name);
    for (index, member) in record.members.iter().enumerate() {
        let _ = write!(out, "{}.{} = ", if index == 0 { "" } else { ", " }, member.name);
        sibling(out, Siblings::Members(record, at), index);
    }
    out.push('}');
}

/// Writes the value at `at`.
fn value(out: &mut String, kind: Kind, at: At, siblings: Siblings) {
    let _ = match kind {
        Kind::Char => write!(out, "{}", char::from(at.read::<u8>())),
        Kind::U8 => write!(out, "{}", at.read::<u8>()),
        Kind::U32 => write!(out, "{}", at.read::<u32>()),
        Kind::I32 => write!(out, "{}", at.read::<i32>()),
        Kind::U64 => write!(out, "{}", at.read::<u64>()),
        Kind::Usize => write!(out, "{}", at.read::<usize>()),
        Kind::F32 => write!(out, "{}", general(at.read::<f32>().into())),
        Kind::F64 => write!(out, "{}", general(at.read::<f64>())),
        Kind::Bool => write!(out, "{}", u8::from(at.read::<u8>() != 0)),
        Kind::Truth => write!(out, "{}", at.read::<u8>() != 0),
        Kind::Enum(names) => write!(out, "{}", name_of(names, at.read())),
        Kind::Version => write!(out, "{}", version(at.read())),
        Kind::Flags(names) => return flags(out, names, at.read()),
        Kind::Record(of) => return structure(out, of, at),
        Kind::Union(name, tag, members) => {
            return union(out, name, members, siblings.number(tag), at);
        }
        Kind::Array(of, count) => return elements(out, of, count, at),
        Kind::Address => return address(out, at.read()),
        Kind::Bare if at.follow().is_none() => write!(out, "0"),
        Kind::Bare => return address(out, at.read()),
        Kind::Text => return pointed(out, at, |out, at| text(out, at, isize::MAX as usize)),
        Kind::Next => return next(out, at),
        Kind::Pointer(to) => return pointed(out, at, |out, at| pointee(out, to, at)),
        Kind::List(of, count) => {
            let count = match count {
                Count::Fixed(count) => count,
                Count::Sibling(index) => siblings.number(index),
            };
            return list(out, of, count, at);
        }
        Kind::Answer(query, name, size) => {
            let (name, size) = (siblings.number(name), siblings.number(size));
            return answer(out, query, name as u32, size, at);
        }
    };
}

fn address(out: &mut String, at: *const u8) {
    let _ = match at.is_null() {
        true => write!(out, "{NULL}"),
        false => write!(out, "{at:p}"),
    };
}
/// Writes the address in the pointer at `at`, followed in parentheses by what `inner` writes for its target.
fn pointed(out: &mut String, at: At, inner: impl FnOnce(&mut String, At)) {
    address(out, at.read());
    if let Some(to) = at.follow() {
        out.push_str(" (");
        inner(out, to);
        out.push(')');
    }
}
fn pointee(out: &mut String, kind: &Kind, at: At) {
    value(out, *kind, at, Siblings::Alone);
}
fn text(out: &mut String, at: At, most: usize) {
    out.push_str(&String::from_utf8_lossy(at.text(most)));
}
fn flags(out: &mut String, names: &[(u32, &'static str)], value: u32) {
    let (mut rest, mut between) = (value, "");
    for (flag, name) in names.iter().filter(|(flag, _)| value & flag == *flag) {
        let _ = write!(out, "{between}{name}");
        (rest, between) = (rest & !flag, " | ");
    }
    if rest != 0 {
        let _ = write!(out, "{between}unknown bit flags {rest:032b}");
    } else if between.is_empty() {
        out.push('0');
    }
}
/// Writes the next struct of a chain, or `UNKNOWN` if its `stype` is not known.
fn next(out: &mut String, at: At) {
    let Some(to) = at.follow() else { return out.push_str(NULL) };
    let stype = to.read::<u32>();
    match RECORDS.iter().find(|r| r.stype == Some(stype)) {
        Some(record) => pointed(out, at, |out, at| structure(out, record, at)),
        None => out.push_str(UNKNOWN),
    }
}
fn union(out: &mut String, name: &str, members: &[Tag], tag: usize, at: At) {
    let _ = write!(out, "(union {name}){{");
    match members.iter().find(|m| m.value as usize == tag) {
        Some(member) => {
            let _ = write!(out, ".{} = ", member.name);
            value(out, member.kind, at, Siblings::Alone);
        }
        None => out.push_str("<unknown>"),
    }
    out.push('}');
}
fn list(out: &mut String, of: &Kind, count: usize, at: At) {
    address(out, at.read());
    if let Some(to) = at.follow() {
        out.push(' ');
        elements(out, of, count, to);
    }
}
fn elements(out: &mut String, of: &Kind, count: usize, at: At) {
    out.push('{');
    for index in 0..count {
        out.push_str(if index == 0 { "" } else { ", " });
        value(out, *of, at.add(index * size(of)), Siblings::Alone);
    }
    out.push('}');
}
/// Returns the size of a value in bytes.
fn size(kind: &Kind) -> usize {
    match kind {
        Kind::U8 | Kind::Char | Kind::Bool | Kind::Truth => 1,
        Kind::U32 | Kind::I32 | Kind::F32 | Kind::Enum(_) | Kind::Flags(_) | Kind::Version => 4,
        Kind::Record(record) => record.size,
        Kind::Array(of, count) => size(of) * count,
        _ => 8,
    }
}
/// Writes the answer to a query, as far as the caller's buffer holds it.
fn answer(out: &mut String, query: &Query, name: u32, size: usize, at: At) {
    let Some(to) = at.follow() else { return out.push_str(NULL) };
    let Some(answer) = query.answers.iter().find(|a| a.of == name) else {
        return out.push_str(UNKNOWN);
    };
    match answer.kind {
        Kind::Char if answer.many => pointed(out, at, |out, at| text(out, at, size)),
        kind if answer.many => {
            elements(out, &kind, size / answer.size, to);
        }
        _ if size < answer.size => {
            let _ = write!(out, "invalid size (is: {size}, expected: >={})", answer.size);
        }
        Kind::Array(of, count) => elements(out, of, count, to),
        kind => pointed(out, at, |out, at| pointee(out, &kind, at)),
    }
}
