//! What a row of the generated table consists of.
use ur_sys::{ur_dditable_t, ur_result_t};

/// One entry.
pub struct Entry {
    /// As C calls it.
    pub name: &'static str,
    /// In C's order.
    pub params: &'static [Param],
    /// Calls it with a word for each parameter; structs that C passes by value by their address.
    pub call: fn(&ur_dditable_t, &[usize]) -> ur_result_t,
}
/// One parameter.
pub struct Param {
    pub name: &'static str,
    /// Whether it may be null.
    pub optional: bool,
    pub role: Role,
}
/// What a parameter is. Lists name the parameter that counts them, by its place.
#[derive(Clone, Copy, PartialEq)]
pub enum Role {
    /// A handle of this kind.
    Handle(&'static str),
    /// Several of them.
    Handles(&'static str, Option<usize>),
    /// The events to wait for.
    WaitList(Option<usize>),
    /// Where a result goes.
    Out(Option<usize>),
    /// Where a handle goes that is null after a refusal.
    OutNull,
    /// What is read and written.
    InOut,
    /// A struct: its size, what its first word says, where words are that must be known and a
    /// value of each that is not; and how many there are of it.
    Record(usize, Option<u32>, &'static [(usize, u32)], Option<usize>),
    /// A struct of this size, by value.
    Value(usize),
    /// Any other memory that C lends.
    Pointer(Option<usize>),
    /// A C string.
    Text,
    /// A function of C's.
    Callback,
    /// A value of an enumeration, of which this is one.
    Enumerator(u32),
    /// Flags, of which these are known.
    Flags(u32),
    /// Bytes or elements.
    Size,
    /// Any other number.
    Number,
    /// Where the answer to a query goes; which parameters say how much room there is for it, and
    /// where how much it takes is told.
    Answer(Option<usize>, Option<usize>),
    /// How much room there is for it.
    AnswerSize,
}
