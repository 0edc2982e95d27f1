//! Generates `crates/ur-adapter/src/api`: one trait for each table, with default implementations of all
//! methods.
use super::{
    NOTICE, Output, doc, request, rustfmt,
    shape::{self, Arg, Shape},
};
use crate::{
    model::{Entry, Fault, Spec, Table, When},
    names,
};
use std::fmt::Write;

/// Returns all generated files of the folder.
pub fn files(spec: &Spec) -> Result<Vec<Output>, String> {
    let mut files = vec![("mod".to_string(), module(spec))];
    for table in &spec.tables {
        files.push((names::member(&table.name), family(spec, table)));
    }
    let file = |(name, text): (String, String)| {
        let text = rustfmt(&format!("{NOTICE}{text}"))?;
        Ok(Output { path: format!("crates/ur-adapter/src/api/{name}.rs"), text })
    };
    files.into_iter().map(file).collect()
}

/// `UsmExpApi`
pub fn trait_name(table: &Table) -> String {
    format!("{}Api", table.name)
}

fn module(spec: &Spec) -> String {
    let mut s = String::from(
        "//! The traits of an adapter, one for each table. The default of every method returns\n\
         //! `UNSUPPORTED_FEATURE`, so an adapter implements only what it supports.\nuse crate::{error::Result, object::Body};\n\n",
    );
    for t in &spec.tables {
        let (file, name) = (names::member(&t.name), trait_name(t));
        let _ = writeln!(s, "mod {file};\npub use {file}::{name};");
    }
    s.push_str("\nmod request;\npub use crate::command::CommandApi;\npub use request::Request;\n");
    s.push_str(
        "\n/// The types of the objects behind the handles of an adapter.\npub trait Objects: Sized + 'static {\n",
    );
    for h in spec.handles.iter().filter(|h| h.name != "LoaderConfig") {
        let _ = writeln!(s, "    /// The object behind `{}`.\n    type {}: Body;", h.c, h.name);
    }
    s.push_str(
        "    /// Checks that the adapter works in this process, which an entry asks first that may call the driver.\n    ///\n    \
         /// # Errors\n    /// `UNINITIALIZED` where it does not: in a forked child of the process that started the driver.\n    \
         #[inline]\n    fn check_usable() -> Result<()> {\n        Ok(())\n    }\n",
    );
    let all: Vec<_> = spec.tables.iter().map(trait_name).collect();
    let _ = writeln!(
        s,
        "}}\n\n/// An adapter: all its traits together.\npub trait Adapter: {0} {{}}\nimpl<A: {0}> Adapter for A {{}}",
        all.join(" + ")
    );
    s
}

fn family(spec: &Spec, table: &Table) -> String {
    let mut methods = String::new();
    for e in table.entries.iter().filter(|e| !shape::overrides(e)) {
        if shape::counting(spec, e).is_none() {
            methods.push_str(&first_check(spec, e));
            methods.push_str(&method(spec, e));
        }
    }
    let mut uses = String::new();
    let word = |w: &str| methods.contains(w);
    for (name, path) in [
        ("Borrowed<", "crate::object::Borrowed"),
        ("Owned<", "crate::object::Owned"),
        ("UsmPtr", "crate::memory::UsmPtr"),
        ("HostBytes", "crate::memory::HostBytes"),
        ("Answer<", "crate::info::Answer"),
        ("BarrierEvent<", "crate::shim::BarrierEvent"),
        ("ContextDeleter", "crate::callback::ContextDeleter"),
        ("EventCallback", "crate::callback::EventCallback"),
        ("HostFunction", "crate::callback::HostFunction"),
        ("Asked {", "crate::command::Asked"),
        ("CompletionRequest::", "crate::command::CompletionRequest"),
        ("CStr", "std::ffi::CStr"),
        ("c_void", "std::ffi::c_void"),
        ("c_char", "std::ffi::c_char"),
    ] {
        if word(name) {
            let _ = writeln!(uses, "use {path};");
        }
    }
    let errors = match () {
        () if methods.is_empty() => "",
        () if word("Error::") => "use crate::error::{Error, Result};\n",
        () => "use crate::error::Result;\n",
    };
    let asks = table.entries.iter().any(|e| e.command.is_some());
    let objects = if asks { "CommandApi" } else { "Objects" };
    let beside = if asks { "{CommandApi, Request}" } else { "Objects" };
    let sys = if word("ur_") { "use ur_sys::*;\n" } else { "" };
    format!(
        "//! The entries of `{0}`, as adapters implement them.\nuse super::{beside};\n{errors}{uses}{sys}\n\
         /// The entries of `{0}` that are not the same for every adapter.\npub trait {1}: {objects} {{\n{methods}}}\n",
        table.member,
        trait_name(table)
    )
}

