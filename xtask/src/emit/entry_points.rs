//! Generates `crates/ur-sys/src/entry_points.rs`: every entry of the tables as one row of a macro, with the
//! parameter that determines the adapter. Tables, their types, the loader's dispatch, the symbols of shared
//! objects and the mock's hooks are each a few lines that use these rows.
use super::{NOTICE, Output, doc, pfn, rust_type, rustfmt, slot, wrapped};
use crate::{
    model::{Entry, Role, Spec, Type, When},
    names,
};
use std::fmt::Write;

/// The entry that calls every adapter and so is not sent to a single one.
const ALL_ADAPTERS: &str = "urAdapterGet";

/// Generates the file.
pub fn file(spec: &Spec) -> Result<Output, String> {
    let mut s = format!(
        "{NOTICE}//! The entries of the tables, as rows from which macros generate code.\n\n\
         /// Passes every entry to the given macro, table by table: the table's member, its getter and its type; then\n\
         /// for each entry its documentation, its slot, its C name, the type of the function, its Rust name, its\n\
         /// parameters, and how its adapter is determined: by a handle, by the first of a list of handles (with the\n\
         /// list's count, and the code for an empty list), or by hand. The types are those of `ur_sys`, and `c_char`\n\
         /// and `c_void` of `std::ffi`, which must be in scope where the macro is used.\n\
         #[macro_export]\nmacro_rules! entry_points {{\n    ($($then:tt)*) => {{\n        $($then)*! {{\n"
    );
    for table in &spec.tables {
        let _ = writeln!(
            s,
            "            {} {} {} {{",
            names::member(&table.name),
            names::getter(&table.member),
            table.c
        );
        for entry in &table.entries {
            s.push_str(&doc(&entry.doc, "                "));
            s.push_str(&wrapped(&row(spec, entry, &table.member)?, 16));
        }
        s.push_str("            }\n");
    }
    s.push_str("        }\n    };\n}\n");
    Ok(Output { path: "crates/ur-sys/src/entry_points.rs".into(), text: rustfmt(&s)? })
}

/// `wait urEventWait ur_pfnEventWait_t event_wait(num_events: u32, …) by first event_wait_list num_events ERROR_INVALID_VALUE;`
fn row(spec: &Spec, entry: &Entry, member: &str) -> Result<String, String> {
    let params: Vec<_> = entry
        .params
        .iter()
        .map(|p| format!("{}: {}", names::escape(&p.name), rust_type(spec, &p.ty)))
        .collect();
    Ok(format!(
        "{} {} {} {}({}) by {};",
        slot(&entry.name, member),
        entry.name,
        pfn(&entry.name),
        names::function(&entry.name),
        params.join(", "),
        owner(spec, entry)?,
    ))
}

/// Returns how the adapter of an entry is found.
fn owner(spec: &Spec, entry: &Entry) -> Result<String, String> {
    if entry.name == ALL_ADAPTERS {
        return Ok("hand".into());
    }
    let handle = entry.params.iter().find(|p| matches!(&p.ty, Type::Name(n) if spec.is_handle(n)));
    if let Some(handle) = handle {
        let nulls = entry.params.iter().find(|p| p.nulled);
        let nulls = nulls.map_or(String::new(), |p| format!(" nulls {}", names::escape(&p.name)));
        return Ok(format!("handle {}{nulls}", names::escape(&handle.name)));
    }
    let list = entry.params.iter().find_map(|p| match (&p.role, p.ty.pointee()) {
        (Role::List(count), Some(Type::Name(n))) if spec.is_handle(n) => Some((p, count)),
        _ => None,
    });
    let (list, count) = list.ok_or_else(|| {
        format!("{}: no handle says which adapter is meant; teach emit/entry_points.rs", entry.name)
    })?;
    Ok(format!("first {} {count} {}", names::escape(&list.name), none(entry, count)))
}

/// Returns the documented code for an empty list.
fn none(entry: &Entry, count: &str) -> String {
    let is_none = |when: &When| {
        let When::Expr(expr) = when else { return false };
        let syn::Expr::Binary(binary) = &**expr else { return false };
        let name = matches!(&*binary.left, syn::Expr::Path(path) if path.path.is_ident(count));
        name && matches!(binary.op, syn::BinOp::Eq(_))
    };
    let code = entry.errors.iter().find(|fault| is_none(&fault.when));
    let code = code.map_or("InvalidSize", |fault| &fault.code);
    format!("ERROR_{}", names::snake(code).to_ascii_uppercase())
}
