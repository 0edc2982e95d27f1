//! Generates `ur_api.h`: types before their uses, then the entry points, then the structs of their
//! parameters.
use super::{callback_parameters, comment, declare, parameter, parameters, params_struct};
use crate::{
    emit::flags_type,
    model::{
        Answer, Direction, Entry, Enum, EnumKind, Fault, Param, Record, Spec, Type, Variant, When,
    },
};
use std::fmt::Write;

const MACROS: &str = include_str!("macros.h");

/// Everything inside of `extern "C"`.
pub fn body(spec: &Spec) -> String {
    let mut s = String::from(MACROS);
    s.push_str("\n/* Names of device targets. */\n");
    for k in &spec.constants {
        let _ = writeln!(s, "#ifndef {0}\n#define {0} {1:?}\n#endif", k.c, k.value);
    }
    s.push_str("\n/* Structs and unions, defined further down. */\n");
    for r in &spec.records {
        let _ = writeln!(s, "typedef {0} {1} {1};", keyword(r), r.c);
    }
    s.push_str("\n/* Handles and plain types. */\n");
    for h in &spec.handles {
        let _ = writeln!(s, "{}typedef struct {1}_ *{1};", comment(&h.doc, ""), h.c);
    }
    for a in &spec.aliases {
        let _ = writeln!(s, "{}typedef {};", comment(&a.doc, ""), declare(spec, &a.of, &a.c));
    }
    s.push_str("\n/* Enumerations and flags. */\n");
    for e in &spec.enums {
        s.push_str(&enumeration(spec, e));
    }
    s.push_str("\n/* Callback functions of the caller. */\n");
    for c in &spec.callbacks {
        let returns = c.returns.as_ref().map_or("void".into(), |t| declare(spec, t, ""));
        let params = callback_parameters(spec, &c.params);
        let _ = writeln!(s, "{}typedef {returns} (*{})({params});", comment(&c.doc, ""), c.c);
    }
    s.push_str("\n/* Structs and unions. */\n");
    for r in by_value_order(spec) {
        s.push_str(&record(spec, r));
    }
    s.push_str("\n/* Entry points. */\n");
    for e in spec.loader.iter().chain(spec.tables.iter().flat_map(|t| &t.entries)) {
        s.push_str(&prototype(spec, e));
    }
    s.push_str(
        "\n/* The parameters of each entry point, as a struct of pointers to them, for tracers. */\n",
    );
    for e in spec.entries() {
        s.push_str(&params(spec, e));
    }
    s
}

fn keyword(r: &Record) -> &'static str {
    if r.union { "union" } else { "struct" }
}

fn enumeration(spec: &Spec, e: &Enum) -> String {
    let prefix = e.c.trim_end_matches("_t").to_ascii_uppercase();
    let mut s = String::new();
    if e.kind == EnumKind::Flags {
        let _ = writeln!(s, "typedef uint32_t {};", flags_type(&e.c));
    }
    let _ = writeln!(s, "{}typedef enum {} {{", comment(&e.doc, ""), e.c);
    for v in &e.variants {
        let _ = writeln!(s, "    {} = {},{}", v.c, value(v), answer(spec, v));
    }
    let _ = writeln!(s, "    {prefix}_FORCE_UINT32 = 0x7fffffff\n}} {};", e.c);
    if e.kind == EnumKind::Flags {
        let known = e.variants.iter().fold(spare_bits(&e.c), |all, v| all | v.number);
        let _ = writeln!(s, "/** Bits without a meaning in `{}`. */", flags_type(&e.c));
        let _ = writeln!(s, "#define {prefix}S_MASK {:#010x}", !known);
    }
    s.push('\n');
    s
}
/// Bits without a name that C's mask nevertheless allows.
fn spare_bits(flag: &str) -> u32 {
    if flag == "ur_kernel_launch_properties_flag_t" { 0x70 } else { 0 }
}
fn value(v: &Variant) -> String {
    match v.value.split_once("<<") {
        Some((one, bit)) if one.trim() == "1" && !bit.contains('|') => {
            format!("UR_BIT({})", bit.trim())
        }
        _ if v.value.contains('|') => format!("{:#x}", v.number),
        _ => v.value.clone(),
    }
}
fn answer(spec: &Spec, v: &Variant) -> String {
    let optional = if v.optional { ", not always answered" } else { "" };
    match &v.answer {
        Some(Answer::One(t)) => format!(" /* {}{optional} */", declare(spec, t, "")),
        Some(Answer::Many(t)) => format!(" /* {}[]{optional} */", declare(spec, t, "")),
        None => String::new(),
    }
}

