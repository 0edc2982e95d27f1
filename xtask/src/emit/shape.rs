//! The Rust type of each C parameter. Traits and shims use the same classification, so it is made once, here.
use super::{c_name, rust_type};
use crate::model::{Direction, Entry, EnumKind, Param, Role, Spec, Table, Type};
use crate::names;

/// One argument of a trait method, or one of its results.
pub struct Arg<'s> {
    pub param: &'s Param,
    pub shape: Shape,
}
pub enum Shape {
    /// A number, a struct without handles, or a pointer that only adapters can interpret.
    Plain,
    Bool,
    /// An enumeration or flags, whose value is checked.
    Checked {
        flags: bool,
    },
    Handle {
        kind: String,
    },
    Handles {
        kind: String,
        count: String,
    },
    WaitList {
        count: String,
    },
    Data {
        of: String,
        count: String,
    },
    Record {
        name: String,
    },
    Address,
    Bytes {
        size: String,
    },
    Text,
    Callback {
        wrapper: &'static str,
        user_data: String,
    },
    /// The parameters of an info query: the property, the size, the value and the answer's size.
    Answer {
        size: String,
        size_ret: String,
    },
    /// A pointer that must not be null and is passed on unchanged.
    Raw,
    OutHandle {
        kind: String,
    },
    OutHandles {
        kind: String,
        count: String,
        total: Option<String>,
    },
    /// As many values as another argument says; the method returns at least that many.
    OutData {
        of: String,
        count: String,
    },
    OutAddress,
    OutText,
    OutValue {
        of: String,
    },
    /// The event of the extended barrier, which is an input, too.
    BarrierEvent,
    /// A part of another argument.
    Consumed,
}

const WRAPPED: [(&str, &str); 3] = [
    ("ContextExtendedDeleter", "ContextDeleter"),
    ("EventCallback", "EventCallback"),
    ("ExpHostTaskFunction", "HostFunction"),
];

/// Returns the shapes of all parameters of `entry`, in C's order.
pub fn of<'s>(spec: &'s Spec, entry: &'s Entry) -> Vec<Arg<'s>> {
    let consumed = consumed(spec, entry);
    let shape = |param: &'s Param| match consumed.contains(&param.name) {
        true => Arg { param, shape: Shape::Consumed },
        false => Arg { param, shape: one(spec, entry, param) },
    };
    entry.params.iter().map(shape).collect()
}

fn find<'s>(entry: &'s Entry, name: &str) -> Option<&'s Param> {
    entry.params.iter().find(|p| p.name == name)
}
/// Returns the parameter after `param`, if it can be a callback's user data.
fn user_data<'s>(entry: &'s Entry, param: &Param) -> Option<&'s Param> {
    let at = entry.params.iter().position(|p| p.name == param.name)?;
    let next = entry.params.get(at + 1)?;
    (next.ty.pointee().is_some_and(|t| t.base() == "c_void")).then_some(next)
}
fn size_ret<'s>(entry: &'s Entry, value: &Param) -> Option<&'s Param> {
    let at = entry.params.iter().position(|p| p.name == value.name)?;
    entry.params[at + 1..].iter().find(|p| p.direction == Direction::Out)
}
fn bytes_size(entry: &Entry, param: &Param) -> Option<String> {
    let size = format!("{}_size", param.name);
    let input = param.direction == Direction::In;
    (input && is_void_pointer(&param.ty) && find(entry, &size).is_some()).then_some(size)
}
fn is_void_pointer(ty: &Type) -> bool {
    matches!(ty.pointee(), Some(Type::Name(n)) if n == "c_void")
}
/// Returns the parameter with the length of a list, if it has one.
fn counted<'p>(entry: &Entry, param: &'p Param) -> Option<&'p str> {
    match &param.role {
        Role::List(n) | Role::WaitList(n) => find(entry, n).map(|_| n.as_str()),
        _ => None,
    }
}

