//! The specification of every entry, parsed from the files of `spec/`, which are built into this program:
//! parameters, documented errors, queries, layouts. `rules/` generates cases from it.
use std::{collections::HashMap, sync::OnceLock};
use syn::{Attribute, Expr, Item, Lit, Meta, Token, punctuated::Punctuated};

macro_rules! files {
    ($($name:literal)*) => { &[$(($name, include_str!(concat!("../../../spec/", $name, ".rs")))),*] };
}
const FILES: &[(&str, &str)] = files! {
    "adapter" "common" "context" "device" "enqueue" "event" "exp_async_alloc" "exp_bindless_images"
    "exp_command_buffer" "exp_device" "exp_enqueue" "exp_event" "exp_graph" "exp_ipc"
    "exp_memory_export" "exp_program" "exp_usm" "exp_usm_p2p" "kernel" "loader" "mem"
    "platform" "program" "queue" "sampler" "usm" "virtual_mem"
};

/// The whole specification.
#[derive(Debug, Default)]
pub struct Spec {
    /// In the order of `ur_dditable_t`.
    pub tables: Vec<Table>,
    pub handles: Vec<String>,
    pub enums: HashMap<String, Enum>,
    pub records: HashMap<String, Record>,
    pub callbacks: Vec<String>,
    pub constants: HashMap<String, u64>,
}
/// A table of entries, in the order of its slots.
#[derive(Debug)]
pub struct Table {
    /// `UsmExp`
    pub name: String,
    /// The name in the getter: `USMExp`.
    pub member: String,
    pub entries: Vec<Entry>,
}
#[derive(Debug)]
pub struct Entry {
    /// `urEventWait`
    pub name: String,
    pub params: Vec<Param>,
    pub errors: Vec<Fault>,
}
#[derive(Debug, Clone)]
pub struct Param {
    pub name: String,
    pub ty: Type,
    /// Written by the entry.
    pub out: bool,
    pub inout: bool,
    pub optional: bool,
    /// The parameter with the list's length.
    pub list: Option<String>,
    pub wait_list: Option<String>,
    /// The parameters with the query's property and with the size of the answer, for the pointer to an
    /// answer.
    pub answer: Option<(String, String)>,
    pub released: bool,
    /// A handle that is set to null when the call is refused.
    pub nulled: bool,
}
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    Name(String),
    Pointer(Box<Type>),
    Array(Box<Type>, usize),
}
#[derive(Debug)]
pub struct Fault {
    /// `InvalidSize`
    pub code: String,
    pub when: When,
}
#[derive(Debug)]
pub enum When {
    /// A condition on the parameters alone.
    Holds(Condition),
    Words(String),
    Unsaid,
}
/// An expression over parameters.
#[derive(Debug, Clone)]
pub enum Condition {
    /// A parameter or constant, optionally with the name of a member behind it, or the index of an element.
    Name(String, Option<String>),
    Number(u64),
    Not(Box<Condition>),
    Both(Box<Condition>, &'static str, Box<Condition>),
}
#[derive(Debug)]
pub struct Enum {
    pub flags: bool,
    /// The object of the query, for enumerations of properties.
    pub query: Option<String>,
    pub variants: Vec<Variant>,
}
#[derive(Debug)]
pub struct Variant {
    /// The C name.
    pub c: String,
    pub value: u32,
    pub answer: Option<Answer>,
    pub optional: bool,
}
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    One(Type),
    Many(Type),
}
/// A struct or a union.
#[derive(Debug)]
pub struct Record {
    pub union: bool,
    pub stype: Option<String>,
    pub fields: Vec<(String, Type)>,
}

