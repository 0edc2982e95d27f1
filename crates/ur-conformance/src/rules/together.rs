//! Several threads in one entry at once, with the same objects: each gets the result that it would get alone.
//! `families/threads.rs` tests the effects of concurrent calls on data.
use super::{
    arguments::{Area, Arguments},
    code,
};
use crate::{
    adapter::Adapter,
    bench::{Bench, release_entry, word},
    case::{Case, Stop, Verdict},
    ensure,
    raw::Word,
    same,
    spec::{Entry, Enum, Param, Spec, Type},
};
use std::{collections::HashSet, ffi::c_void, sync::Barrier, thread};
use ur_sys::{ur_event_status_t, ur_result_t as R};

/// The number of threads in an entry at once, and of calls by each.
const THREADS: usize = 4;
const ROUNDS: usize = 25;

pub fn cases(family: &'static str, entry: &'static Entry) -> Vec<Case> {
    let case = |name: &str, judge: Box<dyn Fn(&Bench) -> Verdict + Send + Sync>| {
        let rule = "entries may be called by several threads at once";
        Case::new(family, &entry.name, rule, name, judge)
    };
    let mut all = Vec::new();
    if let Some(query) = query(entry) {
        let name = "four threads that ask everything at once hear what one hears";
        all.push(case(name, Box::new(move |b| ask(b, entry, query))));
    }
    let spoils = spoils(entry);
    if !spoils.is_empty() {
        let name = "four threads that are refused at once each hear their own fault";
        all.push(case(name, Box::new(move |b| refused(b, entry, &spoils))));
    }
    let event = entry.params.iter().position(super::waits::is_event);
    if let Some(out) = event.filter(|_| entry.name.starts_with("urEnqueue")) {
        let name = "what four threads enqueue at once into one queue all gets done";
        all.push(case(name, Box::new(move |b| enqueued(b, entry, out))));
    }
    if let Some((out, kind)) = made(entry) {
        let name = "what four threads make at once is made apart, and released";
        all.push(case(name, Box::new(move |b| created(b, entry, out, kind))));
    }
    all
}
/// Runs `act` in one thread for each call; all threads begin at the same time.
pub fn all_at_once<T: Send, A: Send>(
    calls: Vec<A>,
    act: impl Fn(A) -> T + Sync,
) -> Verdict<Vec<T>> {
    let (start, act) = (Barrier::new(calls.len()), &act);
    let start = &start;
    thread::scope(|scope| {
        let begin = |call| {
            scope.spawn(move || {
                start.wait();
                act(call)
            })
        };
        let running: Vec<_> = calls.into_iter().map(begin).collect();
        let joined = running.into_iter().map(|thread| thread.join());
        joined.map(|done| done.map_err(|_| Stop::failed("a thread panicked"))).collect()
    })
}
fn present(adapter: &Adapter, entry: &Entry) -> Verdict {
    let missing = || Stop::skipped(format!("{} is null in its table", entry.name));
    adapter.slot(&entry.name).map(drop).ok_or_else(missing)
}