/// Returns the parameters that are part of others.
fn consumed(spec: &Spec, entry: &Entry) -> Vec<String> {
    let mut names = Vec::new();
    for p in &entry.params {
        match &p.role {
            Role::Answer { size, .. } if p.direction != Direction::In => {
                names.push(size.clone());
                names.extend(size_ret(entry, p).map(|p| p.name.clone()));
            }
            Role::List(_) | Role::WaitList(_) => {
                let raw = matches!(one(spec, entry, p), Shape::Raw | Shape::Plain);
                names.extend(counted(entry, p).filter(|_| !raw).map(str::to_string));
            }
            _ => {}
        }
        match one(spec, entry, p) {
            Shape::Callback { user_data, .. } => names.push(user_data),
            Shape::Bytes { size } => names.push(size),
            Shape::OutHandles { total: Some(total), .. } => names.push(total),
            _ => {}
        }
    }
    names
}

fn one(spec: &Spec, entry: &Entry, p: &Param) -> Shape {
    if entry.name == "urEnqueueEventsWaitWithBarrierExt" && p.name == "event" {
        return Shape::BarrierEvent;
    }
    if let Role::Answer { size, .. } = &p.role
        && p.direction != Direction::In
        && let Some(ret) = size_ret(entry, p)
    {
        return Shape::Answer { size: size.clone(), size_ret: ret.name.clone() };
    }
    match (&p.ty, p.direction) {
        (Type::Name(n), _) => named(spec, entry, p, n),
        (Type::Pointer { to, .. }, Direction::InOut) => match &**to {
            // It is declared as an input too, but its value before the call has no meaning.
            Type::Name(n) if spec.is_handle(n) && counted(entry, p).is_none() => {
                Shape::OutHandle { kind: n.clone() }
            }
            _ => Shape::Raw,
        },
        (Type::Pointer { to, .. }, Direction::Out) => out(spec, entry, p, to),
        (Type::Pointer { to, .. }, Direction::In) => input(spec, entry, p, to),
        (Type::Array { .. }, _) => Shape::Plain,
    }
}
fn named(spec: &Spec, entry: &Entry, p: &Param, name: &str) -> Shape {
    if name == "Bool" || name == "bool" {
        return Shape::Bool;
    }
    if spec.is_handle(name) {
        return Shape::Handle { kind: name.into() };
    }
    if let Some(e) = spec.enumeration(name) {
        return Shape::Checked { flags: e.kind == EnumKind::Flags };
    }
    if spec.callback(name).is_some() {
        let wrapper = WRAPPED.iter().find(|(c, _)| *c == name).map(|(_, w)| *w);
        if let (Some(wrapper), Some(data)) = (wrapper, user_data(entry, p)) {
            return Shape::Callback { wrapper, user_data: data.name.clone() };
        }
        return Shape::Raw;
    }
    Shape::Plain
}
fn out(spec: &Spec, entry: &Entry, p: &Param, to: &Type) -> Shape {
    match (to, counted(entry, p)) {
        (Type::Name(n), Some(count)) if spec.is_handle(n) => {
            let total = size_ret(entry, p).map(|p| p.name.clone());
            Shape::OutHandles { kind: n.clone(), count: count.into(), total }
        }
        (Type::Name(n), Some(count)) if n == "usize" => {
            Shape::OutData { of: rust_type(spec, to), count: count.into() }
        }
        (_, Some(_)) => Shape::Raw,
        (Type::Name(n), None) if spec.is_handle(n) => Shape::OutHandle { kind: n.clone() },
        // The type of a result without a size depends on the query; the adapter knows it.
        (Type::Name(n), None) if n == "c_void" => Shape::Raw,
        (Type::Pointer { to, .. }, None) if to.base() == "c_char" => Shape::OutText,
        (Type::Pointer { to, .. }, None) if matches!(&**to, Type::Name(n) if n == "c_void") => {
            Shape::OutAddress
        }
        (_, None) if matches!(p.role, Role::List(_)) => Shape::Raw,
        (of, None) => Shape::OutValue { of: rust_type(spec, of) },
    }
}
fn input(spec: &Spec, entry: &Entry, p: &Param, to: &Type) -> Shape {
    if let Some(size) = bytes_size(entry, p) {
        return Shape::Bytes { size };
    }
    let count = counted(entry, p).map(str::to_string);
    match (to, count) {
        (Type::Name(n), Some(count)) if spec.is_handle(n) => match p.role {
            Role::WaitList(_) => Shape::WaitList { count },
            _ => Shape::Handles { kind: n.clone(), count },
        },
        (Type::Name(n), None) if n == "c_void" => Shape::Address,
        (Type::Name(n), None) if n == "c_char" => Shape::Text,
        (Type::Name(n), Some(_)) if n == "c_void" => Shape::Raw,
        (of, Some(count)) => Shape::Data { of: rust_type(spec, of), count },
        (Type::Name(n), None) if spec.record(n).is_some() => {
            Shape::Record { name: c_name(spec, n) }
        }
        _ => Shape::Raw,
    }
}

