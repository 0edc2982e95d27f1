//! Generates `ur_ddi.h`: a type for every entry point, the tables, and the functions that fill them.
use super::parameter_types;
use crate::{
    emit::pfn,
    model::{Entry, Spec, Table},
    names,
};
use std::fmt::Write;

/// Everything inside of `extern "C"`.
pub fn body(spec: &Spec) -> String {
    let mut s = String::from("/* The type of every entry point that a table has. */\n");
    for e in spec.tables.iter().flat_map(|t| &t.entries) {
        let _ = writeln!(
            s,
            "typedef ur_result_t (UR_APICALL *{})({});",
            pfn(&e.name),
            parameter_types(spec, e)
        );
    }
    for t in &spec.tables {
        s.push_str(&table(t));
    }
    s.push_str("\n/** All tables. The first word of every object points at its adapter's. */\ntypedef struct ur_dditable_t {\n");
    for t in &spec.tables {
        let _ = writeln!(s, "    {} {};", t.c, t.member);
    }
    s.push_str("} ur_dditable_t;\n");
    s
}

fn table(t: &Table) -> String {
    let mut s = format!("\n/** Entry points of `{}`. */\ntypedef struct {} {{\n", t.member, t.c);
    let slot =
        |e: &Entry| format!("    {} pfn{};\n", pfn(&e.name), names::slot(&e.name, &t.member));
    s.extend(t.entries.iter().map(slot));
    let _ = writeln!(s, "}} {};", t.c);
    let getter = names::getter(&t.member);
    s.push_str(
        "/** Fills a table with this library's entry points, if it supports the version. */\n",
    );
    let _ = writeln!(
        s,
        "UR_DLLEXPORT ur_result_t UR_APICALL {getter}(ur_api_version_t version, {} *pDdiTable);",
        t.c
    );
    let _ = writeln!(
        s,
        "typedef ur_result_t (UR_APICALL *{})(ur_api_version_t, {} *);",
        pfn(&getter),
        t.c
    );
    s
}