impl Spec {
    /// Returns the specification, which is parsed once.
    pub fn get() -> &'static Self {
        static SPEC: OnceLock<Spec> = OnceLock::new();
        SPEC.get_or_init(|| read().expect("the specification is valid: a test parses it"))
    }
    /// Returns the enumeration or the flags of the type `name` (`QueueFlags`).
    pub fn enumeration(&self, name: &str) -> Option<&Enum> {
        let flags = name.strip_suffix('s').and_then(|one| self.enums.get(one)).filter(|e| e.flags);
        self.enums.get(name).filter(|e| !e.flags).or(flags)
    }
    pub fn is_handle(&self, ty: &Type) -> bool {
        matches!(ty, Type::Name(name) if self.handles.contains(name))
    }
    /// Returns an entry, with the indices of its table and slot.
    pub fn entry(&self, name: &str) -> Option<(usize, usize, &Entry)> {
        self.tables.iter().enumerate().find_map(|(table, t)| {
            let slot = t.entries.iter().position(|entry| entry.name == name)?;
            Some((table, slot, &t.entries[slot]))
        })
    }
    /// The size and alignment in C.
    pub fn layout(&self, ty: &Type) -> (usize, usize) {
        match ty {
            Type::Pointer(_) => (8, 8),
            Type::Array(of, n) => {
                let (size, align) = self.layout(of);
                (size * n, align)
            }
            Type::Name(name) => match name.as_str() {
                "bool" | "Bool" | "u8" | "c_char" | "c_void" => (1, 1),
                "u32" | "i32" | "f32" => (4, 4),
                name if self.enumeration(name).is_some() => (4, 4),
                name => match self.records.get(name) {
                    Some(record) => self.record_layout(record),
                    None if name == "ExpCommandBufferSyncPoint" => (4, 4),
                    None => (8, 8),
                },
            },
        }
    }
    fn record_layout(&self, record: &Record) -> (usize, usize) {
        let (mut size, mut widest) = (0_usize, 1);
        for (_, ty) in &record.fields {
            let (bytes, align) = self.layout(ty);
            widest = widest.max(align);
            size =
                if record.union { size.max(bytes) } else { size.next_multiple_of(align) + bytes };
        }
        (size.next_multiple_of(widest), widest)
    }
    /// The offset and the size of a struct's member.
    pub fn member(&self, record: &str, name: &str) -> Option<(usize, usize)> {
        let mut at = 0_usize;
        for (field, ty) in &self.records.get(record)?.fields {
            let (bytes, align) = self.layout(ty);
            at = at.next_multiple_of(align);
            if field == name {
                return Some((at, bytes));
            }
            at += bytes;
        }
        None
    }
}

type Result<T> = std::result::Result<T, String>;

