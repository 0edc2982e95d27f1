//! Parses `spec/*.rs` into the model. A mistake in the specification is an error that names the file.
use crate::{
    model::{
        Alias, Answer, Callback, Constant, Direction, Entry, Enum, EnumKind, Fault, Field, Handle,
        Param, Record, Role, Spec, Table, Type, Variant, When,
    },
    names,
};
use std::{collections::HashMap, fs, path::Path};
use syn::{Attribute, Expr, Item, Lit, Meta, punctuated::Punctuated, visit::Visit};

type Result<T> = std::result::Result<T, String>;

/// Parses every file of `dir`, in the order of their names.
pub fn spec(dir: &Path) -> Result<Spec> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .map_err(|e| format!("{}: {e}", dir.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
        .collect();
    files.sort();
    let mut spec = Spec::default();
    let (mut tables, mut order) = (HashMap::new(), Vec::new());
    for path in files {
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let file = syn::parse_file(&text)
            .map_err(|e| format!("{}:{}: {e}", path.display(), e.span().start().line))?;
        let mut strangers = Strangers::default();
        strangers.visit_file(&file);
        if let Some(name) = strangers.0.first() {
            return Err(format!("{}: no attribute is called #[{name}]", path.display()));
        }
        for item in file.items {
            one(&mut spec, &mut tables, &mut order, item)
                .map_err(|e| format!("{}: {e}", path.display()))?;
        }
    }
    for name in order {
        let table = tables.remove(&name).ok_or(format!("table {name} has no entries"))?;
        spec.tables.push(table);
    }
    match tables.into_keys().next() {
        Some(stray) => Err(format!("table {stray} is not listed in tables!")),
        None => Ok(spec),
    }
}

/// The attributes of the specification; others are errors, so that a misspelt one is not ignored.
const ATTRIBUTES: &[&str] = &[
    "answer",
    "blocks",
    "bounds",
    "c",
    "callback",
    "command",
    "doc",
    "error",
    "errors",
    "flags",
    "handle",
    "inout",
    "list",
    "loader",
    "nulled",
    "optional",
    "out",
    "query",
    "released",
    "repr",
    "stype",
    "table",
    "tagged_by",
    "wait_list",
];
#[derive(Default)]
struct Strangers(Vec<String>);
impl<'ast> Visit<'ast> for Strangers {
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let path = attribute.path();
        if !ATTRIBUTES.iter().any(|name| path.is_ident(name)) {
            self.0.push(quote::quote!(#path).to_string());
        }
    }
}

fn one(
    spec: &mut Spec,
    tables: &mut HashMap<String, Table>,
    order: &mut Vec<String>,
    item: Item,
) -> Result<()> {
    match item {
        Item::Struct(s) if has(&s.attrs, "handle") => {
            let name = s.ident.to_string();
            let c = c_name(&s.attrs, format!("ur_{}_handle_t", names::snake(&name)))?;
            spec.handles.push(Handle { name, c, doc: doc(&s.attrs) });
        }
        Item::Struct(s) => {
            let fields = s.fields.iter().map(field).collect::<Result<_>>()?;
            spec.records.push(record(s.ident.to_string(), &s.attrs, false, fields)?);
        }
        Item::Union(u) => {
            let fields = u.fields.named.iter().map(field).collect::<Result<_>>()?;
            spec.records.push(record(u.ident.to_string(), &u.attrs, true, fields)?);
        }
        Item::Enum(e) => spec.enums.push(enumeration(e)?),
        Item::Type(t) if has(&t.attrs, "callback") => spec.callbacks.push(callback(t)?),
        Item::Type(t) => {
            let name = t.ident.to_string();
            let c = c_name(&t.attrs, format!("ur_{}_t", names::snake(&name)))?;
            spec.aliases.push(Alias { name, c, of: ty(&t.ty)?, doc: doc(&t.attrs) });
        }
        Item::Const(k) => {
            let value = string(&k.expr)?;
            spec.constants.push(Constant { c: k.ident.to_string(), value });
        }
        Item::ForeignMod(block) => {
            let entries = block.items.into_iter().map(entry).collect::<Result<Vec<_>>>()?;
            if has(&block.attrs, "loader") {
                spec.loader.extend(entries);
            } else {
                let table = table(&block.attrs, entries)?;
                tables.insert(table.name.clone(), table);
            }
        }
        Item::Macro(m) if m.mac.path.is_ident("tables") => {
            let list =
                m.mac.parse_body_with(Punctuated::<syn::Ident, syn::Token![,]>::parse_terminated);
            order.extend(list.map_err(|e| e.to_string())?.iter().map(ToString::to_string));
        }
        _ => return Err("an item the generator does not know".into()),
    }
    Ok(())
}

fn record(name: String, attrs: &[Attribute], union: bool, fields: Vec<Field>) -> Result<Record> {
    let c = c_name(attrs, format!("ur_{}_t", names::snake(&name)))?;
    let stype = attr_string(attrs, "stype")?;
    Ok(Record { name, c, union, stype, fields, doc: doc(attrs) })
}
fn field(f: &syn::Field) -> Result<Field> {
    let name = f.ident.as_ref().ok_or("a field without a name")?.to_string();
    let list = f.attrs.iter().find(|a| a.path().is_ident("list"));
    let list = list.map(|a| a.parse_args::<syn::Ident>().map(|n| n.to_string())).transpose();
    let list = list.map_err(|e| format!("{name}: {e}"))?;
    Ok(Field { name: name.trim_start_matches("r#").into(), ty: ty(&f.ty)?, list })
}
fn enumeration(e: syn::ItemEnum) -> Result<Enum> {
    let name = e.ident.to_string();
    let c = c_name(&e.attrs, format!("ur_{}_t", names::snake(&name)))?;
    let kind = match () {
        () if has(&e.attrs, "flags") => EnumKind::Flags,
        () if has(&e.attrs, "query") => EnumKind::Query,
        () => EnumKind::Plain,
    };
    let prefix = c.trim_end_matches("_t").to_ascii_uppercase();
    let variants = e.variants.iter().map(|v| variant(v, &prefix)).collect::<Result<_>>()?;
    Ok(Enum { name, c, kind, variants, doc: doc(&e.attrs) })
}
fn variant(v: &syn::Variant, prefix: &str) -> Result<Variant> {
    let name = v.ident.to_string();
    let upper = names::snake(name.trim_start_matches('_')).to_ascii_uppercase();
    let c = c_name(&v.attrs, format!("{prefix}_{upper}"))?;
    let (_, value) = v.discriminant.as_ref().ok_or(format!("{name} has no value"))?;
    let answer = match v.fields.iter().next().map(|f| &f.ty) {
        None => None,
        Some(syn::Type::Slice(many)) => Some(Answer::Many(ty(&many.elem)?)),
        Some(one) => Some(Answer::One(ty(one)?)),
    };
    let number = number(value).ok_or(format!("{name}: not a number"))?;
    let value = quote::quote!(#value).to_string();
    Ok(Variant { name, c, value, number, answer, optional: has(&v.attrs, "optional") })
}
/// Evaluates numbers, shifts and bitwise ors, which are all that values are written with.
fn number(e: &Expr) -> Option<u32> {
    match e {
        Expr::Lit(l) => match &l.lit {
            Lit::Int(i) => i.base10_parse().ok(),
            _ => None,
        },
        Expr::Binary(b) => {
            let (l, r) = (number(&b.left)?, number(&b.right)?);
            match b.op {
                syn::BinOp::Shl(_) => l.checked_shl(r),
                syn::BinOp::BitOr(_) => Some(l | r),
                _ => None,
            }
        }
        _ => None,
    }
}
fn callback(t: syn::ItemType) -> Result<Callback> {
    let name = t.ident.to_string();
    let c = c_name(&t.attrs, format!("ur_{}_t", names::snake(&name)))?;
    let syn::Type::BareFn(f) = &*t.ty else { return Err(format!("{name} is not a function")) };
    let params = f.inputs.iter().map(|p| {
        let (name, _) = p.name.as_ref().ok_or("a parameter without a name")?;
        Ok(Field { name: name.to_string(), ty: ty(&p.ty)?, list: None })
    });
    let returns = match &f.output {
        syn::ReturnType::Default => None,
        syn::ReturnType::Type(_, t) => Some(ty(t)?),
    };
    Ok(Callback { name, c, params: params.collect::<Result<_>>()?, returns, doc: doc(&t.attrs) })
}
fn table(attrs: &[Attribute], entries: Vec<Entry>) -> Result<Table> {
    let attr =
        attrs.iter().find(|a| a.path().is_ident("table")).ok_or("a block without a table")?;
    let args = attr
        .parse_args_with(Punctuated::<Expr, syn::Token![,]>::parse_terminated)
        .map_err(|e| e.to_string())?;
    let (Some(Expr::Path(name)), Some(member)) = (args.first(), args.get(1)) else {
        return Err("#[table(Name, \"Member\")]".into());
    };
    let name = name.path.require_ident().map_err(|e| e.to_string())?.to_string();
    let c = c_name(attrs, format!("ur_{}_dditable_t", names::snake(&name)))?;
    Ok(Table { name, c, member: string(member)?, entries })
}
fn entry(item: syn::ForeignItem) -> Result<Entry> {
    let syn::ForeignItem::Fn(f) = item else { return Err("not a function".into()) };
    let name = f.sig.ident.to_string();
    let of = |e: String| format!("{name}: {e}");
    let params = f.sig.inputs.iter().map(param).collect::<Result<_>>().map_err(of)?;
    let mut errors = Vec::new();
    for attr in &f.attrs {
        let listed = attr.path().is_ident("errors");
        if !listed && !attr.path().is_ident("error") {
            continue;
        }
        let args = attr
            .parse_args_with(Punctuated::<Expr, syn::Token![,]>::parse_terminated)
            .map_err(|e| of(e.to_string()))?;
        let code = |e: &Expr| quote::quote!(#e).to_string();
        if listed {
            errors.extend(args.iter().map(|e| Fault {
                code: code(e),
                when: When::Unsaid,
                first: false,
            }));
            continue;
        }
        let when = match args.get(1) {
            Some(Expr::Lit(_)) => When::Words(string(&args[1]).map_err(of)?),
            Some(expr) => When::Expr(Box::new(expr.clone())),
            None => When::Unsaid,
        };
        let first = match args.get(2) {
            None => false,
            Some(Expr::Path(word)) if word.path.is_ident("first") => true,
            Some(_) => {
                return Err(of("behind the reason of an error only `first` may stand".into()));
            }
        };
        errors.push(Fault { code: code(&args[0]), when, first });
    }
    let command = f.attrs.iter().find(|a| a.path().is_ident("command"));
    let command = command.map(|a| a.parse_args::<syn::Ident>().map(|word| word.to_string()));
    let command = command.transpose().map_err(|e| of(e.to_string()))?;
    Ok(Entry { params, errors, blocks: has(&f.attrs, "blocks"), command, doc: doc(&f.attrs), name })
}
fn param(arg: &syn::FnArg) -> Result<Param> {
    let syn::FnArg::Typed(p) = arg else { return Err("self".into()) };
    let syn::Pat::Ident(ident) = &*p.pat else { return Err("a pattern".into()) };
    let direction = match () {
        () if has(&p.attrs, "inout") => Direction::InOut,
        () if has(&p.attrs, "out") => Direction::Out,
        () => Direction::In,
    };
    let words = |name| -> Option<Vec<String>> {
        let attr = p.attrs.iter().find(|a| a.path().is_ident(name))?;
        let args = attr.parse_args_with(Punctuated::<Expr, syn::Token![,]>::parse_terminated);
        Some(args.ok()?.iter().map(|e| quote::quote!(#e).to_string()).collect())
    };
    let role = match () {
        () if has(&p.attrs, "released") => Role::Released,
        () => match (words("list"), words("wait_list"), words("answer")) {
            (Some(n), ..) => Role::List(n.concat()),
            (_, Some(n), _) => Role::WaitList(n.concat()),
            (.., Some(a)) if a.len() == 2 => {
                Role::Answer { name: a[0].clone(), size: a[1].clone() }
            }
            _ => Role::Plain,
        },
    };
    let bounds = match words("bounds") {
        Some(b) if b.len() == 2 => Some((b[0].clone(), b[1].clone())),
        Some(_) => return Err(format!("{}: bounds are an offset and a size", ident.ident)),
        None => None,
    };
    let (optional, nulled) = (has(&p.attrs, "optional"), has(&p.attrs, "nulled"));
    let (name, ty) = (ident.ident.to_string(), ty(&p.ty)?);
    Ok(Param { name, ty, direction, optional, nulled, role, bounds })
}
fn ty(t: &syn::Type) -> Result<Type> {
    Ok(match t {
        syn::Type::Path(p) => {
            Type::Name(p.path.require_ident().map_err(|e| e.to_string())?.to_string())
        }
        syn::Type::Ptr(p) => {
            Type::Pointer { constant: p.mutability.is_none(), to: Box::new(ty(&p.elem)?) }
        }
        syn::Type::Array(a) => {
            let length = &a.len;
            Type::Array { of: Box::new(ty(&a.elem)?), length: quote::quote!(#length).to_string() }
        }
        _ => return Err("a type the generator does not know".into()),
    })
}

fn has(attrs: &[Attribute], name: &str) -> bool {
    attrs.iter().any(|a| a.path().is_ident(name))
}
fn attr_value<'a>(attrs: &'a [Attribute], name: &str) -> Option<&'a Expr> {
    attrs.iter().find_map(|a| match &a.meta {
        Meta::NameValue(nv) if nv.path.is_ident(name) => Some(&nv.value),
        _ => None,
    })
}
fn attr_string(attrs: &[Attribute], name: &str) -> Result<Option<String>> {
    attr_value(attrs, name).map(string).transpose()
}
fn c_name(attrs: &[Attribute], derived: String) -> Result<String> {
    Ok(attr_string(attrs, "c")?.unwrap_or(derived))
}
fn string(e: &Expr) -> Result<String> {
    match e {
        Expr::Lit(syn::ExprLit { lit: Lit::Str(s), .. }) => Ok(s.value()),
        _ => Err("a string was expected".into()),
    }
}
/// Returns the doc comment with its line breaks.
fn doc(attrs: &[Attribute]) -> String {
    let lines = attrs.iter().filter_map(|a| match &a.meta {
        Meta::NameValue(nv) if nv.path.is_ident("doc") => string(&nv.value).ok(),
        _ => None,
    });
    lines.map(|l| l.trim().to_string()).collect::<Vec<_>>().join("\n")
}
