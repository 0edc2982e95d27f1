//! Compares `ze-sys` with the headers of a package of the system, which is downloaded and unpacked, but not
//! installed. `ze-sys` follows a newer specification than most systems have: what both contain is compared,
//! and what `newer.rs` has of newer headers.
mod newer;
use super::{
    facts::{Facts, run as run_program},
    scan::{declaration, tokens},
};
use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

type Result<T> = std::result::Result<T, String>;

/// The name of the package in Debian and Ubuntu.
pub const PACKAGE: &str = "libze-dev";
/// The least numbers of facts; fewer mean that the scanner fails.
const LEAST: [usize; 3] = [75, 300, 300];

/// The declarations that both have.
#[derive(Default)]
struct Both {
    /// Each structure with the C names and the Rust names of its members.
    records: Vec<(String, Vec<(String, String)>)>,
    values: Vec<String>,
}

/// The facts of the headers and of `ze-sys`.
pub struct Said {
    pub c: Facts,
    pub rust: Facts,
    /// A sentence with the numbers of facts.
    pub sentence: String,
}
/// Evaluates both; the inner `Err` says why no headers are available.
pub fn ask(work: &Path, ze_sys: &Path) -> Result<std::result::Result<Said, String>> {
    let work = work.join("level-zero");
    let include = match include(&work) {
        Ok(include) => include,
        Err(why) => return Ok(Err(why)),
    };
    let flag = format!("-I{}", include.display());
    let source = work.join("headers.c");
    write(&source, "#include <level_zero/zes_api.h>\n")?;
    let arguments = ["-std=c11", "-w", "-E", "-P", &flag, &source.display().to_string()];
    let text = run_program("cc", arguments.map(String::from))?;
    let mut both = both(&text, ze_sys)?;
    let mut c = c_facts(&both, &flag, &work)?;
    add_newer(&mut both, &mut c);
    let members: usize = both.records.iter().map(|(_, members)| members.len()).sum();
    let counts = [both.records.len(), members, both.values.len()];
    if counts.iter().zip(LEAST).any(|(count, least)| *count < least) {
        return Err(format!(
            "{}: only {counts:?} of Level Zero's; is it the folder?",
            include.display()
        ));
    }
    let [records, members, values] = counts;
    let sentence =
        format!("{records} structures, {members} members, {values} enumerators of Level Zero");
    let rust = rust_facts(&both, &work, ze_sys)?;
    Ok(Ok(Said { c, rust, sentence }))
}
/// Adds what `newer.rs` says, unless the headers had it.
fn add_newer(both: &mut Both, c: &mut Facts) {
    const FIRST: [(&str, usize, usize); 2] = [("stype", 0, 4), ("pNext", 8, 8)];
    for (record, bytes, rest) in newer::STRUCTURES {
        if both.records.iter().any(|(known, _)| known == record) {
            continue;
        }
        let members: Vec<_> = FIRST.iter().chain(*rest).collect();
        c.insert(format!("size of {record}"), bytes.to_string());
        c.insert(format!("alignment of {record}"), "8".to_string());
        for (member, offset, bytes) in &members {
            c.insert(format!("offset of {record}.{member}"), offset.to_string());
            c.insert(format!("size of {record}.{member}"), bytes.to_string());
        }
        let names = members.iter().map(|(name, ..)| (name.to_string(), name.to_string()));
        both.records.push((record.to_string(), names.collect()));
    }
    for (name, value) in newer::VALUES {
        if both.values.iter().all(|known| known != name) {
            c.insert(format!("value of {name}"), value.to_string());
            both.values.push(name.to_string());
        }
    }
}
/// Returns the folder of the headers: the system's, or that of the unpacked package.
fn include(work: &Path) -> Result<PathBuf> {
    let has = |include: &Path| include.join("level_zero/ze_api.h").is_file();
    let unpacked = work.join("package/usr/include");
    for include in [Path::new("/usr/include"), &unpacked] {
        if has(include) {
            return Ok(include.to_path_buf());
        }
    }
    fs::create_dir_all(work).map_err(|e| format!("{}: {e}", work.display()))?;
    let fetch =
        "apt-get download --quiet \"$1\" && dpkg-deb -x \"$1\"_*.deb package && rm \"$1\"_*.deb";
    let out = Command::new("sh").args(["-c", fetch, "sh", PACKAGE]).current_dir(work).output();
    match out.map_err(|e| e.to_string())? {
        out if out.status.success() && has(&unpacked) => Ok(unpacked),
        out => Err(format!(
            "{PACKAGE} is neither installed nor to be had: {}",
            String::from_utf8_lossy(&out.stderr).trim()
        )),
    }
}
/// Returns what both the preprocessed headers and `ze-sys` declare under the same name.
fn both(text: &str, ze_sys: &Path) -> Result<Both> {
    let file = ze_sys.join("src/lib.rs");
    let source = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let name = |line: &str, before: &str| {
        let rest = line.trim_start().strip_prefix(before)?;
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
        Some(rest[..end].to_string())
    };
    let named = |before: &str| -> BTreeSet<String> {
        source.lines().filter_map(|line| name(line, before)).collect()
    };
    let (structures, constants) = (named("pub struct "), named("pub const "));
    let mut both = Both::default();
    let all = tokens(text);
    let mut rest = all.as_slice();
    while !rest.is_empty() {
        let (one, after) = declaration(rest);
        rest = after;
        match one {
            ["typedef", "struct" | "union", _, "{", body @ .., "}", record]
                if structures.contains(*record) =>
            {
                let members = body.split(|token| *token == ";").filter_map(|member| {
                    let end = member.iter().position(|t| *t == "[").unwrap_or(member.len());
                    let c = member[..end].last()?.to_string();
                    let rust = if c == "type" { "type_".to_string() } else { c.clone() };
                    Some((c, rust))
                });
                both.records.push((record.to_string(), members.collect()));
            }
            ["typedef", "enum", _, "{", body @ .., "}", _] => {
                let names = body.split(|token| *token == ",").filter_map(|v| v.first());
                // Enumerators that only fix the width of C's enums have no counterpart, and the current
                // version may differ.
                let counts = |name: &str| {
                    constants.contains(name)
                        && !name.ends_with("_FORCE_UINT32")
                        && !name.ends_with("_CURRENT")
                };
                let names = names.filter(|name| counts(name)).map(ToString::to_string);
                both.values.extend(names);
            }
            _ => {}
        }
    }
    Ok(both)
}
fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
fn read(said: &str) -> Facts {
    let lines = said.lines().filter_map(|line| line.split_once(" = "));
    lines.map(|(name, value)| (name.to_string(), value.to_string())).collect()
}
fn c_facts(both: &Both, flag: &str, work: &Path) -> Result<Facts> {
    let mut s =
        String::from("#include <level_zero/zes_api.h>\n#include <stddef.h>\n#include <stdio.h>\n");
    s += "#define N(what, n) printf(\"%s = %lld\\n\", what, (long long)(n))\nint main(void) {\n";
    let mut number = |what: String, n: String| {
        let _fits = writeln!(s, "    N(\"{what}\", {n});");
    };
    for (record, members) in &both.records {
        number(format!("size of {record}"), format!("sizeof({record})"));
        number(format!("alignment of {record}"), format!("_Alignof({record})"));
        for (c, _) in members {
            number(format!("offset of {record}.{c}"), format!("offsetof({record}, {c})"));
            number(format!("size of {record}.{c}"), format!("sizeof((({record} *)0)->{c})"));
        }
    }
    both.values.iter().for_each(|one| number(format!("value of {one}"), one.clone()));
    s += "    return 0;\n}\n";
    let (source, binary) = (work.join("facts.c"), work.join("facts"));
    write(&source, &s)?;
    let [from, to] = [&source, &binary].map(|path| path.display().to_string());
    run_program("cc", ["-std=c11", "-w", flag, &from, "-o", &to].map(String::from))?;
    Ok(read(&run_program(&to, [])?))
}
fn rust_facts(both: &Both, work: &Path, ze_sys: &Path) -> Result<Facts> {
    let package = work.join("layout");
    fs::create_dir_all(&package).map_err(|e| format!("{}: {e}", package.display()))?;
    let mut s = String::from(
        "#![allow(non_camel_case_types)]\nuse std::mem::{align_of, offset_of, size_of};\nuse ze_sys::*;\n\
         fn size<S, F>(_: impl Fn(&S) -> &F) -> usize { size_of::<F>() }\nfn main() {\n",
    );
    for (record, members) in &both.records {
        let _fits =
            writeln!(s, "    println!(\"size of {record} = {{}}\", size_of::<{record}>());");
        let _fits =
            writeln!(s, "    println!(\"alignment of {record} = {{}}\", align_of::<{record}>());");
        for (c, rust) in members {
            let _fits = writeln!(
                s,
                "    println!(\"offset of {record}.{c} = {{}}\", offset_of!({record}, {rust}));\n    \
                 println!(\"size of {record}.{c} = {{}}\", size(|one: &{record}| &one.{rust}));"
            );
        }
    }
    for one in &both.values {
        let _fits = writeln!(s, "    println!(\"value of {one} = {{}}\", {one} as i64);");
    }
    s += "}\n";
    let manifest = format!(
        "[package]\nname = \"ze-layout\"\nedition = \"2024\"\n\n[[bin]]\nname = \"ze-layout\"\npath = \"main.rs\"\n\n\
         [dependencies]\nze-sys = {{ path = {:?} }}\n\n[workspace]\n",
        ze_sys
    );
    write(&package.join("Cargo.toml"), &manifest)?;
    write(&package.join("main.rs"), &s)?;
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let [manifest, target] =
        ["Cargo.toml", "target"].map(|name| package.join(name).display().to_string());
    let arguments =
        ["run", "--quiet", "--offline", "--manifest-path", &manifest, "--target-dir", &target];
    Ok(read(&run_program(&cargo, arguments.map(String::from))?))
}
