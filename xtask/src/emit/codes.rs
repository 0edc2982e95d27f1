//! Generates `crates/ur-adapter/src/error_code.rs`: the error codes as a Rust enumeration.
use super::{NOTICE, Output, rustfmt};
use crate::model::Spec;
use std::fmt::Write;

/// Generates the file.
pub fn file(spec: &Spec) -> Result<Output, String> {
    let results = spec.enumeration("Result").ok_or("the specification has no Result")?;
    let codes: Vec<_> =
        results.variants.iter().filter_map(|v| Some((v.name.strip_prefix("Error")?, v))).collect();
    let mut s = String::from(
        "//! Every error code of the specification. New codes may be added, so matches need a wildcard.\n\
         use std::fmt;\nuse ur_sys::ur_result_t;\n\n/// Why a call failed: the codes that C callers get. A whole word, like `ur_hal::ErrorKind`, and for its reason.\n\
         #[repr(u64)]\n#[non_exhaustive]\n#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]\npub enum ErrorCode {\n",
    );
    for (name, v) in &codes {
        let _ = writeln!(s, "    /// `{}`\n    {name} = {},", v.c, v.value);
    }
    s.push_str("}\n\nimpl ErrorCode {\n    /// Every code, in the specification's order.\n    pub const ALL: &[Self] = &[");
    codes.iter().for_each(|(name, _)| s.push_str(&format!("Self::{name},")));
    s.push_str(
        "];\n}\n\nimpl From<ErrorCode> for ur_result_t {\n    fn from(code: ErrorCode) -> Self {\n        Self(code as u32)\n    }\n}\n\n\
         impl fmt::Display for ErrorCode {\n    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {\n        f.write_str(match self {\n",
    );
    for (name, v) in &codes {
        let _ = writeln!(s, "            Self::{name} => {:?},", v.c);
    }
    s.push_str("        })\n    }\n}\n");
    let text = rustfmt(&format!("{NOTICE}{s}"))?;
    Ok(Output { path: "crates/ur-adapter/src/error_code.rs".into(), text })
}
