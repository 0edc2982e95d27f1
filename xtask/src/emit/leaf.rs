//! `crates/native-cpu/src`: the C symbols of one adapter's shared object.
use super::{NOTICE, Output, rustfmt};
use crate::{model::Spec, names};
use std::fmt::Write;

/// The leaf of the CPU adapter.
pub fn file(spec: &Spec) -> Result<Output, String> {
    let mut s = format!(
        "{NOTICE}//! The C symbols of `libur_adapter_native_cpu.so.0`, and nothing else: `cargo xtask dist` links it.\n\
         #![expect(unsafe_code, reason = \"the symbols that a loader asks for\")]\n\
         use ur_adapter::entry::fill;\nuse ur_adapters::cpu::TABLE;\nuse ur_sys::*;\n\n\
         /// What logs call this adapter, and the environment variable that asks for them.\nconst NAME: &str = \"NATIVE_CPU\";\n"
    );
    for t in &spec.tables {
        let _ = write!(
            s,
            "\n/// Fills the table of `{}`.\n///\n/// # Safety\n/// `table` is null or writable.\n\
             #[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {}(version: ur_api_version_t, table: *mut {}) -> ur_result_t {{\n\
             // SAFETY: the caller's promise.\nunsafe {{ fill(NAME, version, table, &TABLE.{}) }}\n}}\n",
            t.member,
            names::getter(&t.member),
            t.c,
            names::member(&t.name),
        );
    }
    Ok(Output { path: "crates/native-cpu/src/lib.rs".into(), text: rustfmt(&s)? })
}
