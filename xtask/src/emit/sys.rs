//! Generates `crates/ur-sys/src`: the C ABI as Rust types.
use super::{NOTICE, Output, doc, flags_type, pfn, rust_type, rustfmt};
use crate::{
    model::{EnumKind, Field, Param, Record, Spec, Type},
    names,
};
use std::{collections::BTreeSet, fmt::Write};

/// Returns all generated files of the crate.
pub fn files(spec: &Spec) -> Result<Vec<Output>, String> {
    let parts =
        [("values", values(spec)), ("records", records(spec)), ("functions", functions(spec))];
    let file = |(name, text): (&str, String)| {
        let text = rustfmt(&format!("{NOTICE}{text}"))?;
        Ok(Output { path: format!("crates/ur-sys/src/{name}.rs"), text })
    };
    parts.into_iter().map(file).collect()
}

fn or_default(doc: &str, c: &str) -> String {
    if doc.is_empty() { format!("`{c}`") } else { format!("{doc} (`{c}`)") }
}

fn values(spec: &Spec) -> String {
    let mut s = String::from("//! Handles, aliases, constants, enumerations and flag sets.\n\n");
    for h in &spec.handles {
        let _ = writeln!(s, "handle! {{\n{}{}\n}}", doc(&or_default(&h.doc, &h.c), "    "), h.c);
    }
    for a in &spec.aliases {
        let of = rust_type(spec, &a.of);
        let _ = writeln!(s, "{}pub type {} = {of};", doc(&or_default(&a.doc, &a.c), ""), a.c);
    }
    for k in &spec.constants {
        let _ = writeln!(
            s,
            "/// The name of a target of device binaries.\npub const {}: &core::ffi::CStr = c{:?};",
            k.c, k.value
        );
    }
    for e in &spec.enums {
        let (shape, name) = match e.kind {
            EnumKind::Flags => ("flags", flags_type(&e.c)),
            _ => ("enumeration", e.c.clone()),
        };
        let _ =
            writeln!(s, "{shape}! {{\n{}    {name} {{", doc(&or_default(&e.doc, &name), "    "));
        for v in &e.variants {
            let constant = names::constant(&v.c, &e.c);
            // Versions are written as an or with zero, which lints reject.
            let value = if v.value.contains('|') { v.number.to_string() } else { v.value.clone() };
            let _ = writeln!(s, "        {constant} = {value}, {:?};", v.c);
        }
        s.push_str("    }\n}\n");
    }
    s
}

fn records(spec: &Spec) -> String {
    let mut s = String::from(
        "//! Structs and unions, with C's member names.\nuse crate::values::*;\nuse core::ffi::{c_char, c_void};\n\n",
    );
    for r in &spec.records {
        s.push_str(&record(spec, r));
    }
    s
}
fn record(spec: &Spec, r: &Record) -> String {
    let keyword = if r.union { "union" } else { "struct" };
    let debug = if r.union { "" } else { ", Debug" };
    let mut s = doc(&or_default(&r.doc, &r.c), "");
    let _ = writeln!(
        s,
        "#[repr(C)]\n#[derive(Clone, Copy{debug})]\n#[expect(missing_docs, reason = \"C's members\")]\npub {keyword} {} {{",
        r.c
    );
    for f in &r.fields {
        let _ = writeln!(s, "    pub {}: {},", names::escape(&f.name), rust_type(spec, &f.ty));
    }
    s.push_str("}\n");
    if r.union {
        let _ = writeln!(
            s,
            "impl core::fmt::Debug for {0} {{\n fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {{ f.write_str(\"{0} {{ .. }}\") }} }}",
            r.c
        );
    }
    s
}

fn signature(spec: &Spec, params: &[(String, String)], returns: Option<&Type>) -> String {
    let params: Vec<_> = params.iter().map(|(n, t)| format!("{}: {t}", names::escape(n))).collect();
    let returns = returns.map(|t| format!(" -> {}", rust_type(spec, t))).unwrap_or_default();
    format!("unsafe extern \"C\" fn({}){returns}", params.join(", "))
}
fn functions(spec: &Spec) -> String {
    let mut s = String::from(
        "//! Callbacks, and the types of the entry points that are in no table.\nuse crate::{records::*, values::*};\nuse core::ffi::{c_char, c_void};\n\n",
    );
    for c in &spec.callbacks {
        let field = |f: &Field| (f.name.clone(), rust_type(spec, &f.ty));
        let params: Vec<_> = c.params.iter().map(field).collect();
        let function = signature(spec, &params, c.returns.as_ref());
        let _ = writeln!(
            s,
            "{}pub type {} = Option<{function}>;",
            doc(&or_default(&c.doc, &c.c), ""),
            c.c
        );
    }
    let result = Type::Name("Result".into());
    let in_a_table: BTreeSet<_> =
        spec.tables.iter().flat_map(|t| &t.entries).map(|e| &e.name).collect();
    for e in spec.entries().filter(|e| !in_a_table.contains(&e.name)) {
        let param = |p: &Param| (p.name.clone(), rust_type(spec, &p.ty));
        let params: Vec<_> = e.params.iter().map(param).collect();
        let function = signature(spec, &params, Some(&result));
        let text = if e.doc.is_empty() {
            format!("`{}`", e.name)
        } else {
            format!("`{}`: {}", e.name, e.doc)
        };
        let _ = writeln!(s, "{}pub type {} = {function};", doc(&text, ""), pfn(&e.name));
    }
    s
}
