//! Scans preprocessed headers for their declarations: names and types, without numbers. It supports the C
//! that interface headers use, not all of C; anything else is an error.
use std::collections::BTreeSet;

type Result<T> = std::result::Result<T, String>;

/// The declarations of a set of headers whose names belong to the interface.
#[derive(Default)]
pub struct Declared {
    /// Each with its enumerators.
    pub enums: Vec<(String, Vec<String>)>,
    pub records: Vec<Record>,
    /// Names and types.
    pub aliases: Vec<(String, String)>,
    pub pointers: Vec<Function>,
    pub functions: Vec<Function>,
    /// Macros that stand for values.
    pub constants: BTreeSet<String>,
    /// Macros with arguments.
    pub macros: BTreeSet<String>,
}
pub struct Record {
    pub name: String,
    /// The name and type of each member.
    pub members: Vec<(String, String)>,
}
/// A prototype, or the type of a pointer to a function.
pub struct Function {
    pub name: String,
    pub returns: String,
    pub params: Vec<String>,
}

/// Scans preprocessed declarations (`cc -E -P`) and macro definitions (`cc -E -dM`).
pub fn scan(preprocessed: &str, definitions: &str) -> Result<Declared> {
    let mut out = Declared::default();
    for line in definitions.lines() {
        macro_definition(&mut out, line);
    }
    let tokens = tokens(preprocessed);
    let mut rest = tokens.as_slice();
    while !rest.is_empty() {
        let (one, after) = declaration(rest);
        rest = after;
        // System headers contain declarations that this scanner does not support; the interface's headers do
        // not.
        if one.iter().any(|t| t.starts_with("ur")) {
            interface(&mut out, one).map_err(|e| format!("`{}`: {e}", one.join(" ")))?;
        }
    }
    Ok(out)
}

fn macro_definition(out: &mut Declared, line: &str) {
    let Some(definition) = line.strip_prefix("#define ").filter(|d| d.starts_with("UR_")) else {
        return;
    };
    let (name, value) = definition.split_once(' ').unwrap_or((definition, ""));
    if let Some((name, _)) = name.split_once('(') {
        out.macros.insert(name.to_string());
    } else if value.starts_with(|c: char| c.is_ascii_digit() || c == '"') && name != "UR_PRINT_H" {
        out.constants.insert(name.to_string());
    }
}

/// Splits text into words, numbers and single characters; attributes are left out.
pub fn tokens(text: &str) -> Vec<&str> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mut out, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        let length = match first {
            _ if word(first) => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        rest = after.trim_start();
        if token == "__attribute__" {
            rest = rest[balanced(rest)..].trim_start();
        } else {
            out.push(token);
        }
    }
    out
}
/// Returns the length of the parenthesized text that `text` begins with.
fn balanced(text: &str) -> usize {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + c.len_utf8();
        }
    }
    text.len()
}
/// Splits off the tokens up to a semicolon outside of braces; a function body also ends a declaration.
pub fn declaration<'a, 'b>(tokens: &'b [&'a str]) -> (&'b [&'a str], &'b [&'a str]) {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "{" => depth += 1,
            "}" => depth -= 1,
            ";" if depth == 0 => return (&tokens[..at], &tokens[at + 1..]),
            _ => {}
        }
    }
    (tokens, &[])
}

fn interface(out: &mut Declared, tokens: &[&str]) -> Result<()> {
    match tokens {
        ["typedef", "enum", name, "{", body @ .., "}", again] if name == again => {
            let names = commas(body).into_iter().filter_map(|v| v.first().map(ToString::to_string));
            out.enums.push((name.to_string(), names.collect()));
        }
        ["typedef", "struct" | "union", name, "{", body @ .., "}", again] if name == again => {
            out.records.push(record(name, body)?);
        }
        ["struct" | "union", name, "{", body @ .., "}"] => out.records.push(record(name, body)?),
        // A forward declaration.
        ["typedef", "struct" | "union", name, again] if name == again => {}
        ["struct" | "union", _] => {}
        ["typedef", rest @ .., ")"] => {
            let open = rest.windows(2).position(|w| w == ["(", "*"]).ok_or("no pointer in it")?;
            let [returns @ .., "(", "*"] = &rest[..open + 2] else { return Err("no type".into()) };
            let [name, ")", "(", params @ ..] = &rest[open + 2..] else {
                return Err("no name".into());
            };
            out.pointers.push(function(name, returns, params));
        }
        ["typedef", of @ .., name] => out.aliases.push((name.to_string(), ty(of))),
        [head @ .., ")"] => {
            let open = head.iter().position(|t| *t == "(").ok_or("no parameters")?;
            let ([returns @ .., name], [_, params @ ..]) = head.split_at(open) else {
                return Err("no name".into());
            };
            out.functions.push(function(name, returns, params));
        }
        _ => return Err("a declaration that abi-diff cannot read".into()),
    }
    Ok(())
}

fn record(name: &str, body: &[&str]) -> Result<Record> {
    let mut members = Vec::new();
    for member in body.split(|t| *t == ";").filter(|m| !m.is_empty()) {
        let array = member.iter().position(|t| *t == "[").unwrap_or(member.len());
        let (declared, length) = member.split_at(array);
        let [of @ .., name] = declared else { return Err("a member without a name".into()) };
        members.push((name.to_string(), format!("{}{}", ty(of), length.concat())));
    }
    Ok(Record { name: name.to_string(), members })
}
fn function(name: &str, returns: &[&str], params: &[&str]) -> Function {
    let params = commas(params).into_iter().map(parameter).filter(|p| p != "void");
    Function { name: name.to_string(), returns: ty(returns), params: params.collect() }
}
/// Returns a parameter's type without its name, and without a top-level `const`, which does not affect
/// callers.
fn parameter(tokens: &[&str]) -> String {
    let words = |t: &&&str| !matches!(**t, "const" | "struct" | "enum" | "union" | "*");
    let mut of = tokens;
    if tokens.iter().filter(words).count() > 1 {
        of = &tokens[..tokens.len() - 1];
    }
    match of {
        [rest @ .., "*", "const"] => ty(&[rest, &["*"]].concat()),
        ["const", rest @ ..] if !rest.contains(&"*") => ty(rest),
        _ => ty(of),
    }
}
/// Normalizes the spelling of a type.
fn ty(tokens: &[&str]) -> String {
    let said = tokens.iter().filter(|t| !matches!(**t, "struct" | "enum" | "union" | "extern"));
    // These are the same type on all platforms of the interface.
    said.map(|t| if *t == "int" { "int32_t" } else { t }).collect::<Vec<_>>().join(" ")
}
/// Splits at commas; returns nothing for no tokens.
fn commas<'a, 'b>(tokens: &'b [&'a str]) -> Vec<&'b [&'a str]> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "(" => depth += 1,
            ")" => depth -= 1,
            "," if depth == 0 => {
                parts.push(&tokens[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tokens[start..]);
    parts.retain(|p| !p.is_empty());
    parts
}
