//! Documented errors that a shim can detect itself: translates an expression over the parameters into a
//! condition in Rust, or to nothing if it needs more than the C arguments.
use super::flags_type;
use crate::{
    emit::c_name,
    model::{Direction, Entry, EnumKind, Fault, Role, Spec, When},
    names,
};
use syn::{BinOp, Expr};

/// Returns the condition under which `fault` occurs, in terms of the shim's variables.
pub fn condition(spec: &Spec, entry: &Entry, fault: &Fault) -> Option<String> {
    let When::Expr(expr) = &fault.when else { return None };
    let of_answers = fault.code == "InvalidValue";
    Translate { spec, entry, there: Vec::new(), of_answers }.boolean(expr)
}

/// Returns the condition on the elements of a list of structs under which `fault` occurs, if it is that a
/// member is null.
pub fn of_elements(spec: &Spec, entry: &Entry, fault: &Fault) -> Option<String> {
    let When::Expr(expr) = &fault.when else { return None };
    let Expr::Binary(equality) = bare(expr) else { return None };
    let named = if is_null(&equality.left) { &equality.right } else { &equality.left };
    let is_null = is_null(&equality.left) || is_null(&equality.right);
    let (Expr::Field(field), BinOp::Eq(_), true) = (&**named, equality.op, is_null) else {
        return None;
    };
    let (Expr::Path(list), syn::Member::Named(member)) = (&*field.base, &field.member) else {
        return None;
    };
    let (list, member) = (list.path.get_ident()?.to_string(), member.to_string());
    let param = entry.params.iter().find(|p| p.name == list && matches!(p.role, Role::List(_)))?;
    let record = spec.record(param.ty.base())?;
    let member = record.fields.iter().find(|f| f.name == member)?;
    let member = names::escape(&member.name);
    let list = names::escape(&list);
    (!param.optional).then(|| format!("{list}.iter().any(|one| one.{member}.is_null())"))
}

