//! A command as it is recorded: what it waits for, does and signals. A list that is not immediate runs
//! its commands again with each execution, so each can be made ready more than once.
use crate::{
    event::{Promise, Wait},
    inject::Answer,
    kernel::Launchable,
    line::Ready,
};
use std::{ffi::c_void, sync::Arc};

/// An address of the caller's that a command will use when its turn comes.
#[derive(Clone, Copy)]
pub struct HostPlace(usize);
impl HostPlace {
    /// Keeps where `pointer` points.
    pub fn new<T: ?Sized>(pointer: *const T) -> Self {
        Self(pointer.expose_provenance())
    }
    /// The bytes there.
    pub const fn bytes(self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.0)
    }
    /// The bytes `offset` further on.
    pub const fn plus(self, offset: usize) -> *mut u8 {
        self.bytes().wrapping_add(offset)
    }
    /// The same as C's `void *`.
    pub const fn any(self) -> *mut c_void {
        self.bytes().cast()
    }
}
/// What a command does, each time.
pub type Call = Arc<dyn Fn() -> Answer + Send + Sync>;
/// What a command is.
#[derive(Clone)]
pub enum Work {
    /// It waits and signals only.
    Nothing,
    Call(Call),
    /// A kernel, apart from the others because it can be changed after it was recorded.
    Launch(Box<Launchable>, [u32; 3]),
}
impl Work {
    /// A command that does `call`.
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
    /// The number by which a list that can be changed knows it; 0: none.
    pub id: u64,
}
impl Command {
    /// This command for the run that is submitted now; `again`: it ran before.
    pub fn ready(&self, again: bool) -> Ready {
        let waits = self.waits.iter().map(Wait::fixed).collect();
        let promise = self.promise.as_ref().map(|promise| promise.fixed(again));
        Ready { waits, work: self.work.clone().into_line(), promise, free: self.free }
    }
    /// The same of a command that is not kept.
    pub fn once(self) -> Ready {
        // What is captured stays, though a list that runs again may raise the number meanwhile.
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
