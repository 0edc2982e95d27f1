//! `crates/ur-mock/src/table.rs`: the mock's table, whose every function gives a test the
//! word before it does what `answers.rs` says.
use super::{NOTICE, Output, rust_type, rustfmt, slot};
use crate::{
    model::{Entry, Spec},
    names,
};
use std::fmt::Write;

/// The file.
pub fn file(spec: &Spec) -> Result<Output, String> {
    let entries = || spec.tables.iter().flat_map(|t| t.entries.iter().map(move |e| (t, e)));
    let mut s = format!(
        "{NOTICE}//! The entries that C calls: each asks the hooks of its slot.\n\
         #![expect(unsafe_code, clippy::undocumented_unsafe_blocks, clippy::multiple_unsafe_ops_per_block, reason = \"arguments are read where hooks may have changed them: they are this call's own\")]\n\
         use super::{{Mock, hooks::Slot}};\n\
         use std::{{any::TypeId, ffi::{{c_char, c_void}}}};\n\
         use ur_adapter::entry;\nuse ur_sys::*;\n\n\
         /// The adapter without its hooks.\nstatic PLAIN: ur_dditable_t = entry::table::<Mock>();\n\n\
         /// Where hooks are put, in the order of the table.\npub static SLOTS: [Slot; {}] = [\n",
        entries().count()
    );
    for (_, e) in entries() {
        let types: Vec<_> = e
            .params
            .iter()
            .map(|p| format!("TypeId::of::<{}>()", rust_type(spec, &p.ty)))
            .collect();
        let _ = writeln!(s, "Slot::new(\"{}\", &[{}]),", e.name, types.join(", "));
    }
    s.push_str("];\n\n/// The whole of this adapter, as C sees it.\npub static MOCK_TABLE: ur_dditable_t = ur_dditable_t {\n");
    for t in &spec.tables {
        let _ = writeln!(s, "{}: {} {{", names::member(&t.name), t.c);
        for e in &t.entries {
            let _ =
                writeln!(s, "{}: Some({}),", slot(&e.name, &t.member), names::function(&e.name));
        }
        s.push_str("},\n");
    }
    s.push_str("};\n");
    for (at, (t, e)) in entries().enumerate() {
        let path = format!("{}.{}", names::member(&t.name), slot(&e.name, &t.member));
        function(spec, at, &path, e, &mut s);
    }
    Ok(Output { path: "crates/ur-mock/src/table.rs".into(), text: rustfmt(&s)? })
}

fn function(spec: &Spec, at: usize, path: &str, entry: &Entry, s: &mut String) {
    let of = |p: &crate::model::Param| (names::escape(&p.name), rust_type(spec, &p.ty));
    let params: Vec<_> = entry.params.iter().map(of).collect();
    let list: Vec<_> = params.iter().map(|(n, t)| format!("mut {n}: {t}")).collect();
    let places: Vec<_> =
        params.iter().map(|(n, _)| format!("(&raw mut {n}).cast::<c_void>()")).collect();
    let values: Vec<_> = params
        .iter()
        .enumerate()
        .map(|(i, (_, t))| format!("a[{i}].cast::<{t}>().read()"))
        .collect();
    let _ = write!(
        s,
        "\nunsafe extern \"C\" fn {}({}) -> ur_result_t {{\nlet places = [{}];\n\
         SLOTS[{at}].call(&places, &|a| unsafe {{ PLAIN.{path}.expect(\"no slot is empty\")({}) }})\n}}\n",
        names::function(&entry.name),
        list.join(", "),
        places.join(", "),
        values.join(", "),
    );
}