fn read() -> Result<Spec> {
    let mut spec = Spec::default();
    let (mut tables, mut order) = (HashMap::new(), Vec::new());
    for (name, text) in FILES {
        let file = syn::parse_file(text).map_err(|e| format!("spec/{name}.rs: {e}"))?;
        for item in file.items {
            one(&mut spec, &mut tables, &mut order, item)
                .map_err(|e| format!("spec/{name}.rs: {e}"))?;
        }
    }
    for name in order {
        spec.tables.push(tables.remove(&name).ok_or(format!("no table {name}"))?);
    }
    for one in spec.enums.values() {
        spec.constants.extend(one.variants.iter().map(|v| (v.c.clone(), u64::from(v.value))));
    }
    Ok(spec)
}
fn one(
    spec: &mut Spec,
    tables: &mut HashMap<String, Table>,
    order: &mut Vec<String>,
    item: Item,
) -> Result<()> {
    match item {
        Item::Struct(s) if has(&s.attrs, "handle") => spec.handles.push(s.ident.to_string()),
        Item::Struct(s) => {
            let record = record(&s.attrs, false, s.fields.iter())?;
            spec.records.insert(s.ident.to_string(), record);
        }
        Item::Union(u) => {
            let record = record(&u.attrs, true, u.fields.named.iter())?;
            spec.records.insert(u.ident.to_string(), record);
        }
        Item::Enum(e) => {
            spec.enums.insert(e.ident.to_string(), enumeration(&e)?);
        }
        Item::Type(t) if has(&t.attrs, "callback") => spec.callbacks.push(t.ident.to_string()),
        Item::ForeignMod(block) if !has(&block.attrs, "loader") => {
            let args = list(attr(&block.attrs, "table").ok_or("a block without a table")?)?;
            let name = tokens(args.first().ok_or("a table without a name")?);
            let member = string(args.get(1).ok_or("a table without a member")?)?;
            let entries = block.items.iter().map(entry).collect::<Result<_>>()?;
            tables.insert(name.clone(), Table { name, member, entries });
        }
        Item::Macro(m) if m.mac.path.is_ident("tables") => {
            let names =
                m.mac.parse_body_with(Punctuated::<syn::Ident, Token![,]>::parse_terminated);
            order.extend(names.map_err(|e| e.to_string())?.iter().map(ToString::to_string));
        }
        _ => {}
    }
    Ok(())
}
fn record<'a>(
    attrs: &[Attribute],
    union: bool,
    fields: impl Iterator<Item = &'a syn::Field>,
) -> Result<Record> {
    let fields = fields.map(|f| {
        let name = f.ident.as_ref().ok_or("a field without a name")?.to_string();
        Ok((name.trim_start_matches("r#").to_owned(), ty(&f.ty)?))
    });
    Ok(Record { union, stype: value(attrs, "stype")?, fields: fields.collect::<Result<_>>()? })
}
fn enumeration(e: &syn::ItemEnum) -> Result<Enum> {
    let plain = format!("ur_{}_t", snake(&e.ident.to_string()));
    let c = value(&e.attrs, "c")?.unwrap_or(plain);
    let prefix = c.trim_end_matches("_t").to_ascii_uppercase();
    let query = attr(&e.attrs, "query").map(list).transpose()?;
    let variants = e.variants.iter().map(|v| variant(v, &prefix)).collect::<Result<_>>()?;
    let query = query.and_then(|args| args.first().map(tokens));
    Ok(Enum { flags: has(&e.attrs, "flags"), query, variants })
}
fn variant(v: &syn::Variant, prefix: &str) -> Result<Variant> {
    let name = v.ident.to_string();
    let upper = snake(name.trim_start_matches('_')).to_ascii_uppercase();
    let c = value(&v.attrs, "c")?.unwrap_or(format!("{prefix}_{upper}"));
    let (_, number) = v.discriminant.as_ref().ok_or(format!("{name} has no value"))?;
    let number = constant(number).ok_or(format!("{name} is no number"))?;
    let answer = match v.fields.iter().next().map(|f| &f.ty) {
        None => None,
        Some(syn::Type::Slice(many)) => Some(Answer::Many(ty(&many.elem)?)),
        Some(one) => Some(Answer::One(ty(one)?)),
    };
    let value = u32::try_from(number).map_err(|e| format!("{name}: {e}"))?;
    Ok(Variant { c, value, answer, optional: has(&v.attrs, "optional") })
}
/// Evaluates numbers, shifts and bitwise ors, which are all that values are written with.
fn constant(e: &Expr) -> Option<u64> {
    match e {
        Expr::Lit(l) => match &l.lit {
            Lit::Int(i) => i.base10_parse().ok(),
            _ => None,
        },
        Expr::Binary(b) => {
            let (l, r) = (constant(&b.left)?, constant(&b.right)?);
            match b.op {
                syn::BinOp::Shl(_) => l.checked_shl(u32::try_from(r).ok()?),
                syn::BinOp::BitOr(_) => Some(l | r),
                _ => None,
            }
        }
        _ => None,
    }
}
fn entry(item: &syn::ForeignItem) -> Result<Entry> {
    let syn::ForeignItem::Fn(f) = item else { return Err("not a function".into()) };
    let mut errors = Vec::new();
    for attr in &f.attrs {
        if attr.path().is_ident("errors") {
            let codes = list(attr)?;
            errors.extend(codes.iter().map(|e| Fault { code: tokens(e), when: When::Unsaid }));
        } else if attr.path().is_ident("error") {
            let args = list(attr)?;
            let when = match args.get(1) {
                Some(words @ Expr::Lit(_)) => When::Words(string(words)?),
                Some(expr) => {
                    let name = &f.sig.ident;
                    let condition = condition(expr);
                    When::Holds(condition.ok_or_else(|| format!("{name}: a strange condition"))?)
                }
                None => When::Unsaid,
            };
            errors.push(Fault { code: tokens(&args[0]), when });
        }
    }
    let params = f.sig.inputs.iter().map(param).collect::<Result<_>>()?;
    Ok(Entry { name: f.sig.ident.to_string(), params, errors })
}
fn condition(e: &Expr) -> Option<Condition> {
    Some(match e {
        Expr::Paren(p) => condition(&p.expr)?,
        Expr::Lit(_) => Condition::Number(constant(e)?),
        Expr::Unary(u) => Condition::Not(Box::new(condition(&u.expr)?)),
        Expr::Path(p) => Condition::Name(p.path.get_ident()?.to_string(), None),
        Expr::Field(f) => {
            let Condition::Name(name, None) = condition(&f.base)? else { return None };
            let syn::Member::Named(member) = &f.member else { return None };
            let member = member.to_string().trim_start_matches("r#").to_owned();
            Condition::Name(name, Some(member))
        }
        // An element is a member whose name is its index.
        Expr::Index(i) => {
            let Condition::Name(name, None) = condition(&i.expr)? else { return None };
            Condition::Name(name, Some(constant(&i.index)?.to_string()))
        }
        Expr::Binary(b) => {
            let (left, right) = (condition(&b.left)?, condition(&b.right)?);
            Condition::Both(Box::new(left), operator(&b.op)?, Box::new(right))
        }
        _ => return None,
    })
}
fn operator(op: &syn::BinOp) -> Option<&'static str> {
    use syn::BinOp as Op;
    Some(match op {
        Op::And(_) => "&&",
        Op::Or(_) => "||",
        Op::Eq(_) => "==",
        Op::Ne(_) => "!=",
        Op::Lt(_) => "<",
        Op::Gt(_) => ">",
        Op::Le(_) => "<=",
        Op::Ge(_) => ">=",
        Op::Rem(_) => "%",
        Op::BitAnd(_) => "&",
        Op::BitOr(_) => "|",
        Op::Sub(_) => "-",
        Op::Add(_) => "+",
        Op::Mul(_) => "*",
        _ => return None,
    })
}
fn param(arg: &syn::FnArg) -> Result<Param> {
    let syn::FnArg::Typed(p) = arg else { return Err("self".into()) };
    let syn::Pat::Ident(name) = &*p.pat else { return Err("a pattern".into()) };
    let words = |name| -> Result<Option<Vec<String>>> {
        let Some(attr) = attr(&p.attrs, name) else { return Ok(None) };
        Ok(Some(list(attr)?.iter().map(tokens).collect()))
    };
    let answer = words("answer")?.map(|mut words| {
        let size = words.pop().unwrap_or_default();
        (words.pop().unwrap_or(size.clone()), size)
    });
    Ok(Param {
        name: name.ident.to_string(),
        ty: ty(&p.ty)?,
        out: has(&p.attrs, "out"),
        inout: has(&p.attrs, "inout"),
        optional: has(&p.attrs, "optional"),
        list: words("list")?.map(|words| words.concat()),
        wait_list: words("wait_list")?.map(|words| words.concat()),
        answer,
        released: has(&p.attrs, "released"),
        nulled: has(&p.attrs, "nulled"),
    })
}
fn ty(t: &syn::Type) -> Result<Type> {
    Ok(match t {
        syn::Type::Path(p) => {
            Type::Name(p.path.require_ident().map_err(|e| e.to_string())?.to_string())
        }
        syn::Type::Ptr(p) => Type::Pointer(Box::new(ty(&p.elem)?)),
        syn::Type::Array(a) => {
            let n = constant(&a.len).ok_or("an array without a length")?;
            Type::Array(Box::new(ty(&a.elem)?), usize::try_from(n).map_err(|e| e.to_string())?)
        }
        _ => return Err("a type that is not known".into()),
    })
}
fn list(attr: &Attribute) -> Result<Punctuated<Expr, Token![,]>> {
    attr.parse_args_with(Punctuated::parse_terminated).map_err(|e| e.to_string())
}
/// A name or a number, as it is written.
fn tokens(e: &Expr) -> String {
    match e {
        Expr::Path(p) => p.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default(),
        Expr::Lit(l) => match &l.lit {
            Lit::Int(i) => i.base10_digits().to_owned(),
            Lit::Str(s) => s.value(),
            _ => String::new(),
        },
        Expr::Field(f) => match &f.member {
            syn::Member::Named(member) => format!("{}.{member}", tokens(&f.base)),
            syn::Member::Unnamed(_) => String::new(),
        },
        _ => String::new(),
    }
}
fn attr<'a>(attrs: &'a [Attribute], name: &str) -> Option<&'a Attribute> {
    attrs.iter().find(|a| a.path().is_ident(name))
}
fn has(attrs: &[Attribute], name: &str) -> bool {
    attr(attrs, name).is_some()
}
fn value(attrs: &[Attribute], name: &str) -> Result<Option<String>> {
    match attr(attrs, name).map(|a| &a.meta) {
        Some(Meta::NameValue(nv)) => string(&nv.value).map(Some),
        _ => Ok(None),
    }
}
fn string(e: &Expr) -> Result<String> {
    match e {
        Expr::Lit(syn::ExprLit { lit: Lit::Str(s), .. }) => Ok(s.value()),
        _ => Err("a string was expected".into()),
    }
}
/// `EventStatus` → `event_status`
pub fn snake(camel: &str) -> String {
    let mut out = String::new();
    let mut before = '_';
    for c in camel.chars() {
        if c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()) {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
        before = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specification_has_26_tables_with_241_entries() {
        let spec = Spec::get();
        assert_eq!(spec.tables.len(), 26);
        assert_eq!(spec.tables.iter().map(|t| t.entries.len()).sum::<usize>(), 241);
    }
    #[test]
    fn layouts_are_those_of_c() {
        use ur_sys::*;
        let spec = Spec::get();
        let size = |name: &str| spec.layout(&Type::Name(name.into())).0;
        assert_eq!(size("ImageDesc"), size_of::<ur_image_desc_t>());
        assert_eq!(size("SamplerDesc"), size_of::<ur_sampler_desc_t>());
        assert_eq!(size("UsmPoolLimitsDesc"), size_of::<ur_usm_pool_limits_desc_t>());
        assert_eq!(size("ExpKernelArgProperties"), size_of::<ur_exp_kernel_arg_properties_t>());
        assert_eq!(size("DevicePartitionProperty"), size_of::<ur_device_partition_property_t>());
        assert_eq!(
            size("ExpCommandBufferUpdateKernelLaunchDesc"),
            size_of::<ur_exp_command_buffer_update_kernel_launch_desc_t>()
        );
        let align = spec.member("UsmDesc", "align");
        assert_eq!(align, Some((std::mem::offset_of!(ur_usm_desc_t, align), 4)));
        let numeric = spec.constants["UR_RESULT_ERROR_INVALID_VALUE"];
        assert_eq!(numeric, u64::from(ur_result_t::ERROR_INVALID_VALUE.0));
    }
}