fn record(spec: &Spec, r: &Record) -> String {
    let stype = r.stype.as_ref().map(|s| format!("\n`stype` is {s}.")).unwrap_or_default();
    let mut s = comment(format!("{}{stype}", r.doc).trim(), "");
    let _ = writeln!(s, "{} {} {{", keyword(r), r.c);
    for f in &r.fields {
        let _ = writeln!(s, "    {};", declare(spec, &f.ty, &f.name));
    }
    s.push_str("};\n\n");
    s
}

/// Orders the records so that each comes after those that it contains by value.
fn by_value_order(spec: &Spec) -> Vec<&Record> {
    fn visit<'a>(spec: &'a Spec, r: &'a Record, done: &mut Vec<&'a Record>) {
        if done.iter().any(|d| d.c == r.c) {
            return;
        }
        for f in &r.fields {
            let mut ty = &f.ty;
            while let Type::Array { of, .. } = ty {
                ty = of;
            }
            let Type::Name(name) = ty else { continue };
            if let Some(inner) = spec.record(name) {
                visit(spec, inner, done);
            }
        }
        done.push(r);
    }
    let mut done = Vec::new();
    for r in &spec.records {
        visit(spec, r, &mut done);
    }
    done
}

/// A comment on a parameter with what its type does not say.
pub fn about(p: &Param) -> String {
    let mut words = Vec::new();
    match p.direction {
        Direction::In => {}
        Direction::Out => words.push("out"),
        Direction::InOut => words.push("in and out"),
    }
    if p.optional {
        words.push("optional");
    }
    if words.is_empty() { String::new() } else { format!("/* {} */ ", words.join(", ")) }
}

fn prototype(spec: &Spec, e: &Entry) -> String {
    let mut text = e.doc.clone();
    for line in errors(spec, &e.errors) {
        let _ = write!(text, "\n{line}");
    }
    let comment = comment(text.trim(), "");
    format!("{comment}UR_APIEXPORT ur_result_t UR_APICALL {}({});\n\n", e.name, parameters(spec, e))
}
/// The documented errors: those with a condition on a line each, the others together.
fn errors(spec: &Spec, faults: &[Fault]) -> Vec<String> {
    let c = |code: &str| {
        let all = spec.enums.iter().filter(|e| e.name == "Result").flat_map(|e| &e.variants);
        let name = |v: &&Variant| v.name.strip_prefix("Error").unwrap_or(&v.name) == code;
        all.into_iter().find(name).map_or_else(|| code.to_string(), |v| v.c.clone())
    };
    let mut lines: Vec<_> = faults
        .iter()
        .filter_map(|f| match &f.when {
            When::Words(words) => Some(format!("{}: {words}.", c(&f.code))),
            When::Expr(e) => Some(format!("{}: `{}`.", c(&f.code), condition(e))),
            When::Unsaid => None,
        })
        .collect();
    let rest: Vec<_> =
        faults.iter().filter(|f| matches!(f.when, When::Unsaid)).map(|f| c(&f.code)).collect();
    if !rest.is_empty() {
        let lead = if lines.is_empty() { "Errors:" } else { "Also" };
        lines.push(format!("{lead} {}.", rest.join(", ")));
    }
    lines
}
fn condition(e: &syn::Expr) -> String {
    let text = quote::quote!(#e).to_string();
    let pairs =
        [(" . ", "."), ("( ", "("), (" )", ")"), (" (", "("), ("! ", "!"), ("null", "NULL")];
    let text = pairs.iter().fold(text, |text, (from, to)| text.replace(from, to));
    text.replace("&&(", "&& (").replace("||(", "|| (")
}

fn params(spec: &Spec, e: &Entry) -> String {
    // No struct for an entry without parameters, because C has no empty structs.
    if e.params.is_empty() {
        return String::new();
    }
    let name = params_struct(e);
    let mut s = format!("typedef struct {name} {{\n");
    for p in &e.params {
        let member = format!("*p{}", parameter(spec, &e.name, p));
        let constant = if constant(e, p) { "const " } else { "" };
        let _ = writeln!(s, "    {constant}{};", declare(spec, &p.ty, &member));
    }
    let _ = writeln!(s, "}} {name};\n");
    s
}

/// Whether the C prototype declares the parameter `const`, which only matters for a pointer to it.
fn constant(e: &Entry, p: &Param) -> bool {
    p.name == "size" && e.name.starts_with("urEnqueueUSM") && e.name.ends_with("AllocExp")
}
