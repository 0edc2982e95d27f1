//! Default answers to queries, for adapters without a device: of the right size and form, but without content. What a
//! mock or an empty device reports differently is left to its own crate.
#![expect(unsafe_code, reason = "takes back references that C destroys")]
mod answers;

use crate::{
    error::Result,
    info::Answer,
    object::{Body, Borrowed, Kind},
};
use std::ffi::c_void;

/// Releases all references that the caller holds to an object which it destroys, or which ends with another object.
///
/// # Errors
/// The error code of the object's kind if another thread does the same.
pub fn withdraw<T: Body>(object: Borrowed<'_, T>) -> Result<()> {
    for _ in 0..object.api_refs() {
        // SAFETY: with the entry that it called, the caller stated that it no longer uses the handle.
        unsafe { object.release() }?;
    }
    Ok(())
}

/// The form of a query's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A C string.
    Text,
    /// Any number of values that are not handles.
    List,
    /// Any number of handles.
    Handles(Kind),
    /// One handle.
    Handle(Kind),
    /// `ur_bool_t`
    Truth,
    /// Flags, of which these are defined.
    Flags(u32),
    /// An enumeration with this smallest value.
    Enumerator(u32),
    /// A number of this many bytes.
    Number(usize),
    /// A struct, an array or a pointer of this many bytes.
    Zeroes(usize),
}

/// The property names of one kind of query.
pub trait Query: Copy {
    /// The form of the answer; `None` where the specification does not define it.
    fn shape(self) -> Option<Shape>;
    /// The property's name in C, if it has one.
    fn title(self) -> Option<&'static str>;
}

/// What the default answers claim where they have a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// No capability, and no object of any kind.
    Nothing,
    /// Every capability, and one object of each kind.
    Everything,
}

impl Shape {
    /// Answers in this form; `handles` returns the handles of a kind that belong to the queried object.
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
                bytes[0] = u8::from(all); // 0 or 1, little-endian as on all supported platforms
                answer.slice(&bytes)
            }
            Self::Zeroes(size) => answer.slice(&vec![0_u8; size]),
        }
    }
}
