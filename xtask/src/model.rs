//! What the specification says, once parsed: the input of every emitter. Names are those of the
//! specification; `names.rs` makes C's and Rust's of them.

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
    /// Entries of the loader that no table has.
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
    /// `ur_x_t`; of a flag set the enumeration's name, `ur_x_flag_t`.
    pub c: String,
    pub kind: EnumKind,
    pub variants: Vec<Variant>,
    pub doc: String,
}
#[derive(Debug, PartialEq, Eq)]
pub enum EnumKind {
    Plain,
    Flags,
    /// The property names that an info entry can be asked.
    Query,
}
#[derive(Debug)]
pub struct Variant {
    pub name: String,
    pub c: String,
    /// As written: a number or a shift.
    pub value: String,
    pub number: u32,
    /// The type of the answer, for queries.
    pub answer: Option<Answer>,
    /// An adapter may refuse to answer.
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
    /// An array; the member that says how long it is.
    pub list: Option<String>,
}
/// The type of a function that C gives us.
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
    /// The member of `ur_dditable_t`, as C spells it: `USMExp`.
    pub member: String,
    pub entries: Vec<Entry>,
}
#[derive(Debug)]
pub struct Entry {
    /// `urEventWait`
    pub name: String,
    pub params: Vec<Param>,
    pub errors: Vec<Fault>,
    /// It may not come back before other commands or threads have done something.
    pub blocks: bool,
    /// What it enqueues or records, if that is a command by itself: two entries with one word here ask for the same.
    pub command: Option<String>,
    pub doc: String,
}
/// A documented error.
#[derive(Debug)]
pub struct Fault {
    pub code: String,
    pub when: When,
    /// The adapter finds it in the handles alone, before anything else is judged.
    pub first: bool,
}
#[derive(Debug)]
pub enum When {
    /// Of the parameters alone: a shim can check it.
    Expr(Box<syn::Expr>),
    /// In words: the adapter checks it.
    Words(String),
    Unsaid,
}
#[derive(Debug)]
pub struct Param {
    pub name: String,
    pub ty: Type,
    pub direction: Direction,
    pub optional: bool,
    /// A handle that is null after every refusal.
    pub nulled: bool,
    pub role: Role,
    /// The part of the object that is touched: where it begins, and how long it is.
    pub bounds: Option<(String, String)>,
}
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Direction {
    In,
    Out,
    InOut,
}
/// What a parameter is for, beyond its type.
#[derive(Debug, PartialEq, Eq)]
pub enum Role {
    Plain,
    /// An array; how long it is, in the words of another parameter or a number.
    List(String),
    /// The events a command waits for.
    WaitList(String),
    /// Where an info query's answer goes: the parameters that name it and bound it.
    Answer {
        name: String,
        size: String,
    },
    /// The reference that a release entry takes back.
    Released,
}
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// A name: of the specification, or `u32`, `usize`, `c_void`, ….
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
    /// The name at the end of all pointers and arrays.
    pub fn base(&self) -> &str {
        match self {
            Type::Name(n) => n,
            Type::Pointer { to: t, .. } | Type::Array { of: t, .. } => t.base(),
        }
    }
    /// What this points at, if it is a pointer.
    pub fn pointee(&self) -> Option<&Type> {
        match self {
            Type::Pointer { to, .. } => Some(to),
            _ => None,
        }
    }
}

impl Spec {
    /// All entries, tables first, in order.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.tables.iter().flat_map(|t| &t.entries).chain(&self.loader)
    }
    pub fn is_handle(&self, name: &str) -> bool {
        self.handles.iter().any(|h| h.name == name)
    }
    /// The enumeration called `name`, or the flag set whose type is `name` (`QueueFlags`).
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