/// Whether `ur-adapter` implements the entry by hand, for all adapters.
pub fn overrides(entry: &Entry) -> bool {
    matches!(
        entry.name.as_str(),
        "urAdapterGetLastError" | "urAdapterSetLoggerCallback" | "urAdapterSetLoggerCallbackLevel"
    )
}
/// Whether an entry asks first whether the adapter works in this process: all but those that look where they call the driver
/// because a program calls them for every command, those of the adapter itself, what forked children may still give back, and
/// what is known of an object without the driver.
pub fn checks_process(table: &Table, entry: &Entry) -> bool {
    const ELSEWHERE: [&str; 5] =
        ["urEventWait", "urEventGetInfo", "urQueueFlush", "urQueueFinish", "urKernelSetArg"];
    let is_of_command = table.member.starts_with("Enqueue")
        || ELSEWHERE.iter().any(|name| entry.name.starts_with(name));
    const KNOWN: [&str; 6] = ["Platform", "Context", "Queue", "Mem", "Sampler", "PhysicalMem"];
    let is_known = entry.name.ends_with("GetInfo") && KNOWN.contains(&table.member.as_str());
    let gives_back = entry.name.starts_with("urIPCPut") || entry.name.contains("Destroy");
    !is_of_command && !is_known && !gives_back && table.member != "Adapter"
}
/// For entries that only count references: the kind of handle, and whether the entry releases.
pub fn counting<'s>(spec: &Spec, entry: &'s Entry) -> Option<(&'s str, bool)> {
    let [only] = entry.params.as_slice() else { return None };
    let Type::Name(kind) = &only.ty else { return None };
    let name = entry.name.trim_end_matches("Exp");
    let release = name.ends_with("Release");
    (spec.is_handle(kind) && (release || name.ends_with("Retain"))).then_some((kind, release))
}

/// Whether the adapter checks the handles before anything else is checked.
pub fn is_checked_first(entry: &Entry) -> bool {
    entry.errors.iter().any(|fault| fault.first)
}
/// Returns the arguments that are handles.
pub fn handles<'a, 's>(args: &'a [Arg<'s>]) -> impl Iterator<Item = &'a Arg<'s>> {
    args.iter().filter(|a| matches!(a.shape, Shape::Handle { .. }))
}

/// Returns the name and the type of a parameter in a method, if it has any.
pub fn parameter(spec: &Spec, entry: &Entry, arg: &Arg<'_>) -> Option<(String, String)> {
    let p = arg.param;
    let optional = |t: String| if p.optional { format!("Option<{t}>") } else { t };
    let own = |kind: &str| match entry.blocks {
        true => format!("Owned<Self::{kind}>"),
        false => format!("Borrowed<'_, Self::{kind}>"),
    };
    let ty = match &arg.shape {
        Shape::Plain | Shape::Checked { .. } | Shape::Raw => rust_type(spec, &p.ty),
        Shape::Bool => "bool".into(),
        Shape::Handle { kind } => optional(own(kind)),
        Shape::Handles { kind, .. } => format!("&[{}]", own(kind)),
        Shape::WaitList { .. } => format!("&[{}]", own("Event")),
        Shape::Data { of, .. } => optional(format!("&[{of}]")),
        Shape::Record { name } => optional(format!("&{name}")),
        Shape::Address => optional("UsmPtr".into()),
        Shape::Bytes { .. } => optional("HostBytes<'_>".into()),
        Shape::Text => optional("&CStr".into()),
        Shape::Callback { wrapper, .. } => optional((*wrapper).into()),
        Shape::Answer { .. } => return Some(("answer".into(), "&mut Answer<'_>".into())),
        Shape::BarrierEvent => "BarrierEvent<'_, Self::Event>".into(),
        Shape::OutHandle { .. } if p.optional => {
            return Some((format!("want_{}", p.name), "bool".into()));
        }
        _ => return None,
    };
    Some((names::escape(&p.name), ty))
}
