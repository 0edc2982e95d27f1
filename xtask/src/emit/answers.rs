//! Generates `crates/ur-adapter/src/default_answers/answers.rs`: the type of the answer to each query, for adapters
//! that have no information but must return an answer of that type.
use super::{NOTICE, Output, c_name, rust_type, rustfmt};
use crate::{
    model::{Answer, Enum, EnumKind, Spec, Type, Variant},
    names,
};
use std::fmt::Write;

/// Generates the file.
pub fn file(spec: &Spec) -> Result<Output, String> {
    let mut s = format!(
        "{NOTICE}//! The type of the answer to each query.\n\
         use super::{{Query, Shape}};\nuse std::ffi::c_void;\nuse crate::object::Kind;\nuse ur_sys::*;\n"
    );
    for query in spec.enums.iter().filter(|e| e.kind == EnumKind::Query) {
        let shapes: Vec<_> = query
            .variants
            .iter()
            .filter_map(|v| Some((v, shape(spec, v.answer.as_ref()?))))
            .collect();
        if shapes.is_empty() {
            continue;
        }
        let arm = |(v, shape): &(&Variant, String)| {
            format!("Self::{} => {shape},\n", names::constant(&v.c, &query.c))
        };
        let arms: String = shapes.iter().map(arm).collect();
        let _ = write!(
            s,
            "\nimpl Query for {} {{\nfn shape(self) -> Option<Shape> {{\nSome(match self {{\n{arms}_ => return None,\n}})\n}}\nfn title(self) -> Option<&'static str> {{\nself.name()\n}}\n}}\n",
            query.c
        );
    }
    Ok(Output {
        path: "crates/ur-adapter/src/default_answers/answers.rs".into(),
        text: rustfmt(&s)?,
    })
}

fn shape(spec: &Spec, answer: &Answer) -> String {
    match answer {
        Answer::Many(Type::Name(n)) if n == "c_char" => "Shape::Text".into(),
        Answer::Many(Type::Name(n)) if spec.is_handle(n) => format!("Shape::Handles({})", kind(n)),
        Answer::Many(_) => "Shape::List".into(),
        Answer::One(Type::Name(n)) if spec.is_handle(n) => format!("Shape::Handle({})", kind(n)),
        Answer::One(Type::Name(n)) if n == "Bool" || n == "bool" => "Shape::Truth".into(),
        Answer::One(ty) => one(spec, ty),
    }
}
/// The names of `Kind` are those of the specification without the `Exp` prefix.
pub fn kind(handle: &str) -> String {
    format!("Kind::{}", handle.strip_prefix("Exp").unwrap_or(handle))
}
fn one(spec: &Spec, ty: &Type) -> String {
    let size = format!("size_of::<{}>()", rust_type(spec, ty));
    let of = if let Type::Name(n) = ty { spec.enumeration(n) } else { None };
    match of {
        Some(Enum { kind: EnumKind::Flags, .. }) => {
            format!("Shape::Flags({}::VALID.0)", rust_type(spec, ty))
        }
        Some(plain) => {
            let first = plain.variants.iter().map(|v| v.number).min().unwrap_or(0);
            format!("Shape::Enumerator({first})")
        }
        None if matches!(ty, Type::Name(n) if spec.record(n).is_none() && !c_name(spec, n).is_empty()) =>
        {
            format!("Shape::Number({size})")
        }
        None => format!("Shape::Zeroes({size})"),
    }
}