/// The indices of the parameters for the property, the size, the value and the answer's size; and the
/// properties.
#[derive(Clone, Copy)]
pub struct Query {
    places: [usize; 4],
    pub properties: &'static Enum,
}
pub fn query(entry: &'static Entry) -> Option<Query> {
    let (name, size) = entry.params.iter().find_map(|param| param.answer.as_ref())?;
    let index = |name: &str| entry.params.iter().position(|param| param.name == name);
    let places = [index(name)?, index(size)?, index("prop_value")?, index("prop_size_ret")?];
    let Type::Name(of) = &entry.params[places[0]].ty else { return None };
    let properties = Spec::get().enumeration(of).filter(|one| one.query.is_some())?;
    Some(Query { places, properties })
}
/// Whether the answer to a property may change over time.
pub fn changes(name: &str) -> bool {
    ["FREE", "CURRENT", "STATUS", "USED", "EMPTY", "TEMPERATURE", "FAN"]
        .iter()
        .any(|part| name.contains(part))
}
type Answer = (u32, u64, Vec<u8>);
pub fn answer(
    adapter: &Adapter,
    entry: &Entry,
    query: Query,
    words: &[Word],
    value: u32,
) -> Answer {
    let [name, size, to, reported] = query.places;
    // The buffer is zeroed, because for one property the adapter reads addresses from it: null means none.
    let (buffer, length) = (Area::new(0), Area::new(0));
    let mut words = words.to_vec();
    words[name] = Word::One(u64::from(value));
    words[size] = Word::One(0);
    words[to] = Word::One(0);
    words[reported] = Word::One(length.address());
    let call = |words: &[Word]| adapter.call(&entry.name, words).map_or(u32::MAX, |code| code.0);
    let (code, bytes) = (call(&words), length.number(0, 8));
    if code != 0 || bytes == 0 || bytes > 4000 {
        return (code, bytes, Vec::new());
    }
    words[size] = Word::One(bytes);
    words[to] = Word::One(buffer.address());
    let code = call(&words);
    (code, bytes, buffer.peek(0, bytes as usize))
}
fn ask(b: &Bench, entry: &'static Entry, query: Query) -> Verdict {
    present(b.adapter, entry)?;
    let (arguments, adapter) = (Arguments::valid(b, entry)?, b.adapter);
    let words = &arguments.words;
    let all = || -> Vec<Answer> {
        let values = query.properties.variants.iter().map(|variant| variant.value);
        values.map(|value| answer(adapter, entry, query, words, value)).collect()
    };
    let alone = all();
    let heard = all_at_once(vec![(); THREADS], |()| (0..3).map(|_| all()).collect::<Vec<_>>())?;
    for answers in heard.iter().flatten() {
        for ((found, expected), of) in answers.iter().zip(&alone).zip(&query.properties.variants) {
            same!((found.0, found.1), (expected.0, expected.1), "code and size of {}", of.c);
            ensure!(changes(&of.c) || found.2 == expected.2, "{} is answered otherwise", of.c);
        }
    }
    Ok(())
}

/// Parameters that must not be null, with the documented codes.
fn spoils(entry: &'static Entry) -> Vec<(usize, u32)> {
    let fault = |(index, param): (usize, &Param)| {
        let name = match &param.ty {
            _ if param.optional => return None,
            Type::Pointer(_) => "InvalidNullPointer",
            ty if Spec::get().is_handle(ty) => "InvalidNullHandle",
            _ => return None,
        };
        Some((index, code(name).1))
    };
    entry.params.iter().enumerate().filter_map(fault).collect()
}
fn refused(b: &Bench, entry: &'static Entry, spoils: &[(usize, u32)]) -> Verdict {
    present(b.adapter, entry)?;
    let mut calls = Vec::new();
    for n in 0..THREADS {
        let (index, expected) = spoils[n % spoils.len()];
        let mut arguments = Arguments::valid(b, entry)?;
        arguments.words[index] = Word::One(0);
        // First a single call: if it already gives another result, concurrency is not the cause.
        arguments.refused(&[expected])?;
        calls.push((arguments, expected));
    }
    let words = calls.iter().map(|(arguments, _)| arguments.words.clone()).collect();
    let adapter = b.adapter;
    let heard = all_at_once(words, |words: Vec<Word>| {
        let call = |_| adapter.call(&entry.name, &words).map_or(u32::MAX, |code| code.0);
        (0..ROUNDS).map(call).collect::<HashSet<_>>()
    })?;
    for (heard, (arguments, expected)) in heard.into_iter().zip(&calls) {
        same!(heard, HashSet::from([*expected]), "the codes of a thread");
        arguments.refused(&[*expected])?;
    }
    Ok(())
}

