//! Answers of adapters that have nothing to say: of the right size, in the right form, about
//! nothing. What a mock or an empty device has to say of itself is its own business.
#![expect(unsafe_code, reason = "takes back references that C destroys")]
mod answers;

use crate::{
    error::Result,
    info::Answer,
    object::{Body, Borrowed, Kind},
};
use std::ffi::c_void;

/// Takes back all of C's references to an object that C destroys, or that goes with another.
///
/// # Errors
/// The kind's own code if another thread does the same.
pub fn withdraw<T: Body>(object: Borrowed<'_, T>) -> Result<()> {
    for _ in 0..object.api_refs() {
        // SAFETY: C says, by what it calls, that it uses the handle no more.
        unsafe { object.release() }?;
    }
    Ok(())
}

/// What the answer to a query looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A C string.
    Text,
    /// Any number of anything but handles.
    List,
    /// Any number of handles.
    Handles(Kind),
    /// One handle.
    Handle(Kind),
    /// `ur_bool_t`
    Truth,
    /// Flags, of which these are known.
    Flags(u32),
    /// An enumeration, whose smallest value this is.
    Enumerator(u32),
    /// A number of so many bytes.
    Number(usize),
    /// A struct, an array or a pointer of so many bytes.
    Zeroes(usize),
}

/// The names of one kind of query.
pub trait Query: Copy {
    /// What the answer looks like; nothing where the specification does not say.
    fn shape(self) -> Option<Shape>;
    /// C's name of this name, if it has one.
    fn title(self) -> Option<&'static str>;
}

/// How much an adapter says of itself where it has a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It can do nothing and has none of anything.
    Nothing,
    /// It can do everything and has one of each thing.
    Everything,
}

impl Shape {
    /// Answers in this shape; `handles` are those of a kind that belong to what was asked.
    ///
    /// # Errors
    /// `INVALID_SIZE` if the buffer is too small.
    pub fn answer(
        self,
        claim: Claim,
        handles: impl Fn(Kind) -> Vec<*mut c_void>,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        let all = claim == Claim::Everything;
        match self {
            Self::Text => answer.str(""),
            Self::List => answer.slice::<u8>(&[]),
            Self::Handles(kind) => answer.slice(&handles(kind)),
            Self::Handle(kind) => {
                answer.value(&handles(kind).first().copied().unwrap_or(std::ptr::null_mut()))
            }
            Self::Truth => answer.bool(all),
            Self::Flags(known) => answer.value(&if all { known } else { 0 }),
            Self::Enumerator(smallest) => answer.value(&smallest),
            Self::Number(size) => {
                let mut bytes = vec![0_u8; size];
                bytes[0] = u8::from(all); // as a number, wherever this is built: the first byte is the least
                answer.slice(&bytes)
            }
            Self::Zeroes(size) => answer.slice(&vec![0_u8; size]),
        }
    }
}
