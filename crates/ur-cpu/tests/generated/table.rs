//! What a row of the generated table consists of.
#![expect(unsafe_code, reason = "plays the C caller")]
use std::mem::{size_of, transmute_copy};
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

/// A word as an argument of an entry: its first bytes, or, for a struct that C passes by value, what is at that address.
///
/// # Safety
/// These bytes are a `T`, or are at that address.
pub unsafe fn argument<T: Copy>(word: usize) -> T {
    match size_of::<T>() {
        // SAFETY: the only parameters of one byte are truth values, of which these two are all.
        1 => unsafe { transmute_copy(&(word != 0)) },
        // SAFETY: the caller's promise; the machines of this project store the least byte first.
        size if size <= size_of::<usize>() => unsafe { transmute_copy(&word) },
        // SAFETY: the caller's promise.
        _ => unsafe { std::ptr::with_exposed_provenance::<T>(word).read_unaligned() },
    }
}
/// A row: C's name of the entry, its slot, and for each parameter whether it may be null, its name and its role.
macro_rules! entry {
    (@optional required) => { false };
    (@optional optional) => { true };
    ($c:literal, $table:ident.$slot:ident, $($need:ident $name:ident = $role:expr),*) => {
        Entry {
            name: $c,
            params: &[$(Param {
                name: stringify!($name),
                optional: entry!(@optional $need),
                role: $role,
            }),*],
            call: |table, words| {
                let [$($name,)* ..] = *words else { panic!("a word for each parameter") };
                $(
                    // SAFETY: the test plays C: it gives what C could give for this parameter, or what the
                    // entry refuses before it uses it.
                    let $name = unsafe { argument($name) };
                )*
                let call = table.$table.$slot.expect("no slot is empty");
                // SAFETY: as above.
                unsafe { call($($name),*) }
            },
        }
    };
}
pub(crate) use entry;
