//! Generates `ur_print.h`: the functions that print values as text.
use super::params_struct;
use crate::model::{EnumKind, Spec};
use std::fmt::Write;

/// Everything inside of `extern "C"`.
pub fn body(spec: &Spec) -> String {
    let mut s = String::from(
        "/* Each function writes its value into `buffer` as text with a NUL, and the number of bytes for\n   \
         that into `out_size`. A smaller `buff_size` gives UR_RESULT_ERROR_INVALID_SIZE. */\n\n/* Values. */\n",
    );
    for e in &spec.enums {
        let plural = if e.kind == EnumKind::Flags { "s" } else { "" };
        let name = format!("{}{plural}", camel(&e.c));
        function(&mut s, &name, &format!("enum {} value", e.c));
    }
    s.push_str("\n/* Structs. */\n");
    for r in spec.records.iter().filter(|r| !r.union) {
        function(&mut s, &camel(&r.c), &format!("const struct {} params", r.c));
    }
    s.push_str("\n/* The parameters of calls. */\n");
    for e in spec.entries() {
        let name = params_struct(e);
        if e.params.is_empty() {
            let _ = writeln!(s, "struct {name}; /* has no members, and no definition */");
        }
        function(&mut s, &camel(&name), &format!("const struct {name} *params"));
    }
    s.push_str("\n/** The parameters of a call, by the number of its entry point. */\n");
    function(&mut s, "FunctionParams", "enum ur_function_t function, const void *params");
    s
}

fn function(s: &mut String, name: &str, value: &str) {
    let _ = writeln!(
        s,
        "UR_APIEXPORT ur_result_t UR_APICALL urPrint{name}({value}, char *buffer, const size_t buff_size, size_t *out_size);"
    );
}
/// `ur_usm_p2p_x_t` → `UsmP2pX`; a digit keeps the underscore before it: `Fill_2d`.
pub fn camel(c: &str) -> String {
    let words = c.strip_prefix("ur_").unwrap_or(c).strip_suffix("_t").unwrap_or(c);
    let capital = |word: &str| {
        let mut rest = word.chars();
        let line = word.starts_with(|c: char| c.is_ascii_digit()).then_some('_');
        let capital = rest.next().map(|first| first.to_ascii_uppercase());
        line.into_iter().chain(capital).chain(rest).collect::<String>()
    };
    words.split('_').map(capital).collect()
}