/// The check of an entry's handles that comes before its other arguments are checked.
fn first_check(spec: &Spec, entry: &Entry) -> String {
    if !shape::is_checked_first(entry) {
        return String::new();
    }
    let args = shape::of(spec, entry);
    let handles = shape::handles(&args).filter_map(|a| shape::parameter(spec, entry, a));
    let (names, list): (Vec<_>, Vec<_>) =
        handles.map(|(name, ty)| (format!("{name},"), format!("{name}: {ty}"))).unzip();
    let words: String = entry.errors.iter().filter(|f| f.first).filter_map(reason).collect();
    format!(
        "    /// Checks the objects of `{}` before pointers and sizes are checked.\n    ///\n    \
         /// # Errors\n{words}    fn check_{}({}) -> Result<()> {{\n        let _ = ({});\n        Ok(())\n    }}\n",
        entry.name,
        names::function(&entry.name),
        list.join(", "),
        names.concat(),
    )
}
/// A documented error that the adapter must detect, as a line of documentation.
fn reason(fault: &Fault) -> Option<String> {
    match &fault.when {
        When::Words(words) => Some(format!("    /// - `{}`: {words}\n", fault.code)),
        _ => None,
    }
}
fn method(spec: &Spec, entry: &Entry) -> String {
    let args = shape::of(spec, entry);
    let text = if entry.doc.is_empty() { format!("`{}`", entry.name) } else { entry.doc.clone() };
    let mut s = doc(&text, "    ");
    let _ = write!(s, "    ///\n    /// # Errors\n    /// As `{}` documents them", entry.name);
    let words: Vec<_> = entry.errors.iter().filter_map(reason).collect();
    match words.is_empty() {
        true => s.push_str(".\n"),
        false => {
            let _ = write!(s, "; the adapter detects these:\n{}", words.concat());
        }
    }
    let params: Vec<_> = args.iter().filter_map(|a| shape::parameter(spec, entry, a)).collect();
    let list: Vec<_> = params.iter().map(|(n, t)| format!("{n}: {t}")).collect();
    let ignored: Vec<_> = params.iter().map(|(n, _)| n.as_str()).collect();
    let many = if params.len() > 7 {
        "    #[expect(clippy::too_many_arguments, reason = \"as many as C's\")]\n"
    } else {
        ""
    };
    let complex = if results(&args).len() > 2 {
        "    #[expect(clippy::type_complexity, reason = \"as many results as C's\")]\n"
    } else {
        ""
    };
    let ignored = match ignored.as_slice() {
        [one] => format!("{one},"),
        more => more.join(", "),
    };
    let unsupported =
        || format!("        let _ = ({ignored});\n        Error::unsupported({:?})\n", entry.name);
    let _ = write!(
        s,
        "{many}{complex}    fn {}({}) -> Result<{}> {{\n{}    }}\n",
        names::function(&entry.name),
        list.join(", "),
        tuple(&results(&args)),
        request::asked(spec, entry).unwrap_or_else(unsupported),
    );
    s
}

/// `()`, a single type, or a tuple.
pub fn tuple(types: &[String]) -> String {
    match types {
        [one] => one.clone(),
        many => format!("({})", many.join(", ")),
    }
}
/// The types that a method returns, in C's order.
pub fn results(args: &[Arg<'_>]) -> Vec<String> {
    let one = |a: &Arg<'_>| match &a.shape {
        Shape::OutHandle { kind } if a.param.optional => {
            Some(format!("Option<Owned<Self::{kind}>>"))
        }
        Shape::OutHandle { kind } => Some(format!("Owned<Self::{kind}>")),
        Shape::OutHandles { kind, .. } => Some(format!("Vec<Owned<Self::{kind}>>")),
        Shape::OutData { of, .. } => Some(format!("Vec<{of}>")),
        Shape::OutAddress => Some("UsmPtr".into()),
        Shape::OutText => Some("&'static CStr".into()),
        Shape::OutValue { of } => Some(of.clone()),
        Shape::BarrierEvent => Some("Option<Owned<Self::Event>>".into()),
        _ => None,
    };
    args.iter().filter_map(one).collect()
}
