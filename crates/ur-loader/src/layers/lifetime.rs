//! Which objects there are: handles that are used are looked up, and what is never released is told
//! at the end with the place where it was made. What is no handle, and leaks too, is `holdings`'.
//!
//! What counts is what the entries say they give and take. An object that an opened ticket gave is
//! one like any other; an event that is signalled again is an input, not a new one; objects that
//! queries answer with are known, but the program holds no reference to them.
use super::{
    effect::{Act, Kind, Row},
    operands::Operands,
    report,
};
use crate::print::kind::Kind as Shape;
use std::{
    backtrace::Backtrace,
    collections::HashMap,
    fmt::{self, Display},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use ur_sys::ur_result_t;

/// A moment in an object's life: the call, and where it was made from.
#[derive(Clone)]
pub(super) struct Moment {
    entry: &'static str,
    from: Arc<Backtrace>,
}
impl Moment {
    /// This one.
    pub(super) fn now(entry: &'static str) -> Self {
        Self { entry, from: Arc::new(Backtrace::force_capture()) }
    }
}
impl Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} here:\n{}", self.entry, self.from)
    }
}

#[derive(Clone)]
struct Object {
    kind: Kind,
    /// The references that the program holds.
    references: usize,
    /// The context that it is in, or 0.
    context: usize,
    made: Moment,
    /// The release of the last reference.
    ended: Option<Moment>,
}

const SHARDS: usize = 16;
type Shard = Mutex<Option<HashMap<usize, Object>>>;
static OBJECTS: [Shard; SHARDS] = [const { Mutex::new(None) }; SHARDS];

fn shard(handle: usize) -> MutexGuard<'static, Option<HashMap<usize, Object>>> {
    let place = (handle >> 4) ^ (handle >> 12);
    OBJECTS[place % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
}
fn find(handle: usize) -> Option<Object> {
    shard(handle).as_ref()?.get(&handle).cloned()
}
/// Changes an object that is there.
fn change(handle: usize, change: impl FnOnce(&mut Object)) {
    if let Some(object) = shard(handle).as_mut().and_then(|all| all.get_mut(&handle)) {
        change(object);
    }
}

/// What `before` did, for `after`.
pub struct Noted {
    /// The object that loses a reference, and what it was before.
    released: Option<(usize, Object)>,
    /// The event that goes in.
    signalled: usize,
}
impl Noted {
    /// The pool that loses its last reference.
    pub fn ended_pool(&self) -> Option<usize> {
        let (handle, object) = self.released.as_ref()?;
        (object.kind == Kind::UsmPool && object.references == 1).then_some(*handle)
    }
}

/// Looks at what a call is to use, and takes back the reference that it releases: from then on
/// another thread's object may have that address.
pub fn before(row: &Row, operands: Operands<'_>, tells: bool) -> Noted {
    let mut noted = Noted { released: None, signalled: 0 };
    let mut parents = Parents::default();
    for effect in row.effects {
        let mut used = |handle: usize| {
            if handle != 0 && tells {
                let object = look(row, effect.kind, handle);
                parents.meet(row, effect.kind, handle, object.as_ref());
            }
        };
        match effect.act {
            Act::Use | Act::Retain => used(operands.word(effect.param)),
            Act::UseList(count) => {
                let count = operands.number(count) as usize;
                operands.listed(effect.param, count).into_iter().for_each(used);
            }
            Act::Release => {
                let handle = operands.word(effect.param);
                used(handle);
                noted.released = release(row, effect.kind, handle, tells);
            }
            Act::MakeOrSignal => {
                let handle = operands.pointed(effect.param);
                if find(handle).is_some_and(|o| o.ended.is_none()) {
                    noted.signalled = handle;
                }
            }
            _ => {}
        }
    }
    noted
}
/// Notes what a call has given and taken.
pub fn after(row: &Row, operands: Operands<'_>, noted: Noted, result: ur_result_t) {
    if result != ur_result_t::SUCCESS {
        if let Some((handle, object)) = noted.released {
            change(handle, |now| *now = object);
        }
        return;
    }
    for effect in row.effects {
        let (kind, param) = (effect.kind, effect.param);
        match effect.act {
            Act::Retain => change(operands.word(param), |o| o.references += 1),
            Act::Make => gain(row, kind, operands.pointed(param), operands),
            Act::MakeList(count) => {
                let count = operands.number(count) as usize;
                for handle in operands.listed(param, count) {
                    gain(row, kind, handle, operands);
                }
            }
            Act::MakeOrSignal => {
                let handle = operands.pointed(param);
                if handle != noted.signalled {
                    gain(row, kind, handle, operands);
                }
            }
            Act::Note => note(row, kind, operands.pointed(param), operands),
            Act::NoteList(count) => {
                let count = operands.number(count) as usize;
                for handle in operands.listed(param, count) {
                    note(row, kind, handle, operands);
                }
            }
            Act::Answer(name, size) => {
                let room = operands.word(size);
                // Where the size that was written is asked for, it follows the answer.
                let written = match row.call.params.get(param + 1).map(|p| p.kind) {
                    Some(Shape::Pointer(Shape::Usize)) => operands.pointed(param + 1),
                    _ => 0,
                };
                let written = if written == 0 { room } else { room.min(written) };
                let Some(size) = handles_in(row, param, operands.number(name), written) else {
                    continue;
                };
                for handle in operands.answered(param, size) {
                    note(row, Kind::Any, handle, operands);
                }
            }
            Act::Use | Act::UseList(_) | Act::Release => {}
        }
    }
}

