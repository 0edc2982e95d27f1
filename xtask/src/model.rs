//! The parsed specification, which is the input of every generator. Names are those of the specification;
//! `names.rs` derives the C and Rust names.

/// The whole of `spec/`, in the order in which C must declare it.
#[derive(Debug, Default)]
pub struct Spec {
    pub handles: Vec<Handle>,
    pub aliases: Vec<Alias>,
    pub constants: Vec<Constant>,
    pub enums: Vec<Enum>,
    pub records: Vec<Record>,
    pub callbacks: Vec<Callback>,
    /// In the order of `ur_dditable_t`.
    pub tables: Vec<Table>,
    /// Entries of the loader that are in no table.
    pub loader: Vec<Entry>,
}

#[derive(Debug)]
pub struct Handle {
    pub name: String,
    pub c: String,
    pub doc: String,
}
#[derive(Debug)]
pub struct Alias {
    pub name: String,
    pub c: String,
    pub of: Type,
    pub doc: String,
}
/// A string constant.
#[derive(Debug)]
pub struct Constant {
    pub c: String,
    pub value: String,
}
#[derive(Debug)]
pub struct Enum {
    pub name: String,
    /// `ur_x_t`; for flags the enumeration's name, `ur_x_flag_t`.
    pub c: String,
    pub kind: EnumKind,
    pub variants: Vec<Variant>,
    pub doc: String,
}
#[derive(Debug, PartialEq, Eq)]
pub enum EnumKind {
    Plain,
    Flags,
    /// The properties of an info entry.
    Query,
}
#[derive(Debug)]
pub struct Variant {
    pub name: String,
    pub c: String,
    /// As it is written: a number or a shift.
    pub value: String,
    pub number: u32,
    /// The type of the answer, for queries.
    pub answer: Option<Answer>,
    /// Whether an adapter may refuse to answer.
    pub optional: bool,
}
#[derive(Debug)]
pub enum Answer {
    One(Type),
    Many(Type),
}
/// A struct or a union.
#[derive(Debug)]
pub struct Record {
    pub name: String,
    pub c: String,
    pub union: bool,
    pub stype: Option<String>,
    pub fields: Vec<Field>,
    pub doc: String,
}
#[derive(Debug)]
pub struct Field {
    pub name: String,
    pub ty: Type,
    /// For an array, the member with its length.
    pub list: Option<String>,
}
/// The type of a callback function.
#[derive(Debug)]
pub struct Callback {
    pub name: String,
    pub c: String,
    pub params: Vec<Field>,
    pub returns: Option<Type>,
    pub doc: String,
}
#[derive(Debug)]
pub struct Table {
    /// `UsmExp`
    pub name: String,
    /// `ur_usm_exp_dditable_t`
    pub c: String,
    /// The member of `ur_dditable_t` in C's spelling: `USMExp`.
    pub member: String,
    pub entries: Vec<Entry>,
}
#[derive(Debug)]
pub struct Entry {
    /// `urEventWait`
    pub name: String,
    pub params: Vec<Param>,
    pub errors: Vec<Fault>,
    /// Whether it may wait for other commands or threads.
    pub blocks: bool,
    /// The command that it enqueues or records, if it is one. Two entries with the same word make the same
    /// command.
    pub command: Option<String>,
    pub doc: String,
}
/// A documented error.
#[derive(Debug)]
pub struct Fault {
    pub code: String,
    pub when: When,
    /// Whether the adapter detects it from the handles alone, before other arguments are checked.
    pub first: bool,
}
#[derive(Debug)]
pub enum When {
    /// A condition on the parameters alone, which a shim can check.
    Expr(Box<syn::Expr>),
    /// A condition in words, which the adapter checks.
    Words(String),
    Unsaid,
}
#[derive(Debug)]
pub struct Param {
    pub name: String,
    pub ty: Type,
    pub direction: Direction,
    pub optional: bool,
    /// A handle that is set to null when the call is refused.
    pub nulled: bool,
    pub role: Role,
    /// The part of the object that is accessed: its beginning and its length.
    pub bounds: Option<(String, String)>,
}
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Direction {
    In,
    Out,
    InOut,
}
/// The role of a parameter, beyond its type.
#[derive(Debug, PartialEq, Eq)]
pub enum Role {
    Plain,
    /// An array, with the parameter or number that gives its length.
    List(String),
    /// The events that a command waits for.
    WaitList(String),
    /// The pointer for an info query's answer: the parameters with the property and with the size.
    Answer {
        name: String,
        size: String,
    },
    /// The reference that a release entry removes.
    Released,
}
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// The name of a type: of the specification, or `u32`, `usize`, `c_void`, ….
    Name(String),
    Pointer {
        constant: bool,
        to: Box<Type>,
    },
    Array {
        of: Box<Type>,
        length: String,
    },
}
impl Type {
    /// Returns the name behind all pointers and arrays.
    pub fn base(&self) -> &str {
        match self {
            Type::Name(n) => n,
            Type::Pointer { to: t, .. } | Type::Array { of: t, .. } => t.base(),
        }
    }
    /// Returns the target type, if this is a pointer.
    pub fn pointee(&self) -> Option<&Type> {
        match self {
            Type::Pointer { to, .. } => Some(to),
            _ => None,
        }
    }
}

impl Spec {
    /// Returns all entries in order, those of tables first.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.tables.iter().flat_map(|t| &t.entries).chain(&self.loader)
    }
    pub fn is_handle(&self, name: &str) -> bool {
        self.handles.iter().any(|h| h.name == name)
    }
    /// Returns the enumeration called `name`, or the flags whose type is `name` (`QueueFlags`).
    pub fn enumeration(&self, name: &str) -> Option<&Enum> {
        self.enums.iter().find(|e| match e.kind {
            EnumKind::Flags => name.strip_suffix('s') == Some(&e.name),
            _ => e.name == name,
        })
    }
    pub fn record(&self, name: &str) -> Option<&Record> {
        self.records.iter().find(|r| r.name == name)
    }
    pub fn callback(&self, name: &str) -> Option<&Callback> {
        self.callbacks.iter().find(|c| c.name == name)
    }
}