struct Translate<'s> {
    spec: &'s Spec,
    entry: &'s Entry,
    /// Optional structs that are known to be present in this part of the condition.
    there: Vec<String>,
    /// The rules for answers give `INVALID_SIZE` and `INVALID_NULL_POINTER`; if an entry documents another
    /// code, its condition is translated, too.
    of_answers: bool,
}
impl<'s> Translate<'s> {
    fn boolean(&self, e: &Expr) -> Option<String> {
        match e {
            Expr::Paren(p) => Some(format!("({})", self.boolean(&p.expr)?)),
            Expr::Binary(b) => match b.op {
                BinOp::And(_) => {
                    let mut all = Vec::new();
                    operands(e, &mut all);
                    self.all(&all)
                }
                BinOp::Or(_) => {
                    Some(format!("{} || {}", self.boolean(&b.left)?, self.boolean(&b.right)?))
                }
                BinOp::BitAnd(_) => {
                    let (l, r) = (self.value(bare(&b.left))?, self.value(bare(&b.right))?);
                    let flag = |s: &str| s.contains("flags_t::");
                    match (flag(&l), flag(&r)) {
                        (_, true) => Some(format!("{l}.intersects({r})")),
                        (true, false) => Some(format!("{r}.intersects({l})")),
                        _ => None,
                    }
                }
                BinOp::Eq(_) | BinOp::Ne(_) => self.equality(b),
                BinOp::Lt(_) | BinOp::Gt(_) | BinOp::Le(_) | BinOp::Ge(_) => {
                    let op = &b.op;
                    let op = quote::quote!(#op).to_string();
                    let (l, r) = (self.value(&b.left)?, self.value(&b.right)?);
                    match (self.width(&b.left), self.width(&b.right)) {
                        (Some(one), Some(other)) if one != other => {
                            let wide = |v, w| if w == "u64" { v } else { format!("({v} as u64)") };
                            Some(format!("{} {op} {}", wide(l, one), wide(r, other)))
                        }
                        _ => Some(format!("{l} {op} {r}")),
                    }
                }
                _ => None,
            },
            _ => None,
        }
    }
    /// Translates a conjunction. Conditions on members of an optional struct are evaluated only if it is
    /// present.
    fn all(&self, conditions: &[&Expr]) -> Option<String> {
        let Some((first, rest)) = conditions.split_first() else { return Some(String::new()) };
        let joined = |one: String, rest: String| match rest.is_empty() {
            true => one,
            false => format!("{one} && {rest}"),
        };
        match self.presence(first) {
            Some((_, true, false)) => self.all(rest), // it is already known to be present
            Some((name, true, true)) if !rest.is_empty() => {
                let mut there = self.there.clone();
                there.push(name.into());
                let inner = Self { there, ..*self }.all(rest)?;
                Some(format!("{name}.is_some_and(|{name}| {inner})"))
            }
            Some((name, false, true)) => Some(joined(format!("{name}.is_none()"), self.all(rest)?)),
            _ => Some(joined(self.boolean(first)?, self.all(rest)?)),
        }
    }
    /// Returns the struct whose presence a condition tests, whether it must be present, and whether it is
    /// optional.
    fn presence(&self, e: &Expr) -> Option<(&'s str, bool, bool)> {
        let (name, is_there) = match bare(e) {
            Expr::Path(_) => (bare(e), true),
            Expr::Binary(b) if matches!(b.op, BinOp::Eq(_) | BinOp::Ne(_)) => {
                let named = if is_null(&b.left) { &b.right } else { &b.left };
                if !is_null(&b.left) && !is_null(&b.right) {
                    return None;
                }
                (&**named, matches!(b.op, BinOp::Ne(_)))
            }
            _ => return None,
        };
        let Expr::Path(path) = name else { return None };
        let name = path.path.get_ident()?.to_string();
        let param = self.entry.params.iter().find(|p| p.name == name)?;
        let is_struct = param.role == Role::Plain && self.spec.record(param.ty.base()).is_some();
        let is_in = param.direction == Direction::In;
        (is_struct && is_in).then_some((param.name.as_str(), is_there, param.optional))
    }
    /// Returns the type of a number, if it is a name.
    fn width(&self, e: &Expr) -> Option<&str> {
        let (name, member) = match e {
            Expr::Path(p) => (p.path.get_ident()?.to_string(), None),
            Expr::Field(f) => match (&*f.base, &f.member) {
                (Expr::Path(p), syn::Member::Named(m)) => {
                    (p.path.get_ident()?.to_string(), Some(m.to_string()))
                }
                _ => return None,
            },
            _ => return None,
        };
        let param = self.entry.params.iter().find(|p| p.name == name)?;
        match member {
            None => Some(param.ty.base()),
            Some(m) => {
                let record = self.spec.record(param.ty.base())?;
                Some(record.fields.iter().find(|f| f.name == m)?.ty.base())
            }
        }
    }
    /// Whether numbers of different widths are compared, which is left to the adapter.
    fn differ(&self, b: &syn::ExprBinary) -> bool {
        match (self.width(&b.left), self.width(&b.right)) {
            (Some(one), Some(other)) => one != other,
            _ => false,
        }
    }
    fn equality(&self, b: &syn::ExprBinary) -> Option<String> {
        let not = if matches!(b.op, BinOp::Ne(_)) { "!" } else { "" };
        if let (Expr::Binary(bits), Some("0")) = (bare(&b.left), self.value(&b.right).as_deref())
            && matches!(bits.op, BinOp::BitAnd(_))
        {
            let some = self.boolean(bare(&b.left))?;
            return Some(if not.is_empty() { format!("!{some}") } else { some });
        }
        for (one, other) in [(&b.left, &b.right), (&b.right, &b.left)] {
            if is_null(other) {
                return Some(format!("{not}{}.is_null()", self.value(one)?));
            }
        }
        if let (Expr::Binary(rem), "0") = (&*b.left, self.value(&b.right)?.as_str())
            && matches!(rem.op, BinOp::Rem(_))
        {
            if self.differ(rem) {
                return None;
            }
            let (l, r) = (self.value(&rem.left)?, self.value(&rem.right)?);
            return Some(format!("{not}{l}.is_multiple_of({r})"));
        }
        let op = if not.is_empty() { "==" } else { "!=" };
        Some(format!("{} {op} {}", self.value(&b.left)?, self.value(&b.right)?))
    }
    fn value(&self, e: &Expr) -> Option<String> {
        match e {
            Expr::Paren(p) => Some(format!("({})", self.value(&p.expr)?)),
            Expr::Lit(l) => Some(quote::quote!(#l).to_string()),
            Expr::Path(p) => self.name(&p.path.get_ident()?.to_string()),
            Expr::Field(f) => {
                let syn::Member::Named(member) = &f.member else { return None };
                let Expr::Path(p) = &*f.base else { return None };
                let base = p.path.get_ident()?.to_string();
                let param = self.entry.params.iter().find(|p| p.name == base)?;
                // Optional parameters, and those that are no known struct, have no members here.
                let record = self.spec.record(param.ty.base())?;
                let field = member.to_string();
                let field = field.trim_start_matches("r#");
                record.fields.iter().find(|f| f.name == field)?;
                let there = param.role == Role::Plain
                    && (!param.optional || self.there.contains(&param.name));
                there.then(|| format!("{base}.{}", names::escape(field)))
            }
            Expr::Binary(b) => {
                if self.differ(b) {
                    return None;
                }
                let op = match b.op {
                    BinOp::Rem(_) => "%",
                    BinOp::BitOr(_) => "|",
                    // Sums and products may overflow; saturated values are too large as well.
                    BinOp::Add(_) => return self.saturating(b, "saturating_add"),
                    BinOp::Mul(_) => return self.saturating(b, "saturating_mul"),
                    _ => return None,
                };
                Some(format!("{} {op} {}", self.value(&b.left)?, self.value(&b.right)?))
            }
            _ => None,
        }
    }
    fn saturating(&self, b: &syn::ExprBinary, call: &str) -> Option<String> {
        Some(format!("({}).{call}({})", self.value(&b.left)?, self.value(&b.right)?))
    }
    /// Translates a parameter, or one of C's constants to its Rust name.
    fn name(&self, name: &str) -> Option<String> {
        if let Some(p) = self.entry.params.iter().find(|p| p.name == name) {
            // Wait lists and answers are checked elsewhere.
            let elsewhere = |p: &crate::model::Param| match &p.role {
                Role::WaitList(n) => p.name == name || n == name,
                Role::Answer { size, .. } => !self.of_answers && (p.name == name || size == name),
                _ => false,
            };
            let ours = !self.entry.params.iter().any(elsewhere);
            let answers = |p: &crate::model::Param| matches!(p.role, Role::Answer { .. });
            let size_ret = p.direction == Direction::Out
                && p.name.ends_with("size_ret")
                && self.entry.params.iter().any(answers);
            return (ours && !size_ret).then(|| names::escape(name));
        }
        self.spec.enums.iter().find_map(|e| {
            let v = e.variants.iter().find(|v| v.c == name)?;
            let ty = match e.kind {
                EnumKind::Flags => flags_type(&e.c),
                _ => c_name(self.spec, &e.name),
            };
            Some(format!("{ty}::{}", names::constant(&v.c, &e.c)))
        })
    }
}
fn is_null(e: &Expr) -> bool {
    matches!(e, Expr::Path(p) if p.path.is_ident("null"))
}
/// Removes parentheses around the whole expression.
fn bare(e: &Expr) -> &Expr {
    match e {
        Expr::Paren(p) => bare(&p.expr),
        e => e,
    }
}
/// Collects the operands of `&&`, from left to right.
fn operands<'e>(e: &'e Expr, all: &mut Vec<&'e Expr>) {
    match bare(e) {
        Expr::Binary(b) if matches!(b.op, BinOp::And(_)) => {
            operands(&b.left, all);
            operands(&b.right, all);
        }
        _ => all.push(e),
    }
}