fn enqueued(b: &Bench, entry: &'static Entry, out: usize) -> Verdict {
    present(b.adapter, entry)?;
    let mut calls = Vec::new();
    for _ in 0..THREADS {
        let mut arguments = Arguments::valid(b, entry)?;
        if let Some(blocking) = entry.params.iter().position(|p| p.name.starts_with("blocking")) {
            arguments.words[blocking] = Word::One(0);
        }
        let area = arguments.areas.get(&out).ok_or_else(|| Stop::failed("no event wanted"))?;
        arguments.words[out] = Word::One(area.address());
        calls.push(arguments);
    }
    // A command that removes something can be made only once with the same arguments.
    let is_once = entry.name.contains("Unmap") || entry.name.contains("FreeExp");
    let rounds = if is_once { 1 } else { ROUNDS };
    let each = calls.iter().map(|call| (call.words.clone(), &call.areas[&out])).collect();
    let adapter = b.adapter;
    let made = all_at_once(each, |(words, event): (Vec<Word>, &Area)| {
        let call = |_| {
            event.poke(0, &[0; 8]);
            let code = adapter.call(&entry.name, &words).map_or(u32::MAX, |code| code.0);
            (R(code), event.number(0, 8) as usize)
        };
        (0..rounds).map(call).collect::<Vec<_>>()
    })?;
    let (mut seen, mut events) = (HashSet::new(), Vec::new());
    for (code, event) in made.into_iter().flatten() {
        if code == R::ERROR_INVALID_VALUE && entry.name.contains("DeviceGlobalVariable") {
            return Err(Stop::skipped("the suite has no program with a variable"));
        }
        b.succeeded(&entry.name, code)?;
        ensure!(event != 0, "an entry succeeds and gives no event");
        ensure!(seen.insert(event), "two commands have one event");
        events.push(std::ptr::with_exposed_provenance_mut::<c_void>(event));
    }
    b.wait(&events)?;
    for event in events {
        same!(b.status(event)?, ur_event_status_t::COMPLETE, "a status after the wait");
        b.adapter.call("urEventRelease", &[word(event)]);
    }
    Ok(())
}

/// Returns the index of the parameter for the object that an entry creates, and the object's kind.
fn made(entry: &'static Entry) -> Option<(usize, &'static str)> {
    let is_maker = entry.name.contains("Create") && !entry.name.contains("Native");
    let kind = |param: &'static Param| match &param.ty {
        Type::Pointer(to) if param.out => match &**to {
            Type::Name(kind) if release_entry(kind).is_some() => Some(kind.as_str()),
            _ => None,
        },
        _ => None,
    };
    let mut places = entry.params.iter().enumerate();
    places.find_map(|(at, param)| Some((at, kind(param)?))).filter(|_| is_maker)
}
fn created(b: &Bench, entry: &'static Entry, out: usize, kind: &str) -> Verdict {
    present(b.adapter, entry)?;
    let calls: Vec<_> = (0..THREADS).map(|_| Arguments::valid(b, entry)).collect::<Verdict<_>>()?;
    let code = calls[0].call()?;
    let unusable = [R::ERROR_INVALID_BINARY, R::ERROR_INVALID_NATIVE_BINARY];
    if unusable.contains(&code) || code == R::ERROR_COMPILER_NOT_AVAILABLE {
        return Err(Stop::skipped("the suite has no code to give to it"));
    }
    b.succeeded(&entry.name, code)?;
    let release = release_entry(kind).ok_or_else(|| Stop::failed(format!("{kind}s stay")))?;
    let first = calls[0].areas[&out].number(0, 8);
    let each = calls.iter().map(|call| (call.words.clone(), &call.areas[&out])).collect();
    let adapter = b.adapter;
    let made = all_at_once(each, |(words, to): (Vec<Word>, &Area)| {
        let call = |_| {
            let code = adapter.call(&entry.name, &words).map_or(u32::MAX, |code| code.0);
            (R(code), to.number(0, 8))
        };
        (0..ROUNDS).map(call).collect::<Vec<_>>()
    })?;
    let mut seen = HashSet::from([first]);
    for (code, made) in made.into_iter().flatten() {
        b.succeeded(&entry.name, code)?;
        ensure!(made != 0 && seen.insert(made), "two of what was made are one: {made:#x}");
    }
    // The releases are concurrent, too.
    let seen: Vec<_> = seen.into_iter().map(Word::One).collect();
    let parts: Vec<_> = seen.chunks(seen.len().div_ceil(THREADS)).map(<[Word]>::to_vec).collect();
    let codes = all_at_once(parts, |part: Vec<Word>| {
        part.iter().map(|one| adapter.call(release, std::slice::from_ref(one))).collect::<Vec<_>>()
    })?;
    let failed = codes.iter().flatten().find(|code| **code != Some(R::SUCCESS));
    ensure!(failed.is_none(), "a release: {failed:?}");
    Ok(())
}
