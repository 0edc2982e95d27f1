//! Reference counts: one for a new object, one more for each retain, one less for each release.
use super::{arguments::Arguments, family};
use crate::{
    bench::{Bench, word},
    case::{Case, Stop, Verdict},
    raw::Word,
    same,
    spec::{Answer, Entry, Spec, Type},
};
use ur_sys::ur_result_t;

/// A kind of object that is counted: its retain, release and query entries, and the property's enumerator.
struct Counted {
    kind: &'static str,
    family: &'static str,
    retain: &'static str,
    release: &'static str,
    info: &'static Entry,
    name: u32,
}

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for counted in counted() {
        let (kind, family, retain) = (counted.kind, counted.family, counted.retain);
        let release = counted.release;
        let entries = format!("{retain}, {release}");
        let rule = "a count is one at first; a retain adds one, a release takes one";
        let name = format!("the count of a {kind} follows every retain and release");
        let counted = std::sync::Arc::new(counted);
        let of = counted.clone();
        let judge = move |bench: &Bench| follow(bench, &of);
        cases.push(Case::new(family, entries.clone(), rule, name, judge));
        let rule = "counts are exact when several threads retain and release";
        let name = format!("eight threads retain and release a {kind}, and its count is as before");
        cases.push(Case::new(family, entries, rule, name, move |bench| at_once(bench, &counted)));
    }
    cases
}
fn counted() -> Vec<Counted> {
    let mut all = Vec::new();
    for table in &Spec::get().tables {
        let find = |part: &str| {
            let named = |e: &&Entry| e.name.contains(part) && e.params.len() == 1;
            table.entries.iter().find(named)
        };
        let Some((retain, release)) = find("Retain").zip(find("Release")) else { continue };
        let Type::Name(object) = &retain.params[0].ty else { continue };
        let info = table.entries.iter().find_map(|entry| {
            let is_of = matches!(&entry.params[0].ty, Type::Name(name) if name == object);
            let (name, _) = entry.params.iter().find_map(|p| p.answer.as_ref())?;
            let query = entry.params.iter().find(|p| p.name == *name).filter(|_| is_of)?;
            let Type::Name(query) = &query.ty else { return None };
            let one = Spec::get().enumeration(query)?;
            let count = one.variants.iter().find(|v| v.c.ends_with("_REFERENCE_COUNT"))?;
            (count.answer == Some(Answer::One(Type::Name("u32".into()))))
                .then_some((entry, count.value))
        });
        let Some((info, name)) = info else { continue };
        all.push(Counted {
            kind: object,
            family: family(&table.name),
            retain: &retain.name,
            release: &release.name,
            info,
            name,
        });
    }
    all
}
fn count(bench: &Bench, counted: &Counted, at: &Word) -> Verdict<u64> {
    let mut arguments = Arguments::valid(bench, counted.info)?;
    let area = super::arguments::Area::new(0);
    arguments.words = vec![
        at.clone(),
        Word::One(u64::from(counted.name)),
        Word::One(4),
        Word::One(area.address()),
        Word::One(0),
    ];
    let code = arguments.call()?;
    bench.succeeded(&counted.info.name, code)?;
    Ok(area.number(0, 4))
}
/// Half of the threads retain first, and the others release first, for which references were added: the count
/// takes every value in between.
fn at_once(bench: &Bench, counted: &Counted) -> Verdict {
    const ROUNDS: usize = 200;
    let at = word(bench.object(counted.kind)?);
    let first = count(bench, counted, &at)?;
    let (adapter, each) = (bench.adapter, std::slice::from_ref(&at));
    let mut calls: Vec<Vec<&str>> = Vec::new();
    for n in 0..8 {
        let (mut one, two) = (Vec::new(), [counted.retain, counted.release]);
        for _ in 0..ROUNDS {
            one.extend(if n % 2 == 0 { two } else { [two[1], two[0]] });
        }
        calls.push(one);
    }
    // One reference for each thread that releases first.
    for _ in 0..4 {
        let code = adapter.call(counted.retain, each);
        let code = code.ok_or_else(|| Stop::skipped(format!("{} is null", counted.retain)))?;
        bench.succeeded(counted.retain, code)?;
    }
    let codes = super::together::all_at_once(calls, |names: Vec<&str>| {
        names.into_iter().find_map(|name| {
            let code = adapter.call(name, each);
            (code != Some(ur_result_t::SUCCESS)).then_some((name, code))
        })
    })?;
    let failed = codes.iter().flatten().next();
    crate::ensure!(failed.is_none(), "a call among many: {failed:?}");
    for _ in 0..4 {
        same!(adapter.call(counted.release, each), Some(ur_result_t::SUCCESS), "a release");
    }
    same!(count(bench, counted, &at)?, first, "the count after all");
    Ok(())
}
fn follow(bench: &Bench, counted: &Counted) -> Verdict {
    // Adapters and root devices exist already, and other code may hold references to them.
    let is_new = !matches!(counted.kind, "Adapter" | "Device");
    let at = match is_new {
        true => word(bench.make(counted.kind)?),
        false => word(bench.object(counted.kind)?),
    };
    let call = |entry: &str| -> Verdict {
        let code = bench.adapter.call(entry, std::slice::from_ref(&at));
        let code = code.ok_or_else(|| Stop::skipped(format!("{entry} is null")))?;
        bench.succeeded(entry, code)
    };
    let first = count(bench, counted, &at)?;
    if is_new {
        same!(first, 1, "the count of a new {}", counted.kind);
    }
    if counted.kind == "Device" {
        // Retaining a root device may or may not be counted, but releases must balance it.
        (0..3).try_for_each(|_| call(counted.retain))?;
        (0..3).try_for_each(|_| call(counted.release))?;
        same!(count(bench, counted, &at)?, first, "the count of the device");
        return Ok(());
    }
    for n in 1..=3 {
        call(counted.retain)?;
        same!(count(bench, counted, &at)?, first + n, "the count after {n} retains");
    }
    for n in (0..3).rev() {
        call(counted.release)?;
        same!(count(bench, counted, &at)?, first + n, "the count after a release");
    }
    if is_new {
        let last = bench.adapter.call(counted.release, std::slice::from_ref(&at));
        same!(last, Some(ur_result_t::SUCCESS), "the last release");
    }
    Ok(())
}
