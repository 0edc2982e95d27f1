//! Tracks which objects exist: handles that a call uses are looked up, and objects that were never released
//! are reported at the end with the place where they were made. `holdings` tracks resources that are no
//! handles.
//!
//! Only what the entries give and take counts. Objects that come from opened IPC tickets are tracked like any
//! other. An event that is signalled again is an input, not a new object. Objects in the answers of queries
//! are known, but the program holds no reference to them.
use super::{
    effect::{Act, Kind, Row},
    moment::Moment,
    operands::Operands,
    report,
};
use crate::print::kind::Kind as Shape;
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
};
use ur_lock::locked;
use ur_sys::ur_result_t;

#[derive(Clone)]
struct Object {
    kind: Kind,
    /// The references that the program holds.
    references: usize,
    /// The context that it belongs to, or 0.
    context: usize,
    made: Moment,
    /// The call that released the last reference.
    ended: Option<Moment>,
    /// Whether it was released again after that, which was reported.
    overdone: bool,
}

const SHARDS: usize = 16;
type Shard = Mutex<Option<HashMap<usize, Object>>>;
static OBJECTS: [Shard; SHARDS] = [const { Mutex::new(None) }; SHARDS];

fn shard(handle: usize) -> MutexGuard<'static, Option<HashMap<usize, Object>>> {
    let place = (handle >> 4) ^ (handle >> 12);
    locked(&OBJECTS[place % SHARDS])
}
fn find(handle: usize) -> Option<Object> {
    shard(handle).as_ref()?.get(&handle).cloned()
}
/// Changes an object if it is known.
fn change(handle: usize, change: impl FnOnce(&mut Object)) {
    if let Some(object) = shard(handle).as_mut().and_then(|all| all.get_mut(&handle)) {
        change(object);
    }
}

/// What `before` recorded, for `after`.
pub struct Noted {
    released: Option<Released>,
    /// The existing event that the call signals again, or 0.
    signalled: usize,
}
/// The object that loses a reference, in its state before that.
struct Released {
    handle: usize,
    object: Object,
}
impl Released {
    fn is_last(&self) -> bool {
        self.object.references == 1 && !self.object.kind.is_shared()
    }
    /// Restores the reference after the call failed. Another thread may have made an object with that address
    /// meanwhile.
    fn undo(self) {
        let mut all = shard(self.handle);
        let all = all.get_or_insert_default();
        match all.get_mut(&self.handle) {
            // If two threads release at once, the second release may be the one that succeeds; then nothing
            // is restored.
            Some(now) if now.overdone => {}
            Some(now) => {
                now.references += 1;
                now.ended = None;
            }
            None => {
                all.insert(self.handle, Object { references: 1, ..self.object });
            }
        }
    }
}
impl Noted {
    /// Returns the pool if the call releases its last reference.
    pub fn ended_pool(&self) -> Option<usize> {
        let released = self.released.as_ref().filter(|r| r.object.kind == Kind::UsmPool)?;
        released.is_last().then_some(released.handle)
    }
}

