//! The exports of an adapter: a getter for every table, which accepts only this version, and no empty slots.
use super::family;
use crate::{
    bench::Bench,
    case::{Case, Stop, Verdict},
    ensure, same,
    spec::{Spec, Table},
};
use ur_sys::{ur_api_version_t, ur_result_t as R};

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for table in &Spec::get().tables {
        let entry = getter(table);
        let rule = |text: &str| text.to_owned();
        let mut add = |rule: String, name: &str, judge: fn(&Bench, &'static Table) -> Verdict| {
            let run = move |bench: &Bench| judge(bench, table);
            cases.push(Case::new(family(&table.name), &entry, rule, name, run));
        };
        add(rule("a getter fills its table"), "the getter is there and fills every slot", filled);
        add(
            rule("UR_RESULT_ERROR_UNSUPPORTED_VERSION for any version but the table's"),
            "another version is UNSUPPORTED_VERSION, and nothing is filled",
            versions,
        );
        add(
            rule("UR_RESULT_ERROR_INVALID_NULL_POINTER without a table"),
            "a null table is INVALID_NULL_POINTER",
            null,
        );
    }
    cases
}
fn getter(table: &Table) -> String {
    format!("urGet{}ProcAddrTable", table.member)
}
fn filled(bench: &Bench, table: &'static Table) -> Verdict {
    let answer = bench.adapter.getters.iter().find(|(name, _)| *name == getter(table));
    let Some((_, Some(code))) = answer else {
        return Err(Stop::failed("the adapter exports no such getter"));
    };
    same!(*code, R::SUCCESS, "the getter with version {:?}", ur_sys::VERSION);
    let named = |name: &&String| bench.adapter.slot(name).is_none();
    let empty: Vec<_> = table.entries.iter().map(|e| &e.name).filter(named).collect();
    ensure!(empty.is_empty(), "empty slots: {empty:?}");
    Ok(())
}
fn versions(bench: &Bench, table: &'static Table) -> Verdict {
    for version in [0, 0x0b, 0x0001_0000, u32::MAX] {
        let version = ur_api_version_t(version);
        let Some((code, is_filled)) = bench.adapter.ask(&getter(table), version, false) else {
            return Err(Stop::skipped("the adapter exports no such getter"));
        };
        same!(code, R::ERROR_UNSUPPORTED_VERSION, "the getter with version {version:?}");
        ensure!(!is_filled, "slots are filled all the same");
    }
    Ok(())
}
fn null(bench: &Bench, table: &'static Table) -> Verdict {
    let Some((code, _)) = bench.adapter.ask(&getter(table), ur_sys::VERSION, true) else {
        return Err(Stop::skipped("the adapter exports no such getter"));
    };
    same!(code, R::ERROR_INVALID_NULL_POINTER, "the getter without a table");
    Ok(())
}
