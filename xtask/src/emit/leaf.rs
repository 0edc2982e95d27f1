//! `crates/*/src/lib.rs` of leaves: the C symbols of one adapter's shared object.
use super::{NOTICE, Output, rustfmt};
use crate::{
    leaf::{LEAVES, Leaf},
    model::Spec,
    names, root,
};
use std::fmt::Write;

/// Every leaf.
pub fn files(spec: &Spec) -> Result<Vec<Output>, String> {
    LEAVES.iter().map(|leaf| file(spec, leaf)).collect()
}

fn file(spec: &Spec, leaf: &Leaf) -> Result<Output, String> {
    let (table, logs, soname) = (leaf.table, leaf.logs(), leaf.soname());
    let backend = leaf.backend;
    let constant = table.rsplit("::").next().unwrap_or(table);
    // What there is to say of an adapter, its limits above all, is on its page.
    let page = match root().join("crates").join(leaf.package).join("README.md").exists() {
        true => "#![doc = \"\"]\n#![doc = include_str!(\"../README.md\")]\n",
        false => "",
    };
    let also = if leaf.also.is_empty() { "" } else { "mod also;\n\n" };
    let mut s = format!(
        "{NOTICE}//! The C symbols of `{soname}`, and nothing else: `cargo xtask dist` links it.\n\
         {page}#![expect(unsafe_code, reason = \"the symbols that a loader asks for\")]\n\
         {also}use ur_adapter::{{entry::fill, object::Backend}};\nuse {table};\nuse ur_sys::*;\n\n\
         /// What logs call this adapter, and the environment variable that asks for them.\nconst NAME: &str = \"{logs}\";\n/// Whose log it is.\nconst BACKEND: Backend = Backend::{backend};\n"
    );
    for t in &spec.tables {
        let _ = write!(
            s,
            "\n/// Fills the table of `{}`.\n///\n/// # Safety\n/// `table` is null or writable.\n\
             #[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {}(version: ur_api_version_t, table: *mut {}) -> ur_result_t {{\n\
             // SAFETY: the caller's promise.\nunsafe {{ fill(BACKEND, NAME, version, table, &{constant}.{}) }}\n}}\n",
            t.member,
            names::getter(&t.member),
            t.c,
            names::member(&t.name),
        );
    }
    Ok(Output { path: format!("crates/{}/src/lib.rs", leaf.package), text: rustfmt(&s)? })
}
