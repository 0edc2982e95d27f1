//! The types of the tables in this module: what a value is made of, and how it is read. The tables' contents
//! and the text output are elsewhere.

/// The type of a value in memory, which determines how it is read and printed.
#[derive(Clone, Copy)]
pub enum Kind {
    /// An unsigned byte.
    U8,
    /// A character.
    Char,
    /// An unsigned 32-bit integer.
    U32,
    /// A signed 32-bit integer.
    I32,
    /// An unsigned 64-bit integer.
    U64,
    /// A size, or a native handle.
    Usize,
    /// A 32-bit floating-point number.
    F32,
    /// A 64-bit floating-point number.
    F64,
    /// A boolean that is printed as a number.
    Bool,
    /// A boolean that is printed as a word.
    Truth,
    /// An enumeration, with its values and their names.
    Enum(&'static [(u32, &'static str)]),
    /// A version, which is two numbers in one.
    Version,
    /// A set of flags, with their bits and names.
    Flags(&'static [(u32, &'static str)]),
    /// A handle, a function, or a pointer to bytes of unknown type.
    Address,
    /// A pointer that is not followed and is printed as a number when it is null.
    Bare,
    /// A pointer to a string that ends with a NUL.
    Text,
    /// A pointer to the next struct of a chain, whose first member gives its type.
    Next,
    /// A struct.
    Record(&'static Record),
    /// A union: its name, the index of the sibling that selects the member, and the members.
    Union(&'static str, usize, &'static [Tag]),
    /// A pointer to one value.
    Pointer(&'static Kind),
    /// A pointer to `Count` values.
    List(&'static Kind, Count),
    /// An array of that many values.
    Array(&'static Kind, usize),
    /// The pointer to a query's answer: the query, and the indices of the siblings with the query's name and
    /// the answer's size.
    Answer(&'static Query, usize, usize),
}

/// The length of a list.
#[derive(Clone, Copy)]
pub enum Count {
    /// A fixed length.
    Fixed(usize),
    /// The value of the sibling with this index.
    Sibling(usize),
}

/// A struct.
pub struct Record {
    /// The C name of its type.
    pub name: &'static str,
    /// The `stype` in its first member, if it can be part of a chain.
    pub stype: Option<u32>,
    /// Its size in bytes.
    pub size: usize,
    /// Its members, in order.
    pub members: &'static [Member],
}
/// A member of a struct.
pub struct Member {
    /// The C name.
    pub name: &'static str,
    /// Its offset in bytes.
    pub at: usize,
    /// Its type.
    pub kind: Kind,
}
/// A member of a union.
pub struct Tag {
    /// The value of the tag that selects this member.
    pub value: u32,
    /// The C name of the member.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
}
/// A query of an object, such as `ur_device_info_t`.
pub struct Query {
    /// Its properties.
    pub answers: &'static [Answer],
}
/// A property of a query and the type of its value.
pub struct Answer {
    /// The value of the property's enumerator.
    pub of: u32,
    /// The C name of the enumerator.
    pub name: &'static str,
    /// Whether the answer is an array.
    pub many: bool,
    /// The size of a value in bytes.
    pub size: usize,
    /// The type of one value.
    pub kind: Kind,
}
/// An entry of the API.
pub struct Call {
    /// The C name.
    pub name: &'static str,
    /// Its number, as in `ur_function_t`.
    pub function: u32,
    /// Its parameters, in order.
    pub params: &'static [Parameter],
}
/// A parameter of a call.
pub struct Parameter {
    /// The C name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
}

/// Returns a member's C name: removes the `r#` that Rust requires before its keywords.
pub(super) const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}