/// Checks the objects that a call is to use, and removes the reference that it releases: after the call,
/// another thread's object may have the same address.
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
                noted.released = release(row, effect.kind, operands.word(effect.param), tells);
                if let Some(Released { handle, object }) = noted.released.as_ref().filter(|_| tells)
                {
                    parents.meet(row, effect.kind, *handle, Some(object));
                }
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
/// Records what a call has given and taken.
pub fn after(row: &Row, operands: Operands<'_>, noted: Noted, result: ur_result_t) {
    if result != ur_result_t::SUCCESS {
        if let Some(released) = noted.released {
            released.undo();
        }
        return;
    }
    for effect in row.effects {
        let (kind, param) = (effect.kind, effect.param);
        match effect.act {
            Act::Retain => change(operands.word(param), |o| o.references += 1),
            Act::Make => gain(row, kind, operands.pointed(param), operands),
            Act::MakeList(count) => {
                for handle in given(row, operands, param, count) {
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
                for handle in given(row, operands, param, count) {
                    note(row, kind, handle, operands);
                }
            }
            Act::Answer(name, size) => {
                let room = operands.word(size);
                // Where the query also returns the size that was written, that parameter follows the answer.
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

/// Returns the handles that a call has listed: at most the number of entries that the caller passed, and no
/// more than the total that the call returned, if it returned one.
fn given(row: &Row, operands: Operands<'_>, param: usize, count: usize) -> Vec<usize> {
    let room = operands.number(count);
    let all = match row.call.params.get(param + 1).map(|p| p.kind) {
        Some(Shape::Pointer(Shape::U32)) => operands.pointed_number(param + 1),
        _ => None,
    };
    operands.listed(param, all.map_or(room, |all| room.min(all)) as usize)
}
/// Returns how many bytes of a query's answer are handles.
fn handles_in(row: &Row, param: usize, name: u32, size: usize) -> Option<usize> {
    let Shape::Answer(query, ..) = row.call.params[param].kind else { return None };
    let answer = query.answers.iter().find(|a| a.of == name)?;
    match answer.kind {
        Shape::Address if answer.many => Some(size),
        Shape::Address => Some(size.min(answer.size)),
        _ => None,
    }
}

/// Looks up an object that is used, and reports if it cannot be used.
fn look(row: &Row, kind: Kind, handle: usize) -> Option<Object> {
    let found = find(handle);
    match fault(row, kind, handle, found.as_ref()) {
        Some(sentence) => {
            report(sentence);
            None
        }
        None => found,
    }
}
/// Returns why an object cannot be used, if that is so.
fn fault(row: &Row, kind: Kind, handle: usize, found: Option<&Object>) -> Option<String> {
    let call = row.call.name;
    let Some(object) = found else {
        return Some(format!(
            "{call}: {handle:#x} is no {kind} that a call through this loader gave; where is it from?"
        ));
    };
    if let Some(ended) = &object.ended {
        return Some(format!(
            "{call}: the {} {handle:#x} is used after its last reference was released by {ended}\n\
             it was made by {}",
            object.kind, object.made
        ));
    }
    let told = object.kind == kind || [object.kind, kind].contains(&Kind::Any);
    (!told).then(|| {
        format!(
            "{call}: {handle:#x} is {} {}, not {} {kind}; it was made by {}",
            object.kind.article(),
            object.kind,
            kind.article(),
            object.made
        )
    })
}

/// Removes a reference if the program holds one, else reports. Both the check and the removal happen under
/// one lock, because another thread may retain or release meanwhile.
fn release(row: &Row, kind: Kind, handle: usize, tells: bool) -> Option<Released> {
    // The call site of a last release is determined without the lock; the state is then checked again.
    let mut now = None;
    let refused = loop {
        let mut shard = shard(handle);
        let found = shard.as_mut().and_then(|all| all.get_mut(&handle));
        if let Some(sentence) = fault(row, kind, handle, found.as_deref()) {
            if let Some(object) = found.filter(|object| object.ended.is_some()) {
                object.overdone = true;
            }
            break sentence;
        }
        let object = found?;
        if object.references == 0 {
            break unheld(row, kind, handle, object)?;
        }
        let released = Released { handle, object: object.clone() };
        if !released.is_last() {
            object.references -= 1;
        } else if !tells {
            // Only leaks are reported and this object is none, so its record is no longer needed.
            shard.as_mut()?.remove(&handle);
        } else if now.is_some() {
            object.references = 0;
            object.ended = now;
        } else {
            drop(shard);
            now = Some(Moment::now(row.call.name));
            continue;
        }
        return Some(released);
    };
    if tells && handle != 0 {
        report(refused);
    }
    None
}
/// Returns what is wrong with the release of an object to which the program holds no reference. Objects that
/// the runtime keeps alive itself may be released without effect, so for these nothing is wrong.
fn unheld(row: &Row, kind: Kind, handle: usize, object: &Object) -> Option<String> {
    (!kind.is_shared()).then(|| {
        format!(
            "{}: the program holds no reference to the {} {handle:#x} that it could release; it learned of it by {}",
            row.call.name, object.kind, object.made
        )
    })
}
/// Records a reference that the program gained.
fn gain(row: &Row, kind: Kind, handle: usize, operands: Operands<'_>) {
    add(row, kind, handle, operands, 1);
}
/// Records an object whose handle the program got without a reference.
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
            all.insert(
                handle,
                Object { kind, references, context, made, ended: None, overdone: false },
            );
        }
    }
}
/// Returns the context of an object that a call makes: the context argument, or the context of the first
/// argument that has one.
fn context(row: &Row, operands: Operands<'_>) -> usize {
    let used = || row.effects.iter().filter(|e| e.act == Act::Use);
    if let Some(named) = used().find(|e| e.kind == Kind::Context) {
        return operands.word(named.param);
    }
    let contexts = used().filter_map(|e| find(operands.word(e.param))).map(|o| o.context);
    contexts.into_iter().find(|c| *c != 0).unwrap_or(0)
}

/// The contexts of the objects that a call uses.
#[derive(Default)]
struct Parents {
    /// The first object with a context: its kind, handle and context.
    first: Option<(Kind, usize, usize)>,
}
impl Parents {
    /// Reports if this object belongs to another context than the first. Only entries on a queue, a command
    /// buffer or a context require one context; waits on the host do not.
    fn meet(&mut self, row: &Row, kind: Kind, handle: usize, object: Option<&Object>) {
        let Some(context) = object.map(|o| o.context).filter(|c| *c != 0) else { return };
        match self.first {
            None if matches!(kind, Kind::Context | Kind::Queue | Kind::CommandBuffer) => {
                self.first = Some((kind, handle, context));
            }
            Some((first, of, there)) if there != context && kind != Kind::Any => {
                report(format_args!(
                    "{}: the {kind} {handle:#x} is of the context {context:#x}, but the {first} {of:#x} is of {there:#x}; use objects of one context",
                    row.call.name
                ))
            }
            _ => {}
        }
    }
}

/// Forgets all objects; with `tells`, reports those to which the program still holds references.
pub fn end(tells: bool) {
    for shard in &OBJECTS {
        let all = locked(shard).take();
        for (handle, object) in all.into_iter().flatten() {
            if tells && object.ended.is_none() && object.references > 0 && !object.kind.is_shared()
            {
                report(format_args!(
                    "{} reference(s) to the {} {handle:#x} were never released; it was made by {}",
                    object.references, object.kind, object.made
                ));
            }
        }
    }
}