/// How much of an answer is handles.
fn handles_in(row: &Row, param: usize, name: u32, size: usize) -> Option<usize> {
    let Shape::Answer(query, ..) = row.call.params[param].kind else { return None };
    let answer = query.answers.iter().find(|a| a.of == name)?;
    match answer.kind {
        Shape::Address if answer.many => Some(size),
        Shape::Address => Some(size.min(answer.size)),
        _ => None,
    }
}

/// Finds an object that is used, and tells if it cannot be.
fn look(row: &Row, kind: Kind, handle: usize) -> Option<Object> {
    let Some(object) = find(handle) else {
        report(format_args!(
            "{}: {handle:#x} is no {kind:?} that a call through this loader gave; where is it from?",
            row.call.name
        ));
        return None;
    };
    if let Some(ended) = &object.ended {
        report(format_args!(
            "{}: the {:?} {handle:#x} is used after its last reference was released by {ended}\n\
             it was made by {}",
            row.call.name, object.kind, object.made
        ));
        return None;
    }
    let told = [object.kind, kind].contains(&Kind::Any);
    if object.kind != kind && !told {
        report(format_args!(
            "{}: {handle:#x} is a {:?}, not a {kind:?}; it was made by {}",
            row.call.name, object.kind, object.made
        ));
        return None;
    }
    Some(object)
}

/// Takes a reference away; what the object was.
fn release(row: &Row, kind: Kind, handle: usize, tells: bool) -> Option<(usize, Object)> {
    let object = find(handle)?;
    if object.ended.is_some() {
        return None; // which has been told
    }
    if object.references == 0 {
        if tells && !kind.is_shared() {
            report(format_args!(
                "{}: the program holds no reference to the {:?} {handle:#x} that it could release; it learned of it by {}",
                row.call.name, object.kind, object.made
            ));
        }
        return None;
    }
    let ended = (object.references == 1 && !kind.is_shared()).then(|| Moment::now(row.call.name));
    change(handle, |now| {
        now.references = now.references.saturating_sub(1);
        now.ended = ended;
    });
    Some((handle, object))
}
/// Notes a reference that the program has got.
fn gain(row: &Row, kind: Kind, handle: usize, operands: Operands<'_>) {
    add(row, kind, handle, operands, 1);
}
/// Notes an object that the program has learned of.
fn note(row: &Row, kind: Kind, handle: usize, operands: Operands<'_>) {
    add(row, kind, handle, operands, 0);
}
fn add(row: &Row, kind: Kind, handle: usize, operands: Operands<'_>, references: usize) {
    if handle == 0 {
        return;
    }
    let context = if kind == Kind::Context { handle } else { context(row, operands) };
    let mut all = shard(handle);
    let all = all.get_or_insert_default();
    match all.get_mut(&handle) {
        Some(object) if object.ended.is_none() => {
            object.references += references;
            if object.kind == Kind::Any {
                object.kind = kind;
            }
        }
        _ => {
            let made = Moment::now(row.call.name);
            all.insert(handle, Object { kind, references, context, made, ended: None });
        }
    }
}
/// The context of what a call makes: the one it is given, or that of the first object it is given.
fn context(row: &Row, operands: Operands<'_>) -> usize {
    let used = || row.effects.iter().filter(|e| e.act == Act::Use);
    if let Some(named) = used().find(|e| e.kind == Kind::Context) {
        return operands.word(named.param);
    }
    let contexts = used().filter_map(|e| find(operands.word(e.param))).map(|o| o.context);
    contexts.into_iter().find(|c| *c != 0).unwrap_or(0)
}

/// The contexts of what a call uses.
#[derive(Default)]
struct Parents {
    /// The first object with a context: its kind, handle and context.
    first: Option<(Kind, usize, usize)>,
}
impl Parents {
    /// Tells if this object is in another context than the first. Entries that work for a queue, a
    /// command buffer or a context ask for one context; waits of the host do not.
    fn meet(&mut self, row: &Row, kind: Kind, handle: usize, object: Option<&Object>) {
        let Some(context) = object.map(|o| o.context).filter(|c| *c != 0) else { return };
        match self.first {
            None if matches!(kind, Kind::Context | Kind::Queue | Kind::CommandBuffer) => {
                self.first = Some((kind, handle, context));
            }
            Some((first, of, there)) if there != context && kind != Kind::Any => {
                report(format_args!(
                    "{}: the {kind:?} {handle:#x} is of the context {context:#x}, but the {first:?} {of:#x} is of {there:#x}; use objects of one context",
                    row.call.name
                ))
            }
            _ => {}
        }
    }
}

/// Forgets all objects; with `tells`, says which the program still holds.
pub fn end(tells: bool) {
    for shard in &OBJECTS {
        let all = shard.lock().unwrap_or_else(PoisonError::into_inner).take();
        for (handle, object) in all.into_iter().flatten() {
            if tells && object.ended.is_none() && object.references > 0 && !object.kind.is_shared()
            {
                report(format_args!(
                    "{} reference(s) to the {:?} {handle:#x} were never released; it was made by {}",
                    object.references, object.kind, object.made
                ));
            }
        }
    }
}
