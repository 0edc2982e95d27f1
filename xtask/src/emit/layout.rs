//! Generates a program that prints the values, sizes and offsets in `ur-sys`, under the same names as
//! `abi-diff` uses for those of C.
use super::{flags_type, slot};
use crate::{
    model::{EnumKind, Spec},
    names,
};
use std::fmt::Write;

/// Returns the text of its `main.rs`.
pub fn program(spec: &Spec) -> String {
    let mut s = String::from(
        "use std::mem::{align_of, offset_of, size_of};\nuse ur_sys::*;\n\
         fn say(what: &str, n: usize) {\n    println!(\"{what} = {n}\");\n}\nfn main() {\n",
    );
    for a in &spec.aliases {
        size(&mut s, &a.c);
    }
    for h in &spec.handles {
        size(&mut s, &h.c);
    }
    for e in &spec.enums {
        size(&mut s, &e.c.replace("_flag_t", "_flags_t"));
        let rust = if e.kind == EnumKind::Flags { flags_type(&e.c) } else { e.c.clone() };
        if rust != e.c {
            let _ = writeln!(s, "    say(\"size of {}\", size_of::<{rust}>());", e.c);
        }
        for v in &e.variants {
            let constant = names::constant(&v.c, &e.c);
            let number = if rust == e.c {
                format!("{rust}::{constant}.0")
            } else {
                format!("{rust}::{constant}.bits()")
            };
            let _ = writeln!(s, "    say(\"value of {}\", {number} as usize);", v.c);
        }
    }
    for r in &spec.records {
        let members = r.fields.iter().map(|f| (f.name.clone(), names::escape(&f.name)));
        record(&mut s, &r.c, members);
    }
    for t in &spec.tables {
        let members = t
            .entries
            .iter()
            .map(|e| (format!("pfn{}", names::slot(&e.name, &t.member)), slot(&e.name, &t.member)));
        record(&mut s, &t.c, members);
    }
    record(
        &mut s,
        "ur_dditable_t",
        spec.tables.iter().map(|t| (t.member.clone(), names::member(&t.name))),
    );
    s.push_str("}\n");
    s
}

fn size(s: &mut String, c: &str) {
    let _ = writeln!(s, "    say(\"size of {c}\", size_of::<{c}>());");
}
/// Members with their C names and Rust names.
fn record(s: &mut String, c: &str, members: impl Iterator<Item = (String, String)>) {
    size(s, c);
    let _ = writeln!(s, "    say(\"alignment of {c}\", align_of::<{c}>());");
    for (name, rust) in members {
        let _ = writeln!(s, "    say(\"offset of {c}.{name}\", offset_of!({c}, {rust}));");
    }
}
