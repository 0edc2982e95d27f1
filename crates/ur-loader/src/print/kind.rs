//! The words that the tables of this module are written in: what a value is made of, and how it is
//! to be read. No values here, and no text.

/// How a value lies in memory, and so how it is read and written as text.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A byte.
    U8,
    /// A character.
    Char,
    /// A number.
    U32,
    /// A number with a sign.
    I32,
    /// A number.
    U64,
    /// A size, or a native handle.
    Usize,
    /// A number with a fraction.
    F32,
    /// A number with a longer fraction.
    F64,
    /// Whether something is so, as a number.
    Bool,
    /// Whether something is so, in words.
    Truth,
    /// One of these values.
    Enum(&'static [(u32, &'static str)]),
    /// Two numbers in one.
    Version,
    /// Any of these bits.
    Flags(&'static [(u32, &'static str)]),
    /// A handle, a function, or a pointer to bytes that nothing is known of.
    Address,
    /// A pointer that is not followed, and that is a number when it is null.
    Bare,
    /// A pointer to characters that end with a NUL.
    Text,
    /// A pointer to the next struct of a chain, which says by its first member what it is.
    Next,
    /// A struct.
    Record(&'static Record),
    /// A union of this name; the sibling that says which member is meant; the members.
    Union(&'static str, usize, &'static [Tag]),
    /// A pointer to one value.
    Pointer(&'static Kind),
    /// A pointer to as many values as the count says.
    List(&'static Kind, Count),
    /// So many values in a row.
    Array(&'static Kind, usize),
    /// Where the answer to a query goes; the siblings that name the query and bound the answer.
    Answer(&'static Query, usize, usize),
}

/// How long a list is.
#[derive(Clone, Copy)]
pub enum Count {
    /// Always so long.
    Fixed(usize),
    /// As long as this sibling says.
    Sibling(usize),
}

/// A struct.
pub struct Record {
    /// C's name of its type.
    pub name: &'static str,
    /// What its first member must say, if it is one that chains can have.
    pub stype: Option<u32>,
    /// Its size in bytes.
    pub size: usize,
    /// Its members, in order.
    pub members: &'static [Member],
}
/// A member of a struct.
pub struct Member {
    /// C's name of it.
    pub name: &'static str,
    /// How many bytes into the struct it is.
    pub at: usize,
    /// What it is.
    pub kind: Kind,
}
/// A member of a union.
pub struct Tag {
    /// What the tag says when this member is meant.
    pub value: u32,
    /// C's name of the member.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
}
/// What can be asked of an object.
pub struct Query {
    /// The answers, each by the number of its question.
    pub answers: &'static [Answer],
}
/// The answer to one question.
pub struct Answer {
    /// The number of the question.
    pub of: u32,
    /// C's name of the question.
    pub name: &'static str,
    /// As many values as there are, not one.
    pub many: bool,
    /// The size of a value in bytes.
    pub size: usize,
    /// What a value is.
    pub kind: Kind,
}
/// An entry of the API.
pub struct Call {
    /// C's name of it.
    pub name: &'static str,
    /// Its number.
    pub function: u32,
    /// Its parameters, in order.
    pub params: &'static [Parameter],
}
/// A parameter of a call.
pub struct Parameter {
    /// C's name of it.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
}

/// A member's name as C has it: what is a word of Rust is an identifier there only behind `r#`.
pub(super) const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}
