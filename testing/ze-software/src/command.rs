//! A recorded command: what it waits for, does and signals. A list that is not immediate runs its commands
//! with each execution, so a command can be made ready more than once.
use crate::{
    event::{Promise, Wait},
    inject::Answer,
    kernel::Launchable,
    line::Ready,
};
use std::{ffi::c_void, sync::Arc};

/// An address of the caller that a command uses when it runs.
#[derive(Clone, Copy)]
pub struct HostPlace(usize);
impl HostPlace {
    /// Keeps the address of `pointer`.
    pub fn new<T: ?Sized>(pointer: *const T) -> Self {
        Self(pointer.expose_provenance())
    }
    /// The bytes there.
    pub const fn bytes(self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.0)
    }
    /// The address `offset` bytes further on.
    pub const fn plus(self, offset: usize) -> *mut u8 {
        self.bytes().wrapping_add(offset)
    }
    /// The address as C's `void *`.
    pub const fn any(self) -> *mut c_void {
        self.bytes().cast()
    }
}
/// What a command does in each run.
pub type Call = Arc<dyn Fn() -> Answer + Send + Sync>;
/// The work of a command.
#[derive(Clone)]
pub enum Work {
    /// Nothing: it only waits and signals.
    Nothing,
    Call(Call),
    /// A kernel launch; a kind of its own because it can be changed after it was recorded.
    Launch(Box<Launchable>, [u32; 3]),
}
impl Work {
    /// A command that calls `call`.
    pub fn call(call: impl Fn() -> Answer + Send + Sync + 'static) -> Self {
        Self::Call(Arc::new(call))
    }
}
/// A recorded command.
pub struct Command {
    pub waits: Vec<Wait>,
    pub work: Work,
    pub promise: Option<Promise>,
    /// See [`Ready::free`].
    pub free: bool,
    /// Its number in a mutable list; 0: none.
    pub id: u64,
}
impl Command {
    /// The command for an execution that is submitted now; `again`: it has run before.
    pub fn ready(&self, again: bool) -> Ready {
        let waits = self.waits.iter().map(Wait::fixed).collect();
        let promise = self.promise.as_ref().map(|promise| promise.fixed(again));
        Ready { waits, work: self.work.clone().into_line(), promise, free: self.free }
    }
    /// The command for its only execution.
    pub fn once(self) -> Ready {
        // The captured numbers must stay, even if a list that runs again raises an event's number meanwhile.
        let waits = self.waits.iter().map(Wait::fixed).collect();
        let Self { work, promise, free, .. } = self;
        Ready { waits, work: work.into_line(), promise, free }
    }
}
impl Work {
    fn into_line(self) -> Option<crate::line::Work> {
        match self {
            Self::Nothing => None,
            Self::Call(call) => Some(crate::line::Work::Call(call)),
            Self::Launch(kernel, groups) => {
                Some(crate::line::Work::Once(Box::new(move || kernel.run(groups))))
            }
        }
    }
}
